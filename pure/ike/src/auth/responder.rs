//! The responder's part of the proofs in IKE_AUTH.
//!
//! The initiator learns as little as possible: an unknown identity and a wrong key lead to the same
//! answer after the same work. Our own log has the difference.

use super::handshake::Handshake;
use super::{PeerProved, Proof, Proved, Step, proof};
use crate::bad_proof::BadProof;
use crate::certificate_terms;
use crate::config::{Config, Peer};
use crate::exchange::auth::{Presented, initiator_identity, responder_identity};
use crate::extension::ppk::{self, BadPpk, Choice};
use crate::peer_table::PeerTable;
use crate::refusal::{NotResumed, Refusal};
use crate::sa::turn::{Turn, Verdict};
use crate::signature::{self, NotVerified};
use crypto::{Secret, UnixTime};
use model::{Identity, Unique};
use resumption::{Entry, Ticket, Usage};
use std::net::IpAddr;
use wire::ike::{AuthMethod, Message, Payload};

/// The proofs of an IKE SA that a peer initiates.
pub(crate) struct Responder {
    pub(crate) handshake: Handshake,
    /// Method by which we sign for the initiator, if we sign at all.
    method: Option<Result<AuthMethod, NotVerified>>,
    /// True if both ends announced PPKs.
    ppk: bool,
    resumed: Option<Box<Resumed>>,
    /// The evidence of an initiator about whom the engine has to decide, and the decision.
    undecided: Option<PeerProved>,
    verdict: Option<Verdict>,
}

/// The session that an initiator resumes.
pub(crate) struct Resumed {
    entry: Entry,
    ticket: Ticket,
    /// True if the store has taken the entry for this initiator.
    is_taken: bool,
}

impl Resumed {
    pub(crate) const fn new(entry: Entry, ticket: Ticket) -> Self {
        Self {
            entry,
            ticket,
            is_taken: false,
        }
    }
}

/// A round of IKE_AUTH at its responder.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    /// The first request, which has the identity that the initiator claims.
    pub(crate) first: &'a Message,
    /// The request of this round.
    pub(crate) request: &'a Message,
    /// Its source address.
    pub(crate) from: IpAddr,
}

impl Responder {
    pub(crate) const fn new(
        handshake: Handshake,
        method: Option<Result<AuthMethod, NotVerified>>,
        ppk: bool,
    ) -> Self {
        Self {
            handshake,
            method,
            ppk,
            resumed: None,
            undecided: None,
            verdict: None,
        }
    }

    /// Creates the proofs of a session that is resumed.
    pub(crate) fn resumed(handshake: Handshake, resumed: Resumed) -> Self {
        Self {
            resumed: Some(Box::new(resumed)),
            ..Self::new(handshake, None, false)
        }
    }

    /// Returns the entry that has to be taken out of the store before the initiator is admitted.
    pub(crate) fn to_take(&self) -> Option<Ticket> {
        let resumed = self.resumed.as_ref().filter(|resumed| !resumed.is_taken);
        resumed.map(|resumed| resumed.ticket.clone())
    }

    /// Notes that the store has taken the entry.
    pub(crate) fn note_taken(&mut self) {
        if let Some(resumed) = &mut self.resumed {
            resumed.is_taken = true;
        }
    }

    /// Notes the engine's decision about an initiator that has proved itself.
    pub(crate) fn note_verdict(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
    }

    /// Returns the reason for which the engine does not let the initiator come.
    pub(crate) fn refusal(&mut self) -> Option<Refusal> {
        self.verdict.as_mut()?.refusal.take()
    }

    /// Returns the use of the last full proof so far, if a session is resumed.
    pub(crate) fn usage(&self) -> Option<Usage> {
        Some(self.resumed.as_ref()?.entry.usage)
    }

