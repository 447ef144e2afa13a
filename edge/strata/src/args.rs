//! The command line.

use crate::audit::Wanted;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as Group, Parser, Subcommand};
use control::Request;
use lab::bench::flood::Kind as Flood;
use model::Identity;
use std::net::IpAddr;
use std::path::PathBuf;

/// IPsec with zones: control stratad, check configurations, run demos and benchmarks.
#[derive(Debug, Parser)]
#[command(
    name = "strata",
    version,
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
    /// Diagnose this machine: list problems that affect Strata, each with a reason and a fix
    Doctor {
        /// Configuration file
        #[arg(default_value = config::DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Explain a key of the configuration; needs no daemon
    Key {
        /// Name of the key, such as `clone` or `peer.clone`
        name: String,
    },
    /// Measure a protected download over a lossy link, on this machine alone; needs no root
    Demo(Demo),
    /// Create, revoke and show certificates and keys; needs no daemon
    #[command(subcommand)]
    Pki(Pki),
    /// Reproduce the figures of the papers on this machine, and check them; needs no root
    #[command(subcommand)]
    Lab(Lab),
    /// Measure the performance of tunnels on this machine; needs no root
    #[command(subcommand)]
    Bench(Bench),
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
        /// Address of the other gateway
        to: IpAddr,
    },
    /// Move a tunnel to another local address; its SAs stay
    Move {
        /// Name of a [peer.NAME]
        peer: String,
        /// New local address; if omitted, the best one according to the routes
        #[arg(long, value_name = "ADDRESS")]
        from: Option<IpAddr>,
        /// Move without a pause, by cloning the IKE SA; fail if that is impossible
        #[arg(long)]
        soft: bool,
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
    /// Show peers, their SAs, and dropped packets
    Status,
    /// Show which nodes can read which part of the packets
    Zones,
    /// Show the TCP flows that this licensed node repairs
    Flows,
    /// Show the pools and the leases of their addresses
    Leases,
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
    /// Print counters as OpenMetrics text
    Metrics,
    /// Show the versions of this command and of the daemon
    Version,
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
            Question::Move { peer, from, soft } => Self::Move { peer, from, soft },
            Question::Level { peer, level } => Self::Level {
                peer,
                signal: level,
            },
            Question::Paths => Self::Paths,
            Question::Status => Self::Status,
            Question::Zones => Self::Zones,
            Question::Flows => Self::Flows,
            Question::Leases => Self::Leases,
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

/// Options of the demo. It has to fail with a switch that takes something away.
#[derive(Debug, Group)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Demo {
    #[command(subcommand)]
    pub other: Option<OtherDemo>,
    /// Length of each download, in seconds
    #[arg(long, default_value_t = 45, value_parser = clap::value_parser!(u64).range(5..=3600))]
    pub seconds: u64,
    /// Seed of bit errors and content
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Bits per bit error on the lossy hop; 0 for no errors
    #[arg(long, value_name = "BITS", default_value_t = 512 << 10)]
    pub bits_per_error: u64,
    /// Turn SNOOP off
    #[arg(long)]
    pub no_snoop: bool,
    /// Omit the licence
    #[arg(long, conflicts_with = "license_payload")]
    pub no_licence: bool,
    /// License the payload too; the search for readable payload must then find it
    #[arg(long)]
    pub license_payload: bool,
    /// Keep configurations and logs
    #[arg(long)]
    pub keep: bool,
}

/// Other demos.
#[derive(Debug, Subcommand)]
pub enum OtherDemo {
    /// Show keys that follow a mobile node from one licensed node to the next
    #[command(
        after_help = "Exit status 1 if a previous agent could still read, or a visited agent could not."
    )]
    Roam(Roam),
}

/// Options of a walk. Without options: four moves, by push, in less than a minute.
#[derive(Debug, Group)]
pub struct Roam {
    /// Key delivery: sent by the gateway, distributed in advance, or fetched from the previous
    /// agent
    #[arg(long, default_value = "push", value_parser = ["push", "pkd", "dkm"])]
    pub handover: String,
    /// Number of moves
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub moves: u32,
    /// Seconds at each agent
    #[arg(long, value_name = "S", default_value_t = 7, value_parser = clap::value_parser!(u64).range(4..=60))]
    pub stay: u64,
    /// License all agents all the time: previous agents can still read, so the demo must fail
    #[arg(long)]
    pub everywhere: bool,
    /// Keep configurations and logs
    #[arg(long)]
    pub keep: bool,
}

