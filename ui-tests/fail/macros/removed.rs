//! What is removed has a name and a kind.

use workflow::{removed, workflow};

#[workflow]
async fn checkout(amount: u32) {
    removed!(bare);
    removed!(odd, kind = "activity");
    removed!(word, kind = step);
    removed!(number, kind = 1);
    removed!(other, was = "step");
    removed!(more, kind = "step", undo = "x");
    removed!(captured, kind = "step", undo = |_: u32| async { drop(amount) });
    removed!(kind = "step");
    removed!("no name", kind = "step");
}

fn main() {}
