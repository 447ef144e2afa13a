//! Sessions that are resumed by a ticket (RFC 5723).

use super::addresses::{borrower, lender};
use super::certificates::TODAY;
use super::pair::{Flying, Host, NAT, Pair, RIGHT, Side, fit};
use super::rekey::{rekey_child, rekey_ike};
use super::zones::zoned;
use super::*;
use crate::task::ticket::ask;
use crate::tickets::Held;
use crate::{DownReason, Event, PORT, Ppk, Resumption};
use crypto::UnixTime;
use model::{Group, Kem, Path, Suite};
use resumption::{Entry, Memory, OperationId, Outcome, ReferenceKey};
use std::net::SocketAddr;
use std::time::Duration;
use wire::ike::{ExchangeType, Header, Message, NotifyType, Payload, PayloadType};

/// Longer than any request is repeated.
pub(super) const LONG: Duration = Duration::from_secs(200);

/// Returns two ends that use tickets.
fn ends() -> (Config, Config) {
    with_tickets((mobile(), gateway()))
}

fn with_tickets(ends: (Config, Config)) -> (Config, Config) {
    resuming(ends, Resumption::Tickets)
}

/// Returns ends that resume in this way.
pub(super) fn resuming(
    (mut left, mut right): (Config, Config),
    way: Resumption,
) -> (Config, Config) {
    left.peers[0].resumption = way;
    right.peers[0].resumption = way;
    (left, right)
}

fn connected() -> Pair {
    connected_as(ends())
}

pub(super) fn connected_as((left, right): (Config, Config)) -> Pair {
    let mut pair = Pair::new(left, right);
    set_clocks(&mut pair, TODAY);
    pair.connect();
    pair
}

pub(super) fn set_clocks(pair: &mut Pair, today: UnixTime) {
    pair.left.engine.set_wall_clock(today);
    pair.right.engine.set_wall_clock(today);
}

/// Has the left end lose the IKE SA, and the right end not.
pub(super) fn lose(pair: &mut Pair) {
    pair.deaf = true;
    rekey_child(pair, Side::Left);
    pair.run_for(LONG);
    assert_eq!(pair.left.up(), 0);
    pair.deaf = false;
    pair.sent.clear();
}

/// Returns two ends of which neither has an IKE SA, and the left one has a ticket.
pub(crate) fn lost() -> Pair {
    lost_as(ends())
}

pub(super) fn lost_as(ends: (Config, Config)) -> Pair {
    let mut pair = connected_as(ends);
    lose_both(&mut pair);
    pair
}

/// Has both ends lose the IKE SA: no Delete removes the entry.
pub(super) fn lose_both(pair: &mut Pair) {
    pair.deaf = true;
    rekey_child(pair, Side::Right);
    lose(pair);
    pair.run_for(LONG);
    let strategy = &pair.right.engine.config.resumption;
    let stored = usize::from(!strategy.is_by_value());
    assert_eq!((pair.right.up(), pair.right.entries().len()), (0, stored));
}

/// Has the left end present a copy of its ticket that it kept although it should not, and returns
/// what the right end says of it.
pub(super) fn told_of_kept(pair: &mut Pair, kept: Held) -> Vec<String> {
    pair.left.engine.tickets.hold(peer_id("gateway"), kept);
    pair.connect();
    pair.run_for(LONG);
    assert!(!pair.right.resumed().contains(&true));
    pair.right.refusals()
}

/// A gateway that was killed has its store. The first request on the lost IKE SA tells.
pub(crate) fn restarted() -> Pair {
    let mut pair = connected();
    // Another process draws other SPIs, and has the same key of references.
    let key = || ReferenceKey::restored(Secret::new(vec![5; 32]));
    let mut other = Host::seeded(ends().1, 77, 2);
    other.engine.set_wall_clock(TODAY);
    other.engine.refer_by(key());
    other.store = pair.right.store.take();
    let entries = other.store.as_ref().unwrap().iter();
    let handles: Vec<_> = entries.map(|(handle, _)| *handle).collect();
    let mut held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    held.ticket = key().issue(&handles[0]).to_vec();
    pair.left.engine.tickets.hold(peer_id("gateway"), held);
    pair.restart(Side::Right, other);
    pair.run_for(Duration::from_secs(3));
    pair.sent.clear();
    rekey_child(&mut pair, Side::Left);
    pair.run_for(Duration::from_secs(1));
    pair
}

