//! Processes that are killed between any two steps of a session that is resumed: the client gets
//! back, and no session is resumed twice.

use super::certificates::TODAY;
use super::crash::start;
use super::lifetimes::WAYS;
use super::pair::{Flying, Host, Pair, Side};
use super::ticket::{LONG, is_one_tunnel, lose_both, resuming};
use super::*;
use crate::tickets::Held;
use crate::{Config, Resumption};
use crypto::Prf;
use resumption::{Handle, Memory, Operation, OperationId, ReferenceKey, Store};

const BOTH: [Side; 2] = [Side::Left, Side::Right];

/// Steps of an attempt: its first message is sent, and four messages arrive.
const STEPS: std::ops::RangeInclusive<usize> = 0..=4;

fn ends(way: Resumption) -> (Config, Config) {
    let (mut left, right) = resuming((mobile(), gateway()), way);
    left.peers[0].liveness = Duration::from_secs(30);
    (left, right)
}

/// Returns a process of one end, which knows nothing of an earlier one but its files.
fn process(side: Side, way: Resumption, number: u8, store: Option<Memory>) -> Host {
    let (left, right) = ends(way);
    let mut host = match side {
        Side::Left => Host::seeded(left, number, 1),
        Side::Right => Host::seeded(right, number, 2),
    };
    host.engine.set_wall_clock(TODAY);
    if side == Side::Right {
        let key = Prf::HmacSha256.mac(b"file", &[b"references"]);
        host.engine.refer_by(ReferenceKey::restored(key));
        host.engine.set_incarnation(start(number.into()));
        host.store = store;
    }
    host
}

/// Returns two ends that have lost their IKE SA.
fn lost(way: Resumption) -> Pair {
    let (left, right) = ends(way);
    let mut pair = Pair::new(left, right);
    pair.left = process(Side::Left, way, 1, None);
    pair.right = process(Side::Right, way, 2, Some(Memory::new(9)));
    pair.connect();
    lose_both(&mut pair);
    pair
}

/// Kills a process and starts it again. Returns how many sessions it had resumed.
fn kill(pair: &mut Pair, side: Side, way: Resumption) -> usize {
    let before = count(pair);
    let store = pair.host(side).store.take();
    pair.restart(side, process(side, way, 3, store));
    if side == Side::Right { before } else { 0 }
}

/// Returns the number of sessions that the gateway's process has resumed.
fn count(pair: &Pair) -> usize {
    let resumed = pair.right.resumed();
    resumed.iter().filter(|resumed| **resumed).count()
}

/// Has the client begin again whenever it has nothing left, as an operator's `up` does.
fn come_back(pair: &mut Pair, which: &str) {
    for _ in 0..60 {
        if pair.left.engine.sas().count() == 0 {
            pair.initiate(Side::Left);
        }
        pair.run_for(Duration::from_secs(10));
        if (pair.left.up(), pair.right.up()) == (1, 1) && pair.left.engine.sas().count() == 1 {
            return is_one_tunnel(pair);
        }
    }
    panic!(
        "{which}: the client does not come back: {:?}",
        pair.left.events
    );
}

/// The only entry of the store.
fn handle(pair: &Pair) -> Handle {
    let mut entries = pair.right.store.as_ref().unwrap().iter();
    *entries.next().unwrap().0
}

fn has(pair: &Pair, handle: &Handle) -> bool {
    let mut entries = pair.right.store.as_ref().unwrap().iter();
    entries.any(|(other, _)| other == handle)
}

/// Checks that a ticket admits no initiator again: neither by all messages of its owner, nor by a
/// copy that another program has.
fn is_used_up(pair: &mut Pair, kept: Held, way: Resumption, which: &str) {
    let before = count(pair);
    let messages: Vec<_> = pair.sent.iter().filter(to_right).cloned().collect();
    for message in &messages {
        pair.deliver(message);
        pair.intercept();
    }
    pair.run_for(LONG);
    assert_eq!(count(pair), before, "{which}: by a copy of the messages");
    let mut other = process(Side::Left, way, 7, None);
    std::mem::swap(&mut pair.left, &mut other);
    pair.trace.adopt(Side::Left, &pair.left.engine);
    pair.left.engine.tickets.hold(peer_id("gateway"), kept);
    pair.initiate(Side::Left);
    pair.run_for(LONG);
    assert_eq!(count(pair), before, "{which}: by a copy of the ticket");
}

fn to_right(flying: &&Flying) -> bool {
    flying.to == Side::Right
}

// Weakness: 190
#[test]
fn a_process_that_is_killed_after_any_step_leaves_one_session() {
    for way in WAYS {
        for killed in BOTH {
            for step in STEPS {
                for arrives in [true, false] {
                    let which = format!("{way:?}, {killed:?} after {step}, {arrives}");
                    let mut pair = lost(way);
                    let kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
                    let used = handle(&pair);
                    pair.initiate(Side::Left);
                    (0..step).for_each(|_| assert!(pair.deliver_next(), "{which}"));
                    let before = kill(&mut pair, killed, way);
                    let may_resume = has(&pair, &used);
                    assert!(before == 0 || !may_resume, "{which}");
                    if !arrives {
                        pair.lose();
                    }
                    come_back(&mut pair, &which);
                    let is_spent = !has(&pair, &used);
                    assert!(is_spent || before + count(&pair) == 0, "{which}");
                    if is_spent {
                        is_used_up(&mut pair, kept, way, &which);
                    }
                }
            }
        }
    }
}

/// The store has been asked to take the entry, and the gateway is killed before it knows the
/// outcome. The client takes its ticket as used, whether the entry is gone or not.
// Weakness: 190
#[test]
fn a_gateway_that_is_killed_while_its_store_takes_an_entry_admits_nobody_by_it() {
    for way in WAYS {
        for is_taken in [true, false] {
            let which = format!("{way:?}, taken: {is_taken}");
            let mut pair = lost(way);
            let kept = pair.left.engine.tickets.copy(peer_id("gateway")).unwrap();
            let used = handle(&pair);
            pair.initiate(Side::Left);
            (0..2).for_each(|_| assert!(pair.deliver_next()));
            let mut store = pair.right.store.take().unwrap();
            pair.deliver_next();
            assert_eq!(count(&pair), 0, "{which}: nothing is up before the outcome");
            if is_taken {
                store.submit(Operation::Take(OperationId(0), used.into()), TODAY);
                assert!(store.poll().is_some());
            }
            pair.right.store = Some(store);
            kill(&mut pair, Side::Right, way);
            come_back(&mut pair, &which);
            assert_eq!(count(&pair), 0, "{which}");
            if is_taken {
                is_used_up(&mut pair, kept, way, &which);
            }
        }
    }
}

/// Without a file, sessions end with the gateway.
// Weakness: 190
#[test]
fn a_client_comes_back_to_a_gateway_that_has_lost_its_store_at_any_step() {
    for way in WAYS {
        for step in STEPS {
            let which = format!("{way:?} after {step}");
            let mut pair = lost(way);
            pair.initiate(Side::Left);
            (0..step).for_each(|_| assert!(pair.deliver_next()));
            pair.restart(
                Side::Right,
                process(Side::Right, way, 3, Some(Memory::new(9))),
            );
            come_back(&mut pair, &which);
            assert_eq!(count(&pair), 0, "{which}");
        }
    }
}
