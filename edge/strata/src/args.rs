//! The command line.

use crate::audit::Wanted;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as Group, Parser, Subcommand};
use control::Request;
use lab::bench::flood::Kind as Flood;
use model::Identity;
use std::net::IpAddr;
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
    #[command(flatten)]
    Ask(Question),
    /// Show the audit log: who was allowed to read what, had keys for it, and until when
    Audit(Wanted),
    /// Check a configuration and the keys it names; needs no daemon, and root only for its keys
    Check {
        /// The configuration
        #[arg(default_value = config::DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Examine this machine: what keeps Strata from working, why it matters, what changes it
    Doctor {
        /// The configuration
        #[arg(default_value = config::DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Try it all on this machine: a protected download over a lossy link, measured; no root
    Demo(Demo),
    /// Make certificates and keys, revoke them, and look into them; needs no daemon
    #[command(subcommand)]
    Pki(Pki),
    /// Measure the figures of the papers on this machine, and judge them; no root
    #[command(subcommand)]
    Lab(Lab),
    /// Measure what tunnels cost on this machine; no root
    #[command(subcommand)]
    Bench(Bench),
}

/// What the daemon answers.
#[derive(Debug, Subcommand)]
pub enum Question {
    /// Bring tunnels up and keep them up
    Up {
        /// Name of a [peer.NAME]; without it every peer that has an address
        peer: Option<String>,
        /// Only its tunnel of this name, a [peer.NAME.child.NAME]
        #[arg(long, value_name = "NAME", requires = "peer")]
        child: Option<String>,
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
    /// Take tunnels down; until `up` the other end is refused as well
    Down {
        /// Name of a [peer.NAME]; without it every peer
        peer: Option<String>,
        /// Only its tunnel of this name, a [peer.NAME.child.NAME]
        #[arg(long, value_name = "NAME", requires = "peer")]
        child: Option<String>,
    },
    /// Make new keys with a peer; nothing is lost meanwhile
    Rekey {
        /// Name of its table
        peer: String,
        /// For the IKE SA, not for the tunnel
        #[arg(long)]
        ike: bool,
    },
    /// Have both ends prove anew who they are; nothing is lost meanwhile
    Reauth {
        /// Name of its table
        peer: String,
    },
    /// Send a peer that connected to another gateway, which has to have the same id
    Redirect {
        /// Name of its table
        peer: String,
        /// Address of the other gateway
        to: IpAddr,
    },
    /// Move a tunnel to another address of ours; nothing is made anew
    Move {
        /// Name of a [peer.NAME]
        peer: String,
        /// The address it is to leave from; without it the best, as the routes have it
        #[arg(long, value_name = "ADDRESS")]
        from: Option<IpAddr>,
        /// Without a pause: by another IKE SA there, or not at all
        #[arg(long)]
        soft: bool,
    },
    /// Choose how packets to a peer are protected, among what both ends agreed on; nothing is lost
    Level {
        /// Name of a [peer.NAME]
        peer: String,
        /// `integrity`: what [peer.NAME.level] names goes without encryption; `auto`: that, but for every
        /// so many-th packet, as `every` says; `zoned`: all in zones; `opaque`: licensed nodes read nothing
        #[arg(value_parser = ["auto", "zoned", "opaque", "integrity"])]
        level: String,
    },
    /// Show where tunnels go, and where they could
    Paths,
    /// Show peers, their SAs, and what was dropped
    Status,
    /// Show who can read which part of the packets
    Zones,
    /// Show the TCP flows that this licensed node repairs
    Flows,
    /// Show which addresses the pools have lent, and to whom
    Leases,
    /// Explain why a peer is up or not, and which line to change
    Explain {
        /// Name of a [peer.NAME], [licensed.NAME], [gateway.NAME] or [neighbour.NAME]
        peer: String,
    },
    /// Write the keys of new SAs for Wireshark: whoever reads them reads everything
    Keylog {
        /// A folder, or `off`
        #[arg(value_name = "DIR|off", value_parser = folder_or_off)]
        folder: Folder,
    },
    /// Apply what changed in stratad's configuration, and leave alone what did not
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

/// How the demo runs. The switches that take something away make it fail: that is their use.
#[derive(Debug, Group)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Demo {
    #[command(subcommand)]
    pub other: Option<OtherDemo>,
    /// Length of each download
    #[arg(long, default_value_t = 45, value_parser = clap::value_parser!(u64).range(5..=3600))]
    pub seconds: u64,
    /// What bit errors and content are drawn from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// One bit error in so many bits on the lossy hop, 0 for none
    #[arg(long, value_name = "BITS", default_value_t = 512 << 10)]
    pub bits_per_error: u64,
    /// Leave SNOOP off
    #[arg(long)]
    pub no_snoop: bool,
    /// Leave the licence out
    #[arg(long, conflicts_with = "license_payload")]
    pub no_licence: bool,
    /// License the payload too, which the search for it must then notice
    #[arg(long)]
    pub license_payload: bool,
    /// Keep configurations and logs
    #[arg(long)]
    pub keep: bool,
}

/// What else can be shown.
#[derive(Debug, Subcommand)]
pub enum OtherDemo {
    /// Watch keys arrive with a mobile node that walks from one licensed node to the next
    #[command(
        after_help = "Exit status 1 if an agent that was left read on, or one that was visited did not."
    )]
    Roam(Roam),
}

