//! Packets at both ends of a tunnel, and the times of a move in them.

use super::place::PEER;
use crate::bait::DISCARD;
use crate::pair::GATEWAY;
use crate::wiretap::Seen;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use wire::ike::{ExchangeType, Header};
use wire::{ip, udp};

/// The ends, as indices of their traces.
pub(super) const AT_MOBILE: usize = 0;
pub(super) const AT_GATEWAY: usize = 1;

/// Number of packets that are searched for the place that traffic is at: at least 100 ms.
const LATEST: usize = 1000;

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// ESP, with or without UDP.
    Esp,
    /// A message of an INFORMATIONAL exchange.
    Informational { id: u32, response: bool },
    /// A message of another exchange of IKE.
    Ike,
    /// A datagram of the programs to an end, in clear: outside the tunnel, or without one.
    Datagram { end: usize, number: u64 },
}

/// A packet, with the kernel's time stamp since the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub at: Duration,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub content: Content,
}

impl Packet {
    /// Reads a packet; returns `None` for one that is neither of the tunnel nor in it.
    pub fn read(seen: &Seen) -> Option<Self> {
        let content = if let Some(message) = seen.ike() {
            let header = Header::peek(message).ok()?;
            match header.exchange {
                ExchangeType::INFORMATIONAL => Content::Informational {
                    id: header.message_id,
                    response: header.flags.response,
                },
                _ => Content::Ike,
            }
        } else if seen.esp().or_else(|| seen.esp_without_udp()).is_some() {
            Content::Esp
        } else {
            datagram(seen)?
        };
        Some(Self {
            at: seen.at,
            source: seen.source,
            destination: seen.destination,
            content,
        })
    }

    /// Returns true for a packet on the wire that this end has sent.
    pub fn is_sent_by(&self, end: usize) -> bool {
        let is_to_gateway = self.destination.to_string() == PEER;
        is_to_gateway == (end == AT_MOBILE)
    }

    pub fn is_ike(&self) -> bool {
        matches!(self.content, Content::Informational { .. } | Content::Ike)
    }

    /// Returns true for a datagram to an end, which is an arrival among the packets there.
    pub fn is_arrival_at(&self, end: usize) -> bool {
        matches!(self.content, Content::Datagram { end: to, .. } if to == end)
    }
}

/// Reads a datagram of the programs, which use the discard port at both ends.
fn datagram(seen: &Seen) -> Option<Content> {
    let header = ip::Header::parse(&seen.octets).ok()?;
    if header.protocol() != udp::PROTOCOL {
        return None;
    }
    let ports = udp::Header::parse(header.payload())?;
    if [ports.source_port, ports.destination_port] != [DISCARD; 2] {
        return None;
    }
    let to = seen.destination.to_string();
    let end = match [PEER, GATEWAY[0]].contains(&to.as_str()) {
        true => AT_GATEWAY,
        false => AT_MOBILE,
    };
    let content = header.payload().get(udp::HEADER_LEN..)?;
    let (number, _) = content.split_first_chunk()?;
    let number = u64::from_be_bytes(*number);
    Some(Content::Datagram { end, number })
}

/// A request of a move: the end that sent it, and its message ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub end: usize,
    pub id: u32,
}

/// The requests of a move, as far as there were any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Requests {
    /// UPDATE_SA_ADDRESSES.
    pub update: Option<Request>,
    /// The check that the new address is reachable.
    pub check: Option<Request>,
}

/// A change that causes a move, with times since the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// The first step of the move, which may be a command before the change.
    pub begun: Duration,
    /// The kernel's report of the change.
    pub event: Duration,
    /// The new address of the tunnel.
    pub address: IpAddr,
    /// The requests of the move.
    pub requests: Requests,
}

/// The packets of a move.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// True if traffic is in clear, and not in ESP.
    pub clear: bool,
    /// Packets at the mobile node and at the gateway.
    pub packets: [Vec<Packet>; 2],
    /// The change, once it was made.
    pub change: Option<Change>,
}

