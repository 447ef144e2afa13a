//! Mobile IPv4 in the system: the sockets and the device of this host's role, their input to the
//! node, and the node's output to them and to the kernel.
//!
//! No decisions are made here. A mobile node has no device: the kernel sends its packets, through
//! the agent that it is given. An agent has a device, and the node stands between it and the
//! tunnels.

mod foreign_agent;
mod home_agent;
mod link;
mod mobile_node;
mod setup;
mod tunnel;

pub use setup::part;

use crate::sink::IoCounters;
use config::{Config, Mobility, Offload};
use foreign_agent::ForeignAgent;
use home_agent::HomeAgent;
use mobile_node::MobileNode;
use model::Instant;
use node::mobile_ip::{Event, MobileEvent, NtpTime, PORT, Station, Transmit};
use node::{Node, Packet};
use os::{Ends, Error, LinkAddress, LocalUdp, Poller, clock};
use std::io;
use std::time::{Duration, SystemTime};
use wire::ip_in_ip::UDP_LEN;

/// Longest outer packet of a tunnel: the MTU of Ethernet. On a path with a smaller MTU packets are
/// fragmented, or their sources are notified.
const OUTER_MTU: u16 = 1500;

/// Returns the longest packet in a tunnel that may be in UDP: shorter by the UDP overhead.
const fn outer_mtu(nat: config::Nat) -> u16 {
    match nat {
        config::Nat::Never => OUTER_MTU,
        config::Nat::Detect | config::Nat::Always => OUTER_MTU - UDP_LEN as u16,
    }
}

/// Time that a stopping mobile node waits for its home agent's confirmation.
const FAREWELL: Duration = Duration::from_secs(3);

/// Messages read from one socket before the others are served.
const MESSAGES: usize = 64;

/// This host's role, with its system state and descriptors.
#[allow(clippy::large_enum_variant, reason = "a daemon has one")]
pub enum Mobile {
    /// A host away from home.
    MobileNode(MobileNode),
    /// A router that mobile nodes visit.
    ForeignAgent(ForeignAgent),
    /// A router that represents absent mobile nodes.
    HomeAgent(HomeAgent),
}

