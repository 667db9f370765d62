//! The text of the pictures, as committed beside this. `UPDATE=1 cargo test` writes it anew.

use std::path::Path;
use std::{env, fs};

use workflow::graph::Part;
use workflow::{
    Channel, Failure, Graph, attempt, checkpoint, join, recv, rollback, step, workflow,
};

use super::order::order;
use super::runs::without_lines;

pub(crate) fn assert_is(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/graph/expected")
        .join(name);
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found,
        expected.replace("\r\n", "\n"),
        "{name} is not as it was"
    );
}

#[test]
fn a_workflow_is_drawn_for_mermaid() {
    assert_is("order.mmd", &order::GRAPH.mermaid());
}

#[test]
fn a_workflow_is_drawn_for_graphviz() {
    assert_is("order.dot", &order::GRAPH.dot());
}

/// But for the lines of the sites, which change with every edit.
#[test]
fn a_workflow_is_drawn_as_data() {
    let json = order::GRAPH.json();
    assert_is("order.json", &format!("{:#}\n", without_lines(&json)));
    let data: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (site, told) in order::SITES.iter().zip(data["sites"].as_array().unwrap()) {
        assert_eq!(told["line"], site.line, "{site}");
        assert!(
            told["file"].as_str().unwrap().ends_with("order.rs"),
            "{site}"
        );
    }
}

static CLASS: Channel<u32> = Channel::new("class");

#[step]
async fn end() -> u32 {
    1
}

/// Its names are words of the languages it is printed in.
#[workflow(name = "subgraph")]
async fn words(times: u32) -> Result<u32, Failure> {
    let graph = join!(graph, end = end().await?, node = end().await?, style = 1).await?;
    'subgraph: for _ in 0..times {
        #[step(name = "_click_")]
        end().await?;
        #[step(name = "default")]
        end().await?;
    }
    attempt!(strict, {
        recv!(digraph, CLASS).await?;
        #[step(name = "x--o")]
        end().await?
    })
    .await?;
    #[step(name = "end")]
    end().await?;
    Ok(graph.0)
}

#[test]
fn names_that_are_words_of_a_language_are_only_texts_in_it() {
    assert_is("words.mmd", &words::GRAPH.mermaid());
    assert_is("words.dot", &words::GRAPH.dot());
}

/// The lines that lead from one node to another, by the names in them.
fn ways(graph: &Graph) -> Vec<String> {
    let data: serde_json::Value = serde_json::from_str(&graph.json()).unwrap();
    let name = |id: &serde_json::Value| {
        let nodes = data["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["id"] == *id).unwrap();
        let text = node["site"].as_str().or(node["kind"].as_str());
        text.unwrap().to_owned()
    };
    let edges = data["edges"].as_array().unwrap().iter();
    edges
        .map(|edge| {
            let kind = edge["kind"].as_str().unwrap();
            format!("{} {kind} {}", name(&edge["from"]), name(&edge["to"]))
        })
        .collect()
}

#[workflow]
async fn nested(times: u32) -> Result<(), Failure> {
    checkpoint!(begun);
    'outer: for number in 0..times {
        'inner: for other in 0..times {
            end().await?;
            match other {
                0 => continue,
                1 => continue 'inner,
                2 => continue,
                3 => continue 'outer,
                4 => break 'outer,
                5 => break,
                6 => return Ok(()),
                _ => {}
            }
        }
        checkpoint!(begun);
        if number > 1 {
            rollback!(back, to = begun).await;
        }
    }
    Ok(())
}

#[test]
fn a_jump_leads_to_the_loop_that_it_means_and_a_rollback_to_the_nearest_checkpoint() {
    assert_eq!(
        ways(&nested::GRAPH),
        [
            "start on begun",
            "begun on outer",
            "outer on outer[]/inner",
            "outer[]/inner on outer[]/inner[]/end",
            "outer[]/inner[]/end on choice",
            "choice leaves outer[]/inner",
            "choice leaves outer",
            "choice leaves end",
            "choice back outer[]/inner",
            "outer[]/inner on outer[]/begun",
            "choice leaves outer[]/begun",
            "outer[]/begun on choice",
            "choice on outer[]/back",
            "outer[]/back back outer",
            "choice back outer",
            "outer on end",
            "outer[]/back undoes outer[]/begun",
        ]
    );
}

#[workflow]
async fn nothing() -> Result<(), Failure> {
    Ok(())
}

#[test]
fn a_workflow_that_does_nothing_durable_is_drawn_too() {
    let text = nothing::GRAPH.mermaid();
    assert!(text.contains("n0 --> n1"), "{text}");
    assert_eq!(nothing::GRAPH.of_run(&[]).sites(), []);
}

#[test]
fn every_site_is_drawn_once_and_every_edge_has_its_ends() {
    let data: serde_json::Value = serde_json::from_str(&order::GRAPH.json()).unwrap();
    let nodes = data["nodes"].as_array().unwrap();
    for site in order::SITES {
        let of_it = nodes.iter().filter(|node| node["site"] == site.path);
        assert_eq!(of_it.count(), 1, "{site}");
    }
    for edge in data["edges"].as_array().unwrap() {
        for end in ["from", "to"] {
            assert!(nodes.iter().any(|node| node["id"] == edge[end]), "{edge}");
        }
    }
    // Nothing hangs in the air: but for the start and the channels, all that is drawn is come to.
    for node in nodes {
        let is_come_to = data["edges"]
            .as_array()
            .unwrap()
            .iter()
            .any(|edge| edge["to"] == node["id"]);
        assert!(
            is_come_to || node["kind"] == "start" || node["kind"] == "channel",
            "{node}"
        );
    }
}

#[test]
fn the_version_of_new_runs_is_known() {
    let parts = order::GRAPH.parts();
    let latest = parts.iter().find_map(|part| match part {
        Part::Site(node) if node.site.name == "thanks" => node.latest,
        _ => None,
    });
    assert_eq!(latest, Some(2));
}
