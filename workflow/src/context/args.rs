//! What a workflow is called with: its input, which is recorded, and its states, which the engine holds.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};

use super::{Park, Recorded, Run, opaque_debug};
use crate::codec::{self, BoxError};
use crate::replay::{ParkReason, Payload};

// ----- on the way in -----

/// The input of a call under construction: a JSON object with a field per parameter.
#[derive(Debug)]
pub struct Input {
    json: Vec<u8>,
    error: Option<InputError>,
}

impl Default for Input {
    fn default() -> Self {
        Self::new()
    }
}

impl Input {
    /// The input of a workflow without parameters.
    pub fn new() -> Self {
        Self {
            json: b"{".to_vec(),
            error: None,
        }
    }

    /// Adds the argument of a parameter. What cannot be encoded, or does not read back, is told by
    /// [`into_json`](Self::into_json).
    #[must_use]
    pub fn field<T: Recorded>(mut self, name: &'static str, value: &T) -> Self {
        if self.error.is_some() {
            return self;
        }
        match codec::encode(value) {
            Ok(codec::Encoded { json, .. }) => {
                if self.json.len() > 1 {
                    self.json.push(b',');
                }
                // The name of a Rust parameter needs no escaping.
                self.json.push(b'"');
                self.json.extend_from_slice(name.as_bytes());
                self.json.extend_from_slice(b"\":");
                self.json.extend_from_slice(&json);
            }
            Err(error) => {
                let type_name = type_name::<T>();
                self.error = Some(InputError {
                    name,
                    type_name,
                    error,
                });
            }
        }
        self
    }

    /// Adds the argument of a described parameter.
    #[must_use]
    pub fn with<T>(self, parameter: &Parameter<T>, value: &T) -> Self {
        (parameter.write)(self, parameter.name, value)
    }

    /// The JSON object.
    ///
    /// # Errors
    /// When an argument does not survive JSON.
    pub fn into_json(self) -> Result<Vec<u8>, InputError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut json = self.json;
        json.push(b'}');
        Ok(json)
    }
}

/// An argument that does not survive JSON: a NaN, say, or a map whose keys are no text.
#[derive(Debug, thiserror::Error)]
#[error("the argument `{name}` (a `{type_name}`) does not survive JSON")]
pub struct InputError {
    name: &'static str,
    type_name: &'static str,
    #[source]
    error: serde_json::Error,
}

impl InputError {
    /// The parameter's name.
    pub fn parameter(&self) -> &'static str {
        self.name
    }
}

/// A parameter of a workflow: its name, and how its argument is written and read. Only who makes one has to prove that
/// its type can be recorded.
pub struct Parameter<T> {
    name: &'static str,
    write: fn(Input, &'static str, &T) -> Input,
    read: fn(&Args, &'static str) -> Result<T, ArgError>,
}

opaque_debug!(<T> Parameter<T>);

impl<T> Parameter<T> {
    /// A parameter of this name.
    pub const fn new(name: &'static str) -> Self
    where
        T: Recorded,
    {
        Self {
            name,
            write: Input::field::<T>,
            read: read_argument::<T>,
        }
    }

    /// Its argument, as recorded.
    ///
    /// # Errors
    /// When what was recorded does not decode.
    pub fn read(&self, args: &Args) -> Result<T, ArgError> {
        (self.read)(args, self.name)
    }
}

// ----- on the way out -----

/// What a workflow is called with.
pub struct Args {
    run: Arc<Run>,
    input: Bytes,
    states: Arc<States>,
    /// Where it is noted what was read, if anybody asks.
    noted: Option<Arc<Noted>>,
}

opaque_debug!(Args);

impl Args {
    pub(super) fn states(&self) -> Arc<States> {
        Arc::clone(&self.states)
    }

    /// Opens a run's recorded input.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn new(run: Arc<Run>, input: &Payload, states: Arc<States>) -> Result<Self, ArgError> {
        let input = codec::open(run.codec(), input).map_err(|source| {
            ArgError::new(
                Missing::Input,
                "the whole input",
                "a sealed JSON object",
                source,
            )
        })?;
        Ok(Self {
            run,
            input,
            states,
            noted: None,
        })
    }

    /// The same, noting in `noted` what is read.
    #[cfg(feature = "engine")]
    pub(crate) fn noting(mut self, noted: Arc<Noted>) -> Self {
        self.noted = Some(noted);
        self
    }

    /// The argument of a parameter. One that is not in the input decodes as `null` does, so that an `Option` may be
    /// added to a workflow while runs are under way.
    ///
    /// # Errors
    /// When what was recorded does not decode into `T`.
    pub fn input<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, ArgError> {
        let refused =
            |source: BoxError| ArgError::new(Missing::Input, name, type_name::<T>(), source);
        let mut json = serde_json::Deserializer::from_slice(&self.input);
        let found = Field {
            name,
            value: PhantomData,
        }
        .deserialize(&mut json)
        .map_err(|error| refused(error.into()))?;
        match found {
            Some(value) => Ok(value),
            None => serde_json::from_slice(b"null")
                .map_err(|_| refused("it is not in the recorded input".into())),
        }
    }

    /// The engine's state of this type.
    ///
    /// # Errors
    /// When the engine has none.
    pub fn state<T: Clone + Send + Sync + 'static>(
        &self,
        name: &'static str,
    ) -> Result<T, ArgError> {
        self.states.get::<T>().cloned().ok_or_else(|| {
            let hint = "give it to the engine's builder: `.state(..)`".into();
            ArgError::new(Missing::State, name, type_name::<T>(), hint)
        })
    }

    pub(super) fn run(&self) -> Arc<Run> {
        Arc::clone(&self.run)
    }

    pub(super) fn into_run(self) -> Arc<Run> {
        self.run
    }
}

/// A workflow cannot be called: an argument does not decode, or a state is missing.
#[derive(Debug)]
pub struct ArgError {
    missing: Missing,
    name: &'static str,
    type_name: &'static str,
    source: BoxError,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Input,
    State,
}

impl ArgError {
    fn new(
        missing: Missing,
        name: &'static str,
        type_name: &'static str,
        source: BoxError,
    ) -> Self {
        Self {
            missing,
            name,
            type_name,
            source,
        }
    }

