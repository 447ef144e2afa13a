//! Output of `strata init`: the files, what the other side needs, and the next commands.

use serde_json::json;
use std::path::PathBuf;
use terminal::{Exit, Output};

/// Result of a subcommand.
pub(super) struct Report {
    pub(super) files: Vec<PathBuf>,
    /// Lines for the configuration of the other side.
    pub(super) lines: String,
    pub(super) carry: Option<Carry>,
    /// Commands to run next.
    pub(super) next: Vec<String>,
}

/// Public keys that the two sides exchange.
pub(super) struct Carry {
    /// File that the other side needs.
    pub(super) there: String,
    /// File that this side needs.
    pub(super) here: String,
    /// Command that prints the second one.
    pub(super) how: String,
}

impl Report {
    pub(super) fn print(&self, output: &Output) -> Exit {
        let files = self.files.iter().map(|file| file.display().to_string());
        if output.json {
            let carry = self.carry.as_ref();
            let line = json!({
                "version": control::VERSION,
                "init": {
                    "files": files.collect::<Vec<_>>(),
                    "lines": self.lines,
                    "there": carry.map(|carry| &carry.there),
                    "here": carry.map(|carry| &carry.here),
                    "next": self.next,
                },
            });
            output.print_json(&line.to_string());
            return Exit::Done;
        }
        let mut text: String = files.map(|file| format!("wrote {file}\n")).collect();
        if let Some(Carry { there, here, how }) = &self.carry {
            text += &format!(
                "\nThe gateway needs a `key` in [node], {there} beside its strata.toml, and these lines:\n\n{}\n\
                 This host needs the public key of the gateway in {here}:\n  {how}\n",
                self.lines
            );
        }
        text += "\nNext:\n";
        text += &self
            .next
            .iter()
            .map(|command| format!("  {command}\n"))
            .collect::<String>();
        output.print(&text);
        Exit::Done
    }
}
