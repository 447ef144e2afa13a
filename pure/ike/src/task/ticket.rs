//! Tickets of an IKE SA that is up (`extension/ticket.rs`): a gateway issues them on request, and a
//! client asks again after a rekey, which voids the one that it has.

use crate::auth::{Proof, proof};
use crate::config::{Peer, Resumption};
use crate::extension::ticket;
use crate::keys::ProvedKeys;
use crate::sa::turn::{Context, Turn};
use crate::session::Session;
use crate::session::task::{Answer, Task, Then};
use crate::shown::Shown;
use crate::signature;
use crate::tickets::{Account, Carried, Held, Terms};
use crypto::UnixTime;
use model::Group;
use resumption::Usage;
use std::time::Duration;
use wire::ike::{Message, Payload};

/// A client's request for a ticket.
struct AskTicket;

impl Task for AskTicket {
    fn payloads(&self, session: &Session, turn: &mut Turn<'_, '_>) -> Vec<Payload> {
        let peer = turn.core.peer(turn.ctx.config);
        let request = peer.and_then(|peer| ticket::request(peer, session.terms.private));
        request.into_iter().collect()
    }

    fn ends_with_keys(&self) -> bool {
        true
    }

    fn conclude(
        self: Box<Self>,
        answer: &Answer<'_>,
        session: &mut Session,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        note_given(session, answer.message, turn);
        Then::Stay
    }
}

/// Opens the account of an IKE SA whose initiator may resume it. `usage` is the use of its last
/// full proof so far; `None` if the proof is new.
pub(crate) fn open(
    peer: &Peer,
    chain: &[Vec<u8>],
    group: Group,
    usage: Option<Usage>,
    turn: &mut Turn<'_, '_>,
) {
    let Some(proof) = Proof::of(peer).kind() else {
        return;
    };
    if peer.resumption == Resumption::Off {
        return;
    }
    let before = usage.unwrap_or_else(|| Usage::new(turn.ctx.today));
    let reauth = peer.lifetimes.reauth;
    let repeated = (!reauth.is_zero()).then(|| UnixTime(before.since.0 + reauth.as_secs()));
    let certified = signature::first(chain).map(|certificate| certificate.not_after);
    let account = Account {
        identity: peer.identity.clone(),
        proof,
        chain: chain.to_vec(),
        group,
        before,
        since: turn.ctx.now,
        carried: Carried::default(),
        ends: repeated.into_iter().chain(certified).min(),
        issued: None,
    };
    turn.ctx.tickets.open(turn.core.id, account);
}

/// Answers a request for a ticket of the IKE SA with these keys. `private`: the peer understands
/// our private numbers.
pub(crate) fn answer(
    request: &Message,
    private: bool,
    keys: &ProvedKeys,
    turn: &mut Turn<'_, '_>,
) -> Option<Payload> {
    let asked = ticket::requested(request, private)?;
    let Context {
        config,
        rng,
        tickets,
        today,
        now,
        ..
    } = &mut *turn.ctx;
    // A reload may have turned tickets off.
    let peer = turn.core.peer(config);
    let peer = peer.and_then(|peer| Some((peer, peer.resumption.given(asked)?)));
    let issued = peer.and_then(|(peer, way)| {
        let keys = keys.kept(way);
        let terms = Terms {
            credential: proof::fingerprint(peer, &keys, config),
            keys,
            strategy: &config.resumption,
        };
        let issued = tickets.issue(turn.core.id, terms, rng, *today, *now);
        issued.map(|issued| (way, issued))
    });
    Some(match issued {
        Some((way, issued)) => ticket::given(way, &issued.ticket, issued.lifetime),
        None => ticket::refusal(),
    })
}

/// Keeps the ticket that a gateway has given us, if a message has one and we use tickets.
pub(crate) fn note_given(session: &mut Session, message: &Message, turn: &mut Turn<'_, '_>) {
    let peer = turn.core.peer(turn.ctx.config);
    let uses = |way| peer.is_some_and(|peer| peer.resumption.allows(way));
    let given = ticket::received(message);
    let given = given.filter(|given| uses(given.way) && session.terms.contact.ours);
    let Some(given) = given else {
        return;
    };
    session.gives_tickets = true;
    let chain = session.terms.chain.clone();
    let certified = signature::first(&chain).map(|certificate| {
        let left = certificate.not_after.0.saturating_sub(turn.ctx.today.0);
        Duration::from_secs(left)
    });
    let lifetime = certified.map_or(given.lifetime, |most| most.min(given.lifetime));
    let held = Held {
        of: turn.core.id,
        ticket: given.ticket,
        ends: turn.ctx.now + lifetime,
        keys: session.keys.kept(given.way),
        chain,
        believed: session.terms.believed,
        shown: Shown::Nowhere,
    };
    turn.ctx.tickets.hold(turn.core.peer_id(), held);
}

/// Asks for a ticket of the keys that an IKE SA has from now on, if its gateway gives tickets.
pub(crate) fn ask(session: &mut Session) {
    if session.gives_tickets && session.terms.contact.ours {
        session.queue.push(Box::new(AskTicket));
    }
}
