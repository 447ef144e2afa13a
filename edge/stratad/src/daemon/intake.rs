//! Input from descriptors, which is passed to the node.

use super::{Daemon, os_side, token};
use crate::api::Parts;
use crate::batch::{Arrived, BATCH, TURNS, fill};
use crate::faults::{self, Way};
use crate::host::Host;
use crate::needs;
use crate::sink::{IoCounters, PacketSink};
use crate::trace::{self, Trace};
use crate::troubles::Task;
use crate::unproved::{self, Unproved};
use crate::workers::Message;
use control::Trouble;
use model::{IkeSaId, Instant, Path};
use node::{Node, Sender, Side, Verdict};
use os::poll::Ready;
use os::{Family, clock};
use std::collections::BTreeSet;
use wire::ecn::Ecn;
use wire::esp::Datagram;
use wire::quoted::Quoted;

/// Paths whose MTU the system is asked for in one turn.
const MEASURED_AT_ONCE: usize = 64;

/// Reports of routers that are read from a socket in one turn.
const REPORTS_AT_ONCE: usize = 32;

impl Daemon {
    pub(super) fn handle(&mut self, ready: Ready, now: Instant) {
        match ready.token {
            token::SIGNALS => {}
            token::API => self.serve(now),
            // Answered with the next turn of the loop, in their share of time.
            token::READERS => {
                if let Some(readers) = self.api.readers() {
                    readers.handle_ready();
                }
            }
            token::SCRAPES => self.write_metrics(now),
            token::CHANGES => self.read_changes(now),
            token::WORKERS => self.hear(now),
            token::REPORTS => self.read_reports(now),
            // `carry_out` follows each wake-up.
            token::SESSIONS => {}
            token::TUNNEL => self.read_tunnel(now),
            token::WIRED => self.read_side(Side::Wired, now),
            token::WIRELESS => self.read_side(Side::Wireless, now),
            token if token < token::NATT => self.read_ike((token - token::IKE) as usize, now),
            token if token < token::ESP => {
                self.read_natt((token - token::NATT) as usize, now);
            }
            token if token < token::LISTEN => self.read_esp((token - token::ESP) as usize, now),
            token if token < token::MOBILE => {
                let listener = (token - token::LISTEN) as usize;
                self.streams.accept(listener, &self.poller, now);
            }
            token if token < token::NAMES => self.read_mobile(token - token::MOBILE, now),
            token if token < token::STREAM => self.names.read(token, &mut self.node, now),
            _ => self.read_stream(ready, now),
        }
    }

    /// Reads a descriptor of Mobile IP. Registrations are carried out before the packets behind
    /// them are read: those of a new visitor take its routes, which strict checks of reverse
    /// paths (`rp_filter` 1) require.
    fn read_mobile(&mut self, token: u64, now: Instant) {
        let mobile = self.host.mobile.as_ref();
        let first = mobile.and_then(|mobile| mobile.decided_by(token));
        for token in first.into_iter().chain([token]) {
            if let Some(mobile) = &mut self.host.mobile {
                let (node, batch) = (&mut self.node, &mut self.batch[..]);
                let (counters, broken) = (&mut self.counters, &mut self.broken);
                mobile.handle(token, node, batch, counters, broken);
            }
            self.follow_registrations(now);
        }
    }

    /// Answers API clients after the node's output has been carried out. A tunnel that is reported
    /// up then has its addresses and routes, and a connection opened after the answer uses the
    /// tunnel.
    fn serve(&mut self, now: Instant) {
        self.carry_out(now);
        let counters = self.observe(now);
        let parts = Parts {
            node: &mut self.node,
            keys: &mut self.keys,
            sessions: &mut self.sessions,
            counters: &counters,
        };
        self.api.serve(parts, now);
        while let Some(asked) = self.api.poll_reload() {
            let response = self.reload(asked.dry_run, now);
            self.api.reloaded(&asked, &response);
        }
    }

    /// Answers one request of a reader, and the next one in another turn.
    pub(super) fn serve_reader(&mut self, now: Instant) {
        let began = clock::now();
        let counters = self.observe(now);
        let parts = Parts {
            node: &mut self.node,
            keys: &mut self.keys,
            sessions: &mut self.sessions,
            counters: &counters,
        };
        self.api.serve_reader(parts, began, now);
    }

    /// Hands the metrics over to the thread that serves them, if it wants them.
    fn write_metrics(&mut self, now: Instant) {
        if self.scrapes.is_wanted() {
            let counters = self.observe(now);
            let text = self.api.metrics(&self.node, &counters, now);
            self.scrapes.publish(text);
        }
    }

