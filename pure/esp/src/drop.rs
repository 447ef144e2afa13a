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
    DatagramMalformed "datagram_malformed" "not an IP datagram, or one whose length is not true"
    DiscardPolicy "discard_policy" "a policy says discard"
    BypassNotRouted "bypass_not_routed" "a policy says bypass, but the packet was routed into the tunnel"
    NoSa "no_sa" "it is to be protected, and no SA is up"
    NoPolicy "no_policy" "no policy and no SA speaks of it, and nothing leaves in clear"
    SequenceExhausted "sequence_exhausted" "the SA's sequence numbers are used up"
    TooBig "too_big" "the buffer has no room for what sealing adds"
    TooLong "too_long" "its path has no room for it, and its source is nobody to be told, or was told just before"
    Fragment "fragment" "a fragment: transport and BEET mode carry whole datagrams alone"
    HeaderOptions "header_options" "IP options or extension headers, which transport and BEET mode do not carry"
    // Inbound, before anything is authenticated.
    Runt "runt" "too short to be an ESP packet of its SA"
    ReservedSpi "reserved_spi" "the SPI is a reserved one"
    UnknownSpi "unknown_spi" "no SA has this SPI"
    SequenceZero "sequence_zero" "the sequence number is zero, which is never sent"
    Replayed "replayed" "the sequence number was seen before"
    TooOld "too_old" "the sequence number is left of the replay window"
    MapTruncated "map_truncated" "the packet ends inside the zone map"
    OverlayNotAccepted "overlay_not_accepted" "it has a writer's overlay, and nobody was granted to write"
    OverlayMalformed "overlay_malformed" "the overlay, or what it says, is not as it has to be"
    MapReserved "map_reserved" "a reserved bit of the zone map is set"
    MapRunCount "map_run_count" "the zone map has no run or more than eight"
    MapUnknownZone "map_unknown_zone" "the zone map names a zone that was not agreed"
    MapEmptyRun "map_empty_run" "the zone map has an empty run"
    MapFirst "map_first" "the first run of the zone map is not in the designated zone"
    MapNeighbours "map_neighbours" "two neighbouring runs of the zone map are in the same zone"
    MapLast "map_last" "the last word of the zone map names the payload zone"
    MapOpaque "map_opaque" "the map of an opaque packet is not as it has to be"
    MapBodies "map_bodies" "the bodies of the zones do not fit into the packet"
    // Inbound, authentication.
    BadIcv "bad_icv" "the ICV of a plain packet is wrong"
    BadIcvDesignated "bad_icv_designated" "the ICV of the designated zone is wrong"
    BadIcvOther "bad_icv_other" "the ICV of a zone between the first and the last is wrong"
    BadIcvPayload "bad_icv_payload" "the ICV of the payload zone is wrong"
    BadIcvOverlay "bad_icv_overlay" "the ICV of the overlay is wrong, or its grant is nobody's"
    BadIcvInjected "bad_icv_injected" "the ICV of what a node has made is wrong, or its grant is nobody's or over"
    // Inbound, authentic.
    OverlayOutsideMask "overlay_outside_mask" "the overlay changes what its writer may not change"
    OverlayRaised "overlay_raised" "the overlay raises the window, which may be lowered alone"
    InjectionTakenBack "injection_taken_back" "a node has made it whose licence for that was taken back"
    InjectionNotBare "injection_not_bare" "a node has made it, and it is not a bare acknowledgement of TCP"
    InjectionNoConnection "injection_no_connection" "a node has made it, and the peer has not spoken on that connection"
    InjectionBeyond "injection_beyond" "a node has made it, and it says more than the peer itself has said"
    BadPadding "bad_padding" "the padding is not what RFC 4303 says"
    Dummy "dummy" "a dummy packet, which only hides the silence"
    NextHeaderMismatch "next_header_mismatch" "the next header is not the version of the datagram"
    InnerMalformed "inner_malformed" "the protected datagram is malformed"
    ChecksumNotRestorable "checksum_not_restorable" "the checksum was left out of a datagram that has no place for one"
    InnerSelectorMismatch "inner_selector_mismatch" "the protected datagram is none that its SA may carry"
    LevelClass "level_class" "it came without encryption and is none that may"
    LevelSpent "level_spent" "it came without encryption after all that was granted of that"
    Congested "congested" "the way was congested, and the datagram's transport learns that from its loss alone (RFC 6040 section 4.2)"
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
