//! What a thief of a ticket, of a key, of an entry or of a store can do, and until when.
//!
//! | stolen | opens | plays |
//! |---|---|---|
//! | ticket | nothing | nobody |
//! | key of the tickets | nothing | nobody; each made-up ticket has the store read once |
//! | entry of a ticket | the first child SA of the lost session, and the resumed one | both ends |
//! | entry of SKID3 | the resumed session | both ends |
//!
//! All of it ends with the entry, and what is resumed from it with the next key exchange.

use super::certificates::TODAY;
use super::pair::{Flying, Host, Pair, Side, keys_of};
use super::reauth::reauthenticate;
use super::rekey::{rekey_child, rekey_ike};
use super::ticket::{
    LONG, connected_as, is_one_tunnel, is_resumed, lose, lose_both, resuming, set_clocks,
};
use super::*;
use crate::auth::proof::fingerprint;
use crate::exchange::nonce;
use crate::keys::{ChildKeys, Inputs, UnprovedKeys, first_cipher};
use crate::tickets::Held;
use crate::{Config, Resumption};
use crypto::{Rng, UnixTime};
use resumption::{Entry, Handle, Kept, Keys, Memory, Operation, ReferenceKey, Store, Way};
use wire::ike::{Datagram, Message};

const WAYS: [Resumption; 2] = [Resumption::Tickets, Resumption::Skid3];

fn ends(way: Resumption) -> (Config, Config) {
    resuming((mobile(), gateway()), way)
}

fn key() -> ReferenceKey {
    ReferenceKey::restored(Secret::new(vec![5; 32]))
}

/// Returns two ends that have lost their IKE SA, and the key of the gateway's tickets.
fn lost(way: Resumption) -> Pair {
    let (left, right) = ends(way);
    let mut pair = Pair::new(left, right);
    pair.right.engine.refer_by(key());
    set_clocks(&mut pair, TODAY);
    pair.connect();
    lose_both(&mut pair);
    pair
}

pub(super) fn copy(pair: &Pair) -> Held {
    let held = pair.left.engine.tickets.copy(peer_id("gateway"));
    held.expect("the client has one")
}

/// Has the left end present a ticket, and returns true if a session was resumed.
pub(super) fn resumes_with(pair: &mut Pair, held: Held) -> bool {
    let before = pair.right.resumed().len();
    pair.left.engine.tickets.hold(peer_id("gateway"), held);
    pair.initiate(Side::Left);
    pair.run_for(LONG);
    pair.right.resumed()[before..].contains(&true)
}

/// The key of the tickets names entries, and does not tell which there are.
// Weakness: 189
#[test]
fn the_key_of_tickets_without_an_entry_resumes_nothing() {
    for way in WAYS {
        let mut pair = lost(way);
        let good = copy(&pair);
        for seed in 0..20 {
            let handle = Handle::draw(&mut Rng::from_seed([seed; 32]));
            let mut made_up = good.clone();
            made_up.ticket = key().issue(&handle).to_vec();
            made_up.keys.secret = Secret::new(vec![seed; 32]);
            assert!(!resumes_with(&mut pair, made_up), "{way:?}");
        }
    }
}

/// Whoever reads the names of entries in the store can make tickets of them with that key.
// Weakness: 189
#[test]
fn the_key_of_tickets_and_the_name_of_an_entry_resume_nothing_and_spend_nothing() {
    for way in WAYS {
        let mut pair = lost(way);
        let good = copy(&pair);
        let (handle, _) = pair.right.store.as_ref().unwrap().iter().next().unwrap();
        let mut made_up = good.clone();
        made_up.ticket = key().issue(handle).to_vec();
        assert_eq!(made_up.ticket, good.ticket);
        made_up.keys.secret = Secret::new(vec![0; 32]);
        pair.left.engine.tickets.hold(peer_id("gateway"), made_up);
        pair.initiate(Side::Left);
        pair.settle_one_round();
        pair.deliver_next();
        pair.intercept();
        assert_eq!(pair.right.resumed(), [false], "{way:?}");
        assert_eq!(pair.right.entries().len(), 1);
    }
}

/// Returns the nonces of two messages in which they are clear.
pub(super) fn nonces(messages: &[Flying]) -> [Vec<u8>; 2] {
    let of = |flying: &Flying| match Datagram::decode(&flying.message).unwrap() {
        Datagram::Clear(message) => nonce(&message).unwrap().to_vec(),
        Datagram::Sealed(sealed) => nonce(&sealed.clear().unwrap()).unwrap().to_vec(),
    };
    [of(&messages[0]), of(&messages[1])]
}

/// Returns the keys that a thief derives from a stolen secret and recorded messages, as either end
/// has them.
pub(super) fn derived(stolen: &Keys, messages: &[Flying]) -> [UnprovedKeys; 2] {
    [true, false].map(|initiator| derived_by(stolen, messages, initiator))
}

