//! Protection levels of packets in a composite SA: zoned, opaque or unencrypted (DESIGN section 3,
//! "dynamic levels").

use crate::Span;
use std::fmt;
use std::str::FromStr;

/// Protection of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Divided into the agreed zones.
    #[default]
    Zoned,
    /// All in the payload zone: no node on the path can read anything.
    Opaque,
    /// Not encrypted, but authenticated: every node on the path can read it, and none can modify
    /// it.
    Integrity,
}

impl Level {
    /// All levels, the default first.
    pub const ALL: [Self; 3] = [Self::Zoned, Self::Opaque, Self::Integrity];

    /// Returns the name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zoned => "zoned",
            Self::Opaque => "opaque",
            Self::Integrity => "integrity",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The operator's choice among the agreed levels. It allows nothing weaker than the grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Packets covered by the grant are sent unencrypted, except for one in [`LevelChoice::every`].
    /// All others are zoned, or opaque while the link is good enough that no node on the path has
    /// to help.
    #[default]
    Auto,
    /// All packets have this level. Packets that may not have it are zoned.
    Only(Level),
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Only(level) => level.fmt(f),
        }
    }
}

impl FromStr for Signal {
    type Err = UnknownSignal;

    fn from_str(text: &str) -> Result<Self, UnknownSignal> {
        let mut levels = Level::ALL.into_iter();
        match levels.find(|level| level.name() == text) {
            Some(level) => Ok(Self::Only(level)),
            None if text == "auto" => Ok(Self::Auto),
            None => Err(UnknownSignal),
        }
    }
}

/// A sender's choice among the agreed levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelChoice {
    /// The operator's choice.
    pub signal: Signal,
    /// Of the datagrams that may be sent unencrypted, one in `every` is encrypted all the same.
    /// With 0 none is, with 1 all are.
    pub every: u32,
    /// Loss on the inbound link, in ten-thousandths, below which packets are opaque. With 0 they
    /// never are.
    pub opaque_below: u16,
}

/// The text is not a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownSignal;

/// A set of MPEG picture types, numbered as in RFC 2250 section 3.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pictures(u8);

impl Pictures {
    /// Letter and number of each type.
    const TYPES: [(char, u8); 4] = [('I', 1), ('P', 2), ('B', 3), ('D', 4)];

    /// Builds a set from a mask with one bit for each type number. Returns `None` for an unknown
    /// type or an empty set.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits != 0 && bits & !0b1_1110 == 0 {
            true => Some(Self(bits)),
            false => None,
        }
    }

    /// Returns the mask, with one bit for each type number.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Parses a set from the letters of its types. Returns `None` for an unknown or repeated
    /// letter, or none at all.
    pub fn from_letters(letters: &str) -> Option<Self> {
        let bit = |letter| {
            let mut types = Self::TYPES.into_iter();
            types.find_map(|(known, number)| (known == letter).then_some(1 << number))
        };
        let add = |bits: u8, letter| {
            bit(letter)
                .filter(|bit| bits & bit == 0)
                .map(|bit| bits | bit)
        };
        Self::from_bits(letters.chars().try_fold(0, add)?)
    }

    /// Returns true if the type of this number is in the set.
    pub const fn contains(self, number: u8) -> bool {
        number < 8 && self.0 & 1 << number != 0
    }
}

impl fmt::Display for Pictures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut types = Self::TYPES.into_iter();
        types.try_for_each(|(letter, number)| match self.contains(number) {
            true => write!(f, "{letter}"),
            false => Ok(()),
        })
    }
}

/// A class of datagrams. A datagram has to match every condition that is set. A class without
/// conditions matches every readable datagram, and no grant may use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Class {
    /// IP protocol.
    pub protocol: Option<u8>,
    /// Range that contains the source or destination port.
    pub ports: Option<Span>,
    /// DSCP of the datagram.
    pub dscp: Option<u8>,
    /// The datagram is RTP with this marker bit (RFC 3550 section 5.1).
    pub marker: Option<bool>,
    /// The datagram is MPEG video in RTP, of a picture of these types (RFC 2250 section 3.4).
    pub pictures: Option<Pictures>,
}

impl Class {
    /// Returns true if a grant may use the class. Conditions on the content of UDP require `ports`,
    /// because RTP is recognised only on configured ports.
    pub fn is_named(&self) -> bool {
        let outside = self.protocol.is_some() || self.dscp.is_some();
        let inside = self.marker.is_some() || self.pictures.is_some();
        self.ports.is_some() || outside && !inside
    }
}

/// Written as `protocol 17, ports 5004-5005, DSCP 34`.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = self.protocol.map(|protocol| format!("protocol {protocol}"));
        let ports = self.ports.map(|ports| format!("ports {ports}"));
        let dscp = self.dscp.map(|dscp| format!("DSCP {dscp}"));
        let marker = self.marker.map(|marker| match marker {
            true => "RTP with marker".to_owned(),
            false => "RTP without marker".to_owned(),
        });
        let pictures = self.pictures.map(|types| format!("MPEG pictures {types}"));
        let named = [protocol, ports, dscp, marker, pictures];
        let named: Vec<_> = named.into_iter().flatten().collect();
        f.write_str(&named.join(", "))
    }
}

