//! Messages between hosts during a registration, as the kernel of each host captured them.

use crate::host::Host;
use crate::wiretap::{Seen, Wiretap};
use anyhow::Result;
use std::net::IpAddr;
use std::time::Duration;
use wire::ike::{ExchangeType, Header};
use wire::{ip, udp};

/// Port of Mobile IP.
const REGISTRATION: u16 = 434;
/// Ports of IKE, the second with a marker (RFC 3948 section 2.2).
const IKE: u16 = 500;
const NATT: u16 = 4500;
const MARKER: [u8; 4] = [0; 4];

/// Longest time between a message and one that a host sends because of it. A message to a remote
/// host takes longer.
const REACTION: Duration = Duration::from_millis(9);

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message of Mobile IP.
    Registration,
    /// A message about the keys of tunnels and zones. INFORMATIONAL exchanges, such as liveness
    /// checks, do not count.
    Keys,
    /// A key request between agents, or its answer (`true`).
    Migration(bool),
}

/// A message at a host that sent or received it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub at: Duration,
    pub kind: Kind,
    pub destination: IpAddr,
    /// True if this host sent the message.
    pub out: bool,
}

/// A tap on a host with these addresses.
pub(super) struct Tap {
    tap: Wiretap,
    addresses: Vec<IpAddr>,
    pub messages: Vec<Message>,
    /// Packets that carry data, with their time, and with their SPI if they have one.
    pub data: Vec<(Duration, Option<u32>)>,
}

impl Tap {
    pub fn open(host: &Host, addresses: &[&str]) -> Result<Self> {
        let addresses = addresses.iter().map(|address| address.parse());
        Ok(Self {
            tap: Wiretap::open(host)?,
            addresses: addresses.collect::<Result<_, _>>()?,
            messages: Vec::new(),
            data: Vec::new(),
        })
    }

    /// Reads the packets that have passed since the last call.
    pub fn read(&mut self) -> Result<()> {
        while let Some(seen) = self.tap.next()? {
            self.take(&seen);
        }
        Ok(())
    }

    /// Classifies a packet. Packets for other hosts, or in a tunnel on their way, are neither sent
    /// nor received here.
    fn take(&mut self, seen: &Seen) {
        let is_ours = |address| self.addresses.contains(&address);
        let out = is_ours(seen.source);
        if !out && !is_ours(seen.destination) {
            return;
        }
        match classify(&seen.octets) {
            Some(Class::Message(kind)) => self.messages.push(Message {
                at: seen.at,
                kind,
                destination: seen.destination,
                out,
            }),
            Some(Class::Data(spi)) if !out => self.data.push((seen.at, spi)),
            Some(Class::Data(_)) | None => {}
        }
    }

    /// Returns the time that the host worked within this period.
    pub fn work(&self, from: Duration, until: Duration) -> Duration {
        let within = |message: &&Message| (from..=until).contains(&message.at);
        work(self.messages.iter().filter(within))
    }
}

/// Adds the times from each received message to the last one that is sent because of it.
fn work<'a>(messages: impl Iterator<Item = &'a Message>) -> Duration {
    let (mut all, mut since) = (Duration::ZERO, None);
    for message in messages {
        let begun = since.filter(|since| message.out && message.at - *since < REACTION);
        match begun {
            Some(begun) => {
                all += message.at - begun;
                since = Some(message.at);
            }
            None => since = (!message.out).then_some(message.at),
        }
    }
    all
}

enum Class {
    Message(Kind),
    Data(Option<u32>),
}

fn classify(octets: &[u8]) -> Option<Class> {
    let header = ip::Header::parse(octets).ok()?;
    if header.protocol() != udp::PROTOCOL || header.is_fragment() {
        return None;
    }
    let ports = udp::Header::parse(header.payload())?;
    let payload = header.payload().get(udp::HEADER_LEN..)?;
    let has = |port| [ports.source_port, ports.destination_port].contains(&port);
    if has(REGISTRATION) {
        return Some(Class::Message(Kind::Registration));
    }
    let message = match (has(IKE), has(NATT)) {
        (true, _) => payload,
        (_, true) => match payload.strip_prefix(&MARKER) {
            Some(message) => message,
            None => {
                let spi = payload.first_chunk().map(|spi| u32::from_be_bytes(*spi));
                return Some(Class::Data(spi));
            }
        },
        _ => return Some(Class::Data(None)),
    };
    let header = Header::peek(message).ok()?;
    match header.exchange {
        ExchangeType::INFORMATIONAL => None,
        ExchangeType::KEY_REQUEST => Some(Class::Message(Kind::Migration(header.flags.response))),
        _ => Some(Class::Message(Kind::Keys)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the milliseconds of work for messages at these times, each sent or received.
    fn worked(messages: &[(u64, bool)]) -> u128 {
        let message = |&(at, out): &(u64, bool)| Message {
            at: Duration::from_millis(at),
            kind: Kind::Keys,
            destination: IpAddr::from([192, 0, 2, 1]),
            out,
        };
        let messages: Vec<_> = messages.iter().map(message).collect();
        work(messages.iter()).as_millis()
    }

    #[test]
    fn a_host_works_from_a_message_until_what_it_sends_because_of_it() {
        // Two answers to one message, and later one to another.
        let answers = [(0, false), (1, true), (3, true), (20, false), (21, true)];
        assert_eq!(worked(&answers), 4);
        // A message that the host sends on its own, and a message that follows much later.
        assert_eq!(worked(&[(0, true), (20, false), (40, true)]), 0);
    }
}