/// For the pages: another attempt has used the session, as the store finds out last.
pub(crate) fn spent() -> Pair {
    let mut pair = lost();
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.right.store = None;
    pair.settle();
    let awaiting = pair.right.engine.sas().last().map(|sa| sa.id);
    let id = awaiting.map_or(0, |id| id.0);
    pair.store_answers(Side::Right, Outcome::Taken(OperationId(id), false));
    pair.settle();
    pair
}

/// For the pages: a session that was lost is resumed, or its ticket is refused.
pub(crate) fn story(is_known: bool) -> Pair {
    let mut pair = lost();
    if !is_known {
        pair.restart(Side::Right, Host::seeded(ends().1, 7, 2));
    }
    pair.begin_story();
    pair.connect();
    pair
}

/// Returns the exchanges of the messages sent, in order.
pub(super) fn exchanges(pair: &Pair) -> Vec<ExchangeType> {
    let of = |flying: &Flying| Header::peek(&flying.message).unwrap().exchange;
    pair.sent.iter().map(of).collect()
}

impl Host {
    /// Returns for each IKE SA that came up whether a session was resumed.
    pub(super) fn resumed(&self) -> Vec<bool> {
        let up = self.events.iter().filter_map(|event| match event {
            Event::IkeUp { resumed, .. } => Some(*resumed),
            _ => None,
        });
        up.collect()
    }

    pub(super) fn not_resumed(&self) -> usize {
        let not = |event: &&Event| matches!(event, Event::NotResumed { .. });
        self.events.iter().filter(not).count()
    }

    pub(super) fn entries(&self) -> Vec<&Entry> {
        let store = self.store.as_ref().unwrap();
        store.iter().map(|(_, entry)| entry).collect()
    }

    pub(super) fn holds_ticket(&self) -> bool {
        self.engine.tickets.holds(self.engine.config.peers[0].id)
    }
}

pub(super) fn is_resumed(pair: &Pair) {
    assert_eq!(pair.left.resumed(), [false, true]);
    assert_eq!(pair.right.resumed(), [false, true]);
    is_one_tunnel(pair);
}

pub(super) fn is_one_tunnel(pair: &Pair) {
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn a_session_is_resumed_without_a_key_exchange_and_a_proof_of_identity() {
    let mut pair = connected();
    assert_eq!(pair.right.entries().len(), 1);
    lose(&mut pair);
    let key_pairs = pair.right.engine.counters().key_pairs;
    pair.connect();
    is_resumed(&pair);
    assert_eq!(
        exchanges(&pair),
        [
            ExchangeType::IKE_SESSION_RESUME,
            ExchangeType::IKE_SESSION_RESUME,
            ExchangeType::IKE_AUTH,
            ExchangeType::IKE_AUTH
        ]
    );
    for message in &pair.sent[..2] {
        let kinds: Vec<_> = message.clear().payloads.iter().map(Payload::kind).collect();
        assert!(!kinds.contains(&PayloadType::KE) && kinds.contains(&PayloadType::NONCE));
    }
    assert_eq!(pair.right.engine.counters().key_pairs, key_pairs);
}

/// "the old SA SHOULD be silently deleted without sending a DELETE informational exchange" (section
/// 4.3.4).
#[test]
fn the_gateway_drops_the_lost_ike_sa_without_a_delete() {
    let mut pair = connected();
    lose(&mut pair);
    assert_eq!(pair.right.up(), 1);
    pair.connect();
    pair.run_for(LONG);
    assert_eq!(pair.sent.len(), 4, "{:?}", exchanges(&pair));
    assert_eq!(pair.right.down_reasons(), [&DownReason::Replaced]);
    is_one_tunnel(&pair);
}

#[test]
fn a_ticket_is_used_once_and_followed_by_another() {
    let mut pair = connected();
    for round in 1..5 {
        lose(&mut pair);
        let handle = pair.right.entries()[0].keys.secret.clone();
        pair.connect();
        assert_eq!(pair.left.resumed().len(), round + 1);
        let entries = pair.right.entries();
        assert_eq!(entries.len(), 1);
        assert_ne!(entries[0].keys.secret, handle);
        is_one_tunnel(&pair);
    }
    assert_eq!(pair.left.resumed(), [false, true, true, true, true]);
}

/// Rule: a refusal that nobody has proved begins a full exchange at once.
#[test]
fn a_ticket_that_the_gateway_does_not_know_costs_one_round_trip() {
    let mut pair = story(false);
    assert_eq!(pair.left.not_resumed(), 1);
    assert_eq!(exchanges(&pair).len(), 6);
    is_one_tunnel(&pair);
    pair.run_for(LONG);
    is_one_tunnel(&pair);
    assert_eq!(pair.left.engine.sas().count(), 1);
}

// Weakness: 182
#[test]
fn a_good_answer_after_a_forged_refusal_still_counts() {
    let mut pair = connected();
    lose(&mut pair);
    pair.initiate(Side::Left);
    let request = pair.intercept().remove(0);
    let mut header = request.clear().header;
    (header.flags.initiator, header.flags.response) = (false, true);
    let payloads = vec![crate::extension::ticket::refusal()];
    let forged = Flying {
        to: Side::Left,
        path: request.path.reversed(),
        message: Message { header, payloads }.encode(),
    };
    pair.deliver(&forged);
    pair.deliver(&forged);
    assert_eq!(pair.left.not_resumed(), 1, "one full exchange, not two");
    let full = pair.intercept();
    assert_eq!(full.len(), 1);
    pair.deliver(&request);
    pair.settle();
    assert_eq!(pair.left.resumed(), [false, true]);
    is_one_tunnel(&pair);
}

/// A gateway that asks for a cookie is there, and has many others to answer. A full exchange would
/// have to wait as well, and have them wait longer.
#[test]
fn a_gateway_that_asked_for_a_cookie_is_not_asked_in_full() {
    let (left, mut right) = ends();
    right.limits.half_open_without_cookie = 0;
    let mut pair = connected_as((left, right));
    lose(&mut pair);
    pair.initiate(Side::Left);
    let request = pair.intercept().remove(0);
    pair.run_for(Duration::from_millis(900));
    pair.deliver(&request);
    let cookie = pair.intercept().remove(0);
    pair.deliver(&cookie);
    pair.intercept();
    pair.deaf = true;
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.left.not_resumed(), 0);
    pair.deaf = false;
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.left.resumed(), [false, true]);
    is_one_tunnel(&pair);
}

