//! The paper on VPN servers, with very many clients: what it takes to serve all of them again after
//! the server was lost.

use crate::bench::ike::resume::{Recovery, Size, Storm, storm};
use crate::experiment::{
    Basis, Claim, Column, Filled, Finding, Grid, Plan, Raw, Row, Table, mean, median, median_ratio,
};
use crate::testbed::{find_binary, find_command};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The table.
pub const TABLE: Table = Table {
    name: "vpn-storm",
    title: "Very many clients lose their gateway at once: until all of them are served again",
    claims: &[
        Claim {
            says: "Caching can cut the number of required exchanges of IKE by 50 to 80 %.",
            judged_by: &["clients that resumed, of all: *"],
        },
        Claim {
            says: "A resumption is at least three orders of magnitude faster than an exchange of \
                   IKE.",
            judged_by: &[
                "work of the gateway: full exchange over *",
                "until all are served: full exchange over *",
            ],
        },
    ],
    setting: "The paper counts exchanges in the logs of servers that stayed up, and measures no \
              resumption. A gateway, stratad on a core of its own with its sessions in a file, is \
              killed and started again. A crowd of engines on the other core, authenticated by \
              certificates for ECDSA and X25519, has lost all tunnels without a Delete, and begins \
              again at once, as soon as the gateway listens: each client retransmits, returns \
              cookies, takes a full exchange if its ticket is refused, and begins again if it \
              gives up. The time is that from \
              the first request on, with the work of the crowd, whose core is shared. The \
              processor time of the gateway is for each client, in microseconds, with a child SA \
              and what it writes to its file. Memory is resident: the most of the process since \
              its start in MB, with the tables of all clients, and the growth for each tunnel in \
              octets. With a clocked lifetime, the age of a session counts since the full \
              exchange; with an established one too, so does the time that tunnels were up, and \
              with a limit of data the octets that passed them. \
              Beside the crowd are ordinary daemons with default settings and a pre-shared key, in \
              hosts of their own: they find out by themselves, and their time is until traffic \
              that never pauses is back. An echo passes through each tunnel afterwards. Rows are \
              medians of the rounds.",
    duration: |quick| {
        let plan = if quick { Plan::QUICK } else { Plan::FULL };
        let storms = (Recovery::ALL.len() as u64 * plan.seeds) as u32;
        (START + CLIENT * plan.clients) * storms
    },
    rests_on: &[Basis::Resumption],
    check: || {
        find_command("openssl", "openssl")?;
        find_binary("strata")?;
        find_binary("stratad").map(drop)
    },
    measure,
    judge: |raw| Ok(judged(&raw.data()?)),
};

/// Time for hosts, daemons and the starts of the gateway, and for each client.
const START: Duration = Duration::from_secs(4);
const CLIENT: Duration = Duration::from_millis(2);

/// Daemons in a quick and in a full run.
const fn daemons(quick: bool) -> u8 {
    if quick { 2 } else { 10 }
}

/// Least share of the clients that resume. A gateway whose disk stands still for half a second
/// refuses tickets.
const RESUMED: f64 = 0.95;

/// Goals for the ratio of a full exchange to a resumption: less work, and half the time.
const WORK: f64 = 1.0;
const TIME: f64 = 2.0;

/// All measurements.
#[derive(Default, Serialize, Deserialize)]
struct Measured {
    size: Size,
    /// A storm for each way, in the order of [`Recovery::ALL`], in each round.
    rounds: Vec<Vec<Storm>>,
}

fn measure(plan: &Plan) -> Raw {
    let size = Size {
        clients: plan.clients,
        daemons: daemons(plan.quick),
    };
    let once = |recovery: Recovery| {
        storm(recovery, size, plan.resumption).with_context(|| recovery.name())
    };
    let mut faults = Vec::new();
    let mut rounds = Vec::new();
    for _ in 0..plan.seeds {
        match Recovery::ALL.into_iter().map(once).collect() {
            Ok(round) => rounds.push(round),
            Err(why) => faults.push(format!("{why:#}")),
        }
    }
    Raw::new(&Measured { size, rounds }, faults)
}

fn judged(measured: &Measured) -> Filled {
    let columns = [
        ("until served, ms", "half"),
        ("until served, ms", "all"),
        ("until served, ms", "longest"),
        ("clients", "resumed"),
        ("clients", "again"),
        ("gateway", "us"),
        ("gateway", "MB"),
        ("gateway", "octets"),
    ];
    Filled {
        grid: Grid {
            columns: columns.map(|(group, name)| Column::new(group, name)).into(),
            rows: rows(measured),
        },
        findings: findings(measured),
        faults: Vec::new(),
        plots: Vec::new(),
    }
}