    /// Returns the proof, or the payloads of the response that asks for another round; `None` if
    /// the engine has to decide about an initiator that is proved. The same step follows once more.
    pub(crate) fn step<'p, 'c: 'p>(
        &mut self,
        round: Round<'p>,
        turn: &mut Turn<'_, 'c>,
    ) -> Result<Option<Step<'p>>, Refusal> {
        let config = turn.ctx.config;
        let identity = initiator_identity(round.request).ok_or(Refusal::AuthenticationMethod)?;
        let (peer, evidence) = match self.undecided.take() {
            Some(evidence) => (self.decided(identity, config)?, evidence),
            None => match &self.resumed {
                Some(resumed) => self.verify_resumed(&resumed.entry, round, config)?,
                None => self.verify(round, config, turn.ctx.today)?,
            },
        };
        // The store comes first: another initiator may be faster.
        let is_open = self.verdict.is_none() && self.to_take().is_none();
        if is_open && turn.ctx.applies(peer, identity, round.from) {
            self.undecided = Some(evidence);
            return Ok(None);
        }
        let payloads = self.prove(peer, round.first.header.message_id, config)?;
        Ok(Some(Step::Done(Proved {
            peer,
            evidence,
            message: round.first,
            payloads,
        })))
    }

    /// Returns the peer that the engine has decided about.
    fn decided<'c>(&self, identity: &Identity, config: &'c PeerTable) -> Result<&'c Peer, Refusal> {
        let verdict = self.verdict.as_ref();
        let peer = verdict.and_then(|verdict| config.peer(verdict.peer));
        peer.ok_or_else(|| Refusal::UnknownIdentity(identity.clone()))
    }

    /// Identifies and authenticates the initiator. The work is the same for an unknown identity or
    /// PPK.
    fn verify<'c>(
        &mut self,
        round: Round<'_>,
        config: &'c PeerTable,
        today: UnixTime,
    ) -> Result<(&'c Peer, PeerProved), Refusal> {
        let Round {
            first,
            request,
            from,
        } = round;
        let Presented { id, proof } =
            Presented::of_initiator(request).ok_or(Refusal::AuthenticationMethod)?;
        let identity = &id.identity;
        let found = find_peer(config, identity, from, &signature::chain(request));
        let choice = self.mix_ppk(found.as_ref().ok().copied(), request);
        let mut proof = proof.clone();
        if let Ok(Choice::WithoutBy(data)) = &choice {
            proof.data = data.to_vec();
        }
        let bad_ppk = |why| Refusal::BadPpk {
            claimed: identity.clone(),
            why,
        };
        let intermediate = self.handshake.intermediate(first.header.message_id);
        let claim = self.handshake.peer_claim(id, &intermediate);
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
            let meets = signature::check_terms(peer, request, config, today);
            meets.map_err(|why| bad_proof(identity, why))?;
            return Ok((peer, proved));
        }
        let nobodys = Secret::new(vec![0; 32]);
        let psk = match found.as_ref().map(|peer| Proof::of(peer)) {
            Ok(Proof::Psk(psk)) => psk,
            Ok(Proof::Signature | Proof::RawKey(_) | Proof::Resumed) | Err(_) => &nobodys,
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

    /// Identifies and authenticates the initiator of a session that is resumed.
    fn verify_resumed<'c>(
        &self,
        entry: &Entry,
        round: Round<'_>,
        config: &'c PeerTable,
    ) -> Result<(&'c Peer, PeerProved), Refusal> {
        let presented = Presented::of_initiator(round.request);
        let Presented { id, proof } = presented.ok_or(Refusal::AuthenticationMethod)?;
        let refuse = |why| Refusal::NotResumed {
            claimed: id.identity.clone(),
            why,
        };
        let claim = self.handshake.peer_claim(id, &[]);
        let proved = claim.verify_keys(proof, entry.chain.clone());
        let proved = proved.ok_or_else(|| refuse(NotResumed::WrongProof))?;
        let peer = judge(entry, round.request, round.from, config)?;
        Ok((peer, proved))
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
            let with_ppk = self.handshake.keys.roots.with_ppk(secret);
            if used {
                self.handshake.keys.roots = with_ppk;
            }
        }
        choice
    }

    /// Returns the payloads of our proof: our identity, CERT if we have any, AUTH, and the
    /// confirmation of a PPK in our keys.
    fn prove(&self, peer: &Peer, first: u32, config: &Config) -> Result<Vec<Payload>, Refusal> {
        let proof = match self.resumed {
            Some(_) => Proof::Resumed,
            None => Proof::of(peer),
        };
        let method = match proof.is_signature() {
            false => None,
            true => Some(self.method.ok_or(Refusal::CannotProve)??),
        };
        let roots = &self.handshake.keys.roots;
        let own = self.handshake.prove(roots, first, proof, method, config);
        let own = own.ok_or(Refusal::CannotProve)?;
        let mut payloads = vec![Payload::IdResponder(config.identity.clone().into())];
        payloads.extend(own.certificates);
        payloads.push(Payload::Authentication(own.authentication));
        payloads.extend((roots.ppk && self.ppk).then(ppk::confirmation));
        Ok(payloads)
    }
}

/// Returns the peer whose session an entry resumes, if `request` is about that peer and us. What
/// the entry proves has to be what is required today.
pub(crate) fn judge<'c>(
    entry: &Entry,
    request: &Message,
    from: IpAddr,
    config: &'c PeerTable,
) -> Result<&'c Peer, Refusal> {
    let claimed = initiator_identity(request).ok_or(Refusal::AuthenticationMethod)?;
    let refuse = |why| Refusal::NotResumed {
        claimed: claimed.clone(),
        why,
    };
    if *claimed != entry.identity {
        return Err(refuse(NotResumed::OtherIdentity));
    }
    let peer = find_peer(config, claimed, from, &entry.chain)?;
    is_meant(request, config)?;
    let keys = &entry.keys;
    if !peer.resumption.allows(keys.way) || peer.unique == Unique::Never {
        return Err(refuse(NotResumed::Off));
    }
    let lacks_ppk = peer.ppk.as_ref().is_some_and(|ppk| ppk.required) && !keys.ppk;
    let is_allowed = peer.accepts_keys(keys.suite, entry.group, &keys.kems);
    if Proof::of(peer).kind() != Some(entry.proof) || lacks_ppk || !is_allowed {
        return Err(refuse(NotResumed::TooLittle));
    }
    if proof::fingerprint(peer, keys, config) != entry.credential {
        return Err(refuse(NotResumed::OtherCredential));
    }
    let trust = peer.certificate.trust(&config.trust);
    match trust.revoked_since(&entry.chain, entry.usage.since) {
        Some(revoked) => Err(bad_proof(claimed, revoked.into())),
        None => Ok(peer),
    }
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
/// without an address. If there is none, one that stands for the identity among many: of several,
/// the one that the certificates claim.
fn find_peer<'c>(
    config: &'c PeerTable,
    identity: &Identity,
    from: IpAddr,
    chain: &[Vec<u8>],
) -> Result<&'c Peer, Refusal> {
    let named = || config.named(identity);
    let first = named().next();
    if first.is_none_or(|first| first.id.is_user()) {
        let tables = config.tables_for(identity);
        let terms: Vec<_> = tables.iter().map(|table| &table.certificate).collect();
        let place = certificate_terms::select(&terms, chain);
        let place = place.map_err(|why| bad_proof(identity, why))?;
        let table = tables.get(place).copied();
        let is_of = |user: &&Peer| config.users.table(user.id) == table.map(|table| table.id);
        let user = first.filter(is_of).or(table);
        return user.ok_or_else(|| Refusal::UnknownIdentity(identity.clone()));
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
