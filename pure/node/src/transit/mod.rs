//! The licensed node's processing of transit packets (DESIGN section 7).
//!
//! The node opens the zones that a grant allows, shows the headers to SNOOP, and forwards every
//! packet unchanged. With a grant to write, it appends an overlay to segments whose window has to
//! be lowered. With a grant to inject, it also originates packets on behalf of a silent endpoint.
//!
//! The node never drops a packet, except acknowledgements that SNOOP suppresses. Packets that it
//! cannot open (no grant, wrong ICV, fragments, other protocols) are forwarded and counted.

mod holdings;
mod pairs;

use crate::effects::Turn;
use crate::status::HeldGrant;
use crate::{Dropped, Event};
use crypto::Secret;
use esp::{Direction, Headers, Licensed, NotOpened, Scratch, Unusable, View};
use holdings::{Held, Holdings};
use model::{CsaId, Deadline, Grant, Identity, IkeSaId, Instant, PeerId, Spi};
use pairs::{OneWay, Pair, Pairs};
use pep::{Line, Patience, Position, Segment, Side, Snoop, StandIn, WindowLimiter};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use wire::ike::RefusalCode;
use wire::zoned::{Overlay, mark};
use wire::{esp as framing, ip, tcp, trailer, udp};

/// The decision about a diverted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward the packet unchanged.
    Forward,
    /// Drop the packet: SNOOP suppresses this acknowledgement.
    Suppress,
    /// Drop the packet: [`crate::Node::poll_resend`] returns a copy with an overlay to forward
    /// instead.
    Written,
}

/// Counters of diverted packets. Each packet is counted once, by the first counter that applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransitCounters {
    /// Neither ESP nor unencrypted TCP under SNOOP: forwarded.
    pub foreign: u64,
    /// Not an IP packet: forwarded.
    pub malformed: u64,
    /// IP fragments: forwarded unopened.
    pub fragments: u64,
    /// ESP without a grant here: forwarded.
    pub unlicensed: u64,
    /// ESP with a grant that did not open (wrong ICV, malformed): forwarded.
    pub not_opened: u64,
    /// Opened, but a duplicate or too old: forwarded without changing any state.
    pub stale: u64,
    /// Opened, but without a visible TCP header (opaque or another protocol): forwarded.
    pub opaque: u64,
    /// TCP segments processed by SNOOP, the window limiter or the stand-in.
    pub segments: u64,
    /// Suppressed acknowledgements, a part of `segments`.
    pub suppressed: u64,
    /// Segments whose window was lowered by an overlay, a part of `segments`.
    pub written: u64,
    /// Segments whose window could not be lowered, because another writer came first or the grant
    /// does not allow writing. A part of `segments`.
    pub unwritten: u64,
    /// Segments with an unknown window scale, because the node did not see the handshake. A part of
    /// `segments`.
    pub unscaled: u64,
    /// Packets originated on behalf of a silent endpoint.
    pub injected: u64,
    /// Packets that could not be originated, because the grant does not allow injection.
    pub uninjected: u64,
}

/// State of the licensed node.
pub(crate) struct Transit {
    licensed: Licensed,
    scratch: Scratch,
    snoop: Option<Snoop>,
    limiter: Option<WindowLimiter>,
    stand_in: Option<StandIn>,
    /// Packets with an overlay or originated here, by the side that they leave on.
    own: VecDeque<(Side, Vec<u8>)>,
    /// Direction and outer headers of the last packet from the wireless side, by composite SA.
    /// Packets originated on behalf of an endpoint there use the same outer headers. Filled only if
    /// `stand_in` is set.
    fronts: BTreeMap<CsaId, (Direction, Vec<u8>)>,
    held: Holdings,
    pairs: Pairs,
    counters: TransitCounters,
}

/// Returns a copy of a grant without the keys to write and inject.
pub(crate) fn readable(grant: &Grant<Secret>) -> Grant<Secret> {
    let mut grant = grant.clone();
    for half in [&mut grant.from_gateway, &mut grant.to_gateway] {
        (half.overlay, half.injection) = (None, None);
    }
    grant
}

