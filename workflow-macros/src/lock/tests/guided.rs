//! Flows that a person is led through.

use super::{Edits, lock_of, told};

const FLOW: &str = r#"
#[derive(Serialize, Deserialize)]
struct Project { name: String, made: Option<u32> }
#[guided(id = "project", version = 2)]
impl Project {
    #[stage(start, to = [make if Self::is_named, done])]
    fn details() {}
    #[stage(name = "create", to = [done])]
    async fn make(stage: Stage<Self>) -> Result<(), Failure> {
        reserve(stage.state()).await?;
        publish(stage.state()).await
    }
    #[stage(terminal)]
    fn done() {}
    fn is_named(&self) -> bool { true }
}
"#;

/// What is told of the flow after an edit.
fn flow_told(edits: Edits<'_>) -> Vec<String> {
    let edited = edits.iter().fold(FLOW.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    told(FLOW, &edited)
}

#[test]
fn a_flow_is_locked_by_its_stages_its_data_and_the_code_of_its_stages() {
    let printed = lock_of(FLOW).print();
    let expected = "fragment project/make\n  call reserve\n  call publish\n\n\
                    guided project\n  input data: Project\n  version data latest 2\n  stage details\n  stage create\n  stage done\n\n\
                    type Project\n  name: String\n  made?: Option<u32>\n";
    assert!(printed.ends_with(expected), "{printed}");
}

#[test]
fn guides_survive_what_is_not_in_their_positions() {
    let none: [&str; 0] = [];
    for edits in [
        &[("[make if Self::is_named, done]", "[make]")][..],
        &[("made: Option<u32>", "made: Option<u32>, more: Option<u32>")],
        &[("version = 2", "version = 3"), ("\"create\"", "\"other\"")],
        &[
            ("version = 2", "version = 3"),
            ("name: String", "name: u32"),
        ],
    ] {
        assert_eq!(flow_told(edits), none, "{edits:?}");
    }
}

#[test]
fn guides_do_not_survive_a_stage_that_is_gone_or_data_of_another_type() {
    let first = |edits| flow_told(edits).join("\n");
    let gone = first(&[("\"create\"", "\"other\"")]);
    assert!(
        gone.starts_with("create: stage `other` stands where `create` was locked"),
        "{gone}"
    );
    let gone = first(&[
        ("#[stage(name = \"create\", to = [done])]", "#[fragment]"),
        ("[make if Self::is_named, done]", "[done]"),
    ]);
    assert!(
        gone.contains("create: stage `create` is locked and gone"),
        "{gone}"
    );
    let retyped = first(&[("name: String", "name: u32")]);
    assert!(
        retyped.starts_with("data: the data of guides under way"),
        "{retyped}"
    );
    let back = first(&[("version = 2", "version = 1")]);
    assert!(
        back.starts_with("data: the flow went back to version 1"),
        "{back}"
    );
    let body = first(&[("reserve(stage.state()).await?;", "")]);
    assert!(body.starts_with("reserve: "), "{body}");
}
