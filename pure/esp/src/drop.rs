//! Drop reasons: one list defines the type, the counter labels and the texts for people.

use std::fmt;
use wire::zoned::BadMap;

macro_rules! drop_reasons {
    ($($name:ident $label:literal $text:literal)*) => {
        /// The reason why a packet was dropped. Every drop has one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DropReason {
            $(#[doc = $text] $name,)*
        }

        impl DropReason {
            /// All reasons, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the counter's name, in snake case.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }

        impl fmt::Display for DropReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $text,)*
                })
            }
        }
    };
}

drop_reasons! {
    // Outbound.
    DatagramMalformed "datagram_malformed" "not an IP datagram, or its length field is wrong"
    DiscardPolicy "discard_policy" "the policy says discard"
    BypassNotRouted "bypass_not_routed" "the policy says bypass, but the packet was routed into the tunnel"
    NoSa "no_sa" "the policy says protect, but no SA is up"
    NoPolicy "no_policy" "no policy and no SA matches, and nothing is sent in clear"
    SequenceExhausted "sequence_exhausted" "the SA's sequence numbers are used up"
    TooBig "too_big" "the buffer has no room for the ESP overhead"
    TooLong "too_long" "longer than the path MTU; its source has no address for an ICMP error, or was just sent one"
    Fragment "fragment" "a fragment: transport and BEET mode carry only whole datagrams"
    HeaderOptions "header_options" "IP options or extension headers, which transport and BEET mode do not support"
    // Inbound, before anything is authenticated.
    Runt "runt" "too short to be an ESP packet of its SA"
    ReservedSpi "reserved_spi" "the SPI is reserved"
    UnknownSpi "unknown_spi" "no SA has this SPI"
    SequenceZero "sequence_zero" "the sequence number is zero, which no sender uses"
    Replayed "replayed" "the sequence number was already received"
    TooOld "too_old" "the sequence number is older than the replay window"
    MapTruncated "map_truncated" "the packet ends inside the zone map"
    OverlayNotAccepted "overlay_not_accepted" "the packet has an overlay, but no node has a grant to write"
    OverlayMalformed "overlay_malformed" "the overlay or its content is malformed"
    MapReserved "map_reserved" "a reserved bit of the zone map is set"
    MapRunCount "map_run_count" "the zone map has no run or more than eight"
    MapUnknownZone "map_unknown_zone" "the zone map names a zone that was not agreed"
    MapEmptyRun "map_empty_run" "the zone map has an empty run"
    MapFirst "map_first" "the first run of the zone map is not in the designated zone"
    MapNeighbours "map_neighbours" "two neighbouring runs of the zone map are in the same zone"
    MapLast "map_last" "the last word of the zone map names the payload zone"
    MapOpaque "map_opaque" "the zone map of an opaque packet is malformed"
    MapBodies "map_bodies" "the bodies of the zones do not fit into the packet"
    // Inbound, authentication.
    BadIcv "bad_icv" "the ICV of a plain packet is wrong"
    BadIcvDesignated "bad_icv_designated" "the ICV of the designated zone is wrong"
    BadIcvOther "bad_icv_other" "the ICV of a zone between the first and the last is wrong"
    BadIcvPayload "bad_icv_payload" "the ICV of the payload zone is wrong"
    BadIcvOverlay "bad_icv_overlay" "the ICV of the overlay is wrong, or its grant is unknown"
    BadIcvInjected "bad_icv_injected" "the ICV of an injected packet is wrong, or its grant is unknown or has ended"
    // Inbound, authentic.
    OverlayOutsideMask "overlay_outside_mask" "the overlay changes a field that its writer may not change"
    OverlayRaised "overlay_raised" "the overlay raises the TCP window; a writer may only lower it"
    InjectionTakenBack "injection_taken_back" "injected by a node whose licence to inject was revoked"
    InjectionNotBare "injection_not_bare" "injected by a node, and not a bare TCP acknowledgement"
    InjectionNoConnection "injection_no_connection" "injected by a node on a connection on which the peer has sent nothing"
    InjectionBeyond "injection_beyond" "injected by a node, and states more than the peer itself has sent"
    BadPadding "bad_padding" "the padding does not follow RFC 4303"
    Dummy "dummy" "a dummy packet, sent as cover traffic"
    NextHeaderMismatch "next_header_mismatch" "the next header does not match the version of the datagram"
    InnerMalformed "inner_malformed" "the protected datagram is malformed"
    ChecksumNotRestorable "checksum_not_restorable" "the checksum was omitted from a datagram that has no checksum field"
    InnerSelectorMismatch "inner_selector_mismatch" "the protected datagram does not match the selectors of its SA"
    LevelClass "level_class" "unencrypted, and not of a class that may be"
    LevelSpent "level_spent" "unencrypted, and the grant for unencrypted packets is used up"
    ClearSpent "clear_spent" "the tunnel does not encrypt, and the packets that `unencrypted` allows are used up"
    Congested "congested" "marked as congested, and the inner transport only detects losses (RFC 6040 section 4.2)"
}

impl From<BadMap> for DropReason {
    fn from(bad: BadMap) -> Self {
        match bad {
            BadMap::Truncated => Self::MapTruncated,
            BadMap::Overlay => Self::OverlayNotAccepted,
            BadMap::Reserved => Self::MapReserved,
            BadMap::RunCount => Self::MapRunCount,
            BadMap::UnknownZone => Self::MapUnknownZone,
            BadMap::EmptyRun => Self::MapEmptyRun,
            BadMap::First => Self::MapFirst,
            BadMap::Neighbours => Self::MapNeighbours,
            BadMap::Last => Self::MapLast,
            BadMap::Opaque => Self::MapOpaque,
            BadMap::Bodies => Self::MapBodies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn labels_are_distinct_and_fit_for_metrics() {
        let labels: BTreeSet<_> = DropReason::ALL.iter().map(|why| why.label()).collect();
        assert_eq!(labels.len(), DropReason::ALL.len());
        let fit = |label: &str| label.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
        assert!(labels.into_iter().all(fit));
    }
}
