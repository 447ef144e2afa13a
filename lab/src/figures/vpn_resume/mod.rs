//! Section V of the paper on VPN servers: what it takes to resume a session, beside a full
//! exchange.

mod primitives;

use crate::bare::{Ends, Shape, segment};
use crate::bench::ike::resume::{
    Control, Distant, Options, Round, SetUp, Terms, Way, compare, distant,
};
use crate::experiment::{
    Basis, Claim, Column, Estimate, Filled, Finding, Grid, Plan, Raw, Row, Table, median,
    median_ratio,
};
use crate::testbed::{find_binary, find_command};
use anyhow::{Context, Result};
use primitives::{Operation, Times};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "vpn-resume",
    title: "What it takes to resume a session: by SKID3, by ticket, and by a full exchange",
    claims: &[
        Claim {
            says: "The four MACs of a resumption are three to four orders of magnitude faster than \
                   the public key or Diffie-Hellman operations of IKE.",
            judged_by: &[
                "Diffie-Hellman, 2048 bits over four MACs, HMAC-SHA2-256",
                "Diffie-Hellman, X25519 over four MACs, HMAC-SHA2-256",
                "RSA 2048, signed and verified over four MACs, HMAC-SHA2-256",
                "ECDSA P-256, signed and verified over four MACs, HMAC-SHA2-256",
            ],
        },
        Claim {
            says: "A resumption is at least three orders of magnitude faster than an exchange of \
                   IKE.",
            judged_by: &[
                "work of the gateway, PSK: full exchange over SKID3",
                "work of the gateway, ECDSA: full exchange over SKID3",
                "work of the gateway, PSK: full exchange over ticket",
                "work of the gateway, ECDSA: full exchange over ticket",
            ],
        },
        Claim {
            says: "The public key operations of IKE take three orders of magnitude more time than \
                   the operations of ESP.",
            judged_by: &["Diffie-Hellman and a signature over sealing a packet, *"],
        },
        Claim {
            says: "It takes three messages until both ends use their keys again: one round trip for \
                   the initiator.",
            judged_by: &["until the initiator can send, *: full exchange over SKID3"],
        },
    ],
    setting: "The operations are those of AWS-LC, alone, in nanoseconds of processor time, the \
              median of the rounds; the paper prints no times. A gateway, stratad on a \
              core of its own, serves a crowd of engines on the same host: they set tunnels up in \
              full with X25519, lose them without a Delete, and resume, in turns; in microseconds of \
              the gateway's processor time for each tunnel, with all that a tunnel takes beside \
              cryptography: messages, system calls, a child SA, and the SA that it replaces. Then both are on two hosts, on a wire with a delay and no loss: \
              from the first message until the initiator can send, in microseconds, the median and \
              the longest, and the messages and octets of a tunnel on the wire, as a packet socket \
              at the gateway saw them, but for those of SAs that are up or were lost. The third \
              message of SKID3 is acknowledged, so it is the third of four; the initiator sends \
              after the second. An echo passes through each tunnel after each turn. The paper \
              reuses the keys of the session that was lost; here both ways derive new ones.",
    duration: |quick| {
        let turns: Duration = ROUND_TRIPS.iter().map(|trip| *trip * 20).sum();
        let Pace { rounds, setups, .. } = pace(quick);
        START * (2 * Way::ALL.len() + 2 * ROUND_TRIPS.len()) as u32
            + turns
            + SET_UP * (rounds * setups * 8) as u32
    },
    rests_on: &[Basis::Resumption],
    check: || {
        find_command("openssl", "openssl")?;
        find_binary("stratad").map(drop)
    },
    measure: measure_all,
    judge: |raw| Ok(judged(&raw.data()?)),
};

/// Round trips of the wire: a network near by, a continent, a satellite.
const ROUND_TRIPS: [Duration; 3] = [
    Duration::from_millis(1),
    Duration::from_millis(50),
    Duration::from_millis(600),
];

/// Durations of a gateway's start and of a set-up, estimated generously.
const START: Duration = Duration::from_secs(2);
const SET_UP: Duration = Duration::from_millis(2);

/// Octets of the packets of ESP.
const PACKET: usize = 1024;

/// Effort of a quick and of a full run.
#[derive(Clone, Copy)]
struct Pace {
    /// Rounds of each way, and tunnels in each turn of them.
    rounds: usize,
    setups: usize,
    /// Tunnels in each way at each distance.
    distant: usize,
    /// Rounds of the operations.
    operations: u32,
}

