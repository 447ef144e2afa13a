//! Zones, licences and what both ends agreed about them (DESIGN sections 1 and 3).

use crate::{Identity, LevelGrant, Mode, ZoneSuite};
use std::fmt;
use std::str::FromStr;

/// Serial of a zone: 1 is the designated (header) zone, the highest agreed one the payload zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ZoneId(pub u8);

impl ZoneId {
    /// The designated zone: what a licensed node needs first.
    pub const DESIGNATED: Self = Self(1);
}

impl fmt::Display for ZoneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Which octets of a datagram a zone asks for. Of several zones that ask for an octet, the first gets
/// it. What `classify` calls opaque goes to the payload zone whatever the selector says.
///
/// Written as a person writes it: `ip`, `transport`, `headers`, `octets 0-27`, `rtp 16384-32767`,
/// `payload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ZoneSelector {
    /// The IP header.
    Ip,
    /// The transport header without secret options.
    Transport,
    /// Both headers, or the one that there is: what SNOOP needs.
    IpTransport,
    /// Of both headers the octets at these places, counted from 0 at the front of what is sealed: in
    /// transport and BEET mode that is the transport header.
    Octets(Span),
    /// The RTP header (RFC 3550 section 5.1) of UDP packets both of whose ports are among these.
    Rtp(Span),
    /// Everything no other zone asks for; always and only the payload zone.
    Rest,
}

impl ZoneSelector {
    /// Whether it asks for the first octet of what a mode seals: by the first zone all others are found.
    pub const fn begins(self, mode: Mode) -> bool {
        match self {
            Self::Ip => matches!(mode, Mode::Tunnel),
            Self::Transport => !matches!(mode, Mode::Tunnel),
            Self::IpTransport => true,
            Self::Octets(places) => places.contains(0),
            Self::Rtp(_) | Self::Rest => false,
        }
    }
}

impl fmt::Display for ZoneSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip => f.write_str("ip"),
            Self::Transport => f.write_str("transport"),
            Self::IpTransport => f.write_str("headers"),
            Self::Octets(places) => write!(f, "octets {places}"),
            Self::Rtp(ports) => write!(f, "rtp {ports}"),
            Self::Rest => f.write_str("payload"),
        }
    }
}

impl FromStr for ZoneSelector {
    type Err = UnknownZone;

    fn from_str(text: &str) -> Result<Self, UnknownZone> {
        match text.split_once(' ') {
            None if text == "ip" => Ok(Self::Ip),
            None if text == "transport" => Ok(Self::Transport),
            None if text == "headers" => Ok(Self::IpTransport),
            None if text == "payload" => Ok(Self::Rest),
            Some(("octets", places)) => places.parse().map(Self::Octets),
            Some(("rtp", ports)) => ports.parse().map(Self::Rtp),
            _ => Err(UnknownZone),
        }
    }
}

/// Numbers in a row, the last one included: `16384-32767`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    first: u16,
    last: u16,
}

impl Span {
    /// `None` if the last comes before the first.
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if last < first {
            return None;
        }
        Some(Self { first, last })
    }

    /// The first one.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The last one.
    pub const fn last(self) -> u16 {
        self.last
    }

    /// Whether it is among them.
    pub const fn contains(self, number: u16) -> bool {
        self.first <= number && number <= self.last
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl FromStr for Span {
    type Err = UnknownZone;

    fn from_str(text: &str) -> Result<Self, UnknownZone> {
        let number = |text: &str| match text.bytes().all(|octet| octet.is_ascii_digit()) {
            true => text.parse().map_err(|_| UnknownZone),
            false => Err(UnknownZone),
        };
        let (first, last) = text.split_once('-').ok_or(UnknownZone)?;
        Self::new(number(first)?, number(last)?).ok_or(UnknownZone)
    }
}

/// The text names no zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownZone;

/// One agreed zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone {
    /// Its serial.
    pub id: ZoneId,
    /// The octets it asks for.
    pub selector: ZoneSelector,
    /// How it is protected.
    pub suite: ZoneSuite,
}