/// Commands for certificates and keys.
#[derive(Debug, Subcommand)]
pub enum Pki {
    /// Create a CA: `ca.pem`, which peers name in `ca`, and `ca.key`, its private key
    Ca {
        /// Name of the CA
        #[arg(long)]
        name: String,
        /// Folder of the issuing CA; if omitted, the new CA is a root
        #[arg(long, value_name = "DIR")]
        by: Option<PathBuf>,
        #[command(flatten)]
        made: Made,
        /// Validity, in days
        #[arg(long, default_value_t = 3650, value_parser = days())]
        days: u64,
    },
    /// Issue a certificate: `ID.pem` for `cert` and `ID.key` for `key`
    Issue {
        /// Folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// Identity, as in `id`: `alice@example.net`, `gw.example.net` or an address
        #[arg(long)]
        id: Identity,
        #[command(flatten)]
        made: Made,
        /// Validity, in days; at most that of the CA
        #[arg(long, default_value_t = 365, value_parser = days())]
        days: u64,
    },
    /// Revoke certificates of a CA: adds them to its `ca.crl`, which peers name in `crl`
    Revoke {
        /// Folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// Files of the certificates to revoke
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Days until the list expires
        #[arg(long, default_value_t = 30, value_parser = days())]
        days: u64,
    },
    /// Renew `ca.crl` of a CA before it expires, or create the first one, which is empty
    Crl {
        /// Folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// Days until the list expires
        #[arg(long, default_value_t = 30, value_parser = days())]
        days: u64,
    },
    /// Create a key without a certificate: `NAME.key` for `key`, and `NAME.pub` for `pubkey` at
    /// peers
    Key {
        /// Name of the files, without suffix
        #[arg(long)]
        name: String,
        #[command(flatten)]
        made: Made,
    },
    /// Print the public key of a private key, for `pubkey` at peers
    Pubkey {
        /// File with the private key
        file: PathBuf,
    },
    /// Show the certificates or revocation lists of a PEM file
    Show {
        /// PEM file
        file: PathBuf,
    },
}

/// Kind of a new key, and the folder of its files.
#[derive(Debug, Group)]
pub struct Made {
    /// An Ed25519 key (RFC 8420)
    #[arg(long)]
    pub ed25519: bool,
    /// An ECDSA P-256 key, which every peer with RFC 7427 supports (default)
    #[arg(long, conflicts_with = "ed25519")]
    pub p256: bool,
    /// An ECDSA P-384 key, for `suite = "strict"`
    #[arg(long, conflicts_with_all = ["ed25519", "p256"])]
    pub p384: bool,
    /// Folder for both files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

/// At most a hundred years: not every reader can represent later dates.
fn days() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=36_500)
}

/// Commands of the lab.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// List the figures and tables, and the time that each takes
    List,
    /// Measure figures and tables; exit status 1 if a claim does not hold
    Run(LabRun),
    /// Write an HTML page of all results in a folder
    Report {
        /// Folder with results
        #[arg(long, value_name = "DIR", default_value = LAB_FOLDER)]
        out: PathBuf,
    },
    /// Copy results and their raw data into a folder that a reviewer can check
    Bundle {
        /// Folder with results
        #[arg(long, value_name = "DIR", default_value = LAB_FOLDER)]
        out: PathBuf,
        /// Folder to make
        #[arg(long, value_name = "DIR", default_value = BUNDLE_FOLDER)]
        to: PathBuf,
    },
    /// Compute every number and verdict of a bundle again; exit status 1 if one was changed
    Verify {
        /// Folder that `strata lab bundle` wrote
        #[arg(value_name = "DIR", default_value = BUNDLE_FOLDER)]
        folder: PathBuf,
    },
}

