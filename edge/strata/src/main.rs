//! `strata`: the command-line program of Strata.

mod answer;
mod args;
mod audit;
mod check;
mod completions;
mod doctor;
mod enrol;
mod files;
mod help;
mod import;
mod init;
mod key;
mod lines;
mod manual;
mod pki;
mod show;
mod status;
mod text;

use args::{Args, Verb};
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::process::ExitCode;
use terminal::Output;

fn main() -> ExitCode {
    let args = Args::try_parse().unwrap_or_else(|error| moved(error).exit());
    let output = Output::new(args.json);
    match args.verb {
        Verb::Ask(question) => answer::ask(&args.socket, &question.into(), &output).into(),
        Verb::Audit(wanted) => audit::run(&wanted, &output).into(),
        Verb::Check { file } => check::run(&file, &output).into(),
        Verb::Completions { shell } => completions::run(shell, &output).into(),
        Verb::Key { name } => key::run(&name, &output).into(),
        Verb::Doctor { file } => doctor::run(&file, &args.socket, &output).into(),
        Verb::Enrol(order) => enrol::run(&order, &output).into(),
        Verb::Import(wanted) => import::run(&wanted, &output).into(),
        Verb::Init(wanted) => init::run(&wanted, &output).into(),
        Verb::Man { folder } => manual::run(&folder, &output).into(),
        Verb::Status(wanted) => status::run(&wanted, &args.socket, &output).into(),
        Verb::Help { topic } => help::run(&topic, &output).into(),
        Verb::Pki(pki) => pki::run(&pki, &output).into(),
    }
}

/// Commands that are those of `strata-lab` now, with their names there.
const MOVED: [(&str, &str); 3] = [("demo", "demo"), ("bench", "bench"), ("lab", "figures")];

/// Adds to the error about an unknown command where the command has gone.
fn moved(mut error: clap::Error) -> clap::Error {
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
        && let Some((_, now)) = MOVED.iter().find(|(was, _)| was == word)
    {
        let tip = format!("run `strata-lab {now}`, a program of its own").into();
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(words: &[&str]) -> String {
        let words = [&["strata"][..], words].concat();
        let error = Args::try_parse_from(words).expect_err("not a command");
        let error = moved(error);
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    }

    #[test]
    fn a_command_of_the_lab_is_refused_with_the_program_that_has_it() {
        for (words, now) in [
            (&["demo"][..], "`strata-lab demo`"),
            (&["demo", "roam", "--moves", "2"], "`strata-lab demo`"),
            (&["--json", "bench", "esp"], "`strata-lab bench`"),
            (&["lab", "list"], "`strata-lab figures`"),
        ] {
            let said = refusal(words);
            assert!(said.contains(now), "{said}");
        }
    }

    #[test]
    fn an_unknown_command_is_refused_with_one_that_is_like_it() {
        let said = refusal(&["stats"]);
        assert!(said.contains("'status'"), "{said}");
        assert!(!said.contains("strata-lab"), "{said}");
    }
}
