//! Initiator: IKE_AUTH was sent, and its response is awaited.
//!
//! The keys are fresh, but the other end is unknown until the responder's AUTH has been verified.
//! Only then can keys of child SAs be derived.

use super::closing::Closing;
use super::established::{Beginning, Established};
use super::{Arrived, Context, Core, State};
use crate::auth::{Claim, PeerProved};
use crate::child::Offer;
use crate::config::{Config, Peer, PeerRole};
use crate::down_reason::DownReason;
use crate::exchange::auth::Proof;
use crate::exchange::{errors, first_error, notify};
use crate::extension::configuration::{self, Inside};
use crate::extension::fragment::Uncut;
use crate::extension::intermediate::IntAuth;
use crate::extension::mobike::{self, Mobike};
use crate::extension::mode::Ground;
use crate::extension::ppk::{self, Ppk};
use crate::extension::{clone, contact, overlap, reauth, redirect, resource};
use crate::keys::{Roots, UnprovedKeys};
use crate::menu::EspMenu;
use crate::refusal::Refusal;
use crate::signature::{self, Signing};
use std::time::Duration;
use wire::ike::{AuthMethod, Authentication, ExchangeType, Message, NotifyType, Payload};

pub(crate) struct AuthSent {
    pub(crate) keys: UnprovedKeys,
    /// True if both ends announced PPKs.
    pub(super) ppk: bool,
    /// The roots with our PPK mixed in. The response tells if the responder has this PPK.
    pub(super) stirred: Option<Roots>,
    /// The responder's IKE_SA_INIT message, which its AUTH covers.
    pub(super) response: Vec<u8>,
    /// The child SA that we requested; `None` for a role without child SAs.
    pub(super) child: Option<Offer>,
    /// Method by which we sign, if we do.
    pub(super) method: Option<AuthMethod>,
    /// True if the responder understands our private numbers.
    pub(super) private: bool,
    /// IntAuth of the exchanges between IKE_SA_INIT and IKE_AUTH.
    pub(super) covered: IntAuth,
}

impl AuthSent {
    /// Sends IKE_AUTH; `first` is our IKE_SA_INIT message.
    pub(super) fn begin(mut self, first: &[u8], core: &mut Core, ctx: &mut Context<'_>) -> State {
        let Some(peer) = core.peer(ctx.config) else {
            return State::Gone;
        };
        let ppk = peer.ppk.as_ref().filter(|_| self.ppk);
        self.stirred = ppk.map(|ours| self.keys.roots.stirred(&ours.secret));
        let id = core.requests.next_id();
        let (certificates, proofs) = match self.proofs((first, id), peer, ctx.config) {
            Ok(proofs) => proofs,
            Err(why) => return core.gone(why, ctx),
        };
        let mut payloads = vec![Payload::IdInitiator(ctx.config.identity.clone().into())];
        if !ctx.is_acquainted() {
            payloads.push(contact::payload());
        }
        payloads.extend(certificates);
        payloads.extend(signature::requests(
            ctx.config,
            Signing::of(std::slice::from_ref(peer)),
        ));
        payloads.push(Payload::IdResponder(peer.identity.clone().into()));
        payloads.extend(proofs);
        let first = peer.policy(None);
        let ground = Ground::new(core.path, core.nat, self.private);
        let offer = first.map(|first| {
            let menu = EspMenu::of(peer, Vec::new());
            let spis = ctx.spis(core.id, None);
            Offer::new(menu, &first, ground, self.private, spis)
        });
        self.child = match offer.transpose() {
            Ok(offer) => offer,
            Err(why) => return core.gone(why.into(), ctx),
        };
        if let PeerRole::Vpn {
            local, addressing, ..
        } = &peer.role
        {
            payloads.extend(configuration::request(addressing, local));
        }
        let child = self.child.iter().zip(&first);
        payloads.extend(child.flat_map(|(offer, first)| offer.payloads((peer, first), None)));
        if peer.may_move() {
            payloads.extend(mobike::supported(
                &ctx.config.addresses,
                core.path.local.ip(),
            ));
        }
        payloads.extend(
            peer.features
                .forbids_nat
                .then(|| mobike::no_nats_allowed(core.path)),
        );
        payloads.extend(peer.features.clones.then(clone::supported));
        payloads.extend(resource::supported(peer));
        payloads.extend(overlap::announcement(peer));
        let allowed = ctx.config.timers.give_up;
        let exchange = ExchangeType::IKE_AUTH;
        core.request(&mut self.keys.cipher, exchange, payloads, allowed, ctx);
        let uncut = uncut(core, ctx.config);
        ctx.out.attempts.learn_uncut(core, uncut);
        State::AuthSent(Box::new(self))
    }