/// Times of a move, in microseconds. Those of exchanges and of the first packet are missing if the
/// tunnel was set up again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::figures) struct Passage {
    /// From the change until the first packet of any kind leaves from the new address.
    pub system: Option<f64>,
    /// From the change until the first packet with traffic leaves from there.
    pub first: Option<f64>,
    /// From the request with UPDATE_SA_ADDRESSES to its response.
    pub update: Option<f64>,
    /// From the request that checks the new address to its response.
    pub check: Option<f64>,
    /// Longest silence, to the mobile node and from it.
    pub stalled: [Option<f64>; 2],
    /// Datagrams that did not arrive, to the mobile node and from it.
    pub lost: [Option<f64>; 2],
}

impl Trace {
    /// Removes the packets and the change.
    pub fn forget(&mut self) {
        *self = Self {
            clear: self.clear,
            ..Self::default()
        };
    }

    /// Returns true for a packet on the wire that carries traffic. Without a tunnel these are the
    /// datagrams themselves.
    fn is_traffic(&self, packet: &Packet) -> bool {
        match packet.content {
            Content::Esp => true,
            Content::Datagram { .. } => self.clear,
            Content::Informational { .. } | Content::Ike => false,
        }
    }

    /// Returns how many packets with traffic left the mobile node from an address.
    pub fn sent_from(&self, address: IpAddr) -> usize {
        let packets = self.packets[AT_MOBILE].iter();
        let sent = packets.filter(|one| one.source == address && self.is_traffic(one));
        sent.count()
    }

    /// Returns the time from the first message of IKE that the mobile node sent after `begun` to
    /// the first packet with traffic that it sent after that.
    pub fn set_up(&self, begun: Duration) -> Option<f64> {
        let all = self.packets[AT_MOBILE].iter();
        let mut sent = all.filter(|one| one.at >= begun && one.is_sent_by(AT_MOBILE));
        let first = sent.find(|one| one.is_ike())?;
        let carries = sent.find(|one| self.is_traffic(one))?;
        Some(micros(carries.at.checked_sub(first.at)?))
    }

    /// Returns the number of the latest datagrams that arrived by an address, to the mobile node
    /// and from it.
    pub fn arrived_by(&self, address: IpAddr) -> [usize; 2] {
        let count = |end: usize, way: fn(&Packet) -> IpAddr| {
            let packets = &self.packets[end];
            let latest = packets[packets.len().saturating_sub(LATEST)..].iter();
            let new = latest.skip_while(|one| !self.is_traffic(one) || way(one) != address);
            new.filter(|one| one.is_arrival_at(end)).count()
        };
        [
            count(AT_MOBILE, |packet| packet.destination),
            count(AT_GATEWAY, |packet| packet.source),
        ]
    }

    /// Returns the time of the last message of IKE.
    pub fn last_message(&self) -> Duration {
        let last = |packets: &Vec<Packet>| packets.iter().rev().find(|one| one.is_ike()).copied();
        let times = self.packets.iter().filter_map(last).map(|one| one.at);
        times.max().unwrap_or_default()
    }

