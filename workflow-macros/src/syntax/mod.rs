//! What was written. Nothing here knows what is allowed.

mod attribute;
mod function;
mod guided;
mod invocation;
mod options;
mod tokens;

pub(crate) use self::attribute::{Mark, attributes, strip, take};
pub(crate) use self::function::{Body, Function, function_name};
pub(crate) use self::guided::{Impl, Marks, Member, Role, words};
pub(crate) use self::invocation::{Durable, arguments};
pub(crate) use self::options::{Setting, Settings, Value};
pub(crate) use self::tokens::{Seen, seen};

use syn::Expr;

/// The expression itself, without parentheses and without the invisible groups that `macro_rules!` leaves.
pub(crate) fn peel(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Group(group) => &group.expr,
            Expr::Paren(paren) => &paren.expr,
            expr => return expr,
        };
    }
}

/// Takes away the invisible groups that `macro_rules!` leaves around an expression.
pub(crate) fn ungroup(expr: &mut Expr) {
    while let Expr::Group(group) = expr {
        *expr = std::mem::replace(&mut *group.expr, Expr::PLACEHOLDER);
    }
}
