//! Pings through a tunnel, and where they are lost.
//!
//! A ping is a dummy packet of a child SA, so it takes the way of data: encapsulation, SPI,
//! numbers, firewalls and NATs. A peer with our vendor ID answers it by another dummy, and counts.
//! Before the first ping and after the last, an IKE exchange asks for its counters (`run.rs`). They
//! tell where pings were lost: this host has not sent them, they did not arrive at the peer, the
//! peer has not answered them, or the answer did not arrive here.
//!
//! An end that hides lengths neither pings nor answers, as for probes of the path MTU: its packets
//! would show. It counts what it withholds. To a peer without our vendor ID the exchange is a
//! liveness check.

mod report;
mod run;

use crate::effects::{IkeCommand, Turn};
use crate::path_mtu::ChildSas;
use crate::plane::Plane;
use crate::tunnels::children::Child;
use esp::{Packet, Sink};
use ike::is_slot;
use model::{ChildSaId, Deadline, IkeSaId, Instant, PeerId};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;
use wire::ike::PingCounts;
use wire::probe::{Kind, Probe};

pub use report::{NotPinged, PingReport, RoundTrips};
use run::{Run, Step};

/// Maximum number of pings and answers that wait to be sent.
const MOST_WAITING: usize = 64;

/// Identifier of a ping that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PingId(u64);

/// The reason why a ping is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotPing {
    /// The peer is not configured.
    #[error("the configuration has no such peer")]
    UnknownPeer,
    /// The IKE SA is not up.
    #[error("the peer is not up")]
    NotUp,
    /// The peer is a licensed node or a gateway of ours, without child SAs.
    #[error("the peer has no tunnel, only an IKE SA")]
    NoChild,
    /// Another one is not over.
    #[error("another ping of the peer is not over")]
    UnderWay,
}

/// Our pings, and answers to those of peers.
#[derive(Default)]
pub(crate) struct Pings {
    runs: BTreeMap<PeerId, (PingId, Run)>,
    last: u64,
    /// No peer is pinged before this time: another command has just done so.
    pauses: BTreeMap<PeerId, Instant>,
    waiting: VecDeque<Waiting>,
}

/// A ping or an answer to be sent.
struct Waiting {
    child: ChildSaId,
    /// The peer, and the IKE SA of the child SA.
    peer: PeerId,
    ike: IkeSaId,
    probe: Probe,
}

impl Pings {
    /// Begins to ping a peer.
    pub fn begin(
        &mut self,
        peer: PeerId,
        count: NonZeroU16,
        sas: ChildSas<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<PingId, CannotPing> {
        let established = sas.tunnels.established(peer).ok_or(CannotPing::NotUp)?;
        if self.runs.contains_key(&peer) {
            return Err(CannotPing::UnderWay);
        }
        let is_any = sas.tunnels.children().of_peer(peer).next().is_some();
        if !is_any {
            return Err(CannotPing::NoChild);
        }
        let sa = sending(peer, sas).map_or(established, |(_, child)| child.ike);
        self.pauses.retain(|_, until| *until > turn.now);
        let from = self.pauses.get(&peer).copied();
        self.last += 1;
        let id = PingId(self.last);
        let is_ours = turn.ike.has_our_vendor_id(sa);
        let run = Run::begin(sa, count, is_ours, turn.now);
        self.runs.insert(peer, (id, run.not_before(from)));
        turn.add(IkeCommand::AskPingCounts(sa, id.0));
        Ok(id)
    }

    /// Returns the report of a ping that is over, once.
    pub fn take(&mut self, id: PingId) -> Option<PingReport> {
        let ended = |(_, (of, run)): &(&PeerId, &(PingId, Run))| *of == id && run.is_over();
        let (peer, _) = self.runs.iter().find(ended)?;
        let peer = *peer;
        let (_, run) = self.runs.remove(&peer)?;
        self.pauses
            .extend(run.pauses_until().map(|until| (peer, until)));
        Some(run.report())
    }

    /// Handles the peer's answer to a question for its counters.
    pub fn handle_counts(
        &mut self,
        sa: IkeSaId,
        question: u64,
        counts: Option<PingCounts>,
        turn: &mut Turn<'_>,
    ) {
        let asked = self.runs.values_mut();
        let mut asked = asked.filter(|(id, run)| id.0 == question && run.sa == sa);
        if let Some((_, run)) = asked.next() {
            run.handle_counts(counts, turn.now);
        }
    }

    /// Asks for a sign of life on the path of a child SA.
    pub fn check(&mut self, child: ChildSaId, sas: ChildSas<'_>) {
        let of = sas.tunnels.children().get(child);
        if let Some(of) = of.filter(|_| self.waiting.len() < MOST_WAITING) {
            self.waiting.push_back(Waiting {
                child,
                peer: of.peer,
                ike: of.ike,
                probe: Probe::CHECK,
            });
        }
    }

    /// Handles an authentic ping or answer.
    pub fn handle(&mut self, id: ChildSaId, probe: Probe, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        let Some(child) = sas.tunnels.children().get(id) else {
            return;
        };
        match probe.kind {
            Kind::Ping if turn.ike.has_our_vendor_id(child.ike) => {
                self.answer(id, child, probe, turn);
            }
            Kind::Answer => {
                if let Some((_, run)) = self.runs.get_mut(&child.peer) {
                    run.handle_answer(probe.number, turn.now);
                }
            }
            Kind::Ping | Kind::Probe | Kind::Echo | Kind::Notice => {}
        }
    }

    fn answer(&mut self, id: ChildSaId, child: &Child, ping: Probe, turn: &mut Turn<'_>) {
        let withholds = turn.plane.observed(id).hides_lengths;
        let counts = PingCounts {
            received: 1,
            answered: 0,
            withheld: u64::from(withholds),
        };
        if !ping.is_check() {
            turn.add(IkeCommand::NotePings(child.ike, counts));
        }
        if !withholds && self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(Waiting {
                child: id,
                peer: child.peer,
                ike: child.ike,
                probe: ping.answer(),
            });
        }
    }

