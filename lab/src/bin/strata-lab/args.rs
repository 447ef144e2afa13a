//! The command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as Group, Parser, Subcommand};
use lab::bench::flood::Kind as Flood;
use lab::bench::ike::resume::Way;
use logs::{Column, Format, Zone};
use std::path::PathBuf;

/// The lab of Strata: demos, benchmarks, figures of papers, logs of gateways, and tests with other
/// implementations.
#[derive(Debug, Parser)]
#[command(
    name = "strata-lab",
    version,
    after_help = "Exit status: 0 success, 1 a measurement or test failed, 2 wrong usage, or a \
                  machine that cannot run it."
)]
pub struct Args {
    /// Print JSON, one object per line, errors included
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    pub verb: Verb,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Measure a protected download over a lossy link, on this machine alone; needs no root
    Demo(Demo),
    /// Measure the performance of tunnels on this machine; needs no root
    #[command(subcommand)]
    Bench(Bench),
    /// Reproduce the figures of the papers on this machine, and check them; needs no root
    #[command(subcommand)]
    Figures(Figures),
    /// Find out from the logs of a gateway what caching sessions would save; needs no root
    #[command(subcommand)]
    Logs(Logs),
    /// Test tunnels with every strongSwan at hand, with any two choices together at least once
    #[command(after_help = "Exit status 1 if a cell failed twice.")]
    Interop(Interop),
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
    /// Walk out of a Wi-Fi into a cellular network and back, with a call and a download
    #[command(
        after_help = "Exit status 1 if the call was silent for long or lost much, the download is \
                            not whole or was slow, the tunnel was not where the host was, or \
                            anything but ESP and IKE was on the wire."
    )]
    Move(Move),
}

/// Options of a move between two networks. Without options: 40 seconds, by soft hand-overs.
#[derive(Debug, Group)]
pub struct Move {
    /// Let both networks carry packets all the time, and the Wi-Fi break off without a warning
    #[arg(long)]
    pub paths: bool,
    /// Move the tunnel only when its path is gone: the demo must fail
    #[arg(long, conflicts_with = "paths")]
    pub hard: bool,
    /// Seconds in each network
    #[arg(long, value_name = "S", default_value_t = 6, value_parser = clap::value_parser!(u64).range(3..=60))]
    pub stay: u64,
    /// Seed of losses and content
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Plot download and call over time into an SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Write the packets on the wire into a file for Wireshark, the first 128 octets of each
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Keep configurations and logs
    #[arg(long)]
    pub keep: bool,
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

/// Commands for figures.
#[derive(Debug, Subcommand)]
pub enum Figures {
    /// List the figures and tables, and the time that each takes
    List,
    /// Measure figures and tables; exit status 1 if a claim does not hold
    Run(Run),
    /// Write an HTML page of all results in a folder
    Report {
        /// Folder with results
        #[arg(long, value_name = "DIR", default_value = FOLDER)]
        out: PathBuf,
    },
    /// Copy results and their raw data into a folder that a reviewer can check
    Bundle {
        /// Folder with results
        #[arg(long, value_name = "DIR", default_value = FOLDER)]
        out: PathBuf,
        /// Folder to make
        #[arg(long, value_name = "DIR", default_value = BUNDLE_FOLDER)]
        to: PathBuf,
    },
    /// Compute every number and verdict of a bundle again; exit status 1 if one was changed
    Verify {
        /// Folder that `strata-lab figures bundle` wrote
        #[arg(value_name = "DIR", default_value = BUNDLE_FOLDER)]
        folder: PathBuf,
    },
}

/// Options of a measurement.
#[derive(Debug, Group)]
pub struct Run {
    /// Names of figures and tables, from `strata-lab figures list`
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Measure less: minutes instead of an hour
    #[arg(long)]
    pub quick: bool,
    /// Folder for results; existing results are not measured again
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    pub out: PathBuf,
    /// Number of runs of each condition
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Length of each download, in seconds
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(2..=3600))]
    pub seconds: Option<u64>,
    /// Number of clients that lose their gateway at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub clients: Option<u32>,
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
    /// Turn the resumption of sessions off: claims that depend on it must fail
    #[arg(long)]
    pub no_resumption: bool,
    /// Turn MOBIKE off: claims that depend on it must fail
    #[arg(long)]
    pub no_mobike: bool,
    /// Turn transport mode off: claims that depend on it must fail
    #[arg(long)]
    pub no_transport: bool,
    /// Turn clones of IKE SAs off: claims that depend on them must fail
    #[arg(long)]
    pub no_clones: bool,
    /// Use one path where several could carry packets: claims that depend on them must fail
    #[arg(long)]
    pub no_paths: bool,
    /// Transfer in clear where tunnels should protect: claims that depend on them must fail
    #[arg(long)]
    pub no_tunnels: bool,
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
    #[arg(long, value_name = "FLOOD", value_delimiter = ',', value_parser = one_of(Flood::ALL, Flood::word))]
    pub only: Vec<Flood>,
    /// Give the crowd a wrong key: the benchmark must fail
    #[arg(long)]
    pub wrong_key: bool,
}

/// Parses one of these values by its word.
fn one_of<T, const N: usize>(
    all: [T; N],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let words = PossibleValuesParser::new(all.map(word));
    words.try_map(move |name| {
        let mut all = all.into_iter();
        all.find(|one| word(*one) == name)
            .ok_or("no value has this name")
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
    /// Number of rounds [default: 7]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=7),
        conflicts_with_all = ["simultaneous", "flood"]
    )]
    pub rounds: Option<u32>,
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
    /// Measure sessions that are lost and resumed in this way instead, beside full exchanges
    #[arg(
        long,
        value_name = "WAY",
        value_parser = one_of(Way::ALL, Way::word),
        conflicts_with_all = ["tunnels", "simultaneous", "flood"]
    )]
    pub resume: Option<Way>,
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

