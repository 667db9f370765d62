//! Errors of user code on their way to a [`Failure`].

use std::any::type_name;
use std::error::Error;

use serde::de::DeserializeOwned;

use crate::codec::BoxError;
use crate::replay::{Failure, FailureKind, Location, Payload};

/// Whatever a `?` in a branch threw.
///
/// One fixed type, and not itself an `Error`, so that every `?` works without annotations.
#[derive(Debug)]
pub struct Thrown(BoxError);

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> From<E> for Thrown {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// An error that a durable operation's code may give.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error that a step may give",
    label = "not `Into<Box<dyn Error + Send + Sync>>`",
    note = "help: implement `std::error::Error` for it (`thiserror` derives that), or return an error that does"
)]
pub trait StepError {
    /// Boxes it.
    fn boxed(self) -> BoxError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> StepError for E {
    fn boxed(self) -> BoxError {
        self.into()
    }
}

impl StepError for Thrown {
    fn boxed(self) -> BoxError {
        self.0
    }
}

impl Thrown {
    /// The failure of a branch: the one that was thrown, or one made of what was. It lies at the branch or under it, so that
    /// one can tell from it which branch failed.
    pub(super) fn into_failure(self, branch: &Location) -> Failure {
        let failure = match self.0.downcast::<Failure>() {
            Ok(failure) => *failure,
            Err(error) => returned(&*error, "", branch.clone(), None),
        };
        if failure.location().is_under(branch) {
            return failure;
        }
        failure.with_location(branch.clone())
    }
}

/// The failure that an error of the workflow's own code stands for. One that wraps a step's failure is still about that
/// step, in the error's own words.
pub(super) fn returned(
    error: &(dyn Error + 'static),
    type_name: &str,
    location: Location,
    value: Option<Payload>,
) -> Failure {
    let failure = Failure::from_error(FailureKind::Returned, location, type_name, error);
    let Some(inner) = find::<Failure>(error) else {
        return failure.with_value(value);
    };
    let failure = match (value, inner.value()) {
        (None, Some(inner_value)) => failure
            .with_type_name(inner.type_name())
            .with_value(Some(inner_value.clone())),
        (value, _) => failure.with_value(value),
    };
    failure
        .with_kind(inner.kind())
        .with_location(inner.location().clone())
        .with_attempts(inner.attempts())
        .with_branches(inner.branches().to_vec())
}

/// The first error of this type in the chain of sources, the error itself included.
pub(super) fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

impl Failure {
    /// The error's own value, where its type is `Serialize + DeserializeOwned`: the same on the first run and on every replay.
    ///
    /// Nothing when the failure is of another type, or has no value: the error's type is not serializable, or it was
    /// inside another one (an `anyhow::Error`, say). Types are told apart by the last part of their name, so that one
    /// that moved to another module is still found.
    pub fn downcast<E: DeserializeOwned>(&self) -> Option<E> {
        let value = self.value()?;
        if value.codec != 0 || last_segment(self.type_name()) != last_segment(type_name::<E>()) {
            return None;
        }
        serde_json::from_slice(&value.bytes).ok()
    }
}

/// The name of a type without its path and its arguments.
fn last_segment(name: &str) -> &str {
    let name = name.split_once('<').map_or(name, |(name, _)| name);
    name.rsplit_once("::").map_or(name, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_known_by_its_last_name() {
        assert_eq!(last_segment("shop::stock::StockError"), "StockError");
        assert_eq!(last_segment("alloc::vec::Vec<shop::E>"), "Vec");
        assert_eq!(last_segment("u32"), "u32");
    }

    #[test]
    fn a_typed_value_comes_back_only_as_its_own_type() {
        let failure = Failure::new(FailureKind::Exhausted, Location::root(), "m")
            .with_type_name("alloc::string::String")
            .with_value(Some(Payload::json("\"sold out\"")));
        assert_eq!(failure.downcast::<String>().as_deref(), Some("sold out"));
        assert_eq!(failure.downcast::<u32>(), None);
        assert_eq!(failure.with_value(None).downcast::<String>(), None);
    }

    #[test]
    fn an_error_that_wraps_a_failure_is_about_the_same_step() {
        #[derive(Debug, thiserror::Error)]
        #[error("the order was not shipped")]
        struct NotShipped(#[source] Failure);

        let location = Location::root().site("ship");
        let inner =
            Failure::new(FailureKind::Exhausted, location.clone(), "no van").with_attempts(4);
        let failure = returned(&NotShipped(inner), "NotShipped", Location::root(), None);
        assert_eq!(
            (failure.kind(), failure.attempts()),
            (FailureKind::Exhausted, 4)
        );
        assert_eq!(failure.location(), &location);
        assert_eq!(failure.message(), "the order was not shipped");
        assert_eq!(failure.type_name(), "NotShipped");
    }

    #[test]
    fn what_a_branch_throws_lies_at_the_branch_or_under_it() {
        let branch = Location::root().site("j").branch("a");
        let under = Failure::new(FailureKind::TimedOut, branch.site("s"), "late");
        assert_eq!(Thrown::from(under.clone()).into_failure(&branch), under);
        let outside = Failure::new(FailureKind::TimedOut, Location::root().site("s"), "late");
        assert_eq!(
            Thrown::from(outside).into_failure(&branch).location(),
            &branch
        );
        let own = Thrown::from("no luck").into_failure(&branch);
        assert_eq!(
            (own.kind(), own.location()),
            (FailureKind::Returned, &branch)
        );
        assert_eq!(own.message(), "no luck");
    }
}
