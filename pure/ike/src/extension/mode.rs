//! The mode of a child: what of a datagram it seals (RFC 7296 section 1.3.1).
//!
//! Without a word it is a *tunnel*. USE_TRANSPORT_MODE asks for *transport*; USE_BEET_MODE for *BEET*
//! (draft-ietf-ipsecme-ikev2-beet-mode), whose number is strongSwan's private one as long as there is
//! no other, and is said only to our own kind: strongSwan answers it to nobody but its own. Whose configuration says tunnel makes one, also
//! for who asks for something else: "If the responder declines the request, the Child SA will be
//! established in tunnel mode". Every other difference is refused: nobody gets a tunnel who wrote
//! something else.
//!
//! What is sealed may be in zones, of which the first has to be where that begins (DESIGN section 3): a
//! layout that asks for the IP header first suits no other mode than a tunnel.
//!
//! In both modes the IP header stays behind, and the receiver makes it anew of one pair of addresses.
//! That of BEET is its selectors'; that of transport is outside, which its selectors are confined to.
//! So no NAT may be between (section 2.23.1 is not done): who is behind one knows it and neither asks
//! nor accepts, and a NAT of which nobody knows shows in selectors that are not the addresses outside.

use super::nat::Nat;
use super::zones;
use crate::down_reason::DownReason;
use crate::exchange::{find_notify, notify};
use crate::policy::Policy;
use crate::selectors::narrow;
use model::{Mode, Path, TrafficSelector, ZoneSelector};
use std::net::IpAddr;
use wire::ike::{Message, NotifyType, Payload};

/// Both directions of what a child carries, ours first.
pub(crate) type Ends = (Vec<TrafficSelector>, Vec<TrafficSelector>);

/// Why a child cannot have the mode that the configuration wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMode {
    /// Our address is another one to the peer.
    #[error(
        "transport mode does not pass NATs, and there is one in front of us: write `mode = \"tunnel\"` or `mode = \"beet\"` at both ends"
    )]
    Translated,
    /// The selectors are for other hosts.
    #[error(
        "transport mode carries what goes between {ours} and {theirs}, the addresses outside, and nothing else: write these in `local` and `remote` at both ends; with a NAT between them write `mode = \"tunnel\"` or `mode = \"beet\"`"
    )]
    NotOutside {
        /// Our address outside.
        ours: IpAddr,
        /// The peer's, as we see it.
        theirs: IpAddr,
    },
    /// BEET has one address inside for each end.
    #[error(
        "{} mode has one address inside at each end: write one in `local` and one in `remote`, at both ends", .0.name()
    )]
    NotOnePair(Mode),
    /// By the first zone a licensed node finds all others.
    #[error(
        "the zones begin with `{0}`, and that is not where packets in {1} mode do: write a layout that begins with `headers`, at both ends"
    )]
    NotTheFront(ZoneSelector, Mode),
    /// The number is private.
    #[error(
        "the peer does not say that it understands USE_BEET_MODE, whose number is private, as none but Strata does: write `mode = \"tunnel\"` at both ends"
    )]
    NotUnderstood,
    /// We asked.
    #[error(
        "the peer makes a tunnel where we ask for {0} mode: write `mode = \"{0}\"` there, or `mode = \"tunnel\"` here"
    )]
    Declined(Mode),
    /// We were asked.
    #[error(
        "it asks for {theirs} mode, and `mode` is \"{ours}\" here: write the same at both ends"
    )]
    Differs {
        /// What we want.
        ours: Mode,
        /// What it wants.
        theirs: Mode,
    },
    /// A request for two modes.
    #[error("it asks for transport and BEET mode at once, which exclude each other")]
    Both,
}

impl BadMode {
    /// How the peer is told.
    pub(crate) const fn notify(self) -> NotifyType {
        match self {
            Self::NotOutside { .. } | Self::NotOnePair(_) => NotifyType::TS_UNACCEPTABLE,
            _ => NotifyType::NO_PROPOSAL_CHOSEN,
        }
    }
}

/// What a mode depends on beside the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    /// Where the child's packets go.
    pub(crate) path: Path,
    /// Whether our address is another one to the peer.
    pub(crate) translated: bool,
    /// Whether the peer understands USE_BEET_MODE.
    pub(crate) beet: bool,
}

