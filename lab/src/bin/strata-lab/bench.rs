//! `strata-lab bench`: passes the arguments to the lab and prints its measurements.

use crate::args::{Bench, BenchEsp, BenchFlood, BenchIke, BenchPeers, BenchSas};
use crate::drawn::drawn;
use ipsec_mb::IpsecMb;
use lab::bench::esp;
use lab::bench::ike::{self, Load, Options, growth, resume};
use lab::bench::{Measured, flood, peers, sas, soak};
use lab::obstacle::Obstacle;
use lab::{interrupt, testbed};
use terminal::{Exit, Output};

/// Rounds, and set-ups per round, unless the command line has others.
const ROUNDS: (usize, u32) = (7, 400);
const QUICK_ROUNDS: (usize, u32) = (3, 100);

/// Configured peers whose memory `bench ike --tunnels` measures.
const CONFIGURED: usize = 10_000;
const QUICK_CONFIGURED: usize = 1000;

/// Set-ups in progress at once. The number is low enough that the responder asks for no cookies.
const AT_ONCE: usize = 16;

/// Length of each half of a flood, in seconds.
const SECONDS: u32 = 10;
const QUICK_SECONDS: u32 = 3;

/// Rounds, and seconds of each turn, of `bench peers` and `bench flood`.
const TURNS: (u32, u32) = (5, 3);
const QUICK_TURNS: (u32, u32) = (1, 1);

/// Rounds of `bench esp`.
const PACKET_ROUNDS: u32 = 300;
const QUICK_PACKET_ROUNDS: u32 = 20;

/// Rounds of `bench sas`.
const VOLLEYS: u32 = 24;
const QUICK_VOLLEYS: u32 = 3;

/// Runs a benchmark. Must be called before the first thread starts, because most benchmarks enter
/// namespaces of their own.
pub fn run(bench: &Bench, output: &Output) -> Result<Exit, Obstacle> {
    match bench {
        Bench::Ike(ike) if ike.tunnels.is_some() => {
            apart(|| growth::measure(&crowded(ike))).map(|report| tell(&report, output))
        }
        Bench::Ike(ike) if let Some(way) = ike.resume => {
            apart(|| resume::measure(&resumed(ike, way))).map(|report| tell(&report, output))
        }
        Bench::Ike(ike) => {
            apart(|| ike::measure(&options(ike))).map(|report| tell(&report, output))
        }
        Bench::Esp(esp) => provide(esp.ipsec_mb)
            .and_then(|()| esp::measure(&packets(esp)))
            .map(|report| tell(&report, output)),
        Bench::Peers(peers) => apart(|| {
            provide(peers.ipsec_mb)?;
            let measure = || peers::measure(&turns(peers));
            drawn(peers.plot.as_deref(), measure, peers::Report::plot)
        })
        .map(|report| tell(&report, output)),
        Bench::Soak(soak) => apart(|| {
            let options = soak::Options {
                seconds: soak.seconds,
                lossy: soak.lossy,
            };
            let measure = || soak::measure(&options);
            drawn(soak.plot.as_deref(), measure, soak::Report::plot)
        })
        .map(|report| tell(&report, output)),
        Bench::Sas(sas) => {
            apart(|| sas::measure(&volleys(sas))).map(|report| tell(&report, output))
        }
        Bench::Flood(flood) => {
            apart(|| flood::measure(&floods(flood))).map(|report| tell(&report, output))
        }
    }
}

/// Selects libipsec-mb as the provider of AES-GCM, if requested.
fn provide(ipsec_mb: bool) -> Result<(), Obstacle> {
    if ipsec_mb {
        let provided = IpsecMb::provide();
        provided.map_err(|error| {
            let fix = error.fix().unwrap_or("omit `--ipsec-mb`");
            Obstacle::new(error.to_string(), fix)
        })?;
    }
    Ok(())
}

/// Measures in namespaces of their own, which leave nothing behind.
fn apart<T>(measure: impl FnOnce() -> Result<T, Obstacle>) -> Result<T, Obstacle> {
    testbed::enter()?;
    interrupt::tidy()?;
    measure()
}

