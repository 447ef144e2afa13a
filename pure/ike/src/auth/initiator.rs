//! The initiator's part of the proofs in IKE_AUTH.
//!
//! The keys are fresh, but the other end is unknown until the responder's AUTH has been verified.
//! Only then can keys of child SAs be derived.

use super::handshake::Handshake;
use super::{PeerProved, Proof, Proved, Step};
use crate::config::Peer;
use crate::down_reason::DownReason;
use crate::exchange::auth::Presented;
use crate::exchange::first_error;
use crate::extension::ppk::{self, Ppk};
use crate::keys::Roots;
use crate::sa::turn::Turn;
use crate::signature::{self, Signing};
use wire::ike::{AuthMethod, Message, NotifyType, Payload};

/// The proofs of an IKE SA that we initiate.
pub(crate) struct Initiator {
    pub(crate) handshake: Handshake,
    /// Method by which we sign, if we do.
    method: Option<AuthMethod>,
    /// True if both ends announced PPKs.
    ppk: bool,
    /// The roots with our PPK mixed in. The response tells if the responder has this PPK.
    with_ppk: Option<Roots>,
    /// Message ID of the first round.
    first: u32,
    /// The certificates of the responder's last full proof, if a session is resumed.
    resumed: Option<Vec<Vec<u8>>>,
}

/// The end of IKE_AUTH without a proof of the responder.
pub(crate) struct Failed {
    pub(crate) why: DownReason,
    /// True if the responder considers the SA up, so that it has to be informed (RFC 7296 section
    /// 2.21.2).
    pub(crate) is_up_there: bool,
}

impl Failed {
    /// The SA is up at neither end.
    const fn before(why: DownReason) -> Self {
        let is_up_there = false;
        Self { why, is_up_there }
    }

    /// The responder has proved, or pretends to have proved, that it accepts our proof.
    const fn after(why: DownReason) -> Self {
        let is_up_there = true;
        Self { why, is_up_there }
    }
}

impl Initiator {
    pub(crate) const fn new(handshake: Handshake, method: Option<AuthMethod>, ppk: bool) -> Self {
        Self {
            handshake,
            method,
            ppk,
            with_ppk: None,
            first: 0,
            resumed: None,
        }
    }

    /// Creates the proofs of a session that is resumed. `chain` has the certificates of the
    /// responder's last full proof.
    pub(crate) fn resumed(handshake: Handshake, chain: Vec<Vec<u8>>) -> Self {
        Self {
            resumed: Some(chain),
            ..Self::new(handshake, None, false)
        }
    }

    pub(crate) const fn is_resumed(&self) -> bool {
        self.resumed.is_some()
    }

