//! A licensed node's work on packets that are not its own (DESIGN section 7): open what a grant
//! allows, show the headers to SNOOP, and forward everything as it came; where the grant is one to write and
//! windows are to be lowered, with an overlay behind it. Where it is one to inject and an end is to be stood in
//! for, packets of its own are sent besides.
//!
//! Nothing is ever dropped here but acknowledgements that SNOOP suppresses: what cannot be opened
//! (no grant, wrong ICV, fragments, somebody else's protocol) is forwarded and counted.

use crate::Event;
use crate::holdings::{Held, Holdings};
use crate::pairs::{Pair, Pairs};
use crate::status::HeldGrant;
use crypto::Secret;
use esp::{Direction, Headers, Licensed, NotOpened, Scratch, Unusable, View};
use model::{CsaId, Deadline, Grant, Identity, IkeSaId, Instant, Spi};
use pep::{Patience, Position, Regulator, Segment, Side, Snoop, StandIn};
use std::collections::{BTreeMap, VecDeque};
use wire::zoned::{Overlay, mark};
use wire::{esp as framing, ip, tcp, trailer, udp};

/// What becomes of a diverted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write it back.
    Forward,
    /// SNOOP keeps this acknowledgement to itself.
    Suppress,
    /// It goes on with an overlay: [`crate::Node::poll_resend`] gives it as it leaves.
    Written,
}

/// What happened to diverted packets. Each is counted once, under the first that fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransitCounters {
    /// Neither ESP nor clear TCP under SNOOP: forwarded.
    pub foreign: u64,
    /// Not an IP packet: forwarded.
    pub malformed: u64,
    /// IP fragments: forwarded unopened.
    pub fragments: u64,
    /// ESP without a grant here: forwarded.
    pub unlicensed: u64,
    /// ESP with a grant that did not open (wrong ICV, malformed): forwarded.
    pub not_opened: u64,
    /// Opened, but a duplicate or too old: forwarded, and no state was changed.
    pub stale: u64,
    /// Opened, but no TCP header to see (opaque or another protocol): forwarded.
    pub opaque: u64,
    /// TCP segments shown to SNOOP or to what lowers windows.
    pub segments: u64,
    /// Acknowledgements suppressed, a part of `segments`.
    pub suppressed: u64,
    /// Segments whose window was lowered by an overlay, a part of `segments`.
    pub written: u64,
    /// Segments whose window was to be lowered and could not be: another writer was there before, or the
    /// grant is one to read. A part of `segments`.
    pub unwritten: u64,
    /// Segments whose window nobody understands who has not seen the connection begin, a part of
    /// `segments`.
    pub unscaled: u64,
    /// Packets made in the name of an end that was silent.
    pub injected: u64,
    /// Those that were to be made and could not be: the grant is for less.
    pub uninjected: u64,
}

/// The licensed node's state.
pub(crate) struct Transit {
    licensed: Licensed,
    scratch: Scratch,
    snoop: Option<Snoop>,
    regulator: Option<Regulator>,
    stand_in: Option<StandIn>,
    /// What leaves with an overlay, or was made here.
    own: VecDeque<(Side, Vec<u8>)>,
    /// What the last packet of each composite SA from the wireless side had in front, and which way it went:
    /// what is made in the name of an end there is in front of nothing else. Only where ends are stood in for.
    fronts: BTreeMap<CsaId, (Direction, Vec<u8>)>,
    held: Holdings,
    pairs: Pairs,
    counters: TransitCounters,
}

/// A grant without what its node may make itself.
pub(crate) fn readable(grant: &Grant<Secret>) -> Grant<Secret> {
    let mut grant = grant.clone();
    for half in [&mut grant.from_gateway, &mut grant.to_gateway] {
        (half.overlay, half.injection) = (None, None);
    }
    grant
}

/// Both directions of a grant, the lower SPI first.
pub(crate) fn both_spis(grant: &Grant<Secret>) -> [Spi; 2] {
    let mut spis = [grant.from_gateway.spi, grant.to_gateway.spi];
    spis.sort();
    spis
}

impl Transit {
    pub fn new(
        snoop: Option<pep::Config>,
        window: Option<u32>,
        stand_in: Option<Patience>,
    ) -> Self {
        Self {
            licensed: Licensed::new(),
            scratch: Scratch::new(),
            snoop: snoop.map(Snoop::new),
            regulator: window.map(Regulator::new),
            stand_in: stand_in.map(StandIn::new),
            own: VecDeque::new(),
            fronts: BTreeMap::new(),
            held: Holdings::default(),
            pairs: Pairs::default(),
            counters: TransitCounters::default(),
        }
    }