const fn pace(quick: bool) -> Pace {
    if quick {
        Pace {
            rounds: 3,
            setups: 60,
            distant: 5,
            operations: 10,
        }
    } else {
        Pace {
            rounds: 10,
            setups: 400,
            distant: 40,
            operations: 100,
        }
    }
}

/// All measurements.
#[derive(Default, Serialize, Deserialize)]
struct Measured {
    operations: Vec<Times>,
    /// Times of sealing a packet of ESP, in nanoseconds.
    esp: Vec<f64>,
    gateway: Vec<Gateway>,
    distances: Vec<Distance>,
}

/// Rounds of a gateway.
#[derive(Serialize, Deserialize)]
struct Gateway {
    way: Way,
    terms: Terms,
    rounds: Vec<Round>,
}

/// Set-ups at one distance.
#[derive(Serialize, Deserialize)]
struct Distance {
    round_trip: Duration,
    set_ups: Vec<Distant>,
}

fn measure_all(plan: &Plan) -> Raw {
    let pace = pace(plan.quick);
    let mut measured = Measured::default();
    let mut faults = Vec::new();
    let mut note = |result: Result<()>| faults.extend(result.err().map(|why| format!("{why:#}")));
    note(operations(pace, &mut measured));
    for way in Way::ALL {
        note(gateway(way, pace, plan, &mut measured).context(way.word()));
    }
    for round_trip in ROUND_TRIPS {
        let set_ups = distant(round_trip, pace.distant, plan.resumption);
        let set_ups = set_ups.with_context(|| format!("a round trip of {round_trip:?}"));
        note(set_ups.map(|set_ups| {
            measured.distances.push(Distance {
                round_trip,
                set_ups,
            });
        }));
    }
    Raw::new(&measured, faults)
}

fn operations(pace: Pace, measured: &mut Measured) -> Result<()> {
    measured.operations = primitives::measure(pace.operations)?;
    let mut ends = Ends::new(Shape::Plain, 1)?;
    let sealing = |round| {
        let carried = ends.carry(&segment::row(PACKET, round))?;
        Ok(carried.sealing.as_nanos() as f64)
    };
    measured.esp = (0..pace.operations).map(sealing).collect::<Result<_>>()?;
    Ok(())
}

fn gateway(way: Way, pace: Pace, plan: &Plan, measured: &mut Measured) -> Result<()> {
    let compared = compare(&Options {
        way,
        rounds: pace.rounds,
        setups: pace.setups,
        control: (!plan.resumption).then_some(Control::NoResumption),
    })?;
    let rounds = compared.rounds.into_iter();
    measured
        .gateway
        .extend(rounds.map(|(terms, rounds)| Gateway { way, terms, rounds }));
    compared
        .failure
        .map_or(Ok(()), |why| Err(anyhow::anyhow!(why)))
}

fn judged(measured: &Measured) -> Filled {
    let columns = ["median", "longest", "messages", "octets"];
    Filled {
        grid: Grid {
            columns: columns.map(|name| Column::new("", name)).into(),
            rows: rows(measured),
        },
        findings: findings(measured),
        faults: Vec::new(),
        plots: Vec::new(),
    }
}

fn rows(measured: &Measured) -> Vec<Row> {
    let row = |subject: &str, name: &str, times: &[f64]| Row {
        subject: subject.to_owned(),
        name: name.to_owned(),
        numbers: vec![
            median(times).map(whole),
            times.iter().copied().max_by(f64::total_cmp).map(whole),
            None,
            None,
        ],
    };
    let operation = |times: &Times| row("one end, ns", times.operation.name(), &times.ns);
    let esp = row("one end, ns", "a packet of ESP, sealed", &measured.esp);
    let operations = measured.operations.iter().map(operation).chain([esp]);
    let gateways = measured.gateway.iter().flat_map(|gateway| {
        let subject = format!("gateway, {}, us", gateway.terms.label());
        let times = |of: fn(&Round) -> f64| gateway.rounds.iter().map(of).collect::<Vec<_>>();
        let resumed = row(
            &subject,
            name(SetUp::Resumed(gateway.way)),
            &times(|round| round.resumed_us),
        );
        let beside = format!("full exchange, beside {}", gateway.way.name());
        [
            row(&subject, &beside, &times(|round| round.full_us)),
            resumed,
        ]
    });
    let distances = measured.distances.iter().flat_map(|distance| {
        distance.set_ups.iter().map(|set_up| {
            let subject = format!("{} ms a round trip, us", distance.round_trip.as_millis());
            let us: Vec<_> = set_up.up_ms.iter().map(|ms| ms * 1e3).collect();
            let mut row = row(&subject, name(set_up.set_up), &us);
            let each = |all: usize| Some(whole(all as f64 / set_up.up_ms.len() as f64));
            row.numbers[2..].copy_from_slice(&[each(set_up.messages), each(set_up.octets)]);
            row
        })
    });
    let mut rows: Vec<_> = operations.chain(gateways).chain(distances).collect();
    // Rows of one subject are adjacent.
    let subjects: Vec<_> = rows.iter().map(|row| row.subject.clone()).collect();
    rows.sort_by_key(|row| subjects.iter().position(|subject| *subject == row.subject));
    rows
}

