//! Responder: IKE_SA_INIT was answered, and IKE_AUTH is awaited, or the negotiated additional key
//! exchanges before it (RFC 9370).
//!
//! The initiator is not authenticated. It costs us one key agreement and this state. The engine
//! keeps a bounded number of such states for a bounded time. The initiator learns as little as
//! possible: an unknown identity and a wrong key lead to the same answer after the same work. Our
//! own log has the difference.

use super::State;
use super::admission::{self, Proved};
use super::arrived::Arrived;
use super::arrived::Complaint;
use super::closing::{Ending, Lingering};
use super::established::Next;
use super::protected;
use super::turn::{Context, Turn};
use crate::allowed_suites::group_id;
use crate::attempt::{Offer, of_initiator};
use crate::auth::{Claim, PeerProved, Proof};
use crate::bad_proof::BadProof;
use crate::cipher::Cipher;
use crate::config::{Config, Peer};
use crate::counters::DropReason;
use crate::down_reason::PeerMisbehaved;
use crate::exchange::auth::{Presented, responder_identity};
use crate::exchange::init::{self, Init, NONCE_LEN};
use crate::exchange::{is_ours, key_exchange, notify, rules, vendor_id};
use crate::extension::cookie;
use crate::extension::fragment::{self, Outgoing};
use crate::extension::intermediate::IntAuth;
use crate::extension::nat;
use crate::extension::ppk::{self, BadPpk, Choice};
use crate::extension::{childless, intermediate, padding, redirect};
use crate::keys::{Inputs, UnprovedKeys};
use crate::peer_table::PeerTable;
use crate::proof::OwnProof;
use crate::proposal::choose_ike;
use crate::refusal::Refusal;
use crate::signature::{self, NotVerified};
use crate::task::follow;
use crate::window::Responses;
use crypto::{Secret, UnixTime, sha256};
use model::{Deadline, Group, Identity, Instant, Kem};
use std::collections::VecDeque;
use std::net::IpAddr;
use wire::ike::{AuthMethod, Datagram, ExchangeType, Message, NotifyType, Payload};

pub(crate) struct AwaitAuth {
    pub(crate) keys: UnprovedKeys,
    /// Both IKE_SA_INIT messages, which the AUTH payloads cover.
    request: Vec<u8>,
    response: Vec<u8>,
    group: Group,
    pub(crate) private: bool,
    /// Method by which we sign for the initiator, if we sign at all.
    method: Option<Result<AuthMethod, NotVerified>>,
    /// True if the initiator supports redirection.
    willing: bool,
    elsewhere: Option<IpAddr>,
    /// True if both ends announced PPKs.
    ppk: bool,
    /// The additional key exchanges that are still to come.
    left: VecDeque<Kem>,
    covered: IntAuth,
    /// Cipher of the last additional key exchange, for a retransmitted request with other
    /// fragments.
    previous: Option<Cipher>,
    expires: Instant,
}

/// Conditions for answering an unauthenticated initiator.
#[derive(Clone, Copy)]
pub(crate) struct HalfOpenTerms {
    /// True if its source address is verified.
    pub(crate) paid: bool,
    /// Time by which it has to authenticate.
    pub(crate) until: Instant,
}

/// Reason for which a first message is not answered with a public value.
pub(crate) enum Rejected {
    /// The public value is invalid.
    BadValue,
    /// The message is dropped and counted.
    Dropped(DropReason),
    /// An unprotected notify answers the message.
    Answered(NotifyType, Vec<u8>),
    /// The answer would be longer than the request, whose source address is not verified.
    Unpaid,
}

