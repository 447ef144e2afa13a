//! Random walks between networks whose links go down. At every rest both ends agree, the session
//! lives, no sequence number was used twice, and no agent that was left can read.
//!
//! A seed chooses the events. Their timing relative to an exchange depends on the machine, so no
//! two runs are the same. Tests on virtual time look for rare faults
//! (`pure/node/tests/roaming/walks.rs`). The short form makes one walk of each kind, the long form
//! ten.

use anyhow::{Context, Result, ensure};
use crypto::Rng;
use lab::chatter::Chatter;
use lab::daemon::Daemon;
use lab::pair::{self, GATEWAY, MOBILE, Terms};
use lab::process::{DEADLINE, until};
use lab::spis::{held, holds, sealed_in, spi};
use lab::testbed::Testbed;
use lab::transfer::in_parts;
use lab::walk::{AGENTS, CARE_OF, Ends, OFTEN, Walk, both_ways, bound, registered, tables};
use lab::wiretap::{Seen, Wiretap};
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Number of agents.
const PLACES: usize = 3;

/// Number of rests on a walk, and limit on the events between two rests.
const RESTS: usize = 4;
const STEPS: u16 = 5;

/// Octets that the one TCP connection of a walk carries between two rests.
const PART: usize = 500_000;

/// Interval between datagrams, and limit on the number of datagrams between two events.
const PERIOD: Duration = Duration::from_millis(2);
const STRIDE: u16 = 1000;

/// Bit error rate on the agents' paths home: one packet in a hundred is lost.
const ERRORS: f64 = 1e-6;

/// Time limit for recovery. A dead gateway is detected after 20 seconds; after that no message
/// should need many retransmissions.
const PATIENCE: Duration = Duration::from_secs(240);

/// With DKM, both ends stop using keys that another agent has a token for within this time: two
/// seconds (DESIGN section 4, invariant 5), plus the delay of a busy machine.
const LENT: Duration = Duration::from_secs(4);

/// Number of lines of each log in the error message of a walk that does not recover.
const LAST_LINES: usize = 60;

/// Number of hand-over variants.
const WAYS: u32 = 4;

/// A hand-over variant, and the limit on agents that share the same keys.
#[derive(Clone, Copy)]
struct Way {
    handover: &'static str,
    most: usize,
}

impl Way {
    fn licences(self) -> String {
        let handover = format!("handover = \"{}\"", self.handover);
        let more = match self.most {
            1 => handover,
            most => format!("{handover}\nholders = {most}"),
        };
        tables::licences(&[0, 1, 2], &more)
    }

    /// Returns an agent's tables for the other agents.
    fn tables(self, number: usize) -> String {
        let others = (0..PLACES).filter(|other| *other != number);
        match (self.handover, self.most) {
            ("dkm", _) => others
                .map(|other| tables::neighbour(number, other))
                .collect(),
            ("pkd", 1) => tables::neighbours(&others.collect::<Vec<_>>()),
            ("pkd", _) => tables::neighbours(&[(number + 1) % PLACES]),
            _ => String::new(),
        }
    }

    /// Returns the slot that both ends use for an agent.
    fn slot(self, number: usize) -> String {
        match self.most {
            1 => format!("@{}", AGENTS[number]),
            _ => format!("@{}", AGENTS[..PLACES].join("+")),
        }
    }
}

// Recovers: handover
// Weakness: S27
#[lab::test(limit(400))]
fn walks_by_push_end_with_ends_that_agree() -> Result<()> {
    walk_all(0, "push", 1)
}

// Recovers: handover
#[lab::test(limit(400))]
fn walks_by_pkd_end_with_ends_that_agree() -> Result<()> {
    walk_all(1, "pkd", 1)
}

// Recovers: handover-dkm
#[lab::test(limit(400))]
fn walks_by_dkm_end_with_ends_that_agree() -> Result<()> {
    walk_all(2, "dkm", 1)
}

// Recovers: handover-shared
#[lab::test(limit(400))]
fn walks_among_agents_that_share_keys_end_with_ends_that_agree() -> Result<()> {
    walk_all(3, "pkd", 2)
}

/// Runs the walks of one variant; `first` is the first seed.
fn walk_all(first: u32, handover: &'static str, most: usize) -> Result<()> {
    let way = Way { handover, most };
    let walks = effort::runs("namespace_walks", 1, 10);
    let mut seeds = walks.map(|walk| first + walk as u32 * WAYS);
    seeds.try_for_each(|seed| {
        let mut happened = Vec::new();
        let walked = walk(way, seed, &mut happened);
        walked.with_context(|| {
            let number = seed / WAYS;
            format!("walk {seed} (STRATA_NAMESPACE_WALKS={number},1): {happened:?}")
        })
    })
}