    /// Tells the API of failures that last. Returns the counters.
    fn observe(&mut self, now: Instant) -> IoCounters {
        self.counters.streams = self.streams.counts;
        self.counters.unproved = self.unproved.lost.total;
        if let Some(faults) = &self.faults {
            self.counters.faults = faults.counts();
        }
        let mut counters = self.counters;
        counters.add(&self.workers.counters());
        self.api.set_unguarded(self.host.clear.fault());
        self.api.set_errors(self.errors(now));
        counters
    }

    /// Returns all failures of the daemon and its host. A route that is awaited explains that
    /// nothing can be sent there.
    fn errors(&self, now: Instant) -> Vec<Trouble> {
        let mut errors = self.host.awaited.list();
        errors.extend(needs::unmet(&self.config));
        let hears = !self.host.reports.is_empty();
        errors.extend(needs::deaf(self.config.tunnel.path_mtu, hears));
        let awaited: BTreeSet<_> = errors.iter().filter_map(|error| error.remote).collect();
        let unsent = self.unsent.list(now).into_iter();
        errors.extend(unsent.filter(|error| error.remote.is_none_or(|to| !awaited.contains(&to))));
        errors.extend(self.troubles.list(now));
        errors
    }

    /// Handles messages of worker threads. The node's deadline covers the reports of their workers.
    fn hear(&mut self, now: Instant) {
        self.workers.listen();
        while let Some(message) = self.workers.poll_message() {
            match message {
                Message::Ike(path, message) => {
                    let (node, unproved) = (&mut self.node, &mut self.unproved);
                    hear(node, unproved, &mut self.trace, path, &message, now);
                }
                Message::Stream(path, packet) => self.streams.pass(path, &packet),
                Message::TooLong(path) => measure(&mut self.node, &self.host, path, now),
                Message::Broken(why) => self.broken = Some(why),
            }
        }
        self.streams.flush(&self.poller);
    }

    /// Handles routers' reports that packets were too long, a few at a time: anyone can send them.
    fn read_reports(&mut self, now: Instant) {
        for reports in &self.host.reports {
            for _ in 0..REPORTS_AT_ONCE {
                let mut quoted = None;
                let read = reports.recv(|message| {
                    quoted = match reports.family() {
                        Family::V4 => Quoted::read_v4(message),
                        Family::V6 => Quoted::read_v6(message),
                    };
                });
                if let Some(quoted) = quoted {
                    self.node.handle_too_big(quoted, now);
                }
                if let Err(error) = read {
                    let what = "the socket for reports of routers";
                    self.counters.not_read(what, &error, &mut self.broken);
                    break;
                }
            }
        }
    }

    /// Handles a change of addresses or routes: a tunnel may need another path, or have lost its
    /// own routes.
    fn read_changes(&mut self, now: Instant) {
        match self.host.changes.read() {
            Ok(news) => {
                if news.removed {
                    self.restorer.suspect(now);
                }
                if news.ways {
                    self.look(now);
                    self.tell_ways(now);
                    self.node.handle_network_change(now);
                    self.node.remeasure_paths();
                }
            }
            Err(error) => {
                let what = "the kernel's address notifications";
                self.counters.not_read(what, &error, &mut self.broken);
            }
        }
    }

    pub(super) fn tell_ways(&mut self, now: Instant) {
        let remotes = self.node.remotes();
        if remotes.is_empty() {
            return;
        }
        let ways = self.host.ways(&self.config, &remotes);
        let found = ways.map(|ways| self.node.handle_ways(&ways, now));
        self.troubles.note(Task::Paths, found, now);
    }

    pub(super) fn tell_ways_of(&mut self, sa: IkeSaId, now: Instant) {
        match self.host.ways(&self.config, self.node.remotes_of(sa)) {
            Ok(ways) => self.node.handle_ways_of(sa, &ways, now),
            Err(error) => tracing::warn!("a tunnel stays where it is: {error}"),
        }
    }

    /// Reads inner packets, seals and sends them.
    fn read_tunnel(&mut self, now: Instant) {
        for _ in 0..TURNS {
            let Some(tunnel) = &mut self.host.tunnel else {
                return;
            };
            let (filled, failed) = fill(&mut self.batch, &mut tunnel.tun);
            let (sockets, tun) = self.host.ends();
            let (counters, faults) = (&mut self.counters, &mut self.faults);
            let dropped = &mut self.trace.dropped;
            let mut sink =
                PacketSink::new(sockets, tun, &mut self.streams, counters, dropped, faults);
            self.node.seal(&mut self.batch[..filled], &mut sink, now);
            self.busy |= sink.carries();
            for path in sink.finish() {
                measure(&mut self.node, &self.host, path, now);
            }
            self.streams.flush(&self.poller);
            if let Some(error) = failed {
                let name = self.host.tunnel.as_ref().map(|tunnel| tunnel.tun.name());
                let what = name.unwrap_or("the tunnel");
                return self.counters.not_read(what, &error, &mut self.broken);
            }
        }
    }

