//! Table 3 of "Mobile multi-layered IPsec": the time of a mobile node's first registration, and of
//! a hand-over.

mod trip;
mod wires;

use crate::experiment::{
    Basis, Claim, Column, Estimate, Filled, Finding, Grid, Plan, Raw, Row, Table, median,
    median_ratio,
};
use crate::testbed::find_binary;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use trip::{DELAY, HOSTS, PASSAGES, Passage, SPACING, Scheme, measure};

/// The table.
pub const TABLE: Table = Table {
    name: "mml-table3",
    title: "What it takes to begin and to be handed over, with Mobile IP, IPsec and zones",
    claims: &[
        Claim {
            says: "With Mobile IP alone, beginning and a hand-over take the same time, nearly.",
            judged_by: &["Mobile IP: beginning over hand-over"],
        },
        Claim {
            says: "With IPsec, beginning takes 7.6 times as long as with Mobile IP alone, and a \
                   hand-over 2.2 times.",
            judged_by: &[
                "beginning: with IPsec over Mobile IP",
                "hand-over: with IPsec over Mobile IP",
            ],
        },
        Claim {
            says: "With zones, beginning takes 1.1 times as long as with IPsec.",
            judged_by: &[
                "beginning: with zones, PKD over with IPsec",
                "beginning: with zones, DKM over with IPsec",
            ],
        },
        Claim {
            says: "A hand-over takes 2.1 times as long as with Mobile IP alone where keys were \
                   distributed in advance, and 4 times where they are fetched.",
            judged_by: &[
                "hand-over: with zones, PKD over Mobile IP",
                "hand-over: with zones, DKM over Mobile IP",
            ],
        },
        Claim {
            says: "So keys in advance cost a hand-over nothing.",
            judged_by: &[
                "hand-over: with zones, PKD over with IPsec",
                "with zones, PKD: messages of the registration over those until it is answered",
            ],
        },
    ],
    setting: "The paper's times are in the table; its beginning with zones is the one without its \
              shell scripts. stratad in seven namespaces: a mobile node, four foreign agents that \
              are licensed nodes, each 10 ms from home on an emulated link, and the home agent, \
              which is the tunnel's gateway and sends a packet to the mobile node each half \
              millisecond. Total is from the request that leaves the mobile node to the first of \
              these packets that comes to it, with zones to the first in an SA whose keys its \
              agent holds. Messages are those of Mobile IP and IKE on all wires in that time, as \
              packet sockets of the kernel have seen them, each once, but for INFORMATIONAL; \
              beside are those of IKE until home has answered the registration. Own is how long \
              hosts worked: from a message that comes until the last one that is sent because of \
              it, by the kernel's time stamps at each host; it is judged for a message, beside that \
              of Mobile IP alone, by the least of the runs for each host, for what else a machine \
              does is in it. Between hosts is the link, at \
              20 ms a round trip. The next agent was heard before the link of the one before is \
              cut. Each of the three hand-overs of a run has another rp_filter on all hosts: 0, 1 \
              (strict) and 2 (loose). Totals are medians, and beside them the longest of all runs, \
              as a message that was lost and sent again shows there alone. The IKE SAs of agents \
              and home are up. A tunnel is begun before the mobile node is registered: its first \
              message has no way then, and is sent again when there is one. From agent to agent a \
              round trip takes twice that of one home: by DKM the new agent fetches keys there, \
              and reads what it passes when they have come.",
    duration: |quick| {
        let plan = if quick { Plan::QUICK } else { Plan::FULL };
        (SETUP + PASSAGES as u32 * SPACING) * (plan.seeds as u32 * Scheme::ALL.len() as u32)
    },
    rests_on: &[Basis::Zones],
    check: || {
        ["stratad", "strata"]
            .into_iter()
            .try_for_each(|name| find_binary(name).map(drop))
    },
    measure: measure_all,
    judge: |raw| Ok(judged(&complete(raw.data()?))),
};

/// Duration of namespaces, daemons, a tunnel, and its end.
const SETUP: Duration = Duration::from_secs(5);

/// Shortest time after which IKE sends a message again.
const AGAIN: Duration = Duration::from_millis(200);

/// Names of the phases, in the order in which they are measured.
const PHASES: [&str; PASSAGES] = [
    "beginning",
    "hand-over, rp_filter 0",
    "hand-over, rp_filter 1",
    "hand-over, rp_filter 2",
];