// Weakness: 182
#[test]
fn a_store_that_does_not_answer_is_waited_for_half_a_second() {
    let mut pair = connected();
    lose(&mut pair);
    pair.right.store = None;
    pair.initiate(Side::Left);
    pair.settle();
    assert_eq!(exchanges(&pair), [ExchangeType::IKE_SESSION_RESUME]);
    pair.run_for(Duration::from_millis(600));
    assert_eq!(pair.left.not_resumed(), 1);
    is_one_tunnel(&pair);
    assert_eq!(pair.left.resumed(), [false, false]);
}

/// Rule: an outcome that is not known counts as spent.
// Weakness: 180
#[test]
fn an_entry_that_may_have_been_taken_admits_nobody() {
    let mut pair = connected();
    lose(&mut pair);
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.right.store = None;
    pair.run_for(Duration::from_millis(300));
    assert_eq!(
        pair.right.resumed(),
        [false],
        "nothing is up before the outcome"
    );
    assert_eq!(pair.right.up(), 1, "the lost IKE SA stays until then");
    pair.right.store = Some(Memory::new(9));
    pair.run_for(LONG);
    let again = pair.initiate(Side::Left);
    pair.run_for(LONG);
    assert!(pair.left.engine.sas().any(|sa| sa.id == again) || pair.left.up() == 1);
    is_one_tunnel(&pair);
    assert!(!pair.right.resumed().contains(&true));
}

/// Two programs with the same ticket at the same instant: the faster one is admitted.
// Weakness: 180
#[test]
fn of_two_that_resume_one_session_one_is_admitted() {
    let mut pair = connected();
    let stolen = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    lose(&mut pair);
    // Both have their answers before one of them proves that it knows the keys.
    pair.initiate(Side::Left);
    pair.settle_one_round();
    let proof = pair.intercept().remove(0);
    let mut thief = Host::seeded(ends().0, 99, 1);
    thief.engine.set_wall_clock(TODAY);
    thief.engine.tickets.hold(peer_id("gateway"), stolen);
    std::mem::swap(&mut pair.left, &mut thief);
    pair.initiate(Side::Left);
    pair.settle();
    assert_eq!(
        pair.left.resumed(),
        [true],
        "whoever steals a client's ticket can use it"
    );
    std::mem::swap(&mut pair.left, &mut thief);
    pair.deliver(&proof);
    pair.settle();
    // The slower one is told, begins in full, and takes the place of the faster one.
    assert_eq!(pair.right.resumed(), [false, true, false]);
    let refused = |why: &String| why.contains("the ticket has been used");
    assert!(pair.right.refusals().iter().any(refused));
    assert_eq!(pair.left.not_resumed(), 1);
    assert_eq!(pair.left.resumed(), [false, false]);
}

