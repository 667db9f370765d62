//! A function as it was written: its signature parsed, its body parsed or kept as tokens.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Block, Signature, Token, Visibility};

/// An annotated function, or the declaration of one in a trait.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Body,
}

/// What stands after the signature.
pub(crate) enum Body {
    /// A block.
    Block(Block),
    /// Something that is not a block yet, as while it is being typed.
    Unreadable {
        tokens: TokenStream,
        why: syn::Error,
    },
    /// A semicolon: a declaration in a trait.
    Missing(Token![;]),
}

impl Function {
    /// What stands before the body.
    pub(super) fn head(
        input: ParseStream<'_>,
    ) -> syn::Result<(Vec<Attribute>, Visibility, Signature)> {
        let attrs = input.call(Attribute::parse_outer)?;
        Ok((attrs, input.parse()?, input.parse()?))
    }
}

impl Body {
    /// A block, if these tokens are one.
    pub(super) fn read(tokens: TokenStream) -> Self {
        match syn::parse2(tokens.clone()) {
            Ok(block) => Self::Block(block),
            Err(why) => Self::Unreadable { tokens, why },
        }
    }
}

/// What a function is called, whatever is wrong with the rest of it.
pub(crate) fn function_name(item: &TokenStream) -> Option<Ident> {
    let mut trees = item.clone().into_iter();
    trees.find(|tree| matches!(tree, TokenTree::Ident(word) if word == "fn"))?;
    match trees.next()? {
        TokenTree::Ident(name) => Some(name),
        _ => None,
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (attrs, vis, sig) = Self::head(input)?;
        let body = if input.peek(Token![;]) {
            Body::Missing(input.parse()?)
        } else {
            Body::read(input.parse()?)
        };
        Ok(Self {
            attrs,
            vis,
            sig,
            body,
        })
    }
}

impl ToTokens for Body {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Block(block) => block.to_tokens(tokens),
            Self::Unreadable {
                tokens: written, ..
            } => written.to_tokens(tokens),
            Self::Missing(semicolon) => semicolon.to_tokens(tokens),
        }
    }
}
