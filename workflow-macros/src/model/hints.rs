//! The type of a local, as far as the text tells it.
//!
//! What the compiler infers is not known to a macro. What is written out is, and so is what only one function or type of the
//! package can mean: that is looked up in its sources, where the lock is made.

use std::collections::HashMap;

use proc_macro2::Ident;
use syn::{
    Expr, ExprCall, ExprPath, GenericParam, Lit, Local, Pat, Path, PathArguments, PathSegment,
    Signature, Type, UnOp,
};

use super::name;
use crate::syntax::{arguments, peel};

/// A local or a parameter.
pub(crate) struct Bound {
    pub(crate) name: Ident,
    /// It can be looked at; a `let` without a value only names it.
    pub(crate) has_value: bool,
    pub(crate) ty: Option<Hint>,
}

impl Bound {
    pub(crate) fn new(name: Ident) -> Self {
        Self {
            name,
            has_value: true,
            ty: None,
        }
    }
}

/// What the text tells of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hint {
    /// It is written.
    Type(String),
    /// By the step or workflow that is called: what it records.
    Call(String),
    /// By the function that is called; with a `?` behind it, by the `T` of its `Result<T>`.
    Function { path: String, is_tried: bool },
    /// By what is made: a struct, or a variant of the enum before it.
    Made(String),
    /// `Option<_>`, `Vec<_>` or a tuple of these.
    Of(&'static str, Vec<Hint>),
}

impl Hint {
    /// The texts in which what it leads to is named.
    pub(crate) fn words(&self, add: &mut impl FnMut(&str)) {
        match self {
            Self::Type(text) | Self::Made(text) => add(text),
            Self::Call(path) => add(path.rsplit([':', '.']).next().unwrap_or_default()),
            // Where the type is defined, so are its functions.
            Self::Function { path, .. } => add(path.split("::").next().unwrap_or_default()),
            Self::Of(_, list) => list.iter().for_each(|hint| hint.words(add)),
        }
    }
}

/// What is known where a body is read: the generics of its function, of which nothing is known.
#[derive(Default)]
pub(crate) struct Generics(Vec<String>);

impl Generics {
    pub(crate) fn of(generics: &syn::Generics) -> Self {
        let names = generics.params.iter().filter_map(|param| match param {
            GenericParam::Type(of) => Some(of.ident.to_string()),
            GenericParam::Const(of) => Some(of.ident.to_string()),
            GenericParam::Lifetime(_) => None,
        });
        Self(names.collect())
    }

    /// A type as text, if it is written out.
    pub(crate) fn text(&self, ty: &Type) -> Option<String> {
        self.written(name::type_text(ty))
    }

    /// The text of a type, unless it leaves something open.
    pub(crate) fn written(&self, text: String) -> Option<String> {
        let is_open = |word: &str| {
            matches!(word, "_" | "impl" | "dyn" | "Self") || self.0.iter().any(|name| name == word)
        };
        let mut words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
        (!words.any(is_open) && !text.contains('!')).then_some(text)
    }
}

/// Reads what a `let` says.
pub(super) struct Reader<'a> {
    pub(super) generics: &'a Generics,
    pub(super) bound: &'a [Bound],
}

