//! The command line.

use crate::audit::Wanted;
use crate::completions::Shell;
use crate::enrol::Enrol;
use crate::import::Import;
use crate::init::Init;
use crate::pki::Pki;
use crate::status;
use clap::{Parser, Subcommand};
use control::{Request, Strength};
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

/// IPsec with zones: control stratad, check configurations, diagnose this machine.
#[derive(Debug, Parser)]
#[command(
    name = "strata",
    version,
    disable_help_subcommand = true,
    after_help = "Exit status: 0 success, 1 check failed, 2 wrong usage or configuration, \
                  3 stratad cannot be reached."
)]
pub struct Args {
    /// Print JSON, one object per line, errors included
    #[arg(long, global = true)]
    pub json: bool,

    /// Control socket of stratad
    #[arg(long, global = true, value_name = "PATH", default_value = config::DEFAULT_SOCKET)]
    pub socket: PathBuf,

    #[command(subcommand)]
    pub verb: Verb,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show warnings, a line for each peer, and dropped packets; or all about peers that are named
    Status(status::Wanted),
    #[command(flatten)]
    Ask(Question),
    /// Show the audit log: licences agreed on, and keys given, revoked and expired
    Audit(Wanted),
    /// Check a configuration and its key files; needs no daemon, and root only to read the keys
    Check {
        /// Configuration file
        #[arg(default_value = config::DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Print a script that completes these commands in a shell; needs no daemon
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Diagnose this machine: list problems that affect Strata, each with a reason and a fix
    Doctor {
        /// Configuration file
        #[arg(default_value = config::DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Show the help of a command, or a page of the documentation; list all of them if omitted
    Help {
        /// Name of a command, or of a page such as `no-traffic`
        topic: Vec<String>,
    },
    /// Explain a key of the configuration; needs no daemon
    Key {
        /// Name of the key, such as `clone` or `peer.clone`
        name: String,
    },
    /// Write a first configuration with its keys, and show what the other side needs
    #[command(subcommand)]
    Init(Init),
    /// Add a device to this gateway: its table here, and a file with all that the device needs
    Enrol(Enrol),
    /// Convert a configuration of strongSwan, Libreswan or WireGuard
    #[command(subcommand)]
    Import(Import),
    /// Write the manual pages: commands, stratad(8) and strata.toml(5); needs no daemon
    Man {
        /// Folder for the pages
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Create, revoke and show certificates and keys; needs no daemon
    #[command(subcommand)]
    Pki(Pki),
}

/// Requests to the daemon.
#[derive(Debug, Subcommand)]
pub enum Question {
    /// Bring tunnels up and keep them up
    Up {
        /// Name of a [peer.NAME]; if omitted, every peer with an address
        peer: Option<String>,
        /// Only the tunnel of this [peer.NAME.child.NAME]
        #[arg(long, value_name = "NAME", requires = "peer")]
        child: Option<String>,
        /// Wait until the tunnels are up, at most SECONDS seconds
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
    /// Take tunnels down, and refuse the peer until `strata up`
    Down {
        /// Name of a [peer.NAME]; if omitted, every peer
        peer: Option<String>,
        /// Only the tunnel of this [peer.NAME.child.NAME]
        #[arg(long, value_name = "NAME", requires = "peer")]
        child: Option<String>,
    },
    /// Rekey a peer without interrupting traffic
    Rekey {
        /// Name of the peer's table
        peer: String,
        /// Rekey the IKE SA instead of the tunnel
        #[arg(long)]
        ike: bool,
    },
    /// Re-authenticate a peer without interrupting traffic
    Reauth {
        /// Name of the peer's table
        peer: String,
    },
    /// Redirect a connected peer to another gateway, which must have the same id
    Redirect {
        /// Name of the peer's table
        peer: String,
        /// Address or complete name of the other gateway
        to: String,
    },
    /// Move a tunnel to another local address; its SAs stay
    Move {
        /// Name of a [peer.NAME]
        peer: String,
        /// New local address; if omitted, the best one according to the routes
        #[arg(long, value_name = "ADDRESS")]
        from: Option<IpAddr>,
        /// Interface to move to, without a pause if possible; for connection managers
        #[arg(long, value_name = "INTERFACE", conflicts_with = "from")]
        to: Option<String>,
        /// Move without a pause, by cloning the IKE SA; fail if that is impossible
        #[arg(long)]
        soft: bool,
    },
    /// Report the signal of an interface; tunnels leave a weak one for another path. For connection
    /// managers and scripts, which repeat it: a report holds for 30 seconds
    Signal {
        /// Name of the interface
        interface: String,
        /// Signal in per cent, 0 to 100, weak from below 30 until 45; for dBm, 2 * (dBm + 100)
        #[arg(value_parser = percent, allow_hyphen_values = true)]
        percent: u8,
        /// Name of the source, which `strata paths` and the log show
        #[arg(long, value_name = "SOURCE")]
        by: Option<String>,
    },
    /// Send packets through a tunnel and back, and tell where they are lost
    Ping {
        /// Name of a [peer.NAME]
        peer: String,
        /// Number of packets
        #[arg(
            short,
            long,
            value_name = "N",
            default_value_t = 4,
            value_parser = clap::value_parser!(u16).range(1..=100)
        )]
        count: u16,
    },
    /// Choose the protection of packets to a peer, among those that both ends agreed on
    Level {
        /// Name of a [peer.NAME]
        peer: String,
        /// `integrity`: send the datagrams of [peer.NAME.level] without encryption; `auto`: the
        /// same, but encrypt one in `every`; `zoned`: encrypt all in zones; `opaque`: hide all from
        /// licensed nodes
        #[arg(value_parser = ["auto", "zoned", "opaque", "integrity"])]
        level: String,
    },
    /// Show the path of each tunnel, and possible ones
    Paths,
    /// Show which nodes can read which part of the packets
    Zones,
    /// Show the TCP flows that this licensed node repairs
    Flows,
    /// Show the pools and the leases of their addresses
    Leases,
    /// Show the sessions that peers may resume
    Sessions {
        /// First end the sessions of this [peer.NAME]: its next tunnel takes a full exchange
        #[arg(long, value_name = "PEER")]
        end: Option<String>,
        /// First end all sessions
        #[arg(long, conflicts_with = "end")]
        end_all: bool,
    },
    /// Explain why a peer is up or down, and which line to change
    Explain {
        /// Name of a [peer.NAME], [licensed.NAME], [gateway.NAME] or [neighbour.NAME]
        peer: String,
    },
    /// Write the keys of new SAs for Wireshark; with these files, all traffic can be decrypted
    Keylog {
        /// Folder for the key files, or `off`
        #[arg(value_name = "DIR|off", value_parser = folder_or_off)]
        folder: Folder,
    },
    /// Apply changes of stratad's configuration; unchanged tunnels stay up
    Reload {
        /// Only show what would change
        #[arg(long)]
        dry_run: bool,
    },
    /// Print counters in the text format of Prometheus
    Metrics,
    /// Show the versions of this command and of the daemon
    Version,
}

/// Parses a signal.
fn percent(text: &str) -> Result<u8, String> {
    let percent = text.parse().ok().filter(|percent| *percent <= 100);
    percent.ok_or_else(|| format!("a signal is 0 to 100 per cent; {}", Strength::FIX))
}

/// A folder, or `None` for `off`.
#[derive(Clone, Debug)]
pub struct Folder(Option<PathBuf>);

/// Parses a folder or `off`. The path becomes absolute, because the daemon has another working
/// directory.
fn folder_or_off(text: &str) -> std::io::Result<Folder> {
    match text {
        "off" => Ok(Folder(None)),
        folder => std::path::absolute(folder).map(|folder| Folder(Some(folder))),
    }
}

impl From<Question> for Request {
    fn from(question: Question) -> Self {
        match question {
            Question::Up { peer, child, wait } => Self::Up {
                peer,
                child,
                wait_seconds: wait,
            },
            Question::Down { peer, child } => Self::Down { peer, child },
            Question::Rekey { peer, ike } => Self::Rekey { peer, ike },
            Question::Reauth { peer } => Self::Reauth { peer },
            Question::Redirect { peer, to } => Self::Redirect { peer, to },
            Question::Move {
                peer,
                from,
                to,
                soft,
            } => Self::Move {
                peer,
                from,
                to,
                soft,
            },
            Question::Signal {
                interface,
                percent,
                by,
            } => Self::Signal {
                interface,
                percent,
                by,
            },
            Question::Ping { peer, count } => Self::Ping {
                peer,
                count: NonZeroU16::new(count),
            },
            Question::Level { peer, level } => Self::Level {
                peer,
                signal: level,
            },
            Question::Paths => Self::Paths,
            Question::Zones => Self::Zones,
            Question::Flows => Self::Flows,
            Question::Leases => Self::Leases,
            Question::Sessions { end, end_all } => Self::Sessions { end, end_all },
            Question::Explain { peer } => Self::Explain { peer },
            Question::Keylog { folder } => Self::Keylog {
                directory: folder.0,
            },
            Question::Reload { dry_run } => Self::Reload { dry_run },
            Question::Metrics => Self::Metrics,
            Question::Version => Self::Version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    const INTRODUCTION: &str = "# strata\n\n\
        Commands that need no daemon are `check`, `help`, `key`, `doctor`, `audit`, `init`, `enrol`,\n\
        `import`, `completions`, `man` and `pki`.\n\
        `strata help COMMAND` and `--help` show the same as this page, and `strata help TOPIC` a page\n\
        for operators. Demos, benchmarks and the figures of papers are commands of\n\
        [strata-lab](strata-lab.md).\n";

    #[test]
    fn the_reference_page_has_every_command() {
        let commands = pages::command_line(Args::command());
        let page = format!("{}{INTRODUCTION}{commands}", pages::HEAD);
        pages::check("reference/strata.md", &page);
    }
}
