//! Content of IKE_AUTH beside the proofs of identity, the same for every method and number of
//! rounds: initial contact, redirection, inner addresses and the first child SA.
//!
//! All of it is requested in the first request and answered in the last response, "the messages
//! containing the SA payloads" (RFC 7296 section 2.19; RFC 4555 section 3.2 for MOBIKE). All other
//! messages have proofs only.

use super::arrived::Arrived;
use super::closing::{Closing, Retired};
use super::established::{self, Beginning, Next};
use super::protected;
use super::turn::Turn;
use crate::allowed_suites::{AllowedEspSuites, AllowedIkeSuites};
use crate::attempt::End;
use crate::auth::Proved;
use crate::child::{self, ChildConfig, Offer, Requested};
use crate::config::{Peer, PeerRole};
use crate::destination::Destination;
use crate::down_reason::DownReason;
use crate::exchange::auth::Child;
use crate::exchange::{errors, first_error, notify};
use crate::extension::configuration::{self, Inside, Lending, Lessee};
use crate::extension::mobike::{self, Mobike};
use crate::extension::mode::ModeContext;
use crate::extension::{
    childless, clone, contact, nat, no_nats, overlap, reauth, redirect, resource,
};
use crate::keys::{ChildKeys, ProvedKeys};
use crate::refusal::Refusal;
use crate::session::Session;
use crate::task::{crash, follow, ticket};
use model::{Group, InnerAddresses, Kem, Path, Suite};
use resumption::Usage;
use std::time::Duration;
use wire::ike::{Message, NotifyType, Payload};

/// The first request, as its initiator has built it.
pub(crate) struct FirstRequest {
    pub(crate) payloads: Vec<Payload>,
    /// The child SA that it requests; `None` for a role without child SAs.
    pub(crate) child: Option<Offer>,
}

/// Builds the first request to a peer around the payloads of our proof. A request for a ticket may
/// follow.
pub(crate) fn request(
    peer: &Peer,
    proof: Vec<Payload>,
    private: bool,
    turn: &mut Turn<'_, '_>,
) -> Result<FirstRequest, DownReason> {
    let mut payloads = vec![Payload::IdInitiator(
        turn.ctx.config.identity.clone().into(),
    )];
    if !turn.ctx.may_be_acquainted() {
        payloads.push(contact::payload());
    }
    payloads.extend(proof);
    let first = peer.policy(None);
    let ground = ModeContext::new(turn.core.path, turn.core.nat, private);
    let offer = first.map(|first| {
        let unencrypted = peer.unencrypted_now(turn.ctx.today);
        let menu = AllowedEspSuites::to_offer(peer, Vec::new(), unencrypted);
        let spis = turn.ctx.spis(turn.core.id, None);
        Offer::new(menu, &first, ground, private, spis)
    });
    let child = offer.transpose()?;
    if let PeerRole::Vpn {
        local, addressing, ..
    } = &peer.role
    {
        payloads.extend(configuration::request(addressing, local));
    }
    let offered = child.iter().zip(&first);
    let today = turn.ctx.today;
    payloads.extend(offered.flat_map(|(offer, policy)| {
        offer.payloads(ChildConfig {
            peer,
            policy,
            addresses: None,
            today,
        })
    }));
    if mobike::is_allowed(peer, private) {
        payloads.extend(mobike::supported(
            &turn.ctx.config.addresses,
            turn.core.path.local.ip(),
            private,
        ));
    }
    payloads.extend(
        peer.features
            .forbids_nat
            .then(|| no_nats::forbid(turn.core.path)),
    );
    payloads.extend(peer.features.clones.then(clone::supported));
    payloads.extend(resource::supported(peer));
    payloads.extend(overlap::announcement(peer));
    Ok(FirstRequest { payloads, child })
}

/// An initiator that has proved its identity.
pub(crate) struct ProvedInitiator<'p> {
    pub(crate) proved: Proved<'p>,
    pub(crate) keys: ProvedKeys,
    pub(crate) traits: Traits,
    /// The reason for which the engine does not let it come.
    pub(crate) refusal: Option<Refusal>,
}

