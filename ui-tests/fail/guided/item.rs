//! `#[guided]` on what is no `impl` of one type.

use workflow::guided;

#[guided(id = "project")]
struct Project {}

struct Form<T>(T);

#[guided(id = "form")]
impl<T> Form<T> {
    #[stage(start, terminal)]
    fn done() {}
}

#[guided(id = "drop")]
impl Drop for Project {
    fn drop(&mut self) {}
}

#[guided(id = "pair")]
impl (u32, u32) {
    #[stage(start, terminal)]
    fn done() {}
}

#[guided(id = "unread")]
impl Project {
    #[stage(start, terminal)]
    fn done() -> {}
}

fn main() {}
