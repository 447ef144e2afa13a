//! Initiator: IKE_SESSION_RESUME (RFC 5723 section 4.3.2) or SKID_RESUME (`extension/skid.rs`) was
//! sent with a ticket, and its response is awaited.
//!
//! No message in this state is authenticated, except the second one of SKID3 once it is open. A
//! refusal, or silence, begins a full exchange beside this attempt (`engine/resumption.rs`). An
//! acceptable response that comes later still counts.

use super::admission::{self, FirstRequest};
use super::arrived::Arrived;
use super::established::Next;
use super::first_answer;
use super::turn::{NotResumed, Turn};
use crate::allowed_suites::groups_of;
use crate::attempt;
use crate::auth::handshake::Handshake;
use crate::auth::initiator::Initiator;
use crate::auth::transcript::Transcript;
use crate::auth::{PeerProved, Proved};
use crate::child::Offer;
use crate::cipher::Cipher;
use crate::counters::DropReason;
use crate::exchange::auth::responder_identity;
use crate::exchange::create_child::Offered;
use crate::exchange::init::NONCE_LEN;
use crate::exchange::{find_notify, first_error, is_ours, key_exchange, nonce, rules, vendor_id};
use crate::extension::fragment::{self, Outgoing};
use crate::extension::{childless, cookie, nat, redirect, skid, ticket};
use crate::keys::{Inputs, UnprovedKeys, first_cipher};
use crate::shown::Shown;
use crate::task::confirm;
use crate::tickets::Held;
use crypto::Secret;
use model::Instant;
use resumption::Way;
use wire::ike::{Datagram, ExchangeType, Header, Message, NotifyType, Payload, Sealed};

pub(crate) struct ResumeSent {
    held: Held,
    nonce: [u8; NONCE_LEN],
    cookie: Option<Vec<u8>>,
    cookies: u32,
    /// The payloads after nonce and ticket.
    extensions: Vec<Payload>,
    /// The last message sent, which AUTH covers.
    sent: Vec<u8>,
    began: Instant,
    /// True if a full exchange has begun beside.
    is_doubtful: bool,
    /// True if somebody has refused the ticket.
    is_refused: bool,
    /// What the first message of SKID3 has in its Encrypted payload.
    enclosed: Option<Enclosed>,
}

struct Enclosed {
    cipher: Cipher,
    /// Our half of the key exchange, if there is one.
    key: Option<Offered>,
    payloads: Vec<Payload>,
    /// The child SA that they request; `None` for a role without child SAs.
    child: Option<Offer>,
}

/// What follows a response.
pub(crate) enum Resuming {
    /// An acceptable one is still awaited.
    Waits(Box<ResumeSent>),
    /// The gateway knows the ticket. IKE_AUTH follows.
    Answered {
        /// The proofs of IKE_AUTH, including the keys.
        proof: Box<Initiator>,
        /// True if the responder understands our private numbers.
        private: bool,
    },
    /// The gateway has proved itself by SKID3: the IKE SA is up, or has ended.
    Done(Next),
}

/// The second message of SKID3, once it is open.
struct Second {
    message: Message,
    keys: UnprovedKeys,
}

impl ResumeSent {
    /// Presents a ticket. `None`: what has to be in the first message cannot be asked for yet.
    pub(crate) fn begin(held: Held, turn: &mut Turn<'_, '_>) -> Option<Box<Self>> {
        let nonce = turn.ctx.rng.array();
        let enclosed = match held.keys.way {
            Way::Ticket => None,
            Way::Skid3 | Way::Skid3Pfs => Some(Enclosed::new(&held, &nonce, turn)?),
        };
        turn.ctx.attempt(turn.core, attempt::Offer::default());
        let (spi_i, path) = (turn.core.spi_i, turn.core.path);
        let mut extensions = nat::payloads(spi_i, 0, path, turn.ctx.config, turn.ctx.rng).to_vec();
        extensions.extend(fragment::payload(turn.ctx.config));
        let peer = turn.core.peer(turn.ctx.config);
        extensions.extend(peer.and_then(|peer| redirect::willing(peer, None)));
        extensions.push(vendor_id());
        let mut state = Box::new(Self {
            held,
            nonce,
            cookie: None,
            cookies: 0,
            extensions,
            sent: Vec::new(),
            began: turn.ctx.now,
            is_doubtful: false,
            is_refused: false,
            enclosed,
        });
        state.send(turn);
        Some(state)
    }

