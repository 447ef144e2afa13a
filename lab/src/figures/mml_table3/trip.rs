//! A mobile node that registers at one foreign agent and moves to others, with the messages of each
//! host.

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
use serde::{Deserialize, Serialize};
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

/// Settings of `rp_filter` on all hosts, one for each move: reverse paths are not checked, checked
/// strictly, or loosely.
pub(super) const SETTINGS: [&str; 3] = ["0", "1", "2"];

/// The first registration, and the moves.
pub(super) const PASSAGES: usize = 1 + SETTINGS.len();

/// Foreign agents, one for each passage. A mobile node prefers its first links, so it does not move
/// to another agent before its link is cut.
const STOPS: usize = PASSAGES;

/// Services in addition to the registration, and the distribution of keys to licensed nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Returns an agent's tables of other agents: of the neighbour that mobile nodes move to, or of
    /// the sources of keys.
    fn neighbours(self, number: usize) -> String {
        let next = Some(number + 1).filter(|next| *next < STOPS);
        let previous = number.checked_sub(1);
        match self {
            Self::Dkm => {
                let others = previous.into_iter().chain(next);
                others
                    .map(|other| tables::neighbour(number, other))
                    .collect()
            }
            _ => tables::neighbours(&next.or(previous).into_iter().collect::<Vec<_>>()),
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

/// Number of hosts with a tap: the mobile node, home, and the agents.
pub(super) const HOSTS: usize = 2 + STOPS;

/// A passage, from the request to the first packet that the agent can read; without zones, to the
/// first packet that arrives.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
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

/// Measures a first registration, and a hand-over with each setting.
pub(super) fn measure(scheme: Scheme, zones: bool) -> Result<[Passage; PASSAGES]> {
    let handover = scheme.handover().filter(|_| zones);
    let licences = handover.map(|handover| {
        // Each agent may read the headers at its own address.
        tables::licences(&[0, 1, 2, 3], &format!("handover = \"{handover}\""))
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
        let walk = Walk::in_bed(Testbed::new("trip")?, &[Some(hop); STOPS])?;
        walk.check_reverse_paths(SETTINGS[0])?;
        walk.leave_link(0)?;
        let agents = walk.start_licensed_agents(|number| scheme.neighbours(number))?;
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
        let agent =
            |number: usize| of(&walk.agents[number], &[CARE_OF[number], UPLINKS[number][0]]);
        let taps = [
            of(&walk.mobile, &[HOME_ADDRESS])?,
            of(&walk.home, &[HOME_AGENT])?,
            agent(0)?,
            agent(1)?,
            agent(2)?,
            agent(3)?,
        ];
        Ok(Self {
            walk,
            agents,
            _home: home,
            mobile: None,
            taps,
        })
    }

    fn measure(&mut self, scheme: Scheme, terms: Terms<'_>) -> Result<[Passage; PASSAGES]> {
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
        let mut passages = [Passage::default(); PASSAGES];
        passages[0] = self.passage(0, begun, reads)?;
        for (to, setting) in (1..).zip(SETTINGS) {
            self.walk.check_reverse_paths(setting)?;
            passages[to] = self.hand_over(to, reads)?;
        }
        Ok(passages)
    }

    /// Moves the mobile node to the next agent, which it has heard before its link is cut.
    fn hand_over(&mut self, to: usize, reads: bool) -> Result<Passage> {
        self.walk.set_link(to, true)?;
        self.wait(SPACING)?;
        let left = self.read(None)?;
        self.walk.set_link(to - 1, false)?;
        let passage = self.passage(to, left, reads)?;
        let mobile = self.mobile.as_ref().context("it runs")?;
        let there = |status: &Value| registered(status) == [CARE_OF[to]];
        mobile.wait_until("status", DEADLINE, there)?;
        Ok(passage)
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