fn walk(way: Way, seed: u32, happened: &mut Vec<Step>) -> Result<()> {
    // Each variant runs with several bindings and with one.
    let simultaneous = (seed / WAYS + seed).is_multiple_of(2);
    let walk = Walk::in_bed(Testbed::new("walks")?, &[Some(pair::hop(ERRORS)); PLACES])?;
    walk.check_reverse_paths("2")?;
    let more = format!("{OFTEN}\nsimultaneous = {simultaneous}");
    let licences = way.licences();
    let (ends, agents) = start(&walk, &licences, &more, |number| way.tables(number))?;
    let near = Chatter::start((&walk.mobile, MOBILE[0]), GATEWAY[0], PERIOD)?;
    let _far = Chatter::start((&walk.home, GATEWAY[0]), MOBILE[0], PERIOD)?;
    let mut traveller = Traveller::new(&walk, way, seed, ends, agents)?;
    let hosts = (&walk.home, &walk.mobile);
    in_parts(hosts, MOBILE[0], (RESTS + 1, PART), |_| {
        traveller.go_on(&near, happened)?;
        traveller.rest()
    })
}

/// Starts both ends with these licences, and the agents.
fn start(
    walk: &Walk,
    licences: &str,
    more: &str,
    tables: impl Fn(usize) -> String,
) -> Result<(Ends, Vec<Daemon>)> {
    let terms = Terms::requiring(licences);
    Ends::start_among(walk, &walk.home_config(terms), (more, terms), tables)
}

/// An event on a walk.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The mobile node moves to another network: one link comes up, and all others go down.
    Move(usize),
    /// A link goes down or comes up.
    Link(usize),
    /// An agent is killed and restarted.
    Restart(usize),
    /// The gateway, which is also the home agent, is killed and restarted.
    RestartHome,
    /// An agent stops or resumes receiving.
    Deafen(usize),
    /// The path between home and an agent is cut or restored.
    Cut(usize),
    /// One end rekeys.
    Rekey(usize, &'static str),
}

impl Step {
    fn draw(rng: &mut Rng) -> Self {
        let agent = usize::from(rng.u16()) % PLACES;
        match rng.u16() % 10 {
            0..=3 => Self::Move(agent),
            4 => Self::Link(agent),
            5 => Self::Restart(agent),
            6 => Self::RestartHome,
            7 => Self::Deafen(agent),
            8 => Self::Cut(agent),
            _ => {
                let what = ["rekey", "rekey --ike", "reauth"];
                Self::Rekey(agent % 2, what[usize::from(rng.u16()) % what.len()])
            }
        }
    }
}

/// A mobile node on a walk, and the observations of a tap on its links.
struct Traveller<'a> {
    walk: &'a Walk,
    way: Way,
    rng: Rng,
    ends: Ends,
    agents: Vec<Daemon>,
    links: [bool; PLACES],
    deaf: [bool; PLACES],
    cut: [bool; PLACES],
    tap: Wiretap,
    numbers: Numbers,
    /// SPIs of all keys that each agent ever held.
    keys: [BTreeSet<String>; PLACES],
    /// SPIs in use by both ends, with the time since when.
    sealed_in: Option<([String; 2], Instant)>,
}

impl<'a> Traveller<'a> {
    fn new(walk: &'a Walk, way: Way, seed: u32, ends: Ends, agents: Vec<Daemon>) -> Result<Self> {
        let mut octets = [0; 32];
        octets[..4].copy_from_slice(&seed.to_be_bytes());
        Ok(Self {
            walk,
            way,
            rng: Rng::from_seed(octets),
            ends,
            agents,
            links: [true, false, false],
            deaf: [false; PLACES],
            cut: [false; PLACES],
            tap: Wiretap::open(&walk.mobile)?,
            numbers: Numbers::default(),
            keys: Default::default(),
            sealed_in: None,
        })
    }

