//! What a workflow is called with.

use workflow::__private as p;
use workflow::ParkReason;

use crate::driver::{End, Sim, workflow};

workflow!(
    greeting,
    Infallible,
    String,
    |cx, log, name: String, times: Option<u32>| {
        format!(
            "{name} {}",
            times.map_or_else(|| "?".to_owned(), |times| times.to_string())
        )
    }
);

#[test]
fn an_input_that_lacks_a_new_optional_parameter_still_decodes() {
    assert_eq!(
        Sim::with_input(r#"{"name":"bob"}"#)
            .drive::<greeting>()
            .value::<String>(),
        "bob ?"
    );
    assert_eq!(
        Sim::with_input(r#"{"gone":[1,{}],"times":2,"name":"bob"}"#)
            .drive::<greeting>()
            .value::<String>(),
        "bob 2"
    );
}

#[test]
fn an_input_that_does_not_decode_parks_the_run_by_the_parameters_name() {
    for input in [r#"{"times":2}"#, r#"{"name":5}"#, "[]"] {
        let End::Parked(park) = Sim::with_input(input).drive::<greeting>() else {
            panic!("{input}")
        };
        assert_eq!(park.reason, ParkReason::Decode);
        assert!(park.detail.contains("`name`"), "{}", park.detail);
    }
}

#[test]
fn a_call_holds_its_arguments_as_one_object() {
    let call: workflow::Call<greeting> = p::call(p::Input::new().field("name", &"bob".to_owned()));
    assert_eq!(call.into_json().unwrap(), br#"{"name":"bob"}"#);
}
