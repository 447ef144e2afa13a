//! `tfc` and `cover`: the visible length of packets to a peer, and their minimum rate (RFC 4303
//! sections 2.6 and 2.7).

use crate::Peer;
use crate::reader::Value;
use model::{Mode, Sizes};
use std::fmt;

/// The padding that hides the length of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tfc {
    /// `off`: no padding.
    #[default]
    Off,
    /// `mtu`: all packets have the longest length.
    Mtu,
    /// `buckets`: packets have one of a few lengths, each twice the previous. Padding at most
    /// doubles a packet, and all implementations with this setting look alike.
    Buckets,
}

impl Tfc {
    const ALL: [Self; 3] = [Self::Off, Self::Mtu, Self::Buckets];

    const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Mtu => "mtu",
            Self::Buckets => "buckets",
        }
    }

    /// Returns the padded lengths, none of which exceeds `mtu`.
    pub const fn sizes(self, mtu: u16) -> Option<Sizes> {
        match self {
            Self::Off => None,
            Self::Mtu => Some(Sizes::one(mtu)),
            Self::Buckets => Some(Sizes::doubling(mtu)),
        }
    }
}

impl fmt::Display for Tfc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(crate) fn tfc(value: &Value<'_>) -> Option<Tfc> {
    value.choice(&Tfc::ALL.map(|tfc| (tfc.name(), tfc)))
}

pub(crate) fn cover(value: &Value<'_>) -> Option<u16> {
    u16::try_from(value.number(1..=1000)?).ok()
}

/// "this padding […] can be added only if the Payload Data field contains a specification of the
/// length of the IP datagram. This is always true in tunnel mode" (RFC 4303 section 2.7). Strata
/// pads in no other mode.
pub(crate) fn check(peer: &Peer, root: &Value<'_>) {
    let modes = std::iter::once(peer.mode).chain(peer.children.iter().map(|child| child.mode));
    let other = modes.into_iter().find(|mode| *mode != Mode::Tunnel);
    if let (true, Some(mode), Some(place)) = (
        peer.tfc != Tfc::Off,
        other,
        root.at(&["peer", &peer.party.name, "tfc"]),
    ) {
        place.fault::<()>(
            format!("{mode} mode omits the IP header, which has the length of a padded datagram"),
            "write `tfc = \"off\"`, or `mode = \"tunnel\"` for all tunnels of this peer",
        );
    }
    if let (Tfc::Off, Some(_), Some(place)) = (
        peer.tfc,
        peer.cover,
        root.at(&["peer", &peer.party.name, "cover"]),
    ) {
        place.fault::<()>(
            "without `tfc`, dummy packets are recognisable among packets of other lengths",
            "add `tfc = \"mtu\"`, or remove `cover`",
        );
    }
}