fn whole(number: f64) -> i64 {
    number.round() as i64
}

const fn name(set_up: SetUp) -> &'static str {
    match set_up {
        SetUp::Full(Terms::Ecdsa) => "full exchange, ECDSA",
        SetUp::Full(_) => "full exchange, PSK",
        SetUp::Resumed(way) => way.name(),
    }
}

fn findings(measured: &Measured) -> Vec<Finding> {
    let mut all = slow(measured);
    all.extend(gateways(measured));
    all.push(esp(measured));
    all.extend(distances(measured));
    all
}

/// Compares operations with public keys with the MACs.
fn slow(measured: &Measured) -> Vec<Finding> {
    let macs = Operation::Macs;
    let slow = Operation::ALL.into_iter().filter(|slow| *slow != macs);
    let finding = |slow: Operation| {
        let pairs = measured.times(slow).zip(measured.times(macs));
        let ratio = pairs.and_then(|(slow, macs)| ratio(slow, macs));
        let what = format!("{} over {}", slow.name(), macs.name());
        Finding::at_least(what, 10.0, ratio).paper("1000 to 10000")
    };
    slow.map(finding).collect()
}

/// Compares full exchanges with resumptions at the gateway.
fn gateways(measured: &Measured) -> Vec<Finding> {
    let finding = |way: Way, terms: Terms| {
        let mut gateways = measured.gateway.iter();
        let gateway = gateways.find(|one| (one.way, one.terms) == (way, terms));
        let pairs = gateway.map(|gateway| {
            let pair = |round: &Round| (round.full_us, round.resumed_us);
            gateway.rounds.iter().map(pair).collect::<Vec<_>>()
        });
        let (terms, way) = (terms.label(), way.name());
        let what = format!("work of the gateway, {terms}: full exchange over {way}");
        let ratio = pairs.and_then(|pairs| median_ratio(&pairs));
        Finding::at_least(what, 1.0, ratio).paper("more than 1000")
    };
    let all = Way::ALL.into_iter().rev();
    all.flat_map(|way| [Terms::Psk, Terms::Ecdsa].map(|terms| finding(way, terms)))
        .collect()
}

/// Compares the operations of a full exchange with those of ESP.
fn esp(measured: &Measured) -> Finding {
    let [agreed, signed] = [Operation::Modp2048, Operation::Rsa2048].map(|one| measured.times(one));
    let sums = agreed.zip(signed).map(|(agreed, signed)| {
        let sums = agreed
            .iter()
            .zip(signed)
            .map(|(agreed, signed)| agreed + signed);
        sums.collect::<Vec<_>>()
    });
    let what = format!("Diffie-Hellman and a signature over sealing a packet, {PACKET} octets");
    Finding::beside(
        what,
        "1000",
        sums.and_then(|sums| ratio(&sums, &measured.esp)),
    )
}

/// Compares the waits at each distance that is not negligible.
fn distances(measured: &Measured) -> Vec<Finding> {
    let over = |round_trip: Duration, way: Way| {
        let mut distances = measured.distances.iter();
        let distance = distances.find(|distance| distance.round_trip == round_trip)?;
        let of = |wanted: SetUp| {
            let mut set_ups = distance.set_ups.iter();
            set_ups
                .find(|one| one.set_up == wanted)
                .map(|one| &*one.up_ms)
        };
        ratio(of(SetUp::Full(Terms::Psk))?, of(SetUp::Resumed(way))?)
    };
    let waits = ROUND_TRIPS[1..].iter().flat_map(|round_trip| {
        let what = |way: Way| {
            let ms = round_trip.as_millis();
            let way = way.name();
            format!("until the initiator can send, {ms} ms a round trip: full exchange over {way}")
        };
        // Two round trips over one, and over two.
        [(Way::Skid3, 1.7), (Way::Ticket, 0.9)]
            .map(|(way, bound)| Finding::at_least(what(way), bound, over(*round_trip, way)))
    });
    waits.collect()
}