// Weakness: 180
#[test]
fn a_client_whose_session_is_spent_is_told_and_begins_in_full() {
    let pair = spent();
    assert_eq!(pair.left.not_resumed(), 1);
    assert_eq!(pair.left.resumed(), [false, false]);
    is_one_tunnel(&pair);
}

#[test]
fn a_delete_by_either_end_voids_ticket_and_entry() {
    for side in [Side::Left, Side::Right] {
        let mut pair = connected();
        assert!(pair.left.holds_ticket());
        pair.with(side, |engine, now| engine.shutdown(now));
        pair.settle();
        assert!(!pair.left.holds_ticket());
        assert_eq!(pair.right.entries().len(), 0);
        pair.sent.clear();
        pair.connect();
        assert_eq!(exchanges(&pair)[0], ExchangeType::IKE_SA_INIT);
    }
}

#[test]
fn without_tickets_at_either_end_there_are_none() {
    for (left, right) in [(true, false), (false, true)] {
        let (mut mobile, mut gateway) = ends();
        let of = |on| {
            if on {
                Resumption::Tickets
            } else {
                Resumption::Off
            }
        };
        mobile.peers[0].resumption = of(left);
        gateway.peers[0].resumption = of(right);
        let mut pair = connected_as((mobile, gateway));
        assert!(!pair.left.holds_ticket() && pair.right.entries().is_empty());
        rekey_ike(&mut pair, Side::Left);
        pair.settle();
        lose(&mut pair);
        pair.connect();
        assert_eq!(exchanges(&pair)[0], ExchangeType::IKE_SA_INIT);
        is_one_tunnel(&pair);
    }
}

// Weakness: 183
#[test]
fn a_gateway_that_no_longer_allows_tickets_refuses_those_it_gave() {
    let mut pair = connected();
    lose(&mut pair);
    let mut off = ends().1;
    off.peers[0].resumption = Resumption::Off;
    pair.with(Side::Right, |engine, now| engine.reconfigure(off, now));
    pair.connect();
    assert_eq!(
        (pair.left.not_resumed(), pair.left.resumed()),
        (1, vec![false, false])
    );
    assert!(!pair.left.holds_ticket());
}

#[test]
fn a_ppk_counts_in_a_resumed_session_and_is_not_mixed_in_again() {
    let (mut left, mut right) = ends();
    with_ppk(&mut left);
    with_ppk(&mut right);
    let mut pair = connected_as((left, right));
    lose(&mut pair);
    pair.connect();
    is_resumed(&pair);
    for host in [&pair.left, &pair.right] {
        assert!(host.engine.sas().all(|sa| sa.ppk));
        assert_eq!(host.refusals(), Vec::<String>::new());
    }
}

pub(super) fn with_ppk(config: &mut Config) {
    config.peers[0].ppk = Some(Box::new(Ppk {
        id: "office2026".to_owned(),
        secret: Secret::new(vec![7; 32]),
        required: true,
    }));
}

/// Rule: where today's policy asks for more than the entry proves, there is a full exchange.
// Weakness: 183
#[test]
fn a_session_that_proves_less_than_is_required_now_is_not_resumed() {
    let changes: [fn(&mut Config); 4] = [
        with_ppk,
        |config| config.peers[0].kems = vec![Some(Kem::MlKem768)],
        |config| config.peers[0].suites = vec![Suite::Aes256Gcm16],
        |config| config.peers[0].groups = vec![Group::P384],
    ];
    for change in changes {
        let mut pair = lost();
        let kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        let (mut left, mut right) = ends();
        change(&mut left);
        change(&mut right);
        pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
        pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
        assert!(!pair.left.holds_ticket(), "the configuration has changed");
        let told = told_of_kept(&mut pair, kept);
        assert!(told[0].contains("authenticated in another way"), "{told:?}");
        is_one_tunnel(&pair);
    }
}