/// Options of a measurement.
#[derive(Debug, Group)]
pub struct LabRun {
    /// Names of figures and tables, from `strata lab list`
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Measure less: minutes instead of an hour
    #[arg(long)]
    pub quick: bool,
    /// Folder for results; existing results are not measured again
    #[arg(long, value_name = "DIR", default_value = LAB_FOLDER)]
    pub out: PathBuf,
    /// Number of runs of each condition
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Length of each download, in seconds
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(2..=3600))]
    pub seconds: Option<u64>,
    /// Maximum number of networks at once
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub at_once: Option<usize>,
    /// Turn SNOOP off: claims that depend on it must fail
    #[arg(long)]
    pub no_snoop: bool,
    /// Turn zones off: claims that depend on them must fail
    #[arg(long)]
    pub no_zones: bool,
    /// Turn simultaneous bindings off: claims that depend on them must fail
    #[arg(long)]
    pub no_simultaneous: bool,
}

/// Benchmarks.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Measure time and memory of tunnel set-ups, compared with the cryptography alone
    #[command(
        after_help = "Exit status 1 if tunnels did not come up. A missed goal does not \
                            change it."
    )]
    Ike(BenchIke),
    /// Measure sealing and opening packets in memory, compared with the cryptography alone
    #[command(
        after_help = "Exit status 1 if packets did not get through. A missed goal does not \
                            change it."
    )]
    Esp(BenchEsp),
    /// Measure throughput between two hosts, compared with the bare wire and other programs
    #[command(
        after_help = "Exit status 1 if tunnels did not come up. A missed goal does not \
                            change it."
    )]
    Peers(BenchPeers),
    /// Send datagrams through constant rekeys, and check for losses and growing memory
    #[command(
        after_help = "Exit status 1 if a datagram was lost or the memory of a daemon has grown."
    )]
    Soak(BenchSoak),
    /// Measure echoes through very many tunnels at once, compared with one tunnel
    #[command(
        after_help = "Exit status 1 if a tunnel did not come up or an echo was lost. A missed goal \
                            does not change it."
    )]
    Sas(BenchSas),
    /// Measure a tunnel and new set-ups under seven floods, compared with the same floods filtered
    /// out
    #[command(after_help = "Exit status 1 if a set-up failed. A missed goal does not change it.")]
    Flood(BenchFlood),
}

/// Length of the floods. Without options: 5 rounds of 3 s.
#[derive(Debug, Group)]
pub struct BenchFlood {
    /// Measure less: one round of 1 s
    #[arg(long)]
    pub quick: bool,
    /// Length of each turn, in seconds [default: 3]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=60))]
    pub seconds: Option<u32>,
    /// Only these floods [default: all]
    #[arg(long, value_name = "FLOOD", value_delimiter = ',', value_parser = flood())]
    pub only: Vec<Flood>,
    /// Give the crowd a wrong key: the benchmark must fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// Parses a flood by its name.
fn flood() -> impl TypedValueParser<Value = Flood> {
    let words = PossibleValuesParser::new(Flood::ALL.map(Flood::word));
    words.try_map(|word| {
        let named = |flood: &Flood| flood.word() == word;
        Flood::ALL
            .into_iter()
            .find(named)
            .ok_or("no flood has this name")
    })
}

/// Number of tunnels. Without options: 100000 tunnels, 24 rounds.
#[derive(Debug, Group)]
pub struct BenchSas {
    /// Measure less: 3 rounds
    #[arg(long)]
    pub quick: bool,
    /// Tunnels, each with an SA for each direction
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(64..=200_000))]
    pub sas: u32,
    /// Give the crowd a wrong key: the benchmark must fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// Length of the run. Without options: a minute.
#[derive(Debug, Group)]
pub struct BenchSoak {
    /// Length in seconds, from a minute to a week
    #[arg(long, value_name = "S", default_value = "60", value_parser = clap::value_parser!(u32).range(60..=604_800))]
    pub seconds: u32,
    /// Plot memory over time into an SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Let the gateway drop packets: the benchmark must fail
    #[arg(long)]
    pub lossy: bool,
}

