//! A mobile node that moves back and forth between two foreign agents, and the traffic of its
//! tunnel.

use super::download::Download;
use super::flow::Flow;
use crate::daemon::Daemon;
use crate::pair::{self, GATEWAY, MOBILE, Terms};
use crate::process::{DEADLINE, until};
use crate::spis::held_in;
use crate::testbed::Testbed;
use crate::walk::{CARE_OF, HOME_KEY, Walk, bound, registered, tables};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// One-way delay from each foreign agent to home. A registration takes twice that, as in the paper.
const DELAY: Duration = Duration::from_millis(10);

/// Shortest time with both links up, and then with one alone. A mobile node may register once per
/// second (RFC 5944 section 3.6), and must not have to wait for that.
pub(super) const PHASE: Duration = Duration::from_millis(1100);

/// Traffic during the moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Datagrams at the same rate in each direction.
    Flow,
    /// One TCP connection, from home to the mobile node.
    Download,
}

/// Counters of the traffic in one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Carried {
    /// Packets sent into the tunnel.
    pub sent: u64,
    /// Packets that did not leave the tunnel.
    pub lost: u64,
    /// Segments that TCP retransmitted, whether lost or not.
    pub resent: Option<u64>,
    /// TCP segments whose headers the agents read, in both directions.
    pub read: Option<u64>,
    /// Packets that SNOOP at the agents retransmitted.
    pub repaired: Option<u64>,
    /// Longest silence in each round.
    pub gaps: Vec<Duration>,
}

impl Carried {
    /// Adds the counters of a later walk.
    pub fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.resent = sum(self.resent, other.resent);
        self.read = sum(self.read, other.read);
        self.repaired = sum(self.repaired, other.repaired);
        self.gaps.extend(other.gaps);
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
    }
}

/// Kind of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// True if the tunnel has zones, whose headers the agents read.
    pub zones: bool,
    /// True if the mobile node has simultaneous bindings.
    pub simultaneous: bool,
}

/// Stops the senders when it is dropped.
#[derive(Default)]
pub(super) struct Over(Arc<AtomicBool>);

impl Over {
    /// Returns the flag that a sender checks.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Makes two moves per round, there and back. Returns the traffic to the mobile node, and from it.
pub(super) fn travel(load: Load, kind: Kind, rounds: u32) -> Result<[Carried; 2]> {
    let journey = Journey::begin(kind)?;
    let (walk, home, mobile) = (&journey.walk, GATEWAY[0], MOBILE[0]);
    let over = Over::default();
    match load {
        Load::Flow => {
            let there = Flow::start((&walk.home, home), (&walk.mobile, mobile), &over)?;
            let back = Flow::start((&walk.mobile, mobile), (&walk.home, home), &over)?;
            let times = journey.go(rounds)?;
            drop(over);
            Ok([there.end(&times)?, back.end(&times)?])
        }
        Load::Download => {
            let before = journey.snooped()?;
            let download = Download::start(walk, &over)?;
            let times = journey.go(rounds)?;
            drop(over);
            let there = download.end(walk, &times)?;
            let [read, repaired] = journey.snooped()?;
            let there = Carried {
                read: Some(read - before[0]),
                repaired: Some(repaired - before[1]),
                ..there
            };
            Ok([there, Carried::default()])
        }
    }
}

struct Journey {
    walk: Walk,
    agents: Vec<Daemon>,
    home: Daemon,
    mobile: Daemon,
    simultaneous: bool,
}

impl Journey {
    /// Starts all hosts, and waits until the mobile node is at the first agent.
    fn begin(kind: Kind) -> Result<Self> {
        let hop = sim::Settings {
            rate: None,
            delay: DELAY,
            queue: 0,
            bit_error_rate: 0.0,
        };
        let walk = Walk::in_bed(Testbed::new("handoff")?, &[Some(hop); 2])?;
        // Packets that arrive by two paths at once would fail the strict check.
        walk.check_reverse_paths("2")?;
        for end in [&walk.home, &walk.mobile] {
            // Otherwise the kernel's own IPv6 packets in the tunnel would be counted.
            end.sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
        }
        walk.set_link(1, false)?;
        let more = match kind.simultaneous {
            true => "simultaneous = true",
            false => "",
        };
        let licences = tables::licences(&[0, 1], "handover = \"pkd\"");
        let terms = match kind.zones {
            true => Terms::requiring(&licences),
            false => Terms::PLAIN,
        };
        let journey = Self {
            agents: walk.start_licensed_agents(|number| tables::neighbours(&[1 - number]))?,
            home: walk.start_home_as(&alone(walk.home_config(terms)))?,
            mobile: walk.start_mobile_as(HOME_KEY, &alone(walk.mobile_config(more, terms)))?,
            simultaneous: kind.simultaneous,
            walk,
        };
        journey.mobile.wait_until("status", DEADLINE, pair::is_up)?;
        journey.home.wait_until("status", DEADLINE, pair::is_up)?;
        journey.stay(|journey| Ok(journey.is_at(0)? && (!kind.zones || journey.have_keys()?)))?;
        Ok(journey)
    }

