//! The sink of the node's packets, and the counters of packets that the system refused.
//!
//! A full socket buffer or a missing route loses a packet as a router would, and the transport
//! above repairs the loss; but every loss is counted.

use crate::clear::Dropped;
use crate::faults::{self, Counts, Faults, Way};
use crate::sockets::Sockets;
use crate::streams::{self, Streams};
use crate::trace::{self, Drops};
use model::{Df, Path, PeerId};
use node::{DropReason, Packet, Sink};
use os::{Bulk, lock};
use std::collections::BTreeSet;
use std::io;
use tracing::Level;

/// Packets that the system refused since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct IoCounters {
    /// Datagrams that could not be sent.
    pub sent: u64,
    /// Inner packets that the TUN refused.
    pub delivered: u64,
    /// Transit packets that could not be written back.
    pub forwarded: u64,
    /// Failed reads of devices and sockets that still exist.
    pub read: u64,
    /// Messages of a worker thread that were lost because the main thread was too busy.
    pub handed: u64,
    /// Messages of unauthenticated initiators that were dropped because too many were queued.
    pub unproved: u64,
    /// Keys for analysis that could not be written.
    pub keys: u64,
    /// Lines of the audit log that could not be written.
    pub audit: u64,
    /// Leases that could not be stored.
    pub leases: u64,
    /// Packets that the lock has stopped outside the tunnel.
    pub lock: lock::Stopped,
    /// Unencrypted packets with addresses from inside a tunnel.
    pub clear: u64,
    /// Counters of TCP streams.
    pub streams: streams::Counts,
    /// Deliberate faults.
    pub faults: Counts,
}

impl IoCounters {
    /// Returns every counter with its metric label.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = [
            ("send", self.sent),
            ("deliver", self.delivered),
            ("forward", self.forwarded),
            ("read", self.read),
            ("hand", self.handed),
            ("unproved", self.unproved),
            ("keylog", self.keys),
            ("audit", self.audit),
            ("store", self.leases),
            ("stream_refused", self.streams.refused),
            ("stream_gave_way", self.streams.gave_way),
            ("stream_unused", self.streams.unused),
            ("stream_corrupt", self.streams.corrupt),
            ("stream_full", self.streams.full),
            ("stream_gone", self.streams.gone),
            ("leave", self.lock.leaving),
            ("enter_to_inside", self.lock.to_inside),
            ("enter_from_protected", self.lock.from_protected),
            ("enter_in_clear", self.clear),
        ];
        let faults = self.faults.iter().filter(|(_, count)| *count > 0);
        kinds.into_iter().chain(faults)
    }

    /// Adds the counters of another thread.
    pub const fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.read += other.read;
        self.handed += other.handed;
    }

    /// Adds the current counters of nftables: the filter's, and the lock's if there is one.
    pub fn with_filters(self, locked: bool, dropped: &Dropped) -> Self {
        let clear = dropped.as_ref().ok().copied().flatten().unwrap_or(0);
        Self { clear, ..self }.with_lock(locked)
    }

    fn with_lock(self, locked: bool) -> Self {
        if !locked {
            return self;
        }
        let lock = lock::stopped().unwrap_or_else(|error| {
            tracing::warn!("cannot read the counters of the leak lock: {error}");
            None
        });
        let lock = lock.unwrap_or_default();
        Self { lock, ..self }
    }

    /// Records a failed read of `what`. An empty queue is no fault, and most other errors are
    /// transient and only counted. A removed device would stay ready forever, so it is reported in
    /// `broken`.
    pub fn not_read(&mut self, what: &str, error: &io::Error, broken: &mut Option<anyhow::Error>) {
        use io::ErrorKind::{Interrupted, WouldBlock};
        if matches!(error.kind(), WouldBlock | Interrupted) {
            return;
        }
        self.read += 1;
        if os::is_gone(error) {
            *broken = Some(anyhow::anyhow!(
                "{what} was removed while in use ({error})\n  fix: restart stratad, and keep other programs from removing {what}"
            ));
        } else {
            tracing::debug!("cannot read {what}: {error}");
        }
    }

    /// Sends one UDP payload with this traffic class in the outer header, and this treatment of
    /// fragmentation. Returns false if the MTU of the interface is too small. The payload then
    /// leaves in fragments this once, because the inner packet is no longer available; not if it is
    /// a probe.
    pub fn send(
        &mut self,
        sockets: &Sockets,
        path: Path,
        class: u8,
        df: Df,
        payload: &[u8],
    ) -> bool {
        let sent = sockets.send(path, class, df, payload);
        let fits = !matches!(&sent, Err(error) if df != Df::Clear && os::is_too_long(error));
        if !fits && df == Df::Probe {
            return false;
        }
        let sent = match fits {
            true => sent,
            false => sockets.send(path, class, Df::Clear, payload),
        };
        if let Err(error) = sent {
            tracing::trace!("cannot send to {}: {error}", path.remote);
            self.sent += 1;
        }
        fits
    }
}

