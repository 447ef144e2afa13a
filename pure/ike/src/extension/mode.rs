//! The mode of a child SA: the part of a datagram that is sealed (RFC 7296 section 1.3.1).
//!
//! Tunnel mode is the default. USE_TRANSPORT_MODE asks for *transport* mode, USE_BEET_MODE for
//! *BEET* mode (draft-ietf-ipsecme-ikev2-beet-mode). BEET has no assigned number yet, so
//! strongSwan's private one is used, and only with peers that sent our vendor ID: strongSwan
//! accepts it only from strongSwan. An end whose configuration says tunnel creates one, even if the
//! peer asks for another mode: "If the responder declines the request, the Child SA will be
//! established in tunnel mode". Every other difference is refused, so an end that configured
//! another mode never gets a tunnel.
//!
//! The sealed part may consist of zones, the first of which has to start at its beginning (DESIGN
//! section 3). A layout whose first zone is the IP header therefore requires tunnel mode.
//!
//! In transport and BEET mode, the IP header is not sent, and the receiver restores it from one
//! pair of addresses. In BEET mode, these come from the selectors. In transport mode, they are the
//! outer addresses, to which the selectors are confined. Transport mode therefore requires a path
//! without NAT (section 2.23.1 is not implemented). An end that knows of a NAT in front of itself
//! neither requests nor accepts transport mode. An undetected NAT shows in selectors that differ
//! from the outer addresses.

use super::nat::Nat;
use super::zones;
use crate::down_reason::DownReason;
use crate::exchange::{find_notify, notify};
use crate::policy::Policy;
use crate::selectors::narrow;
use model::{Mode, Path, TrafficSelector, ZoneSelector};
use std::net::IpAddr;
use wire::ike::{Message, NotifyType, Payload};

/// Selectors of both ends of a child SA, ours first.
pub(crate) type Ends = (Vec<TrafficSelector>, Vec<TrafficSelector>);

/// Reason for which a child SA cannot have the configured mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMode {
    /// A NAT translates our address.
    #[error("transport mode does not work through NATs, and a NAT translates our address")]
    Translated,
    /// The selectors are for other hosts than the two ends.
    #[error("transport mode carries only traffic between the outer addresses {ours} and {theirs}")]
    NotOutside {
        /// Our outer address.
        ours: IpAddr,
        /// The peer's outer address, as we see it.
        theirs: IpAddr,
    },
    /// BEET mode needs exactly one inner address at each end.
    #[error("{} mode needs one inner address at each end", .0.name())]
    NotOnePair(Mode),
    /// The first zone, by which a licensed node finds the others, does not start at the sealed
    /// part.
    #[error("the zones begin with `{0}`, but packets in {1} mode do not")]
    NotTheFront(ZoneSelector, Mode),
    /// The peer does not know the private number of USE_BEET_MODE.
    #[error(
        "the peer does not support Strata's BEET mode (USE_BEET_MODE has no assigned number yet)"
    )]
    NotUnderstood,
    /// The peer declined the mode that we requested.
    #[error("the peer chose tunnel mode, but we requested {0} mode")]
    Declined(Mode),
    /// The peer requested another mode than the configured one.
    #[error("the peer requests {theirs} mode, but {ours} mode is configured here")]
    Differs {
        /// Configured mode.
        ours: Mode,
        /// Requested mode.
        theirs: Mode,
    },
    /// The peer requested two modes at once.
    #[error("the peer requests transport and BEET mode at once, which exclude each other")]
    Both,
}

impl BadMode {
    /// Returns the error notify for the peer.
    pub(crate) const fn notify(self) -> NotifyType {
        match self {
            Self::NotOutside { .. } | Self::NotOnePair(_) => NotifyType::TS_UNACCEPTABLE,
            _ => NotifyType::NO_PROPOSAL_CHOSEN,
        }
    }
}

/// Properties of the path and the peer on which the mode depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModeContext {
    /// Path of the child SA's packets.
    pub(crate) path: Path,
    /// True if a NAT translates our address.
    pub(crate) translated: bool,
    /// True if the peer understands USE_BEET_MODE.
    pub(crate) beet: bool,
}

impl ModeContext {
    pub(crate) fn new(path: Path, nat: Option<Nat>, beet: bool) -> Self {
        let translated = nat.is_some_and(|nat| nat.ours);
        Self {
            path,
            translated,
            beet,
        }
    }

    /// Returns `Ok` if a child SA is possible in the mode of its policy.
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

    /// Confines selectors to the addresses that the mode allows.
    pub(crate) fn confine(self, mode: Mode, ends: Ends) -> Ends {
        let (local, remote) = ends;
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

    /// Returns `Ok` if the selectors consist of one pair of addresses, as the mode may require.
    pub(crate) fn is_pair(self, mode: Mode, ends: &Ends) -> Result<(), BadMode> {
        let (local, remote) = ends;
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

    /// Returns the mode that a message asks for.
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

    /// Returns the mode that a request asks for, if a responder with this policy can answer it.
    pub(crate) fn answer(self, policy: &Policy<'_>, request: &Message) -> Result<Mode, BadMode> {
        self.allows(policy)?;
        let (ours, theirs) = (policy.mode, self.read(request)?);
        match ours == theirs || ours == Mode::Tunnel {
            true => Ok(theirs),
            false => Err(BadMode::Differs { ours, theirs }),
        }
    }

    /// Returns `Ok` if the responder agreed to the requested mode.
    pub(crate) fn check(self, asked: Mode, response: &Message) -> Result<(), DownReason> {
        match (asked, self.read(response)) {
            (asked, Ok(answered)) if asked == answered => Ok(()),
            (asked, Ok(Mode::Tunnel)) => Err(BadMode::Declined(asked).into()),
            _ => Err(DownReason::NotOffered("another mode")),
        }
    }
}

/// Returns the notify for a request or an answer. Tunnel mode needs none.
pub(crate) fn payload(mode: Mode) -> Option<Payload> {
    let kind = match mode {
        Mode::Tunnel => return None,
        Mode::Transport => NotifyType::USE_TRANSPORT_MODE,
        Mode::Beet => NotifyType::USE_BEET_MODE,
    };
    Some(notify(kind, Vec::new()))
}
