//! Output of `strata import`: the files written, and the lines without a place.

use crate::text::{clean, plural};
use import::{Note, Weight};
use serde_json::{Value, json};
use std::path::PathBuf;
use terminal::{Exit, Output};

/// Result of an import.
pub(super) struct Report {
    pub(super) files: Vec<PathBuf>,
    pub(super) notes: Vec<Note>,
    /// Number of tunnels.
    pub(super) peers: usize,
    /// Name of the new key of this host, without extension.
    pub(super) key: Option<String>,
    /// Files with the public keys of peers that are not here yet.
    pub(super) awaited: Vec<String>,
    /// What `strata check` says against the new configuration.
    pub(super) faults: Vec<String>,
}

impl Report {
    /// Prints the result. The status is that of a wrong configuration if something that protects
    /// traffic is left out, or if the new file is not accepted.
    pub(super) fn print(&self, output: &Output) -> Exit {
        match output.json {
            true => output.print_json(&self.json().to_string()),
            false => output.print(&self.text()),
        }
        match self.notes.iter().any(|note| note.weight > Weight::Remark) || !self.faults.is_empty()
        {
            true => Exit::Usage,
            false => Exit::Done,
        }
    }

    fn text(&self) -> String {
        let wrote = self
            .files
            .iter()
            .map(|file| format!("wrote {}\n", file.display()));
        let mut text: String = wrote.collect();
        text += &format!("{} converted\n", plural(self.peers as u64, "tunnel"));
        text += &self.notes.iter().map(line).collect::<String>();
        if let Some(key) = &self.key {
            text += &format!(
                "peers need {key}.pub beside their strata.toml, and in the table of this host:\n  pubkey = \"{key}.pub\"\n"
            );
        }
        for file in &self.awaited {
            text += &format!(
                "this host needs {file} of the peer beside strata.toml: its table here has\n  pubkey = \"{file}\"\n"
            );
        }
        let faults = self
            .faults
            .iter()
            .map(|fault| format!("strata check: {fault}\n"));
        clean_lines(&(text + &faults.collect::<String>()))
    }

    fn json(&self) -> Value {
        let note = |note: &Note| {
            json!({
                "file": note.file,
                "line": note.line,
                "what": note.what,
                "why": note.why,
                "weight": note.weight.word(),
            })
        };
        let files = self.files.iter().map(|file| file.display().to_string());
        json!({
            "version": control::VERSION,
            "import": {
                "files": files.collect::<Vec<_>>(),
                "tunnels": self.peers,
                "notes": self.notes.iter().map(note).collect::<Vec<_>>(),
                "pubkey": self.key.as_ref().map(|key| format!("{key}.pub")),
                "awaited": self.awaited,
                "faults": self.faults,
            },
        })
    }
}

fn line(note: &Note) -> String {
    let place = note.place();
    let place = place.map_or_else(String::new, |place| format!("{place}: "));
    let Note {
        what, why, weight, ..
    } = note;
    let word = match weight {
        Weight::Remark => String::new(),
        Weight::Lost | Weight::Refused => format!(" ({})", weight.word()),
    };
    format!("{place}{}{word}: {why}\n", what.replace('\n', " "))
}

fn clean_lines(text: &str) -> String {
    let lines = text.lines().map(|line| format!("{}\n", clean(line)));
    lines.collect()
}