impl Reader<'_> {
    /// The types of what a `let` binds, by name.
    pub(super) fn local(&self, local: &Local) -> HashMap<String, Hint> {
        let mut hints = HashMap::new();
        // Under a condition there may be another one.
        if local.attrs.iter().all(|attr| !attr.path().is_ident("cfg")) {
            let value = local.init.as_ref().map(|init| &*init.expr);
            self.pattern(&local.pat, None, value, &mut hints);
        }
        hints
    }

    fn pattern(
        &self,
        pat: &Pat,
        ty: Option<&Type>,
        value: Option<&Expr>,
        hints: &mut HashMap<String, Hint>,
    ) {
        match pat {
            Pat::Type(typed) => self.pattern(&typed.pat, Some(&typed.ty), value, hints),
            Pat::Paren(paren) => self.pattern(&paren.pat, ty, value, hints),
            Pat::Ident(named) if named.subpat.is_none() && named.by_ref.is_none() => {
                let written = ty.and_then(|ty| self.generics.text(ty)).map(Hint::Type);
                if let Some(ty) = written.or_else(|| self.value(value?)) {
                    hints.insert(named.ident.to_string(), ty);
                }
            }
            Pat::Tuple(tuple) if tuple.elems.iter().all(|pat| !matches!(pat, Pat::Rest(_))) => {
                for (at, pat) in tuple.elems.iter().enumerate() {
                    let ty = match ty {
                        Some(Type::Tuple(types)) => types.elems.get(at),
                        _ => None,
                    };
                    let value = match value.map(peel) {
                        Some(Expr::Tuple(values)) => values.elems.get(at),
                        _ => None,
                    };
                    self.pattern(pat, ty, value, hints);
                }
            }
            _ => {}
        }
    }

    fn value(&self, value: &Expr) -> Option<Hint> {
        match peel(value) {
            Expr::Lit(literal) => of_literal(&literal.lit),
            Expr::Unary(of) if !matches!(of.op, UnOp::Deref(_)) => self.value(&of.expr),
            Expr::Cast(of) => self.generics.text(&of.ty).map(Hint::Type),
            Expr::Tuple(of) => {
                let of: Option<Vec<_>> = of.elems.iter().map(|value| self.value(value)).collect();
                Some(Hint::Of("()", of?))
            }
            Expr::Struct(of) if of.qself.is_none() => Some(Hint::Made(words(&of.path))),
            Expr::Path(of) => self.path(of),
            Expr::Call(of) => self.call(of),
            Expr::MethodCall(of) => match (of.method.to_string().as_str(), of.args.len()) {
                ("to_string", 0) => Some(Hint::Type("String".to_owned())),
                ("to_owned", 0) if matches!(peel(&of.receiver), Expr::Lit(_)) => {
                    Some(Hint::Type("String".to_owned()))
                }
                ("clone" | "to_owned", 0) => match self.value(&of.receiver)? {
                    Hint::Type(text) => Some(Hint::Type(text.trim_start_matches('&').to_owned())),
                    hint => Some(hint),
                },
                _ => None,
            },
            Expr::Try(of) => match peel(&of.expr) {
                Expr::Await(of) if !matches!(peel(&of.base), Expr::Macro(_)) => {
                    name::called(&of.base).map(Hint::Call)
                }
                Expr::Call(of) => match self.call(of)? {
                    Hint::Function { path, .. } => Some(Hint::Function {
                        path,
                        is_tried: true,
                    }),
                    _ => None,
                },
                _ => None,
            },
            Expr::Macro(of) if of.mac.path.is_ident("format") => {
                Some(Hint::Type("String".to_owned()))
            }
            Expr::Macro(of) if of.mac.path.is_ident("vec") => {
                let tokens = of.mac.tokens.clone();
                let first = match syn::parse2::<syn::ExprRepeat>(quote::quote!([#tokens])) {
                    Ok(repeat) => *repeat.expr,
                    Err(_) => arguments(tokens).ok()?.into_iter().next()?,
                };
                Some(Hint::Of("Vec", vec![self.value(&first)?]))
            }
            _ => None,
        }
    }

    fn path(&self, of: &ExprPath) -> Option<Hint> {
        if of.qself.is_some() {
            return None;
        }
        if let Some(name) = of.path.get_ident() {
            let local = self.bound.iter().rev().find(|local| local.name == *name)?;
            return local.ty.clone();
        }
        let last = of.path.segments.last()?;
        if last.ident == "None" {
            return match &last.arguments {
                PathArguments::AngleBracketed(given) => {
                    let text = self
                        .generics
                        .written(format!("Option<{}>", name::type_text(&given.args)));
                    text.map(Hint::Type)
                }
                _ => None,
            };
        }
        let around = before(&of.path)?.ident.to_string();
        match last.ident.to_string().as_str() {
            "MAX" | "MIN" if is_number(&around) => Some(Hint::Type(around)),
            // A constant: its type is its own.
            name if !name.contains(char::is_lowercase) => None,
            _ => Some(Hint::Made(words(&of.path))),
        }
    }

    fn call(&self, of: &ExprCall) -> Option<Hint> {
        let Expr::Path(path) = peel(&of.func) else {
            return None;
        };
        if path.qself.is_some() {
            return None;
        }
        let path = &path.path;
        let last = path.segments.last()?.ident.to_string();
        let around = before(path);
        let around_name = around.map(|around| around.ident.to_string());
        match (around_name.as_deref(), last.as_str(), of.args.first()) {
            (None, "Some", Some(value)) => Some(Hint::Of("Option", vec![self.value(value)?])),
            (Some("Box" | "Arc" | "Rc"), "new", Some(value)) => self.value(value),
            (Some(ty), function, _) if gives_itself(ty, function) => {
                self.generics.written(spelled(around?)).map(Hint::Type)
            }
            (_, name, _) if name.starts_with(char::is_uppercase) => Some(Hint::Made(words(path))),
            (None, ..) => Some(Hint::Function {
                path: last,
                is_tried: false,
            }),
            (Some("Self"), ..) => None,
            (Some(ty), ..) => Some(Hint::Function {
                path: if ty.starts_with(char::is_uppercase) {
                    format!("{ty}::{last}")
                } else {
                    last
                },
                is_tried: false,
            }),
        }
    }
}

/// The types of a function's parameters.
pub(super) fn parameters(sig: &Signature) -> Vec<Bound> {
    let generics = Generics::of(&sig.generics);
    let named = sig.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(named) => Some(Bound {
                ty: generics.text(&typed.ty).map(Hint::Type),
                ..Bound::new(named.ident.clone())
            }),
            _ => None,
        },
        syn::FnArg::Receiver(_) => None,
    });
    named.collect()
}

