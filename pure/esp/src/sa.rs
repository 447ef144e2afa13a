//! One child SA in service: its opening and sealing directions, and its companion SAs.

use crate::claims::Claims;
use crate::drop::DropReason;
use crate::inbound::Inbound;
use crate::key::Unusable;
use crate::lane::Lane;
use crate::level::{self, Opening};
use crate::order::Turn;
use crate::outbound::Outbound;
use crate::pace::Pace;
use crate::packet::Packet;
use crate::pair::Pair;
use crate::policy::Protected;
use crate::prefetch::prefetch;
use crate::report::{Report, SaTraffic};
use crate::room::PathMtu;
use crate::source::Source;
use crypto::Secret;
use model::{
    Allowance, ChildSa, ChildSaId, Dscp, Instant, Mode, Path, PeerId, Sizes, Spi, ZoneAgreement,
};
use std::time::Duration;
use wire::esp::Header;
use wire::probe::{Kind, Probe};

/// Reports about one kind of probes or answers in a second: more than a search or a ping sends.
const MOST_PROBES: u8 = 8;

/// One child SA.
pub(crate) struct Sa {
    pub(crate) id: ChildSaId,
    pub(crate) peer: PeerId,
    pub(crate) path: Path,
    pub(crate) dscp: Dscp,
    pub(crate) carries: Protected,
    /// The peer's claims, if other peers contest them.
    pub(crate) claims: Option<Claims>,
    /// Set for one of several SAs for the same traffic.
    pub(crate) lane: Option<Lane>,
    /// The addresses of the header that is not sent, outside tunnel mode.
    pub(crate) pair: Option<Pair>,
    /// True in transport mode: the pair is that of the outer addresses.
    pub(crate) outside: bool,
    /// True if the peer accepts padding behind datagrams.
    pub(crate) takes_padding: bool,
    /// The packets that it may carry without encryption; `None` if it encrypts.
    allowance: Option<Allowance>,
    pub(crate) inbound: Inbound,
    /// The opening direction of the opaque companion SA.
    pub(crate) opaque: Option<Box<Inbound>>,
    /// The opening direction of the companion SA for unencrypted packets.
    pub(crate) integrity: Option<Box<Opening>>,
    pub(crate) outbound: Outbound,
    /// True until the first packet has arrived, which is reported, or the SA is used for sending.
    pub(crate) unconfirmed: bool,
    /// True if nothing was sealed since the last call of [`Worker::cover`](crate::Worker::cover).
    pub(crate) silent: bool,
    /// True if the next datagram that is sealed is reported.
    pub(crate) watched: bool,
    /// Times of the first and the last datagram sealed since a packet arrived.
    pub(crate) unanswered: Option<[Instant; 2]>,
    /// Length of the longest datagram among these.
    pub(crate) longest_unanswered: usize,
    /// Source of the newest packet.
    pub(crate) source: Source,
    /// Samples of its counters.
    pub(crate) pace: Pace,
    /// Begin of a second and number of reports in it, about each kind of probes and answers.
    pub(crate) probed: [(Instant, u8); 4],
    /// Number of the peer's last probe, as far as it gave notice.
    pub(crate) noticed: Noticed,
    /// True until a packet arrives with ECN fields that do not fit, which is reported once.
    pub(crate) fits: bool,
    /// Its turn among the SAs eligible for sending.
    pub(crate) turn: Option<Turn>,
}

/// The SPI and the number of a probe of which the peer gave notice.
#[derive(Clone, Copy, Default)]
pub(crate) struct Noticed(Option<(Spi, u64)>);

impl Noticed {
    /// Returns true if the probe is among the packets that a packet with this number has overtaken:
    /// the highest number received has grown by `advance`.
    pub(crate) fn passes(&mut self, spi: Spi, number: u64, advance: u64) -> bool {
        let overtaken = number.saturating_sub(advance) + 1..number;
        let passed = self
            .0
            .is_some_and(|probe| probe.0 == spi && overtaken.contains(&probe.1));
        self.0.take_if(|_| passed);
        passed
    }
}

