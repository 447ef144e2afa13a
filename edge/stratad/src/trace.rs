//! Lines of two levels of the log: `debug` has one for each IKE message, `trace` also one for each
//! dropped message and packet.
//!
//! Peers and unknown hosts can cause such lines at any rate, so each peer has a quota of them, and
//! all unknown hosts together have one. They do not use up the quotas of `journal.rs`.

use crate::quota::Quota;
use control::Selection;
use model::{Flow, Instant, Path, PeerId, PeerNames, Transmit};
use node::{DropReason, Event, Node, Packet};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::Level;
use wire::esp;
use wire::ike::{Datagram, Header, Payload};

/// Quotas of lines.
#[derive(Default)]
pub struct Trace {
    /// The peers that lines are about.
    about: Selection,
    /// For lines about messages, by peer; `None` for all unknown hosts.
    messages: BTreeMap<Option<PeerId>, Quota>,
    /// For lines about packets that the main thread drops.
    pub dropped: Drops,
}

/// The quota of lines about the packets that one thread drops, and the names in these lines.
#[derive(Default)]
pub struct Drops {
    quota: Quota,
    /// What the main thread has set. Other threads read it for a line only.
    shown: Arc<Mutex<Shown>>,
}

/// The peers that lines about dropped packets are about, and their names.
#[derive(Default)]
struct Shown {
    names: Arc<PeerNames>,
    about: Selection,
}