fn rows(measured: &Measured) -> Vec<Row> {
    let Size { clients, daemons } = measured.size;
    let row = |subject: String, recovery: Recovery, numbers: [Option<f64>; 8]| Row {
        subject,
        name: recovery.name().to_owned(),
        numbers: numbers
            .map(|number| number.map(|number| number.round() as i64))
            .into(),
    };
    let crowds = Recovery::ALL.map(|recovery| {
        let of = |value: fn(&Storm) -> f64| median(&measured.of(recovery, value));
        let numbers = [
            of(|storm| storm.half_ms),
            of(|storm| storm.all_ms),
            longest(&measured.of(recovery, |storm| storm.all_ms)),
            of(|storm| storm.resumed as f64),
            of(|storm| storm.retransmitted as f64),
            of(|storm| storm.gateway_us),
            of(|storm| storm.peak as f64 / 1e6),
            of(|storm| storm.octets),
        ];
        row(format!("{clients} clients"), recovery, numbers)
    });
    let daemons = Recovery::ALL.map(|recovery| {
        let of = |value: fn(&Storm) -> f64| median(&measured.of(recovery, value));
        let all = |storm: &Storm| longest(&storm.daemons_ms).unwrap_or_default();
        let numbers = [
            of(|storm| median(&storm.daemons_ms).unwrap_or_default()),
            of(all),
            longest(&measured.of(recovery, all)),
            of(|storm| storm.daemons_resumed as f64),
            None,
            None,
            None,
            None,
        ];
        row(format!("{daemons} daemons beside them"), recovery, numbers)
    });
    crowds.into_iter().chain(daemons).collect()
}

fn longest(times: &[f64]) -> Option<f64> {
    times.iter().copied().max_by(f64::total_cmp)
}

fn findings(measured: &Measured) -> Vec<Finding> {
    let resumed = Recovery::ALL
        .into_iter()
        .filter(|one| *one != Recovery::Full);
    let over = |what: &str, bound: f64, value: fn(&Storm) -> f64| {
        let finding = |recovery: Recovery| {
            let full = measured.of(Recovery::Full, value);
            let pairs: Vec<_> = full.into_iter().zip(measured.of(recovery, value)).collect();
            let what = format!("{what}: full exchange over {}", recovery.name());
            Finding::at_least(what, bound, median_ratio(&pairs)).paper("more than 1000")
        };
        resumed.clone().map(finding).collect::<Vec<_>>()
    };
    let share = |recovery: Recovery| {
        let clients = f64::from(measured.size.clients);
        let shares = measured.of(recovery, |storm| storm.resumed as f64);
        let shares: Vec<_> = shares.iter().map(|resumed| resumed / clients).collect();
        let what = format!("clients that resumed, of all: {}", recovery.name());
        Finding::at_least(what, RESUMED, mean(&shares)).paper("0.5 to 0.8")
    };
    let mut all: Vec<_> = resumed.clone().map(share).collect();
    all.extend(over("work of the gateway", WORK, |storm| storm.gateway_us));
    all.extend(over("until all are served", TIME, |storm| storm.all_ms));
    all
}

impl Measured {
    /// Returns a value of each round.
    fn of(&self, recovery: Recovery, value: impl Fn(&Storm) -> f64) -> Vec<f64> {
        let place = Recovery::ALL.iter().position(|one| *one == recovery);
        let rounds = self.rounds.iter();
        let storms = rounds.filter_map(|round| round.get(place?));
        storms.map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict::{self, Fails, Holds};

    /// Returns measurements in which this share of the clients resume, and a full exchange takes
    /// three times what a resumption takes.
    fn made(share: f64) -> Measured {
        let storm = |recovery: Recovery| {
            let (times, share) = match recovery {
                Recovery::Full => (3.0, 0.0),
                Recovery::Resumed(..) => (3.0 - 2.0 * share, share),
            };
            Storm {
                half_ms: 50.0 * times,
                all_ms: 100.0 * times,
                gateway_us: 200.0 * times,
                peak: 20_000_000,
                octets: 5000.0,
                resumed: (share * 1000.0) as usize,
                retransmitted: 7,
                daemons_ms: vec![100.0, 300.0],
                daemons_resumed: 2,
            }
        };
        Measured {
            size: Size {
                clients: 1000,
                daemons: 2,
            },
            rounds: vec![Recovery::ALL.map(storm).into(); 3],
        }
    }

    fn verdicts(measured: &Measured) -> Vec<Verdict> {
        let findings = findings(measured);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn clients_that_all_resume_are_served_earlier() {
        assert_eq!(verdicts(&made(1.0)), [Holds; 18]);
    }

    #[test]
    fn clients_that_take_full_exchanges_fail() {
        let verdicts = verdicts(&made(0.0));
        assert_eq!(verdicts[..6], [Fails; 6]);
        assert_eq!(verdicts[12..], [Fails; 6]);
    }

    #[test]
    fn a_gateway_that_forgets_one_session_in_ten_fails() {
        assert_eq!(verdicts(&made(0.9))[..6], [Fails; 6]);
    }

    #[test]
    fn each_way_has_a_row_for_the_crowd_and_for_the_daemons() {
        let rows = rows(&made(1.0));
        assert_eq!(rows.len(), 2 * Recovery::ALL.len());
        let numbers = [150, 300, 300, 0, 7, 600, 20, 5000].map(Some);
        assert_eq!(rows[0].numbers, numbers);
        let last = rows.last().unwrap();
        assert_eq!(last.numbers[..4], [200, 300, 300, 2].map(Some));
        assert_eq!(last.numbers[4..], [None; 4]);
    }
}
