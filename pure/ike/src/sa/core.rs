//! The data of an IKE SA in every state.

use crate::config::Peer;
use crate::extension::fragment::{Inbox, Limit};
use crate::extension::intermediate::AuthTranscript;
use crate::extension::nat::Nat;
use crate::extension::overlap::Windows;
use crate::extension::ppk::Ppk;
use crate::peer_table::PeerTable;
use crate::window::{Requests, Responses};
use model::{IkeSaId, Instant, Path, PeerId};
use wire::ike::{ExchangeType, Flags, Header, VERSION_2};

/// The data that every state has.
pub(crate) struct Core {
    pub(crate) id: IkeSaId,
    /// The peer. A responder learns it in IKE_AUTH.
    pub(crate) peer: Option<PeerId>,
    /// True if we are the original initiator.
    pub(crate) initiator: bool,
    /// Time at which its first message was sent or received.
    pub(crate) began: Instant,
    /// True if the SA is not up yet, and replaces another one once it is.
    pub(crate) anew: bool,
    /// True while it waits for an answer together with attempts at other addresses of the peer.
    pub(crate) raced: bool,
    pub(crate) spi_i: u64,
    pub(crate) spi_r: u64,
    /// Path of its messages.
    pub(crate) path: Path,
    /// The newest verified path to the peer.
    pub(crate) proved: Path,
    /// Path of the child SAs' packets: the verified path, possibly without UDP.
    pub(crate) esp: Path,
    /// Result of NAT detection; `None` if the peer does not support NAT traversal.
    pub(crate) nat: Option<Nat>,
    /// Maximum size of unfragmented messages; `None` if fragments were not negotiated.
    pub(crate) limit: Option<Limit>,
    /// Our port of its next TCP connection, zero until drawn.
    pub(crate) port: u16,
    /// True if its TCP connection is lost, and nothing has arrived on another one yet.
    pub(crate) lost: bool,
    /// True if an unauthenticated message refused the outstanding request of an SA that is being
    /// established.
    pub(crate) refused: bool,
    pub(crate) requests: Requests,
    pub(crate) responses: Responses,
    /// Fragments of incomplete messages.
    pub(crate) inbox: Inbox,
    /// The last IKE_INTERMEDIATE messages, which AUTH covers in addition to the first messages.
    pub(crate) transcript: AuthTranscript,
}

impl Core {
    /// Returns the SPI in messages to us.
    pub(crate) const fn own_spi(&self) -> u64 {
        match self.initiator {
            true => self.spi_i,
            false => self.spi_r,
        }
    }

    /// Returns the peer, once known, as long as it is configured.
    pub(crate) fn peer<'c>(&self, config: &'c PeerTable) -> Option<&'c Peer> {
        config.peer(self.peer?)
    }

    /// Returns the PPK shared with the peer.
    pub(crate) fn ppk<'c>(&self, config: &'c PeerTable) -> Option<&'c Ppk> {
        self.peer(config)?.ppk.as_deref()
    }

    /// Returns the peer, or [`PeerId::NONE`] until it is known.
    pub(crate) fn peer_id(&self) -> PeerId {
        self.peer.unwrap_or(PeerId::NONE)
    }

    /// Creates the header of a message to the peer.
    pub(crate) const fn header(
        &self,
        exchange: ExchangeType,
        message_id: u32,
        response: bool,
    ) -> Header {
        Header {
            spi_i: self.spi_i,
            spi_r: self.spi_r,
            version: VERSION_2,
            exchange,
            flags: Flags {
                initiator: self.initiator,
                higher_version: false,
                response,
            },
            message_id,
        }
    }

    /// Returns the number of responses that we keep for the peer, once it is authenticated.
    pub(crate) fn own_window(&self, config: &PeerTable) -> u8 {
        self.peer(config).map_or(1, |peer| peer.window)
    }

    /// Applies the number of responses that the peer keeps.
    pub(crate) fn overlap(&mut self, theirs: Option<u32>, config: &PeerTable) {
        if let Some(theirs) = theirs {
            let theirs = u8::try_from(theirs).unwrap_or(u8::MAX);
            self.requests.widen(theirs.min(self.own_window(config)));
        }
    }

    pub(crate) fn windows(&self) -> Windows {
        Windows {
            ours: self.responses.window(),
            theirs: self.requests.window(),
            under_way: self.requests.under_way(),
        }
    }

    /// Returns true if an authentic message is the newest of its kind so far. Overlapping messages
    /// may arrive in any order.
    pub(crate) fn is_newest(&self, header: &Header) -> bool {
        match header.flags.response {
            true => self.requests.is_newest(header.message_id),
            false => self.responses.is_newest(header.message_id),
        }
    }
}

/// Returns true if the round trip that was measured on one path also applies to the other.
/// "Port-only changes are commonly the result of NAT rebinding" (RFC 9000 section 9.4), except
/// where the port belongs to a new connection.
pub(crate) fn is_same_route(one: Path, other: Path) -> bool {
    let ends = |path: Path| (path.local.ip(), path.remote.ip());
    one == other || !one.is_stream() && !other.is_stream() && ends(one) == ends(other)
}