/// A sink of packets whose paths are TCP streams.
pub trait Carrier {
    /// Sends one ESP packet, if there is room for it.
    fn pass(&mut self, path: Path, packet: &[u8]);
}

impl Carrier for Streams {
    fn pass(&mut self, path: Path, packet: &[u8]) {
        Self::pass(self, path, packet);
    }
}

/// The node's sink for one batch.
pub struct PacketSink<'a> {
    sockets: &'a mut Sockets,
    tun: Option<&'a mut Bulk>,
    streams: &'a mut dyn Carrier,
    /// I/O counters.
    counters: &'a mut IoCounters,
    /// For lines about dropped packets.
    lines: &'a mut Drops,
    /// Deliberate faults.
    faults: &'a mut Option<Faults>,
    /// Paths whose MTU was too small for a packet.
    too_short: BTreeSet<Path>,
    /// True once a packet was sealed or opened.
    carries: bool,
}

impl<'a> PacketSink<'a> {
    pub fn new(
        sockets: &'a mut Sockets,
        tun: Option<&'a mut Bulk>,
        streams: &'a mut dyn Carrier,
        counters: &'a mut IoCounters,
        lines: &'a mut Drops,
        faults: &'a mut Option<Faults>,
    ) -> Self {
        Self {
            sockets,
            tun,
            streams,
            counters,
            lines,
            faults,
            too_short: BTreeSet::new(),
            carries: false,
        }
    }

    /// Returns true if a packet of the batch was sealed or opened. Packets that are not authentic
    /// can come from anywhere, and do not count.
    pub const fn carries(&self) -> bool {
        self.carries
    }

    /// Ends the batch: queued packets are sent or delivered. Returns the paths whose MTU was too
    /// small.
    pub fn finish(mut self) -> BTreeSet<Path> {
        self.leave();
        if let Some(tun) = &mut self.tun {
            self.counters.delivered += tun.flush();
        }
        self.too_short
    }

    /// Sends queued packets, one by one if the system refuses them together.
    fn leave(&mut self) {
        let Some((path, (class, df))) = self.sockets.run.destination() else {
            return;
        };
        let sent = self.sockets.send_run().unwrap_or_default();
        let mut run = std::mem::take(&mut self.sockets.run);
        for packet in run.packets().skip(sent) {
            self.send(path, class, df, packet);
        }
        run.clear();
        self.sockets.run = run;
    }

    fn send(&mut self, path: Path, class: u8, df: Df, packet: &[u8]) {
        if !self.counters.send(self.sockets, path, class, df, packet) {
            self.too_short.insert(path);
        }
    }
}

