//! `stratad`, the daemon: it reads one configuration file and runs a node that `strata` controls.
//!
//! [`setup`] converts the configuration to the node's, [`host`] holds the state in the system,
//! [`daemon`] is the loop that joins both, and [`api`] answers `strata`.

mod api;
mod assigned;
mod audit;
mod awaited;
mod batch;
mod clear;
mod config_view;
mod daemon;
mod explain;
mod faults;
mod host;
mod interface;
mod journal;
mod kept;
mod keylog;
mod leases;
mod log;
#[cfg(test)]
#[path = "../../../pure/node/tests/memory/mod.rs"]
mod memory;
mod metrics;
mod mobile;
mod naming;
mod needs;
mod panics;
mod ping;
mod plan;
mod quota;
mod readers;
mod reload;
mod restorer;
#[cfg(test)]
mod sample;
mod service_manager;
mod sessions;
mod setup;
mod signal;
mod sink;
mod sockets;
mod start;
mod streams;
mod trace;
mod troubles;
mod unproved;
mod unsent;
mod view;
mod workers;

use clap::Parser;
use config::Aead;
use ipsec_mb::IpsecMb;
use std::path::PathBuf;
use std::process::ExitCode;

/// The tests count allocations with one of their own.
#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: os::memory::Allocator = os::memory::Allocator;

/// IPsec daemon for mobile hosts and lossy networks, configured by one file.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Configuration file; check it first with `strata check FILE`.
    #[arg(long, short, value_name = "FILE", default_value = config::DEFAULT_FILE)]
    config: PathBuf,

    /// Block all traffic that `leak = "never"` protects, and exit; for use before the network is up
    #[arg(long, conflicts_with = "unlock")]
    lock: bool,

    /// Lift the block of `leak = "never"` while no daemon runs, and exit
    #[arg(long)]
    unlock: bool,

    /// Abort at this point, as if killed; for tests
    #[arg(long, hide = true, value_name = "POINT", value_parser = crash_point)]
    die_at: Option<()>,

    /// Inject these faults; for tests
    #[arg(long, hide = true, value_name = "SPEC", value_parser = faults::Spec::parse)]
    faults: Option<faults::Spec>,
}

fn crash_point(name: &str) -> Result<(), &'static str> {
    match os::crash::choose(name) {
        true => Ok(()),
        false => Err("unknown crash point, or not a debug build"),
    }
}

/// Exit codes: 0 after a graceful end, 1 if something failed, 2 if the configuration is wrong.
fn main() -> ExitCode {
    let kept = kept::Kept::of_this_process();
    let arguments = Arguments::parse();
    if arguments.unlock {
        return verdict(host::unlock());
    }
    let config = match config::load(&arguments.config) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if arguments.lock {
        return verdict(host::lock(&config));
    }
    let log = log::Log::open(config.log);
    panics::end_the_process();
    let expiry = config::expiry(config.certificates(), &config.lists, config::today());
    for warning in expiry.iter().chain(&config.warnings) {
        tracing::warn!("{warning}");
    }
    if let Some(faults) = &arguments.faults {
        tracing::warn!("injecting faults (`--faults`): {faults:?}");
    }
    let daemon = provide(config.aead)
        .and_then(|()| daemon::Daemon::start(config, log, arguments.faults, kept))
        .and_then(daemon::Daemon::run);
    match daemon {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Selects the implementation of AES-GCM, before any key is expanded.
fn provide(aead: Aead) -> anyhow::Result<()> {
    if aead == Aead::AwsLc {
        return Ok(());
    }
    match IpsecMb::provide() {
        Ok(name) => tracing::info!("using AES-GCM of {name}"),
        Err(error) if aead == Aead::IpsecMb => {
            let fix = error
                .fix()
                .map_or(String::new(), |fix| format!("{fix}, or "));
            anyhow::bail!("{error}\n  fix: {fix}remove `aead`, or write `aead = \"auto\"`");
        }
        Err(error) => tracing::info!("using AES-GCM of AWS-LC: {error}"),
    }
    Ok(())
}

fn verdict(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    const INTRODUCTION: &str = "# stratad\n\n\
        The daemon. It stays in the foreground and logs to standard error ([events](events.md)). \
        Exit\nstatus: 0 after SIGTERM or SIGINT, 1 after an [error](errors.md), 2 for wrong usage or a \
        wrong\nconfiguration.\n";

    #[test]
    fn the_manual_page_has_every_option() {
        let manual = clap_mangen::Man::new(Arguments::command()).section("8");
        let mut page = pages::ROFF_HEAD.as_bytes().to_vec();
        manual.render(&mut page).unwrap();
        pages::check("../pack/man/stratad.8", &String::from_utf8(page).unwrap());
    }

    #[test]
    fn the_reference_page_has_every_option() {
        let options = pages::command_line(Arguments::command());
        let page = format!("{}{INTRODUCTION}{options}", pages::HEAD);
        pages::check("reference/stratad.md", &page);
    }
}