/// Measurements of a scheme.
#[derive(Serialize, Deserialize)]
struct Cell {
    scheme: Scheme,
    passages: Vec<[Passage; PASSAGES]>,
}

impl Scheme {
    /// Returns the paper's times of a beginning and of a hand-over, in microseconds. The paper has
    /// no keys that are pushed, and does not check reverse paths.
    const fn paper(self) -> [Option<i64>; 2] {
        match self {
            Self::Pure => [Some(26_000), Some(25_000)],
            Self::Ipsec => [Some(197_000), Some(54_000)],
            Self::Pkd => [Some(219_000), Some(52_700)],
            Self::Push => [None; 2],
            Self::Dkm => [Some(222_000), Some(100_000)],
        }
    }
}

/// Adds the schemes that were not measured.
fn complete(mut cells: Vec<Cell>) -> Vec<Cell> {
    for scheme in Scheme::ALL {
        if cells.iter().all(|cell| cell.scheme != scheme) {
            cells.push(Cell {
                scheme,
                passages: Vec::new(),
            });
        }
    }
    cells
}

fn measure_all(plan: &Plan) -> Raw {
    let mut cells = complete(Vec::new());
    let mut faults = Vec::new();
    for seed in 1..=plan.seeds {
        for cell in &mut cells {
            match measure(cell.scheme, plan.zones) {
                Ok(passages) => cell.passages.push(passages),
                Err(error) => {
                    let name = cell.scheme.name();
                    faults.push(format!("{name}, run {seed}: {error:#}"));
                }
            }
        }
    }
    Raw::new(&cells, faults)
}