impl AwaitAuth {
    /// Answers a first message: derives keys, and sends the response.
    pub(crate) fn begin(
        request: &Message,
        octets: &[u8],
        terms: HalfOpenTerms,
        turn: &mut Turn<'_, '_>,
    ) -> Result<State, Rejected> {
        let drop = Rejected::Dropped;
        if let Some(kind) = request.unsupported_critical() {
            let kind = vec![kind.0];
            return Err(Rejected::Answered(
                NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD,
                kind,
            ));
        }
        rules::check(request).map_err(|_| drop(DropReason::WrongPayloads))?;
        let init = Init::read(request).ok_or(drop(DropReason::WrongPayloads))?;
        let elsewhere = redirect::elsewhere(request, turn.core.path.local.ip(), turn.ctx.config);
        if let Some(to) = elsewhere.filter(|_| redirect::is_at_once(turn.ctx.config)) {
            let data = redirect::data(to, init.nonce);
            return Err(Rejected::Answered(NotifyType::REDIRECT, data));
        }
        let mut allowed = turn.ctx.config.menu.clone();
        if !intermediate::is_supported(request) {
            allowed.kems.retain(Option::is_none);
        }
        let Some(choice) = choose_ike(init.proposals, &allowed) else {
            let why = Refusal::no_ike_proposal(turn.ctx.config.menu.clone());
            refuse_first(request, why.clone(), turn);
            turn.ctx.refused_unknown_peer(turn.core.path.remote, why);
            return Err(Rejected::Answered(
                NotifyType::NO_PROPOSAL_CHOSEN,
                Vec::new(),
            ));
        };
        if init.key.group != group_id(choice.group) {
            let wanted = group_id(choice.group).0.to_be_bytes().to_vec();
            return Err(Rejected::Answered(NotifyType::INVALID_KE_PAYLOAD, wanted));
        }
        let nonce: [u8; NONCE_LEN] = turn.ctx.rng.array();
        let mut payloads = nat::payloads(
            turn.core.spi_i,
            turn.core.spi_r,
            turn.core.path,
            turn.ctx.config,
            turn.ctx.rng,
        )
        .to_vec();
        payloads.extend(signature::requests(
            turn.ctx.config,
            turn.ctx.config.signing,
        ));
        payloads.extend(signature::announcement(turn.ctx.config));
        payloads.push(childless::payload());
        turn.core.limit = fragment::agreed(request, turn.ctx.config);
        payloads.extend(turn.core.limit.and(fragment::payload(turn.ctx.config)));
        let ppk = turn.ctx.config.ppks && ppk::is_offered(request);
        payloads.extend(ppk.then(ppk::payload));
        let further = !choice.kems.is_empty();
        payloads.extend(further.then(intermediate::payload));
        let private = is_ours(request);
        payloads.extend(private.then(vendor_id));
        let header = turn.core.header(ExchangeType::IKE_SA_INIT, 0, true);
        let response = |public: &[u8]| {
            let answer = vec![choice.answer.clone()];
            let first = init::payloads(answer, choice.group, public, &nonce);
            let payloads = [first, payloads.clone()].concat();
            Message { header, payloads }.encode()
        };
        // Our public value is as long as the peer's, and is not computed for an initiator that does
        // not get it.
        if !terms.paid && !padding::is_enough(octets, &response(&init.key.public)) {
            return Err(Rejected::Unpaid);
        }
        let key = init::key_pair_for(&init.key.public, choice.group, turn.ctx.rng);
        let key = key.map_err(|_| Rejected::BadValue)?;
        turn.ctx.out.counters.key_pairs += 1;
        let response = response(key.public());
        let shared = key.agree(&init.key.public);
        let shared = shared.map_err(|_| Rejected::BadValue)?;
        turn.ctx.transmit(turn.core.path, &response);
        turn.core.responses.came(0, sha256(&[octets]));
        let to = turn.core.path.remote;
        let kept = Outgoing::clear(response.clone());
        turn.core.responses.answered(0, kept, to);
        let keys = UnprovedKeys::derive(Inputs {
            suite: choice.suite,
            prf: choice.prf,
            shared,
            nonce_i: init.nonce,
            nonce_r: &nonce,
            spi_i: turn.core.spi_i,
            spi_r: turn.core.spi_r,
            initiator: false,
        });
        turn.core.nat = nat::detect(request, turn.core.path);
        Ok(State::AwaitAuth(Box::new(Self {
            keys,
            request: octets.to_vec(),
            response,
            group: choice.group,
            private,
            method: turn
                .ctx
                .config
                .credential
                .as_ref()
                .map(|credential| signature::method(credential, request)),
            willing: redirect::is_willing(request),
            elsewhere,
            ppk,
            left: choice.kems.into(),
            covered: IntAuth::default(),
            previous: None,
            expires: terms.until,
        })))
    }