/// The descriptor that could not be read, and the error.
type NotRead = (&'static str, io::Error);

impl Mobile {
    /// Opens the configured role, or removes the remains of another configuration.
    pub fn open(config: &Config) -> Result<Option<Self>, Error> {
        let offload = config.tunnel.offload == Offload::Auto;
        Ok(Some(match &config.mobility {
            None => {
                os::mobile::remove_leftovers()?;
                return Ok(None);
            }
            Some(Mobility::MobileNode(terms)) => {
                Self::MobileNode(MobileNode::open(terms, &config.listen)?)
            }
            Some(Mobility::ForeignAgent(terms)) => {
                Self::ForeignAgent(ForeignAgent::open(terms, offload)?)
            }
            Some(Mobility::HomeAgent(terms)) => Self::HomeAgent(HomeAgent::open(terms, offload)?),
        }))
    }

    /// Returns the UDP ports on which messages and tunnelled packets arrive.
    pub fn ports(&self) -> Vec<u16> {
        match self {
            Self::MobileNode(_) | Self::HomeAgent(_) => vec![PORT],
            Self::ForeignAgent(agent) => vec![PORT, agent.port()],
        }
    }

    /// Registers all descriptors with the poller, under tokens from `first` on.
    pub fn watch(&self, poller: &Poller, first: u64) -> io::Result<()> {
        match self {
            Self::MobileNode(mobile) => mobile.watch(poller, first),
            Self::ForeignAgent(agent) => agent.watch(poller, first),
            Self::HomeAgent(agent) => agent.watch(poller, first),
        }
    }

    /// Returns the token of the descriptor to read before that of a token, if there is one.
    pub const fn decided_by(&self, token: u64) -> Option<u64> {
        match self {
            Self::ForeignAgent(_) => ForeignAgent::decided_by(token),
            Self::MobileNode(_) | Self::HomeAgent(_) => None,
        }
    }

    /// Reads the descriptor of a token, counted from the first. `broken` reports a removed device.
    pub fn handle(
        &mut self,
        token: u64,
        node: &mut Node,
        batch: &mut [Packet],
        counters: &mut IoCounters,
        broken: &mut Option<anyhow::Error>,
    ) {
        let now = clock::now();
        let read = match self {
            Self::MobileNode(mobile) => mobile.handle(token, node, now),
            Self::ForeignAgent(agent) => agent.handle(token, node, batch, counters, now),
            Self::HomeAgent(agent) => agent.handle(token, node, batch, counters, now),
        };
        if let Err((what, error)) = read {
            counters.not_read(what, &error, broken);
        }
    }

    /// Handles a change of interfaces or of the host's addresses.
    pub fn look(&mut self, node: &mut Node, poller: &Poller, first: u64, now: Instant) {
        match self {
            Self::MobileNode(mobile) => mobile.look(node, poller, first, now),
            Self::ForeignAgent(agent) => agent.look(node, poller, first, now),
            Self::HomeAgent(_) => {}
        }
    }

    /// Sends the node's messages to agents and mobile nodes.
    pub fn carry_out(&mut self, node: &mut Node, counters: &mut IoCounters) {
        let mut note = |sent: io::Result<()>| {
            if let Err(error) = sent {
                tracing::debug!("cannot send a registration or an advertisement: {error}");
                counters.sent += 1;
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

    /// Updates the kernel's routes after an event.
    pub fn note(&mut self, event: &Event) {
        let done = match (self, event) {
            (Self::MobileNode(mobile), Event::MobileNode(event)) => mobile.note(event),
            (Self::ForeignAgent(agent), Event::ForeignAgent(event)) => agent.note(event),
            (Self::HomeAgent(agent), Event::HomeAgent(event)) => agent.note(event),
            _ => Ok(()),
        };
        if let Err(error) = done {
            tracing::warn!("cannot apply a registration: {error}");
        }
    }

    /// Deregisters a mobile node, and waits a while for the home agent's confirmation.
    pub fn farewell(&mut self, node: &mut Node, counters: &mut IoCounters) -> anyhow::Result<()> {
        let begun = clock::now();
        if !node.deregister(begun) {
            return Ok(());
        }
        let (mut poller, mut ready, mut broken) = (Poller::new()?, Vec::new(), None);
        self.watch(&poller, 0)?;
        let end = begun + FAREWELL;
        while clock::now() < end && broken.is_none() {
            self.carry_out(node, counters);
            if let Some(confirmed) = deregistered(node) {
                tracing::info!(
                    "mobile node: {}",
                    match confirmed {
                        true => "deregistered",
                        false => "not deregistered; the registration ends with its lifetime",
                    }
                );
                return Ok(());
            }
            let next = node.poll_timeout().map_or(end, |next| next.at.min(end));
            poller.wait(Some(next), &mut ready)?;
            for event in &ready {
                self.handle(event.token, node, &mut [], counters, &mut broken);
            }
            node.handle_timeout(clock::now());
        }
        tracing::warn!("mobile node: the home agent did not confirm the deregistration");
        Ok(())
    }

    /// Returns kernel state that the role needs and that another program has removed.
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        match self {
            Self::MobileNode(mobile) => mobile.roaming().missing(),
            Self::ForeignAgent(agent) => agent.visitors().missing(),
            Self::HomeAgent(agent) => agent.homes().missing(),
        }
    }

    /// Restores the missing state.
    pub fn restore(&self) -> Result<(), Error> {
        match self {
            Self::MobileNode(mobile) => mobile.roaming().restore(),
            Self::ForeignAgent(agent) => agent.visitors().restore(),
            Self::HomeAgent(agent) => agent.homes().restore(),
        }
    }

    /// Removes all system state.
    pub fn close(self) -> Result<(), Error> {
        match self {
            Self::MobileNode(mobile) => mobile.close(),
            Self::ForeignAgent(agent) => agent.close(),
            Self::HomeAgent(agent) => agent.close(),
        }
    }
}

/// Returns the outcome of the deregistration, if it has ended. Other events no longer matter.
fn deregistered(node: &mut Node) -> Option<bool> {
    let mut events = std::iter::from_fn(|| node.poll_event());
    events.find_map(|event| match event {
        node::Event::MobileIp(Event::MobileNode(MobileEvent::Deregistered { confirmed })) => {
            Some(confirmed)
        }
        _ => None,
    })
}

/// Passes the wall-clock time to the node, with fractions of a second.
pub fn tell_time(node: &mut Node, now: Instant) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    node.set_time_of_day(NtpTime::from_unix(since.unwrap_or_default()), now);
}

/// Sends a message to a station on a link.
fn send_local(local: &LocalUdp, transmit: &Transmit) -> io::Result<()> {
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
    local.send(ends, destination.port(), octets)
}

/// Reads messages from a socket until it is empty.
fn each_message(mut read: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    (0..MESSAGES).try_for_each(|_| read())
}