fn of_literal(literal: &Lit) -> Option<Hint> {
    let text = match literal {
        Lit::Int(number) => number.suffix(),
        Lit::Float(number) => number.suffix(),
        Lit::Bool(_) => "bool",
        Lit::Char(_) => "char",
        Lit::Byte(_) => "u8",
        _ => "",
    };
    (!text.is_empty()).then(|| Hint::Type(text.to_owned()))
}

/// The segment before the last.
fn before(path: &Path) -> Option<&PathSegment> {
    path.segments.iter().rev().nth(1)
}

fn words(path: &Path) -> String {
    let words = path.segments.iter();
    let words: Vec<_> = words
        .map(|segment| name::plain(&segment.ident.to_string()))
        .collect();
    words.join("::")
}

/// A segment as it would stand in a type: `Vec<u32>`.
fn spelled(segment: &PathSegment) -> String {
    let ident = &segment.ident;
    match &segment.arguments {
        PathArguments::AngleBracketed(given) => {
            let args = &given.args;
            name::type_text(&quote::quote!(#ident<#args>))
        }
        _ => ident.to_string(),
    }
}

/// Whether a type is one of the primitive numbers.
pub(crate) fn is_number(ty: &str) -> bool {
    let (sign, bits) = ty.split_at_checked(1).unwrap_or_default();
    matches!(sign, "i" | "u") && matches!(bits, "8" | "16" | "32" | "64" | "128" | "size")
        || matches!(ty, "f32" | "f64")
}

/// Whether this function of this type gives the type itself: what the standard library promises.
fn gives_itself(ty: &str, function: &str) -> bool {
    let is_collection = matches!(
        ty,
        "String"
            | "Vec"
            | "VecDeque"
            | "BTreeMap"
            | "BTreeSet"
            | "HashMap"
            | "HashSet"
            | "BinaryHeap"
            | "LinkedList"
    );
    match function {
        // Of the traits `Default` and `From`.
        "default" | "from" => ty.starts_with(char::is_uppercase) && ty != "Self" || is_number(ty),
        "new" | "with_capacity" => is_collection,
        "from_secs" | "from_millis" | "from_micros" | "from_nanos" => ty == "Duration",
        _ => false,
    }
}