    /// Takes a grant that came over an IKE SA, in place of the one that it renews, and gives it as it is held. Errors if its
    /// keys do not fit its suites or its gateway has too many with its SPIs: then nothing has changed.
    pub fn install(
        &mut self,
        sa: IkeSaId,
        gateway: String,
        identity: Identity,
        grant: Grant<Secret>,
        now: Instant,
    ) -> Result<HeldGrant, Unusable> {
        let status = HeldGrant {
            csa: grant.csa,
            gateway,
            identity,
            from_gateway: grant.from_gateway.spi,
            to_gateway: grant.to_gateway.spi,
            zones: grant
                .from_gateway
                .zones
                .iter()
                .map(|(zone, ..)| *zone)
                .collect(),
            payload_zone: grant.payload_zone,
            grant: grant.grant,
            writes: grant.from_gateway.overlay.is_some(),
            injects: grant.from_gateway.injection.is_some(),
            until: now + grant.lifetime,
        };
        let names = self.held.name(&status.gateway, &grant)?;
        let new = Held {
            sa,
            line: names.line,
            granted_line: grant.line,
            status: status.clone(),
            onward: grant.onward.is_some().then(|| Box::new(readable(&grant))),
        };
        self.licensed.install(Grant {
            csa: names.csa,
            line: names.line,
            ..grant
        })?;
        if let Some(old) = self.held.insert(names.csa, new) {
            self.leave_line(old.line);
        }
        Ok(status)
    }

    /// Whether a grant of a gateway's composite SA is held.
    pub fn holds(&self, gateway: &str, csa: CsaId) -> bool {
        self.held.has(gateway, csa)
    }

    /// The grants of composite SAs with these SPIs, the lower first, that may be handed on.
    pub fn onward(&self, spis: [Spi; 2]) -> impl Iterator<Item = (&HeldGrant, &Grant<Secret>)> {
        let onward = self.held.iter().filter_map(|held| {
            let grant = held.onward.as_deref()?;
            Some((&held.status, grant))
        });
        onward.filter(move |(_, grant)| both_spis(grant) == spis)
    }

    /// Forgets one grant, if it came over this IKE SA.
    pub fn revoke(&mut self, sa: IkeSaId, csa: CsaId) -> Option<HeldGrant> {
        let held = self.held.granted(sa, csa)?;
        self.forget(held)
    }

    /// Forgets every grant that came over an IKE SA.
    pub fn gateway_lost(&mut self, sa: IkeSaId) -> Vec<HeldGrant> {
        let gone = self.held.over(sa).into_iter();
        gone.filter_map(|csa| self.forget(csa)).collect()
    }

    fn forget(&mut self, csa: CsaId) -> Option<HeldGrant> {
        self.licensed.revoke(csa);
        self.fronts.remove(&csa);
        self.pairs.forget(csa);
        let held = self.held.remove(csa)?;
        self.leave_line(held.line);
        if let Some(snoop) = &mut self.snoop {
            snoop.retire(csa);
        }
        Some(held.status)
    }

    /// A grant of a line is gone: so are the line's connections, unless it has another one.
    fn leave_line(&mut self, line: CsaId) {
        if self.held.has_line(line) {
            return;
        }
        if let Some(snoop) = &mut self.snoop {
            snoop.forget(line);
        }
        if let Some(regulator) = &mut self.regulator {
            regulator.forget(line);
        }
        if let Some(stand_in) = &mut self.stand_in {
            stand_in.forget(line);
        }
    }

