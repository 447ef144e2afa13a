//! What we ask of a peer on an established IKE SA, one request each.

use super::child_request::ChildRequest;
use super::heir::FollowUp;
use super::moving::Move;
use super::new_child::NewChild;
use super::queue::Subject;
use super::rekey_child::ChildRekey;
use super::rekey_ike::IkeRekey;
use super::{Context, Core};
use crate::config::Timers;
use crate::event::Event;
use crate::extension::mobike::{self, Cookie};
use crate::extension::{delete, distribute, migration, overlap, redirect};
use crate::refusal::GrantRefusal;
use crypto::Secret;
use model::{ChildSaId, CsaId, Grant, Identity, Spi};
use std::net::IpAddr;
use wire::ike::{ExchangeType, Message, Payload, Token};

/// One request.
pub(crate) enum Task {
    /// Whether the peer is there.
    Liveness,
    /// A liveness check because child SAs sent and received nothing.
    Doubt,
    /// Where the peer, which is there, sees us.
    Whereabouts,
    /// Keys for a licensed node.
    Distribute(Box<Grant<Secret>>),
    /// The end of a licence.
    Revoke(CsaId),
    /// To which nodes mobile nodes may go from us.
    Neighbours(Vec<Identity>),
    /// Keys from the node before, by a mobile node's token.
    RequestKeys(Box<Token>),
    /// A child beside those there are.
    NewChild(Box<NewChild>),
    /// New keys for a child.
    RekeyChild(Box<ChildRekey>),
    /// New keys for the IKE SA, or a clone of it.
    RekeyIke(Box<IkeRekey>),
    /// One more key exchange for them.
    FollowUp(Box<FollowUp>),
    /// An update of our address, or the check of the peer's.
    Move(Box<Move>),
    /// The question whether the peer is at one address.
    Question(Cookie),
    /// The end of a child, by the SPI we receive on; no name if it never carried anything.
    DeleteChild(Option<ChildSaId>, Spi),
    /// The end of the IKE SA, whose place another has.
    Leave,
    /// Another gateway to go to.
    Redirect(IpAddr),
    /// How many requests of the peer's may be under way.
    Window(u8),
}

impl Task {
    /// Whether it is about a successor that takes over, not about a clone.
    pub(super) const fn renews_ike(&self) -> bool {
        match self {
            Self::RekeyIke(rekey) => rekey.to.is_none(),
            Self::FollowUp(follow_up) => follow_up.heir.purpose.is_none(),
            _ => false,
        }
    }

    /// How often it is sent before the peer counts as gone.
    pub(super) const fn attempts(&self, timers: &Timers) -> u32 {
        match self {
            Self::Liveness => timers.liveness_attempts,
            // One-way traffic is no fault: only liveness bounds the attempts.
            Self::Doubt => u32::MAX,
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
            | Self::Window(_) => timers.attempts,
        }
    }

    /// What it is about, by which it is known what may be under way beside it.
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

    /// The request, if it is for a child.
    pub(super) const fn child(&self) -> Option<&ChildRequest> {
        match self {
            Self::NewChild(new) => Some(&new.request),
            Self::RekeyChild(rekey) => Some(&rekey.request),
            _ => None,
        }
    }

    /// The same.
    pub(super) const fn child_mut(&mut self) -> Option<&mut ChildRequest> {
        match self {
            Self::NewChild(new) => Some(&mut new.request),
            Self::RekeyChild(rekey) => Some(&mut rekey.request),
            _ => None,
        }
    }

    /// Whether it asks for a child of this name beside the others, or in the place of an old one.
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

/// The licensed node answered.
pub(super) fn conclude_grant(
    grant: &Grant<Secret>,
    response: &Message,
    core: &Core,
    ctx: &mut Context<'_>,
) {
    let sa = core.id;
    ctx.event(match distribute::outcome(grant, response) {
        Ok(()) => Event::GrantAccepted {
            sa,
            csa: grant.csa,
            grant: grant.grant,
        },
        Err(why) => refused(grant, why, core),
    });
}

/// The event for a grant that was not taken.
pub(crate) fn refused(grant: &Grant<Secret>, why: GrantRefusal, core: &Core) -> Event {
    Event::GrantRefused {
        sa: core.id,
        csa: grant.csa,
        grant: grant.grant,
        why,
    }
}
