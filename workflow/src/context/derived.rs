//! What is derived from the run's seed, and so needs no record: the same on every replay.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use super::Cx;
use crate::replay::{Location, Site};

/// The UUID of a site: a random one (version 4) of the run's seed, the site's location and the run's generation.
pub fn uuid(cx: &Cx, site: &'static Site) -> uuid::Uuid {
    let bits = derive(cx.identity(), &cx.origin_of(site), Purpose::Uuid);
    uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
}

/// The random value of a site, derived like [`uuid`].
pub fn random<T: Random>(cx: &Cx, site: &'static Site) -> T {
    let key = derive(cx.identity(), &cx.origin_of(site), Purpose::Random);
    T::random(&mut RandomBytes { key, counter: 0 })
}

/// The id of the message that a site sends.
pub(super) fn message_id(cx: &Cx, site: &'static Site) -> u128 {
    derive(cx.identity(), &cx.location_of(site), Purpose::Message)
}

/// A type that `random!` can give.
#[diagnostic::on_unimplemented(
    message = "`random!` cannot give a `{Self}`",
    note = "it gives integers, floats from 0 up to 1, `bool`, and arrays and tuples of them",
    note = "help: take one of those, and make the value of it; `let seed: [u8; 32] = random!(seed);` seeds any generator"
)]
pub trait Random: Sized {
    /// A value made of random bytes, uniformly where the type allows it.
    fn random(bytes: &mut RandomBytes) -> Self;
}

/// An endless source of bytes that look random: the same for one site of one run.
#[derive(Debug, Clone)]
pub struct RandomBytes {
    key: u128,
    counter: u64,
}

impl RandomBytes {
    /// The next 16 bytes.
    pub fn take(&mut self) -> [u8; 16] {
        let mut hasher = keyed(self.key);
        hasher.write_u64(self.counter);
        self.counter += 1;
        hasher.finish128().as_u128().to_le_bytes()
    }
}

macro_rules! random_integers {
    ($($ty:ty),*) => { $(
        impl Random for $ty {
            fn random(bytes: &mut RandomBytes) -> Self {
                let mut value = [0; size_of::<$ty>()];
                value.copy_from_slice(&bytes.take()[..size_of::<$ty>()]);
                Self::from_le_bytes(value)
            }
        }
    )* };
}
random_integers!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
);

impl Random for bool {
    fn random(bytes: &mut RandomBytes) -> Self {
        u8::random(bytes) & 1 == 1
    }
}

/// From 0 up to 1, without 1.
impl Random for f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    fn random(bytes: &mut RandomBytes) -> Self {
        (u64::random(bytes) >> 11) as Self / (1u64 << 53) as Self
    }
}

/// From 0 up to 1, without 1.
impl Random for f32 {
    #[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
    fn random(bytes: &mut RandomBytes) -> Self {
        (u32::random(bytes) >> 8) as Self / (1u32 << 24) as Self
    }
}

impl<T: Random, const N: usize> Random for [T; N] {
    fn random(bytes: &mut RandomBytes) -> Self {
        std::array::from_fn(|_| T::random(bytes))
    }
}

impl<A: Random, B: Random> Random for (A, B) {
    fn random(bytes: &mut RandomBytes) -> Self {
        (A::random(bytes), B::random(bytes))
    }
}

impl<A: Random, B: Random, C: Random> Random for (A, B, C) {
    fn random(bytes: &mut RandomBytes) -> Self {
        (A::random(bytes), B::random(bytes), C::random(bytes))
    }
}

/// What something is derived for: no two uses share their bits. The numbers never change, for runs outlive builds.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    IdempotencyKey = 1,
    Uuid = 2,
    Random = 3,
    Message = 4,
}

/// A keyed hash of where and what for: SipHash-2-4 with 128 bits, the run's seed its key.
pub(super) fn derive(
    (seed, generation): (u128, u32),
    location: &Location,
    purpose: Purpose,
) -> u128 {
    let mut hasher = keyed(seed);
    hasher.write(&[purpose as u8]);
    hasher.write(&generation.to_le_bytes());
    hasher.write(location.as_bytes());
    hasher.finish128().as_u128()
}

fn keyed(key: u128) -> SipHasher24 {
    SipHasher24::new_with_key(&key.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(key: u128) -> RandomBytes {
        RandomBytes { key, counter: 0 }
    }

    #[test]
    fn what_is_derived_differs_by_seed_generation_location_and_purpose_only() {
        let here = Location::root().site("id");
        let base = derive((7, 0), &here, Purpose::Uuid);
        assert_eq!(base, derive((7, 0), &here, Purpose::Uuid));
        let others = [
            derive((8, 0), &here, Purpose::Uuid),
            derive((7, 1), &here, Purpose::Uuid),
            derive((7, 0), &Location::root().site("di"), Purpose::Uuid),
            derive((7, 0), &here, Purpose::Random),
        ];
        assert!(others.iter().all(|other| *other != base));
    }

    #[test]
    fn floats_stay_below_one_and_spread() {
        let mut source = bytes(3);
        let values: Vec<f64> = (0..1000).map(|_| f64::random(&mut source)).collect();
        assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
        let mean = values.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }

    #[test]
    fn an_array_does_not_repeat_itself() {
        let value: [u64; 4] = Random::random(&mut bytes(5));
        assert!(value[0] != value[1] && value[1] != value[2] && value[2] != value[3]);
        assert_eq!(value, <[u64; 4]>::random(&mut bytes(5)));
    }
}