    /// Forgets grants whose time has come.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<HeldGrant> {
        if let Some(snoop) = &mut self.snoop {
            snoop.handle_timeout(now);
        }
        if let Some(stand_in) = &mut self.stand_in {
            stand_in.handle_timeout(now);
        }
        self.inject();
        let expired = self.held.expired(now).into_iter();
        expired.filter_map(|csa| self.forget(csa)).collect()
    }

    /// Other limits for SNOOP, or SNOOP on or off. Flows that are known stay known, and what is held is sent.
    pub fn set_snoop(&mut self, config: Option<pep::Config>) {
        match (self.snoop.take(), config) {
            (Some(mut snoop), Some(config)) => {
                snoop.set_config(config);
                self.snoop = Some(snoop);
            }
            (Some(snoop), None) => self.own.extend(snoop.close()),
            (None, config) => self.snoop = config.map(Snoop::new),
        }
    }

    /// Another bound of windows, or none. Connections that are known stay known.
    pub fn set_window(&mut self, window: Option<u32>) {
        match (&mut self.regulator, window) {
            (Some(regulator), Some(window)) => regulator.set_window(window),
            (regulator, window) => *regulator = window.map(Regulator::new),
        }
    }

    /// Another patience with those who are silent, or none. Connections that are known stay known.
    pub fn set_stand_in(&mut self, patience: Option<Patience>) {
        match (&mut self.stand_in, patience) {
            (Some(stand_in), Some(patience)) => stand_in.set_patience(patience),
            (stand_in, patience) => *stand_in = patience.map(StandIn::new),
        }
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let expiry = self.held.iter().map(|held| held.status.until).min();
        let expiry = expiry.map(|at| Deadline {
            at,
            reason: "forget a grant",
        });
        let snoop = self.snoop.as_ref().and_then(Snoop::poll_timeout);
        let stand_in = self.stand_in.as_ref().and_then(StandIn::poll_timeout);
        [expiry, snoop, stand_in].into_iter().flatten().min()
    }

    pub fn poll_resend(&mut self) -> Option<(Side, Vec<u8>)> {
        let own = self.own.pop_front();
        own.or_else(|| self.snoop.as_mut()?.poll_transmit())
    }

    pub fn held(&self) -> impl Iterator<Item = HeldGrant> {
        self.held.iter().map(|held| held.status.clone())
    }

    pub const fn snoop(&self) -> Option<&Snoop> {
        self.snoop.as_ref()
    }

    pub const fn counters(&self) -> &TransitCounters {
        &self.counters
    }

    /// What has changed of pairs.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.pairs.poll_event()
    }

    /// One diverted packet: what becomes of it.
    pub fn handle(&mut self, from: Side, packet: &[u8], now: Instant) -> Verdict {
        let counters = &mut self.counters;
        let Ok(header) = ip::Header::parse(packet) else {
            return count(&mut counters.malformed);
        };
        if header.is_fragment() {
            return count(&mut counters.fragments);
        }
        let done = match (header.protocol(), esp_in_udp(&header)) {
            (_, Some(esp)) => self.sealed(from, packet, esp, &header, now),
            (framing::PROTOCOL, None) => self.sealed(from, packet, header.payload(), &header, now),
            (tcp::PROTOCOL, None) => self.clear(from, packet, &header, now),
            _ => count(&mut counters.foreign),
        };
        self.inject();
        done
    }

    /// Makes what is to be said in the name of who is silent.
    fn inject(&mut self) {
        let answers = self.stand_in.as_mut();
        for answer in answers
            .into_iter()
            .flat_map(|it| std::iter::from_fn(|| it.poll_answer()))
        {
            let packet = self.fronts.get(&answer.csa).and_then(|(direction, front)| {
                let (headers, first) = answer.said.headers();
                let sealed = self
                    .licensed
                    .inject(answer.csa, *direction, (&headers, first));
                trailer::behind(front, &sealed.ok()?)
            });
            self.counters.injected += u64::from(packet.is_some());
            self.counters.uninjected += u64::from(packet.is_none());
            self.own.extend(packet.map(|packet| (Side::Wired, packet)));
        }
    }

    /// An ESP packet: shown to SNOOP if a grant opens it and TCP headers are inside.
    fn sealed(
        &mut self,
        from: Side,
        packet: &[u8],
        esp: &[u8],
        outer: &ip::Header<'_>,
        now: Instant,
    ) -> Verdict {
        let counters = &mut self.counters;
        let view = match self.licensed.open(esp, &mut self.scratch) {
            Ok(view) => view,
            Err(NotOpened::NoGrant) => return count(&mut counters.unlicensed),
            Err(NotOpened::Opaque) => return count(&mut counters.opaque),
            Err(_) => return count(&mut counters.not_opened),
        };
        if !view.fresh() {
            return count(&mut counters.stale);
        }
        let (source, destination) = (outer.source(), outer.destination());
        let (wired, wireless) = match from {
            Side::Wired => (source, destination),
            Side::Wireless => (destination, source),
        };
        let pair = Pair { wired, wireless };
        self.pairs.note((view.csa(), view.direction()), pair, now);
        let Some((headers, header)) = visible_tcp(&view) else {
            return count(&mut counters.opaque);
        };
        let mut segment = Segment {
            line: self.held.get(view.csa()).map(|held| held.line),
            flow: headers.flow,
            header,
            hides: headers.hides,
            payload_len: view.payload_len(),
            sealed: packet,
            fresh: true,
            position: Some(Position {
                csa: view.csa(),
                seq: view.seq().into(),
                highest: view.highest(),
                window: view.window(),
            }),
        };
        let window = match &mut self.regulator {
            Some(regulator) => regulate(regulator, &segment, now, counters),
            None => None,
        };
        let written = window.and_then(|window| {
            let overlay = self.licensed.lower_window(&view, esp, window).ok();
            let written = overlay.and_then(|overlay| written(packet, esp.len(), &overlay));
            counters.written += u64::from(written.is_some());
            counters.unwritten += u64::from(written.is_none());
            written
        });
        segment.sealed = written.as_deref().unwrap_or(packet);
        let verdict = match &mut self.snoop {
            Some(snoop) => {
                counters.segments += 1;
                verdict(snoop.handle_segment(from, &segment, now), counters)
            }
            None if self.regulator.is_some() || self.stand_in.is_some() => {
                count(&mut counters.segments)
            }
            None => count(&mut counters.opaque),
        };
        // What goes no further has not been said, and what was lowered was said so.
        if let Some(stand_in) = &mut self.stand_in
            && verdict == Verdict::Forward
        {
            segment.header.window = window
                .filter(|_| written.is_some())
                .unwrap_or(header.window);
            stand_in.handle_segment(from, &segment, now);
            if from == Side::Wireless {
                let front = self.fronts.entry(view.csa());
                let (direction, front) = front.or_insert((view.direction(), Vec::new()));
                *direction = view.direction();
                front.clear();
                front.extend_from_slice(&packet[..packet.len() - esp.len()]);
            }
        }
        match written.filter(|_| verdict == Verdict::Forward) {
            Some(written) => {
                self.own.push_back((from.opposite(), written));
                Verdict::Written
            }
            None => verdict,
        }
    }

    /// TCP that nobody protects: SNOOP as its authors had it.
    fn clear(
        &mut self,
        from: Side,
        packet: &[u8],
        header: &ip::Header<'_>,
        now: Instant,
    ) -> Verdict {
        let (Some(snoop), Some(tcp)) = (&mut self.snoop, tcp::Header::parse(header.payload()))
        else {
            return count(&mut self.counters.foreign);
        };
        self.counters.segments += 1;
        let segment = Segment {
            line: None,
            flow: header.flow(),
            hides: false,
            payload_len: header.payload().len() - tcp.header_len,
            header: tcp,
            sealed: packet,
            fresh: true,
            position: None,
        };
        verdict(
            snoop.handle_segment(from, &segment, now),
            &mut self.counters,
        )
    }
}

