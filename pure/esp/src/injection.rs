//! Injection (DESIGN section 3): what a licensed node says to one end in the name of the other, and what that end
//! believes.
//!
//! Every grant to inject has a key of its own for each direction, made like that of overlays ([`grant_key`]),
//! and numbers of its own, for which each end keeps a replay window. Nothing of the composite SA moves by
//! what is injected: neither its window, nor what says that the peer is alive, nor whether an SA is confirmed.
//!
//! A node may *repeat* and no more. What it injects is a bare acknowledgement of a TCP connection whose own
//! end has spoken on this SA, and no field of it is beyond what that end has said itself: not the number that
//! is acknowledged, nor its own number, nor the window, nor timestamps. So a node with this right can say for
//! a silent peer that it is still there, or that the sender is to wait; it can neither make a sender believe
//! that anything has arrived, nor say anything that a receiver would deliver, nor end a connection.

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

/// Grants whose windows are remembered. Those before are over for good.
const GRANTS: usize = 8;

/// Connections that are remembered; the one that was silent longest gives way.
const CONNECTIONS: usize = 1024;

/// What an endpoint knows of those who may inject in one direction.
pub(crate) struct Injectors {
    root: Secret,
    /// In ascending order of their numbers.
    grants: Vec<Known>,
    /// Up to here no grant is learnt any more.
    forgotten: u16,
    said: FxHashMap<Flow, Said>,
    /// Counts what was heard, so that one knows who was silent longest.
    clock: u64,
    /// Whether what they say counts: not where a licence was taken back and keys are still the old ones.
    pub heeded: bool,
}

/// A grant that something authentic came under.
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
            said: FxHashMap::default(),
            clock: 0,
            heeded: true,
        }
    }

    /// Authenticates and decrypts what a node made, leaves the datagram in it, and says what that is.
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

    /// Forgets the oldest of too many grants for good: with its window gone its packets could come again.
    fn forget(&mut self) {
        if self.grants.len() > GRANTS {
            self.forgotten = self.grants.remove(0).grant;
        }
    }

    /// A datagram of the peer's own.
    pub fn hear(&mut self, flow: &Flow, datagram: &[u8]) {
        if flow.protocol != tcp::PROTOCOL {
            return;
        }
        let Some((header, payload_len)) = segment(datagram) else {
            return;
        };
        if header.flags.intersects(Flags::SYN.union(Flags::RST)) {
            self.said.remove(flow);
        } else if header.flags.contains(Flags::ACK) {
            self.clock += 1;
            let said = Said::by(&header, payload_len, self.clock);
            match self.said.get_mut(flow) {
                Some(before) => before.go_on(&said),
                None => {
                    self.make_room();
                    self.said.insert(*flow, said);
                }
            }
        }
    }

    fn make_room(&mut self) {
        if self.said.len() >= CONNECTIONS {
            let oldest = self.said.iter().min_by_key(|(_, said)| said.used);
            if let Some(oldest) = oldest.map(|(flow, _)| *flow) {
                self.said.remove(&oldest);
            }
        }
    }

    /// Whether a datagram that a node made may be believed.
    pub fn admit(&self, flow: &Flow, datagram: &[u8]) -> Result<(), DropReason> {
        let bare = segment(datagram).filter(|(header, payload_len)| {
            *payload_len == 0 && header.flags == Flags::ACK && is_plain(header)
        });
        let (header, _) = bare.ok_or(DropReason::InjectionNotBare)?;
        let said = self
            .said
            .get(flow)
            .ok_or(DropReason::InjectionNoConnection)?;
        match said.covers(&header) {
            true => Ok(()),
            false => Err(DropReason::InjectionBeyond),
        }
    }
}

/// What one end of a connection has said so far.
struct Said {
    /// What it has acknowledged.
    ack: Seq,
    /// The window that it had then.
    window: u16,
    /// The number behind all that it has sent.
    next: Seq,
    /// Its last timestamp, and the one that it echoed with that.
    stamps: Option<(Seq, Seq)>,
    used: u64,
}

impl Said {
    fn by(header: &tcp::Header<'_>, payload_len: usize, used: u64) -> Self {
        Self {
            ack: header.ack,
            window: header.window,
            next: header.seq + header.sequence_len(payload_len),
            stamps: stamps_of(header),
            used,
        }
    }

    /// What came late says nothing.
    fn go_on(&mut self, newer: &Self) {
        self.used = newer.used;
        self.next = self.next.later(newer.next);
        if !newer.ack.is_before(self.ack) {
            (self.ack, self.window) = (newer.ack, newer.window);
            self.stamps = newer.stamps;
        }
    }

    /// Whether nothing of this is beyond it.
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

/// The TCP segment that a whole datagram carries, and the octets of its payload.
fn segment(datagram: &[u8]) -> Option<(tcp::Header<'_>, usize)> {
    let header = ip::Header::parse(datagram).ok()?;
    let plain = header.protocol() == tcp::PROTOCOL && !header.is_fragment();
    let tcp = tcp::Header::parse(header.payload()).filter(|_| plain)?;
    Some((tcp, header.payload().len() - tcp.header_len))
}

/// Whether a header has no option but timestamps.
fn is_plain(header: &tcp::Header<'_>) -> bool {
    let stamps = |option| matches!(option, OptionValue::Timestamps { .. });
    let mut options = header.options();
    options.all(|option| option.is_ok_and(|option| stamps(option.value)))
}

/// Its timestamps, which wrap as numbers do (RFC 7323 section 5.2).
fn stamps_of(header: &tcp::Header<'_>) -> Option<(Seq, Seq)> {
    let stamps = header.timestamps();
    stamps.map(|(value, echo)| (Seq(value), Seq(echo)))
}

/// What a licensed node seals with what it injects, in one direction.
pub(crate) struct Injector {
    spi: Spi,
    grant: u16,
    key: Key,
    /// The last counter that was used: each is used once.
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

    /// The grant that it is of.
    pub fn grant(&self) -> u16 {
        self.grant
    }

    /// The packet of a datagram, from the SPI on. `None` if the counters are used up.
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