    /// Replaces the answered first message by another one that differs only in its cookie, and
    /// returns true if it did.
    ///
    /// While the number of half-open SAs crosses the threshold, copies of a first message may be
    /// answered directly or with a cookie request, in any order. The AUTH of an initiator that had
    /// to return a cookie covers the message with the cookie, regardless of which copy was
    /// answered.
    pub(crate) fn takes_with_cookie(
        &mut self,
        message: &Message,
        octets: &[u8],
        responses: &Responses,
    ) -> bool {
        let same = match Datagram::decode(&self.request) {
            Ok(Datagram::Clear(before)) => cookie::is_all_that_differs(&before, message),
            Ok(Datagram::Sealed(_)) | Err(_) => false,
        };
        let takes = same && responses.is_newest(0);
        if takes {
            self.request = octets.to_vec();
        }
        takes
    }

    /// Moves the end of the SA. An initiator that retransmits its first message may have lost every
    /// response so far, and needs the SA that the next one is about.
    pub(crate) const fn extend(&mut self, expires: Instant) {
        self.expires = expires;
    }

    pub(super) fn handle(
        mut self: Box<Self>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let header = arrived.datagram.header();
        let is_last = turn.core.responses.is_answered(header.message_id);
        let repeated = match arrived.datagram {
            Datagram::Clear(_) => true,
            Datagram::Sealed(_) => is_last && intermediate::is_covered(header),
        };
        if header.flags.response || (header.exchange != self.awaited() && !repeated) {
            turn.ctx.drop(DropReason::UnexpectedExchange);
            return State::AwaitAuth(self);
        }
        let cipher = match &mut self.previous {
            Some(previous) if is_last => previous,
            _ => &mut self.keys.cipher,
        };
        match protected::accept_request(turn, cipher, arrived) {
            None => State::AwaitAuth(self),
            Some(Err(Complaint { why, notify })) => {
                turn.ctx
                    .refused_unknown_peer(arrived.path.remote, Refusal::Misbehaved(why));
                let payloads = vec![Payload::Notify(notify)];
                protected::respond(turn, &mut self.keys.cipher, arrived, payloads);
                self.linger()
            }
            Some(Ok(request)) if intermediate::is_covered(&request.header) => {
                self.exchange(&request, arrived, turn)
            }
            Some(Ok(request)) => self.conclude(&request, arrived, turn),
        }
    }

    pub(super) fn handle_timeout(self: Box<Self>, ctx: &Context<'_>) -> State {
        match self.expires <= ctx.now {
            true => State::GONE,
            false => State::AwaitAuth(self),
        }
    }

    pub(super) const fn deadline(&self) -> Deadline {
        Deadline {
            at: self.expires,
            reason: "an initiator has not authenticated",
        }
    }

    /// Returns the exchange that has to come next: all negotiated key exchanges in their order,
    /// then IKE_AUTH.
    fn awaited(&self) -> ExchangeType {
        match self.left.is_empty() {
            true => ExchangeType::IKE_AUTH,
            false => ExchangeType::IKE_INTERMEDIATE,
        }
    }

    /// Answers an additional key exchange, and continues with the new keys.
    fn exchange(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let asked = self.left.pop_front().zip(key_exchange(request));
        let agreed = asked.and_then(|(kem, asked)| {
            let (answer, shared) = intermediate::answer(kem, asked).ok()?;
            Some((answer, (kem, shared)))
        });
        let Some((answer, (kem, shared))) = agreed else {
            turn.ctx.refused_unknown_peer(
                arrived.path.remote,
                Refusal::Misbehaved(PeerMisbehaved::BadKem),
            );
            turn.ctx.out.counters.refused += 1;
            let payloads = vec![notify(NotifyType::INVALID_SYNTAX, Vec::new())];
            protected::respond(turn, &mut self.keys.cipher, arrived, payloads);
            return self.linger();
        };
        protected::respond(turn, &mut self.keys.cipher, arrived, vec![answer]);
        self.covered
            .add(&self.keys.roots, &mut turn.core.transcript);
        let (spi_i, spi_r) = (turn.core.spi_i, turn.core.spi_r);
        let keys = self.keys.renewed(kem, shared, spi_i, spi_r, false);
        self.previous = Some(std::mem::replace(&mut self.keys, keys).cipher);
        State::AwaitAuth(self)
    }

    /// Ends the SA, which keeps its place among the half-open ones until it would have expired.
    fn linger(&self) -> State {
        Ending::Lingering(Lingering::until(self.expires)).into()
    }

