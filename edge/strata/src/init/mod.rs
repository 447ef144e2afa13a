//! `strata init`: writes a first configuration with its keys, and prints what the other side needs.

mod args;
mod client;
mod folder;
mod gateway;
mod node;
mod paired;
mod report;

pub use args::{Init, network};

use terminal::{Exit, Output};

/// Runs a subcommand of `strata init`.
pub fn run(init: &Init, output: &Output) -> Exit {
    let done = match init {
        Init::Gateway(order) => gateway::init(order),
        Init::Client(order) => client::init(order),
        Init::Node(order) => node::init(order),
    };
    match done {
        Ok(report) => report.print(output),
        Err(failure) => output.fail(Exit::Usage, &failure),
    }
}