/// RFC 5723 section 6.2: "when credentials associated with the IKE SA are invalidated ... the
/// ticket MUST be deleted".
// Weakness: 183
#[test]
fn a_session_whose_key_was_replaced_is_not_resumed() {
    let changes: [fn(&mut Config); 2] = [
        |config| config.peers[0].psk = Some(Secret::new(vec![9; 32])),
        |config| {
            with_ppk(config);
            config.peers[0].ppk.as_mut().unwrap().required = false;
        },
    ];
    for change in changes {
        let mut pair = lost();
        let kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
        let mut right = ends().1;
        change(&mut right);
        pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
        let told = told_of_kept(&mut pair, kept);
        let changed = |why: &String| why.contains("a key, a CA or an identity");
        assert!(told.iter().any(changed), "{told:?}");
    }
}

#[test]
fn a_client_that_uses_no_tickets_any_more_presents_none() {
    let mut pair = lost();
    let kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    let mut left = ends().0;
    left.peers[0].resumption = Resumption::Off;
    pair.with(Side::Left, |engine, now| engine.reconfigure(left, now));
    assert!(!pair.left.holds_ticket());
    told_of_kept(&mut pair, kept);
    assert_eq!(exchanges(&pair)[0], ExchangeType::IKE_SA_INIT);
    assert!(!pair.left.holds_ticket(), "it takes none either");
}

/// An operator's `down` is no loss: what was lost before ends with it.
#[test]
fn a_session_ends_when_the_peer_is_taken_down() {
    let mut pair = lost();
    let peer = peer_id("mobile");
    pair.with(Side::Right, |engine, now| engine.bar(peer, true, now));
    pair.with(Side::Right, |engine, now| engine.bar(peer, false, now));
    assert!(pair.right.entries().is_empty());
    pair.connect();
    assert_eq!(pair.left.resumed(), [false, false]);
}

#[test]
fn sessions_that_are_ended_get_no_further_tickets_and_tunnels_stay_up() {
    for whom in [Some(peer_id("mobile")), None] {
        let mut pair = connected();
        pair.with(Side::Right, |engine, _| engine.end_sessions(whom));
        assert!(pair.right.entries().is_empty());
        rekey_ike(&mut pair, Side::Left);
        pair.settle();
        assert!(pair.right.entries().is_empty() && !pair.left.holds_ticket());
        is_one_tunnel(&pair);
        lose(&mut pair);
        pair.connect();
        assert_eq!(pair.left.resumed(), [false, false]);
        assert_eq!(pair.right.entries().len(), 1, "of the new tunnel");
    }
}

/// Rule: what an authenticated peer repeats costs the store nothing.
// Weakness: 184
#[test]
fn who_asks_for_tickets_again_and_again_gets_the_same_one() {
    let mut pair = connected();
    let first = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    pair.right.store = None;
    for _ in 0..5 {
        let sa = pair.left.engine.sas().next().unwrap().id;
        pair.with(Side::Left, |engine, now| {
            engine.with_established(sa, now, |session, _| ask(session))
        });
        pair.deliver_next();
        assert!(pair.right.engine.poll_store().is_none());
        pair.settle();
    }
    let last = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    assert_eq!(first.ticket, last.ticket);
    assert_eq!(pair.sent.len(), 4 + 10);
}

/// "a ticket is considered as used only when an IKE SA has been established successfully with it"
/// (section 4.3.1).
#[test]
fn a_gateway_that_is_away_for_long_resumes_the_session_when_it_is_back() {
    for (elsewhere, resumed) in [(false, true), (true, false)] {
        let mut pair = lost();
        pair.deaf = true;
        pair.initiate(Side::Left);
        pair.run_for(LONG);
        assert_eq!(
            pair.left.engine.sas().count(),
            0,
            "all attempts are given up"
        );
        assert!(pair.left.holds_ticket());
        pair.deaf = false;
        if elsewhere {
            let [from, to] =
                ["192.168.7.7", RIGHT].map(|ip| SocketAddr::new(ip.parse().unwrap(), PORT));
            let path = Path::udp(from, to);
            pair.with(Side::Left, |engine, now| {
                engine.initiate(peer_id("gateway"), path, now).unwrap()
            });
            pair.settle();
        } else {
            pair.connect();
        }
        assert_eq!(
            pair.left.resumed(),
            [false, resumed],
            "elsewhere: {elsewhere}"
        );
        is_one_tunnel(&pair);
    }
}

