//! `strata`: the command-line program of Strata.

mod answer;
mod args;
mod audit;
mod bench;
mod check;
mod demo;
mod doctor;
mod figures;
mod key;
mod output;
mod pki;
mod show;
mod text;

use args::{Args, Verb};
use clap::Parser;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.json);
    match args.verb {
        Verb::Ask(question) => answer::ask(&args.socket, &question.into(), &output).into(),
        Verb::Audit(wanted) => audit::run(&wanted, &output).into(),
        Verb::Check { file } => check::run(&file, &output).into(),
        Verb::Key { name } => key::run(&name, &output).into(),
        Verb::Doctor { file } => doctor::run(&file, &args.socket, &output).into(),
        Verb::Demo(demo) => demo::run(&demo, &output).into(),
        Verb::Pki(pki) => pki::run(&pki, &output).into(),
        Verb::Lab(lab) => figures::run(&lab, &output).into(),
        Verb::Bench(bench) => bench::run(&bench, &output).into(),
    }
}
