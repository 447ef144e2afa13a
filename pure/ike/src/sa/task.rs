//! Our requests on an established IKE SA, one task each.

use super::child_request::ChildRequest;
use super::moving::Move;
use super::new_child::NewChild;
use super::queue::Subject;
use super::rekey_child::ChildRekey;
use super::rekey_ike::IkeRekey;
use super::successor::FollowUp;
use super::{Core, Turn};
use crate::config::Timers;
use crate::event::Event;
use crate::extension::mobike::{self, Cookie};
use crate::extension::{delete, distribute, migration, overlap, redirect};
use crate::refusal::GrantRefusal;
use crypto::Secret;
use model::{ChildSaId, CsaId, Grant, Identity, Spi};
use std::net::IpAddr;
use std::time::Duration;
use wire::ike::{ExchangeType, Message, Payload, Token};

/// A request.
pub(crate) enum Task {
    /// Liveness check.
    Liveness,
    /// A liveness check because child SAs sent and received nothing.
    Doubt,
    /// Check of our address as the peer sees it, while the peer is alive.
    Whereabouts,
    /// Distribution of keys to a licensed node.
    Distribute(Box<Grant<Secret>>),
    /// Revocation of a grant.
    Revoke(CsaId),
    /// Announcement of the nodes that mobile nodes may move to from us.
    Neighbours(Vec<Identity>),
    /// Request for keys from the previous node, with a mobile node's token.
    RequestKeys(Box<Token>),
    /// Creation of an additional child SA.
    NewChild(Box<NewChild>),
    /// Rekey of a child SA.
    RekeyChild(Box<ChildRekey>),
    /// Rekey of the IKE SA, or a clone of it.
    RekeyIke(Box<IkeRekey>),
    /// Follow-up key exchange of such a rekey.
    FollowUp(Box<FollowUp>),
    /// Update of our address, or check of the peer's.
    Move(Box<Move>),
    /// Question to one address of the peer.
    Question(Cookie),
    /// Deletion of a child SA, by the SPI on which we receive. `None` if it never carried traffic.
    DeleteChild(Option<ChildSaId>, Spi),
    /// Deletion of the IKE SA, which another one has replaced.
    Leave,
    /// Redirection to another gateway.
    Redirect(IpAddr),
    /// Announcement of our window size.
    Window(u8),
}

impl Task {
    /// Returns true for a successor that replaces the IKE SA, and false for a clone.
    pub(super) const fn renews_ike(&self) -> bool {
        match self {
            Self::RekeyIke(rekey) => rekey.to.is_none(),
            Self::FollowUp(follow_up) => follow_up.successor.purpose.is_none(),
            _ => false,
        }
    }

    /// Returns the time after which the request is given up, and the peer is considered gone.
    pub(super) const fn allowed(&self, timers: &Timers) -> Duration {
        match self {
            Self::Liveness => timers.give_up_check,
            // One-way traffic is no fault: only liveness bounds the time.
            Self::Doubt => Duration::MAX,
            Self::Whereabouts
            | Self::Distribute(_)
            | Self::Revoke(_)
            | Self::Neighbours(_)
            | Self::RequestKeys(_)
            | Self::NewChild(_)
            | Self::RekeyChild(_)
            | Self::RekeyIke(_)
            | Self::FollowUp(_)
            | Self::Move(_)
            | Self::Question(_)
            | Self::DeleteChild(..)
            | Self::Leave
            | Self::Redirect(_)
            | Self::Window(_) => timers.give_up,
        }
    }

    /// Returns the subject, which determines the tasks that may be outstanding at the same time.
    pub(super) const fn subject(&self) -> Subject {
        match self {
            Self::Liveness
            | Self::Doubt
            | Self::Whereabouts
            | Self::Window(_)
            | Self::RequestKeys(_) => Subject::Nothing,
            Self::Neighbours(_) => Subject::Neighbours,
            // A successor that never carried anything has no name.
            Self::DeleteChild(None, _) => Subject::Nothing,
            Self::DeleteChild(Some(child), _) => Subject::Child(*child),
            Self::RekeyChild(rekey) => Subject::Child(rekey.old),
            Self::NewChild(_) => Subject::NewChild,
            Self::Distribute(grant) => Subject::Csa(grant.csa),
            Self::Revoke(csa) => Subject::Csa(*csa),
            Self::RekeyIke(_)
            | Self::FollowUp(_)
            | Self::Move(_)
            | Self::Question(_)
            | Self::Leave
            | Self::Redirect(_) => Subject::Whole,
        }
    }