/// Datagrams that both ends of a composite SA allow to send unencrypted, in each direction. The
/// grant enters the key derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LevelGrant {
    /// Datagrams that the grant covers.
    pub class: Class,
    /// Most packets, from 1. It is also the highest sequence number that the receiver accepts.
    pub packets: u32,
    /// Most seconds from the first unencrypted packet on, from 1.
    pub seconds: u32,
    /// Number of rekeys that renew packets and seconds. With 0, a rekey ends the grant.
    pub renewals: u16,
}

impl LevelGrant {
    /// Returns the smaller limits of two grants, or `None` if their classes differ.
    pub fn narrowed(&self, other: &Self) -> Option<Self> {
        (self.class == other.class).then(|| Self {
            class: self.class,
            packets: self.packets.min(other.packets),
            seconds: self.seconds.min(other.seconds),
            renewals: self.renewals.min(other.renewals),
        })
    }

    /// Returns true if this grant allows nothing beyond `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        self.narrowed(other) == Some(*self)
    }

    /// Returns the grant after a rekey, or `None` if no renewals are left.
    pub fn renewed(&self) -> Option<Self> {
        let renewals = self.renewals.checked_sub(1)?;
        Some(Self { renewals, ..*self })
    }
}

/// Written as `ports 5004-5005: 1000 packets, 60 s, renewed 3 times`.
impl fmt::Display for LevelGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (packets, seconds) = (self.packets, self.seconds);
        write!(f, "{}: {packets} packets, {seconds} s", self.class)?;
        match self.renewals {
            0 => Ok(()),
            1 => f.write_str(", renewed once"),
            times => write!(f, ", renewed {times} times"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANT: LevelGrant = LevelGrant {
        class: Class {
            protocol: None,
            ports: Span::new(5004, 5005),
            dscp: Some(34),
            marker: None,
            pictures: None,
        },
        packets: 1000,
        seconds: 60,
        renewals: 2,
    };

    #[test]
    fn every_signal_is_read_as_it_is_written() {
        for text in ["auto", "zoned", "opaque", "integrity"] {
            assert_eq!(text.parse::<Signal>().unwrap().to_string(), text);
        }
        for text in ["", "Auto", "plain", "none"] {
            assert_eq!(text.parse::<Signal>(), Err(UnknownSignal));
        }
    }

    #[test]
    fn pictures_have_letters() {
        let types = Pictures::from_letters("BP").unwrap();
        assert_eq!((types.to_string().as_str(), types.bits()), ("PB", 0b1100));
        assert!(types.contains(2) && types.contains(3) && !types.contains(1));
        for letters in ["", "X", "PP", "p", "P "] {
            assert_eq!(Pictures::from_letters(letters), None, "{letters}");
        }
        let known = (0..=u8::MAX).filter_map(Pictures::from_bits);
        assert_eq!(known.count(), 15);
    }

    #[test]
    fn of_two_grants_the_smaller_numbers_are_left_and_of_different_classes_nothing() {
        let more = LevelGrant {
            packets: 2000,
            seconds: 30,
            renewals: 0,
            ..GRANT
        };
        let both = LevelGrant {
            packets: 1000,
            ..more
        };
        assert_eq!(GRANT.narrowed(&more), Some(both));
        assert!(both.is_within(&GRANT) && both.is_within(&more));
        assert!(!more.is_within(&GRANT) && !GRANT.is_within(&more));
        let mut wider = GRANT;
        wider.class.dscp = None;
        assert_eq!(GRANT.narrowed(&wider), None);
        assert!(!GRANT.is_within(&wider));
    }

    /// Invariant 6: a grant stays bounded, however often a peer rekeys.
    #[test]
    fn new_keys_renew_a_grant_as_often_as_it_says_and_no_more() {
        let mut grant = Some(GRANT);
        for left in [1, 0] {
            grant = grant.and_then(|grant| grant.renewed());
            assert_eq!(grant.map(|grant| grant.renewals), Some(left));
        }
        assert_eq!(grant.and_then(|grant| grant.renewed()), None);
    }

    #[test]
    fn a_grant_is_told_as_people_read_it() {
        assert_eq!(
            GRANT.to_string(),
            "ports 5004-5005, DSCP 34: 1000 packets, 60 s, renewed 2 times"
        );
    }

    #[test]
    fn what_is_inside_udp_is_recognised_on_ports_that_are_named() {
        let mut class = Class {
            marker: Some(false),
            protocol: Some(17),
            ..Class::default()
        };
        assert!(!class.is_named() && !Class::default().is_named());
        class.ports = Span::new(5004, 5004);
        assert!(class.is_named() && GRANT.class.is_named());
    }
}