    fn conclude(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let verified = self
            .verify(
                request,
                arrived.path.remote.ip(),
                turn.ctx.config,
                turn.ctx.today,
            )
            .and_then(|(peer, proved)| {
                Ok((peer, proved, self.prove(peer, request, turn.ctx.config)?))
            });
        let (peer, proved, ours) = match verified {
            Ok(verified) => verified,
            Err(why) => {
                self.refuse(request, &why, turn);
                turn.ctx.out.counters.refused += 1;
                let mut payloads = vec![notify(NotifyType::AUTHENTICATION_FAILED, Vec::new())];
                if let (Refusal::BadProof { why, .. }, true) = (&why, self.private) {
                    payloads.extend(signature::explanation(why));
                }
                turn.ctx.refused_unknown_peer(arrived.path.remote, why);
                protected::respond(turn, &mut self.keys.cipher, arrived, payloads);
                return self.linger();
            }
        };
        turn.core.peer = Some(peer.name.clone());
        turn.core.path = match turn.core.path.remote.ip() == arrived.path.remote.ip() {
            true => arrived.path,
            false => nat::float(turn.core.path, turn.ctx.config.natt_port),
        };
        turn.ctx.attempt(
            turn.core,
            of_initiator(&self.request, Some(request), self.private),
        );
        let proved = Proved {
            peer,
            keys: self.keys.proved(proved),
            ours,
            private: self.private,
            willing: self.willing,
            elsewhere: self.elsewhere,
            group: self.group,
        };
        match admission::admit(proved, request, arrived, turn) {
            Next::Up(mut session) if turn.core.path != arrived.path => {
                follow::check_beginning(&mut session, arrived, turn);
                State::Established(session)
            }
            next => next.into(),
        }
    }

    /// Records the claims of an unauthenticated initiator, and its refusal.
    fn refuse(&self, request: &Message, why: &Refusal, turn: &mut Turn<'_, '_>) {
        let config = turn.ctx.config;
        let claimed = why
            .claimed()
            .and_then(|claimed| config.named(claimed).next());
        let theirs = of_initiator(&self.request, Some(request), self.private);
        let attempts = &mut turn.ctx.out.attempts;
        attempts.refuse(
            turn.core,
            claimed,
            config,
            theirs,
            why.clone(),
            turn.ctx.now,
        );
    }

