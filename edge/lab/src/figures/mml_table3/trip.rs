//! A mobile node that registers at one foreign agent and moves to another, with the messages of
//! each host.

use super::wires::{Kind, Message, Tap};
use crate::chatter::Chatter;
use crate::daemon::Daemon;
use crate::host::Host;
use crate::pair::{GATEWAY, MOBILE, NODE_KEY, Terms};
use crate::process::{DEADLINE, until};
use crate::spis::held_in;
use crate::testbed::Testbed;
use crate::walk::{
    AGENTS, CARE_OF, HOME_ADDRESS, HOME_AGENT, HOME_KEY, UPLINKS, Walk, registered, tables,
};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// One-way delay from each foreign agent to home.
pub(super) const DELAY: Duration = Duration::from_millis(10);

/// Interval between two requests of a mobile node (RFC 5944 section 3.6), so that no move has to
/// wait for it.
pub(super) const SPACING: Duration = Duration::from_millis(1200);

/// Time after which a hand-over has failed. It usually takes a fraction of this.
const PATIENCE: Duration = Duration::from_secs(4);

/// Interval between packets to the mobile node.
const PERIOD: Duration = Duration::from_micros(500);

/// Services in addition to the registration, and the distribution of keys to licensed nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Mobile IP alone.
    Pure,
    /// Mobile IP with a plain tunnel.
    Ipsec,
    /// Mobile IP with a zoned tunnel whose keys are distributed in advance.
    Pkd,
    /// The keys follow the registration.
    Push,
    /// The agent first fetches the keys from the previous one.
    Dkm,
}

impl Scheme {
    pub const ALL: [Self; 5] = [Self::Pure, Self::Ipsec, Self::Pkd, Self::Push, Self::Dkm];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Pure => "Mobile IP",
            Self::Ipsec => "with IPsec",
            Self::Pkd => "with zones, PKD",
            Self::Push => "with zones, push",
            Self::Dkm => "with zones, DKM",
        }
    }

    /// Returns an agent's table of the other agent: as a neighbour that mobile nodes move to, or as
    /// a source of keys.
    fn neighbour(self, number: usize) -> String {
        match self {
            Self::Dkm => tables::neighbour(number, 1 - number),
            _ => tables::neighbours(&[1 - number]),
        }
    }

    /// Returns the word of the configuration, if there are zones.
    pub const fn handover(self) -> Option<&'static str> {
        match self {
            Self::Pure | Self::Ipsec => None,
            Self::Pkd => Some("pkd"),
            Self::Push => Some("push"),
            Self::Dkm => Some("dkm"),
        }
    }
}

/// Number of hosts with a tap.
pub(super) const HOSTS: usize = 4;

/// A passage, from the request to the first packet that the agent can read; without zones, to the
/// first packet that arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passage {
    /// Total duration.
    pub total: Duration,
    /// Time that each host worked on messages: the mobile node, home, and the agents.
    pub own: [Duration; HOSTS],
    /// Messages of all hosts, each counted once.
    pub messages: usize,
    /// Messages about keys until home has answered the registration, except those between agents.
    pub beside: usize,
    /// Messages by which an agent gets keys from another one.
    pub between: usize,
}

impl Passage {
    /// Returns the total work of all hosts.
    pub fn work(&self) -> Duration {
        self.own.iter().sum()
    }

    /// Returns the time on the link, which is the rest.
    pub fn link(&self) -> Duration {
        self.total.saturating_sub(self.work())
    }
}

/// Measures a first registration and a hand-over.
pub(super) fn measure(scheme: Scheme, zones: bool) -> Result<[Passage; 2]> {
    let handover = scheme.handover().filter(|_| zones);
    let licences = handover.map(|handover| {
        // Each agent may read the headers at its own address.
        tables::licences(&[0, 1], &format!("handover = \"{handover}\""))
    });
    let terms = licences.as_deref().map_or(Terms::PLAIN, Terms::requiring);
    let mut trip = Trip::prepare(scheme, terms)?;
    // Packets to the mobile node, at any agent.
    let [from, to] = match scheme {
        Scheme::Pure => [HOME_AGENT, HOME_ADDRESS],
        _ => [GATEWAY[0], MOBILE[0]],
    };
    let _chatter = Chatter::start((&trip.walk.home, from), to, PERIOD)?;
    trip.measure(scheme, terms)
}

struct Trip {
    walk: Walk,
    agents: Vec<Daemon>,
    _home: Daemon,
    mobile: Option<Daemon>,
    /// Taps on the mobile node, home, and the agents.
    taps: [Tap; HOSTS],
}