/// Octets of a datagram in a row that are in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The zone.
    pub zone: ZoneId,
    /// How many octets, at least 1.
    pub len: u16,
}

/// Whether the zone map is carried by each packet or fixed in the SA.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum MapKind {
    /// Carried by each packet (CZML-IPSec).
    #[default]
    Changeable,
    /// The same for all packets, which do not carry it (MML-IPsec): these runs, and the rest in the payload
    /// zone; the transport checksum is left out. Datagrams with other runs go on the SA beside, see
    /// [`ZoneAgreement::opaque`].
    Fixed(Vec<Run>),
}

impl MapKind {
    /// Whether packets do not carry it.
    pub const fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }
}

/// What a licence allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Right {
    /// See the zone's octets.
    Read = 1,
    /// See them, and lower the window of TCP segments by an overlay. The one field that may be written
    /// is the right's own: there is no mask to agree on.
    Write = 2,
    /// See them, and say once more to one end of a TCP connection what the other one has said last, with its
    /// window or a smaller one: an acknowledgement that carries nothing.
    Inject = 3,
}

impl Right {
    /// How people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Inject => "inject",
        }
    }

    /// The fields that it may change.
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Read | Self::Inject => &[],
            Self::Write => &["window"],
        }
    }
}

/// The permission for one node to do one thing with one zone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Licence {
    /// The node's authenticated identity.
    pub node: Identity,
    /// The zone.
    pub zone: ZoneId,
    /// What it may do.
    pub right: Right,
}

/// Everything both endpoints agreed about the zones of a composite SA. It enters the key
/// derivation, so two ends that disagree share no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneAgreement {
    /// The zones in ascending serial from 1 without gaps; the last is the payload zone.
    pub zones: Vec<Zone>,
    /// Where the map is.
    pub map: MapKind,
    /// Replay window of both endpoints in packets, 4096 to 65536.
    pub window: u32,
    /// Licences both ends accepted, sorted and without duplicates.
    pub licences: Vec<Licence>,
    /// What may go without encryption, if anything.
    pub level: Option<LevelGrant>,
}

impl ZoneAgreement {
    /// The payload zone's serial.
    pub fn payload_zone(&self) -> ZoneId {
        ZoneId(self.zones.len() as u8)
    }

    /// The runs of a fixed map as a person writes them: `52 headers`. Empty where each packet has its own.
    pub fn fixed_runs(&self) -> Vec<String> {
        let name = |zone| self.zones.iter().find(|agreed| agreed.id == zone);
        let written = |run: &Run| Some(format!("{} {}", run.len, name(run.zone)?.selector));
        match &self.map {
            MapKind::Changeable => Vec::new(),
            MapKind::Fixed(runs) => runs.iter().filter_map(written).collect(),
        }
    }

    /// That of the opaque SA beside one with a fixed map, for datagrams whose runs are others: one zone,
    /// protected as the payload zone is, and no licence. `None` beside a changeable map, which can say
    /// itself that a packet is opaque.
    pub fn opaque(&self) -> Option<Self> {
        let payload = self.zones.last()?;
        self.map.is_fixed().then(|| self.beside(payload.suite))
    }

    /// That of the SA beside for what goes without encryption, if anything may: everybody reads it,
    /// whatever the zones are.
    pub fn integrity(&self) -> Option<Self> {
        self.level.map(|_| self.beside(ZoneSuite::Aes256Gmac))
    }

    /// That of an SA of one zone beside this one.
    fn beside(&self, suite: ZoneSuite) -> Self {
        Self {
            zones: vec![Zone {
                id: ZoneId::DESIGNATED,
                selector: ZoneSelector::Rest,
                suite,
            }],
            map: MapKind::Fixed(Vec::new()),
            window: self.window,
            licences: Vec::new(),
            level: None,
        }
    }

    /// Whether anybody has a right.
    pub fn has(&self, right: Right) -> bool {
        let mut licences = self.licences.iter();
        licences.any(|licence| licence.right == right)
    }

