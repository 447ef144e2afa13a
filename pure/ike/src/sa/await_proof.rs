//! Responder: the first message of SKID3 was answered, and the third one is awaited
//! (`extension/skid.rs`).
//!
//! The initiator knows the keys of the entry, but its message may be a copy. It has its place among
//! the half-open SAs, and nothing of what was agreed on has happened yet.

use super::admission::{self, Agreed, Basis, Candidate, Traits};
use super::arrived::{Arrived, Complaint, Postponed};
use super::closing::{Ending, Lingering};
use super::established::Next;
use super::protected;
use super::turn::{Context, Turn, Verdict};
use crate::allowed_suites::group_named;
use crate::attempt::Offer;
use crate::auth::PeerProved;
use crate::auth::responder::judge;
use crate::auth::transcript::Transcript;
use crate::config::Peer;
use crate::counters::DropReason;
use crate::exchange::auth::initiator_identity;
use crate::exchange::create_child::Offered;
use crate::exchange::init::NONCE_LEN;
use crate::exchange::{find, key_exchange, nonce, rules};
use crate::extension::configuration::Lending;
use crate::extension::fragment::Outgoing;
use crate::extension::{nat, reauth, redirect, skid};
use crate::keys::{Inputs, UnprovedKeys, first_cipher};
use crate::refusal::{NotResumed, Refusal};
use crypto::Secret;
use model::{Deadline, Instant, PeerId};
use resumption::{Entry, Operation, OperationId, Ticket, Way};
use wire::ike::{Datagram, ExchangeType, Message, Payload};

pub(crate) struct AwaitProof {
    keys: UnprovedKeys,
    entry: Entry,
    ticket: Ticket,
    /// Both messages so far.
    transcript: Transcript,
    /// The first one, once open.
    request: Message,
    traits: Traits,
    /// The peer that the second message is for, or the table of a user.
    peer: PeerId,
    agreed: Agreed,
    /// Version of the configuration by which both ends have agreed.
    version: u64,
    /// The third message, while the store is taking the entry.
    postponed: Option<(Box<Postponed>, PeerProved)>,
    expires: Instant,
}

/// A first message whose entry is there.
pub(super) struct Presented<'a> {
    /// Its clear payloads.
    pub(super) clear: &'a Message,
    pub(super) octets: Vec<u8>,
    /// True if its source address is verified.
    pub(super) paid: bool,
    pub(super) entry: Entry,
    pub(super) ticket: Ticket,
    /// Time by which the initiator has to prove itself.
    pub(super) until: Instant,
}

/// What follows a message.
pub(crate) enum Proving {
    /// The third one is still awaited, or the store.
    Waits(Box<AwaitProof>),
    /// The IKE SA is up, or has ended.
    Done(Next),
}

impl AwaitProof {
    /// Answers a first message with the payloads `opening` before the sealed ones, the first of
    /// which is our nonce. The public value of a key exchange follows it.
    pub(super) fn begin(
        presented: Presented<'_>,
        ours: [u8; NONCE_LEN],
        opening: &mut Vec<Payload>,
        turn: &mut Turn<'_, '_>,
    ) -> Result<Box<Self>, Refusal> {
        let Presented {
            clear,
            octets,
            paid,
            entry,
            ticket,
            until,
        } = presented;
        let theirs = nonce(clear).expect("it was there before the store was asked");
        let path = turn.core.path;
        let request = open(clear, &octets, &entry, theirs)
            .ok_or_else(|| refusal(&entry, NotResumed::WrongProof))?;
        let known = judge(&entry, &request, path.remote.ip(), turn.ctx.config)?;
        // One of many identities has the settings of all, and addresses of its own.
        let user = known.users.is_some();
        let user = user.then(|| known.user(known.id, entry.identity.clone()));
        let peer = user.as_ref().unwrap_or(known);
        turn.core.nat = nat::detect(&request, path);
        let spis = [turn.core.spi_i, turn.core.spi_r];
        let inputs = Inputs::of_session(&entry.keys, [theirs, &ours], spis, false);
        let shared = exchange_keys(&entry, &request, peer, opening, turn)?;
        let mut keys =
            UnprovedKeys::resumed_by_skid(&entry.keys, &octets, shared.as_ref(), &inputs);
        let traits = Traits {
            private: true,
            willing: redirect::is_willing(&request),
            elsewhere: redirect::elsewhere(&request, path.local.ip(), turn.ctx.config),
            group: entry.group,
            usage: Some(entry.usage),
        };
        let candidate = Candidate {
            peer,
            request: &request,
            path,
            traits: &traits,
            chain: entry.chain.clone(),
            lending: Lending::Held,
        };
        let basis = Basis {
            suite: entry.keys.suite,
            kems: &entry.keys.kems,
            child: keys.first_child(),
        };
        let mut agreed = candidate.agree(basis, turn).map_err(|(_, why)| why)?;
        let mut payloads = vec![Payload::IdResponder(
            turn.ctx.config.identity.clone().into(),
        )];
        let lifetime = admission::lifetime(peer, traits.usage, turn);
        payloads.extend(reauth::announcement(lifetime));
        payloads.append(&mut agreed.payloads);
        let header = turn.core.header(ExchangeType::SKID_RESUME, 0, true);
        let answer = keys
            .cipher
            .seal_behind(opening, &Message { header, payloads });
        if !paid && !skid::is_short_enough(&octets, &answer) {
            return Err(refusal(&entry, NotResumed::TooLong));
        }
        turn.ctx.transmit(path, &answer);
        let kept = Outgoing::clear(answer.clone());
        turn.core.responses.answered(0, kept, path.remote);
        Ok(Box::new(Self {
            keys,
            entry,
            ticket,
            transcript: Transcript {
                first: octets,
                second: answer,
            },
            peer: table(peer.id, turn),
            request,
            traits,
            agreed,
            version: turn.ctx.config.version,
            postponed: None,
            expires: until,
        }))
    }

