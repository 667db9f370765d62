//! `workflow export` and `workflow import`: histories as files, for replay tests.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use workflow::History;
use workflow::testing;

use crate::arguments::{Export, Import};
use crate::backend::Backend;
use crate::fail::Fail;
use crate::out::Out;
use crate::text::{clean, count};

pub(crate) async fn export(asked: &Export, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let history = backend.export(&asked.run).await?;
    let json = history.to_json();
    let Some(path) = &asked.output else {
        return out.bytes(json.as_bytes());
    };
    write(path, &json, asked.force)?;
    tell("exported", &history, path, out)
}

pub(crate) fn import(asked: &Import, out: &mut Out) -> Result<(), Fail> {
    let history = if asked.history == Path::new("-") {
        let mut json = String::new();
        let read = std::io::stdin().read_to_string(&mut json);
        read.map_err(|error| Fail::Refused(format!("standard input: {error}")))?;
        History::from_json(&json)
            .map_err(|error| Fail::Refused(format!("standard input: {error}")))?
    } else {
        testing::read(&asked.history).map_err(Fail::refused)?
    };
    let shown = asked.into.display();
    fs::create_dir_all(&asked.into).map_err(|error| Fail::Refused(format!("{shown}: {error}")))?;
    let path = asked.into.join(file_name(history.id().as_str()));
    write(&path, &history.to_json(), asked.force)?;
    tell("imported", &history, &path, out)?;
    if !out.is_json() {
        out.note(&format!(
            "replay it in a test:\n    let history = workflow::testing::read({:?})?;\n    workflow::testing::replay({}, &history)?;",
            path.display().to_string(),
            history.workflow(),
        ));
    }
    Ok(())
}

fn tell(done: &str, history: &History, path: &Path, out: &mut Out) -> Result<(), Fail> {
    let (id, workflow) = (history.id().as_str(), history.workflow());
    let records = history.records().len() as u64;
    if out.is_json() {
        let file = path.display().to_string();
        return out.value(&serde_json::json!({
            "id": id, "workflow": workflow, "records": records, "file": file,
        }));
    }
    let line = format!(
        "{done} `{id}`, {} of `{workflow}`, into {}",
        count(records, "record"),
        path.display()
    );
    out.line(&clean(&line))
}

/// Writes a file that is not there yet, unless it is to be written over.
fn write(path: &Path, json: &str, force: bool) -> Result<(), Fail> {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    if force {
        options.truncate(true);
    } else {
        options.create_new(true);
    }
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(json.as_bytes()));
    written.map_err(|error| {
        let way_out = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "; --force writes over it",
            _ => "",
        };
        Fail::Refused(format!("{}: {error}{way_out}", path.display()))
    })
}

/// A file name for any id: what every file system takes, and no two ids the same.
fn file_name(id: &str) -> PathBuf {
    let mut name = String::with_capacity(id.len() + 5);
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            name.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    if name.starts_with('.') {
        name.replace_range(..1, "%2E");
    }
    // The longest name that file systems take is 255 bytes.
    if name.len() > 240 {
        name.truncate(200);
        let _ = write!(name, "-{:016x}", hash(id));
    }
    name.push_str(".json");
    name.into()
}

/// FNV-1a: the same on every machine and in every build.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_id_makes_a_file_name_of_its_own() {
        let name = |id: &str| file_name(id).display().to_string();
        assert_eq!(name("order-17"), "order-17.json");
        assert_eq!(name("a/b"), "a%2Fb.json");
        assert_eq!(name("a%2Fb"), "a%252Fb.json");
        assert_eq!(name(".."), "%2E..json");
        assert_eq!(name("ż 17"), "%C5%BC%2017.json");
        let (one, other) = (
            name(&"ż".repeat(256)),
            name(&format!("{}z", "ż".repeat(255))),
        );
        assert!(one.len() < 255 && one != other);
    }
}