fn judged(cells: &[Cell]) -> Filled {
    let measured = ["total", "longest", "own", "messages", "beside", "between"];
    let measured = measured.map(|name| Column::new("here", name));
    let rows = (0..PHASES.len()).flat_map(|phase| cells.iter().map(move |cell| cell.row(phase)));
    Filled {
        grid: Grid {
            columns: [Column::new("paper", "total")]
                .into_iter()
                .chain(measured)
                .collect(),
            rows: rows.collect(),
        },
        findings: findings(cells),
        faults: Vec::new(),
        plots: Vec::new(),
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Cell {
    fn row(&self, phase: usize) -> Row {
        let middle = |of: fn(&Passage) -> f64| {
            let all: Vec<_> = self.passages(phase).map(of).collect();
            median(&all).map(|middle| middle.round() as i64)
        };
        Row {
            subject: format!("{}, us", PHASES[phase]),
            name: self.scheme.name().to_owned(),
            numbers: vec![
                self.scheme.paper()[phase.min(1)],
                middle(|passage| micros(passage.total)),
                longest(self.passages(phase)).map(|longest| micros(longest).round() as i64),
                middle(|passage| micros(passage.work())),
                middle(|passage| passage.messages as f64),
                middle(|passage| passage.beside as f64),
                middle(|passage| passage.between as f64),
            ],
        }
    }

    fn passages(&self, phase: usize) -> impl Iterator<Item = &Passage> {
        self.passages.iter().map(move |passages| &passages[phase])
    }

    /// Returns the work of all hosts for a message of a hand-over, in microseconds: the least of
    /// the runs for each host, as the others have other load of the machine in them, with the
    /// setting that takes longest.
    fn work_for_a_message(&self) -> Option<f64> {
        let least = |one: [Duration; HOSTS], other: [Duration; HOSTS]| {
            std::array::from_fn(|host| one[host].min(other[host]))
        };
        let of_phase = |phase| {
            let own = self.passages(phase).map(|passage| passage.own);
            let own: Duration = own.reduce(least)?.iter().sum();
            let messages = self.passages(phase).map(|passage| passage.messages).min()?;
            Some(micros(own) / messages.max(1) as f64)
        };
        (1..PASSAGES).filter_map(of_phase).max_by(f64::total_cmp)
    }

    /// Returns the hand-overs, with all settings.
    fn moves(&self) -> impl Iterator<Item = &Passage> {
        self.passages.iter().flat_map(|passages| &passages[1..])
    }
}

fn longest<'a>(passages: impl Iterator<Item = &'a Passage>) -> Option<Duration> {
    passages.map(|passage| passage.total).max()
}

fn findings(cells: &[Cell]) -> Vec<Finding> {
    let of = |scheme| cells.iter().find(|cell| cell.scheme == scheme);
    let mut findings = Vec::new();
    for scheme in [Scheme::Pkd, Scheme::Push, Scheme::Dkm] {
        findings.extend(
            of(scheme)
                .into_iter()
                .flat_map(|cell| [silent(cell), light(cell, of(Scheme::Pure)), prompt(cell)]),
        );
    }
    findings.push(as_fast_as_mobile_ip(of(Scheme::Pure), of(Scheme::Pkd)));
    findings.push(follows(of(Scheme::Pkd), of(Scheme::Push)));
    findings.extend(of(Scheme::Dkm).map(asks_once));
    findings.push(is_near(of(Scheme::Dkm)));
    findings.extend(as_the_paper(cells));
    findings
}

/// Compared phases: the beginning, and all hand-overs.
const COMPARED: [&str; 2] = ["beginning", "hand-over"];

/// Shows the ratios of the paper's times beside ours.
fn as_the_paper(cells: &[Cell]) -> Vec<Finding> {
    const BEGINNING: usize = 0;
    const HAND_OVER: usize = 1;
    let totals = |scheme: Scheme, phase: usize| {
        let cell = cells.iter().find(|cell| cell.scheme == scheme);
        let passages = cell.into_iter().flat_map(|cell| &cell.passages);
        let all = passages.map(|passages| match phase {
            BEGINNING => micros(passages[0].total),
            // Each beginning is compared with the middle of the hand-overs that followed it.
            _ => median(
                &passages[1..]
                    .iter()
                    .map(|one| micros(one.total))
                    .collect::<Vec<_>>(),
            )
            .unwrap_or_default(),
        });
        all.collect::<Vec<_>>()
    };
    let beside = |what: String, above: (Scheme, usize), below: (Scheme, usize)| {
        let said = [above, below].map(|(scheme, phase)| scheme.paper()[phase].unwrap_or_default());
        let paper = (said[0] as f64 / said[1] as f64 * 10.0).round() / 10.0;
        let [above, below] = [above, below].map(|(scheme, phase)| totals(scheme, phase));
        let pairs: Vec<_> = above.into_iter().zip(below).collect();
        Finding::beside(what, paper, median_ratio(&pairs))
    };
    let between = |phase: usize, above: Scheme, below: Scheme| {
        let name = (COMPARED[phase], above.name(), below.name());
        let what = format!("{}: {} over {}", name.0, name.1, name.2);
        beside(what, (above, phase), (below, phase))
    };
    vec![
        beside(
            format!("{}: beginning over hand-over", Scheme::Pure.name()),
            (Scheme::Pure, BEGINNING),
            (Scheme::Pure, HAND_OVER),
        ),
        between(BEGINNING, Scheme::Ipsec, Scheme::Pure),
        between(BEGINNING, Scheme::Pkd, Scheme::Ipsec),
        between(BEGINNING, Scheme::Dkm, Scheme::Ipsec),
        between(HAND_OVER, Scheme::Ipsec, Scheme::Pure),
        between(HAND_OVER, Scheme::Pkd, Scheme::Pure),
        between(HAND_OVER, Scheme::Dkm, Scheme::Pure),
        between(HAND_OVER, Scheme::Pkd, Scheme::Ipsec),
    ]
}

/// Messages of a registration: two for each leg, as with Mobile IP alone.
const REGISTRATION: f64 = 4.0;

/// Claims that a registration waits for no other messages. Keys that agents fetch arrive while it
/// is under way.
fn silent(cell: &Cell) -> Finding {
    let name = cell.scheme.name();
    let moves = cell.moves();
    let alone = moves.map(|passage| (REGISTRATION, REGISTRATION + passage.beside as f64));
    let what = format!("{name}: messages of the registration over those until it is answered");
    Finding::at_least(what, 1.0, median_ratio(&alone.collect::<Vec<_>>()))
}

/// Claims that hosts work for a message at most twice as long as with Mobile IP alone, whose
/// messages wake the same processes of the same machine.
fn light(cell: &Cell, pure: Option<&Cell>) -> Finding {
    let alone = pure.and_then(Cell::work_for_a_message);
    let ratio = alone.zip(cell.work_for_a_message());
    let ratio = ratio.map(|(alone, own)| Estimate {
        value: 2.0 * alone / own.max(1.0),
        interval: None,
        runs: cell.passages.len(),
    });
    let name = cell.scheme.name();
    let what = format!(
        "{name}: twice what hosts work for a message of Mobile IP alone, over that for each of its own"
    );
    Finding::at_least(what, 1.0, ratio)
}

/// Claims that no hand-over waited for a message that was sent again, whatever the setting.
fn prompt(cell: &Cell) -> Finding {
    let ratio = longest(cell.moves()).map(|longest| Estimate {
        value: micros(AGAIN) / micros(longest).max(1.0),
        interval: None,
        runs: cell.passages.len(),
    });
    let name = cell.scheme.name();
    let what = format!(
        "{name}: 200 ms, before which no message is sent again, over the longest hand-over"
    );
    Finding::at_least(what, 1.0, ratio)
}

/// Claims that keys from the previous agent take one request and its answer.
fn asks_once(cell: &Cell) -> Finding {
    const ROUND_TRIP: f64 = 2.0;
    let moves = cell.moves();
    let asked = moves.map(|passage| match passage.between as f64 {
        fewer if fewer < ROUND_TRIP => (0.0, ROUND_TRIP),
        between => (ROUND_TRIP, between),
    });
    let name = cell.scheme.name();
    let what = format!("{name}: messages of a round trip over those between agents");
    Finding::at_least(what, 1.0, median_ratio(&asked.collect::<Vec<_>>()))
}

/// Claims that fetching takes no longer than a round trip between the agents, each of which is
/// twice as far from the other as from home.
fn is_near(dkm: Option<&Cell>) -> Finding {
    let there = micros(4 * DELAY);
    let moves = dkm.into_iter().flat_map(Cell::moves);
    let within = moves.map(|passage| (1.5 * there, micros(passage.link())));
    let what = "a hand-over with DKM: a round trip to the agent before, and a half, over its time on the link";
    let ratio = median_ratio(&within.collect::<Vec<_>>());
    Finding::at_least(what, 1.0, ratio)
        .detail(format!("a round trip takes {} ms", (4 * DELAY).as_millis()))
}

/// Claims that a move with keys distributed in advance takes a round trip, like the registration.
fn as_fast_as_mobile_ip(pure: Option<&Cell>, pkd: Option<&Cell>) -> Finding {
    let pairs = pairs(pkd, pure, |passage| passage.link());
    let what = "a hand-over with PKD: time on the link over that of Mobile IP alone, within a half";
    let within: Vec<_> = pairs.iter().map(|(pkd, pure)| (1.5 * pure, *pkd)).collect();
    Finding::at_least(what, 1.0, median_ratio(&within))
}

/// Claims that pushed keys arrive later, by the time of their negotiation and delivery.
fn follows(pkd: Option<&Cell>, push: Option<&Cell>) -> Finding {
    let pairs = pairs(push, pkd, |passage| passage.total);
    let what = "a hand-over by push over one with PKD, in all";
    let round_trips = 2 * DELAY;
    let detail = format!("a round trip takes {} ms", round_trips.as_millis());
    Finding::at_least(what, 1.0, median_ratio(&pairs)).detail(detail)
}

/// Returns the values of two schemes, run by run.
fn pairs(
    above: Option<&Cell>,
    below: Option<&Cell>,
    of: fn(&Passage) -> Duration,
) -> Vec<(f64, f64)> {
    let above = above.into_iter().flat_map(Cell::moves);
    let below = below.into_iter().flat_map(Cell::moves);
    above
        .zip(below)
        .map(|(above, below)| (micros(of(above)), micros(of(below))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    fn passage(total: u64, own: u64, beside: usize) -> Passage {
        Passage {
            total: Duration::from_micros(total),
            own: std::array::from_fn(|host| match host {
                0 => Duration::from_micros(own),
                _ => Duration::ZERO,
            }),
            messages: 4 + beside,
            beside,
            between: 0,
        }
    }

    fn verdicts(moves: [Passage; 5]) -> Vec<Verdict> {
        let cells: Vec<_> = Scheme::ALL
            .into_iter()
            .zip(moves)
            .map(|(scheme, passage)| Cell {
                scheme,
                passages: vec![[passage; PASSAGES]; 3],
            })
            .collect();
        let findings = judged(&cells).findings;
        let findings = findings.iter().filter(|one| one.at_least.is_some());
        findings.map(|finding| finding.verdict).collect()
    }

    const FINE: [u64; 5] = [21_000, 21_000, 22_000, 65_000, 42_000];

    fn good() -> [Passage; 5] {
        let mut moves = FINE.map(|total| passage(total, 1_000, 0));
        moves[4].between = 2;
        moves
    }

    #[test]
    fn a_hand_over_that_adds_nothing_to_its_registration_holds() {
        assert_eq!(verdicts(good()), [Holds; 13]);
    }

    #[test]
    fn a_message_beside_the_registration_fails() {
        let mut moves = good();
        moves[2].beside = 1;
        let [first, rest @ ..] = &verdicts(moves)[..] else {
            panic!("there are some");
        };
        assert_eq!(*first, Fails);
        assert!(rest.iter().all(|verdict| *verdict == Holds));
    }

    #[test]
    fn hosts_that_work_for_a_message_twice_as_long_as_with_mobile_ip_alone_fail() {
        let mut moves = good();
        moves[3].own[1] = Duration::from_micros(1_100);
        assert_eq!(verdicts(moves)[4], Fails);
    }

    /// The medians do not show it.
    #[test]
    fn one_hand_over_that_waits_for_a_message_to_be_sent_again_fails() {
        let mut cells: Vec<_> = Scheme::ALL
            .into_iter()
            .zip(good())
            .map(|(scheme, passage)| Cell {
                scheme,
                passages: vec![[Passage::default(), passage, passage, passage]; 10],
            })
            .collect();
        cells[3].passages[7][2].total = Duration::from_millis(285);
        let filled = judged(&cells);
        let failed = filled
            .findings
            .iter()
            .filter(|finding| finding.verdict == Fails);
        let failed: Vec<_> = failed.map(|finding| finding.what.as_str()).collect();
        assert!(
            matches!(&failed[..], [what] if what.contains("push: 200 ms")),
            "{failed:?}"
        );
        let row = &filled.grid.rows[2 * Scheme::ALL.len() + 3];
        assert_eq!(row.numbers[1..3], [Some(65_000), Some(285_000)], "{row:?}");
    }

    #[test]
    fn a_hand_over_with_pkd_that_takes_another_round_trip_fails() {
        let mut moves = good();
        moves[2].total = Duration::from_millis(42);
        assert_eq!(verdicts(moves)[9], Fails);
    }

    #[test]
    fn a_hand_over_with_dkm_that_asks_twice_or_not_at_all_fails() {
        for between in [0, 1, 4] {
            let mut moves = good();
            moves[4].between = between;
            assert_eq!(verdicts(moves)[11], Fails);
        }
    }

    #[test]
    fn a_hand_over_with_dkm_that_waits_for_home_as_well_fails() {
        let mut moves = good();
        moves[4].total = Duration::from_millis(65);
        assert_eq!(verdicts(moves)[12], Fails);
    }

    #[test]
    fn the_papers_ratios_stand_beside_ours() {
        let mut cells = complete(Vec::new());
        for (cell, total) in cells.iter_mut().zip(FINE) {
            let moved = passage(total, 1_000, 0);
            let begun = passage(4 * total, 1_000, 0);
            cell.passages = vec![[begun, moved, moved, moved]; 3];
        }
        let findings = as_the_paper(&cells);
        assert!(findings.iter().all(|finding| finding.verdict == Consistent));
        let said = |what: &str| {
            let found = findings
                .iter()
                .find(|finding| finding.what == what)
                .unwrap();
            let value = found.measured.unwrap().value;
            (found.paper.clone().unwrap(), (value * 10.0).round() / 10.0)
        };
        assert_eq!(
            said("Mobile IP: beginning over hand-over"),
            ("1".to_owned(), 4.0)
        );
        assert_eq!(
            said("hand-over: with zones, DKM over Mobile IP"),
            ("4".to_owned(), 2.0)
        );
        assert_eq!(
            said("beginning: with IPsec over Mobile IP"),
            ("7.6".to_owned(), 1.0)
        );
    }

    #[test]
    fn what_was_not_measured_fails() {
        let cells = complete(Vec::new());
        let findings = findings(&cells);
        assert!(findings.iter().all(|finding| finding.verdict == Fails));
    }
}
