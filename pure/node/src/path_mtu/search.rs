//! The search for the MTU of one path by probes (RFC 8899), without a clock, packets or numbers of
//! its own.
//!
//! The first probe is as long as the interface allows, because nearly all paths carry that: one
//! probe and its echo end the search. Where a probe is lost, the length that routers have reported
//! is next, or [`BASE`] and the lengths of common links above it. A report by itself limits
//! nothing: whoever sees our packets can send one. It only chooses the next probe, and how often a
//! longer probe is repeated before it counts as lost.
//!
//! Before the first echo nothing is known but [`BASE`], so no packet is longer, except where longer
//! ones came through before: the tunnel has moved, or a router reports less. Such lengths are
//! presumed, for a quarter of a second and a round trip: if the first probe is without an echo
//! after [`LOOK`], a short one follows it, and if that one comes through alone, the path is taken
//! for narrow. Its exact length is found afterwards, while no packet is longer than the longest
//! probe that came through.

use esp::{PathMtu, Searched};
use model::Instant;
use std::time::Duration;

/// The length that nearly every path carries: what IPv6 demands of a link (RFC 8200 section 5).
/// `BASE_PLPMTU` of RFC 8899 section 5.1.2.
pub(crate) const BASE: u16 = 1280;

/// MTUs of common links and tunnels, between which the search chooses. A length that is none of
/// them gains little.
const COMMON: [u16; 17] = [
    1300, 1320, 1340, 1360, 1380, 1400, 1420, 1440, 1460, 1480, 1492, 1500, 2000, 3000, 4352, 6000,
    8000,
];

/// The longest probe: the longest inner packet (9,000 octets) with any overhead.
const MOST: u16 = 9216;

/// "This value MUST NOT be smaller than 1 second" (`PROBE_TIMER`, RFC 8899 section 5.1.1).
const TIMER: Duration = Duration::from_secs(1);

/// Time after which a short probe follows one without an echo.
const LOOK: Duration = Duration::from_millis(200);

/// Losses of a probe that nothing else explains (`MAX_PROBES`, RFC 8899 section 5.1.2).
const TRIES: u8 = 3;

/// Reports that change the course of searches until the next one that begins by itself.
const HEEDED: u8 = 4;

/// `PMTU_RAISE_TIMER` (RFC 8899 section 5.1.1).
const RAISE: Duration = Duration::from_secs(600);

/// Origin of the MTU of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The interface; nothing was sent yet.
    Interface,
    /// A router reported it, and where the peer echoes probes, one has confirmed it.
    Reported,
    /// The longest probe that came through.
    Probed,
    /// A search is under way.
    Searching,
    /// The peer echoes no probes: a length that nearly every path carries.
    Safe,
}

/// The next action of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send a probe with this length outside and this number.
    Probe(u16, u64),
    /// Report the next datagram that is sent on the path.
    Watch,
}

/// The result of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing new.
    Nothing,
    /// A probe came through.
    Echo,
    /// A report that probes have refuted.
    Refuted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for a datagram on the path.
    Idle,
    Searching,
    /// Ended; a datagram after this time begins another search.
    Done(Instant),
}

/// A probe without an echo so far.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    octets: u16,
    number: u64,
    sent: Instant,
    /// Losses after which it is not repeated.
    tries: u8,
    /// True if the short probe has followed it.
    followed: bool,
}

/// The state of a search.
#[derive(Debug)]
pub(crate) struct Search {
    /// MTU of the interface, once the system has told it.
    interface: Option<u16>,
    /// The lower MTU that a router has reported, unless a probe has refuted it.
    reported: Option<u16>,
    /// Reports that a probe made way for.
    heeded: u8,
    /// The longest probe that came through.
    proved: Option<u16>,
    /// Length that came through before, and is presumed to until probes decide.
    presumed: Option<u16>,
    /// The shortest probe that was lost for good.
    lost: Option<u16>,
    /// True if no packet is longer than `proved`, or than [`BASE`].
    settled: bool,
    /// True while it is in question if `proved` still comes through.
    doubted: bool,
    /// True if the peer echoes no probes, as far as is known.
    mute: bool,
    /// True if the peer never echoes probes.
    foreign: bool,
    phase: Phase,
    outstanding: Option<Outstanding>,
    /// Number of the short probe that followed the outstanding one.
    short: Option<u64>,
    /// Probes lost since this was last read.
    pub losses: u64,
}

