//! Initiator: IKE_AUTH was sent, and its response is awaited.
//!
//! The keys are fresh, but the other end is unknown until the responder's AUTH has been verified.
//! Only then can keys of child SAs be derived.

use super::State;
use super::admission;
use super::arrived::Arrived;
use super::closing::Ending;
use super::core::Core;
use super::protected;
use super::turn::Turn;
use crate::allowed_suites::AllowedEspSuites;
use crate::auth::{Claim, PeerProved, Proof};
use crate::child::{ChildConfig, Offer};
use crate::config::{Config, Peer, PeerRole};
use crate::down_reason::DownReason;
use crate::exchange::auth::Presented;
use crate::exchange::{first_error, notify};
use crate::extension::configuration::{self};
use crate::extension::fragment::Uncut;
use crate::extension::intermediate::IntAuth;
use crate::extension::mobike::{self};
use crate::extension::mode::ModeContext;
use crate::extension::ppk::{self, Ppk};
use crate::extension::tcp;
use crate::extension::{clone, contact, overlap, resource};
use crate::keys::{Roots, UnprovedKeys};
use crate::proof::OwnProof;
use crate::signature::{self, Signing};
use std::time::Duration;
use wire::ike::{AuthMethod, ExchangeType, Message, NotifyType, Payload};

pub(crate) struct AuthSent {
    pub(crate) keys: UnprovedKeys,
    /// True if both ends announced PPKs.
    pub(super) ppk: bool,
    /// The roots with our PPK mixed in. The response tells if the responder has this PPK.
    pub(super) with_ppk: Option<Roots>,
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
    pub(super) fn begin(mut self, first: &[u8], turn: &mut Turn<'_, '_>) -> State {
        let Some(peer) = turn.core.peer(turn.ctx.config) else {
            return State::GONE;
        };
        let ppk = peer.ppk.as_ref().filter(|_| self.ppk);
        self.with_ppk = ppk.map(|ours| self.keys.roots.with_ppk(&ours.secret));
        let id = turn.core.requests.next_id();
        let (certificates, proofs) = match self.proofs(first, id, peer, turn.ctx.config) {
            Ok(proofs) => proofs,
            Err(why) => return Ending::gone(why, turn).into(),
        };
        let mut payloads = vec![Payload::IdInitiator(
            turn.ctx.config.identity.clone().into(),
        )];
        if !turn.ctx.is_acquainted() {
            payloads.push(contact::payload());
        }
        payloads.extend(certificates);
        payloads.extend(signature::requests(
            turn.ctx.config,
            Signing::of(std::slice::from_ref(peer)),
        ));
        payloads.push(Payload::IdResponder(peer.identity.clone().into()));
        payloads.extend(proofs);
        let first = peer.policy(None);
        let ground = ModeContext::new(turn.core.path, turn.core.nat, self.private);
        let offer = first.map(|first| {
            let menu = AllowedEspSuites::of(peer, Vec::new());
            let spis = turn.ctx.spis(turn.core.id, None);
            Offer::new(menu, &first, ground, self.private, spis)
        });
        self.child = match offer.transpose() {
            Ok(offer) => offer,
            Err(why) => return Ending::gone(why.into(), turn).into(),
        };
        if let PeerRole::Vpn {
            local, addressing, ..
        } = &peer.role
        {
            payloads.extend(configuration::request(addressing, local));
        }
        let child = self.child.iter().zip(&first);
        payloads.extend(child.flat_map(|(offer, policy)| {
            offer.payloads(ChildConfig {
                peer,
                policy,
                addresses: None,
            })
        }));
        if peer.may_move() {
            payloads.extend(mobike::supported(
                &turn.ctx.config.addresses,
                turn.core.path.local.ip(),
            ));
        }
        payloads.extend(
            peer.features
                .forbids_nat
                .then(|| mobike::no_nats_allowed(turn.core.path)),
        );
        payloads.extend(peer.features.clones.then(clone::supported));
        payloads.extend(resource::supported(peer));
        payloads.extend(overlap::announcement(peer));
        let allowed = turn.ctx.config.timers.give_up;
        let exchange = ExchangeType::IKE_AUTH;
        protected::request(turn, &mut self.keys.cipher, exchange, payloads, allowed);
        let uncut = uncut(turn.core, turn.ctx.config);
        turn.ctx.out.attempts.learn_uncut(turn.core, uncut);
        State::AuthSent(Box::new(self))
    }

    pub(super) fn handle(self: Box<Self>, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) -> State {
        match protected::accept_unproved(turn, &self.keys.cipher, arrived) {
            None => State::AuthSent(self),
            Some(Err(complaint)) => {
                Ending::gone(DownReason::Misbehaved(complaint.why), turn).into()
            }
            Some(Ok(mut response)) => {
                if !self.private {
                    response.forget_private();
                }
                self.conclude(&response, turn)
            }
        }
    }