    /// Identifies and authenticates the initiator. The work is the same for an unknown identity or
    /// PPK.
    fn verify<'c>(
        &mut self,
        request: &Message,
        from: IpAddr,
        config: &'c PeerTable,
        today: UnixTime,
    ) -> Result<(&'c Peer, PeerProved), Refusal> {
        let Presented { id, proof } =
            Presented::of_initiator(request).ok_or(Refusal::AuthenticationMethod)?;
        let identity = &id.identity;
        let found = find_peer(config, identity, from);
        let choice = self.mix_ppk(found.as_ref().ok().copied(), request);
        let mut proof = proof.clone();
        if let Ok(Choice::WithoutBy(data)) = &choice {
            proof.data = data.to_vec();
        }
        let bad_ppk = |why| Refusal::BadPpk {
            claimed: identity.clone(),
            why,
        };
        let claim = Claim {
            message: &self.request,
            nonce: &self.keys.nonce_r,
            proof_key: &self.keys.roots.peer_proof,
            id,
            intermediate: &self.covered.octets(false, request.header.message_id),
        };
        if signature::is_verified(proof.method) {
            let known = found.as_ref().ok();
            let known = known.and_then(|peer| Proof::of(peer).known_key());
            let verified = signature::verify(&claim, &proof, request, known, config, today);
            let verified = verified.map_err(|why| match (why, &choice) {
                // The refusal reveals as little as with any wrong PPK.
                (BadProof::WrongSignature | BadProof::WrongKey, Err(why)) if self.ppk => {
                    bad_ppk(why.clone())
                }
                (BadProof::WrongSignature | BadProof::WrongKey, _) if self.ppk => {
                    bad_ppk(BadPpk::Wrong)
                }
                (why, _) => bad_proof(identity, why),
            });
            let named = found.and_then(|peer| {
                is_meant(request, config)?;
                let expected = signature::is_expected(Proof::of(peer), request);
                expected.map_err(|why| bad_proof(identity, why))?;
                Ok(peer)
            });
            // A certificate reveals its owner to everyone, a raw public key only to its own peer.
            let looked_at = config.signing.certificates && signature::is_certified(request);
            let (peer, proved) = match looked_at {
                true => verified.and_then(|proved| Ok((named?, proved)))?,
                false => named.and_then(|peer| Ok((peer, verified?)))?,
            };
            choice.map_err(bad_ppk)?;
            return Ok((peer, proved));
        }
        let nobodys = Secret::new(vec![0; 32]);
        let psk = match found.as_ref().map(|peer| Proof::of(peer)) {
            Ok(Proof::Psk(psk)) => psk,
            Ok(Proof::Signature | Proof::RawKey(_)) | Err(_) => &nobodys,
        };
        let verified = claim.verify(&proof, psk);
        let peer = found?;
        is_meant(request, config)?;
        let expected = Proof::of(peer);
        if expected.is_signature() {
            let why = signature::missed(expected, proof.method);
            return Err(bad_proof(identity, why));
        }
        let wrong = match choice.map_err(bad_ppk)? {
            Choice::Use(_) => bad_ppk(BadPpk::Wrong),
            Choice::Without | Choice::WithoutBy(_) => Refusal::WrongKey(identity.clone()),
        };
        verified.map(|proved| (peer, proved)).ok_or(wrong)
    }

    /// Decides about the initiator's PPK, and mixes it into the keys if it is used.
    fn mix_ppk<'a>(
        &mut self,
        peer: Option<&'a Peer>,
        request: &'a Message,
    ) -> Result<Choice<'a>, BadPpk> {
        let ours = peer.and_then(|peer| peer.ppk.as_deref());
        let choice = ppk::choose(self.ppk, ours, request);
        if self.ppk {
            let nobodys = Secret::new(vec![0; 32]);
            let (secret, used) = match &choice {
                Ok(Choice::Use(ppk)) => (&ppk.secret, true),
                _ => (&nobodys, false),
            };
            let with_ppk = self.keys.roots.with_ppk(secret);
            if used {
                self.keys.roots = with_ppk;
            }
        }
        choice
    }

    /// Returns our CERT payloads, if any, and our AUTH.
    fn prove(&self, peer: &Peer, request: &Message, config: &Config) -> Result<OwnProof, Refusal> {
        let claim = Claim {
            message: &self.response,
            nonce: &self.keys.nonce_i,
            proof_key: &self.keys.roots.own_proof,
            id: &config.identity.clone().into(),
            intermediate: &self.covered.octets(false, request.header.message_id),
        };
        let proof = Proof::of(peer);
        let method = match proof {
            Proof::Psk(_) => None,
            Proof::Signature | Proof::RawKey(_) => Some(self.method.ok_or(Refusal::CannotProve)??),
        };
        OwnProof::new(proof, method, &claim, config).ok_or(Refusal::CannotProve)
    }
}

/// Records the offer of an initiator whose first request is refused.
fn refuse_first(request: &Message, why: Refusal, turn: &mut Turn<'_, '_>) {
    let mut theirs = Offer::default();
    theirs.read_init(request);
    let attempts = &mut turn.ctx.out.attempts;
    attempts.refuse(turn.core, None, turn.ctx.config, theirs, why, turn.ctx.now);
}

/// Returns an error if the initiator names another responder identity than ours.
fn is_meant(request: &Message, config: &Config) -> Result<(), Refusal> {
    match responder_identity(request).filter(|id| **id != config.identity) {
        None => Ok(()),
        Some(wanted) => Err(Refusal::NotWhoWeAre {
            wanted: wanted.clone(),
            ours: config.identity.clone(),
        }),
    }
}

/// Returns the peer with an identity, preferably the one configured for this address, otherwise one
/// without an address.
fn find_peer<'c>(
    config: &'c PeerTable,
    identity: &Identity,
    from: IpAddr,
) -> Result<&'c Peer, Refusal> {
    let named = || config.named(identity);
    if named().next().is_none() {
        return Err(Refusal::UnknownIdentity(identity.clone()));
    }
    named()
        .find(|peer| peer.address == Some(from))
        .or_else(|| named().find(|peer| peer.address.is_none()))
        .ok_or_else(|| Refusal::WrongAddress {
            identity: identity.clone(),
            address: from,
        })
}

fn bad_proof(claimed: &Identity, why: BadProof) -> Refusal {
    Refusal::BadProof {
        claimed: claimed.clone(),
        why,
    }
}