impl Search {
    /// Creates the search of a path to a peer that echoes probes, or to a `foreign` one. Packets
    /// of a `presumed` length came through to the same peer on another path.
    pub fn new(foreign: bool, presumed: Option<u16>) -> Self {
        Self {
            interface: None,
            reported: None,
            heeded: 0,
            proved: None,
            presumed,
            lost: None,
            settled: false,
            doubted: false,
            mute: foreign,
            foreign,
            phase: Phase::Idle,
            outstanding: None,
            short: None,
            losses: 0,
        }
    }

    /// Begins to search, if it is time: the path carries a datagram.
    pub fn begin(&mut self) {
        if self.phase == Phase::Idle && !self.foreign {
            self.start();
        }
    }

    /// Asks if the longest length that came through still does: the peer is silent.
    pub fn doubt(&mut self) {
        if self.proved.is_some() && matches!(self.phase, Phase::Done(_)) {
            self.heeded = 0;
            self.start();
        }
    }

    fn start(&mut self) {
        (self.lost, self.outstanding, self.short) = (None, None, None);
        self.doubted = self.proved.is_some();
        self.phase = Phase::Searching;
    }

    /// Handles the MTU of the interface. Returns true if the next datagram should begin a search.
    pub fn handle_interface(&mut self, mtu: u16) -> bool {
        let before = self.interface.replace(mtu);
        let changed = before.is_some_and(|before| before != mtu);
        if changed {
            // What came through does so again, if the interface is not too short for it.
            self.proved = self.proved.map(|proved| proved.min(mtu));
            self.settled = self.proved.is_some();
            (self.lost, self.outstanding, self.short) = (None, None, None);
            self.phase = Phase::Idle;
        }
        changed
    }

    /// Handles a router's report about one of our packets: it was longer than `mtu`.
    pub fn handle_report(&mut self, mtu: u16) {
        let is_lower = self.interface.is_some_and(|interface| mtu < interface);
        if !is_lower || self.reported == Some(mtu) {
            return;
        }
        if self.foreign {
            self.reported = Some(mtu);
            return;
        }
        if self.heeded >= HEEDED {
            return;
        }
        self.reported = Some(mtu);
        if self.outstanding.is_some_and(|probe| mtu < probe.octets) {
            // A router has discarded it, if the report is true.
            self.heeded += 1;
            self.losses += 1;
            self.outstanding = None;
        }
        if let Some(proved) = self.proved.filter(|proved| mtu < *proved) {
            // Nothing is lowered yet: packets may be fragmented until probes have decided.
            self.heeded += 1;
            self.proved = None;
            self.start();
            (self.presumed, self.settled) = (Some(proved), false);
        }
    }

    /// Handles the echo of a probe. Any other echo changes nothing.
    pub fn handle_echo(&mut self, number: u64) -> Heard {
        if self.short.take_if(|short| *short == number).is_some() {
            if self.outstanding.is_some() {
                // The longer probe went first, and is not back.
                (self.proved, self.settled) = (Some(BASE), true);
            }
            (self.mute, self.doubted) = (false, false);
            return Heard::Echo;
        }
        let Some(probe) = self.outstanding.filter(|probe| probe.number == number) else {
            return Heard::Nothing;
        };
        (self.outstanding, self.short) = (None, None);
        (self.mute, self.doubted) = (false, false);
        self.proved = self.proved.max(Some(probe.octets));
        let is_refuted = |reported: &mut u16| *reported < probe.octets;
        match self.reported.take_if(is_refuted) {
            Some(_) => Heard::Refuted,
            None => Heard::Echo,
        }
    }

    /// Returns the next action, until there is none now. `number` draws the number of a probe.
    pub fn step(&mut self, number: impl FnOnce() -> u64, now: Instant) -> Option<Step> {
        match self.phase {
            Phase::Done(until) if until <= now => {
                (self.phase, self.reported, self.heeded) = (Phase::Idle, None, 0);
                return Some(Step::Watch);
            }
            Phase::Idle | Phase::Done(_) => return None,
            Phase::Searching => {}
        }
        if let Some(probe) = &mut self.outstanding {
            match now {
                now if now < probe.sent + LOOK => return None,
                now if now < probe.sent + TIMER => {
                    let is_first = self.proved.is_none() || self.doubted;
                    let follows = !std::mem::replace(&mut probe.followed, true)
                        && is_first
                        && probe.octets > BASE;
                    return follows.then(|| {
                        self.losses += u64::from(self.short.is_some());
                        Step::Probe(BASE, *self.short.get_or_insert_with(number))
                    });
                }
                _ => {}
            }
            self.losses += 1;
            probe.tries = probe.tries.saturating_sub(1);
            if probe.tries > 0 {
                (probe.sent, probe.followed) = (now, false);
                return Some(Step::Probe(probe.octets, probe.number));
            }
            let octets = probe.octets;
            self.give_up(octets);
        }
        let top = self.interface?.min(MOST);
        let Some((octets, tries)) = self.candidate(top) else {
            self.settled = self.proved.is_some();
            self.mute |= self.proved.is_none();
            self.phase = Phase::Done(now + RAISE);
            return None;
        };
        let number = number();
        self.outstanding = Some(Outstanding {
            octets,
            number,
            sent: now,
            tries,
            followed: false,
        });
        Some(Step::Probe(octets, number))
    }