impl Sink for PacketSink<'_> {
    /// A stream has no ECN field per packet, and its packets should have a single class (RFC 9329
    /// sections 9.3 and 9.5).
    fn transmit(&mut self, packet: &mut Packet, path: Path) {
        self.carries = true;
        if path.is_stream() {
            return self.streams.pass(path, packet.octets());
        }
        let (class, df) = (packet.class(), packet.df);
        if self.faults.is_none() && self.sockets.gathers() {
            let destination = (path, (class, df));
            if !self.sockets.run.take(destination, packet.octets()) {
                self.leave();
                self.sockets.run.take(destination, packet.octets());
            }
            return;
        }
        let (sockets, counters, too_short) =
            (&*self.sockets, &mut *self.counters, &mut self.too_short);
        let send = |path, octets: &[u8]| {
            if !counters.send(sockets, path, class, df, octets) {
                too_short.insert(path);
            }
        };
        faults::pass(self.faults, Way::Out, path, packet.octets(), send);
    }

    fn deliver(&mut self, packet: &mut Packet) {
        self.carries = true;
        let push = |tun: &mut &mut Bulk| tun.push(packet.octets(), packet.checksum);
        self.counters.delivered += self.tun.as_mut().map_or(1, push);
    }

    /// The kernel completes checksums, or the user-space end of the device: [`os::Bulk::push`].
    fn makes_checksums(&self) -> bool {
        true
    }

    fn names_peers(&self) -> bool {
        tracing::enabled!(Level::TRACE)
    }

    fn dropped(&mut self, packet: &mut Packet, why: DropReason) {
        self.dropped_of(packet, why, None);
    }

    fn dropped_of(&mut self, packet: &mut Packet, why: DropReason, peer: Option<PeerId>) {
        if tracing::enabled!(Level::TRACE) {
            trace::dropped(packet, why, peer, self.lines, os::clock::now());
        }
    }

    fn refused(&self) -> u64 {
        self.counters.sent
    }

    fn flush(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Folder;
    use crate::setup;
    use model::Instant;
    use node::Node;

    struct Nowhere;

    impl Carrier for Nowhere {
        fn pass(&mut self, _: Path, _: &[u8]) {}
    }

    const CONFIG: &str = "[node]\nid = \"hub.example.net\"\n[peer.a]\nid = \"a.example.net\"\n\
                          psk = \"a.psk\"\nlocal = [\"10.8.0.0/16\"]\n\
                          remote = [\"10.9.0.0/16\"]\n";

    /// Anybody can send ESP with an unknown SPI to port 4500. If it counted, it would leave honest
    /// initiators a twentieth of the thread's time.
    // Weakness: 92
    #[test]
    fn only_packets_that_are_sealed_or_opened_count_as_traffic() {
        let folder = Folder::new("sink");
        folder.write_key("a.psk", "a key of the usual length, 43 letters or so");
        let config = folder.load(CONFIG);
        let mut node = Node::new(setup::node(&config), [7; 32], Instant::ZERO);
        let end = std::net::SocketAddr::from(([192, 0, 2, 1], 4500));
        let packet = |octets: &[u8]| {
            let mut packet = Packet::with_capacity(1500);
            packet.fill(octets);
            packet.path = Some(Path::udp(end, end));
            packet
        };
        let carries = |act: &mut dyn FnMut(&mut PacketSink<'_>)| {
            let (mut sockets, mut counters) = (Sockets::none(), IoCounters::default());
            let (mut lines, mut faults) = (Drops::default(), None);
            let mut streams = Nowhere;
            let mut sink = PacketSink::new(
                &mut sockets,
                None,
                &mut streams,
                &mut counters,
                &mut lines,
                &mut faults,
            );
            act(&mut sink);
            sink.carries()
        };
        let (mut junk, mut other) = (packet(&[9; 100]), packet(&[0x45; 100]));
        let mut opened = |sink: &mut PacketSink<'_>| {
            node.open(std::slice::from_mut(&mut junk), sink, Instant::ZERO);
        };
        assert!(!carries(&mut opened), "an unknown SPI");
        let mut sealed = |sink: &mut PacketSink<'_>| {
            node.seal(std::slice::from_mut(&mut other), sink, Instant::ZERO);
        };
        assert!(!carries(&mut sealed), "no datagram of a peer");
        let mut own = packet(&[9; 100]);
        assert!(carries(&mut |sink| sink.deliver(&mut own)));
        assert!(carries(
            &mut |sink| sink.transmit(&mut own, Path::udp(end, end))
        ));
    }
}
