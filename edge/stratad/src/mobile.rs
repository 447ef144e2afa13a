//! Mobile IPv4 in the system: the sockets and the device of the one part that we take in it, what comes by them to the
//! node, and what the node says to them and to the kernel.
//!
//! Nothing is decided here. A mobile node has no device: its packets are the kernel's, which is told by whom to send.
//! An agent has one, between whose packets and those of its tunnels the node stands.

mod foreign_agent;
mod home_agent;
mod mobile_node;
mod setup;
mod tunnel;

pub use setup::part;

use crate::outlet::Losses;
use config::{Config, Mobility, Offload};
use foreign_agent::ForeignAgent;
use home_agent::HomeAgent;
use mobile_node::MobileNode;
use model::Instant;
use node::mobile_ip::{Event, MobileEvent, NtpTime, Station, Transmit};
use node::{Node, Packet};
use os::{Ends, Error, LinkAddress, Nearby, Poller, clock};
use std::io;
use std::time::{Duration, SystemTime};
use wire::ip_in_ip::UDP_LEN;

/// What a packet of a tunnel may have on its way: as much as Ethernet takes. Those that go on by less are cut, or their
/// sources are told.
const OUTER_MTU: u16 = 1500;

/// The same where tunnels may be in UDP: less by what that adds.
const fn outer_mtu(nat: config::Nat) -> u16 {
    match nat {
        config::Nat::Never => OUTER_MTU,
        config::Nat::Detect | config::Nat::Always => OUTER_MTU - UDP_LEN as u16,
    }
}

/// How long the end of a mobile node waits for its home agent to know of it.
const FAREWELL: Duration = Duration::from_secs(3);

/// Messages taken from one socket before the others get their turn.
const MESSAGES: usize = 64;

/// What we put into the system, and wait for.
pub enum Mobile {
    /// A host away from home.
    MobileNode(MobileNode),
    /// A router that is visited.
    ForeignAgent(ForeignAgent),
    /// A router that stands in.
    HomeAgent(HomeAgent),
}