    /// Moves the end of the SA, as `AwaitAuth::extend` does.
    pub(crate) const fn extend(&mut self, expires: Instant) {
        self.expires = expires;
    }

    pub(super) fn handle(
        mut self: Box<Self>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Proving {
        let header = arrived.datagram.header();
        if header.flags.response || !skid::is_meant(header) {
            turn.ctx.drop(DropReason::UnexpectedExchange);
            return Proving::Waits(self);
        }
        match protected::accept_request(turn, &mut self.keys.cipher, arrived) {
            None => Proving::Waits(self),
            Some(Err(Complaint { why, notify })) => {
                let why = Refusal::Misbehaved(why);
                self.end(Payload::Notify(notify), why, arrived, turn)
            }
            Some(Ok(request)) => self.verify(request, arrived, turn),
        }
    }

    /// Has the store take the entry of an initiator that proved itself. Nothing else happens before
    /// the outcome: another initiator may have been faster.
    fn verify(
        mut self: Box<Self>,
        request: Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Proving {
        let proof = find(&request, |payload| match payload {
            Payload::Authentication(proof) => Some(proof),
            _ => None,
        });
        let sk_pi = &self.keys.roots.peer_proof;
        let chain = self.entry.chain.clone();
        let evidence = proof.and_then(|proof| self.transcript.verify(sk_pi, proof, chain));
        let Some(evidence) = evidence else {
            let why = refusal(&self.entry, NotResumed::WrongProof);
            return self.refuse(why, arrived, turn);
        };
        let id = OperationId(turn.core.id.0);
        let take = Operation::Take(id, self.ticket.clone());
        turn.ctx.tickets.submit(take);
        self.postponed = Some((Postponed::new(request, arrived), evidence));
        Proving::Waits(self)
    }

    /// Continues after the store has taken the entry, or did not find it.
    pub(super) fn handle_taken(
        mut self: Box<Self>,
        was_there: bool,
        turn: &mut Turn<'_, '_>,
    ) -> Proving {
        let Some((postponed, evidence)) = self.postponed.take() else {
            return Proving::Waits(self);
        };
        let arrived = postponed.arrived();
        if !was_there {
            let why = refusal(&self.entry, NotResumed::Spent);
            return self.refuse(why, &arrived, turn);
        }
        if self.version != turn.ctx.config.version {
            let why = refusal(&self.entry, NotResumed::Reconfigured);
            return self.refuse(why, &arrived, turn);
        }
        // The proof may come from another address than the first message.
        let address = arrived.path.remote.ip();
        let peer = match judge(&self.entry, &self.request, address, turn.ctx.config) {
            Ok(peer) if table(peer.id, turn) == self.peer => peer,
            Ok(peer) => {
                let identity = peer.identity.clone();
                return self.refuse(Refusal::WrongAddress { identity, address }, &arrived, turn);
            }
            Err(why) => return self.refuse(why, &arrived, turn),
        };
        if turn.ctx.applies(peer, &self.entry.identity, address) {
            drop(arrived);
            self.postponed = Some((postponed, evidence));
            return Proving::Waits(self);
        }
        self.admit(peer.id, &postponed, &evidence, turn)
    }

    /// Continues with an initiator that has proved itself, as the engine decided.
    pub(super) fn handle_verdict(
        mut self: Box<Self>,
        verdict: &Verdict,
        turn: &mut Turn<'_, '_>,
    ) -> Proving {
        let Some((postponed, evidence)) = self.postponed.take() else {
            return Proving::Waits(self);
        };
        match verdict.refusal.clone() {
            None => self.admit(verdict.peer, &postponed, &evidence, turn),
            Some(why) => self.refuse(why, &postponed.arrived(), turn),
        }
    }

    /// Brings the IKE SA up.
    fn admit(
        self: Box<Self>,
        peer: PeerId,
        postponed: &Postponed,
        evidence: &PeerProved,
        turn: &mut Turn<'_, '_>,
    ) -> Proving {
        let arrived = postponed.arrived();
        let Some(peer) = turn.ctx.config.peer(peer) else {
            let why = Refusal::UnknownIdentity(self.entry.identity.clone());
            return self.refuse(why, &arrived, turn);
        };
        if turn.ctx.is_barred(peer.id) {
            return self.refuse(Refusal::TakenDown, &arrived, turn);
        }
        if !self.agreed.lend(peer, &self.request, turn) {
            let why = refusal(&self.entry, NotResumed::OtherAddress);
            return self.refuse(why, &arrived, turn);
        }
        turn.core.peer = Some(peer.id);
        admission::settle_path(&arrived, turn);
        turn.ctx.attempt(turn.core, self.offer());
        let Self {
            keys,
            traits,
            agreed,
            ..
        } = *self;
        let mut keys = keys.proved(evidence);
        let answer = agreed.open(peer, &traits, &postponed.request, &keys, turn);
        protected::respond(turn, &mut keys.cipher, &arrived, answer);
        let session = agreed.begin(keys, turn);
        Proving::Done(admission::check_path(session, &arrived, turn))
    }

    pub(super) fn is_over(&self, ctx: &Context<'_>) -> bool {
        self.expires <= ctx.now
    }

    pub(super) const fn deadline(&self) -> Deadline {
        Deadline {
            at: self.expires,
            reason: "an initiator has not authenticated",
        }
    }

    fn refuse(
        self: Box<Self>,
        why: Refusal,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Proving {
        let (config, now) = (turn.ctx.config, turn.ctx.now);
        let claimed = initiator_identity(&self.request);
        let claimed = claimed.and_then(|claimed| config.claimed(claimed));
        let attempts = &mut turn.ctx.out.attempts;
        attempts.refuse(turn.core, claimed, config, self.offer(), why.clone(), now);
        self.end(skid::failure(), why, arrived, turn)
    }

    /// Returns what the initiator offers.
    fn offer(&self) -> Offer {
        let mut offer = Offer::default();
        offer.read_auth(&self.request, true, true);
        offer
    }

    /// Ends the SA, which keeps its place among the half-open ones until it would have expired.
    fn end(
        mut self: Box<Self>,
        answer: Payload,
        why: Refusal,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Proving {
        turn.ctx.out.counters.refused += 1;
        turn.ctx.refused_unknown_peer(arrived.path.remote, why);
        protected::respond(turn, &mut self.keys.cipher, arrived, vec![answer]);
        Proving::Done(Next::Ended(Ending::Lingering(Lingering::until(
            self.expires,
        ))))
    }
}

#[cfg(test)]
impl AwaitProof {
    /// For tests that open messages on their own.
    pub(crate) const fn cipher(&self) -> &crate::cipher::Cipher {
        &self.keys.cipher
    }

    pub(crate) const fn cipher_mut(&mut self) -> &mut crate::cipher::Cipher {
        &mut self.keys.cipher
    }
}

/// Returns the first message with its sealed payloads, if the initiator knows the keys of the entry
/// and the message is as it should be.
fn open(clear: &Message, octets: &[u8], entry: &Entry, theirs: &[u8]) -> Option<Message> {
    let Ok(Datagram::Sealed(sealed)) = Datagram::decode(octets) else {
        return None;
    };
    let cipher = first_cipher(&entry.keys, theirs, clear.header.spi_i, false);
    let content = cipher.open(&sealed).ok()?;
    let inside = content.message(clear.header).ok()?;
    let whole = skid::whole(clear.header, &clear.payloads, inside.payloads);
    let is_sound = rules::check(&whole).is_ok() && whole.unsupported_critical().is_none();
    is_sound.then_some(whole)
}

/// Answers the key exchange of a first message, if the entry requires one, and returns the shared
/// secret. Nothing is computed before the message is authentic.
fn exchange_keys(
    entry: &Entry,
    request: &Message,
    peer: &Peer,
    opening: &mut Vec<Payload>,
    turn: &mut Turn<'_, '_>,
) -> Result<Option<Secret>, Refusal> {
    let theirs = key_exchange(request);
    if (entry.keys.way == Way::Skid3Pfs) != theirs.is_some() {
        return Err(refusal(entry, NotResumed::WrongProof));
    }
    let Some(theirs) = theirs else {
        return Ok(None);
    };
    let group = group_named(theirs.group).filter(|group| peer.groups.contains(group));
    let answer = group.and_then(|_| Offered::answer(theirs, turn.ctx.rng));
    let (public, (_, shared)) = answer.ok_or_else(|| refusal(entry, NotResumed::TooLittle))?;
    turn.ctx.out.counters.key_pairs += 1;
    opening.insert(1, public);
    Ok(Some(shared))
}

/// Returns the table of a user, or the peer itself.
fn table(peer: PeerId, turn: &Turn<'_, '_>) -> PeerId {
    turn.ctx.config.users.table(peer).unwrap_or(peer)
}

fn refusal(entry: &Entry, why: NotResumed) -> Refusal {
    Refusal::NotResumed {
        claimed: entry.identity.clone(),
        why,
    }
}