/// Commands for logs.
#[derive(Debug, Subcommand)]
pub enum Logs {
    /// Show load, users and visits, and what each caching strategy saves, with a recommendation
    Analyse(Analyse),
    /// Write a log with the characteristics of the paper's (004, table II)
    Synth(Synth),
}

/// Logs to analyse. They are read once, in a stream.
#[derive(Debug, Group)]
pub struct Analyse {
    /// Files of the log, plain or compressed with gzip or zstd, of rotated ones the oldest first by
    /// their times; - for standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Format of all files [default: each file shows its own]
    #[arg(long, value_parser = format_parser())]
    pub format: Option<Format>,
    /// Meaning of a column of a table, such as login=user: user, gateway, address, begin, end,
    /// duration, received, sent
    #[arg(long = "column", value_name = "NAME=MEANING", value_parser = column)]
    pub columns: Vec<(String, Column)>,
    /// Zone of times that have none, and of days: Z, +01:00
    #[arg(long, default_value = "Z", value_parser = zone, allow_hyphen_values = true)]
    pub zone: Zone,
    /// Read the files in this order
    #[arg(long)]
    pub in_order: bool,
    /// Most entries in the cache of a gateway
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub entries: u32,
    /// CPU time of a full exchange at the gateway in microseconds, from `strata-lab bench ike`
    #[arg(long, value_name = "US", requires = "resumed_us", value_parser = clap::value_parser!(u32).range(1..))]
    pub full_us: Option<u32>,
    /// CPU time of a resumed session, from `strata-lab bench ike --resume skid3`
    #[arg(long, value_name = "US", requires = "full_us", value_parser = clap::value_parser!(u32).range(1..))]
    pub resumed_us: Option<u32>,
    /// Write a page, the figures and the numbers into a folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the sessions without names and addresses into a new table that can be given away
    #[arg(long, value_name = "FILE")]
    pub anonymise: Option<PathBuf>,
}

/// A synthetic log.
#[derive(Debug, Group)]
pub struct Synth {
    /// New file of the log, a table; - for standard output
    pub file: PathBuf,
    /// Column of table II
    #[arg(long, default_value = "wireless", value_parser = ["wireless", "remote"])]
    pub like: String,
    /// Number of connections, with users in proportion [default: the paper's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub connections: Option<u64>,
    /// Connections after which the user soon comes back (median 20 minutes), in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=95))]
    pub returns: u32,
    /// Seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.map(Format::name);
    PossibleValuesParser::new(names).map(|name| {
        let named = Format::ALL.into_iter().find(|format| format.name() == name);
        named.unwrap_or(Format::Csv)
    })
}

fn column(text: &str) -> Result<(String, Column), String> {
    let (name, meaning) = text.split_once('=').ok_or("write NAME=MEANING")?;
    let column = match meaning {
        "user" => Column::User,
        "gateway" => Column::Gateway,
        "address" => Column::Address,
        "begin" => Column::Begin,
        "end" => Column::End,
        "duration" => Column::Duration,
        "received" => Column::Received,
        "sent" => Column::Sent,
        other => return Err(format!("no column means {other}")),
    };
    Ok((name.to_owned(), column))
}

fn zone(text: &str) -> Result<Zone, String> {
    Zone::read(text).ok_or_else(|| "write Z, +hh, +hhmm or +hh:mm".to_owned())
}

/// Each set-up has its own address and its own table in the responder's configuration. There are a
/// million inner addresses, and names of six digits: enough for all rounds.
fn setups() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=100_000)
}

/// Default folder for results.
const FOLDER: &str = "strata-lab";

/// Default folder for results with their raw data.
const BUNDLE_FOLDER: &str = "strata-lab-bundle";

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

/// Cells of the matrix.
#[derive(Debug, Group)]
pub struct Interop {
    /// Test all combinations of choices: hours
    #[arg(long)]
    pub full: bool,
    /// Only the cells with these numbers on the page [default: all]
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub only: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    const INTRODUCTION: &str = "# strata-lab\n\n\
        Demos, benchmarks and figures run `stratad` between network namespaces of this machine.\n\
        `strata-lab help COMMAND` and `--help` show the same as this page.\n";

    #[test]
    fn the_reference_page_has_every_command() {
        let commands = pages::command_line(Args::command());
        let page = format!("{}{INTRODUCTION}{commands}", pages::HEAD);
        pages::check("reference/strata-lab.md", &page);
    }

    #[test]
    fn the_demos_defaults_are_the_labs() {
        let Ok(Args {
            verb: Verb::Demo(demo),
            ..
        }) = Args::try_parse_from(["strata-lab", "demo"])
        else {
            panic!("`strata-lab demo` is a command");
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
        }) = Args::try_parse_from(["strata-lab", "demo", "roam"])
        else {
            panic!("`strata-lab demo roam` is a command");
        };
        let default = lab::demo::roam::Options::default();
        assert_eq!(roam.handover, default.handover.name());
        assert_eq!(roam.moves, default.moves);
        assert_eq!(roam.stay, default.stay.as_secs());
    }

    #[test]
    fn the_defaults_of_a_move_are_the_labs() {
        let Ok(Args {
            verb:
                Verb::Demo(Demo {
                    other: Some(OtherDemo::Move(moved)),
                    ..
                }),
            ..
        }) = Args::try_parse_from(["strata-lab", "demo", "move"])
        else {
            panic!("`strata-lab demo move` is a command");
        };
        let default = lab::demo::moves::Options::default();
        assert_eq!(moved.stay, default.stay.as_secs());
        assert_eq!(moved.seed, default.seed);
    }
}