    pub(super) fn handle(
        self: Box<Self>,
        arrived: &Arrived<'_>,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        match core.accept_unproved(&self.keys.cipher, arrived, ctx) {
            None => State::AuthSent(self),
            Some(Err(complaint)) => core.gone(DownReason::Misbehaved(complaint.why), ctx),
            Some(Ok(mut response)) => {
                if !self.private {
                    response.forget_private();
                }
                self.conclude(&response, core, ctx)
            }
        }
    }

    /// Gives up, as no response arrived.
    pub(super) fn give_up(self: Box<Self>, core: &Core, ctx: &mut Context<'_>) -> State {
        let port = core.path.remote.port();
        let why = match uncut(core, ctx.config) {
            Some(uncut) => DownReason::LongAuthUnanswered(uncut),
            None => DownReason::AuthUnanswered { port },
        };
        core.unanswered(why, ctx)
    }

    fn conclude(
        mut self: Box<Self>,
        response: &Message,
        core: &mut Core,
        ctx: &mut Context<'_>,
    ) -> State {
        let private = self.private;
        ctx.out
            .attempts
            .learn(core, |theirs| theirs.read_auth(response, false, private));
        let Some(proof) = Proof::of_responder(response) else {
            let ppk = core.ppk(ctx.config).filter(|_| self.stirred.is_some());
            return core.gone(refusal(response, ppk, core, ctx), ctx);
        };
        let settled = self.settle_ppk(response, core, ctx);
        let proved = match settled.and_then(|()| self.verify(&proof, response, core, ctx)) {
            Ok(proved) => proved,
            Err(why) => {
                // The peer considers the SA up, so it is informed of the failure (RFC 7296 section
                // 2.21.2).
                let mut payloads = vec![notify(NotifyType::AUTHENTICATION_FAILED, Vec::new())];
                if let (DownReason::BadProof(why), true) = (&why, self.private) {
                    payloads.extend(signature::explanation(why));
                }
                let exchange = ExchangeType::INFORMATIONAL;
                let cipher = &mut self.keys.cipher;
                core.request(cipher, exchange, payloads, Duration::ZERO, ctx);
                return core.gone(why, ctx);
            }
        };
        let keys = self.keys.proved(proved);
        match redirect::sent(response, &[], core, ctx) {
            Some(Ok(to)) => {
                core.follow_redirect(to, core.anew, ctx);
                return Closing::quietly(keys, core, ctx);
            }
            Some(Err(why)) => return Closing::begin(keys, why, core, ctx),
            None => {}
        }
        let peer = core.peer(ctx.config);
        let inside = peer
            .filter(|peer| peer.requests_addresses())
            .map(|_| configuration::read_reply(response));
        let addresses = inside
            .as_ref()
            .and_then(|inside| Some(inside.as_ref()?.addresses));
        let beginning = Beginning {
            private: self.private,
            initial: !ctx.is_acquainted(),
            mobike: peer
                .filter(|peer| peer.may_move())
                .and_then(|_| Mobike::read(response, true)),
            addresses,
            chain: peer.map_or_else(Vec::new, |peer| signature::proved_by(peer, response)),
            counts_for: reauth::announced(response),
            willing: false,
            clones: peer.is_some_and(|peer| peer.features.clones) && clone::is_supported(response),
            resources: peer.is_some_and(|peer| resource::is_agreed(peer, response)),
            window: overlap::announced(response),
        };
        let error = first_error(response);
        if let Some((peer, notify)) = peer.zip(error)
            && inside != Some(None)
            && errors(response).all(|error| peer.goes_on_after(error))
        {
            let (name, peer) = (None, peer.name.clone());
            ctx.refused(Some(peer), Refusal::ChildRefused { name, notify });
            let inside = inside.flatten();
            let mut state = Established::begin(keys, beginning, (inside, None), core, ctx);
            if let State::Established(established) = &mut state {
                established.put_off(None, ctx);
            }
            return state;
        }
        let first = peer.and_then(|peer| Some((peer, peer.policy(None)?)));
        let child = match (self.child.zip(first), error) {
            // Regardless of the rest of the response: "an implementation receiving a Notify payload
            // with one of these types that it does not recognize in a response MUST assume that the
            // corresponding request has failed entirely" (RFC 7296 section 3.10.1). Known errors
            // name the failed part.
            (_, Some(NotifyType::AUTHENTICATION_FAILED)) => {
                Err(core.proof_refused(response, None, ctx))
            }
            (_, Some(notify)) => Err(DownReason::ChildRefused { notify }),
            (Some(_), None) if inside == Some(None) => Err(DownReason::NoAddress),
            (Some((offer, (peer, first))), None) => offer
                .settle((peer, &first), addresses, response, keys.first_child())
                .map(|agreed| Some(agreed.terms(Vec::new()))),
            (None, None) => Ok(None),
        };
        match child {
            Ok(child) => {
                let carried = child.as_ref().map(|terms| terms.remote.clone());
                let inside = inside.flatten().map(|inside| Inside {
                    carried: carried.unwrap_or_default(),
                    ..inside
                });
                Established::begin(keys, beginning, (inside, child), core, ctx)
            }
            Err(why) => Closing::begin(keys, why, core, ctx),
        }
    }

    /// Returns our CERT payloads, and those of our proof: AUTH and, with a PPK in our keys, its
    /// name and the AUTH value without it if the PPK is optional. `id` is the message ID of
    /// IKE_AUTH.
    fn proofs(
        &self,
        (first, id): (&[u8], u32),
        peer: &Peer,
        config: &Config,
    ) -> Result<(Vec<Payload>, Vec<Payload>), DownReason> {
        let intermediate = self.covered.octets(true, id);
        let by = |roots: &Roots| {
            let claim = Claim {
                message: first,
                nonce: &self.keys.nonce_r,
                proof_key: &roots.own_proof,
                id: &config.identity.clone().into(),
                intermediate: &intermediate,
            };
            prove(self.method, &claim, peer, config)
        };
        let Some((stirred, ppk)) = self.stirred.as_ref().zip(peer.ppk.as_ref()) else {
            let (certificates, proof) = by(&self.keys.roots)?;
            return Ok((certificates, vec![Payload::Authentication(proof)]));
        };
        let (certificates, proof) = by(stirred)?;
        let mut proofs = vec![Payload::Authentication(proof), ppk::identity(ppk)];
        if !ppk.required {
            let (_, proof) = by(&self.keys.roots)?;
            proofs.push(ppk::no_ppk_auth(proof));
        }
        Ok((certificates, proofs))
    }

    /// Continues with the keys that the responder chose: "If it does not receive the PPK_IDENTITY,
    /// it MUST either fail the IKE SA negotiation ... or continue without using the PPK" (RFC 8784
    /// section 3).
    fn settle_ppk(
        &mut self,
        response: &Message,
        core: &Core,
        ctx: &Context<'_>,
    ) -> Result<(), DownReason> {
        let ours = core.ppk(ctx.config);
        match self.stirred.take().filter(|_| ppk::is_confirmed(response)) {
            Some(stirred) => self.keys.roots = stirred,
            None if ours.is_some_and(|ours| ours.required) => return Err(DownReason::NoPpk),
            None => {}
        }
        Ok(())
    }

    fn verify(
        &self,
        proof: &Proof<'_>,
        response: &Message,
        core: &Core,
        ctx: &Context<'_>,
    ) -> Result<PeerProved, DownReason> {
        let peer = core.peer(ctx.config).ok_or(DownReason::WrongKey)?;
        if proof.id.identity != peer.identity {
            return Err(DownReason::WrongIdentity {
                theirs: proof.id.identity.clone(),
                expected: peer.identity.clone(),
            });
        }
        let claim = Claim {
            message: &self.response,
            nonce: &self.keys.nonce_i,
            proof_key: &self.keys.roots.peer_proof,
            id: proof.id,
            intermediate: &self.covered.octets(true, response.header.message_id),
        };
        let (proof, known) = (proof.proof, peer.key.as_deref());
        let signed = signature::is_verified(proof.method);
        match &peer.psk {
            Some(psk) if !signed => claim.verify(proof, psk).ok_or(DownReason::WrongKey),
            None if !signed => Err(signature::missed(peer, proof.method).into()),
            _ => {
                signature::is_expected(peer, response)?;
                let (config, today) = (ctx.config, ctx.today);
                let verified = signature::verify(&claim, proof, response, known, config, today);
                Ok(verified?)
            }
        }
    }
}