    /// Returns true if both agents have keys, so that either reads what passes it.
    fn have_keys(&self) -> Result<bool> {
        let mut agents = self.agents.iter();
        agents.try_fold(true, |all, agent| {
            let zones = serde_json::from_str(&agent.ask("zones", json!({}))?)?;
            Ok(all && !held_in(&zones).is_empty())
        })
    }

    /// Returns the segments that the agents read, and the packets that SNOOP retransmitted.
    fn snooped(&self) -> Result<[u64; 2]> {
        self.agents
            .iter()
            .try_fold([0, 0], |[read, repaired], agent| {
                Ok([
                    read + pair::segments(agent)?,
                    repaired + pair::repaired(agent)?,
                ])
            })
    }

    /// Makes `rounds` rounds. Returns the start of each round, and the end of the last.
    fn go(&self, rounds: u32) -> Result<Vec<Instant>> {
        let mut times = vec![Instant::now()];
        for _ in 0..rounds {
            self.pass_to(1)?;
            self.pass_to(0)?;
            times.push(Instant::now());
        }
        Ok(times)
    }

    /// Moves to an agent. The link to the new agent is up for a while before the old one goes down,
    /// with any number of bindings.
    fn pass_to(&self, agent: usize) -> Result<()> {
        self.walk.set_link(agent, true)?;
        self.stay(|journey| match journey.simultaneous {
            true => journey.is_at_both(),
            // The first agent is preferred: the mobile node moves to it as soon as it hears it. It
            // moves to the second only when it must.
            false => journey.is_at(0),
        })?;
        self.walk.set_link(1 - agent, false)?;
        self.stay(|journey| journey.is_at(agent))
    }

    /// Waits for the minimum time and for the condition.
    fn stay(&self, arrived: impl Fn(&Self) -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        until("the mobile node to be where it goes", DEADLINE, || {
            Ok((begun.elapsed() >= PHASE && arrived(self)?).then_some(()))
        })
    }

    fn is_at(&self, agent: usize) -> Result<bool> {
        let place = [CARE_OF[agent]];
        Ok(registered(&ask(&self.mobile)?) == place && bound(&ask(&self.home)?) == place)
    }

    fn is_at_both(&self) -> Result<bool> {
        let is_registered = registered(&ask(&self.mobile)?).len() == 2;
        Ok(is_registered && bound(&ask(&self.home)?).len() == 2)
    }
}

/// Asks the daemon directly: a process for each question would delay the machine.
fn ask(daemon: &Daemon) -> Result<Value> {
    Ok(serde_json::from_str(&daemon.ask("status", json!({}))?)?)
}

/// Returns a configuration without offload, so that packets pass the device one by one and the
/// kernel counts those on the wire.
fn alone(config: String) -> String {
    config.replace("[tunnel]\n", "[tunnel]\noffload = \"off\"\n")
}

/// Returns the longest silence of each round. A silence at the start of a round counts from the
/// last arrival before it.
pub(super) fn silences(arrivals: &[Instant], times: &[Instant]) -> Vec<Duration> {
    let round = |ends: &[Instant]| {
        let [begin, end] = [ends[0], ends[1]];
        let first = arrivals.partition_point(|at| *at <= begin);
        let after = arrivals.partition_point(|at| *at <= end);
        let before = first.checked_sub(1).map_or(begin, |last| arrivals[last]);
        let of_it = [before]
            .into_iter()
            .chain(arrivals[first..after].iter().copied());
        // A silence that continues counts up to the end of the round.
        let all: Vec<_> = of_it.chain([end]).collect();
        all.windows(2).map(|pair| pair[1] - pair[0]).max()
    };
    times.windows(2).filter_map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_belongs_to_the_round_in_which_it_ends_or_goes_on() {
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let arrivals = [1, 2, 30, 31, 99, 101, 102].map(at);
        let times = [0, 50, 100, 200].map(at);
        let expected = [28, 68, 98].map(Duration::from_millis);
        assert_eq!(silences(&arrivals, &times), expected);
        assert_eq!(silences(&[], &times[..2]), [Duration::from_millis(50)]);
    }
}
