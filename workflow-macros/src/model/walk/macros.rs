//! The macros of ours that stand in a body.

use proc_macro2::Span;
use syn::visit_mut::VisitMut;
use syn::{Expr, Lit, Macro};

use super::{Apart, Kind, Walk, duration, name, print};
use crate::diagnostics::{Place, Report};
use crate::messages;
use crate::syntax::{Durable, arguments, peel};

/// A name, and where it is written.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) span: Span,
}

impl Walk<'_> {
    /// One that stands without `.await`.
    pub(super) fn unawaited(&mut self, durable: Durable, mac: &mut Macro) {
        if self.refused_here(mac) {
            return;
        }
        if durable.is_awaited() {
            self.errors.push(
                Place::of(&mac.path),
                messages::NOT_AWAITED.with(&[durable.word()]),
            );
        }
        self.durable(durable, mac);
    }

    /// Reports a macro of ours that stands where nothing durable can be done. Whether nothing is left to be done about it.
    pub(super) fn refused_here(&mut self, mac: &mut Macro) -> bool {
        let Some(apart) = self.apart.last() else {
            return false;
        };
        let report = Report::new(Place::of(&mac.path), apart.text());
        if matches!(apart, Apart::Macro(_)) {
            // It goes on as if it stood outside, so that nothing follows from it.
            self.errors.add(report);
            return false;
        }
        self.unread(mac, &report);
        true
    }

    /// A macro of ours: its name and arguments, rewritten to the form that names its site.
    pub(super) fn durable(&mut self, durable: Durable, mac: &mut Macro) {
        // If it stands in a foreign macro that was reported, and what stands in it need not be.
        let around = std::mem::take(&mut self.apart);
        self.rewrite(durable, mac);
        self.apart = around;
    }

    fn rewrite(&mut self, durable: Durable, mac: &mut Macro) {
        if durable == Durable::Progress {
            return self.progress(mac);
        }
        let (named, list) = match self.read(durable, mac) {
            Ok(read) => read,
            Err(report) => return self.unread(mac, &report),
        };
        match durable {
            Durable::Sleep => self.sleep(mac, named, list),
            Durable::Now => self.bare(mac, durable, Kind::Now, named, &list),
            Durable::Uuid | Durable::Random => self.bare(mac, durable, Kind::Derived, named, &list),
            Durable::Join => self.branches(mac, durable, Kind::Join, named, list),
            Durable::Race => self.branches(mac, durable, Kind::Race, named, list),
            Durable::JoinAll => self.join_all(mac, named, list),
            Durable::Recv => self.recv(mac, named, list),
            Durable::Send => self.send(mac, named, list),
            Durable::Guide => self.guide(mac, named, list),
            Durable::Attempt => self.attempt(mac, named, list),
            Durable::Version => self.version(mac, named, list),
            Durable::Checkpoint => {
                self.checkpoints.push((named.name.clone(), self.cx()));
                self.bare(mac, durable, Kind::Checkpoint, named, &list);
            }
            Durable::Rollback => self.rollback(mac, named, list),
            Durable::Settle => self.bare(mac, durable, Kind::Settle, named, &list),
            Durable::Removed => self.removed(mac, named, list),
            // It has no name, and was read before.
            Durable::Progress => {}
        }
    }

    /// The name that its input begins with, and what follows.
    fn read(&mut self, durable: Durable, mac: &Macro) -> Result<(Named, Vec<Expr>), Report> {
        let (word, shape) = (durable.word(), durable.shape());
        let place = Place::of(&mac.path);
        let list = arguments(mac.tokens.clone()).map_err(|wrong| {
            let at = if mac.tokens.is_empty() {
                place
            } else {
                wrong.span().into()
            };
            Report::new(
                at,
                messages::MACRO_INPUT.with(&[word, &wrong.to_string(), shape]),
            )
        })?;
        let mut list = list.into_iter();
        let first = list.next();
        let at = first.as_ref().map_or(place, Place::of);
        let first = first.and_then(|first| match peel(&first) {
            Expr::Path(path) if path.qself.is_none() => {
                let name = path.path.get_ident()?;
                Some((name::plain(&name.to_string()), name.span()))
            }
            // What a step was called by its option need not be a word.
            Expr::Lit(literal) if durable == Durable::Removed => match &literal.lit {
                Lit::Str(text) => Some((text.value(), text.span())),
                _ => None,
            },
            _ => None,
        });
        let Some((name, span)) = first else {
            return Err(Report::new(at, messages::MACRO_NAME.with(&[word, shape])));
        };
        if !name::is_name(&name) {
            let text = messages::NAME_SHAPE.with(&[&name, &name::like(&name)]);
            self.errors.push(span, text);
        }
        Ok((Named { name, span }, list.collect()))
    }

    /// A value to be published. It is no site: nothing of it is recorded, so it has no name.
    fn progress(&mut self, mac: &mut Macro) {
        let durable = Durable::Progress;
        let mut list = match arguments(mac.tokens.clone()) {
            Ok(list) => list,
            Err(wrong) => {
                let text = messages::MACRO_INPUT.with(&[
                    durable.word(),
                    &wrong.to_string(),
                    durable.shape(),
                ]);
                return self.unread(mac, &Report::new(wrong.span(), text));
            }
        };
        let Some(mut value) = list.pop() else {
            return self.misshapen(mac, durable, None);
        };
        if !list.is_empty() {
            return self.misshapen(mac, durable, Some(&value));
        }
        self.in_site += 1;
        self.visit_expr_mut(&mut value);
        self.in_site -= 1;
        print::progress(mac, &self.cx(), &value);
    }

    /// A guided flow: its data at the beginning, and the flow itself if its data does not say which.
    fn guide(&mut self, mac: &mut Macro, Named { name, span }: Named, list: Vec<Expr>) {
        let (mut initial, mut flow) = (None, None);
        for argument in list {
            match argument {
                Expr::Assign(named) if matches!(peel(&named.left), Expr::Path(path) if path.path.is_ident("flow")) => {
                    if flow.replace(*named.right).is_some() {
                        return self.misshapen(mac, Durable::Guide, flow.as_ref());
                    }
                }
                argument => {
                    if initial.replace(argument).is_some() {
                        return self.misshapen(mac, Durable::Guide, initial.as_ref());
                    }
                }
            }
        }
        let Some(mut initial) = initial else {
            return self.misshapen(mac, Durable::Guide, None);
        };
        let site = self.site(name, Kind::Call, span.into());
        let cx = self.cx();
        self.in_site += 1;
        self.visit_expr_mut(&mut initial);
        if let Some(flow) = &mut flow {
            self.visit_expr_mut(flow);
        }
        self.in_site -= 1;
        print::guide(mac, &cx, &site, &initial, flow.as_ref());
    }

    fn sleep(&mut self, mac: &mut Macro, Named { name, span }: Named, mut list: Vec<Expr>) {
        let argument = match (list.len(), list.pop()) {
            (1, Some(argument)) => argument,
            (_, extra) => return self.misshapen(mac, Durable::Sleep, extra.as_ref()),
        };
        let site = self.site(name, Kind::Sleep, span.into());
        let cx = self.cx();
        self.in_site += 1;
        match argument {
            Expr::Assign(mut until) if matches!(peel(&until.left), Expr::Path(path) if path.path.is_ident("until")) =>
            {
                self.visit_expr_mut(&mut until.right);
                print::sleep(mac, &cx, &site, &until.right, true);
            }
            duration => {
                let duration = self.duration(duration);
                print::sleep(mac, &cx, &site, &duration, false);
            }
        }
        self.in_site -= 1;
    }

    /// A duration: an expression, or a literal that is read here.
    pub(super) fn duration(&mut self, mut duration: Expr) -> Expr {
        let Expr::Lit(literal) = peel(&duration) else {
            self.visit_expr_mut(&mut duration);
            return duration;
        };
        let text = match &literal.lit {
            Lit::Str(text) => text,
            Lit::Int(number) => {
                let text = messages::DURATION_UNIT.with(&[number.base10_digits()]);
                self.errors.push(number.span(), text);
                return print::millis(0, number.span(), self.krate);
            }
            _ => return duration,
        };
        let millis = duration::parse(&text.value()).unwrap_or_else(|wrong| {
            let text_of = wrong.message().with(&[&text.value()]);
            self.errors.push(text.span(), text_of);
            0
        });
        print::millis(millis, text.span(), self.krate)
    }

    fn bare(
        &mut self,
        mac: &mut Macro,
        durable: Durable,
        kind: Kind,
        Named { name, span }: Named,
        extra: &[Expr],
    ) {
        if let Some(extra) = extra.first() {
            self.errors.push(
                Place::of(extra),
                messages::MACRO_SHAPE.with(&[durable.word(), durable.shape()]),
            );
        }
        let site = self.site(name, kind, span.into());
        print::bare(mac, &self.cx(), &site);
    }

    /// What is written in one of ours does not fit; or, where nothing is at fault, something is missing.
    pub(super) fn misshapen(&mut self, mac: &mut Macro, durable: Durable, at: Option<&Expr>) {
        let words = [durable.word(), durable.shape()];
        let report = match at {
            Some(at) => Report::new(Place::of(at), messages::MACRO_SHAPE.with(&words)),
            None => Report::new(Place::of(&mac.path), messages::MACRO_LACKS.with(&words)),
        };
        self.unread(mac, &report);
    }

    /// Puts what is wrong with one of ours in its place.
    pub(super) fn unread(&mut self, mac: &mut Macro, report: &Report) {
        self.is_told_in_place = true;
        print::unread(mac, report);
    }

    /// The same with an expression.
    pub(super) fn refused(&mut self, report: &Report) -> Expr {
        self.is_told_in_place = true;
        print::refused(report)
    }
}