    pub(super) const fn exchange(&self) -> ExchangeType {
        match self {
            Self::Liveness
            | Self::Doubt
            | Self::Whereabouts
            | Self::Revoke(_)
            | Self::Neighbours(_)
            | Self::Move(_)
            | Self::Question(_)
            | Self::DeleteChild(..)
            | Self::Leave
            | Self::Redirect(_)
            | Self::Window(_) => ExchangeType::INFORMATIONAL,
            Self::NewChild(new) => new.request.exchange(),
            Self::RekeyChild(rekey) => rekey.request.exchange(),
            Self::RekeyIke(_) => ExchangeType::CREATE_CHILD_SA,
            Self::FollowUp(_) => ExchangeType::IKE_FOLLOWUP_KE,
            Self::Distribute(_) => ExchangeType::KEY_DISTRIBUTE,
            Self::RequestKeys(_) => ExchangeType::KEY_REQUEST,
        }
    }

    /// Returns the request, if it is for a child SA.
    pub(super) const fn child(&self) -> Option<&ChildRequest> {
        match self {
            Self::NewChild(new) => Some(&new.request),
            Self::RekeyChild(rekey) => Some(&rekey.request),
            _ => None,
        }
    }

    /// Returns the request mutably, if it is for a child SA.
    pub(super) const fn child_mut(&mut self) -> Option<&mut ChildRequest> {
        match self {
            Self::NewChild(new) => Some(&mut new.request),
            Self::RekeyChild(rekey) => Some(&mut rekey.request),
            _ => None,
        }
    }

    /// Returns true if the task requests a child SA with this name, or the replacement of `old`.
    pub(super) fn asks_for(&self, old: Option<ChildSaId>, name: Option<&str>) -> bool {
        match self {
            Self::NewChild(new) => old.is_none() && new.name.as_deref() == name,
            Self::RekeyChild(rekey) => Some(rekey.old) == old,
            _ => false,
        }
    }

    pub(super) fn payloads(&self) -> Vec<Payload> {
        match self {
            Self::Liveness | Self::Doubt | Self::Whereabouts => Vec::new(),
            Self::Distribute(grant) => distribute::payloads(grant),
            Self::Revoke(csa) => vec![distribute::revocation(*csa)],
            Self::Neighbours(nodes) => vec![distribute::neighbours(nodes)],
            Self::RequestKeys(token) => vec![migration::request(token)],
            Self::NewChild(new) => new.request.payloads.clone(),
            Self::RekeyChild(rekey) => rekey.request.payloads.clone(),
            Self::RekeyIke(rekey) => rekey.payloads.clone(),
            Self::FollowUp(follow_up) => follow_up.payloads.clone(),
            Self::Move(moved) => moved.payloads.clone(),
            Self::Question(cookie) => vec![mobike::cookie_payload(cookie)],
            Self::DeleteChild(_, spi) => vec![delete::child(*spi)],
            Self::Leave => vec![delete::ike_sa()],
            Self::Redirect(to) => vec![redirect::payload(*to)],
            Self::Window(window) => vec![overlap::payload(*window)],
        }
    }
}

/// Evaluates a licensed node's answer to a grant.
pub(super) fn conclude_grant(grant: &Grant<Secret>, response: &Message, turn: &mut Turn<'_, '_>) {
    let sa = turn.core.id;
    turn.ctx.event(match distribute::outcome(grant, response) {
        Ok(()) => Event::GrantAccepted {
            sa,
            csa: grant.csa,
            grant: grant.grant,
        },
        Err(why) => refused(grant, why, turn.core),
    });
}

/// Returns the event for a refused grant.
pub(crate) fn refused(grant: &Grant<Secret>, why: GrantRefusal, core: &Core) -> Event {
    Event::GrantRefused {
        sa: core.id,
        csa: grant.csa,
        grant: grant.grant,
        why,
    }
}