/// Returns the ratio of values that were measured in turns.
fn ratio(above: &[f64], below: &[f64]) -> Option<Estimate> {
    let pairs = above.iter().copied().zip(below.iter().copied());
    median_ratio(&pairs.collect::<Vec<_>>())
}

impl Measured {
    fn times(&self, operation: Operation) -> Option<&[f64]> {
        let mut all = self.operations.iter();
        let times = all.find(|times| times.operation == operation)?;
        Some(&times.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Consistent, Fails, Holds};

    const ALL: [SetUp; 4] = [
        SetUp::Full(Terms::Psk),
        SetUp::Full(Terms::Ecdsa),
        SetUp::Resumed(Way::Ticket),
        SetUp::Resumed(Way::Skid3),
    ];

    /// Returns measurements: an operation with public keys takes this many times the MACs, and a
    /// full exchange twice what a resumption takes where sessions are `resumed`.
    fn made(slow: f64, resumed: bool) -> Measured {
        let saved = if resumed { 2.0 } else { 1.0 };
        let operation = |operation| Times {
            operation,
            ns: match operation {
                Operation::Macs => vec![1000.0; 3],
                _ => vec![1000.0 * slow; 3],
            },
        };
        let gateway = |(way, terms)| Gateway {
            way,
            terms,
            rounds: vec![
                Round {
                    full_us: 200.0,
                    full_raw_us: 70.0,
                    resumed_us: 199.0 / saved,
                    resumed_raw_us: 20.0,
                    full_ms: 2.0,
                    resumed_ms: 1.0,
                    full_s: 2.0,
                    resumed_s: 1.0,
                    octets: 9000.0,
                };
                3
            ],
        };
        let distance = |round_trip: Duration| {
            let ms = round_trip.as_secs_f64() * 1e3;
            let set_up = |set_up| Distant {
                set_up,
                up_ms: match set_up {
                    SetUp::Resumed(Way::Skid3) => vec![2.0 * ms / saved; 3],
                    _ => vec![2.0 * ms; 3],
                },
                messages: 12,
                octets: 3000,
            };
            Distance {
                round_trip,
                set_ups: ALL.map(set_up).into(),
            }
        };
        let terms = [Terms::Psk, Terms::Ecdsa];
        let pairs = Way::ALL
            .into_iter()
            .flat_map(|way| terms.map(|terms| (way, terms)));
        Measured {
            operations: Operation::ALL.map(operation).into(),
            esp: vec![500.0; 3],
            gateway: pairs.map(gateway).collect(),
            distances: ROUND_TRIPS.map(distance).into(),
        }
    }

    fn verdicts(measured: &Measured) -> Vec<Verdict> {
        let findings = findings(measured);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn what_saves_work_and_a_round_trip_holds() {
        let verdicts = verdicts(&made(100.0, true));
        assert_eq!(verdicts[..8], [Holds; 8]);
        assert_eq!(verdicts[8], Consistent);
        assert_eq!(verdicts[9..], [Holds; 4]);
    }

    #[test]
    fn public_keys_that_cost_no_more_than_macs_fail() {
        assert_eq!(verdicts(&made(2.0, true))[..4], [Fails; 4]);
    }

    #[test]
    fn sessions_that_are_not_resumed_wait_as_long_and_fail() {
        let verdicts = verdicts(&made(100.0, false));
        assert_eq!(verdicts[9..], [Fails, Holds, Fails, Holds]);
    }

    /// Three orders of magnitude are the paper's.
    #[test]
    fn a_gateway_that_saves_half_its_work_contradicts_the_paper() {
        let findings = findings(&made(100.0, true));
        assert!(findings[4].contradiction().is_some(), "{:?}", findings[4]);
    }

    #[test]
    fn each_way_has_a_row_at_each_distance_and_at_each_gateway() {
        let rows = rows(&made(100.0, true));
        assert_eq!(rows.len(), 6 + 8 + 3 * ALL.len());
        let of_skid3 = rows.iter().filter(|row| row.name == "SKID3");
        let of_skid3: Vec<_> = of_skid3.map(|row| &*row.subject).collect();
        let subjects = [
            "gateway, PSK, us",
            "gateway, ECDSA, us",
            "1 ms a round trip, us",
            "50 ms a round trip, us",
            "600 ms a round trip, us",
        ];
        assert_eq!(of_skid3, subjects);
        let last = rows.last().unwrap();
        let numbers = [600_000, 600_000, 4, 1000].map(Some);
        assert_eq!(last.numbers, numbers);
    }
}
