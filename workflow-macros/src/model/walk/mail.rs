//! `recv!` and `send!`.

use syn::visit_mut::VisitMut;
use syn::{Expr, LitStr, Macro};

use super::macros::Named;
use super::versions::quoted;
use super::{Kind, Walk, name, print};
use crate::diagnostics::{Place, Report};
use crate::messages;
use crate::syntax::{Durable, peel};

impl Walk<'_> {
    pub(super) fn recv(&mut self, mac: &mut Macro, Named { name, span }: Named, list: Vec<Expr>) {
        let mut list = list.into_iter();
        let Some(from) = list.next().filter(|from| !matches!(from, Expr::Assign(_))) else {
            return self.misshapen(mac, Durable::Recv, None);
        };
        let (mut timeout, mut count) = (None, None);
        for argument in list {
            let place = Place::of(&argument);
            let Some((word, value)) = option(argument) else {
                self.errors.push(
                    place,
                    messages::MACRO_SHAPE.with(&["recv", "paid, PAYMENT, timeout = \"15m\""]),
                );
                continue;
            };
            match word.as_str() {
                "timeout" if timeout.is_none() => timeout = Some(value),
                "count" | "exactly" if quoted(&value).is_some() => {
                    let text = quoted(&value).map(LitStr::value).unwrap_or_default();
                    let number = text.trim().parse::<u32>().unwrap_or(1).to_string();
                    let text = messages::RECV_NUMBER.with(&[&word, &number]);
                    self.errors.push(Place::of(&value), text);
                    // It goes on with one, so that nothing follows from it.
                    count = Some((syn::parse_quote!(1), word == "exactly"));
                }
                "count" | "exactly" if count.is_none() => count = Some((value, word == "exactly")),
                "count" | "exactly" => self.errors.push(
                    place,
                    messages::OPTIONS_CONTRADICT.with(&[
                        "count",
                        "exactly",
                        "one takes what is there, the other waits for all of them",
                    ]),
                ),
                "timeout" => self
                    .errors
                    .push(place, messages::OPTION_REPEATED.with(&["timeout"])),
                _ => self.errors.push(
                    place,
                    messages::OPTION_UNKNOWN.with(&[
                        &word,
                        "recv!",
                        "the options are `timeout`, `count`, `exactly`",
                    ]),
                ),
            }
        }
        let mut channels = match from {
            Expr::Array(array) => array.elems.into_iter().collect(),
            one => vec![one],
        };
        if channels.is_empty() {
            let report = Report::new(Place::of(&mac.path), messages::NO_CHANNEL);
            return self.unread(mac, &report);
        }
        let site = self.site(name, Kind::Recv, span.into());
        if let Some(details) = self.scopes.details() {
            details.channels = channels.iter().filter_map(name::path).collect();
        }
        self.in_site += 1;
        for channel in &mut channels {
            self.visit_expr_mut(channel);
        }
        let timeout = timeout.map(|timeout| self.duration(timeout));
        if let Some((count, _)) = &mut count {
            self.visit_expr_mut(count);
        }
        self.in_site -= 1;
        let received = print::Received {
            channels,
            timeout,
            count,
        };
        print::recv(mac, &self.cx(), &site, &received, self.krate);
    }

    pub(super) fn send(&mut self, mac: &mut Macro, Named { name, span }: Named, list: Vec<Expr>) {
        let mut list = match <[Expr; 3]>::try_from(list) {
            Ok(list) => list,
            Err(list) => return self.misshapen(mac, Durable::Send, list.get(3)),
        };
        let site = self.site(name, Kind::Send, span.into());
        if let Some(details) = self.scopes.details() {
            details.channels = name::path(&list[1]).into_iter().collect();
        }
        self.in_site += 1;
        for argument in &mut list {
            self.visit_expr_mut(argument);
        }
        self.in_site -= 1;
        let [to, channel, value] = list;
        print::send(mac, &self.cx(), &site, &to, &channel, &value);
    }
}

/// `word = value`.
pub(super) fn option(argument: Expr) -> Option<(String, Expr)> {
    let Expr::Assign(given) = argument else {
        return None;
    };
    let Expr::Path(path) = peel(&given.left) else {
        return None;
    };
    let word = path.path.get_ident()?.to_string();
    Some((word, *given.right))
}