impl Ground {
    pub(crate) fn new(path: Path, nat: Option<Nat>, beet: bool) -> Self {
        let translated = nat.is_some_and(|nat| nat.ours);
        Self {
            path,
            translated,
            beet,
        }
    }

    /// Whether a child can be made in the mode that its policy wants.
    pub(crate) fn allows(self, policy: &Policy<'_>) -> Result<(), BadMode> {
        if let Some(zone) = zones::first(policy.zones).filter(|zone| !zone.begins(policy.mode)) {
            return Err(BadMode::NotTheFront(zone, policy.mode));
        }
        let ends = || self.confine(policy.mode, (policy.local.to_vec(), policy.remote.to_vec()));
        match policy.mode {
            Mode::Transport if self.translated => Err(BadMode::Translated),
            Mode::Transport => self.is_pair(policy.mode, &ends()),
            Mode::Beet if !self.beet => Err(BadMode::NotUnderstood),
            Mode::Beet | Mode::Tunnel => Ok(()),
        }
    }

    /// What is left of selectors by the mode.
    pub(crate) fn confine(self, mode: Mode, (local, remote): Ends) -> Ends {
        let host = |address: IpAddr| {
            let length = if address.is_ipv4() { 32 } else { 128 };
            TrafficSelector::from_prefix(address, length)
        };
        let only = |of: &[_], address| narrow(of, host(address).as_slice());
        match mode {
            Mode::Tunnel | Mode::Beet => (local, remote),
            Mode::Transport => (
                only(&local, self.path.local.ip()),
                only(&remote, self.path.remote.ip()),
            ),
        }
    }

    /// Whether selectors are those of the one pair of addresses that a mode needs.
    pub(crate) fn is_pair(self, mode: Mode, (local, remote): &Ends) -> Result<(), BadMode> {
        match mode {
            Mode::Tunnel => Ok(()),
            _ if model::one_pair(local, remote).is_some() => Ok(()),
            Mode::Beet => Err(BadMode::NotOnePair(mode)),
            Mode::Transport => Err(BadMode::NotOutside {
                ours: self.path.local.ip(),
                theirs: self.path.remote.ip(),
            }),
        }
    }

    /// The mode that a message asks for.
    pub(crate) fn read(self, message: &Message) -> Result<Mode, BadMode> {
        let says = |kind| find_notify(message, kind).is_some();
        let beet = self.beet && says(NotifyType::USE_BEET_MODE);
        match (says(NotifyType::USE_TRANSPORT_MODE), beet) {
            (true, true) => Err(BadMode::Both),
            (true, false) => Ok(Mode::Transport),
            (false, true) => Ok(Mode::Beet),
            (false, false) => Ok(Mode::Tunnel),
        }
    }

    /// What a request asks for, if a responder with this policy has an answer to it.
    pub(crate) fn answer(self, policy: &Policy<'_>, request: &Message) -> Result<Mode, BadMode> {
        self.allows(policy)?;
        let (ours, theirs) = (policy.mode, self.read(request)?);
        match ours == theirs || ours == Mode::Tunnel {
            true => Ok(theirs),
            false => Err(BadMode::Differs { ours, theirs }),
        }
    }

    /// Whether the responder's answer is what an initiator asked for.
    pub(crate) fn check(self, asked: Mode, response: &Message) -> Result<(), DownReason> {
        match (asked, self.read(response)) {
            (asked, Ok(answered)) if asked == answered => Ok(()),
            (asked, Ok(Mode::Tunnel)) => Err(BadMode::Declined(asked).into()),
            _ => Err(DownReason::NotOffered("another mode")),
        }
    }
}

/// The notify for a request or an answer; a tunnel needs none.
pub(crate) fn payload(mode: Mode) -> Option<Payload> {
    let kind = match mode {
        Mode::Tunnel => return None,
        Mode::Transport => NotifyType::USE_TRANSPORT_MODE,
        Mode::Beet => NotifyType::USE_BEET_MODE,
    };
    Some(notify(kind, Vec::new()))
}