/// The ESP packet in a UDP datagram of port 4500 (RFC 3948 section 2.1), if it is one.
fn esp_in_udp<'a>(header: &ip::Header<'a>) -> Option<&'a [u8]> {
    let udp =
        (header.protocol() == udp::PROTOCOL).then(|| udp::Header::parse(header.payload()))??;
    let encapsulated = [udp.source_port, udp.destination_port].contains(&framing::NATT_PORT);
    match framing::Datagram::of(header.payload().get(udp::HEADER_LEN..)?) {
        framing::Datagram::Esp(esp) if encapsulated => Some(esp),
        _ => None,
    }
}

/// The TCP header among the headers that were opened, if they are all there.
fn visible_tcp<'a>(view: &View<'a>) -> Option<(Headers<'a>, tcp::Header<'a>)> {
    let headers = view
        .headers()
        .filter(|headers| headers.flow.protocol == tcp::PROTOCOL)?;
    Some((headers, tcp::Header::parse(headers.transport)?))
}

/// The window that a segment is to have.
fn regulate(
    regulator: &mut Regulator,
    segment: &Segment<'_>,
    now: Instant,
    counters: &mut TransitCounters,
) -> Option<u16> {
    let before = regulator.unscaled();
    let window = regulator.handle_segment(segment, now);
    counters.unscaled += regulator.unscaled() - before;
    window
}

/// An IP packet that ends with an ESP packet of so many octets, with an overlay behind it.
fn written(packet: &[u8], esp_len: usize, overlay: &Overlay) -> Option<Vec<u8>> {
    let mut written = packet.to_vec();
    let start = packet.len().checked_sub(esp_len)?;
    mark(&mut written[start..], true);
    let mut octets = Vec::new();
    overlay.append(&mut octets);
    trailer::append(&mut written, &octets).then_some(written)
}

/// Counts one and forwards.
fn count(counter: &mut u64) -> Verdict {
    *counter += 1;
    Verdict::Forward
}

fn verdict(verdict: pep::Verdict, counters: &mut TransitCounters) -> Verdict {
    match verdict {
        pep::Verdict::Forward => Verdict::Forward,
        pep::Verdict::Suppress => {
            counters.suppressed += 1;
            Verdict::Suppress
        }
    }
}