    /// Returns the IDs of the INFORMATIONAL requests that an end sent from any of these addresses
    /// after a time, in their order.
    pub fn requests(&self, end: usize, from: &[IpAddr], after: Duration) -> Vec<u32> {
        let mut ids = Vec::new();
        for packet in &self.packets[end] {
            if let Content::Informational { id, response } = packet.content {
                let is_sent = from.contains(&packet.source) && packet.at >= after;
                if is_sent && !response && !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
        ids
    }

    /// Returns the times of the move that the change caused.
    ///
    /// # Errors
    /// There was no change.
    pub fn passage(&self) -> Result<Passage> {
        let change = self.change.context("nothing was changed")?;
        let leaves = |is_meant: &dyn Fn(&Packet) -> bool| {
            let mut sent = self.packets[AT_MOBILE].iter();
            let is_first = |one: &&Packet| {
                one.source == change.address && one.at >= change.event && is_meant(one)
            };
            sent.find(is_first).map(|one| micros(one.at - change.event))
        };
        let exchange =
            |request: Option<Request>| request.and_then(|one| self.exchange(one, change.begun));
        Ok(Passage {
            system: leaves(&|one| self.is_traffic(one) || one.is_ike()),
            first: leaves(&|one| self.is_traffic(one)),
            update: exchange(change.requests.update),
            check: exchange(change.requests.check),
            stalled: [AT_MOBILE, AT_GATEWAY].map(|end| self.silence(end, change.begun)),
            lost: [AT_MOBILE, AT_GATEWAY].map(|end| self.lost(end, change.begun)),
        })
    }

    /// Returns the time from the first request of an exchange to its first response, at the end
    /// that sent the request. The other end uses the same message IDs for its own requests.
    fn exchange(&self, request: Request, after: Duration) -> Option<f64> {
        let at = |response: bool| {
            let id = request.id;
            let wanted = Content::Informational { id, response };
            let is_meant = |one: &&Packet| {
                let is_its = one.is_sent_by(request.end) != response;
                is_its && one.at >= after && one.content == wanted
            };
            self.packets[request.end].iter().find(is_meant)
        };
        let (sent, answered) = (at(false)?, at(true)?);
        Some(micros(answered.at.checked_sub(sent.at)?))
    }

    fn arrivals(&self, end: usize) -> impl Iterator<Item = (Duration, u64)> {
        let packets = self.packets[end].iter();
        packets.filter_map(move |one| match one.content {
            Content::Datagram { end: to, number } if to == end => Some((one.at, number)),
            _ => None,
        })
    }

    /// Returns the longest time between two arrivals that ends after this time.
    fn silence(&self, end: usize, after: Duration) -> Option<f64> {
        let times: Vec<_> = self.arrivals(end).map(|(at, _)| at).collect();
        let pairs = times.windows(2).filter(|pair| pair[1] > after);
        let longest = pairs.map(|pair| pair[1].saturating_sub(pair[0])).max();
        longest.map(micros)
    }

    /// Returns how many datagrams did not arrive, from the last arrival before this time on.
    fn lost(&self, end: usize, after: Duration) -> Option<f64> {
        let before = self.arrivals(end).filter(|(at, _)| *at <= after).last();
        let later = self.arrivals(end).filter(|(at, _)| *at > after);
        let all = before.into_iter().chain(later);
        let numbers: BTreeSet<_> = all.map(|(_, number)| number).collect();
        let all = numbers.last()? - numbers.first()? + 1;
        Some((all - numbers.len() as u64) as f64)
    }
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const OLD: &str = "10.3.0.2";
    const NEW: &str = "10.4.0.2";
    const INNER: &str = "10.1.0.2";

    /// Time of the first packet.
    const BEGIN: Duration = Duration::from_secs(1);

    fn packet(at: u64, source: &str, destination: &str, content: Content) -> Packet {
        Packet {
            at: BEGIN + Duration::from_millis(at),
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            content,
        }
    }

    const fn message(id: u32, response: bool) -> Content {
        Content::Informational { id, response }
    }

    /// A datagram a millisecond each way; the interface is lost at 10 ms, and none arrives from 11
    /// to 29 ms.
    pub fn moved() -> Trace {
        let (mut mobile, mut gateway) = (Vec::new(), Vec::new());
        for at in (0..=10).chain(30..40) {
            let address = if at < 20 { OLD } else { NEW };
            let datagram = |end| Content::Datagram { end, number: at };
            let (to, from) = (datagram(AT_MOBILE), datagram(AT_GATEWAY));
            mobile.push(packet(at, PEER, address, Content::Esp));
            mobile.push(packet(at, GATEWAY[0], INNER, to));
            // It is on its way out.
            mobile.push(packet(at, INNER, GATEWAY[0], from));
            gateway.push(packet(at, address, PEER, Content::Esp));
            gateway.push(packet(at, INNER, GATEWAY[0], from));
        }
        mobile.push(packet(12, NEW, PEER, message(3, false)));
        mobile.push(packet(13, NEW, PEER, Content::Esp));
        mobile.push(packet(14, NEW, PEER, message(3, false)));
        mobile.push(packet(17, PEER, NEW, message(3, true)));
        gateway.push(packet(18, PEER, NEW, message(0, false)));
        // The response to a request of the mobile node, with the same message ID.
        gateway.push(packet(19, PEER, NEW, message(0, true)));
        gateway.push(packet(28, NEW, PEER, message(0, true)));
        for packets in [&mut mobile, &mut gateway] {
            packets.sort_by_key(|packet| packet.at);
        }
        Trace {
            clear: false,
            packets: [mobile, gateway],
            change: Some(Change {
                begun: BEGIN + Duration::from_millis(9),
                event: BEGIN + Duration::from_millis(10),
                address: NEW.parse().unwrap(),
                requests: Requests {
                    update: Some(Request {
                        end: AT_MOBILE,
                        id: 3,
                    }),
                    check: Some(Request {
                        end: AT_GATEWAY,
                        id: 0,
                    }),
                },
            }),
        }
    }

    #[test]
    fn a_move_is_timed_from_the_change_on() {
        let expected = Passage {
            system: Some(2000.0),
            first: Some(3000.0),
            update: Some(5000.0),
            check: Some(10_000.0),
            stalled: [Some(20_000.0); 2],
            lost: [Some(19.0); 2],
        };
        assert_eq!(moved().passage().unwrap(), expected);
    }

    #[test]
    fn an_exchange_without_a_response_has_no_time() {
        let mut trace = moved();
        if let Some(change) = &mut trace.change {
            let (end, id) = (AT_MOBILE, 9);
            change.requests.update = Some(Request { end, id });
            change.requests.check = None;
        }
        let passage = trace.passage().unwrap();
        assert_eq!((passage.update, passage.check), (None, None));
    }

    #[test]
    fn requests_are_named_once_and_those_before_the_change_are_not() {
        let trace = moved();
        let from = [OLD, NEW].map(|address| address.parse().unwrap());
        assert_eq!(trace.requests(AT_MOBILE, &from, Duration::ZERO), [3]);
        let after = BEGIN + Duration::from_millis(15);
        assert_eq!(trace.requests(AT_MOBILE, &from, after), [0; 0]);
        let last = BEGIN + Duration::from_millis(28);
        assert_eq!(trace.last_message(), last);
    }

    /// The same move without a tunnel: its packets are the datagrams themselves.
    #[test]
    fn without_a_tunnel_the_datagrams_are_timed() {
        let (mut mobile, mut gateway) = (Vec::new(), Vec::new());
        for at in (0..=10).chain(30..40) {
            let address = if at < 20 { OLD } else { NEW };
            let datagram = |end| Content::Datagram { end, number: at };
            mobile.push(packet(at, PEER, address, datagram(AT_MOBILE)));
            mobile.push(packet(at, address, PEER, datagram(AT_GATEWAY)));
            gateway.push(packet(at, address, PEER, datagram(AT_GATEWAY)));
        }
        let mut trace = moved();
        (trace.clear, trace.packets) = (true, [mobile, gateway]);
        let passage = trace.passage().unwrap();
        assert_eq!([passage.system, passage.first], [Some(20_000.0); 2]);
        assert_eq!(passage.stalled, [Some(20_000.0); 2]);
        assert_eq!(trace.arrived_by(NEW.parse().unwrap()), [10, 10]);
        trace.clear = false;
        assert_eq!(trace.passage().unwrap().system, None);
        assert_eq!(trace.sent_from(NEW.parse().unwrap()), 0);
    }

    #[test]
    fn a_set_up_ends_with_the_first_packet_of_traffic() {
        let mut trace = moved();
        assert_eq!(trace.set_up(BEGIN), Some(1000.0));
        assert_eq!(trace.sent_from(NEW.parse().unwrap()), 1);
        trace.forget();
        assert_eq!(trace.set_up(BEGIN), None);
    }

    #[test]
    fn only_what_arrives_by_the_new_address_counts() {
        let count = |address: &str| moved().arrived_by(address.parse().unwrap());
        assert_eq!(count(NEW), [10, 10]);
        assert_eq!(count("10.9.9.9"), [0, 0]);
    }
}