    /// Returns the proof, or the payloads of the next request. There is no response before the
    /// first one.
    pub(crate) fn step<'p, 'c: 'p>(
        &mut self,
        response: Option<&'p Message>,
        turn: &mut Turn<'_, 'c>,
    ) -> Result<Step<'p>, Failed> {
        match response {
            None => self.prove(turn).map(Step::More).map_err(Failed::before),
            Some(response) => self.conclude(response, turn).map(Step::Done),
        }
    }

    /// Returns the payloads of our proof: CERT, CERTREQ, the identity that we expect, AUTH and,
    /// with a PPK in our keys, its name and the AUTH value without it if the PPK is optional.
    fn prove(&mut self, turn: &Turn<'_, '_>) -> Result<Vec<Payload>, DownReason> {
        let (peer, config) = (known(turn)?, turn.ctx.config);
        self.first = turn.core.requests.next_id();
        let ppk = peer.ppk.as_ref().filter(|_| self.ppk);
        self.with_ppk = ppk.map(|ours| self.handshake.keys.roots.with_ppk(&ours.secret));
        let by = |roots: &Roots| {
            let proof = match &self.resumed {
                Some(_) => Proof::Resumed,
                None => Proof::of(peer),
            };
            let own = self
                .handshake
                .prove(roots, self.first, proof, self.method, config);
            own.ok_or(DownReason::CannotSign)
        };
        let own = by(self.with_ppk.as_ref().unwrap_or(&self.handshake.keys.roots))?;
        let mut payloads = own.certificates;
        if !self.is_resumed() {
            let signing = Signing::of(std::slice::from_ref(peer));
            let trust = peer.certificate.trust(&config.trust);
            payloads.extend(signature::requests(trust.authorities(), signing));
        }
        payloads.push(Payload::IdResponder(peer.identity.clone().into()));
        payloads.push(Payload::Authentication(own.authentication));
        if let Some(ppk) = ppk {
            payloads.push(ppk::identity(ppk));
            if !ppk.required {
                let without = by(&self.handshake.keys.roots)?;
                payloads.push(ppk::no_ppk_auth(without.authentication));
            }
        }
        Ok(payloads)
    }

    fn conclude<'p, 'c: 'p>(
        &mut self,
        response: &'p Message,
        turn: &Turn<'_, 'c>,
    ) -> Result<Proved<'p>, Failed> {
        let Some(presented) = Presented::of_responder(response) else {
            let ppk = turn.core.ppk(turn.ctx.config);
            let ppk = ppk.filter(|_| self.with_ppk.is_some());
            return Err(Failed::before(refusal(response, ppk, turn)));
        };
        let settled = self.conclude_ppk(response, turn);
        let proved = settled.and_then(|()| {
            let peer = known(turn)?;
            let evidence = self.verify(peer, &presented, response, turn)?;
            Ok(Proved {
                peer,
                evidence,
                message: response,
                payloads: Vec::new(),
            })
        });
        proved.map_err(Failed::after)
    }

    /// Continues with the keys that the responder chose: "If it does not receive the PPK_IDENTITY,
    /// it MUST either fail the IKE SA negotiation ... or continue without using the PPK" (RFC 8784
    /// section 3).
    fn conclude_ppk(&mut self, response: &Message, turn: &Turn<'_, '_>) -> Result<(), DownReason> {
        let ours = turn.core.ppk(turn.ctx.config);
        let is_mixed_in = self.handshake.keys.roots.ppk;
        match self.with_ppk.take().filter(|_| ppk::is_confirmed(response)) {
            Some(with_ppk) => self.handshake.keys.roots = with_ppk,
            None if !is_mixed_in && ours.is_some_and(|ours| ours.required) => {
                return Err(DownReason::NoPpk);
            }
            None => {}
        }
        Ok(())
    }

    fn verify(
        &self,
        peer: &Peer,
        presented: &Presented<'_>,
        response: &Message,
        turn: &Turn<'_, '_>,
    ) -> Result<PeerProved, DownReason> {
        if presented.id.identity != peer.identity {
            return Err(DownReason::WrongIdentity {
                theirs: presented.id.identity.clone(),
                expected: peer.identity.clone(),
            });
        }
        let intermediate = self.handshake.intermediate(self.first);
        let claim = self.handshake.peer_claim(presented.id, &intermediate);
        let (proof, expected) = (presented.proof, Proof::of(peer));
        if let Some(chain) = &self.resumed {
            let proved = claim.verify_keys(proof, chain.clone());
            return proved.ok_or(DownReason::NotResumed);
        }
        match (expected, signature::is_verified(proof.method)) {
            (Proof::Psk(psk), false) => claim.verify(proof, psk).ok_or(DownReason::WrongKey),
            (_, false) => Err(signature::missed(expected, proof.method).into()),
            (_, true) => {
                signature::is_expected(expected, response)?;
                let (config, today) = (turn.ctx.config, turn.ctx.today);
                let known = expected.known_key();
                let verified = signature::verify(&claim, proof, response, known, config, today);
                let verified = verified?;
                signature::check_terms(peer, response, config, today)?;
                Ok(verified)
            }
        }
    }
}

/// Returns the peer, unless the configuration lost it.
fn known<'c>(turn: &Turn<'_, 'c>) -> Result<&'c Peer, DownReason> {
    let peer = turn.core.peer(turn.ctx.config);
    peer.ok_or(DownReason::WrongKey)
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
