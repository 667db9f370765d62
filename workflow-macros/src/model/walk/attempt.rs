//! `attempt!`: a block at whose edge failures stop.

use syn::visit_mut::VisitMut;
use syn::{Expr, Macro, Stmt};

use super::macros::Named;
use super::{Frame, Kind, Walk, print};
use crate::diagnostics::Place;
use crate::messages;
use crate::syntax::{Durable, peel};

impl Walk<'_> {
    pub(super) fn attempt(
        &mut self,
        mac: &mut Macro,
        Named { name, span }: Named,
        list: Vec<Expr>,
    ) {
        let mut list = list.into_iter();
        let mut block = match (list.next(), list.next()) {
            (Some(Expr::Block(block)), None) if block.label.is_none() => block.block,
            (wrong, extra) => {
                return self.misshapen(mac, Durable::Attempt, extra.or(wrong).as_ref());
            }
        };
        if let Some(Stmt::Expr(tail, None)) = block.stmts.last_mut()
            && let Expr::Call(call) = peel(tail)
            && let Expr::Path(path) = peel(&call.func)
            && path.path.is_ident("Ok")
        {
            self.errors.push(Place::of(tail), messages::OK_IN_ATTEMPT);
            // It goes on without, so that nothing follows from it.
            if let Some(value) = call.args.first() {
                *tail = value.clone();
            }
        }
        let prefix = format!("{}/", self.scopes.path(&name));
        let of = self.scopes.next();
        let site = self.site(name, Kind::Attempt, span.into());
        let inner = self.new_cx();
        let declared = self.branch(prefix, (of, None), inner.clone(), Frame::Attempt, |walk| {
            walk.visit_block_mut(&mut block);
        });
        print::begin(&mut block, declared);
        print::attempt(mac, &self.cx(), &site, &inner, &block, self.krate);
    }
}
