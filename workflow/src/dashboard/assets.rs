//! What the page is made of, as it is in the program.

use std::hash::Hasher;
use std::sync::LazyLock;

use siphasher::sip::SipHasher13;

/// A file that the page asks for.
#[derive(Debug)]
pub(super) struct Asset {
    pub(super) name: &'static str,
    pub(super) content_type: &'static str,
    pub(super) bytes: &'static [u8],
}

macro_rules! assets {
    ($($content_type:literal: $($name:literal)+;)+) => {
        &[$($(Asset {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("assets/", $name)),
        },)+)+]
    };
}

/// The page, with `{assets}` wherever it names the folder of the files below.
pub(super) const PAGE: &str = include_str!("assets/index.html");

pub(super) const ASSETS: &[Asset] = assets! {
    "text/css; charset=utf-8": "theme.css" "app.css" "run.css";
    "image/svg+xml": "icon.svg";
    "text/javascript; charset=utf-8":
        "early.js" "app.js" "lib.js" "api.js" "live.js" "format.js" "keys.js" "parts.js" "list.js"
        "runs.js" "run.js" "spans.js" "scale.js" "timeline.js" "layout.js" "graph.js" "records.js" "inspector.js"
        "parked.js" "actions.js" "guide.js"
        "vendor/preact.js" "vendor/hooks.js" "vendor/htm.js";
};

/// A name for these files as they are: another program with other files has another one. So they may be kept for ever.
pub(super) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = SipHasher13::new();
    hasher.write(PAGE.as_bytes());
    for asset in ASSETS {
        hasher.write(asset.name.as_bytes());
        hasher.write(asset.bytes);
    }
    format!("{:016x}", hasher.finish())
});

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn files(under: &Path, before: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(under).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{before}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                files(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }

    #[test]
    fn every_file_is_served_and_every_script_is_loaded_with_the_page() {
        let mut found = Vec::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dashboard/assets");
        files(&folder, "", &mut found);
        found.retain(|name| name != "index.html" && !name.starts_with("vendor/LICENSE"));
        found.retain(|name| name != "vendor/README.md");
        found.sort();
        let mut served: Vec<_> = ASSETS.iter().map(|asset| asset.name).collect();
        served.sort_unstable();
        assert_eq!(found, served);
        for name in served {
            assert!(PAGE.contains(&format!("\"{{assets}}{name}\"")), "{name}");
        }
    }
}
