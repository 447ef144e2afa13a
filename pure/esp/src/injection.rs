//! Injection (DESIGN section 3): packets that a licensed node sends to one end in the name of the
//! other, and the checks of the receiving end.
//!
//! Every grant to inject has its own key for each direction, derived like that of overlays
//! ([`grant_key`]), and its own counter, for which each end keeps a replay window. Injected packets
//! do not affect the state of the composite SA: neither its replay window, nor the peer's liveness,
//! nor the confirmation of an SA.
//!
//! A node may only *repeat*. It injects a bare acknowledgement of a TCP connection whose own end
//! has sent segments on this SA. No field may be beyond what that end has sent: neither the
//! acknowledgement number, nor the sequence number, the window or the timestamps. With this right a
//! node can report for a silent peer that the peer is still there, or ask the sender to wait. It
//! cannot acknowledge new data, cause delivery of data, or end a connection.

use crate::drop::DropReason;
use crate::key::{Key, Unusable, grant_key};
use crate::packet::Packet;
use crate::replay::{MIN_WINDOW, Replay};
use crypto::Secret;
use model::{Flow, NODE_SUITE, Spi};
use rustc_hash::FxHashMap;
use wire::tcp::{self, Flags, OptionValue, Seq};
use wire::zoned::Injected;
use wire::{esp, ip};

/// Limit on grants with a replay window. Older ones are permanently refused.
const GRANTS: usize = 8;

/// Limit on tracked connections; the one that was silent longest is replaced.
const CONNECTIONS: usize = 1024;

/// An endpoint's state for injectors in one direction.
pub(crate) struct Injectors {
    root: Secret,
    /// In ascending order of grant numbers.
    grants: Vec<Known>,
    /// New grants up to this number are refused.
    forgotten: u16,
    sent: FxHashMap<Flow, LastSent>,
    /// Counts received segments, to find the connection that was silent longest.
    clock: u64,
    /// True if injected packets are accepted. False once the licence has been revoked but the old
    /// keys are still in use.
    pub heeded: bool,
}

/// A grant with at least one authentic packet.
struct Known {
    grant: u16,
    key: Key,
    replay: Replay,
}

impl Injectors {
    pub fn new(root: &Secret) -> Self {
        Self {
            root: root.clone(),
            grants: Vec::new(),
            forgotten: 0,
            sent: FxHashMap::default(),
            clock: 0,
            heeded: true,
        }
    }

    /// Authenticates and decrypts an injected packet, reduces it to its datagram, and returns the
    /// next header.
    pub fn open(&mut self, packet: &mut Packet, front: Injected) -> Result<u8, DropReason> {
        if front.grant <= self.forgotten {
            return Err(DropReason::BadIcvInjected);
        }
        let covered = front.covered(packet.len());
        let (text, icv) = Injected::parts(packet.octets_mut()).ok_or(DropReason::Runt)?;
        let counter = u64::from(front.counter);
        let open = |key: &Key, text: &mut [u8]| {
            let opened = key.open(counter, &covered, text, icv);
            opened.map_err(|_| DropReason::BadIcvInjected)
        };
        match self
            .grants
            .binary_search_by_key(&front.grant, |known| known.grant)
        {
            Ok(place) => {
                let known = &mut self.grants[place];
                known.replay.check(counter)?;
                open(&known.key, text)?;
                known.replay.take(counter)?;
            }
            Err(place) => {
                let key = Key::new(NODE_SUITE, &grant_key(&self.root, front.grant));
                let key = key.map_err(|_| DropReason::BadIcvInjected)?;
                let mut replay = Replay::new(MIN_WINDOW);
                replay.check(counter)?;
                open(&key, text)?;
                replay.take(counter)?;
                let grant = front.grant;
                self.grants.insert(place, Known { grant, key, replay });
                self.forget();
            }
        }
        if !self.heeded {
            return Err(DropReason::InjectionTakenBack);
        }
        let (next_header, datagram) = text.split_last().ok_or(DropReason::Runt)?;
        let (next_header, len) = (*next_header, datagram.len());
        packet.cut(Injected::FRONT_LEN, len);
        Ok(next_header)
    }

    /// Removes the oldest of too many grants. The grant is refused from now on, because without its
    /// window its packets could be replayed.
    fn forget(&mut self) {
        if self.grants.len() > GRANTS {
            self.forgotten = self.grants.remove(0).grant;
        }
    }

    /// Records a datagram that the peer itself has sent.
    pub fn hear(&mut self, flow: &Flow, datagram: &[u8]) {
        if flow.protocol != tcp::PROTOCOL {
            return;
        }
        let Some((header, payload_len)) = segment(datagram) else {
            return;
        };
        if header.flags.intersects(Flags::SYN.union(Flags::RST)) {
            self.sent.remove(flow);
        } else if header.flags.contains(Flags::ACK) {
            self.clock += 1;
            let sent = LastSent::by(&header, payload_len, self.clock);
            match self.sent.get_mut(flow) {
                Some(before) => before.go_on(&sent),
                None => {
                    self.make_room();
                    self.sent.insert(*flow, sent);
                }
            }
        }
    }

    fn make_room(&mut self) {
        if self.sent.len() >= CONNECTIONS {
            let oldest = self.sent.iter().min_by_key(|(_, sent)| sent.used);
            if let Some(oldest) = oldest.map(|(flow, _)| *flow) {
                self.sent.remove(&oldest);
            }
        }
    }