/// How it walks. Without options: four moves, by push, in less than a minute.
#[derive(Debug, Group)]
pub struct Roam {
    /// How keys get there: sent by the gateway, there in advance, or fetched from the agent before
    #[arg(long, default_value = "push", value_parser = ["push", "pkd", "dkm"])]
    pub handover: String,
    /// How often it moves
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub moves: u32,
    /// Seconds at each agent
    #[arg(long, value_name = "S", default_value_t = 7, value_parser = clap::value_parser!(u64).range(4..=60))]
    pub stay: u64,
    /// License the agents wherever it is: those that it left read on, which must make it fail
    #[arg(long)]
    pub everywhere: bool,
    /// Keep configurations and logs
    #[arg(long)]
    pub keep: bool,
}

/// What is done with certificates and keys.
#[derive(Debug, Subcommand)]
pub enum Pki {
    /// Make a CA: `ca.pem`, which peers name in `ca`, and `ca.key`, which stays where it is
    Ca {
        /// What it is called
        #[arg(long)]
        name: String,
        /// The folder of the CA that it stands under; without it, it is a root
        #[arg(long, value_name = "DIR")]
        by: Option<PathBuf>,
        #[command(flatten)]
        made: Made,
        /// Days it is valid
        #[arg(long, default_value_t = 3650, value_parser = days())]
        days: u64,
    },
    /// Issue a certificate: `ID.pem` for `cert` and `ID.key` for `key`
    Issue {
        /// The folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// Whose it is: `alice@example.net`, `gw.example.net` or an address, as in `id`
        #[arg(long)]
        id: Identity,
        #[command(flatten)]
        made: Made,
        /// Days it is valid, at most as long as its CA
        #[arg(long, default_value_t = 365, value_parser = days())]
        days: u64,
    },
    /// Revoke certificates of a CA: adds them to its `ca.crl`, which peers name in `crl`
    Revoke {
        /// The folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// Files with the certificates
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Days until there has to be a newer list
        #[arg(long, default_value_t = 30, value_parser = days())]
        days: u64,
    },
    /// Write `ca.crl` of a CA anew before it ends, or the first one, which revokes nothing
    Crl {
        /// The folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// Days until there has to be a newer list
        #[arg(long, default_value_t = 30, value_parser = days())]
        days: u64,
    },
    /// Make a key without a certificate: `NAME.key` for `key`, and `NAME.pub` for `pubkey` at peers
    Key {
        /// What the files are called
        #[arg(long)]
        name: String,
        #[command(flatten)]
        made: Made,
    },
    /// Print the public key of a private one, for `pubkey` at peers
    Pubkey {
        /// The file with the private key
        file: PathBuf,
    },
    /// Show what the certificates or revocation lists of a PEM file say
    Show {
        /// The file
        file: PathBuf,
    },
}

/// How a key is made, and where it is put with what belongs to it.
#[derive(Debug, Group)]
pub struct Made {
    /// An Ed25519 key (RFC 8420)
    #[arg(long)]
    pub ed25519: bool,
    /// An ECDSA P-256 key, which every peer with RFC 7427 understands: the default
    #[arg(long, conflicts_with = "ed25519")]
    pub p256: bool,
    /// An ECDSA P-384 key, as suite = "strict" goes with
    #[arg(long, conflicts_with_all = ["ed25519", "p256"])]
    pub p384: bool,
    /// The folder for both files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Replace what is there
    #[arg(long)]
    pub force: bool,
}

/// At most a hundred years: not every reader can represent later dates.
fn days() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=36_500)
}

/// What the lab does.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// Name the figures and tables, and how long each takes
    List,
    /// Measure figures and tables; exit status 1 if what must hold does not
    Run(LabRun),
    /// Write one HTML page over all results of a folder
    Report {
        /// The folder with results
        #[arg(long, value_name = "DIR", default_value = LAB_FOLDER)]
        out: PathBuf,
    },
}

/// How figures are measured.
#[derive(Debug, Group)]
pub struct LabRun {
    /// Figures and tables, as `strata lab list` names them
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Measure less, in minutes instead of an hour
    #[arg(long)]
    pub quick: bool,
    /// The folder for results; what is in it already is not measured again
    #[arg(long, value_name = "DIR", default_value = LAB_FOLDER)]
    pub out: PathBuf,
    /// Runs of each condition
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Length of each download
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(2..=3600))]
    pub seconds: Option<u64>,
    /// Networks at once, at most
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub at_once: Option<usize>,
    /// Leave SNOOP off: what rests on it must fail
    #[arg(long)]
    pub no_snoop: bool,
    /// Leave zones off: what rests on them must fail
    #[arg(long)]
    pub no_zones: bool,
    /// Leave simultaneous bindings off: what rests on them must fail
    #[arg(long)]
    pub no_simultaneous: bool,
}