    /// Performs some events. None of them waits for the effects of the previous event.
    fn go_on(&mut self, chatter: &Chatter, happened: &mut Vec<Step>) -> Result<()> {
        for _ in 0..=self.rng.u16() % STEPS {
            let step = Step::draw(&mut self.rng);
            happened.push(step);
            self.step(step).with_context(|| format!("{step:?}"))?;
            chatter.wait_for((self.rng.u16() % STRIDE).into())?;
            self.look()?;
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Move(agent) => self.move_to(agent)?,
            Step::Link(agent) => {
                self.links[agent] = !self.links[agent];
                self.walk.set_link(agent, self.links[agent])?;
            }
            Step::Restart(agent) => {
                restart(&mut self.agents[agent])?;
                self.deaf[agent] = false;
            }
            Step::RestartHome => restart(&mut self.ends.home)?,
            Step::Deafen(agent) => self.deafen(agent, !self.deaf[agent])?,
            Step::Cut(agent) => self.cut(agent, !self.cut[agent])?,
            Step::Rekey(end, what) => {
                let (daemon, peer) =
                    [(&self.ends.mobile, "office"), (&self.ends.home, "alice")][end];
                // The rekey may be impossible at this moment.
                if let Err(why) = daemon.strata_text(&format!("{what} {peer}")) {
                    ensure!(why.to_string().contains("exit status: 1"), "{why:#}");
                }
            }
        }
        Ok(())
    }

    fn move_to(&mut self, agent: usize) -> Result<()> {
        self.links = [false; PLACES];
        self.links[agent] = true;
        self.walk.leave_link(agent)
    }

    fn deafen(&mut self, agent: usize, deaf: bool) -> Result<()> {
        self.deaf[agent] = deaf;
        let signal = if deaf {
            Signal::SIGSTOP
        } else {
            Signal::SIGCONT
        };
        self.agents[agent].process().signal(signal)
    }

    fn cut(&mut self, agent: usize, cut: bool) -> Result<()> {
        if self.cut[agent] == cut {
            return Ok(());
        }
        self.cut[agent] = cut;
        self.walk.set_way(agent, !cut)
    }

    /// Repairs everything and moves the mobile node to an agent.
    fn rest(&mut self) -> Result<()> {
        let agent = usize::from(self.rng.u16()) % PLACES;
        for number in 0..PLACES {
            self.deafen(number, false)?;
            self.cut(number, false)?;
        }
        self.move_to(agent)?;
        let rested = self.await_recovery(agent);
        rested.with_context(|| {
            let told = self.placement(agent);
            told.unwrap_or_else(|why| why.to_string())
        })
    }

    /// Waits at an agent until everything has recovered.
    fn await_recovery(&mut self, agent: usize) -> Result<()> {
        until(&format!("rest at {}", AGENTS[agent]), PATIENCE, || {
            self.look()?;
            Ok(self.has_recovered_at(agent)?.then_some(()))
        })?;
        // Packets in flight have arrived.
        both_ways(self.walk)?;
        self.readers_are_few(agent)
    }

    /// Returns true if both ends know the mobile node's place and seal for the agent there, which
    /// holds the keys alone. With DKM the SPIs must stay the same for longer than both ends may use
    /// them after giving a token.
    fn has_recovered_at(&mut self, agent: usize) -> Result<bool> {
        let now = Instant::now();
        let spis = self.sealed_for(agent)?;
        let before = self.sealed_in.take();
        self.sealed_in = spis.map(|spis| match before {
            Some(before) if before.0 == spis => before,
            _ => (spis, now),
        });
        let since = self.sealed_in.as_ref().map(|(_, since)| now - *since);
        Ok(since.is_some_and(|since| self.way.handover != "dkm" || since > LENT))
    }

    /// Returns the SPIs that both ends use, if both know that the mobile node is at the agent and
    /// the agent holds the keys.
    fn sealed_for(&self, agent: usize) -> Result<Option<[String; 2]>> {
        let home = self.ends.home.strata("status")?;
        let mobile = self.ends.mobile.strata("status")?;
        let there = [CARE_OF[agent]];
        if bound(&home) != there || registered(&mobile) != there {
            return Ok(None);
        }
        let Some(spis) = sealed_in(&home, &mobile, &self.way.slot(agent)) else {
            return Ok(None);
        };
        Ok(holds(&self.agents[agent], &spis)?.then_some(spis))
    }

    /// Returns both ends' states and recent log lines, and the agent's keys.
    fn placement(&self, agent: usize) -> Result<String> {
        let mut told = format!("{} holds {:?}", AGENTS[agent], held(&self.agents[agent])?);
        for end in [&self.ends.home, &self.ends.mobile] {
            let log = std::fs::read_to_string(end.log_path())?;
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
            let status = end.strata("status")?;
            write!(told, "\n{}\n{}", status["status"], last.join("\n"))?;
        }
        Ok(told)
    }