fn derived_by(stolen: &Keys, messages: &[Flying], initiator: bool) -> UnprovedKeys {
    let [nonce_i, nonce_r] = nonces(messages);
    let header = wire::ike::Header::peek(&messages[1].message).unwrap();
    let spis = [header.spi_i, header.spi_r];
    let inputs = Inputs::of_session(stolen, [&nonce_i, &nonce_r], spis, initiator);
    match stolen.way {
        Way::Ticket => UnprovedKeys::resumed(stolen, &inputs),
        Way::Skid3 | Way::Skid3Pfs => {
            UnprovedKeys::resumed_by_skid(stolen, &messages[0].message, None, &inputs)
        }
    }
}

/// Returns true if these keys open a recorded message, in either direction.
pub(super) fn opens(keys: &[UnprovedKeys; 2], flying: &Flying) -> bool {
    match Datagram::decode(&flying.message).unwrap() {
        Datagram::Clear(_) => false,
        Datagram::Sealed(sealed) => keys.iter().any(|keys| keys.cipher.open(&sealed).is_ok()),
    }
}

/// Returns the keys of the first child SA: from the initiator, and to it.
fn first_child(sk_d: &Secret, nonces: [Vec<u8>; 2]) -> [Vec<u8>; 2] {
    let keymat = ChildKeys::first(sk_d.clone(), nonces.concat()).keymat(&[], 40);
    [
        keymat.expose()[..20].to_vec(),
        keymat.expose()[20..].to_vec(),
    ]
}

/// Rule: RFC 5723 keeps SK_d, from which the keys of packets come. SKID3 keeps a secret of its own.
// Weakness: 185
#[test]
fn a_stolen_entry_opens_the_packets_of_the_lost_session_by_ticket_and_none_by_skid() {
    for way in WAYS {
        let pair = connected_as(ends(way));
        let lost = pair.left.child();
        let packets = [&lost.outbound, &lost.inbound].map(|half| keys_of(half).remove(0));
        let stolen = pair.right.entries()[0].keys.secret.clone();
        let opened = first_child(&stolen, nonces(&pair.sent)) == packets;
        assert_eq!(opened, way == Resumption::Tickets, "{way:?}");
        // Its IKE messages have keys that do not come from SK_d.
        let keys = derived(&pair.right.entries()[0].keys, &pair.sent);
        assert!(!pair.sent.iter().any(|flying| opens(&keys, flying)));
    }
}

/// No key exchange is in a resumed session, so its secret opens all of it until the next one.
// Weakness: 189
#[test]
fn a_stolen_entry_opens_the_resumed_session_until_a_key_exchange() {
    for way in WAYS {
        let mut pair = lost(way);
        let stolen = pair.right.entries()[0].keys.clone();
        pair.connect();
        is_resumed(&pair);
        let keys = derived(&stolen, &pair.sent);
        let opened = pair.sent.iter().filter(|flying| opens(&keys, flying));
        // The two messages of IKE_AUTH, or the last three of SKID3, whose first has its own keys.
        let expected = if way == Resumption::Skid3 { 3 } else { 2 };
        assert_eq!(opened.count(), expected, "{way:?}");
        let packets = keys[0].first_child().keymat(&[], 40);
        let ours = keys_of(&pair.left.child().outbound).remove(0);
        assert_eq!(packets.expose()[..20], ours, "{way:?}");
        // A rekey of the IKE SA has a key exchange, and everything later comes from it.
        let sk_d = pair.left.engine.sk_d().to_vec();
        rekey_ike(&mut pair, Side::Left);
        pair.settle();
        assert_ne!(pair.left.engine.sk_d(), sk_d);
        pair.sent.clear();
        rekey_child(&mut pair, Side::Left);
        pair.settle();
        assert!(!pair.sent.is_empty());
        assert!(!pair.sent.iter().any(|flying| opens(&keys, flying)));
    }
}

/// The first message of SKID3 is sealed with a key of the entry and of no other.
// Weakness: 185
#[test]
fn a_stolen_entry_of_one_session_opens_nothing_of_another() {
    let mut pair = lost(Resumption::Skid3);
    let stolen = pair.right.entries()[0].keys.clone();
    pair.connect();
    let opens_first = |stolen: &Keys, flying: &Flying| {
        let Datagram::Sealed(sealed) = Datagram::decode(&flying.message).unwrap() else {
            panic!("SKID3 is sealed");
        };
        let clear: Message = sealed.clear().unwrap();
        let cipher = first_cipher(stolen, nonce(&clear).unwrap(), clear.header.spi_i, false);
        cipher.open(&sealed).is_ok()
    };
    assert!(opens_first(&stolen, &pair.sent[0]));
    // A full exchange lies between this session and the next one.
    reauthenticate(&mut pair);
    pair.run_for(LONG);
    lose_both(&mut pair);
    pair.connect();
    assert!(!opens_first(&stolen, &pair.sent[0]));
    let keys = derived(&stolen, &pair.sent);
    assert!(!pair.sent.iter().any(|flying| opens(&keys, flying)));
}

