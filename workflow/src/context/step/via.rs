//! What can be done with a body's error beyond reading its message: found by method lookup, where the step is defined.
//!
//! `(&&&&&tag::<R>()).via()` tries, from the outermost reference in: a borrowed error ([`Borrowed`]: nothing, though
//! lookup would take it for serializable), a serializable one ([`Typed`]), one that shows another one inside ([`Viewed`],
//! as `anyhow::Error` does), and anything else ([`Untyped`]).

use std::any::type_name;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What can be done with the error that an `R` holds.
pub struct Via<R> {
    value: fn(&R) -> Option<Vec<u8>>,
    view: fn(&R) -> Option<&(dyn Error + 'static)>,
    error_name: fn() -> &'static str,
}

impl<R> Via<R> {
    fn nothing(error_name: fn() -> &'static str) -> Self {
        Self {
            value: |_| None,
            view: |_| None,
            error_name,
        }
    }

    /// The error's own value as JSON, where its type can be recorded.
    pub(in crate::context) fn value(&self, returned: &R) -> Option<Vec<u8>> {
        (self.value)(returned)
    }

    /// The error inside of the error, where its type shows it.
    pub(in crate::context) fn view<'r>(
        &self,
        returned: &'r R,
    ) -> Option<&'r (dyn Error + 'static)> {
        (self.view)(returned)
    }

    /// The name of the error's type.
    pub(in crate::context) fn error_name(&self) -> &'static str {
        (self.error_name)()
    }
}

impl<R> Clone for Via<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Via<R> {}

impl<R> fmt::Debug for Via<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Via").field(&self.error_name()).finish()
    }
}

/// A return type, for methods to be looked up on.
pub struct Tag<R>(PhantomData<fn() -> R>);

/// The tag of a return type.
pub const fn tag<R>() -> Tag<R> {
    Tag(PhantomData)
}

impl<R> fmt::Debug for Tag<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tag").field(&type_name::<R>()).finish()
    }
}

impl<T, E> Tag<Result<T, E>> {
    /// Refuses a `Result` whose type is not named like one.
    #[must_use]
    pub fn plain(self) -> Self
    where
        Self: NoResult,
    {
        self
    }
}

/// Not a `Result`.
#[diagnostic::on_unimplemented(
    message = "the return type is a `Result` behind an alias",
    label = "whether a step can fail is read off the name of its return type",
    note = "help: write the return type as `Result<..>`, give the alias a name that ends in `Result`, or write `#[step(infallible)]` to record the `Result` as a value"
)]
pub trait NoResult {}

/// Any other type is plain.
pub trait PlainTag: Sized {
    /// The same tag.
    #[must_use]
    fn plain(self) -> Self {
        self
    }
}

impl<R> PlainTag for Tag<R> {}

/// An error that borrows.
pub trait Borrowed<R> {
    /// What can be done with it.
    fn via(&self) -> Via<R>;
}

impl<T, U: ?Sized> Borrowed<Result<T, &'static U>> for &&&&Tag<Result<T, &'static U>> {
    fn via(&self) -> Via<Result<T, &'static U>> {
        Via::nothing(type_name::<&'static U>)
    }
}

/// An error that can be recorded itself.
pub trait Typed<R> {
    /// What can be done with it.
    fn via(&self) -> Via<R>;
}

impl<T, E: Serialize + DeserializeOwned> Typed<Result<T, E>> for &&&Tag<Result<T, E>> {
    fn via(&self) -> Via<Result<T, E>> {
        Via {
            value: |returned| serde_json::to_vec(returned.as_ref().err()?).ok(),
            ..Via::nothing(type_name::<E>)
        }
    }
}

/// An error that shows another one.
pub trait Viewed<R> {
    /// What can be done with it.
    fn via(&self) -> Via<R>;
}

impl<T, E: AsRef<dyn Error + Send + Sync>> Viewed<Result<T, E>> for &&Tag<Result<T, E>> {
    fn via(&self) -> Via<Result<T, E>> {
        Via {
            view: |returned| {
                let shown: &(dyn Error + Send + Sync) = returned.as_ref().err()?.as_ref();
                Some(shown)
            },
            ..Via::nothing(type_name::<E>)
        }
    }
}

/// Anything else.
pub trait Untyped<R> {
    /// What can be done with it.
    fn via(&self) -> Via<R>;
}

impl<R> Untyped<R> for &Tag<R> {
    fn via(&self) -> Via<R> {
        Via::nothing(error_name::<R>)
    }
}

/// The name of the error's type, read off that of the `Result`.
fn error_name<R>() -> &'static str {
    let name = type_name::<R>();
    let Some(inside) = name
        .strip_prefix("core::result::Result<")
        .and_then(|rest| rest.strip_suffix('>'))
    else {
        return "";
    };
    let mut depth = 0i32;
    for (at, char) in inside.char_indices() {
        match char {
            '<' | '(' | '[' => depth += 1,
            '>' if !inside[..at].ends_with('-') => depth -= 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => return inside[at + 1..].trim_start(),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    #[allow(unused_imports, reason = "which of them is used is what is tested")]
    use super::super::lookup::*;
    use super::*;

    #[derive(Serialize, serde::Deserialize)]
    struct Known(u8);

    #[derive(Debug, thiserror::Error)]
    #[error("shown")]
    struct Shown;

    struct Showing(Shown);
    impl AsRef<dyn Error + Send + Sync> for Showing {
        fn as_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
            &self.0
        }
    }

    #[test]
    fn an_error_is_as_able_as_its_type_allows() {
        let typed = (&&&&tag::<Result<(), Known>>()).via();
        assert_eq!(typed.value(&Err(Known(7))).as_deref(), Some(&b"7"[..]));
        assert_eq!(typed.value(&Ok(())), None);
        let viewed = (&&&tag::<Result<(), Showing>>()).via();
        assert!(viewed.view(&Err(Showing(Shown))).unwrap().is::<Shown>());
        let borrowed = (&&&&&tag::<Result<(), &'static str>>()).via();
        assert_eq!(borrowed.value(&Err("x")), None);
        let other = (&&tag::<Result<fn(u8, u8) -> (u8, u8), std::io::Error>>()).via();
        assert_eq!(other.error_name(), "std::io::error::Error");
        assert_eq!((&&tag::<u32>().plain()).via().error_name(), "");
    }
}