    /// Checks if an injected datagram is acceptable.
    pub fn admit(&self, flow: &Flow, datagram: &[u8]) -> Result<(), DropReason> {
        let bare = segment(datagram).filter(|(header, payload_len)| {
            *payload_len == 0 && header.flags == Flags::ACK && is_plain(header)
        });
        let (header, _) = bare.ok_or(DropReason::InjectionNotBare)?;
        let sent = self
            .sent
            .get(flow)
            .ok_or(DropReason::InjectionNoConnection)?;
        match sent.covers(&header) {
            true => Ok(()),
            false => Err(DropReason::InjectionBeyond),
        }
    }
}

/// The last values that one end of a connection has sent.
struct LastSent {
    /// Its acknowledgement number.
    ack: Seq,
    /// Its window at that time.
    window: u16,
    /// The sequence number after all data sent.
    next: Seq,
    /// Its last timestamp, and the echo sent with it.
    stamps: Option<(Seq, Seq)>,
    used: u64,
}

impl LastSent {
    fn by(header: &tcp::Header<'_>, payload_len: usize, used: u64) -> Self {
        Self {
            ack: header.ack,
            window: header.window,
            next: header.seq + header.sequence_len(payload_len),
            stamps: stamps_of(header),
            used,
        }
    }

    /// Updates the values from a newer segment. A late segment changes none of them.
    fn go_on(&mut self, newer: &Self) {
        self.used = newer.used;
        self.next = self.next.later(newer.next);
        if !newer.ack.is_before(self.ack) {
            (self.ack, self.window) = (newer.ack, newer.window);
            self.stamps = newer.stamps;
        }
    }

    /// Returns true if no field of a header is beyond these values.
    fn covers(&self, header: &tcp::Header<'_>) -> bool {
        let stamps = match (stamps_of(header), self.stamps) {
            (Some((own, echo)), Some(last)) => !own.is_after(last.0) && !echo.is_after(last.1),
            (None, _) => true,
            (Some(_), None) => false,
        };
        let numbers = !header.ack.is_after(self.ack) && !header.seq.is_after(self.next);
        numbers && header.window <= self.window && stamps
    }
}

/// Returns the TCP segment in a complete datagram, and its payload length.
fn segment(datagram: &[u8]) -> Option<(tcp::Header<'_>, usize)> {
    let header = ip::Header::parse(datagram).ok()?;
    let plain = header.protocol() == tcp::PROTOCOL && !header.is_fragment();
    let tcp = tcp::Header::parse(header.payload()).filter(|_| plain)?;
    Some((tcp, header.payload().len() - tcp.header_len))
}

/// Returns true if a header has no options other than timestamps.
fn is_plain(header: &tcp::Header<'_>) -> bool {
    let stamps = |option| matches!(option, OptionValue::Timestamps { .. });
    let mut options = header.options();
    options.all(|option| option.is_ok_and(|option| stamps(option.value)))
}

/// Returns the timestamps of a header, which wrap as sequence numbers do (RFC 7323 section 5.2).
fn stamps_of(header: &tcp::Header<'_>) -> Option<(Seq, Seq)> {
    let stamps = header.timestamps();
    stamps.map(|(value, echo)| (Seq(value), Seq(echo)))
}

/// The state with which a licensed node seals injected packets, in one direction.
pub(crate) struct Injector {
    spi: Spi,
    grant: u16,
    key: Key,
    /// The last counter used. Each is used once.
    counter: u32,
}

impl Injector {
    pub fn new(spi: Spi, grant: u16, key: &Secret) -> Result<Self, Unusable> {
        Ok(Self {
            spi,
            grant,
            key: Key::new(NODE_SUITE, key)?,
            counter: 0,
        })
    }

    /// Returns the grant number.
    pub fn grant(&self) -> u16 {
        self.grant
    }

    /// Seals a datagram into a packet, which starts with the SPI. Returns `None` if the counters
    /// are used up.
    pub fn seal(&mut self, datagram: &[u8], next_header: u8) -> Option<Vec<u8>> {
        self.counter = self.counter.checked_add(1)?;
        let front = Injected {
            spi: self.spi,
            grant: self.grant,
            counter: self.counter,
        };
        let mut packet = [&front.octets()[..], datagram, &[next_header]].concat();
        let covered = front.covered(packet.len() + esp::ICV_LEN);
        let text = &mut packet[Injected::FRONT_LEN..];
        let icv = self.key.seal(front.counter.into(), &covered, text);
        packet.extend_from_slice(&icv);
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_used_once_and_after_the_last_nothing_is_made() {
        let key = grant_key(&Secret::new(vec![7; 32]), 9);
        let mut injector = Injector::new(Spi(256), 9, &key).unwrap();
        let counter = |packet: Option<Vec<u8>>| Some(Injected::read(&packet?).unwrap().counter);
        assert_eq!(counter(injector.seal(&[1], 6)), Some(1));
        assert_eq!(counter(injector.seal(&[1], 6)), Some(2));
        injector.counter = u32::MAX - 1;
        assert_eq!(counter(injector.seal(&[1], 6)), Some(u32::MAX));
        for _ in 0..3 {
            assert_eq!(injector.seal(&[1], 6), None);
        }
    }
}
