//! Where everything is written, and for whom.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::process::ExitCode;

use console::Term;
use serde::Serialize;

use crate::fail::Fail;
use crate::text::clean;

/// Standard output: JSON, or text as wide as there is room.
pub(crate) struct Out {
    to: BufWriter<Stdout>,
    json: bool,
    width: Option<usize>,
    styled: bool,
}

impl Out {
    pub(crate) fn new(json: bool, width: Option<usize>) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let own = || {
            let columns = || {
                Term::stdout()
                    .size_checked()
                    .map(|(_, columns)| columns.into())
            };
            is_terminal.then(columns).flatten()
        };
        Self {
            to: BufWriter::new(io::stdout()),
            json,
            width: width.or_else(own),
            styled: is_terminal && console::colors_enabled(),
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// How many columns there are; absent when nobody looks, and lines may be of any length.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Whether text may be coloured.
    pub(crate) fn is_styled(&self) -> bool {
        self.styled
    }

    /// Writes a value as JSON, on a line of its own.
    pub(crate) fn value(&mut self, value: &impl Serialize) -> Result<(), Fail> {
        serde_json::to_writer(&mut self.to, value).map_err(io::Error::from)?;
        Ok(self.to.write_all(b"\n")?)
    }

    /// Writes a line of text.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Fail> {
        self.to.write_all(line.trim_end().as_bytes())?;
        Ok(self.to.write_all(b"\n")?)
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Fail> {
        Ok(self.to.write_all(bytes)?)
    }

    /// Everything that was written arrives.
    pub(crate) fn end(&mut self) -> Result<(), Fail> {
        Ok(self.to.flush()?)
    }

    /// Says what went wrong, and with which code the program ends.
    pub(crate) fn fail(&mut self, fail: &Fail) -> ExitCode {
        // What came before it was said comes before it; that nobody reads it changes nothing any more.
        let _ = self.to.flush();
        if let Some(message) = fail.message() {
            let said = if self.json {
                let error = serde_json::json!({"error": fail.word(), "message": message});
                error.to_string()
            } else {
                format!("error: {}", clean(message))
            };
            let _ = writeln!(io::stderr(), "{said}");
        }
        ExitCode::from(fail.code())
    }

    /// Tells a person something beside the output.
    pub(crate) fn note(&self, note: &str) {
        if !self.json {
            let _ = writeln!(io::stderr(), "{}", clean(note));
        }
    }
}
