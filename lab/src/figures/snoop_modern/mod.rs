//! Gain from SNOOP for the senders of today, and conditions without a gain.

use crate::experiment::{Claim, Condition, Figure, Finding, Results, bits, ratio};
use crate::plot::{Map, Plot, Tile};
use crate::scene::{Sender, Setup};

/// The figure.
pub const FIGURE: Figure = Figure {
    name: "snoop-modern",
    title: "What SNOOP is worth to the senders of today",
    claims: &[
        Claim {
            says: "The gain of CUBIC is larger where the wired hop is longer.",
            judged_by: &["CUBIC + SACK, 256k: gain at 100 ms over gain at 10 ms"],
        },
        Claim {
            says: "Where SNOOP does no good, it does no harm.",
            judged_by: &["*: median of zoned + SNOOP over zoned"],
        },
    ],
    setting: "No paper's figure. SNOOP was made for Reno. Servers now send with CUBIC and SACK, \
              which still takes a loss for congestion but recovers from many at once, or with BBR, \
              which paces by the rate it measures and does not mind single losses. A short wired \
              hop leaves a local repair little to win, so the gain may be nothing, as for BBR. As \
              mml-fig14, in zones with SNOOP over zones without, with a wired hop of 10 to 250 ms \
              each way. The window and SNOOP's cache have today's sizes: a receive buffer of \
              250,000 octets and 256 packets. At 250 ms the buffer limits what a perfect link \
              would carry.",
    parameters: &[],
    conditions: |quick| match quick {
        true => conditions(&[10, 100], &[0, 256 << 10]),
        false => conditions(&DELAYS, &ERRORS),
    },
    findings,
    plots,
    traces: false,
    zones: false,
};

const SENDERS: [Sender; 2] = [Sender::Cubic, Sender::Bbr];
const DELAYS: [u64; 4] = [10, 50, 100, 250];
const ERRORS: [u64; 4] = [0, 1 << 20, 256 << 10, 64 << 10];

fn conditions(delays: &[u64], errors: &[u64]) -> Vec<Condition> {
    let mut all = Vec::new();
    for sender in SENDERS {
        for &wired_ms in delays {
            for &one_error_in in errors {
                let condition = condition(sender, wired_ms, one_error_in);
                all.extend([condition, condition.with(Setup::Zoned)]);
            }
        }
    }
    all
}

fn condition(sender: Sender, wired_ms: u64, one_error_in: u64) -> Condition {
    Condition {
        wired_ms,
        modern: true,
        ..Condition::new(Setup::ZonedSnoop, sender, one_error_in)
    }
}

fn findings(results: &Results) -> Vec<Finding> {
    let harmless = results
        .conditions()
        .filter(|condition| condition.setup == Setup::ZonedSnoop)
        .map(|condition| {
            let name = (condition.sender.name(), bits(condition.one_error_in));
            let what = format!(
                "{}, {} ms, {}: median of zoned + SNOOP over zoned",
                name.0, condition.wired_ms, name.1
            );
            let measured = results.median_gain(condition, &condition.with(Setup::Zoned));
            Finding::at_least(what, 0.95, measured)
        });
    harmless.chain([grows(results)]).collect()
}

/// Claims that the gain grows with the wired hop.
fn grows(results: &Results) -> Finding {
    let gains = |wired_ms| {
        let condition = condition(Sender::Cubic, wired_ms, 256 << 10);
        results.gains(&condition, &condition.with(Setup::Zoned))
    };
    let what = "CUBIC + SACK, 256k: gain at 100 ms over gain at 10 ms";
    let near = gains(10);
    let pairs = gains(100).into_iter();
    let pairs = pairs.filter_map(|(seed, far)| Some((far, *near.get(&seed)?)));
    Finding::at_least(what, 1.0, ratio(&pairs.collect::<Vec<_>>()))
}

fn plots(results: &Results) -> Vec<Plot> {
    let map = |sender: Sender| {
        let row =
            |&delay: &u64| ERRORS.map(|errors| tile(results, &condition(sender, delay, errors)));
        let map = Map {
            title: format!("Gain of SNOOP in zones, {}", sender.name()),
            columns: (
                "bits for each bit error on the lossy hop".to_owned(),
                ERRORS.map(bits).into(),
            ),
            rows: (
                "wired hop".to_owned(),
                DELAYS.map(|delay| format!("{delay} ms")).into(),
            ),
            tiles: DELAYS.iter().map(|delay| row(delay).into()).collect(),
        };
        Plot::map(format!("gain-{}", sender.key()), map)
    };
    SENDERS.map(map).into()
}

fn tile(results: &Results, condition: &Condition) -> Tile {
    let gain = results.gain(condition, &condition.with(Setup::Zoned));
    let Some(gain) = gain else {
        return Tile::default();
    };
    let interval = gain
        .interval
        .map(|[low, high]| format!("{low:.2} to {high:.2}"));
    Tile {
        ratio: Some(gain.value),
        text: [format!("× {:.2}", gain.value), interval.unwrap_or_default()],
    }
}