    /// Reads port 500, which carries only IKE.
    fn read_ike(&mut self, index: usize, now: Instant) {
        let (node, udp) = (&mut self.node, &mut self.host.sockets.ike[index]);
        let (unproved, trace) = (&mut self.unproved, &mut self.trace);
        for _ in 0..TURNS {
            let read = udp.recv(|arrival, payload| {
                let take = |path, message: &[u8]| {
                    hear(node, unproved, trace, path, message, now);
                };
                faults::pass(&mut self.faults, Way::In, arrival.path, payload, take);
            });
            if let Err(error) = read {
                let what = "the socket for IKE";
                return self.counters.not_read(what, &error, &mut self.broken);
            }
        }
    }

    /// Reads port 4500: ESP, and IKE after the non-ESP marker. One system call may return more
    /// packets than a batch holds.
    fn read_natt(&mut self, index: usize, now: Instant) {
        for _ in 0..TURNS {
            let mut arrived = std::mem::take(&mut self.arrived);
            let (node, unproved) = (&mut self.node, &mut self.unproved);
            let trace = &mut self.trace;
            let read = self.host.sockets.natt[index].recv(|arrival, payload| {
                let ecn = Ecn::from_bits(arrival.ecn);
                let take = |path, payload: &[u8]| match Datagram::parse(payload) {
                    Datagram::Ike(message) => hear(node, unproved, trace, path, message, now),
                    Datagram::Keepalive => {}
                    Datagram::Esp(packet) => arrived.push(path, ecn, packet),
                };
                faults::pass(&mut self.faults, Way::In, arrival.path, payload, take);
            });
            self.open(arrived, now);
            if let Err(error) = read {
                let what = "the socket for ESP";
                return self.counters.not_read(what, &error, &mut self.broken);
            }
        }
    }

    /// Reads protocol 50, which carries only ESP.
    fn read_esp(&mut self, index: usize, now: Instant) {
        for _ in 0..TURNS {
            let mut arrived = std::mem::take(&mut self.arrived);
            let read = self.host.sockets.esp[index].recv(|arrival, payload| {
                let ecn = Ecn::from_bits(arrival.ecn);
                let take = |path, packet: &[u8]| arrived.push(path, ecn, packet);
                faults::pass(&mut self.faults, Way::In, arrival.path, payload, take);
            });
            self.open(arrived, now);
            if let Err(error) = read {
                let what = "the socket for protocol 50";
                return self.counters.not_read(what, &error, &mut self.broken);
            }
        }
    }

    /// Reads a TCP stream, which carries the same as port 4500.
    fn read_stream(&mut self, ready: Ready, now: Instant) {
        let before = self.useful();
        let mut arrived = std::mem::take(&mut self.arrived);
        let (node, unproved) = (&mut self.node, &mut self.unproved);
        let trace = &mut self.trace;
        let take = |path, message: &[u8]| match Datagram::parse(message) {
            Datagram::Ike(message) => hear(node, unproved, trace, path, message, now),
            Datagram::Keepalive => {}
            Datagram::Esp(packet) => arrived.push(path, Ecn::NotEct, packet),
        };
        let messages = self.streams.handle(ready, &self.poller, take);
        self.open(arrived, now);
        let useful = self.useful() != before;
        self.streams.judge(ready.token, messages, useful);
    }

    /// Returns the number of useful messages so far.
    fn useful(&self) -> u64 {
        let esp = self.node.esp_counters();
        self.node.ike_counters().taken + esp.opened.packets + esp.dummies()
    }

    fn open(&mut self, mut arrived: Arrived, now: Instant) {
        let (sockets, tun) = self.host.ends();
        let (counters, faults) = (&mut self.counters, &mut self.faults);
        let dropped = &mut self.trace.dropped;
        let mut sink = PacketSink::new(sockets, tun, &mut self.streams, counters, dropped, faults);
        self.node.open(arrived.packets(), &mut sink, now);
        self.busy |= sink.carries();
        sink.finish();
        arrived.clear();
        self.arrived = arrived;
    }

    /// Asks the system for the MTUs of paths, a few at a time.
    pub(super) fn measure_paths(&mut self, now: Instant) {
        for _ in 0..MEASURED_AT_ONCE {
            let Some(path) = self.node.poll_path_mtu() else {
                return;
            };
            measure(&mut self.node, &self.host, path, now);
        }
    }