    /// Returns the time of the next [`Self::step`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        match (self.phase, &self.outstanding) {
            (Phase::Searching, Some(probe)) if probe.followed => Some(probe.sent + TIMER),
            (Phase::Searching, Some(probe)) => Some(probe.sent + LOOK),
            (Phase::Done(until), _) => Some(until),
            (Phase::Idle | Phase::Searching, _) => None,
        }
    }

    /// Returns the limits that apply now.
    pub fn limit(&self) -> PathMtu {
        let top = self.interface.unwrap_or(u16::MAX);
        let base = BASE.min(top);
        let proved = self.proved.unwrap_or(base);
        let presumed = self.presumed.map_or(proved, |presumed| presumed.min(top));
        let (whole, most, segments) = match (self.mute, self.settled) {
            (true, _) if self.reported.is_some_and(|reported| reported < base) => (0, top, base),
            (true, _) => (base, top, base),
            (false, true) => (proved, proved, proved),
            // TCP learns what fits when it sends data; a segment size lasts as long as its
            // connection.
            (false, false) => (proved, presumed.max(proved), top),
        };
        PathMtu::Searched(Searched {
            whole,
            most,
            segments,
            settled: self.settled && !self.mute,
            presumed: !self.settled && !self.mute,
        })
    }

    /// Returns the MTU outside, once the interface is known, and its origin.
    pub fn outside(&self) -> Option<(u16, Origin)> {
        let interface = self.interface?;
        let base = BASE.min(interface);
        Some(match (self.phase, self.proved) {
            _ if self.mute => (base, Origin::Safe),
            (Phase::Searching, proved) if self.settled => {
                (proved.unwrap_or(base), Origin::Searching)
            }
            (Phase::Searching, _) => (interface, Origin::Searching),
            (_, None) => (interface, Origin::Interface),
            (_, Some(proved)) if self.reported == Some(proved) => (proved, Origin::Reported),
            (_, Some(proved)) => (proved, Origin::Probed),
        })
    }

    /// Returns the MTU outside at the end of a search.
    pub fn result(&self) -> Option<u16> {
        self.proved.filter(|_| matches!(self.phase, Phase::Done(_)))
    }

    /// Returns the length that may be presumed of another path to the same peer.
    pub fn presumption(&self) -> Option<u16> {
        self.proved.or(self.presumed)
    }

    /// Returns the MTU of the interface.
    pub const fn interface(&self) -> Option<u16> {
        self.interface
    }

    /// Handles the loss of a probe for good.
    fn give_up(&mut self, octets: u16) {
        if std::mem::take(&mut self.doubted) {
            self.proved = None;
        }
        (self.outstanding, self.short) = (None, None);
        (self.lost, self.settled) = (Some(octets), true);
    }

    /// Returns the length of the next probe, and its losses until it counts as lost for good.
    fn candidate(&self, top: u16) -> Option<(u16, u8)> {
        let hint = self.reported.filter(|hint| (BASE..top).contains(hint));
        match (self.proved, self.lost) {
            (Some(proved), _) if self.doubted => Some((proved, TRIES)),
            (None, None) => Some((hint.unwrap_or(top), TRIES)),
            (None, Some(lost)) => (lost > BASE).then_some((BASE, TRIES)),
            // Only the short probe came through, so far.
            (Some(BASE), None) if hint.is_some_and(|hint| hint > BASE) => Some((hint?, TRIES)),
            (Some(proved), _) if proved >= top => None,
            // The report agrees: one more loss is enough.
            (Some(proved), None) if hint == Some(proved) => Some((top, 1)),
            (Some(_), None) => Some((top, TRIES)),
            (Some(proved), Some(_)) if hint == Some(proved) => None,
            (Some(proved), Some(lost)) => {
                let between = COMMON.iter().filter(|len| (proved + 1..lost).contains(len));
                let between: Vec<_> = between.copied().collect();
                between.get(between.len() / 2).map(|len| (*len, TRIES))
            }
        }
    }
}

#[cfg(test)]
mod tests;
