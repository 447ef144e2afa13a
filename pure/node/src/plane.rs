//! The data path of the host. This is the only file that names its type: to seal and open packets
//! elsewhere, as in a kernel, add the other data path here.

use crypto::Secret;
use esp::{
    Command, Counters, Observed, Packet, PathMtu, PeerSettings, Report, Sink, Spd, Unusable,
    WorkerHandle, Workers,
};
use model::{ChildSa, ChildSaId, Instant, Path, PeerId};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU8;
use wire::esp::Header;
use wire::probe::Probe;

/// The data path, with the handle of the thread that drives the node.
pub(crate) struct Plane {
    workers: Workers,
    own: WorkerHandle,
}

impl Plane {
    pub(crate) fn new(workers: NonZeroU8, spd: &Spd) -> Self {
        let workers = Workers::new(workers, spd);
        Self {
            own: workers.handle(0),
            workers,
        }
    }

    /// Returns the handle of another thread.
    pub(crate) fn worker(&self, number: usize) -> WorkerHandle {
        self.workers.handle(number)
    }

    pub(crate) fn seal(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.own.seal(batch, sink, now);
    }

    pub(crate) fn open(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.own.open(batch, sink, now);
    }

    /// Installs an SA, which receives from now on.
    pub(crate) fn install(&self, sa: ChildSa<Secret>) -> Result<(), Unusable> {
        self.workers.install_beside(sa)
    }

    pub(crate) fn apply(&self, command: Command) {
        self.workers.apply(command);
    }

    /// Sets the path MTU of an SA. Returns the longest inner datagram that fits, if it is limited.
    pub(crate) fn set_path_mtu(&self, id: ChildSaId, mtu: PathMtu) -> Option<u16> {
        self.workers.set_path_mtu(id, mtu)
    }

    /// Replaces the settings of all peers. Returns the peers whose padding has changed.
    pub(crate) fn set_peers(&self, peers: &BTreeMap<PeerId, PeerSettings>) -> BTreeSet<PeerId> {
        self.workers.set_peers(peers)
    }

    /// Returns true if one of the last packets of an SA had this header.
    pub(crate) fn has_sent(&self, id: ChildSaId, header: Header) -> bool {
        self.workers.has_sent(id, header)
    }

    /// Makes the notice of an SA's next probe in `packet`, if the peer measures losses. Returns the
    /// path to send it on.
    pub(crate) fn notice(&self, id: ChildSaId, packet: &mut Packet) -> Option<Path> {
        self.workers.notice(id, packet)
    }

    /// Makes a probe or an echo of an SA in `packet`. Returns the path to send it on.
    pub(crate) fn probe(&self, id: ChildSaId, probe: Probe, packet: &mut Packet) -> Option<Path> {
        self.workers.probe(id, probe, packet)
    }

    /// Makes a dummy packet for a peer in `packet`, if nothing was sealed for the peer since the
    /// last call. Returns the path to send it on.
    pub(crate) fn cover(&self, peer: PeerId, packet: &mut Packet) -> Option<Path> {
        self.workers.cover(peer, packet)
    }

    pub(crate) fn poll_report(&self) -> Option<Report> {
        self.workers.poll_report()
    }

    pub(crate) fn has_reports(&self) -> bool {
        self.workers.has_reports()
    }

    /// Returns what was observed of an SA.
    pub(crate) fn observed(&self, id: ChildSaId) -> Observed {
        self.workers.observed(id).unwrap_or_default()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.workers.counters()
    }
}