/// The state of one SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaStatus {
    /// The id of the SA.
    pub id: ChildSaId,
    /// The SPI of inbound packets.
    pub inbound: Spi,
    /// The SPI of outbound packets.
    pub outbound: Spi,
    /// The path of outbound packets.
    pub path: Path,
    /// Highest sequence number received, 0 before the first.
    pub highest_received: u64,
    /// Last sequence number sent, 0 before the first.
    pub last_sent: u64,
    /// The time of the last new authentic packet.
    pub last_inbound: Option<Instant>,
    /// The traffic of the SA.
    pub traffic: SaTraffic,
}

impl Sa {
    /// Prefetch functions per direction: first for the parts of an SA, then for the data behind
    /// their pointers.
    pub(crate) const SEALING: [fn(&Self); 2] = [
        |sa| {
            prefetch(&sa.carries);
            prefetch(&sa.path);
            prefetch(&sa.outbound);
            sa.inbound.prefetch_spi();
        },
        |sa| {
            sa.carries.prefetch();
            sa.outbound.cipher.prefetch();
        },
    ];
    pub(crate) const OPENING: [fn(&Self); 2] = [prefetch, |sa| {
        sa.carries.prefetch();
        sa.inbound.prefetch();
    }];

    /// Creates an SA for receiving only.
    pub(crate) fn new(sa: ChildSa<Secret>, dscp: Dscp) -> Result<Self, Unusable> {
        let pair = Pair::from_sa(&sa)?;
        let (opaque, opaque_outbound) = opaque(&sa, pair)?.unzip();
        let (integrity, integrity_outbound) = level::beside(&sa, pair)?.unzip();
        let outbound = Outbound::new(&sa.outbound, sa.agreement.as_ref())?;
        Ok(Self {
            pair,
            outside: sa.mode == Mode::Transport,
            id: sa.id,
            path: sa.path,
            takes_padding: sa.takes_padding,
            lane: Lane::from_sa(&sa),
            allowance: sa.allowance,
            dscp,
            peer: sa.peer,
            inbound: Inbound::new(&sa.inbound, sa.agreement.as_ref())?,
            opaque: opaque.map(Box::new),
            integrity: integrity.map(Box::new),
            outbound: outbound
                .between(pair)
                .with(opaque_outbound, integrity_outbound),
            carries: Protected {
                local: sa.local.into(),
                remote: sa.remote.into(),
            },
            claims: None,
            unconfirmed: true,
            silent: true,
            watched: false,
            unanswered: None,
            longest_unanswered: 0,
            source: Source::default(),
            pace: Pace::default(),
            probed: [(Instant::ZERO, 0); 4],
            noticed: Noticed::default(),
            fits: true,
            turn: None,
        })
    }

    /// Checks that a packet in transport mode came between the addresses of the SA, which are its
    /// selectors.
    pub(crate) fn came_between(&self, packet: &Packet) -> Result<(), DropReason> {
        let came = packet.path.filter(|_| self.outside).map(Pair::from);
        match came.is_none() || came == self.pair {
            true => Ok(()),
            false => Err(DropReason::InnerSelectorMismatch),
        }
    }

    /// Sends to another path, and in transport mode carries the same traffic between its addresses.
    /// Returns what the SA carried before, if that changes.
    pub(crate) fn take_path(&mut self, path: Path) -> Option<Protected> {
        self.path = path;
        self.source = Source::default();
        self.outbound.give_room(PathMtu::Any, path);
        let pair = Pair::from(path);
        let moved = pair.between(&self.carries).filter(|_| self.outside)?;
        self.pair = Some(pair);
        Some(std::mem::replace(&mut self.carries, moved))
    }

    /// Sets the padding sizes of datagrams, if possible: only a complete datagram contains its own
    /// length, and only a peer that accepts padding removes it (RFC 4303 section 2.7).
    pub(crate) fn look_like(&mut self, sizes: Option<Sizes>) -> Option<Report> {
        let sizes = sizes.filter(|_| self.pair.is_none());
        self.outbound.sizes = sizes.filter(|_| self.takes_padding);
        (sizes != self.outbound.sizes).then_some(Report::Unpadded(self.id))
    }

    /// Returns the opening directions of the companion SAs.
    pub(crate) fn besides(&self) -> impl Iterator<Item = &Inbound> {
        let integrity = self.integrity.iter().map(|beside| &beside.inbound);
        self.opaque.iter().map(Box::as_ref).chain(integrity)
    }

