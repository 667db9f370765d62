//! `return`, `break` and `continue`, and the labelled blocks that a `break` may leave.

use syn::Expr;
use syn::visit_mut;

use super::{Frame, Walk, name, print};
use crate::model::Jump;

impl Walk<'_> {
    pub(super) fn labelled_block(&mut self, expr: &mut Expr) {
        let Expr::Block(block) = &*expr else { return };
        let label = block
            .label
            .as_ref()
            .map(|label| label.name.ident.to_string());
        self.frames.0.push(Frame::Loop(label));
        visit_mut::visit_expr_mut(self, expr);
        self.frames.0.pop();
    }

    /// It may not leave a branch or a step: that is a future of its own.
    pub(super) fn jump(&mut self, expr: &mut Expr) {
        let label =
            |label: &Option<syn::Lifetime>| label.as_ref().map(|label| label.ident.to_string());
        let refused = match &*expr {
            Expr::Return(returned) => self.frames.check_return(returned.return_token.span),
            Expr::Break(broken) => {
                let (label, span) = (label(&broken.label), broken.break_token.span);
                self.frames
                    .check_break("break", label.as_deref(), span.into())
            }
            Expr::Continue(continued) => {
                let (label, span) = (label(&continued.label), continued.continue_token.span);
                self.frames
                    .check_break("continue", label.as_deref(), span.into())
            }
            _ => None,
        };
        if let Some(report) = refused {
            self.errors.add(report);
            *expr = print::no_jump();
            return;
        }
        visit_mut::visit_expr_mut(self, expr);
        if self.apart.is_empty()
            && let Some(jump) = outlined(expr)
        {
            self.scopes.outline.leaves(jump);
        }
    }
}

/// As the outline says it.
fn outlined(jump: &Expr) -> Option<Jump> {
    // A loop's name is its label.
    let plain = |label: &Option<syn::Lifetime>| {
        let label = label.as_ref()?.ident.to_string();
        Some(name::plain(&label))
    };
    match jump {
        Expr::Return(_) => Some(Jump::Return),
        Expr::Continue(of) => Some(Jump::Continue(plain(&of.label))),
        Expr::Break(of) => Some(Jump::Break(plain(&of.label))),
        _ => None,
    }
}