/// Whoever steals the entry of a client can play its gateway to it, until the entry ends or another
/// full exchange.
// Weakness: 189
#[test]
fn a_thief_of_a_clients_entry_plays_its_gateway_until_the_next_full_exchange() {
    for way in WAYS {
        let mut pair = lost(way);
        let stolen = copy(&pair);
        let mut thief = thief(way, &pair, &stolen);
        std::mem::swap(&mut pair.right, &mut thief);
        pair.trace.adopt(Side::Right, &pair.right.engine);
        pair.connect();
        assert_eq!(pair.left.resumed(), [false, true], "{way:?}");
        is_one_tunnel(&pair);
        // It lacks the gateway's key, so another authentication is none.
        reauthenticate(&mut pair);
        pair.run_for(Duration::from_secs(10));
        assert_eq!(pair.left.resumed(), [false, true]);
        let told = pair.right.refusals();
        assert!(told.iter().any(|why| why.contains("key")), "{told:?}");
    }
}

/// Returns a gateway of a thief that has a client's entry, and not the gateway's pre-shared key.
fn thief(way: Resumption, pair: &Pair, stolen: &Held) -> Host {
    let mut config = ends(way).1;
    config.peers[0].psk = Some(Secret::new(b"a guess".to_vec()));
    let mut thief = Host::seeded(config, 88, 2);
    thief.engine.set_wall_clock(TODAY);
    // A program of the thief would read the ticket as it is.
    thief.engine.refer_by(key());
    let config = &thief.engine.config;
    let entry = Entry {
        keys: stolen.keys.clone(),
        credential: fingerprint(&config.peers[0], &stolen.keys, config),
        ..pair.right.entries()[0].clone()
    };
    let handle = key().read(&stolen.ticket).unwrap();
    let mut store = Memory::new(9);
    store.submit(Operation::Add(Box::new(Kept { handle, entry })), TODAY);
    thief.store = Some(store);
    thief
}

/// The lifetime of the ticket bounds it, at either end.
// Weakness: 189
#[test]
fn a_thief_of_a_clients_entry_plays_nobody_once_it_has_ended() {
    for way in WAYS {
        let mut pair = lost(way);
        let (stolen, of_client) = (copy(&pair), copy(&pair));
        let mut thief = thief(way, &pair, &stolen);
        set_clocks(&mut pair, UnixTime(TODAY.0 + 8 * 3600));
        pair.now += Duration::from_secs(8 * 3600);
        let ends = pair.now + LONG;
        let to_gateway = Held { ends, ..stolen };
        assert!(!resumes_with(&mut pair, to_gateway), "{way:?}");
        lose(&mut pair);
        std::mem::swap(&mut pair.right, &mut thief);
        pair.trace.adopt(Side::Right, &pair.right.engine);
        pair.left.engine.tickets.hold(peer_id("gateway"), of_client);
        pair.connect();
        assert_eq!(pair.right.resumed(), [] as [bool; 0], "{way:?}");
        assert_eq!(pair.left.up(), 0);
    }
}

/// A ticket is spent by its owner, and so is every copy of it.
// Weakness: 180
#[test]
fn a_copy_of_a_ticket_is_no_good_once_its_owner_was_here() {
    for way in WAYS {
        let mut pair = lost(way);
        let stolen = copy(&pair);
        pair.connect();
        is_resumed(&pair);
        lose(&mut pair);
        pair.left.engine.tickets.forget(None);
        assert!(!resumes_with(&mut pair, stolen), "{way:?}");
    }
}

/// A store that is copied and restored later has entries that were used since. Those that ended
/// since are good for nothing.
// Weakness: 189
#[test]
fn a_store_that_is_restored_from_an_old_copy_is_good_until_its_entries_end() {
    for (later, resumes) in [(3600, true), (8 * 3600, false)] {
        for way in WAYS {
            let mut pair = lost(way);
            let stolen = copy(&pair);
            let (handle, entry) = pair.right.store.as_ref().unwrap().iter().next().unwrap();
            let old = Kept {
                handle: *handle,
                entry: entry.clone(),
            };
            pair.connect();
            is_resumed(&pair);
            lose(&mut pair);
            let now = UnixTime(TODAY.0 + later);
            set_clocks(&mut pair, now);
            let mut restored = Memory::new(9);
            restored.submit(Operation::Add(Box::new(old)), now);
            pair.right.store = Some(restored);
            let resumed = resumes_with(&mut pair, stolen);
            assert_eq!(resumed, resumes, "{way:?}, {later} s later");
        }
    }
}