impl Trip {
    /// Starts all hosts but the mobile node, and waits until their peers are up.
    fn prepare(scheme: Scheme, terms: Terms<'_>) -> Result<Self> {
        let hop = sim::Settings {
            rate: None,
            delay: DELAY,
            queue: 0,
            bit_error_rate: 0.0,
        };
        let walk = Walk::in_bed(Testbed::new("trip")?, &[Some(hop); 2])?;
        walk.set_link(1, false)?;
        let agents = walk.start_licensed_agents(|number| scheme.neighbour(number))?;
        walk.home.secret("node.psk", NODE_KEY)?;
        let home = walk.start_home(terms)?;
        let is_known = |status: &Value| {
            let peers = status["status"]["peers"].as_array();
            peers.is_some_and(|peers| peers.iter().all(|peer| peer["state"] == "up"))
        };
        for agent in &agents {
            agent.wait_until("status", DEADLINE, is_known)?;
        }
        let of = |host: &Host, addresses: &[&str]| Tap::open(host, addresses);
        let taps = [
            of(&walk.mobile, &[HOME_ADDRESS])?,
            of(&walk.home, &[HOME_AGENT])?,
            of(&walk.agents[0], &[CARE_OF[0], UPLINKS[0][0]])?,
            of(&walk.agents[1], &[CARE_OF[1], UPLINKS[1][0]])?,
        ];
        Ok(Self {
            walk,
            agents,
            _home: home,
            mobile: None,
            taps,
        })
    }

    fn measure(&mut self, scheme: Scheme, terms: Terms<'_>) -> Result<[Passage; 2]> {
        let reads = scheme.handover().is_some();
        let begun = self.read(None)?;
        let config = self.walk.mobile_config("", terms);
        let config = match scheme {
            Scheme::Pure => {
                config.replace("[peer.office]\n", "[peer.office]\nstart = \"manual\"\n")
            }
            _ => config,
        };
        self.mobile = Some(self.walk.start_mobile_as(HOME_KEY, &config)?);
        let first = self.passage(0, begun, reads)?;
        self.walk.set_link(1, true)?;
        self.wait(SPACING)?;
        let left = self.read(None)?;
        self.walk.set_link(0, false)?;
        let second = self.passage(1, left, reads)?;
        let mobile = self.mobile.as_ref().context("it runs")?;
        let there = |status: &Value| registered(status) == [CARE_OF[1]];
        mobile.wait_until("status", DEADLINE, there)?;
        Ok([first, second])
    }

    /// Reads new messages and returns the time of the last one; `after` discards earlier ones.
    fn read(&mut self, after: Option<Duration>) -> Result<Duration> {
        let mut last = after.unwrap_or_default();
        for tap in &mut self.taps {
            tap.read()?;
            last = last.max(tap.messages.last().map_or(last, |message| message.at));
        }
        Ok(last)
    }

    /// Waits for this long.
    fn wait(&self, time: Duration) -> Result<()> {
        let begun = Instant::now();
        until("time to pass", DEADLINE, || {
            Ok((begun.elapsed() >= time).then_some(()))
        })
    }

    /// Returns the passage to an agent, from the messages after a time.
    fn passage(&mut self, agent: usize, after: Duration, reads: bool) -> Result<Passage> {
        let begun = Instant::now();
        loop {
            // The order matters: messages that brought the keys have been captured by then.
            let held = match reads {
                true => Some(held(&self.agents[agent])?),
                false => None,
            };
            self.read(None)?;
            if let Some(passage) = self.find(agent, after, held.as_ref()) {
                return Ok(passage);
            }
            anyhow::ensure!(
                begun.elapsed() < PATIENCE,
                "{} never reads what passes it",
                AGENTS[agent]
            );
            // Each query is work for the agent.
            self.wait(PERIOD * 100)?;
        }
    }

    fn find(
        &self,
        agent: usize,
        after: Duration,
        held: Option<&BTreeSet<String>>,
    ) -> Option<Passage> {
        let [mobile, home, agents @ ..] = &self.taps;
        let to: IpAddr = CARE_OF[agent].parse().ok()?;
        let is_request = |message: &&Message| {
            message.out && message.kind == Kind::Registration && message.destination == to
        };
        let later = |message: &&Message| message.at > after;
        let request = mobile.messages.iter().filter(later).find(is_request)?;
        let since = request.at;
        let readable = |spi: Option<u32>| match held {
            Some(held) => spi.is_some_and(|spi| held.contains(&format!("{spi:08x}"))),
            None => true,
        };
        // Fetched keys open packets of an SA that existed before, so only packets after the fetch
        // count.
        let come = |message: &&Message| {
            !message.out && message.kind == Kind::Migration(true) && message.at > since
        };
        let fetched = agents[agent].messages.iter().find(come);
        let from = fetched.map_or(since, |message| message.at);
        let mut data = mobile.data.iter().filter(|(at, _)| *at > from);
        let (done, _) = data.find(|(_, spi)| readable(*spi))?;
        let is_reply = |message: &&Message| {
            message.out && message.kind == Kind::Registration && message.at > since
        };
        let reply = home.messages.iter().find(is_reply)?;
        let sent = || {
            let all = self.taps.iter().flat_map(|tap| &tap.messages);
            all.filter(|message| message.out && (since..=*done).contains(&message.at))
        };
        let is_beside = |message: &&Message| message.kind == Kind::Keys && message.at < reply.at;
        let is_between = |message: &&Message| matches!(message.kind, Kind::Migration(_));
        Some(Passage {
            total: *done - since,
            own: self.taps.each_ref().map(|tap| tap.work(since, *done)),
            messages: sent().count(),
            beside: sent().filter(is_beside).count(),
            between: sent().filter(is_between).count(),
        })
    }
}

/// Returns the SPIs whose keys an agent holds, without starting a process.
fn held(agent: &Daemon) -> Result<BTreeSet<String>> {
    let answer = agent.ask("zones", json!({}))?;
    Ok(held_in(&serde_json::from_str(&answer)?))
}
