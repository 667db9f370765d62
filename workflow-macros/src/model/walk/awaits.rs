//! `.await`.

use syn::Expr;
use syn::visit_mut::VisitMut;

use super::foreign::words;
use super::{Apart, Kind, Walk, name, print, rules};
use crate::diagnostics::Place;
use crate::messages;
use crate::syntax::{Durable, peel, ungroup};

impl Walk<'_> {
    pub(super) fn awaited(&mut self, expr: &mut Expr) {
        let Expr::Await(awaited) = expr else { return };
        ungroup(&mut awaited.base);
        let gives = self.annotated.take();
        if let Expr::Macro(called) = peel(&awaited.base)
            && let Some(durable) = Durable::named(&called.mac.path)
        {
            let mut mac = called.mac.clone();
            if self.refused_here(&mut mac) {
                *expr = Expr::Macro(syn::ExprMacro {
                    attrs: Vec::new(),
                    mac,
                });
                return;
            }
            if !durable.is_awaited() {
                let place = Place::of(&mac.path).to(awaited.await_token.span.into());
                let why = match durable {
                    Durable::Removed => "it only says what was here",
                    Durable::Uuid | Durable::Random => "it is derived, and there at once",
                    _ => "it is done at once",
                };
                self.errors
                    .push(place, messages::NOT_A_FUTURE.with(&[durable.word(), why]));
            }
            let attrs = std::mem::take(&mut awaited.attrs);
            self.durable(durable, &mut mac);
            *expr = Expr::Macro(syn::ExprMacro { attrs, mac });
            return;
        }
        let place = Place::of(&awaited.base);
        match self.apart.last() {
            // A step's body awaits what it likes.
            Some(Apart::Step) => return self.visit_expr_mut(&mut awaited.base),
            Some(apart) => {
                self.errors
                    .push(place.to(awaited.await_token.span.into()), apart.text());
                if !matches!(apart, Apart::Macro(_)) {
                    return self.visit_expr_mut(&mut awaited.base);
                }
            }
            None => {}
        }
        let calls = name::called(&awaited.base);
        let is_detached = name::is_detached(&awaited.base);
        self.in_site += 1;
        match &mut *awaited.base {
            Expr::Call(call) if matches!(&*call.func, Expr::Path(path) if rules::told_by_type(&words(&path.path))) => {
                for argument in &mut call.args {
                    self.visit_expr_mut(argument);
                }
            }
            base => self.visit_expr_mut(base),
        }
        self.in_site -= 1;
        let Some((name, span)) = name::callee(&awaited.base) else {
            // Its type says whether it is durable at all; without a call there is nothing to read a name from.
            self.errors.push(
                place.to(awaited.await_token.span.into()),
                messages::NAME_UNREADABLE.with(&["my_step"]),
            );
            let site = self.unnamed(Kind::Call, place);
            let cx = self.cx();
            return print::gate(&mut awaited.base, &cx, &site, self.krate);
        };
        let site = self.site(name, Kind::Call, span.into());
        self.called(calls, gives, is_detached);
        let cx = self.cx();
        print::gate(&mut awaited.base, &cx, &site, self.krate);
    }

    /// The site that was just found is a call of this, and gives that.
    pub(super) fn called(
        &mut self,
        calls: Option<String>,
        gives: Option<String>,
        is_detached: bool,
    ) {
        if let Some(details) = self.scopes.details() {
            details.calls = calls;
            details.gives = gives.filter(|_| !is_detached);
            details.is_detached = is_detached;
        }
    }
}