    /// Returns the opening direction with an SPI of ours.
    pub(crate) fn opening(&mut self, spi: Spi) -> &mut Inbound {
        let integrity = self.integrity.as_mut().map(|beside| &mut beside.inbound);
        let mut besides = self.opaque.as_deref_mut().into_iter().chain(integrity);
        let beside = besides.find(|beside| beside.spi() == spi);
        beside.unwrap_or(&mut self.inbound)
    }

    /// Checks an authentic packet against the grant for unencrypted packets. All encrypted packets
    /// pass.
    pub(crate) fn admit(
        &mut self,
        header: Header,
        packet: &Packet,
        now: Instant,
    ) -> Result<(), DropReason> {
        match &mut self.integrity {
            Some(beside) if beside.inbound.spi() == header.spi => {
                beside.admit(header.seq, packet.octets(), now)?;
                beside.inbound.traffic.count(packet.len());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts a datagram that is sealed or delivered without encryption. Returns a report about the
    /// one from which on only a tenth of them is left.
    pub(crate) fn spend(&self) -> Result<Option<Report>, DropReason> {
        let Some(allowance) = &self.allowance else {
            return Ok(None);
        };
        let left = allowance.spend().ok_or(DropReason::ClearSpent)?;
        Ok((left == allowance.notice()).then_some(Report::ClearLow(self.peer)))
    }

    /// Notes the payload of a dummy packet that arrived with this SPI. Returns a report if it is a
    /// probe, a ping or the answer to one, at most [`MOST_PROBES`] of each kind in a second.
    pub(crate) fn note_dummy(&mut self, spi: Spi, payload: &[u8], now: Instant) -> Option<Report> {
        let probe = Probe::read(payload)?;
        let kind = match probe.kind {
            Kind::Notice => {
                self.noticed = Noticed(Some((spi, probe.number)));
                return None;
            }
            Kind::Probe => 0,
            Kind::Echo => 1,
            Kind::Ping => 2,
            Kind::Answer => 3,
        };
        let (begin, count) = &mut self.probed[kind];
        if now >= *begin + Duration::from_secs(1) {
            (*begin, *count) = (now, 0);
        }
        *count = (*count + 1).min(MOST_PROBES + 1);
        if *count > MOST_PROBES {
            return None;
        }
        Some(Report::Probe(self.id, probe))
    }

    /// Returns the time of the last new authentic packet, on this SA or a companion SA.
    pub(crate) fn heard(&self) -> Option<Instant> {
        let besides = self.besides().filter_map(|beside| beside.heard());
        self.inbound.heard().max(besides.max())
    }

    /// Samples the counters from time to time. Call before a packet is counted.
    pub(crate) fn keep_pace(&mut self, now: Instant) {
        if self.pace.is_due(now) {
            self.pace.sample(self.traffic(), now);
        }
    }

    pub(crate) fn traffic(&self) -> SaTraffic {
        SaTraffic {
            sealed: self.outbound.traffic,
            opened: self.inbound.traffic,
        }
    }

    pub(crate) fn status(&self) -> SaStatus {
        SaStatus {
            id: self.id,
            inbound: self.inbound.spi(),
            outbound: self.outbound.spi(),
            path: self.path,
            highest_received: self.inbound.highest(),
            last_sent: self.outbound.used(),
            last_inbound: self.heard(),
            traffic: self.traffic(),
        }
    }
}

/// Builds both directions of the opaque companion SA. There is one if and only if the map is fixed.
fn opaque(
    sa: &ChildSa<Secret>,
    pair: Option<Pair>,
) -> Result<Option<(Inbound, Outbound)>, Unusable> {
    let agreement = sa.agreement.as_ref().and_then(ZoneAgreement::opaque);
    match (&sa.opaque, &agreement) {
        (None, None) => Ok(None),
        (Some(opaque), Some(_)) => Ok(Some((
            Inbound::new(&opaque.inbound, agreement.as_ref())?,
            Outbound::new(&opaque.outbound, agreement.as_ref())?.between(pair),
        ))),
        _ => Err(Unusable::Zones),
    }
}