/// What is measured of tunnels.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Set tunnels up with a stratad: its time, its memory, and beside it the cryptography alone
    #[command(
        after_help = "Exit status 1 if tunnels did not come up. A goal that is missed changes \
                            nothing."
    )]
    Ike(BenchIke),
    /// Seal and open packets in memory: how long each takes, and beside it the cryptography alone
    #[command(
        after_help = "Exit status 1 if packets did not get through. A goal that is missed changes \
                            nothing."
    )]
    Esp(BenchEsp),
    /// Carry octets between two hosts, beside their wire alone and beside others
    #[command(
        after_help = "Exit status 1 if tunnels did not come up. A goal that is missed changes \
                            nothing."
    )]
    Peers(BenchPeers),
    /// Carry datagrams for long with new keys all the time: whether one is lost, and who grows
    #[command(after_help = "Exit status 1 if a datagram was lost or a daemon has grown.")]
    Soak(BenchSoak),
    /// Carry echoes for very many tunnels at once, beside what is carried for one
    #[command(
        after_help = "Exit status 1 if a tunnel did not come up or an echo was lost. A goal that is missed \
                            changes nothing."
    )]
    Sas(BenchSas),
    /// Carry octets through a tunnel and set others up beside seven floods, and beside the same floods dropped
    #[command(
        after_help = "Exit status 1 if a set-up was not served. A goal that is missed changes \
                            nothing."
    )]
    Flood(BenchFlood),
}

/// How long each flood lasts. Without options: 5 rounds of 3 s.
#[derive(Debug, Group)]
pub struct BenchFlood {
    /// Measure less: one round of 1 s
    #[arg(long)]
    pub quick: bool,
    /// Length of each turn [default: 3]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=60))]
    pub seconds: Option<u32>,
    /// Only these floods [default: all]
    #[arg(long, value_name = "FLOOD", value_delimiter = ',', value_parser = flood())]
    pub only: Vec<Flood>,
    /// Give the crowd another key, which must make it fail
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

/// How many. Without options: 100000 tunnels, 24 rounds.
#[derive(Debug, Group)]
pub struct BenchSas {
    /// Measure less: 3 rounds
    #[arg(long)]
    pub quick: bool,
    /// Tunnels, each with an SA for each direction
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(64..=200_000))]
    pub sas: u32,
    /// Give the crowd another key, which must make it fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// How long. Without options: a minute.
#[derive(Debug, Group)]
pub struct BenchSoak {
    /// Length, from a minute to a week
    #[arg(long, value_name = "S", default_value = "60", value_parser = clap::value_parser!(u32).range(60..=604_800))]
    pub seconds: u32,
    /// Draw memory over time into a file, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Have the gateway drop packets, which must make it fail
    #[arg(long)]
    pub lossy: bool,
}

/// How tunnels between two hosts are measured. Without options: 5 rounds of 3 s for each load.
#[derive(Debug, Group)]
pub struct BenchPeers {
    /// Measure less: one round of 1 s
    #[arg(long)]
    pub quick: bool,
    /// Length of each load [default: 3]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=300))]
    pub seconds: Option<u32>,
    /// Draw what is measured into a file, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Have AES-GCM of libipsec-mb, as `aead` in the configuration says, and in the forwarder
    #[arg(long)]
    pub ipsec_mb: bool,
    /// Give the ends different keys, which must make it fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// How packets are measured. Without options: 300 rounds.
#[derive(Debug, Group)]
pub struct BenchEsp {
    /// Measure less: 20 rounds
    #[arg(long)]
    pub quick: bool,
    /// Have AES-GCM of libipsec-mb, as `aead` in the configuration says, and time its calls beside
    #[arg(long)]
    pub ipsec_mb: bool,
    /// SAs of the rows that have many
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub sas: u32,
    /// Give the receiver other keys, which must make it fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// How set-ups are measured. Without options: 7 rounds of 400, 16 under way at once.
#[derive(Debug, Group)]
pub struct BenchIke {
    /// Measure less: 3 rounds of 100, or 3 s of a flood
    #[arg(long)]
    pub quick: bool,
    /// Set-ups in each round
    #[arg(long, value_name = "N", value_parser = setups(), conflicts_with_all = ["simultaneous", "flood"])]
    pub setups: Option<u32>,
    /// Let so many begin at once instead
    #[arg(long, value_name = "N", value_parser = setups(), conflicts_with = "flood")]
    pub simultaneous: Option<u32>,
    /// Set up 100 a second instead, in peace and then under so many spoofed requests a second
    #[arg(
        long,
        value_name = "PER_SECOND",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "50000",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub flood: Option<u32>,
    /// Length of each half of a flood [default: 10]
    #[arg(long, value_name = "S", requires = "flood", value_parser = clap::value_parser!(u32).range(1..=300))]
    pub seconds: Option<u32>,
    /// Give initiators another key, which must make it fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// Each set-up has its own address and its own table in the responder's configuration.
fn setups() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=60_000)
}

/// Default folder for results.
const LAB_FOLDER: &str = "strata-lab";

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least one network is needed".to_owned()),
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