/// What an initiator has said of itself before its request is answered.
pub(crate) struct Traits {
    /// True if it understands our private numbers.
    pub(crate) private: bool,
    /// True if it supports redirection.
    pub(crate) willing: bool,
    /// Gateway to which it is redirected, if it carries traffic.
    pub(crate) elsewhere: Option<Destination>,
    pub(crate) group: Group,
    /// Use of the last full proof so far, if a session is resumed.
    pub(crate) usage: Option<Usage>,
}

/// An initiator, as far as the answer to its request depends on it.
pub(crate) struct Candidate<'a> {
    pub(crate) peer: &'a Peer,
    /// The first request, with all that is not a proof.
    pub(crate) request: &'a Message,
    /// Path on which it came.
    pub(crate) path: Path,
    pub(crate) traits: &'a Traits,
    /// The certificates that authenticate it.
    pub(crate) chain: Vec<Vec<u8>>,
    pub(crate) lending: Lending,
}

/// The keys on which an answer is based.
pub(crate) struct Basis<'a> {
    pub(crate) suite: Suite,
    pub(crate) kems: &'a [Kem],
    pub(crate) child: ChildKeys,
}

/// What both ends have agreed on, before the IKE SA is up.
pub(crate) struct Agreed {
    /// The payloads of the answer beside proofs, as long as they were not sent.
    pub(crate) payloads: Vec<Payload>,
    beginning: Beginning,
    child: Option<child::Agreed>,
}

/// Answers the authenticated peer with our proof and the child SA.
pub(crate) fn admit(
    initiator: ProvedInitiator<'_>,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    let ProvedInitiator {
        proved,
        mut keys,
        traits,
        refusal,
    } = initiator;
    let Proved {
        peer,
        evidence,
        message: request,
        mut payloads,
    } = proved;
    payloads.extend(reauth::announcement(lifetime(peer, traits.usage, turn)));
    let candidate = Candidate {
        peer,
        request,
        path: arrived.path,
        traits: &traits,
        chain: evidence.into_chain(),
        lending: Lending::Any,
    };
    let basis = Basis {
        suite: keys.cipher.suite,
        kems: &keys.kems,
        child: keys.first_child(),
    };
    let agreed = match refusal {
        Some(why) => Err((NotifyType::TEMPORARY_FAILURE, why)),
        None => candidate.agree(basis, turn),
    };
    match agreed {
        Ok(mut agreed) => {
            payloads.append(&mut agreed.payloads);
            payloads.extend(agreed.open(peer, &traits, request, &keys, turn));
            protected::respond(turn, &mut keys.cipher, arrived, payloads);
            Next::Up(agreed.begin(keys, turn))
        }
        Err((kind, why)) => {
            let data = match &why {
                Refusal::SentElsewhere(to) => redirect::data(to, &[]),
                _ => Vec::new(),
            };
            payloads.push(notify(kind, data));
            turn.ctx.out.counters.refused += 1;
            let end = End::Refused(why.clone());
            turn.ctx.out.attempts.end(turn.core, end, turn.ctx.config);
            turn.ctx.refused(Some(peer.id), why);
            protected::respond(turn, &mut keys.cipher, arrived, payloads);
            Next::Ended(match kind {
                // "It SHOULD delete the IKEv2 security association" (RFC 5685 section 6): a Delete
                // of ours could overtake the answer.
                NotifyType::REDIRECT => Retired::begin(keys, turn.ctx),
                _ => Closing::quietly(keys, turn),
            })
        }
    }
}

/// Continues on the path of an initiator that is proved, or on the port that IKE and ESP share if
/// the proof came from another address.
pub(crate) fn settle_path(arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) {
    turn.core.path = match turn.core.path.remote.ip() == arrived.path.remote.ip() {
        true => arrived.path,
        false => nat::float(turn.core.path, turn.ctx.config.natt_port),
    };
}