/// Why a descriptor could not be read: what it is, and the error.
type NotRead = (&'static str, io::Error);

impl Mobile {
    /// Opens what a configuration asks for, or removes what another one has left.
    pub fn open(config: &Config) -> Result<Option<Self>, Error> {
        let offload = config.tunnel.offload == Offload::Auto;
        Ok(Some(match &config.mobility {
            None => {
                os::mobile::remove_leftovers()?;
                return Ok(None);
            }
            Some(Mobility::MobileNode(terms)) => Self::MobileNode(MobileNode::open(terms)?),
            Some(Mobility::ForeignAgent(terms)) => {
                Self::ForeignAgent(ForeignAgent::open(terms, offload)?)
            }
            Some(Mobility::HomeAgent(terms)) => Self::HomeAgent(HomeAgent::open(terms, offload)?),
        }))
    }

    /// Waits for everything of it, under tokens from `first` on.
    pub fn watch(&self, poller: &Poller, first: u64) -> io::Result<()> {
        match self {
            Self::MobileNode(mobile) => mobile.watch(poller, first),
            Self::ForeignAgent(agent) => agent.watch(poller, first),
            Self::HomeAgent(agent) => agent.watch(poller, first),
        }
    }

    /// Something can be read by this token, counted from the first. A device that is gone is told by `broken`.
    pub fn handle(
        &mut self,
        token: u64,
        node: &mut Node,
        batch: &mut [Packet],
        losses: &mut Losses,
        broken: &mut Option<anyhow::Error>,
    ) {
        let now = clock::now();
        let read = match self {
            Self::MobileNode(mobile) => mobile.handle(token, node, now),
            Self::ForeignAgent(agent) => agent.handle(token, node, batch, losses, now),
            Self::HomeAgent(agent) => agent.handle(token, node, batch, losses, now),
        };
        if let Err((what, error)) = read {
            losses.not_read(what, &error, broken);
        }
    }

    /// Interfaces may have come or gone, or the host's addresses.
    pub fn look(&mut self, node: &mut Node, watched: (&Poller, u64), now: Instant) {
        match self {
            Self::MobileNode(mobile) => mobile.look(node, watched, now),
            Self::ForeignAgent(agent) => agent.look(node, now),
            Self::HomeAgent(_) => {}
        }
    }

    /// Sends what the node has to say to agents.
    pub fn carry_out(&mut self, node: &mut Node, losses: &mut Losses) {
        let mut note = |sent: io::Result<()>| {
            if let Err(error) = sent {
                tracing::debug!("cannot send a registration or an advertisement: {error}");
                losses.sent += 1;
            }
        };
        while let Some(transmit) = node.poll_registration() {
            note(match self {
                Self::MobileNode(mobile) => mobile.send(&transmit),
                Self::ForeignAgent(agent) => agent.send(&transmit),
                Self::HomeAgent(agent) => agent.send(&transmit),
            });
        }
    }

    /// Has the kernel lead packets as an event says.
    pub fn note(&mut self, event: &Event) {
        let done = match (self, event) {
            (Self::MobileNode(mobile), Event::MobileNode(event)) => mobile.note(event),
            (Self::ForeignAgent(agent), Event::ForeignAgent(event)) => agent.note(event),
            (Self::HomeAgent(agent), Event::HomeAgent(event)) => agent.note(event),
            _ => Ok(()),
        };
        if let Err(error) = done {
            tracing::warn!("packets do not go as registrations say: {error}");
        }
    }

    /// Has the home agent know that a mobile node is nowhere any more, and waits a while for it to say so.
    pub fn farewell(&mut self, node: &mut Node, losses: &mut Losses) -> anyhow::Result<()> {
        let begun = clock::now();
        if !node.deregister(begun) {
            return Ok(());
        }
        let (mut poller, mut ready, mut broken) = (Poller::new()?, Vec::new(), None);
        self.watch(&poller, 0)?;
        let end = begun + FAREWELL;
        while clock::now() < end && broken.is_none() {
            self.carry_out(node, losses);
            if let Some(confirmed) = deregistered(node) {
                tracing::info!(
                    "mobile node: {}",
                    match confirmed {
                        true => "the home agent knows that we are gone",
                        false => "gone, and the home agent will know when the lifetime is over",
                    }
                );
                return Ok(());
            }
            let next = node.poll_timeout().map_or(end, |next| next.at.min(end));
            poller.wait(Some(next), &mut ready)?;
            for event in &ready {
                self.handle(event.token, node, &mut [], losses, &mut broken);
            }
            node.handle_timeout(clock::now());
        }
        tracing::warn!("mobile node: the home agent does not say that it knows of our end");
        Ok(())
    }

    /// What the kernel ought to have of it and does not, because another program removed it.
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        match self {
            Self::MobileNode(mobile) => mobile.roaming().missing(),
            Self::ForeignAgent(agent) => agent.visitors().missing(),
            Self::HomeAgent(agent) => agent.homes().missing(),
        }
    }

    /// Puts that back.
    pub fn restore(&self) -> Result<(), Error> {
        match self {
            Self::MobileNode(mobile) => mobile.roaming().restore(),
            Self::ForeignAgent(agent) => agent.visitors().restore(),
            Self::HomeAgent(agent) => agent.homes().restore(),
        }
    }

    /// Takes everything out of the system.
    pub fn close(self) -> Result<(), Error> {
        match self {
            Self::MobileNode(mobile) => mobile.close(),
            Self::ForeignAgent(agent) => agent.close(),
            Self::HomeAgent(agent) => agent.close(),
        }
    }
}

/// Whether the end has come, and the home agent has said so. Nothing else is of interest any more.
fn deregistered(node: &mut Node) -> Option<bool> {
    let mut events = std::iter::from_fn(|| node.poll_event());
    events.find_map(|event| match event {
        node::Event::MobileIp(Event::MobileNode(MobileEvent::Deregistered { confirmed })) => {
            Some(confirmed)
        }
        _ => None,
    })
}

/// Tells the node what time of day it is, to the fraction of a second.
pub fn tell_time(node: &mut Node, now: Instant) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    node.set_time_of_day(NtpTime::from_unix(since.unwrap_or_default()), now);
}

/// Sends a message to a station of a link.
fn send_nearby(nearby: &Nearby, transmit: &Transmit) -> io::Result<()> {
    let Transmit::Udp {
        station: Some(Station(station)),
        source,
        destination,
        ttl,
        octets,
        ..
    } = transmit
    else {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    };
    let ends = Ends {
        source: *source.ip(),
        destination: *destination.ip(),
        link: LinkAddress(*station),
        ttl: *ttl,
    };
    nearby.send(ends, destination.port(), octets)
}

/// Reads messages from a socket until there are no more.
fn each_message(mut read: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    (0..MESSAGES).try_for_each(|_| read())
}
