//! Durable loops.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprForLoop, ExprWhile, Lifetime};

use super::local;
use crate::model::Names;

/// A durable loop.
pub(crate) struct Entered {
    pub(crate) label: Lifetime,
    pub(crate) outer: Ident,
    pub(crate) inner: Ident,
    pub(crate) site: TokenStream,
    pub(crate) key: Option<Expr>,
    pub(crate) carried: Option<Carried>,
    /// What is said at the beginning of each iteration.
    pub(crate) declared: Vec<TokenStream>,
}

/// What a loop carries.
pub(crate) struct Carried {
    pub(crate) locals: Vec<Ident>,
    pub(crate) every: Option<Expr>,
    pub(crate) keep: Option<Expr>,
    /// Locals that are used in it and not carried.
    pub(crate) held: Vec<Ident>,
    /// Where that is written.
    pub(crate) at: Span,
    /// Something leaves it by `break`, or it ends by itself.
    pub(crate) ends: bool,
}

// Input:  'items: for item in items { BODY }
// Output: {
//     let mut entered = enter_loop(cx, SITE).await;
//     'items: for item in items {
//         let cx_1 = &entered.iteration();
//         if entered.never() { continue 'items; }
//         BODY
//     }
// }
pub(crate) fn any_loop(expr: &mut Expr, entered: &Entered, krate: &TokenStream) {
    let Entered {
        label,
        outer,
        inner,
        site,
        key,
        carried,
        declared,
    } = entered;
    let state = local("loop");
    let iteration = match key {
        None => quote!(iteration()),
        Some(key) => quote!(keyed(&(#key))),
    };
    let top = carried.as_ref().map(|carried| carried.top(&state));
    // The label is used, so that the compiler does not find it unused.
    let head = quote! {
        #top
        let #inner = &#state.#iteration;
        if #state.never() { continue #label; }
        #(#declared)*
    };
    let mut over = None;
    let (attrs, looped) = match &mut *expr {
        Expr::ForLoop(ExprForLoop {
            attrs,
            pat,
            expr: items,
            body,
            ..
        }) => {
            let statements = &body.stmts;
            let items = if carried.is_some() {
                // Before the loop is entered: it is what it was on the first run, and the iterations behind are passed over.
                let all = local("items");
                over = Some((quote!(#krate::__private::iterate(#items)), all.clone()));
                quote!(#all.skip(#state.skipped()))
            } else {
                quote!(#items)
            };
            (
                std::mem::take(attrs),
                quote!(#label: for #pat in #items { #head #(#statements)* }),
            )
        }
        Expr::While(ExprWhile {
            attrs, cond, body, ..
        }) => {
            // As the compiler itself takes it apart: the condition belongs to the iteration that it guards.
            (
                std::mem::take(attrs),
                quote!(#label: loop { #head if #cond #body else { break } }),
            )
        }
        Expr::Loop(of) => {
            let statements = &of.body.stmts;
            (
                std::mem::take(&mut of.attrs),
                quote!(#label: loop { #head #(#statements)* }),
            )
        }
        _ => return,
    };
    let looped = match carried {
        None => {
            let enter = quote!(#krate::__private::enter_loop(#outer, #site).await);
            quote!({
                let mut #state = #enter;
                #looped
            })
        }
        Some(carried) => carried.around(&state, outer, site, &looped, krate),
    };
    let looped = match over {
        // A `match`, so that what the items borrow lives as long as in a `for`.
        Some((items, all)) => quote!(match #items { #all => #looped }),
        None => looped,
    };
    *expr = Expr::Verbatim(quote!(#(#attrs)* #looped));
}

impl Carried {
    /// What it uses, for the rules.
    pub(crate) fn names(&self) -> Names {
        let shown = |list: &[Ident]| list.iter().map(ToString::to_string).collect();
        Names {
            carried: shown(&self.locals),
            held: shown(&self.held),
        }
    }

    /// The locals as one value, with the span of the list. Trailing comma: of one local, too, it is a tuple.
    fn locals(&self) -> TokenStream {
        let locals = &self.locals;
        let mut tuple = Group::new(Delimiter::Parenthesis, quote!(#(#locals,)*));
        tuple.set_span(self.at.resolved_at(Span::mixed_site()));
        TokenTree::Group(tuple).into()
    }

    fn holds(&self) -> impl Iterator<Item = (Ident, Ident)> + '_ {
        self.held.iter().enumerate().map(|(index, held)| {
            // What changes it is told to have been borrowed by the attribute.
            let held = Ident::new(&held.to_string(), self.at.resolved_at(held.span()));
            (local(&format!("held_{index}")), held)
        })
    }

    /// Tells the locals, and sets them. All of it has the span of the list, so that what is wrong with a local is told of there.
    fn told(&self, state: &Ident, method: TokenStream) -> TokenStream {
        let at = self.at.resolved_at(Span::mixed_site());
        let state = Ident::new(&state.to_string(), state.span().located_at(self.at));
        let locals = self.locals();
        quote_spanned!(at=> #locals = #state.#method(#locals).await;)
    }

    // let () = held.held();
    // (cursor, total) = entered.top((cursor, total)).await;
    fn top(&self, state: &Ident) -> TokenStream {
        let at = self.at.resolved_at(Span::mixed_site());
        let held = self.holds().map(|(hold, _)| {
            let hold = Ident::new(&hold.to_string(), hold.span().located_at(self.at));
            quote_spanned!(at=> #hold.held();)
        });
        let call = self.told(state, quote_spanned!(at=> top));
        quote! {
            #(#held)*
            #call
        }
    }

    // {
    //     let mut entered = enter_carry(cx, SITE, &["cursor", "total"]).await.every(20).keep(20);
    //     (cursor, total) = entered.resume((cursor, total)).await;
    //     let held = hold(&items);
    //     let value = LOOP;
    //     entered.finish();
    //     value
    // }
    fn around(
        &self,
        state: &Ident,
        outer: &Ident,
        site: &TokenStream,
        looped: &TokenStream,
        krate: &TokenStream,
    ) -> TokenStream {
        let private = quote!(#krate::__private);
        let names = self.locals.iter().map(ToString::to_string);
        let every = self.every.as_ref().map(|every| quote!(.every(#every)));
        let keep = self.keep.as_ref().map(|keep| quote!(.keep(#keep)));
        let call = self.told(
            state,
            quote_spanned!(self.at.resolved_at(Span::mixed_site())=> resume),
        );
        let holds = self.holds().map(|(hold, held)| {
            let value =
                quote_spanned!(self.at.resolved_at(Span::mixed_site())=> #private::hold(&#held));
            quote!(let #hold = #value;)
        });
        let value = local("value");
        let ended = if self.ends {
            quote! {
                let #value = #looped;
                #state.finish();
                #value
            }
        } else {
            looped.clone()
        };
        quote!({
            let mut #state = #private::enter_carry(#outer, #site, &[#(#names),*]).await #every #keep;
            #call
            #(#holds)*
            #ended
        })
    }
}
