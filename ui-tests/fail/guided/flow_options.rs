//! Options that a flow does not have, or has otherwise.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {}

#[guided(version = 0, history = "long", colour = "red")]
impl Project {
    #[stage(start, to = [done])]
    fn details() {}

    #[stage(terminal)]
    fn done() {}
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Order {}

#[guided(id = "the order", version = 4, migrate(1 => Self::from_v1, 3 => Self::from_v3))]
impl Order {
    #[stage(start, to = [done])]
    fn details() {}

    #[stage(terminal)]
    fn done() {}
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Visit {}

#[guided(id = "visit", migrate(first))]
impl Visit {
    #[stage(start, to = [done])]
    fn details() {}

    #[stage(terminal)]
    fn done() {}
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Parcel {}

#[guided("parcel")]
impl Parcel {
    #[stage(start, to = [done])]
    fn details() {}

    #[stage(terminal)]
    fn done() {}
}

fn main() {}
