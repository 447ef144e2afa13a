//! The command line.

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// IPsec with zones: see and steer stratad, check configurations, try it all without a network.
#[derive(Debug, Parser)]
#[command(
    name = "strata",
    version,
    after_help = "Exit status: 0 done, 1 the answer is no, 2 wrong usage or configuration, \
                  3 stratad cannot be reached."
)]
pub struct Args {
    /// Print JSON, one object on one line, also for errors
    #[arg(long, global = true)]
    pub json: bool,

    /// The daemon's socket
    #[arg(long, global = true, value_name = "PATH", default_value = config::DEFAULT_SOCKET)]
    pub socket: PathBuf,

    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Check a configuration and the keys it names; needs no daemon, and root only for its keys
    Check {
        /// The configuration
        #[arg(default_value = config::DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Bring tunnels up and keep them up
    Up {
        /// Name of a [peer.NAME]; without it every peer that has an address
        peer: Option<String>,
        /// Wait until they are up, at most so many seconds
        #[arg(
            long,
            value_name = "SECONDS",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "30",
            value_parser = clap::value_parser!(u64).range(1..=3600)
        )]
        wait: Option<u64>,
    },
    /// Take tunnels down and leave them down
    Down {
        /// Name of a [peer.NAME]; without it every peer
        peer: Option<String>,
    },
    /// Show peers, their SAs, and what was dropped
    Status,
    /// Show who can read which part of the packets
    Zones,
    /// Show the TCP flows that this licensed node repairs
    Flows,
    /// Write the keys of new SAs for Wireshark: whoever reads them reads everything
    Keylog {
        /// A folder, or `off`
        #[arg(value_name = "DIR|off")]
        directory: PathBuf,
    },
    /// Print counters as OpenMetrics text
    Metrics,
    /// Show the versions of this command and of the daemon
    Version,
}