    pub(super) fn handle(
        mut self: Box<Self>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Resuming {
        let header = arrived.datagram.header();
        if !header.flags.response || !turn.core.requests.awaits(header) {
            turn.ctx.drop(DropReason::UnexpectedExchange);
            return Resuming::Waits(self);
        }
        let response = match &arrived.datagram {
            Datagram::Clear(response) => response,
            Datagram::Sealed(sealed) => match self.open(sealed, arrived, turn) {
                Ok(second) => return self.conclude(second, arrived, turn),
                Err(why) => {
                    turn.ctx.drop(why);
                    return Resuming::Waits(self);
                }
            },
        };
        if let Some(cookie) = cookie::asked(response) {
            return self.send_cookie(cookie, turn);
        }
        // A redirection is followed in the full exchange, where its sender has to know our nonce.
        let is_redirected = find_notify(response, NotifyType::REDIRECT).is_some();
        if ticket::is_refused(response) || is_redirected || first_error(response).is_some() {
            turn.ctx.drop(DropReason::Unauthenticated);
            self.is_refused = true;
            self.doubt(turn);
            return Resuming::Waits(self);
        }
        if self.enclosed.is_some() {
            turn.ctx.drop(DropReason::WrongPayloads);
            return Resuming::Waits(self);
        }
        match self.read(response, arrived, turn) {
            Ok(nonce) => self.proceed(&nonce, arrived, response, turn),
            Err(why) => {
                turn.ctx.drop(why);
                Resuming::Waits(self)
            }
        }
    }

    /// Has a full exchange begun beside this attempt, once.
    fn doubt(&mut self, turn: &mut Turn<'_, '_>) {
        turn.core.refused = true;
        if !std::mem::replace(&mut self.is_doubtful, true) {
            turn.ctx.out.not_resumed.push(NotResumed::from(&*turn.core));
        }
    }

    /// Has a full exchange begun beside this attempt if nothing has been heard of the gateway for
    /// long. One that has asked for a cookie is there.
    pub(crate) fn note_silence(&mut self, turn: &mut Turn<'_, '_>) {
        if self.cookie.is_none() && turn.ctx.now - self.began >= ticket::LOST {
            self.doubt(turn);
        }
    }

    /// Notes that the first message is sent once more. Returns false if it must not be: its ticket
    /// was seen on another network. On networks that are not known, it is repeated.
    pub(crate) fn note_shown(&mut self, turn: &Turn<'_, '_>) -> bool {
        let (before, now) = (self.held.shown, turn.ctx.sources.shown(turn.core.path));
        self.held.shown = before.and(now);
        before == now || self.held.shown != Shown::Anywhere
    }

    /// Gives up, as no acceptable response arrived. A gateway that is away for longer knows the
    /// ticket when it is back.
    pub(super) fn give_up(self, turn: &mut Turn<'_, '_>) {
        if !self.is_refused {
            turn.ctx.tickets.put_back(turn.core.peer_id(), self.held);
        }
    }

    fn send(&mut self, turn: &mut Turn<'_, '_>) {
        let mut payloads = vec![
            Payload::Nonce(self.nonce.to_vec()),
            ticket::presentation(self.held.keys.way, &self.held.ticket),
        ];
        payloads.extend(self.extensions.iter().cloned());
        if let Some(cookie) = &self.cookie {
            payloads.insert(0, cookie::payload(cookie));
        }
        let exchange = match self.held.keys.way {
            Way::Ticket => ExchangeType::IKE_SESSION_RESUME,
            Way::Skid3 | Way::Skid3Pfs => ExchangeType::SKID_RESUME,
        };
        let header = turn.core.header(exchange, 0, false);
        let octets = match &mut self.enclosed {
            None => Message { header, payloads }.encode(),
            Some(enclosed) => enclosed.seal(header, &payloads),
        };
        turn.ctx.transmit(turn.core.path, &octets);
        self.note_shown(turn);
        self.sent.clone_from(&octets);
        let timers = &turn.ctx.config.timers;
        let parcel = Outgoing::clear(octets);
        turn.core
            .requests
            .sent(&header, parcel, timers.give_up, timers, turn.ctx.now);
        turn.ctx.out.attempts.sent(turn.core, false);
    }

    fn send_cookie(mut self: Box<Self>, cookie: &[u8], turn: &mut Turn<'_, '_>) -> Resuming {
        if self.cookies == cookie::MAX_ROUNDS {
            turn.ctx.drop(DropReason::RepeatedTooOften);
        } else {
            turn.ctx.count_taken();
            self.cookies += 1;
            self.cookie = Some(cookie.to_vec());
            self.send(turn);
        }
        Resuming::Waits(self)
    }

    /// Opens the second message of SKID3. Until then, nothing in it is believed.
    fn open(
        &self,
        sealed: &Sealed<'_>,
        arrived: &Arrived<'_>,
        turn: &Turn<'_, '_>,
    ) -> Result<Second, DropReason> {
        let Some(enclosed) = &self.enclosed else {
            return Err(DropReason::UnexpectedExchange);
        };
        let clear = sealed.clear().map_err(|_| DropReason::WrongPayloads)?;
        let theirs = self.nonce_of(&clear)?;
        let shared = enclosed.agree(&clear)?;
        let old = &self.held.keys;
        let spis = [turn.core.spi_i, clear.header.spi_r];
        let inputs = Inputs::of_session(old, [&self.nonce, &theirs], spis, true);
        let keys = UnprovedKeys::resumed_by_skid(old, &self.sent, shared.as_ref(), &inputs);
        let content = keys.cipher.open(sealed).map_err(|_| DropReason::BadIcv)?;
        let inside = content.message(clear.header);
        let inside = inside.map_err(|_| DropReason::WrongPayloads)?;
        let message = skid::whole(clear.header, &clear.payloads, inside.payloads);
        rules::check(&message).map_err(|_| DropReason::WrongPayloads)?;
        self.check_needs(&message, arrived, turn)?;
        let peer = turn.core.peer(turn.ctx.config);
        let expected = peer.map(|peer| &peer.identity);
        match responder_identity(&message) == expected && expected.is_some() {
            true => Ok(Second { message, keys }),
            false => Err(DropReason::WrongAnswer),
        }
    }

    /// Continues with a responder that has proved itself. The IKE SA is up at this end, and the
    /// next message proves us.
    fn conclude(
        self: Box<Self>,
        second: Second,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Resuming {
        let Second { message, keys } = second;
        let Some(peer) = turn.core.peer(turn.ctx.config) else {
            return Resuming::Waits(self);
        };
        let nat = first_answer::detect_nat(&message, arrived, turn.core);
        first_answer::accept(&message, arrived, nat, turn);
        let attempts = &mut turn.ctx.out.attempts;
        attempts.learn(turn.core, |theirs| theirs.read_auth(&message, false, true));
        let transcript = Transcript {
            first: self.sent,
            second: arrived.octets.to_vec(),
        };
        let proof = transcript.prove(&keys.roots.own_proof);
        let evidence = PeerProved::by_answer(self.held.chain);
        let keys = keys.proved(&evidence);
        let way = self.held.keys.way;
        let child = self.enclosed.and_then(|enclosed| enclosed.child);
        let proved = Proved {
            peer,
            evidence,
            message: &message,
            payloads: Vec::new(),
        };
        let mut next = admission::accept(proved, keys, true, true, child, turn);
        if let Next::Up(session) = &mut next {
            confirm::send(session, proof, way, turn);
        }
        Resuming::Done(next)
    }

    /// Returns the responder's nonce.
    fn read(
        &self,
        response: &Message,
        arrived: &Arrived<'_>,
        turn: &Turn<'_, '_>,
    ) -> Result<Vec<u8>, DropReason> {
        rules::check(response).map_err(|_| DropReason::WrongPayloads)?;
        if response.unsupported_critical().is_some() {
            return Err(DropReason::WrongPayloads);
        }
        let theirs = self.nonce_of(response)?;
        self.check_needs(response, arrived, turn)?;
        Ok(theirs)
    }

    fn nonce_of(&self, response: &Message) -> Result<Vec<u8>, DropReason> {
        let theirs = nonce(response).ok_or(DropReason::WrongPayloads)?;
        match theirs == self.nonce || response.header.spi_r == 0 {
            true => Err(DropReason::Reflected),
            false => Ok(theirs.to_vec()),
        }
    }

    /// Returns an error if a responder lacks what the role of the peer needs.
    fn check_needs(
        &self,
        response: &Message,
        arrived: &Arrived<'_>,
        turn: &Turn<'_, '_>,
    ) -> Result<(), DropReason> {
        let peer = turn.core.peer(turn.ctx.config);
        let lacks = match peer.is_some_and(|peer| childless::is_wanted(&peer.role)) {
            true => !childless::is_supported(response),
            false => nat::detect(response, arrived.path).is_none(),
        };
        match lacks {
            true => Err(DropReason::WrongAnswer),
            false => Ok(()),
        }
    }

    fn proceed(
        self: Box<Self>,
        theirs: &[u8],
        arrived: &Arrived<'_>,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) -> Resuming {
        let nat = first_answer::detect_nat(response, arrived, turn.core);
        first_answer::accept(response, arrived, nat, turn);
        let Held { keys, chain, .. } = self.held;
        let spis = [turn.core.spi_i, turn.core.spi_r];
        let inputs = Inputs::of_session(&keys, [&self.nonce, theirs], spis, true);
        let keys = UnprovedKeys::resumed(&keys, &inputs);
        let handshake = Handshake::new(keys, true, self.sent, arrived.octets.to_vec());
        Resuming::Answered {
            proof: Box::new(Initiator::resumed(handshake, chain)),
            private: is_ours(response),
        }
    }
}

impl Enclosed {
    /// Builds what is asked for in IKE_AUTH otherwise.
    fn new(held: &Held, nonce: &[u8], turn: &mut Turn<'_, '_>) -> Option<Self> {
        let peer = turn.core.peer(turn.ctx.config)?;
        let meant = Payload::IdResponder(peer.identity.clone().into());
        let key = match held.keys.way {
            Way::Ticket | Way::Skid3 => None,
            Way::Skid3Pfs => Some(Offered::new(*groups_of(peer).first()?, turn.ctx.rng)?),
        };
        let opening = std::iter::once(meant).chain(key.as_ref().map(Offered::payload));
        let FirstRequest { payloads, child } =
            admission::request(peer, opening.collect(), true, turn).ok()?;
        Some(Self {
            cipher: first_cipher(&held.keys, nonce, turn.core.spi_i, true),
            key,
            payloads,
            child,
        })
    }

    /// Returns the shared secret of the key exchange, if there is one. A forged public value gives
    /// another secret, and a message that does not open.
    fn agree(&self, clear: &Message) -> Result<Option<Secret>, DropReason> {
        let Some(key) = &self.key else {
            return Ok(None);
        };
        let agreed = key_exchange(clear).and_then(|theirs| key.agree(theirs));
        let (_, shared) = agreed.ok_or(DropReason::WrongPayloads)?;
        Ok(Some(shared))
    }

    /// Returns the first message. One that is sent again with a cookie is sealed again.
    fn seal(&mut self, header: Header, clear: &[Payload]) -> Vec<u8> {
        let payloads = self.payloads.clone();
        self.cipher
            .seal_behind(clear, &Message { header, payloads })
    }
}