/// Rule: an answer to an address that nobody has proved is no longer than the request.
// Weakness: 181
#[test]
fn the_answer_to_a_short_request_is_a_cookie() {
    let mut pair = lost();
    pair.initiate(Side::Left);
    let request = pair.intercept().remove(0);
    let mut short = request.clear();
    // The nonce, the ticket and both hashes of NAT detection.
    short.payloads.truncate(4);
    short.payloads[0] = Payload::Nonce(vec![7; 16]);
    let short = Flying {
        message: short.encode(),
        ..request
    };
    pair.sent.clear();
    pair.deliver(&short);
    let answer = pair.sent.remove(0);
    assert!(answer.message.len() <= short.message.len());
    let kind = crate::extension::cookie::asked(&answer.clear()).is_some();
    assert!(kind && pair.right.engine.sas().count() == 0);
    // And what is answered at once is no longer than the bound.
    pair.deliver(&request);
    let answer = pair.sent.remove(0);
    assert!(answer.message.len() <= 160 && request.message.len() >= 160);
}

#[test]
fn a_session_is_resumed_from_another_address_and_behind_a_nat() {
    let mut pair = connected();
    lose(&mut pair);
    pair.nat = Some(NAT);
    pair.connect();
    is_resumed(&pair);
    let nat = pair.left.engine.sas().next().unwrap().nat;
    assert!(nat.is_some_and(|nat| nat.ours));
}

#[test]
fn a_gateway_under_load_asks_for_a_cookie_here_too() {
    let mut pair = connected();
    lose(&mut pair);
    let mut right = ends().1;
    right.limits.half_open_without_cookie = 0;
    pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
    pair.connect();
    is_resumed(&pair);
    assert_eq!(pair.sent.len(), 6, "one round trip more");
}

// Weakness: 181
#[test]
fn a_cookie_costs_nobody_a_look_into_the_store() {
    let mut pair = connected();
    lose(&mut pair);
    let mut right = ends().1;
    right.limits.half_open_without_cookie = 0;
    pair.with(Side::Right, |engine, now| engine.reconfigure(right, now));
    pair.right.store = None;
    pair.initiate(Side::Left);
    pair.deliver_next();
    assert!(pair.right.engine.poll_store().is_none());
    assert_eq!(pair.right.engine.sas().count(), 1);
}

/// A ticket that the gateway has not issued costs it one MAC.
// Weakness: 181
#[test]
fn a_made_up_ticket_is_refused_without_a_look_into_the_store() {
    let mut pair = connected();
    lose(&mut pair);
    let half_open = pair.right.engine.half_open.len();
    let mut held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    held.ticket[3] ^= 1;
    pair.left.engine.tickets.hold(peer_id("gateway"), held);
    pair.right.store = None;
    pair.initiate(Side::Left);
    pair.settle_one_round();
    assert_eq!(pair.left.not_resumed(), 1);
    assert_eq!(pair.right.engine.half_open.len(), half_open);
    let (asked, answered) = (&pair.sent[0].message, &pair.sent[1].message);
    assert!(answered.len() < asked.len(), "nobody is amplified");
}

/// libreswan 5.2 resumes so. No child SA can follow, and it gives up if it is asked for a cookie.
#[test]
fn a_ticket_without_nat_detection_is_refused_at_once_and_stays_good() {
    let mut pair = lost();
    pair.initiate(Side::Left);
    let mut request = pair.intercept().remove(0);
    let mut message = request.clear();
    let is_kept = |payload: &Payload| match payload {
        Payload::Nonce(_) => true,
        Payload::Notify(notify) => notify.kind == NotifyType::TICKET_OPAQUE,
        _ => false,
    };
    message.payloads.retain(is_kept);
    request.message = message.encode();
    assert!(request.message.len() < 160);
    pair.deliver(&request);
    let answer = pair.intercept().remove(0);
    assert!(crate::extension::ticket::is_refused(&answer.clear()));
    assert!(answer.message.len() < request.message.len());
    assert_eq!(pair.right.entries().len(), 1);
}

/// Whoever has a ticket without its keys cannot use it, and does not spoil it.
// Weakness: 181
#[test]
fn a_ticket_without_its_keys_admits_nobody_and_stays_good() {
    let mut pair = connected();
    lose(&mut pair);
    let good = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    let mut bad = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    bad.keys.secret = Secret::new(vec![0; 32]);
    pair.left.engine.tickets.hold(peer_id("gateway"), bad);
    let id = pair.initiate(Side::Left);
    pair.settle();
    assert_eq!(pair.right.resumed(), [false]);
    assert_eq!(pair.right.entries().len(), 1);
    pair.with(Side::Left, |engine, now| engine.close(id, now));
    pair.left.engine.tickets.hold(peer_id("gateway"), good);
    pair.run_for(LONG);
    pair.connect();
    is_resumed(&pair);
}

