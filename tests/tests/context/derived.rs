//! What is derived from the run's seed.

use workflow::__private as p;
use workflow::{Failure, Uuid, random, uuid};

use crate::driver::{Sim, run, site, survives, value, workflow};

type Derived = (String, String, u64, [u8; 3], bool, String);

workflow!(deriving, Fallible, Result<Derived, Failure>, |cx, log| {
    let one: Uuid = uuid!(@site cx site!("one", Derived););
    let two: Uuid = uuid!(@site cx site!("two", Derived););
    let number: u64 = random!(@site cx site!("number", Derived););
    let (bytes, coin, unit): ([u8; 3], bool, f64) = random!(@site cx site!("tuple", Derived););
    assert!((0.0..1.0).contains(&unit));
    let inside = {
        let mut lap = p::enter_loop(cx, site!("laps", Loop)).await;
        let cx = &lap.iteration();
        uuid!(@site cx site!("one", Derived);)
    };
    run!(cx, "s", value(&log, "s", 0u32))?;
    Ok((one.to_string(), two.to_string(), number, bytes, coin, inside.to_string()))
});

#[test]
fn a_derived_value_is_the_same_on_every_replay_and_leaves_no_record() {
    let (whole, end) = survives::<deriving>(Sim::new);
    let (one, two, .., inside) = end.value::<Derived>();
    assert!(one != two && one != inside);
    assert_eq!(one.as_bytes()[14], b'4', "{one}");
    assert!(
        whole
            .history
            .iter()
            .all(|record| record.location.is_root() || record.location.to_string() == "s")
    );
}
