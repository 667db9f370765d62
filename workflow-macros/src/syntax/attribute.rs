//! The attributes that mean something to us inside a body.

use syn::{Attribute, Expr, Path};

/// An attribute of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// `#[step(..)]`
    Step,
    /// `#[nondeterministic(reason = "..")]`
    Nondeterministic,
    /// `#[key(expr)]`
    Key,
    /// `#[state]`
    State,
}

impl Mark {
    fn is(self, path: &Path) -> bool {
        match self {
            // The only one that is a macro of its own, and so may be reached by a path.
            Self::Step => path
                .segments
                .last()
                .is_some_and(|last| last.ident == "step"),
            Self::Nondeterministic => path.is_ident("nondeterministic"),
            Self::Key => path.is_ident("key"),
            Self::State => path.is_ident("state"),
        }
    }
}

/// Takes the first attribute of this kind away from `attrs`.
pub(crate) fn take(attrs: &mut Vec<Attribute>, mark: Mark) -> Option<Attribute> {
    let at = attrs.iter().position(|attr| mark.is(attr.path()))?;
    Some(attrs.remove(at))
}

/// Takes every attribute of this kind away from a statement's expression. The compiler gives the attributes of
/// `a = b` and `a + b` to `a`; so do we look there.
pub(crate) fn strip(expr: &mut Expr, mark: Mark) -> Option<Attribute> {
    take(attributes(expr)?, mark)
}

/// The attributes of an expression, where it can have some.
pub(crate) fn attributes(expr: &mut Expr) -> Option<&mut Vec<Attribute>> {
    Some(match expr {
        Expr::Array(expr) => &mut expr.attrs,
        Expr::Assign(expr) => &mut expr.attrs,
        Expr::Async(expr) => &mut expr.attrs,
        Expr::Await(expr) => &mut expr.attrs,
        Expr::Binary(expr) => &mut expr.attrs,
        Expr::Block(expr) => &mut expr.attrs,
        Expr::Break(expr) => &mut expr.attrs,
        Expr::Call(expr) => &mut expr.attrs,
        Expr::Cast(expr) => &mut expr.attrs,
        Expr::Closure(expr) => &mut expr.attrs,
        Expr::Const(expr) => &mut expr.attrs,
        Expr::Continue(expr) => &mut expr.attrs,
        Expr::Field(expr) => &mut expr.attrs,
        Expr::ForLoop(expr) => &mut expr.attrs,
        Expr::Group(expr) => &mut expr.attrs,
        Expr::If(expr) => &mut expr.attrs,
        Expr::Index(expr) => &mut expr.attrs,
        Expr::Let(expr) => &mut expr.attrs,
        Expr::Lit(expr) => &mut expr.attrs,
        Expr::Loop(expr) => &mut expr.attrs,
        Expr::Macro(expr) => &mut expr.attrs,
        Expr::Match(expr) => &mut expr.attrs,
        Expr::MethodCall(expr) => &mut expr.attrs,
        Expr::Paren(expr) => &mut expr.attrs,
        Expr::Path(expr) => &mut expr.attrs,
        Expr::Range(expr) => &mut expr.attrs,
        Expr::Reference(expr) => &mut expr.attrs,
        Expr::Repeat(expr) => &mut expr.attrs,
        Expr::Return(expr) => &mut expr.attrs,
        Expr::Struct(expr) => &mut expr.attrs,
        Expr::Try(expr) => &mut expr.attrs,
        Expr::Tuple(expr) => &mut expr.attrs,
        Expr::Unary(expr) => &mut expr.attrs,
        Expr::Unsafe(expr) => &mut expr.attrs,
        Expr::While(expr) => &mut expr.attrs,
        _ => return None,
    })
}