#[test]
fn the_same_first_message_again_gets_the_same_answer() {
    let mut pair = connected();
    lose(&mut pair);
    pair.initiate(Side::Left);
    let request = pair.intercept().remove(0);
    pair.deliver(&request);
    let first = pair.intercept();
    pair.deliver(&request);
    let second = pair.intercept();
    assert_eq!(first[0].message, second[0].message);
    pair.deliver(&second[0]);
    pair.settle();
    is_resumed(&pair);
}

// Weakness: 181
#[test]
fn an_old_first_message_resumes_nothing() {
    let mut pair = connected();
    lose(&mut pair);
    pair.connect();
    is_resumed(&pair);
    let messages: Vec<_> = pair
        .sent
        .iter()
        .filter(|flying| flying.to == Side::Right)
        .cloned()
        .collect();
    pair.run_for(LONG);
    for message in messages {
        pair.deliver(&message);
    }
    pair.run_for(LONG);
    is_resumed(&pair);
}

#[test]
fn a_session_is_resumed_on_a_network_that_loses_repeats_and_delays() {
    for seed in 0..60 {
        let (left, right) = ends();
        let mut pair = Pair::seeded(left, right, seed);
        set_clocks(&mut pair, TODAY);
        pair.connect();
        lose(&mut pair);
        pair.hop = pair.hop.losing(200).repeating(300).delaying(200);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(400));
        is_one_tunnel(&pair);
        let sas = [&pair.left, &pair.right].map(|host| host.engine.sas().count());
        assert_eq!(sas, [1, 1], "seed {seed}");
        assert!(pair.right.entries().len() <= 1, "seed {seed}");
    }
}

#[test]
fn zones_are_agreed_upon_anew() {
    let (left, right) = zoned(Stance::Require, Stance::Require);
    let mut pair = connected_as(with_tickets((left, right)));
    let before = pair.left.child().agreement.clone();
    lose(&mut pair);
    pair.connect();
    is_resumed(&pair);
    assert_eq!(pair.left.child().agreement, before);
    assert!(before.is_some());
}

#[test]
fn the_address_inside_is_the_same_again() {
    let left = borrower();
    let right = lender(&["10.9.0.0/24"]);
    let mut pair = connected_as(with_tickets((left, right)));
    let lent = |pair: &Pair| pair.left.child().local.clone();
    let before = lent(&pair);
    lose(&mut pair);
    pair.connect();
    is_resumed(&pair);
    assert_eq!(lent(&pair), before);
}

#[test]
fn a_gateway_that_was_restarted_with_its_store_resumes_its_sessions() {
    let mut pair = restarted();
    assert!(!exchanges(&pair).contains(&ExchangeType::IKE_SA_INIT));
    assert_eq!(pair.right.resumed(), [true]);
    let replaced = |event: &Event| matches!(event, Event::IkeReplaced { resumed: true, .. });
    assert!(pair.left.events.iter().any(replaced));
    pair.run_for(LONG);
    is_one_tunnel(&pair);
}

/// The same gateway without its store, or with another key: the attempt has a full one beside it.
#[test]
fn a_gateway_that_was_restarted_without_its_store_authenticates_anew() {
    let mut pair = connected();
    let mut fresh = Host::seeded(ends().1, 77, 2);
    fresh.engine.set_wall_clock(TODAY);
    pair.restart(Side::Right, fresh);
    pair.run_for(Duration::from_secs(3));
    rekey_child(&mut pair, Side::Left);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(
        (pair.left.not_resumed(), pair.right.resumed()),
        (1, vec![false])
    );
    pair.run_for(LONG);
    is_one_tunnel(&pair);
}

#[test]
fn a_request_for_a_ticket_is_told_in_ike_auth_and_answered_there() {
    let pair = connected();
    assert_eq!(pair.sent.len(), 4);
    let held: Held = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
    assert_eq!(held.ticket.len(), 32);
    let kind = NotifyType::TICKET_REQUEST;
    assert!(!kind.is_error() && !kind.is_private());
}