    /// Returns the agents that ever held the keys of an SPI.
    fn readers(&self, spi: &str) -> Vec<&'static str> {
        let all = self.keys.iter().zip(AGENTS);
        let readers = all.filter(|(keys, _)| keys.contains(spi));
        readers.map(|(_, agent)| agent).collect()
    }

    /// Fails unless the agent at the mobile node's place, and no more agents than may share its
    /// keys, can read passing packets.
    fn readers_are_few(&mut self, agent: usize) -> Result<()> {
        self.look()?;
        both_ways(self.walk)?;
        let passed = self.look()?;
        ensure!(!passed.is_empty(), "nothing has passed");
        for spi in passed {
            let (readers, here) = (self.readers(&spi), AGENTS[agent]);
            ensure!(
                readers.contains(&here) && readers.len() <= self.way.most,
                "{readers:?} have had keys of {spi} with the mobile node at {here}"
            );
        }
        Ok(())
    }

    /// Records the packets that have passed, and the agents' keys; returns the SPIs of the packets.
    fn look(&mut self) -> Result<BTreeSet<String>> {
        let seen = self.tap.rest()?;
        for (number, agent) in self.agents.iter().enumerate() {
            if !self.deaf[number] {
                self.keys[number].extend(held(agent)?);
            }
        }
        seen.iter().try_for_each(|seen| self.numbers.note(seen))?;
        Ok(seen.iter().filter_map(spi).collect())
    }
}

fn restart(daemon: &mut Daemon) -> Result<()> {
    daemon.process().crash()?;
    daemon.start_again()
}

/// ESP packets that have passed, by sender, SPI and sequence number. Each number must belong to one
/// packet.
#[derive(Default)]
struct Numbers(BTreeMap<(IpAddr, [u8; 8]), [u8; BEGIN]>);

/// Number of octets compared. All packets have them; trailing octets may be link padding that the
/// kernel has not removed yet.
const BEGIN: usize = 64;

impl Numbers {
    fn note(&mut self, seen: &Seen) -> Result<()> {
        let packet = seen.esp().and_then(|esp| esp.split_first_chunk());
        let Some((header, begin)) =
            packet.and_then(|(header, rest)| Some((header, rest.first_chunk()?)))
        else {
            return Ok(());
        };
        let who = seen.source;
        let first = self.0.entry((who, *header)).or_insert(*begin);
        ensure!(first == begin, "{who} seals under {header:02x?} twice");
        Ok(())
    }
}

/// Control: agents that keep their keys and can read everywhere are detected.
#[lab::test]
fn licences_that_hold_everywhere_are_found_to_be_read_behind() -> Result<()> {
    let walk = Walk::in_bed(Testbed::new("walks")?, &[None; PLACES])?;
    let all: Vec<_> = (0..PLACES)
        .map(|agent| tables::licence(agent, None))
        .collect();
    let licences = format!("[{}]\nshared = true", all.join(", "));
    let (ends, agents) = start(&walk, &licences, OFTEN, |_| String::new())?;
    for agent in &agents {
        agent.wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    }
    let way = Way {
        handover: "push",
        most: 1,
    };
    let mut traveller = Traveller::new(&walk, way, 0, ends, agents)?;
    traveller.move_to(1)?;
    traveller.ends.is_at(CARE_OF[1])?;
    let found = traveller.readers_are_few(1).err();
    let found = found.context("nobody is found to read behind")?.to_string();
    ensure!(found.contains(AGENTS[0]), "{found}");
    Ok(())
}

/// Control: a second packet under the same number is detected.
#[lab::test]
fn a_number_that_is_used_twice_is_found() -> Result<()> {
    let walk = Walk::new("walks")?;
    let _agent = walk.start_agent(0)?;
    let _ends = Ends::start(&walk, "")?;
    let tap = Wiretap::open(&walk.mobile)?;
    both_ways(&walk)?;
    let mut seen = tap.rest()?;
    let mut numbers = Numbers::default();
    // A duplicate made by the network is the same packet.
    for seen in seen.iter().chain(&seen) {
        numbers.note(seen)?;
    }
    let sealed = seen.iter_mut().find(|seen| seen.esp().is_some());
    let sealed = sealed.context("nothing was sealed")?;
    // An octet after the headers of IP, UDP and ESP.
    sealed.octets[20 + 8 + 8] ^= 1;
    let found = numbers.note(sealed).err();
    found.context("it is not found").map(drop)
}