    /// What is said to whoever gave the input.
    #[cfg(feature = "engine")]
    pub(crate) fn refusal(&self) -> String {
        let Self {
            name,
            type_name,
            source,
            ..
        } = self;
        match self.missing {
            Missing::Input => {
                format!("the argument `{name}` is not a `{type_name}`: {source}")
            }
            Missing::State => format!("{self}: {source}"),
        }
    }

    /// How the run is parked because of it.
    pub fn park(&self) -> Park {
        let reason = match self.missing {
            Missing::Input => ParkReason::Decode,
            Missing::State => ParkReason::Unregistered,
        };
        Park {
            reason,
            detail: format!("{self}: {}", self.source),
            location: None,
        }
    }
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name, type_name, ..
        } = self;
        match self.missing {
            Missing::Input => write!(
                f,
                "the recorded argument `{name}` does not decode into `{type_name}`"
            ),
            Missing::State => write!(
                f,
                "the engine has no state of the type `{type_name}` for the parameter `{name}`"
            ),
        }
    }
}

impl std::error::Error for ArgError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

/// Picks one field out of a JSON object, straight into its type.
struct Field<T> {
    name: &'static str,
    value: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Field<T> {
    type Value = Option<T>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Field<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a field per parameter")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == self.name {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Reads the argument of a parameter, and notes it where that is asked for.
fn read_argument<T: Recorded>(args: &Args, name: &'static str) -> Result<T, ArgError> {
    let value = args.input::<T>(name)?;
    if let Some(noted) = &args.noted {
        noted.note(name, |input| input.field(name, &value));
    }
    Ok(value)
}

/// What a workflow read of an input that came from outside, as its own types write it: the same input, whoever gave it, is
/// the same JSON.
#[derive(Debug, Default)]
pub struct Noted(Mutex<(Vec<&'static str>, Option<Input>)>);

impl Noted {
    fn note(&self, name: &'static str, add: impl FnOnce(Input) -> Input) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (names, input) = &mut *noted;
        names.push(name);
        *input = Some(add(input.take().unwrap_or_default()));
    }

    /// The parameters that were read, and the input that they make.
    #[cfg(feature = "engine")]
    pub(crate) fn take(&self) -> (Vec<&'static str>, Input) {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        (noted.0, noted.1.unwrap_or_default())
    }
}

// ----- states -----

/// What the engine holds for workflows, one value per type.
#[derive(Default)]
pub struct States(BTreeMap<TypeId, Box<dyn Any + Send + Sync>>);

opaque_debug!(States);

impl States {
    /// Adds a state. False when there was one of this type: the new one replaces it.
    pub fn insert<T: Clone + Send + Sync + 'static>(&mut self, state: T) -> bool {
        self.0.insert(TypeId::of::<T>(), Box::new(state)).is_none()
    }

    /// The state of this type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Whether there is a state of that type.
    pub fn has(&self, state: &StateType) -> bool {
        self.0.contains_key(&state.id)
    }
}

/// A state that a workflow asks for: checked when the engine starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateType {
    /// The parameter's name.
    pub parameter: &'static str,
    /// The type's name, as the compiler spells it.
    pub type_name: &'static str,
    id: TypeId,
}

/// The state that a workflow asks for by a parameter.
pub fn state_type<T: Clone + Send + Sync + 'static>(parameter: &'static str) -> StateType {
    StateType {
        parameter,
        type_name: type_name::<T>(),
        id: TypeId::of::<T>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_an_object_with_a_field_per_parameter() {
        let input = Input::new()
            .field("order", &"o1".to_owned())
            .field("n", &3u32);
        assert_eq!(input.into_json().unwrap(), br#"{"order":"o1","n":3}"#);
        assert_eq!(Input::new().into_json().unwrap(), b"{}");
    }

    // U22
    #[test]
    fn an_argument_that_does_not_read_back_is_refused_by_name() {
        let error = Input::new()
            .field("n", &1u8)
            .field("rate", &f64::NAN)
            .into_json()
            .unwrap_err();
        assert_eq!(error.parameter(), "rate");
        assert!(error.to_string().contains("f64"), "{error}");
    }

    #[test]
    fn a_state_is_found_by_its_type_alone() {
        let mut states = States::default();
        assert!(states.insert(7u32));
        assert!(!states.insert(8u32));
        assert_eq!(states.get::<u32>(), Some(&8));
        assert!(states.has(&state_type::<u32>("n")));
        assert!(!states.has(&state_type::<String>("s")));
    }
}
