//! `strata completions`: a script that completes commands and options in a shell.

use crate::args::Args;
use clap::{CommandFactory, ValueEnum};
use serde_json::json;
use terminal::{Exit, Output};

/// A shell with completions.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Shell {
    /// Bash: the script belongs into /usr/share/bash-completion/completions/strata
    Bash,
    /// Zsh: the script belongs into /usr/share/zsh/vendor-completions/_strata
    Zsh,
    /// Fish: the script belongs into /usr/share/fish/vendor_completions.d/strata.fish
    Fish,
}

impl From<Shell> for clap_complete::Shell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::Bash,
            Shell::Zsh => Self::Zsh,
            Shell::Fish => Self::Fish,
        }
    }
}

/// Prints the script of a shell.
pub fn run(shell: Shell, output: &Output) -> Exit {
    let shell = clap_complete::Shell::from(shell);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "strata", &mut script);
    let script = String::from_utf8_lossy(&script);
    if output.json {
        let line = json!({"completions": {"shell": shell.to_string(), "script": script}});
        output.print_json(&line.to_string());
    } else {
        output.print(&script);
    }
    Exit::Done
}