    /// Turns `packet` into each ping and answer that is due, and sends it. Returns the answers that
    /// the system has accepted, by IKE SA.
    pub fn send(
        &mut self,
        plane: &Plane,
        packet: &mut Packet,
        sink: &mut impl Sink,
    ) -> Vec<(IkeSaId, PingCounts)> {
        let mut answered = Vec::new();
        while let Some(waiting) = self.waiting.pop_front() {
            let sent = send(&waiting, plane, packet, sink);
            let run = self.runs.get_mut(&waiting.peer);
            match (waiting.probe.kind, sent) {
                (Kind::Ping, Err(why)) => {
                    if let Some((_, run)) = run {
                        run.handle_not_sent(waiting.probe.number, why);
                    }
                }
                (Kind::Answer, Ok(())) if !waiting.probe.is_check() => {
                    let one = PingCounts {
                        answered: 1,
                        ..PingCounts::default()
                    };
                    answered.push((waiting.ike, one));
                }
                _ => {}
            }
        }
        answered
    }

    /// Takes the steps that are due.
    pub fn handle_timeout(&mut self, sas: ChildSas<'_>, turn: &mut Turn<'_>) {
        for (peer, (id, run)) in &mut self.runs {
            if sas.tunnels.established(*peer).is_none() {
                run.end();
            }
            while let Some(step) = run.step(|| turn.rng.u64(), turn.now) {
                match step {
                    Step::Ask => turn.add(IkeCommand::AskPingCounts(run.sa, id.0)),
                    Step::Ping(number) => match sending(*peer, sas) {
                        None => run.handle_not_sent(number, NotPinged::NoSa),
                        Some((child, _)) if turn.plane.observed(child).hides_lengths => {
                            run.handle_not_sent(number, NotPinged::Hidden);
                        }
                        Some((child, of)) => self.waiting.push_back(Waiting {
                            child,
                            peer: *peer,
                            ike: of.ike,
                            probe: Probe::ping(number),
                        }),
                    },
                }
            }
        }
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let waiting = (!self.waiting.is_empty()).then_some(Instant::ZERO);
        let runs = self.runs.values().filter_map(|(_, run)| run.poll_timeout());
        Some(Deadline {
            at: runs.chain(waiting).min()?,
            reason: "ping a peer",
        })
    }
}

/// Sends a ping or an answer.
fn send(
    waiting: &Waiting,
    plane: &Plane,
    packet: &mut Packet,
    sink: &mut impl Sink,
) -> Result<(), NotPinged> {
    let path = plane.probe(waiting.child, waiting.probe, packet);
    let path = path.ok_or(NotPinged::NoSa)?;
    // Packets before this one have to be counted before it.
    sink.flush();
    let before = sink.refused();
    sink.transmit(packet, path);
    sink.flush();
    match sink.refused() == before {
        true => Ok(()),
        false => Err(NotPinged::Refused),
    }
}

/// Returns the child SA on which data to a peer is sent: that of the slot which sends, or the first
/// one that is not being replaced.
fn sending<'a>(peer: PeerId, sas: ChildSas<'a>) -> Option<(ChildSaId, &'a Child)> {
    let children = sas.tunnels.children();
    if let Some(slot) = sas.licensing.sent_on(peer) {
        return Some((slot, children.get(slot)?));
    }
    let is_used = |(id, child): &(ChildSaId, &Child)| {
        let is_slot = is_slot(child.status.name.as_deref());
        !child.status.draining && !is_slot && sas.licensing.may_be_sent_on(*id, sas.tunnels)
    };
    children.of_peer(peer).find(is_used)
}
