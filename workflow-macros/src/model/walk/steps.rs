//! `#[step(..)]` on a statement, a `let` or an expression.

use proc_macro2::{Ident, Span, TokenStream};
use syn::visit_mut::VisitMut;
use syn::{Attribute, Block, Expr, ExprAwait, Pat, Stmt};

use super::{Apart, Frame, Given, Kind, Own, Undo, Undos, Walk, name, print};
use crate::diagnostics::{Place, Report};
use crate::messages;
use crate::model::options::{At, Options};
use crate::syntax::{Durable, Settings, peel, ungroup};

impl Walk<'_> {
    /// Makes an expression a step. A trailing `?` belongs to the workflow, all else to the step.
    pub(super) fn step_in_place(&mut self, attr: &Attribute, expr: &mut Expr, pat: Option<&Pat>) {
        self.step_path.get_or_insert_with(|| attr.path().clone());
        let options = Options::check(&Settings::of(attr), At::Site, self.errors);
        ungroup(expr);
        if let Expr::Try(tried) = expr {
            return self.step_core(attr, options, &mut tried.expr, pat);
        }
        self.step_core(attr, options, expr, pat);
    }

    fn step_core(
        &mut self,
        attr: &Attribute,
        mut options: Options,
        expr: &mut Expr,
        pat: Option<&Pat>,
    ) {
        ungroup(expr);
        if let Some(apart) = self.apart.last() {
            return self.errors.push(Place::of(attr), apart.text());
        }
        if let Expr::Await(awaited) = &*expr
            && let Expr::Macro(called) = peel(&awaited.base)
            && let Some(durable) = Durable::named(&called.mac.path)
        {
            self.errors.push(
                Place::of(attr),
                messages::STEP_ON_MACRO.with(&[durable.word()]),
            );
            return self.visit_expr_mut(expr);
        }
        let gives = self.annotated.take();
        let place = Place::of(expr);
        let (name, at) = match (&options.name, name::callee(expr)) {
            (Some((name, span)), _) => (name.clone(), Place::from(*span)),
            (None, Some((name, span))) => (name, span.into()),
            (None, None) => {
                let suggested = name::suggestion(pat);
                self.errors
                    .push(place, messages::NAME_UNREADABLE.with(&[&suggested]));
                (suggested, place)
            }
        };
        if options.is_bare()
            && let Expr::Await(awaited) = expr
        {
            if self.lends(&awaited.base) {
                return self.renamed((name, at), gives, awaited, print::lent);
            }
            if options.name.is_some() && is_once(&awaited.base) {
                return self.renamed((name, at), gives, awaited, print::once);
            }
        }
        if !matches!(expr, Expr::Block(_) | Expr::Async(_)) && has_question(expr) {
            let text = messages::STEP_QUESTION_INSIDE.with(&[&name]);
            *expr = self.refused(&Report::new(place, text));
            return;
        }
        let calls = name::called(expr);
        if let Expr::Block(block) = expr {
            self.settle_block(&mut block.block);
        }
        self.apart.push(Apart::Step);
        // `return` reads as if it left the workflow, and would only end the step.
        self.frames.0.push(Frame::Branch("the step", Own::of(expr)));
        match &mut *expr {
            // What is awaited may itself be a step: then it is that one, renamed.
            Expr::Await(awaited) => self.visit_expr_mut(&mut awaited.base),
            other => self.visit_expr_mut(other),
        }
        self.frames.0.pop();
        self.apart.pop();
        // Where it captures something, the compiler would say that again.
        options.undo = options.undo.filter(|undo| !self.captures(undo));
        if let Some(undo) = &options.undo {
            self.undo(&name, undo);
        }
        options.undone_by_flow = matches!(self.undone, Undos::OfFlow);
        let site = self.site(name, Kind::Step, at);
        self.called(calls, gives, false);
        let cx = self.cx();
        print::in_place(expr, &options, &cx, &site, self.krate);
    }

    /// Whether an undo captures a local, which is told of.
    pub(super) fn captures(&mut self, handler: &Expr) -> bool {
        let local = self.captured(handler);
        if let Some(local) = &local {
            let text = messages::UNDO_CAPTURES.with(&[&local.to_string()]);
            self.errors.push(Place::of(local), text);
        }
        local.is_some()
    }

    /// The undo of a step of that name.
    fn undo(&mut self, name: &str, handler: &Expr) {
        match self.undone {
            Undos::Refused(refused) => self.errors.push(Place::of(handler), refused),
            Undos::OfHook => self
                .errors
                .push(Place::of(handler), messages::UNDO_IN_FRAGMENT),
            Undos::Own if self.checkpoints.is_empty() => {
                self.errors
                    .push(Place::of(handler), messages::UNDO_WITHOUT_CHECKPOINT);
            }
            // A guide is rolled back to where it began.
            Undos::Own | Undos::OfFlow => {}
        }
        self.undos.push(Undo {
            path: self.scopes.path(name),
            handler: handler.clone(),
            cfg: self.cfg.clone(),
        });
    }

    /// The undo of a site that is gone, for the runs in which it was done. They passed a checkpoint, wherever it stood.
    pub(super) fn removed_undo(&mut self, name: &str, handler: Expr) {
        match self.undone {
            Undos::Refused(refused) => self.errors.push(Place::of(&handler), refused),
            Undos::OfHook => self
                .errors
                .push(Place::of(&handler), messages::UNDO_IN_FRAGMENT),
            Undos::Own | Undos::OfFlow => {}
        }
        self.undos.push(Undo {
            path: self.scopes.path(name),
            handler,
            cfg: self.cfg.clone(),
        });
    }

    /// Whether a call is given a `&mut`, as far as can be seen.
    fn lends(&self, call: &Expr) -> bool {
        let arguments = match peel(call) {
            Expr::Call(call) => &call.args,
            Expr::MethodCall(call) => &call.args,
            _ => return false,
        };
        arguments.iter().any(|argument| match peel(argument) {
            Expr::Reference(reference) => reference.mutability.is_some(),
            Expr::Path(path) => path
                .path
                .get_ident()
                .is_some_and(|word| self.given.get(&word.to_string()) == Some(&Given::Lent)),
            _ => false,
        })
    }

    /// A call that is known to be durable already, and is made once. One that is lent something to change is a fragment's, or a
    /// mistake: a step may be called again, a fragment is not.
    fn renamed(
        &mut self,
        (name, at): (String, Place),
        gives: Option<String>,
        awaited: &mut ExprAwait,
        print: Print,
    ) {
        let calls = name::called(&awaited.base);
        let is_detached = name::is_detached(&awaited.base);
        self.in_site += 1;
        self.visit_expr_mut(&mut awaited.base);
        self.in_site -= 1;
        let site = self.site(name, Kind::Step, at);
        self.called(calls, gives, is_detached);
        print(&mut awaited.base, &self.cx(), &site, self.krate);
    }

    /// A block with `?` in it ends in a `Result`, whose error type nothing else says.
    fn settle_block(&mut self, block: &mut Block) {
        if !block.stmts.iter().any(stmt_has_question) {
            return;
        }
        match block.stmts.last_mut() {
            Some(Stmt::Expr(tail, None)) => print::catch_all(tail, self.krate),
            last => {
                let place =
                    last.map_or_else(|| Place::from(Span::call_site()), |stmt| Place::of(stmt));
                let report = Report::new(place, messages::STEP_BLOCK_NO_RESULT);
                block.stmts.push(Stmt::Expr(self.refused(&report), None));
            }
        }
    }
}

/// How a call is printed that only gets another name.
type Print = fn(&mut Expr, &Ident, &TokenStream, &TokenStream);

/// Whether a call takes what it is called on, as far as can be seen: the reply to a request, or a child run that is not waited for.
fn is_once(call: &Expr) -> bool {
    let Expr::MethodCall(call) = peel(call) else {
        return false;
    };
    name::is_term(call)
        || matches!(
            (call.method.to_string().as_str(), call.args.len()),
            ("reply", 1) | ("detach", 0)
        )
}

/// Whether a `?` stands in it that leaves it.
fn has_question(expr: &Expr) -> bool {
    let mut finder = Question(false);
    syn::visit::Visit::visit_expr(&mut finder, expr);
    finder.0
}

fn stmt_has_question(stmt: &Stmt) -> bool {
    let mut finder = Question(false);
    syn::visit::Visit::visit_stmt(&mut finder, stmt);
    finder.0
}

struct Question(bool);

impl<'ast> syn::visit::Visit<'ast> for Question {
    fn visit_expr_try(&mut self, _: &'ast syn::ExprTry) {
        self.0 = true;
    }

    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}

    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
