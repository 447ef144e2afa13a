//! Zones, licences, and the agreement of both ends about them (DESIGN sections 1 and 3).

use crate::{Identity, LevelGrant, Mode, ZoneSuite};
use std::fmt;
use std::str::FromStr;

/// Serial of a zone: 1 is the designated (header) zone, the highest agreed serial the payload zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ZoneId(pub u8);

impl ZoneId {
    /// The designated zone, which a licensed node needs first.
    pub const DESIGNATED: Self = Self(1);
}

impl fmt::Display for ZoneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Selects the octets of a datagram for a zone. If several zones select an octet, the first one
/// gets it. Octets that `classify` reports as opaque always go to the payload zone.
///
/// Written as in a configuration file: `ip`, `transport`, `headers`, `octets 0-27`,
/// `rtp 16384-32767`, `payload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ZoneSelector {
    /// The IP header.
    Ip,
    /// The transport header without options that carry secrets.
    Transport,
    /// Both headers, or the only one present: the zone that SNOOP needs.
    IpTransport,
    /// Octets of both headers at these offsets. Offset 0 is the first sealed octet; in transport
    /// and BEET mode, that is the front of the transport header.
    Octets(Span),
    /// The RTP header (RFC 3550 section 5.1) of UDP packets with both ports in this range.
    Rtp(Span),
    /// Everything that no other zone selects; always the payload zone, and no other.
    Rest,
}

impl ZoneSelector {
    /// Returns true if the zone contains the first octet that a mode seals. All other zones are
    /// located from the first one.
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

/// A range of numbers that includes its end: `16384-32767`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    first: u16,
    last: u16,
}

impl Span {
    /// Returns `None` if `last` is below `first`.
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if last < first {
            return None;
        }
        Some(Self { first, last })
    }

    /// Returns the first number.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// Returns the last number.
    pub const fn last(self) -> u16 {
        self.last
    }

    /// Returns true if the range contains `number`.
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

/// The text is not a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownZone;

/// One agreed zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone {
    /// Serial of the zone.
    pub id: ZoneId,
    /// Octets that the zone selects.
    pub selector: ZoneSelector,
    /// Cipher suite of the zone.
    pub suite: ZoneSuite,
}

/// Consecutive octets of a datagram in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Zone of the octets.
    pub zone: ZoneId,
    /// Number of octets, at least 1.
    pub len: u16,
}

/// Place of the zone map: in each packet, or fixed in the SA.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum MapKind {
    /// Carried by each packet (CZML-IPSec).
    #[default]
    Changeable,
    /// Fixed (MML-IPsec). Packets carry no map: all have these runs, the payload zone holds the
    /// rest, and the transport checksum is left out. Datagrams with other runs use the companion SA
    /// of [`ZoneAgreement::opaque`].
    Fixed(Vec<Run>),
}

impl MapKind {
    /// Returns true if packets do not carry the map.
    pub const fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }
}

/// The access that a licence permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Right {
    /// The node may read the zone.
    Read = 1,
    /// The node may read the zone, and lower the window of TCP segments with an overlay. The right
    /// itself defines the writable field, so there is no mask to negotiate.
    Write = 2,
    /// The node may read the zone, and repeat the latest acknowledgement of one end of a TCP
    /// connection to the other end. The repeated segment has no payload, and the same window or a
    /// smaller one.
    Inject = 3,
}

impl Right {
    /// Returns the name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Inject => "inject",
        }
    }

    /// Returns the fields that the right may change.
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Read | Self::Inject => &[],
            Self::Write => &["window"],
        }
    }
}

/// Permission for one node to use one right on one zone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Licence {
    /// Authenticated identity of the node.
    pub node: Identity,
    /// Licensed zone.
    pub zone: ZoneId,
    /// Access that the node gets.
    pub right: Right,
}

/// The agreement of both endpoints about the zones of a composite SA. It enters the key derivation,
/// so endpoints that disagree share no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneAgreement {
    /// Zones in ascending serial, from 1 without gaps. The last is the payload zone.
    pub zones: Vec<Zone>,
    /// Place of the zone map.
    pub map: MapKind,
    /// Replay window of both endpoints in packets, 4096 to 65536.
    pub window: u32,
    /// Licences that both ends accepted, sorted and without duplicates.
    pub licences: Vec<Licence>,
    /// Datagrams that may be sent unencrypted, if any.
    pub level: Option<LevelGrant>,
}

impl ZoneAgreement {
    /// Returns the serial of the payload zone.
    pub fn payload_zone(&self) -> ZoneId {
        ZoneId(self.zones.len() as u8)
    }

    /// Returns the runs of a fixed map as text: `52 headers`. Empty if each packet carries its map.
    pub fn fixed_runs(&self) -> Vec<String> {
        let name = |zone| self.zones.iter().find(|agreed| agreed.id == zone);
        let written = |run: &Run| Some(format!("{} {}", run.len, name(run.zone)?.selector));
        match &self.map {
            MapKind::Changeable => Vec::new(),
            MapKind::Fixed(runs) => runs.iter().filter_map(written).collect(),
        }
    }

    /// Returns the agreement of the opaque companion SA, for datagrams whose runs differ from a
    /// fixed map. It has one zone, with the suite of the payload zone, and no licences. `None` for
    /// a changeable map, which can mark a packet as opaque itself.
    pub fn opaque(&self) -> Option<Self> {
        let payload = self.zones.last()?;
        self.map.is_fixed().then(|| self.beside(payload.suite))
    }

    /// Returns the agreement of the companion SA for unencrypted datagrams, if any are allowed.
    /// Every node on the path can read its packets.
    pub fn integrity(&self) -> Option<Self> {
        self.level.map(|_| self.beside(ZoneSuite::Aes256Gmac))
    }

    /// Returns the agreement of a companion SA with one zone.
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

    /// Returns true if a licence permits this right.
    pub fn has(&self, right: Right) -> bool {
        let mut licences = self.licences.iter();
        licences.any(|licence| licence.right == right)
    }

    /// Returns true if a licence for this zone may permit this right. The fields that nodes write
    /// or repeat are in the TCP header, so write and inject need the designated zone, with both
    /// headers in it. They also need a changeable map: a packet's own map shows that it has a TCP
    /// header.
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

    /// Returns an agreement with a header zone and a payload zone.
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