/// Prints a report: its text and its verdict, or all of it as JSON.
fn tell(report: &impl Measured, output: &Output) -> Exit {
    let complete = report.is_complete();
    if output.json {
        let line = serde_json::to_string(report).expect("a report has only string keys");
        output.print_json(&line);
    } else {
        let verdict = match complete {
            true => report.verdict(),
            false => output.paint().bad(report.verdict().trim_end()) + "\n",
        };
        output.print(&format!("{}\n{verdict}", report.body()));
    }
    match complete {
        true => Exit::Done,
        false => Exit::No,
    }
}

fn turns(asked: &BenchPeers) -> peers::Options {
    let (rounds, seconds) = if asked.quick { QUICK_TURNS } else { TURNS };
    peers::Options {
        rounds,
        seconds: asked.seconds.unwrap_or(seconds),
        wrong_key: asked.wrong_key,
    }
}

fn volleys(asked: &BenchSas) -> sas::Options {
    sas::Options {
        sas: asked.sas as usize,
        rounds: if asked.quick { QUICK_VOLLEYS } else { VOLLEYS },
        wrong_key: asked.wrong_key,
    }
}

fn floods(asked: &BenchFlood) -> flood::Options {
    let (rounds, seconds) = if asked.quick { QUICK_TURNS } else { TURNS };
    let kinds = match &asked.only[..] {
        [] => flood::Kind::ALL.into(),
        only => only.into(),
    };
    flood::Options {
        kinds,
        rounds,
        seconds: asked.seconds.unwrap_or(seconds),
        wrong_key: asked.wrong_key,
    }
}

fn packets(esp: &BenchEsp) -> esp::Options {
    esp::Options {
        rounds: if esp.quick {
            QUICK_PACKET_ROUNDS
        } else {
            PACKET_ROUNDS
        },
        sas: esp.sas as usize,
        wrong_key: esp.wrong_key,
    }
}

fn options(ike: &BenchIke) -> Options {
    Options {
        load: load(ike),
        wrong_key: ike.wrong_key,
    }
}

/// Returns the options of set-ups while many tunnels are up, the fewest first.
/// Returns the number of rounds, and that of set-ups in each.
fn rounds(ike: &BenchIke) -> (usize, usize) {
    let (rounds, setups) = if ike.quick { QUICK_ROUNDS } else { ROUNDS };
    (
        ike.rounds.map_or(rounds, |rounds| rounds as usize),
        ike.setups.unwrap_or(setups) as usize,
    )
}

fn crowded(ike: &BenchIke) -> growth::Options {
    let (rounds, setups) = rounds(ike);
    let tunnels = ike.tunnels.iter().flatten();
    let mut tunnels: Vec<_> = tunnels.map(|tunnels| *tunnels as usize).collect();
    tunnels.sort_unstable();
    growth::Options {
        tunnels,
        rounds,
        setups,
        configured: if ike.quick {
            QUICK_CONFIGURED
        } else {
            CONFIGURED
        },
        wrong_key: ike.wrong_key,
    }
}

fn resumed(ike: &BenchIke, way: resume::Way) -> resume::Options {
    let (rounds, setups) = rounds(ike);
    resume::Options {
        way,
        rounds,
        setups,
        control: ike.wrong_key.then_some(resume::Control::WrongKey),
    }
}

fn load(ike: &BenchIke) -> Load {
    let (rounds, setups) = rounds(ike);
    let seconds = if ike.quick { QUICK_SECONDS } else { SECONDS };
    match (ike.simultaneous, ike.flood) {
        (Some(initiators), _) => Load::Simultaneous {
            initiators: initiators as usize,
        },
        (None, Some(spoofed)) => Load::Flood {
            spoofed,
            seconds: ike.seconds.unwrap_or(seconds),
        },
        (None, None) => Load::Rate {
            rounds,
            setups,
            at_once: AT_ONCE,
        },
    }
}
