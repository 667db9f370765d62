//! What all of a run's futures share.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::de::DeserializeOwned;

use super::current::Put;
use super::{Host, States, Undo, Watching};
use crate::codec::{self, BoxError, Codec};
use crate::replay::{Location, ParkReason, Payload, Replay, RunId, Scope, Site};

/// A run that is being driven: its machine, and what its futures ask of the world.
pub struct Run {
    id: RunId,
    replay: Mutex<Replay>,
    host: Arc<dyn Host>,
    codec: Arc<dyn Codec>,
    payload_limit: usize,
    parked: OnceLock<Park>,
    undos: OnceLock<(&'static [Undo], Arc<States>)>,
    watch: OnceLock<Arc<dyn Watching>>,
}

impl Run {
    /// A run that is about to be driven. No value over `payload_limit` bytes is recorded.
    pub fn new(
        id: RunId,
        replay: Replay,
        host: Arc<dyn Host>,
        codec: Arc<dyn Codec>,
        payload_limit: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            replay: Mutex::new(replay),
            host,
            codec,
            payload_limit,
            parked: OnceLock::new(),
            undos: OnceLock::new(),
            watch: OnceLock::new(),
        })
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The run's machine. Never held while user code runs.
    pub fn replay(&self) -> MutexGuard<'_, Replay> {
        // No user code runs under the lock, so a panic under it is one of the machine's own assertions.
        self.replay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the drive: the run cannot go on as things are. The first reason stays.
    pub(super) fn park(&self, park: Park) {
        let _ = self.parked.set(park);
    }

    /// What its effects are undone by.
    pub(super) fn undone_by(&self, undos: &'static [Undo], states: Arc<States>) {
        let _ = self.undos.set((undos, states));
    }

    /// The undo of this path, and the states that it may ask for.
    pub(super) fn undo(&self, path: &str) -> Option<(&'static Undo, Arc<States>)> {
        let (undos, states) = self.undos.get()?;
        let undo = undos.iter().find(|undo| undo.path == path)?;
        Some((undo, Arc::clone(states)))
    }

    /// Whether this code has the undo of this path.
    #[cfg(feature = "engine")]
    pub(crate) fn has_undo(&self, path: &str) -> bool {
        self.undo(path).is_some()
    }

    /// Its steps are watched from now on.
    pub(super) fn watched_by(&self, watch: Arc<dyn Watching>) {
        let _ = self.watch.set(watch);
    }

    /// Who watches its steps.
    pub(super) fn watch(&self) -> Option<&Arc<dyn Watching>> {
        self.watch.get()
    }

    pub(super) fn parked(&self) -> Option<&Park> {
        self.parked.get()
    }

    pub(super) fn host(&self) -> &dyn Host {
        &*self.host
    }

    pub(super) fn codec(&self) -> &dyn Codec {
        &*self.codec
    }

    pub(super) fn payload_limit(&self) -> usize {
        self.payload_limit
    }

    /// Seals a value's JSON, unless it is too large.
    pub(super) fn seal(&self, json: Vec<u8>) -> Result<Payload, BoxError> {
        seal(self.codec(), self.payload_limit, json)
    }

    /// Seals what a step put.
    pub(super) fn seal_values(&self, values: Vec<Put>) -> Result<Values, BoxError> {
        seal_values(self.codec(), self.payload_limit, values)
    }

    /// What was recorded, as the type that the code has now.
    pub(super) fn decode<T: DeserializeOwned>(&self, payload: &Payload) -> Result<T, BoxError> {
        self.decode_by(payload, |json| serde_json::from_slice(json))
    }

    pub(super) fn decode_by<T>(
        &self,
        payload: &Payload,
        decode: fn(&[u8]) -> serde_json::Result<T>,
    ) -> Result<T, BoxError> {
        if payload.codec == 0 {
            return Ok(decode(&payload.bytes)?);
        }
        Ok(decode(&codec::open(self.codec(), payload)?)?)
    }

    /// Parks the run because of a recorded value that no longer decodes.
    pub(super) fn park_at_decode<T>(&self, location: &Location, error: &BoxError) {
        let wanted = std::any::type_name::<T>();
        self.park(Park {
            reason: ParkReason::Decode,
            detail: format!(
                "the value recorded at `{location}` does not decode into `{wanted}`: {error}\n  \
                 ways out: make the type accept what was recorded (`#[serde(default)]`, `#[serde(alias = \"..\")]`),\n            \
                 or give the site a new name behind a `version!`"
            ),
            location: Some(location.clone()),
        });
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Why a run cannot go on as things are. Nothing of its history is touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park {
    /// Why, and so what wakes it.
    pub reason: ParkReason,
    /// The whole report, for people.
    pub detail: String,
    /// Where in the run, if it is one place.
    pub location: Option<Location>,
}

/// Where in a run the code is: what the expansions pass around. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cx {
    run: Arc<Run>,
    scope: Scope,
}

impl Cx {
    pub(super) fn root(run: Arc<Run>) -> Self {
        Self {
            run,
            scope: Scope::ROOT,
        }
    }

    pub(super) fn at(&self, scope: Scope) -> Self {
        Self {
            run: Arc::clone(&self.run),
            scope,
        }
    }

    pub(super) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    /// What a site here derives its values from.
    pub(super) fn identity(&self) -> (u128, u32) {
        self.run.replay().identity(self.scope)
    }

    pub(super) fn location_of(&self, site: &Site) -> Location {
        self.run.replay().site_location(self.scope, site)
    }

    /// Where what a site derives is derived from: the site's location, but in a visit that goes on from an earlier one.
    pub(super) fn origin_of(&self, site: &Site) -> Location {
        let replay = self.run.replay();
        replay.origin(&replay.site_location(self.scope, site))
    }
}

/// Seals a value's JSON, unless it is too large.
pub(super) fn seal(codec: &dyn Codec, limit: usize, json: Vec<u8>) -> Result<Payload, BoxError> {
    let payload = codec::seal(codec, json)?;
    let size = payload.bytes.len();
    if size > limit {
        return Err(format!("it is {size} bytes, over the payload limit of {limit}").into());
    }
    Ok(payload)
}

/// What a step put, sealed; without a value the key is removed.
pub(crate) type Values = Vec<(String, Option<Payload>)>;

/// Seals what a step put, unless something of it is too large.
pub(crate) fn seal_values(
    codec: &dyn Codec,
    limit: usize,
    values: Vec<Put>,
) -> Result<Values, BoxError> {
    let values = values.into_iter().map(|(key, json)| {
        let sealed = json.map(|json| seal(codec, limit, json)).transpose();
        let sealed = sealed.map_err(|error| format!("the value for `{key}`: {error}"))?;
        Ok((key, sealed))
    });
    values.collect()
}