/// Has the other address checked, if the proof came from one.
pub(crate) fn check_path(
    mut session: Box<Session>,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    if turn.core.path != arrived.path {
        follow::check_beginning(&mut session, arrived, turn);
    }
    Next::Up(session)
}

/// Returns the time for which the authentication of an initiator still counts. A session that is
/// resumed has what is left of its last full proof. Zero: without limit.
pub(crate) fn lifetime(peer: &Peer, usage: Option<Usage>, turn: &Turn<'_, '_>) -> Duration {
    let since = usage.map_or(turn.ctx.today, |usage| usage.since);
    reauth::left(peer.lifetimes.reauth, since, turn.ctx.today)
}

impl Candidate<'_> {
    /// Agrees on everything that an initiator requests, or returns the error notify and the reason
    /// for the refusal.
    pub(crate) fn agree(
        self,
        basis: Basis<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Result<Agreed, (NotifyType, Refusal)> {
        let Self {
            peer,
            request,
            traits,
            ..
        } = self;
        // Licensed nodes and their gateways carry no traffic that another gateway could carry, so
        // they are not redirected.
        let carries = matches!(peer.role, PeerRole::Vpn { .. });
        let elsewhere = traits.elsewhere.clone().filter(|_| carries);
        let answered = match (no_nats::is_translated(request, self.path), elsewhere) {
            (true, _) => Err((NotifyType::UNEXPECTED_NAT_DETECTED, Refusal::Translated)),
            (false, Some(to)) => Err((NotifyType::REDIRECT, Refusal::SentElsewhere(to))),
            (false, None) => self.answer_child(basis, turn),
        };
        let Answered {
            mut payloads,
            addresses,
            child,
        } = answered?;
        let counts_for = lifetime(peer, traits.usage, turn);
        let beginning = Beginning {
            private: traits.private,
            initial: contact::is_initial(request),
            mobike: Mobike::read(peer, request, false, traits.private),
            addresses,
            chain: self.chain,
            counts_for: (!counts_for.is_zero()).then_some(counts_for),
            willing: traits.willing,
            clones: peer.features.clones && clone::is_supported(request),
            resources: resource::is_agreed(peer, request),
            window: overlap::announced(request),
            resumed: traits.usage.is_some(),
        };
        if let Some(mobike) = &beginning.mobike {
            let (ours, used) = (&turn.ctx.config.addresses, self.path.local.ip());
            payloads.extend(mobike::supported(ours, used, mobike.extended));
        }
        payloads.extend(beginning.clones.then(clone::supported));
        payloads.extend(resource::supported(peer).filter(|_| beginning.resources));
        payloads.extend(overlap::announcement(peer));
        Ok(Agreed {
            payloads,
            beginning,
            child,
        })
    }

    /// Answers the request for a child SA. A request without one is acceptable from any initiator,
    /// as we announced support (RFC 6023 section 3): its child SAs follow by CREATE_CHILD_SA.
    fn answer_child(
        &self,
        basis: Basis<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Result<Answered, (NotifyType, Refusal)> {
        let Self { peer, request, .. } = *self;
        if turn.ctx.is_barred(peer.id) {
            return Err((NotifyType::TEMPORARY_FAILURE, Refusal::TakenDown));
        }
        if !peer.accepts_keys(basis.suite, self.traits.group, basis.kems) {
            let allowed = AllowedIkeSuites::of(peer);
            return Err((
                NotifyType::NO_PROPOSAL_CHOSEN,
                Refusal::no_ike_proposal(allowed),
            ));
        }
        let childless = Child::is_absent(request);
        if !childless && Child::read(request).is_none() {
            return Err((NotifyType::INVALID_SYNTAX, Refusal::ChildMissing));
        }
        if childless && childless::is_wanted(&peer.role) {
            return Ok(Answered::default());
        }
        if turn.core.nat.is_none() {
            return Err((NotifyType::NO_PROPOSAL_CHOSEN, Refusal::NoNatTraversal));
        }
        let lent = lend(peer, request, self.lending, turn)?;
        let (reply, addresses) = lent.unzip();
        let mut answered = Answered {
            payloads: reply.into_iter().collect(),
            addresses,
            child: None,
        };
        if childless {
            return Ok(answered);
        }
        match self.first_child(addresses, basis.child, turn) {
            Ok((payloads, agreed)) => {
                answered.payloads.extend(payloads);
                answered.child = Some(agreed);
            }
            Err((kind, why)) if peer.goes_on_after(kind) => {
                turn.ctx.out.counters.refused += 1;
                turn.ctx.refused(Some(peer.id), why);
                answered.payloads.push(notify(kind, Vec::new()));
            }
            Err(refusal) => return Err(refusal),
        }
        Ok(answered)
    }

    /// Answers the request for the first child SA.
    fn first_child(
        &self,
        addresses: Option<InnerAddresses>,
        keys: ChildKeys,
        turn: &mut Turn<'_, '_>,
    ) -> Result<child::Answer, (NotifyType, Refusal)> {
        let Self { peer, request, .. } = *self;
        let requested = Requested {
            request,
            resource: false,
            offered: None,
        };
        let policy = child::meant(peer, addresses, requested, |_| false, |_| &[])?;
        if turn.ctx.overrides.is_closed(peer.id, policy.name) {
            return Err((NotifyType::TEMPORARY_FAILURE, Refusal::TakenDown));
        }
        let config = ChildConfig {
            peer,
            policy: &policy,
            addresses,
            today: turn.ctx.today,
        };
        let private = self.traits.private;
        let ground = ModeContext::new(turn.core.path, turn.core.nat, private);
        let spis = turn.ctx.spis(turn.core.id, policy.name);
        child::answer(config, request, ground, private, None, keys, spis)
    }
}

impl Agreed {
    /// Opens the account of the session. Returns the answer to a request for a ticket, and the
    /// token of the IKE SA.
    pub(crate) fn open(
        &self,
        peer: &Peer,
        traits: &Traits,
        request: &Message,
        keys: &ProvedKeys,
        turn: &mut Turn<'_, '_>,
    ) -> Vec<Payload> {
        ticket::open(
            peer,
            &self.beginning.chain,
            traits.group,
            traits.usage,
            turn,
        );
        let ticket = ticket::answer(request, traits.private, keys, turn);
        ticket.into_iter().chain(crash::token(turn)).collect()
    }

    /// Brings the IKE SA up.
    pub(crate) fn begin(self, keys: ProvedKeys, turn: &mut Turn<'_, '_>) -> Box<Session> {
        let child = self.child.map(|child| child.terms(Vec::new()));
        established::begin(keys, self.beginning, None, child, turn)
    }

    /// Leases the addresses that were agreed on before the peer was proved. Returns false if
    /// another one has them since.
    pub(crate) fn lend(&self, peer: &Peer, request: &Message, turn: &mut Turn<'_, '_>) -> bool {
        let Some(agreed) = self.beginning.addresses else {
            return true;
        };
        let lent = lend(peer, request, Lending::Any, turn);
        matches!(lent, Ok(Some((_, lent))) if lent == agreed)
    }
}

/// The parts of the IKE_AUTH response other than our proof.
#[derive(Default)]
struct Answered {
    payloads: Vec<Payload>,
    /// The inner addresses that we lease to the initiator.
    addresses: Option<InnerAddresses>,
    child: Option<child::Agreed>,
}

/// Leases inner addresses to an initiator that requests them.
fn lend(
    peer: &Peer,
    request: &Message,
    lending: Lending,
    turn: &mut Turn<'_, '_>,
) -> Result<Option<(Payload, InnerAddresses)>, (NotifyType, Refusal)> {
    match &peer.role {
        PeerRole::Vpn {
            addressing, local, ..
        } => {
            let lessee = turn.ctx.config.users.lessee(peer.id);
            let lessee = Lessee {
                identity: lessee.as_ref().unwrap_or(&peer.identity),
                sa: turn.core.id,
                lending,
            };
            let (pools, today) = (&mut *turn.ctx.pools, turn.ctx.today);
            configuration::answer(addressing, local, request, lessee, pools, today)
        }
        PeerRole::Licensed | PeerRole::Gateway | PeerRole::Neighbour => Ok(None),
    }
}

/// Evaluates the answer of a responder that has proved its identity. `offer` is the child SA that
/// we requested.
pub(crate) fn accept(
    proved: Proved<'_>,
    keys: ProvedKeys,
    private: bool,
    resumed: bool,
    offer: Option<Offer>,
    turn: &mut Turn<'_, '_>,
) -> Next {
    let Proved {
        peer,
        evidence,
        message: response,
        payloads: _,
    } = proved;
    match redirect::sent(response, &[], turn) {
        Some(Ok(to)) => {
            turn.follow_redirect(to, turn.core.anew);
            return Next::Ended(Closing::quietly(keys, turn));
        }
        Some(Err(why)) => return Next::Ended(Closing::begin(keys, why, turn)),
        None => {}
    }
    let inside = peer
        .requests_addresses()
        .then(|| configuration::read_reply(response));
    let addresses = inside
        .as_ref()
        .and_then(|inside| Some(inside.as_ref()?.addresses));
    let beginning = Beginning {
        private,
        initial: !turn.ctx.is_acquainted(),
        mobike: Mobike::read(peer, response, true, private),
        addresses,
        chain: evidence.into_chain(),
        counts_for: reauth::announced(response),
        willing: false,
        clones: peer.features.clones && clone::is_supported(response),
        resources: resource::is_agreed(peer, response),
        window: overlap::announced(response),
        resumed,
    };
    let error = first_error(response);
    if let Some(notify) = error
        && inside != Some(None)
        && errors(response).all(|error| peer.goes_on_after(error))
    {
        let (name, peer) = (None, peer.id);
        turn.ctx
            .refused(Some(peer), Refusal::ChildRefused { name, notify });
        let inside = inside.flatten();
        let mut session = established::begin(keys, beginning, inside, None, turn);
        session.upkeep.put_off(None, turn.ctx.now);
        ticket::note_given(&mut session, response, turn);
        crash::note_token(&mut session, response);
        return Next::Up(session);
    }
    let child = match (offer.zip(peer.policy(None)), error) {
        // Regardless of the rest of the response: "an implementation receiving a Notify payload
        // with one of these types that it does not recognize in a response MUST assume that the
        // corresponding request has failed entirely" (RFC 7296 section 3.10.1). Known errors
        // name the failed part.
        (_, Some(NotifyType::AUTHENTICATION_FAILED)) => Err(turn.proof_refused(response, None)),
        (_, Some(notify)) => Err(DownReason::ChildRefused { notify }),
        (Some(_), None) if inside == Some(None) => Err(DownReason::NoAddress),
        (Some((offer, first)), None) => {
            let config = ChildConfig {
                peer,
                policy: &first,
                addresses,
                today: turn.ctx.today,
            };
            let agreed = offer.conclude(config, response, keys.first_child());
            agreed.map(|agreed| Some(agreed.terms(Vec::new())))
        }
        (None, None) => Ok(None),
    };
    match child {
        Ok(child) => {
            let carried = child.as_ref().map(|terms| terms.remote.clone());
            let inside = inside.flatten().map(|inside| Inside {
                carried: carried.unwrap_or_default(),
                ..inside
            });
            let mut session = established::begin(keys, beginning, inside, child, turn);
            ticket::note_given(&mut session, response, turn);
            crash::note_token(&mut session, response);
            Next::Up(session)
        }
        Err(why) => Next::Ended(Closing::begin(keys, why, turn)),
    }
}
