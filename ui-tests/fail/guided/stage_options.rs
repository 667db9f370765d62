//! Options that a stage does not have, or has otherwise.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, strat, title, to = [region], to = [done])]
    fn details() {}

    #[stage(revisit = never, on_interrupt(ask), timeout = "soon", when, otherwise = go, colour = "red", to = [done])]
    fn region() {}

    #[stage(to(done))]
    fn create() {}

    #[stage(terminal, title = "The end", title = "Done")]
    fn done() {}

    #[stage(to = [1])]
    fn numbered() {}
}

fn main() {}