/// Locks what is shown. A poisoned lock is harmless: a change is complete at once.
fn lock(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if lines are about a peer, or about an unknown host.
fn shows(about: &Selection, name: Option<&str>) -> bool {
    match name {
        Some(name) => about.has_name(name),
        None => about.peers.is_empty(),
    }
}

impl Drops {
    /// Creates the quota of another thread, with the same names.
    pub fn beside(&self) -> Self {
        Self {
            quota: Quota::default(),
            shown: Arc::clone(&self.shown),
        }
    }

    /// Sets the names, for all threads.
    pub fn set_names(&self, names: &Arc<PeerNames>) {
        lock(&self.shown).names = Arc::clone(names);
    }
}

impl Trace {
    /// Has lines be about these peers only, given by name or pattern; about all if there are none.
    pub fn set_peers(&mut self, peers: &[String]) {
        self.about = Selection {
            peers: peers.to_vec(),
            ..Selection::default()
        };
        lock(&self.dropped.shown).about = self.about.clone();
    }

    /// Notes the name of a user that is up. Names are copied for that, so only if lines about
    /// packets are logged.
    pub fn note_user(&self, event: &Event, names: &Arc<PeerNames>) {
        if let Event::PeerUp { peer } = event
            && peer.is_user()
            && tracing::enabled!(Level::TRACE)
        {
            self.dropped.set_names(names);
        }
    }

    /// Logs an IKE message that leaves.
    pub fn sent(&mut self, node: &Node, path: Path, payload: &[u8], now: Instant) {
        if !tracing::enabled!(Level::DEBUG) {
            return;
        }
        let message = match esp::Datagram::parse(payload) {
            esp::Datagram::Ike(message) => message,
            _ => payload,
        };
        if let Some(whose) = self.begin(node, message, now) {
            tracing::debug!("{whose}: sent {} to {}", describe(message), path.remote);
        }
    }

    /// Logs an IKE message that arrives, before anything is done with it.
    pub fn received(&mut self, node: &Node, path: Path, message: &[u8], now: Instant) {
        if !tracing::enabled!(Level::DEBUG) {
            return;
        }
        if let Some(whose) = self.begin(node, message, now) {
            let from = path.remote;
            tracing::debug!("{whose}: received {} from {from}", describe(message));
        }
    }

    /// Passes an IKE message to the node, and logs the reason if the node drops it.
    pub fn hear(&mut self, node: &mut Node, path: Path, message: &[u8], now: Instant) {
        let hear = |node: &mut Node| node.handle_datagram(path, message, now);
        self.watch(node, path, message, now, hear);
    }

    /// Has the node ask for a cookie. Returns the request, and logs the reason if there is none.
    pub fn ask_for_cookie(
        &mut self,
        node: &mut Node,
        path: Path,
        message: &[u8],
        now: Instant,
    ) -> Option<Transmit> {
        let ask = |node: &mut Node| node.ask_for_cookie(path, message, now);
        self.watch(node, path, message, now, ask)
    }

    /// Logs an IKE message that the daemon drops before the node sees it.
    pub fn lost(&mut self, node: &Node, path: Path, message: &[u8], why: &str, now: Instant) {
        if !tracing::enabled!(Level::TRACE) {
            return;
        }
        if let Some(whose) = self.begin(node, message, now) {
            let from = path.remote;
            tracing::trace!("{whose}: dropped {} from {from}: {why}", describe(message));
        }
    }

    /// Lets the node handle a message, and logs the reason if the node counts it as dropped.
    fn watch<T>(
        &mut self,
        node: &mut Node,
        path: Path,
        message: &[u8],
        now: Instant,
        handle: impl FnOnce(&mut Node) -> T,
    ) -> T {
        if !tracing::enabled!(Level::TRACE) {
            return handle(node);
        }
        let before = node.ike_counters().clone();
        let result = handle(node);
        let mut drops = node.ike_counters().drops();
        let why = drops.find(|(why, count)| *count > before.dropped(*why));
        if let Some((why, _)) = why {
            self.lost(node, path, message, &why.to_string(), now);
        }
        result
    }

    /// Returns the beginning of a line about a message, if there is room for the line.
    fn begin(&mut self, node: &Node, message: &[u8], now: Instant) -> Option<String> {
        let peer = node.peer_of(message);
        let name = peer.map(|peer| node.name(peer));
        if !shows(&self.about, name) {
            return None;
        }
        let left_out = self.messages.entry(peer).or_default().take(now)?;
        let whose = name.map_or("unidentified host".to_owned(), |name| {
            format!("peer {name}")
        });
        if left_out > 0 {
            tracing::debug!("{whose}: omitted {left_out} lines about messages before this one");
        }
        Some(whose)
    }
}

/// Describes an IKE message: its exchange, message ID and length and, if it is not encrypted, its
/// notifies.
fn describe(message: &[u8]) -> String {
    let octets = message.len();
    let Ok(header) = Header::peek(message) else {
        return format!("{octets} octets that are no IKE message");
    };
    let kind = match header.flags.response {
        true => "response",
        false => "request",
    };
    let (exchange, id) = (header.exchange, header.message_id);
    let head = format!("{exchange} {kind} {id}, {octets} octets");
    let Ok(Datagram::Clear(message)) = Datagram::decode(message) else {
        return head;
    };
    let notifies = message.payloads.iter().filter_map(|payload| match payload {
        Payload::Notify(notify) => Some(notify.kind.to_string()),
        _ => None,
    });
    let notifies: Vec<_> = notifies.collect();
    match notifies.as_slice() {
        [] => head,
        notifies => format!("{head} ({})", notifies.join(" ")),
    }
}

/// Logs a packet that the data plane drops. `peer` is the one whose SA or policy it is for, if
/// known.
pub fn dropped(
    packet: &Packet,
    why: DropReason,
    peer: Option<PeerId>,
    drops: &mut Drops,
    now: Instant,
) {
    let shown = lock(&drops.shown);
    let name = peer.map(|peer| shown.names.name(peer));
    if !shows(&shown.about, name) || !begin_packet(&mut drops.quota, now) {
        return;
    }
    let what = describe_packet(packet);
    match name {
        Some(peer) => tracing::trace!("peer {peer}: dropped {what}: {why}"),
        None => tracing::trace!("dropped {what}: {why}"),
    }
}

/// Logs an acknowledgement in transit that a licensed node does not forward now.
pub fn suppressed(packet: &[u8], drops: &mut Drops, now: Instant) {
    if !tracing::enabled!(Level::TRACE)
        || !shows(&lock(&drops.shown).about, None)
        || !begin_packet(&mut drops.quota, now)
    {
        return;
    }
    let flow = wire::ip::flow(packet).map(|flow| describe_flow(&flow));
    let (octets, flow) = (packet.len(), flow.unwrap_or_default());
    tracing::trace!(
        "dropped a packet in transit of {octets} octets, {flow}: an acknowledgement that SNOOP \
         suppresses, or sends later"
    );
}

/// Returns true if there is room for a line about a dropped packet.
fn begin_packet(quota: &mut Quota, now: Instant) -> bool {
    let left_out = quota.take(now);
    if let Some(left_out @ 1..) = left_out {
        tracing::trace!("omitted {left_out} lines about dropped packets before this one");
    }
    left_out.is_some()
}

/// Describes a packet by its addresses, protocol and ports, as far as they can be read.
fn describe_packet(packet: &Packet) -> String {
    let inner = wire::ip::flow(packet.octets()).map(|flow| describe_flow(&flow));
    let octets = packet.len();
    match (packet.path, inner) {
        (None, Some(inner)) => format!("a datagram of {octets} octets, {inner}"),
        (None, None) => format!("{octets} octets that are no datagram"),
        (Some(path), Some(inner)) => {
            let from = path.remote;
            format!("a datagram of {octets} octets from the tunnel with {from}, {inner}")
        }
        (Some(path), None) => {
            let (local, remote) = (path.local, path.remote);
            let spi = packet
                .octets()
                .first_chunk()
                .map(|spi| u32::from_be_bytes(*spi));
            let spi = spi.map_or_else(String::new, |spi| format!(", SPI {spi:08x}"));
            format!("an ESP packet of {octets} octets, {remote} > {local}{spi}")
        }
    }
}

fn describe_flow(flow: &Flow) -> String {
    let (from, to) = (flow.source, flow.destination);
    let protocol = match flow.protocol {
        1 => Cow::Borrowed("ICMP"),
        6 => Cow::Borrowed("TCP"),
        17 => Cow::Borrowed("UDP"),
        58 => Cow::Borrowed("ICMPv6"),
        other => Cow::Owned(format!("protocol {other}")),
    };
    match flow.ports_visible && flow.has_ports() {
        true => {
            let (source, destination) = (flow.source_port, flow.destination_port);
            format!("{protocol} {from} port {source} > {to} port {destination}")
        }
        false => format!("{protocol} {from} > {to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::lines_of;
    use std::time::Duration;

    const REQUEST: &str = "0102030405060708 0000000000000000 00 20 22 08 00000000 0000001c";

    fn octets(hex: &str) -> Vec<u8> {
        let digits: Vec<_> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let octet = |pair: &[u8]| {
            let text = std::str::from_utf8(pair).unwrap();
            u8::from_str_radix(text, 16).unwrap()
        };
        digits.chunks(2).map(octet).collect()
    }

    #[test]
    fn a_message_is_described_by_its_exchange_and_number_and_garbage_by_its_length() {
        let text = "IKE_SA_INIT request 0, 28 octets";
        assert_eq!(describe(&octets(REQUEST)), text);
        assert_eq!(describe(&[7; 5]), "5 octets that are no IKE message");
    }

    /// A UDP datagram from 10.1.0.2 port 5000 to 10.8.0.53 port 53.
    const DATAGRAM: &str = "4500001c 00000000 40110000 0a010002 0a080035 13880035 00080000";

    #[test]
    fn a_dropped_packet_is_told_with_addresses_protocol_and_ports() {
        let mut packet = Packet::from_slice(&octets(DATAGRAM));
        assert_eq!(
            describe_packet(&packet),
            "a datagram of 28 octets, UDP 10.1.0.2 port 5000 > 10.8.0.53 port 53"
        );
        packet.fill(&octets("c0de0001 00000007 ffff"));
        let remote = ([192, 0, 2, 9], 4500).into();
        packet.path = Some(Path::udp(([192, 0, 2, 1], 4500).into(), remote));
        assert_eq!(
            describe_packet(&packet),
            "an ESP packet of 10 octets, 192.0.2.9:4500 > 192.0.2.1:4500, SPI c0de0001"
        );
    }

    // Weakness: 176
    #[test]
    fn a_suppressed_acknowledgement_has_a_line_within_the_quota_of_dropped_packets() {
        let lines = lines_of(|| {
            let mut quota = Drops::default();
            for _ in 0..1000 {
                suppressed(&octets(DATAGRAM), &mut quota, Instant::ZERO);
            }
        });
        let first = "TRACE dropped a packet in transit of 28 octets, UDP 10.1.0.2 port 5000";
        assert!(lines[0].starts_with(first), "{}", lines[0]);
        assert!(lines.len() < 100, "{}", lines.len());
    }

    // Weakness: 154
    #[test]
    fn a_flood_of_drops_has_few_lines_and_the_next_line_counts_the_rest() {
        let packet = Packet::from_slice(&octets(DATAGRAM));
        let lines = lines_of(|| {
            let mut quota = Drops::default();
            for millis in 0..10_000 {
                let now = Instant::from_origin(Duration::from_millis(millis));
                dropped(&packet, DropReason::NoPolicy, None, &mut quota, now);
            }
        });
        assert!((100..200).contains(&lines.len()), "{}", lines.len());
        let first = "TRACE dropped a datagram of 28 octets, UDP 10.1.0.2 port 5000";
        assert!(lines[0].starts_with(first), "{}", lines[0]);
        assert!(lines.iter().any(|line| line.contains("omitted")));
    }

    #[test]
    fn a_dropped_packet_of_a_known_peer_is_found_by_its_name() {
        let packet = Packet::from_slice(&octets(DATAGRAM));
        let lines = lines_of(|| {
            let mut names = PeerNames::default();
            names.enter(["office"]);
            let (peer, main) = (names.id("office"), Drops::default());
            let mut drops = main.beside();
            main.set_names(&names.into());
            dropped(&packet, DropReason::NoSa, peer, &mut drops, Instant::ZERO);
        });
        let first = "TRACE peer office: dropped a datagram of 28 octets, UDP 10.1.0.2";
        assert!(lines[0].starts_with(first), "{lines:?}");
    }
}