/// Returns the SPIs of both directions of a grant, the lower first.
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
            limiter: window.map(WindowLimiter::new),
            stand_in: stand_in.map(StandIn::new),
            own: VecDeque::new(),
            fronts: BTreeMap::new(),
            held: Holdings::default(),
            pairs: Pairs::default(),
            counters: TransitCounters::default(),
        }
    }

    /// Installs a grant that arrived on an IKE SA and returns its status. The grant replaces the
    /// one that it renews. Errors if the keys do not fit the suites, or if the gateway has too many
    /// grants with the same SPI. Nothing changes in this case.
    pub fn install(
        &mut self,
        sa: IkeSaId,
        gateway: PeerId,
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
        let names = self.held.name(gateway, &grant)?;
        let new = Held {
            sa,
            line: names.line,
            granted_line: grant.line,
            status: status.clone(),
            opened: 0,
            onward: grant.onward.is_some().then(|| Box::new(readable(&grant))),
        };
        self.licensed.install(Grant {
            csa: names.csa,
            line: names.line.csa,
            ..grant
        })?;
        if let Some(old) = self.held.insert(names.csa, new) {
            self.leave_line(old.line);
        }
        Ok(status)
    }

    /// Handles KEY_DISTRIBUTE: usable keys take effect at once. If they are unusable, the keys that
    /// they would have renewed stay. Returns the refusal in this case.
    pub fn granted(
        &mut self,
        sa: IkeSaId,
        gateway: PeerId,
        identity: Identity,
        grant: Grant<Secret>,
        turn: &mut Turn<'_>,
    ) -> Option<RefusalCode> {
        let csa = grant.csa;
        match self.install(sa, gateway, identity, grant, turn.now) {
            Ok(held) => {
                turn.add(Event::GrantHeld(held));
                None
            }
            Err(unusable) => {
                turn.add(Event::GrantUnusable {
                    gateway,
                    csa,
                    why: unusable.to_string(),
                });
                turn.refuse(Some(gateway), unusable.to_string());
                Some(refusal_code(unusable))
            }
        }
    }

    /// Reports that a grant was discarded.
    pub fn dropped(&mut self, held: HeldGrant, why: Dropped, turn: &mut Turn<'_>) {
        turn.add(Event::GrantDropped { held, why });
        while let Some(pair) = self.pairs.poll_event() {
            turn.add(pair);
        }
    }

    /// Returns true if a grant for the gateway's composite SA is held.
    pub fn holds(&self, gateway: PeerId, csa: CsaId) -> bool {
        self.held.has(gateway, csa)
    }

    /// Returns the grants for composite SAs with these SPIs, the lower first, whose keys may be
    /// passed on.
    pub fn onward(&self, spis: [Spi; 2]) -> impl Iterator<Item = (&HeldGrant, &Grant<Secret>)> {
        let onward = self.held.iter().filter_map(|held| {
            let grant = held.onward.as_deref()?;
            Some((&held.status, grant))
        });
        onward.filter(move |(_, grant)| both_spis(grant) == spis)
    }

    /// Discards a grant that the gateway revoked, if it arrived on this IKE SA.
    pub fn revoke(&mut self, sa: IkeSaId, csa: CsaId, turn: &mut Turn<'_>) {
        let held = self.held.granted(sa, csa);
        if let Some(held) = held.and_then(|csa| self.forget(csa)) {
            self.dropped(held, Dropped::Revoked, turn);
        }
    }

    /// Discards every grant that arrived on an IKE SA that has ended.
    pub fn gateway_lost(&mut self, sa: IkeSaId, turn: &mut Turn<'_>) {
        let gone = self.held.over(sa).into_iter();
        let gone: Vec<_> = gone.filter_map(|csa| self.forget(csa)).collect();
        for held in gone {
            self.dropped(held, Dropped::GatewayGone, turn);
        }
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

    /// Discards the connections of a line that has no grant left.
    fn leave_line(&mut self, line: Line) {
        if self.held.has_line(line) {
            return;
        }
        if let Some(snoop) = &mut self.snoop {
            snoop.forget(line);
        }
        if let Some(limiter) = &mut self.limiter {
            limiter.forget(line);
        }
        if let Some(stand_in) = &mut self.stand_in {
            stand_in.forget(line);
        }
    }

    /// Discards and returns the grants that have expired.
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

    /// Reconfigures SNOOP, or turns it on or off. Known flows stay known. Held packets are sent
    /// when it goes off.
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

    /// Sets the limit of TCP windows, or removes it. Known connections stay known.
    pub fn set_window(&mut self, window: Option<u32>) {
        match (&mut self.limiter, window) {
            (Some(limiter), Some(window)) => limiter.set_window(window),
            (limiter, window) => *limiter = window.map(WindowLimiter::new),
        }
    }

    /// Sets the limits for acting on behalf of silent endpoints, or stops doing so. Known
    /// connections stay known.
    pub fn set_stand_in(&mut self, patience: Option<Patience>) {
        match (&mut self.stand_in, patience) {
            (Some(stand_in), Some(patience)) => stand_in.set_patience(patience),
            (stand_in, patience) => *stand_in = patience.map(StandIn::new),
        }
    }

    pub fn poll_timeout(&self) -> Option<Deadline> {
        let expiry = self.held.next_expiry().map(|at| Deadline {
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

    /// Returns the packets opened for each gateway.
    pub fn opened_for(&self) -> BTreeMap<PeerId, u64> {
        self.held.opened()
    }

    pub const fn snoop(&self) -> Option<&Snoop> {
        self.snoop.as_ref()
    }

    pub const fn counters(&self) -> &TransitCounters {
        &self.counters
    }

    /// Handles the failure to divert the packets of a learnt pair.
    pub fn not_diverted(&mut self, wired: IpAddr, wireless: IpAddr, now: Instant) {
        self.pairs.not_diverted(Pair { wired, wireless }, now);
    }

    /// Returns the next change of the host pairs.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.pairs.poll_event()
    }

    /// Processes one diverted packet and returns the decision about it.
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

    /// Originates the pending packets on behalf of silent endpoints.
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

    /// Processes an ESP packet. SNOOP sees it if a grant opens it and it has TCP headers.
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
        let line = self.held.count_opened(view.csa());
        if let Some(line) = line {
            let direction = OneWay {
                csa: view.csa(),
                direction: view.direction(),
            };
            self.pairs.note(direction, line.owner, pair, now);
        }
        let Some((headers, header)) = visible_tcp(&view) else {
            return count(&mut counters.opaque);
        };
        let mut segment = Segment {
            line,
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
        let window = match &mut self.limiter {
            Some(limiter) => regulate(limiter, &segment, now, counters),
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
            None if self.limiter.is_some() || self.stand_in.is_some() => {
                count(&mut counters.segments)
            }
            None => count(&mut counters.opaque),
        };
        // A suppressed segment counts as never sent, and a segment with a lowered window as sent
        // that way.
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

    /// Processes unencrypted TCP: SNOOP as its authors designed it.
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

/// Returns the ESP packet in a UDP datagram of port 4500 (RFC 3948 section 2.1), if there is one.
fn esp_in_udp<'a>(header: &ip::Header<'a>) -> Option<&'a [u8]> {
    let udp =
        (header.protocol() == udp::PROTOCOL).then(|| udp::Header::parse(header.payload()))??;
    let encapsulated = [udp.source_port, udp.destination_port].contains(&framing::NATT_PORT);
    match framing::Datagram::parse(header.payload().get(udp::HEADER_LEN..)?) {
        framing::Datagram::Esp(esp) if encapsulated => Some(esp),
        _ => None,
    }
}

/// Returns the opened headers together with the TCP header, if that is complete.
fn visible_tcp<'a>(view: &View<'a>) -> Option<(Headers<'a>, tcp::Header<'a>)> {
    let headers = view
        .headers()
        .filter(|headers| headers.flow.protocol == tcp::PROTOCOL)?;
    Some((headers, tcp::Header::parse(headers.transport)?))
}

/// Returns the window to write into a segment, if it has to be lowered.
fn regulate(
    limiter: &mut WindowLimiter,
    segment: &Segment<'_>,
    now: Instant,
    counters: &mut TransitCounters,
) -> Option<u16> {
    let before = limiter.unscaled();
    let window = limiter.handle_segment(segment, now);
    counters.unscaled += limiter.unscaled() - before;
    window
}

/// Returns a copy of an IP packet with an overlay appended. The last `esp_len` octets are the ESP
/// packet.
fn written(packet: &[u8], esp_len: usize, overlay: &Overlay) -> Option<Vec<u8>> {
    let mut written = packet.to_vec();
    let start = packet.len().checked_sub(esp_len)?;
    mark(&mut written[start..], true);
    let mut octets = Vec::new();
    overlay.append(&mut octets);
    trailer::append(&mut written, &octets).then_some(written)
}

/// Increments a counter and returns [`Verdict::Forward`].
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

/// Returns the error code for a gateway whose grant cannot be used.
const fn refusal_code(why: Unusable) -> RefusalCode {
    match why {
        Unusable::Crowded => RefusalCode::TOO_MANY_GRANTS,
        Unusable::KeyLength
        | Unusable::NoAead
        | Unusable::Zones
        | Unusable::NoDesignatedZone
        | Unusable::Mode
        | Unusable::Spi => RefusalCode::INVALID_GRANT,
    }
}