    /// Sends dummy packets to fill silence, probes and echoes.
    pub(super) fn cover(&mut self, now: Instant) {
        let Some(packet) = self.batch.first_mut() else {
            return;
        };
        let (sockets, tun) = self.host.ends();
        let (counters, faults) = (&mut self.counters, &mut self.faults);
        let dropped = &mut self.trace.dropped;
        let mut sink = PacketSink::new(sockets, tun, &mut self.streams, counters, dropped, faults);
        self.node.cover(packet, &mut sink);
        for path in sink.finish() {
            measure(&mut self.node, &self.host, path, now);
        }
        self.streams.flush(&self.poller);
    }

    /// Reads transit packets on a licensed node.
    fn read_side(&mut self, from: Side, now: Instant) {
        let Some(divert) = &mut self.host.divert else {
            return;
        };
        let (passage, side) = (&mut divert.passage, os_side(from));
        let mut read = 0;
        while read < TURNS * BATCH {
            let count = match passage.recv(side) {
                Ok(count) => count,
                Err(error) => {
                    let what = passage.device(side).name();
                    self.counters.not_read(what, &error, &mut self.broken);
                    break;
                }
            };
            for index in 0..count {
                let packet = passage.packet(index);
                match self.node.transit(from, packet, now) {
                    Verdict::Forward => passage.pass(index),
                    Verdict::Suppress => trace::suppressed(packet, &mut self.trace.dropped, now),
                    Verdict::Written => {}
                }
                while let Some((to, packet)) = self.node.poll_resend() {
                    passage.send(os_side(to), &packet);
                }
            }
            read += count;
        }
        self.busy |= read > 0;
        self.counters.forwarded += passage.flush();
    }
}

/// Passes the MTU of the interface by which a path leaves to the node. A path without a route, or
/// whose local address is gone, has none.
fn measure(node: &mut Node, host: &Host, path: Path, now: Instant) {
    if let Some(mtu) = host.interface_mtu(path) {
        node.handle_interface_mtu(path, mtu, now);
    }
}

/// Handles a peer's IKE message at once; queues an unknown sender's, if there is room.
fn hear(
    node: &mut Node,
    unproved: &mut Unproved,
    trace: &mut Trace,
    path: Path,
    message: &[u8],
    now: Instant,
) {
    trace.received(node, path, message, now);
    let sender = node.sender(path, message, now);
    if sender == Sender::Settled {
        trace.hear(node, path, message, now);
    } else if let Some((path, lost)) = unproved.push(sender, path, message, now) {
        trace.lost(node, path, &lost, unproved::FULL, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::lines_of;
    use crate::sample::Folder;
    use crate::setup;
    use std::time::Duration;

    const CONFIG: &str = "[node]\nid = \"hub.example.net\"\n[peer.a]\nid = \"a.example.net\"\n\
                          psk = \"a.psk\"\nlocal = [\"10.8.0.0/16\"]\n\
                          remote = [\"10.9.0.0/16\"]\n";

    /// An IKE_SA_INIT request without payloads.
    fn first(spi: u8) -> Vec<u8> {
        let mut message = vec![0; 28];
        (message[0], message[17], message[18], message[19]) = (spi, 0x20, 34, 8);
        message[27] = 28;
        message
    }

    /// Messages arrive slowly enough for the quota of lines. Negative control: the messages that
    /// find a place have no line about a drop.
    // Weakness: 176
    #[test]
    fn a_first_message_that_finds_no_place_in_the_queue_has_lines_as_well() {
        let folder = Folder::new("intake");
        folder.write_key("a.psk", "a key of the usual length, 43 letters or so");
        let mut node = Node::new(setup::node(&folder.load(CONFIG)), [7; 32], Instant::ZERO);
        let (mut unproved, mut trace) = (Unproved::default(), Trace::default());
        let end = |last: u8| std::net::SocketAddr::from(([192, 0, 2, last], 500));
        let path = Path::udp(end(1), end(9));
        let mut lost = 0;
        let lines = lines_of(|| {
            for number in 0..140 {
                let now = Instant::from_origin(Duration::from_secs(number));
                let message = first(number as u8 + 1);
                hear(&mut node, &mut unproved, &mut trace, path, &message, now);
                lost = unproved.lost.total;
            }
        });
        let count = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
        let message = "IKE_SA_INIT request 0, 28 octets from 192.0.2.9:500";
        let received = count(&format!("DEBUG unidentified host: received {message}"));
        let dropped = count(&format!("TRACE unidentified host: dropped {message}"));
        assert!(lost > 0);
        assert_eq!((received, dropped as u64), (140, lost));
        assert_eq!(count(unproved::FULL), dropped);
    }
}
