//! What stands in an attribute: words, `word = value`, `word(..)`, separated by commas.

use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, Meta, Token, parenthesized, token};

use crate::diagnostics::Place;

/// All that stands in one attribute.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) list: Vec<Setting>,
    /// Where it stopped making sense. What was read until then is in the list.
    pub(crate) broken: Option<syn::Error>,
}

/// One of them.
pub(crate) struct Setting {
    pub(crate) name: Ident,
    pub(crate) value: Value,
}

/// What was given to it.
pub(crate) enum Value {
    /// `ephemeral`
    Nothing,
    /// `retries = 5`
    Equals(Expr),
    /// `retry_if(|e| ..)`
    Parentheses(token::Paren, TokenStream),
}

impl Settings {
    /// Of an attribute macro's own input.
    pub(crate) fn read(tokens: TokenStream) -> Self {
        let mut settings = Self::default();
        let read = |input: ParseStream<'_>| {
            settings.broken = settings.read_list(input).err();
            input.parse::<TokenStream>().map(drop)
        };
        let rest = read.parse2(tokens).err();
        settings.broken = settings.broken.or(rest);
        settings
    }

    /// Of an attribute in a body.
    pub(crate) fn of(attr: &Attribute) -> Self {
        match &attr.meta {
            Meta::Path(_) => Self::default(),
            Meta::List(list) => Self::read(list.tokens.clone()),
            Meta::NameValue(pair) => Self {
                list: Vec::new(),
                broken: Some(syn::Error::new(pair.eq_token.span, "expected parentheses")),
            },
        }
    }

    fn read_list(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() {
            // `crate` is a keyword and an option.
            let name = input.call(Ident::parse_any)?;
            let value = if input.peek(Token![=]) {
                input.parse::<Token![=]>()?;
                Value::Equals(input.parse()?)
            } else if input.peek(token::Paren) {
                let content;
                Value::Parentheses(parenthesized!(content in input), content.parse()?)
            } else {
                Value::Nothing
            };
            self.list.push(Setting { name, value });
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }
}

impl Setting {
    /// Its name with what was given to it.
    pub(crate) fn place(&self) -> Place {
        let name = Place::from(self.name.span());
        match &self.value {
            Value::Nothing => name,
            Value::Equals(value) => name.to(Place::of(value)),
            Value::Parentheses(parentheses, _) => name.to(parentheses.span.close().into()),
        }
    }

    /// What was given to it, or its name if nothing was.
    pub(crate) fn value_place(&self) -> Place {
        match &self.value {
            Value::Nothing => self.name.span().into(),
            Value::Equals(value) => Place::of(value),
            Value::Parentheses(parentheses, tokens) if tokens.is_empty() => {
                parentheses.span.join().into()
            }
            Value::Parentheses(_, tokens) => Place::of(tokens),
        }
    }
}