/// Returns the size of our request if IP has to fragment it.
pub(super) fn uncut(core: &Core, config: &Config) -> Option<Uncut> {
    let longest = core.requests.longest()?;
    Uncut::of(longest, core.path, core.limit, config)
}

/// Returns our CERT payloads, if any, and our AUTH.
fn prove(
    method: Option<AuthMethod>,
    claim: &Claim<'_>,
    peer: &Peer,
    config: &Config,
) -> Result<(Vec<Payload>, Authentication), DownReason> {
    if let Some(psk) = &peer.psk {
        return Ok((Vec::new(), claim.prove(psk)));
    }
    let by = config.credential.as_ref().zip(method);
    by.and_then(|(credential, method)| credential.prove(method, claim, peer))
        .ok_or(DownReason::CannotSign)
}

/// Returns the reason for which a response has no AUTH payload.
fn refusal(response: &Message, ppk: Option<&Ppk>, core: &Core, ctx: &Context<'_>) -> DownReason {
    match first_error(response) {
        Some(NotifyType::AUTHENTICATION_FAILED) => core.proof_refused(response, ppk, ctx),
        Some(notify @ (NotifyType::INVALID_SYNTAX | NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD)) => {
            DownReason::Unreadable { notify }
        }
        Some(notify) => DownReason::ChildRefused { notify },
        None => DownReason::NotOffered("no AUTH payload"),
    }
}