    /// Whether a right may be given to a zone: what may be written or said again is in the TCP header, and in
    /// the runs of the designated zone whatever the datagram is. That it was is told by the map that packets
    /// carry.
    pub fn may_have(&self, zone: ZoneId, right: Right) -> bool {
        let agreed = self.zones.iter().find(|agreed| agreed.id == zone);
        agreed.is_some_and(|agreed| match right {
            Right::Read => true,
            Right::Write | Right::Inject => {
                let headers = agreed.selector == ZoneSelector::IpTransport;
                zone == ZoneId::DESIGNATED && headers && !self.map.is_fixed()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_selector_is_read_as_it_is_written() {
        for text in [
            "ip",
            "transport",
            "headers",
            "octets 0-27",
            "rtp 16384-32767",
            "rtp 5004-5004",
            "payload",
        ] {
            let selector: ZoneSelector = text.parse().unwrap();
            assert_eq!(selector.to_string(), text);
        }
    }

    #[test]
    fn a_mode_begins_with_the_first_header_that_it_seals() {
        let begins = |text: &str| {
            let selector: ZoneSelector = text.parse().unwrap();
            Mode::ALL.map(|mode| selector.begins(mode))
        };
        for (text, [tunnel, other]) in [
            ("ip", [true, false]),
            ("transport", [false, true]),
            ("headers", [true, true]),
            ("octets 0-3", [true, true]),
            ("octets 1-3", [false, false]),
            ("rtp 5004-5005", [false, false]),
            ("payload", [false, false]),
        ] {
            assert_eq!(begins(text), [tunnel, other, other], "{text}");
        }
    }

    /// Headers, and the rest.
    fn agreement(map: MapKind) -> ZoneAgreement {
        let zone = |id, selector| Zone {
            id: ZoneId(id),
            selector,
            suite: ZoneSuite::Aes256Gmac,
        };
        ZoneAgreement {
            zones: vec![
                zone(1, ZoneSelector::IpTransport),
                zone(2, ZoneSelector::Rest),
            ],
            map,
            window: 4096,
            licences: Vec::new(),
            level: None,
        }
    }

    fn fixed() -> MapKind {
        let run = |zone, len| Run {
            zone: ZoneId(zone),
            len,
        };
        MapKind::Fixed(vec![run(1, 52), run(2, 8)])
    }

    #[test]
    fn a_fixed_map_is_shown_with_the_selectors_of_its_zones() {
        assert_eq!(agreement(fixed()).fixed_runs(), ["52 headers", "8 payload"]);
        assert!(agreement(MapKind::Changeable).fixed_runs().is_empty());
    }

    #[test]
    fn a_node_may_change_only_headers_whose_packets_carry_their_map() {
        let may_have = |agreed: ZoneAgreement, zone| {
            [Right::Read, Right::Write, Right::Inject]
                .map(|right| agreed.may_have(ZoneId(zone), right))
        };
        let changeable = || agreement(MapKind::Changeable);
        assert_eq!(may_have(changeable(), 1), [true; 3]);
        assert_eq!(may_have(changeable(), 2), [true, false, false]);
        assert_eq!(
            may_have(changeable(), 3),
            [false; 3],
            "there is no such zone"
        );
        assert_eq!(may_have(agreement(fixed()), 1), [true, false, false]);
        let mut without_tcp = changeable();
        without_tcp.zones[0].selector = ZoneSelector::Ip;
        assert_eq!(may_have(without_tcp, 1), [true, false, false]);
    }

    #[test]
    fn what_names_no_zone_is_refused() {
        for text in [
            "",
            "IP",
            "ip ",
            "octets",
            "octets 27",
            "octets 27-0",
            "octets +1-2",
            "octets -1",
            "octets 0-65536",
            "rtp 1-2-3",
            "payload 0-1",
        ] {
            assert_eq!(text.parse::<ZoneSelector>(), Err(UnknownZone), "{text}");
        }
    }
}