/// Loads of a tunnel between two hosts. Without options: 5 rounds of 3 s for each.
#[derive(Debug, Group)]
pub struct BenchPeers {
    /// Measure less: one round of 1 s
    #[arg(long)]
    pub quick: bool,
    /// Length of each load, in seconds [default: 3]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=300))]
    pub seconds: Option<u32>,
    /// Plot the results into an SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Use AES-GCM of libipsec-mb, as with `aead`, also in the forwarder
    #[arg(long)]
    pub ipsec_mb: bool,
    /// Give the ends different keys: the benchmark must fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// Rounds of packets. Without options: 300 rounds.
#[derive(Debug, Group)]
pub struct BenchEsp {
    /// Measure less: 20 rounds
    #[arg(long)]
    pub quick: bool,
    /// Use AES-GCM of libipsec-mb, as with `aead`, and time its calls as well
    #[arg(long)]
    pub ipsec_mb: bool,
    /// Number of SAs in the rows with many SAs
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub sas: u32,
    /// Give the receiver wrong keys: the benchmark must fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// Rounds of set-ups. Without options: 7 rounds of 400, 16 under way at once.
#[derive(Debug, Group)]
pub struct BenchIke {
    /// Measure less: 3 rounds of 100, or 3 s of a flood
    #[arg(long)]
    pub quick: bool,
    /// Number of set-ups in each round
    #[arg(long, value_name = "N", value_parser = setups(), conflicts_with_all = ["simultaneous", "flood"])]
    pub setups: Option<u32>,
    /// Measure set-ups while N tunnels are up instead, also of strongSwan, for each N of the list
    #[arg(
        long,
        value_name = "N,N,...",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "16,1000,10000",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(16..=200_000),
        conflicts_with_all = ["simultaneous", "flood"]
    )]
    pub tunnels: Option<Vec<u32>>,
    /// Start N set-ups at once instead
    #[arg(long, value_name = "N", value_parser = setups(), conflicts_with = "flood")]
    pub simultaneous: Option<u32>,
    /// Set up 100 a second instead, first in peace, then under PER_SECOND spoofed requests a second
    #[arg(
        long,
        value_name = "PER_SECOND",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "50000",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub flood: Option<u32>,
    /// Length of each half of a flood, in seconds [default: 10]
    #[arg(long, value_name = "S", requires = "flood", value_parser = clap::value_parser!(u32).range(1..=300))]
    pub seconds: Option<u32>,
    /// Give initiators a wrong key: the benchmark must fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// Each set-up has its own address and its own table in the responder's configuration.
fn setups() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=60_000)
}

/// Default folder for results.
const LAB_FOLDER: &str = "strata-lab";

/// Default folder for results with their raw data.
const BUNDLE_FOLDER: &str = "strata-lab-bundle";

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
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
        Commands that need no daemon are `check`, `key`, `doctor`, `audit`, `pki`, `demo`, \
        `lab` and\n`bench`. `strata help COMMAND` and `--help` show the same as this page.\n";

    #[test]
    fn the_reference_page_has_every_command() {
        let commands = pages::command_line(Args::command());
        let page = format!("{}{INTRODUCTION}{commands}", pages::HEAD);
        pages::check("reference/strata.md", &page);
    }

    #[test]
    fn the_demos_defaults_are_the_labs() {
        let Ok(Args {
            verb: Verb::Demo(demo),
            ..
        }) = Args::try_parse_from(["strata", "demo"])
        else {
            panic!("`strata demo` is a command");
        };
        let default = lab::demo::Options::default();
        assert_eq!(demo.seconds, default.duration.as_secs());
        assert_eq!(
            (demo.seed, demo.bits_per_error),
            (default.seed, default.ber)
        );
    }

    #[test]
    fn the_defaults_of_a_walk_are_the_labs() {
        let Ok(Args {
            verb:
                Verb::Demo(Demo {
                    other: Some(OtherDemo::Roam(roam)),
                    ..
                }),
            ..
        }) = Args::try_parse_from(["strata", "demo", "roam"])
        else {
            panic!("`strata demo roam` is a command");
        };
        let default = lab::demo::roam::Options::default();
        assert_eq!(roam.handover, default.handover.name());
        assert_eq!(roam.moves, default.moves);
        assert_eq!(roam.stay, default.stay.as_secs());
    }
}