    /// Gives up, as no response arrived.
    pub(super) fn give_up(self: Box<Self>, turn: &mut Turn<'_, '_>) -> State {
        let port = turn.core.path.remote.port();
        let why = match uncut(turn.core, turn.ctx.config) {
            Some(uncut) => DownReason::LongAuthUnanswered(uncut),
            None => DownReason::AuthUnanswered { port },
        };
        tcp::unanswered(why, turn).into()
    }

    fn conclude(mut self: Box<Self>, response: &Message, turn: &mut Turn<'_, '_>) -> State {
        let private = self.private;
        turn.ctx.out.attempts.learn(turn.core, |theirs| {
            theirs.read_auth(response, false, private)
        });
        let Some(proof) = Presented::of_responder(response) else {
            let ppk = turn
                .core
                .ppk(turn.ctx.config)
                .filter(|_| self.with_ppk.is_some());
            return Ending::gone(refusal(response, ppk, turn), turn).into();
        };
        let settled = self.conclude_ppk(response, turn);
        let proved = match settled.and_then(|()| self.verify(&proof, response, turn)) {
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
                protected::request(turn, cipher, exchange, payloads, Duration::ZERO);
                return Ending::gone(why, turn).into();
            }
        };
        let keys = self.keys.proved(proved);
        admission::accept(keys, self.private, self.child, response, turn).into()
    }

    /// Returns our CERT payloads, and those of our proof: AUTH and, with a PPK in our keys, its
    /// name and the AUTH value without it if the PPK is optional. `id` is the message ID of
    /// IKE_AUTH.
    fn proofs(
        &self,
        first: &[u8],
        id: u32,
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
            let proof = OwnProof::new(Proof::of(peer), self.method, &claim, config);
            proof.ok_or(DownReason::CannotSign)
        };
        let Some((with_ppk, ppk)) = self.with_ppk.as_ref().zip(peer.ppk.as_ref()) else {
            let own = by(&self.keys.roots)?;
            let proof = Payload::Authentication(own.authentication);
            return Ok((own.certificates, vec![proof]));
        };
        let own = by(with_ppk)?;
        let proof = Payload::Authentication(own.authentication);
        let mut proofs = vec![proof, ppk::identity(ppk)];
        if !ppk.required {
            let without = by(&self.keys.roots)?;
            proofs.push(ppk::no_ppk_auth(without.authentication));
        }
        Ok((own.certificates, proofs))
    }

    /// Continues with the keys that the responder chose: "If it does not receive the PPK_IDENTITY,
    /// it MUST either fail the IKE SA negotiation ... or continue without using the PPK" (RFC 8784
    /// section 3).
    fn conclude_ppk(&mut self, response: &Message, turn: &Turn<'_, '_>) -> Result<(), DownReason> {
        let ours = turn.core.ppk(turn.ctx.config);
        match self.with_ppk.take().filter(|_| ppk::is_confirmed(response)) {
            Some(with_ppk) => self.keys.roots = with_ppk,
            None if ours.is_some_and(|ours| ours.required) => return Err(DownReason::NoPpk),
            None => {}
        }
        Ok(())
    }

    fn verify(
        &self,
        proof: &Presented<'_>,
        response: &Message,
        turn: &Turn<'_, '_>,
    ) -> Result<PeerProved, DownReason> {
        let peer = turn
            .core
            .peer(turn.ctx.config)
            .ok_or(DownReason::WrongKey)?;
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
        let (proof, expected) = (proof.proof, Proof::of(peer));
        match (expected, signature::is_verified(proof.method)) {
            (Proof::Psk(psk), false) => claim.verify(proof, psk).ok_or(DownReason::WrongKey),
            (_, false) => Err(signature::missed(expected, proof.method).into()),
            (_, true) => {
                signature::is_expected(expected, response)?;
                let (config, today) = (turn.ctx.config, turn.ctx.today);
                let known = expected.known_key();
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

/// Returns the reason for which a response has no AUTH payload.
fn refusal(response: &Message, ppk: Option<&Ppk>, turn: &Turn<'_, '_>) -> DownReason {
    match first_error(response) {
        Some(NotifyType::AUTHENTICATION_FAILED) => turn.proof_refused(response, ppk),
        Some(notify @ (NotifyType::INVALID_SYNTAX | NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD)) => {
            DownReason::Unreadable { notify }
        }
        Some(notify) => DownReason::ChildRefused { notify },
        None => DownReason::NotOffered("no AUTH payload"),
    }
}
