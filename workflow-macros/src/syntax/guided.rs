//! A guided flow as it was written: an `impl` whose functions are stages and their hooks.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, Generics, ImplItem, Meta, Token, Type, braced, bracketed, parenthesized, token,
};

use super::function::{Body, Function};
use super::options::{Setting, Value};

/// `impl Project { .. }`
pub(crate) struct Impl {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) generics: Generics,
    pub(crate) ty: Type,
    /// The trait, where there is one.
    pub(crate) of: Option<Type>,
    pub(crate) members: Vec<Member>,
}

/// What stands in it.
pub(crate) enum Member {
    /// A function, with what makes a stage or a hook of it.
    Function(Box<Function>),
    /// Anything else.
    Other(TokenStream),
}

/// What makes a function part of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Stage,
    Check,
    Guard,
    Leave,
    Undo,
    ExitGuard,
}

impl Role {
    const ALL: [Self; 6] = [
        Self::Stage,
        Self::Check,
        Self::Guard,
        Self::Leave,
        Self::Undo,
        Self::ExitGuard,
    ];

    /// The attribute's name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Check => "check",
            Self::Guard => "guard",
            Self::Leave => "leave",
            Self::Undo => "undo",
            Self::ExitGuard => "exit_guard",
        }
    }

    /// Takes every attribute of ours away from `attrs`.
    pub(crate) fn take(attrs: &mut Vec<Attribute>) -> Vec<(Self, Attribute)> {
        let mut found = Vec::new();
        attrs.retain(|attr| {
            let role = Self::ALL
                .into_iter()
                .find(|role| attr.path().is_ident(role.word()));
            found.extend(role.map(|role| (role, attr.clone())));
            role.is_none()
        });
        found
    }
}

/// What stands in `#[stage(..)]`.
#[derive(Default)]
pub(crate) struct Marks {
    pub(crate) list: Vec<Setting>,
    /// `to = [..]`, as often as it was written.
    pub(crate) exits: Vec<Exits>,
    /// Where it stopped making sense. What was read until then stands above.
    pub(crate) broken: Option<syn::Error>,
}

/// `to = [region if Self::wants_cloud, create]`
pub(crate) struct Exits {
    pub(crate) word: Ident,
    pub(crate) list: Vec<Exit>,
}

/// `region if Self::wants_cloud`
pub(crate) struct Exit {
    pub(crate) target: Ident,
    pub(crate) guard: Option<Expr>,
}

/// What stands in `#[check(..)]` and its like: the stages that the hook belongs to, and words.
pub(crate) fn words(attr: &Attribute) -> syn::Result<Vec<Ident>> {
    match &attr.meta {
        Meta::Path(_) => Ok(Vec::new()),
        Meta::List(list) => {
            let words = |input: ParseStream<'_>| {
                Punctuated::<Ident, Token![,]>::parse_terminated_with(input, Ident::parse_any)
            };
            Ok(words.parse2(list.tokens.clone())?.into_iter().collect())
        }
        Meta::NameValue(pair) => Err(syn::Error::new(pair.eq_token.span, "expected parentheses")),
    }
}

impl Marks {
    pub(crate) fn of(attr: &Attribute) -> Self {
        let mut marks = Self::default();
        match &attr.meta {
            Meta::Path(_) => {}
            Meta::List(list) => {
                let read = |input: ParseStream<'_>| {
                    marks.broken = marks.read(input).err();
                    input.parse::<TokenStream>().map(drop)
                };
                let rest = read.parse2(list.tokens.clone()).err();
                marks.broken = marks.broken.or(rest);
            }
            Meta::NameValue(pair) => {
                marks.broken = Some(syn::Error::new(pair.eq_token.span, "expected parentheses"));
            }
        }
        marks
    }

    fn read(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            if input.peek(Token![=]) {
                input.parse::<Token![=]>()?;
                if name == "to" {
                    let list = exits(input)?;
                    self.exits.push(Exits { word: name, list });
                } else {
                    let value = Value::Equals(input.parse()?);
                    self.list.push(Setting { name, value });
                }
            } else if input.peek(token::Paren) {
                let content;
                let parentheses = parenthesized!(content in input);
                let value = Value::Parentheses(parentheses, content.parse()?);
                self.list.push(Setting { name, value });
            } else {
                let value = Value::Nothing;
                self.list.push(Setting { name, value });
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }
}

/// `[region if Self::wants_cloud, create]`, or `create` alone.
fn exits(input: ParseStream<'_>) -> syn::Result<Vec<Exit>> {
    if !input.peek(token::Bracket) {
        return Ok(vec![input.parse()?]);
    }
    let content;
    bracketed!(content in input);
    let list = Punctuated::<Exit, Token![,]>::parse_terminated(&content)?;
    Ok(list.into_iter().collect())
}

impl Parse for Exit {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let target = input.call(Ident::parse_any)?;
        let guard = if input.peek(Token![if]) {
            input.parse::<Token![if]>()?;
            Some(input.parse()?)
        } else {
            None
        };
        Ok(Self { target, guard })
    }
}

impl Parse for Impl {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        input.parse::<Token![impl]>()?;
        let mut generics: Generics = input.parse()?;
        let mut ty: Type = input.parse()?;
        let mut of = None;
        if input.peek(Token![for]) {
            input.parse::<Token![for]>()?;
            of = Some(std::mem::replace(&mut ty, input.parse()?));
        }
        generics.where_clause = input.parse()?;
        let content;
        braced!(content in input);
        attrs.extend(content.call(Attribute::parse_inner)?);
        let mut members = Vec::new();
        while !content.is_empty() {
            members.push(content.parse()?);
        }
        Ok(Self {
            attrs,
            generics,
            ty,
            of,
            members,
        })
    }
}

impl Parse for Member {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let ahead = input.fork();
        let is_function = Function::head(&ahead).is_ok();
        if !is_function {
            let item: ImplItem = input.parse()?;
            return Ok(Self::Other(item.to_token_stream()));
        }
        let (attrs, vis, sig) = Function::head(input)?;
        // A body that cannot be read, as while it is being typed, takes nothing else with it.
        let body = if input.peek(Token![;]) {
            Body::Missing(input.parse()?)
        } else {
            let content;
            let brace = braced!(content in input);
            let mut tokens = TokenStream::new();
            let inner: TokenStream = content.parse()?;
            brace.surround(&mut tokens, |tokens| inner.to_tokens(tokens));
            Body::read(tokens)
        };
        Ok(Self::Function(Box::new(Function {
            attrs,
            vis,
            sig,
            body,
        })))
    }
}
