//! Items in a body: functions of their own, which know nothing of the run.

use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Item, Macro};

use super::print;
use crate::diagnostics::{Place, Report};
use crate::messages;
use crate::syntax::Durable;

/// Reports our macros in functions that are no workflows, steps or fragments themselves. What else is awaited there is
/// none of the workflow's.
pub(super) fn refuse(item: &mut Item) {
    Nested.visit_item_mut(item);
}

struct Nested;

impl VisitMut for Nested {
    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        if Durable::named(&mac.path).is_some() {
            let report = Report::new(Place::of(&mac.path), messages::IN_NESTED_FUNCTION);
            print::unread(mac, &report);
        }
    }

    fn visit_item_fn_mut(&mut self, function: &mut syn::ItemFn) {
        if !is_ours(&function.attrs) {
            visit_mut::visit_item_fn_mut(self, function);
        }
    }

    fn visit_impl_item_fn_mut(&mut self, function: &mut syn::ImplItemFn) {
        if !is_ours(&function.attrs) {
            visit_mut::visit_impl_item_fn_mut(self, function);
        }
    }

    fn visit_trait_item_fn_mut(&mut self, function: &mut syn::TraitItemFn) {
        if !is_ours(&function.attrs) {
            visit_mut::visit_trait_item_fn_mut(self, function);
        }
    }

    // What is only a pattern of tokens is not there yet.
    fn visit_item_macro_mut(&mut self, _: &mut syn::ItemMacro) {}
}

/// Whether the function is expanded by itself, and its body checked then.
fn is_ours(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let last = attr.path().segments.last();
        last.is_some_and(|last| {
            ["workflow", "step", "fragment"]
                .iter()
                .any(|ours| last.ident == ours)
        })
    })
}
