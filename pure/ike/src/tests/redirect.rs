//! Redirects to another gateway. The right host plays both gateways, at two addresses.

use super::pair::{Flying, Host, Pair, RIGHT, Side, fit};
use super::*;
use crate::{CannotRedirect, DownReason, DropReason, Elsewhere, Event};
use model::IkeSaId;
use std::net::IpAddr;
use wire::ike::{Datagram, NotifyType, Payload};

/// Address of the other gateway.
pub(super) const OTHER: &str = "198.51.100.7";

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Gateways that the mobile node's configuration allows.
pub(crate) const LISTED: &str = "198.51.100.0/24";

/// Returns a mobile node that accepts these gateways, and a gateway that redirects it to the other
/// one.
pub(crate) fn sending(listed: &str, at_once: bool) -> Pair {
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].redirects = vec![prefix(listed)];
    let to = address(OTHER).into();
    right.elsewhere = Some(Elsewhere { to, at_once });
    Pair::new(left, right)
}

/// Returns a connected pair that is not redirected yet.
pub(crate) fn served(listed: &str) -> Pair {
    let mut pair = sending(listed, true);
    serve(&mut pair);
    pair.connect();
    pair
}

/// Redirects the left host to the other gateway.
pub(crate) fn send_away(pair: &mut Pair) {
    let sa = pair.right.sa();
    let asked = pair.with(Side::Right, |engine, now| {
        engine.redirect(sa, address(OTHER).into(), now)
    });
    assert_eq!(asked, Ok(()));
}

/// Ends the redirects of the right host.
pub(super) fn serve(pair: &mut Pair) {
    pair.right.engine.config.elsewhere = None;
}

/// Returns the notifies of an unencrypted message.
fn notifies(flying: &Flying) -> Vec<NotifyType> {
    let Ok(Datagram::Clear(message)) = Datagram::decode(&flying.message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    let notifies = message
        .payloads
        .into_iter()
        .filter_map(|payload| match payload {
            Payload::Notify(notify) => Some(notify.kind),
            _ => None,
        });
    notifies.collect()
}

impl Host {
    /// Returns the gateways that the host was redirected to.
    pub(super) fn sent_to(&self) -> Vec<IpAddr> {
        let sent = self.events.iter().filter_map(|event| match event {
            Event::Redirected { to, .. } => Some(*to),
            _ => None,
        });
        sent.collect()
    }

    pub(super) fn sa(&self) -> IkeSaId {
        let mut sas = self.engine.sas();
        sas.find(|sa| sa.since.is_some()).unwrap().id
    }
}

/// Returns true if both ends have one child and one IKE SA, which uses this address of the right
/// host.
pub(super) fn is_up_at(pair: &Pair, gateway: &str) -> bool {
    let at: Vec<_> = pair
        .left
        .engine
        .sas()
        .map(|sa| sa.path.remote.ip())
        .collect();
    at == [address(gateway)]
        && pair.right.engine.sas().count() == 1
        && fit(pair.left.child(), pair.right.child())
}

#[test]
fn a_client_is_sent_away_by_the_answer_to_its_first_message() {
    let mut pair = sending(LISTED, true);
    pair.initiate(Side::Left);
    pair.deliver_next();
    assert_eq!(
        pair.right.engine.sas().count() + pair.right.engine.half_open(),
        0
    );
    assert_eq!(pair.right.dropped(DropReason::Redirected), 1);
    assert!(pair.sent[1].message.len() < pair.sent[0].message.len());
    pair.settle();
    assert_eq!(pair.left.sent_to(), [address(OTHER)]);
    assert!(is_up_at(&pair, OTHER));
    assert!(notifies(&pair.sent[0]).contains(&NotifyType::REDIRECT_SUPPORTED));
    assert!(notifies(&pair.sent[2]).contains(&NotifyType::REDIRECTED_FROM));
    assert!(pair.left.down_reasons().is_empty());
}

#[test]
fn a_client_is_sent_away_when_it_has_proved_who_it_is_and_gets_no_child() {
    let mut pair = sending(LISTED, false);
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.left.sent_to(), [address(OTHER)]);
    assert!(is_up_at(&pair, OTHER));
    let up = |event: &&Event| matches!(event, Event::ChildUp(_));
    assert_eq!(pair.right.events.iter().filter(up).count(), 1);
    assert!(pair.right.refusals()[0].contains(OTHER));
}

#[test]
fn a_client_is_sent_away_while_its_tunnel_is_up_and_leaves_when_the_other_is() {
    let mut pair = served(LISTED);
    send_away(&mut pair);
    while pair.deliver_next() {
        assert!(!pair.left.children().is_empty(), "it is never without");
    }
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.left.sent_to(), [address(OTHER)]);
    assert!(is_up_at(&pair, OTHER));
    assert_eq!(pair.left.down_reasons(), [&DownReason::Replaced]);
}

#[test]
fn nobody_is_sent_away_who_does_not_say_that_he_goes() {
    for at_once in [true, false] {
        let mut pair = sending(LISTED, at_once);
        pair.left.engine.config.peers[0].redirects.clear();
        pair.connect();
        assert!(is_up_at(&pair, RIGHT));
        let (ours, theirs) = (pair.left.sa(), pair.right.sa());
        let ask = |pair: &mut Pair, side, sa| {
            pair.with(side, |engine, now| {
                engine.redirect(sa, address(OTHER).into(), now)
            })
        };
        let deaf = ask(&mut pair, Side::Right, theirs);
        assert_eq!(deaf, Err(CannotRedirect::NotWilling));
        let ours = ask(&mut pair, Side::Left, ours);
        assert_eq!(ours, Err(CannotRedirect::NotTheirs));
        let nobodys = ask(&mut pair, Side::Right, IkeSaId(99));
        assert_eq!(nobodys, Err(CannotRedirect::NotUp));
    }
}

#[test]
fn an_address_that_is_not_listed_is_not_gone_to() {
    const NEARBY: &str = "203.0.113.64/28";
    let not_listed = DownReason::RedirectNotListed {
        to: OTHER.to_owned(),
    };
    let mut pair = sending(NEARBY, true);
    pair.connect();
    let told = &pair.left.refusals()[0];
    assert!(told.contains("not listed here as its gateway"), "{told}");
    assert!(pair.left.down_reasons().is_empty(), "it may be forged");
    pair.run_for(Duration::from_secs(200));
    assert_eq!(pair.left.down_reasons(), [&not_listed]);

    let mut pair = sending(NEARBY, false);
    pair.connect();
    assert_eq!(pair.left.down_reasons(), [&not_listed]);

    let mut pair = served(NEARBY);
    send_away(&mut pair);
    pair.run_for(Duration::from_secs(60));
    assert!(is_up_at(&pair, RIGHT));
    assert!(pair.left.refusals()[0].contains("not listed here"));
}

// Recovers: redirect
#[test]
fn an_answer_with_another_nonce_is_forged() {
    let mut pair = sending(LISTED, true);
    pair.initiate(Side::Left);
    pair.deliver_next();
    serve(&mut pair);
    let mut forged = pair.intercept().remove(0);
    *forged.message.last_mut().unwrap() ^= 1;
    pair.deliver(&forged);
    assert_eq!(pair.left.dropped(DropReason::WrongPayloads), 1);
    pair.run_for(Duration::from_secs(2));
    assert!(pair.left.sent_to().is_empty());
    assert!(is_up_at(&pair, RIGHT));
}

// Refuses: redirect
#[test]
fn who_is_sent_to_and_fro_stays_after_five_times() {
    let mut pair = sending(LISTED, true);
    pair.initiate(Side::Left);
    for turn in 1..=8 {
        let to = address(&format!("198.51.100.{turn}")).into();
        let at_once = true;
        pair.right.engine.config.elsewhere = Some(Elsewhere { to, at_once });
        pair.settle_one_round();
    }
    assert_eq!(pair.left.sent_to().len(), 5);
    let told = &pair.left.refusals()[0];
    assert!(told.contains("more than 5 times"), "{told}");
    serve(&mut pair);
    pair.run_for(Duration::from_secs(30));
    assert!(is_up_at(&pair, "198.51.100.5"), "it asks there again");
}

#[test]
fn nobody_is_sent_back_to_where_it_was_sent_from() {
    for at_once in [true, false] {
        let mut pair = sending("0.0.0.0/0", at_once);
        pair.initiate(Side::Left);
        while pair.left.sent_to().is_empty() && pair.deliver_next() {}
        // At its other address it redirects to the first one.
        let to = address(RIGHT).into();
        pair.right.engine.config.elsewhere = Some(Elsewhere { to, at_once });
        pair.run_for(Duration::from_secs(10));
        assert_eq!(pair.left.sent_to(), [address(OTHER)]);
        assert!(is_up_at(&pair, OTHER));
    }
}

// Recovers: redirect
#[test]
fn losses_change_nothing() {
    for seed in 0..40 {
        for at_once in [true, false] {
            let (mut left, mut right) = (mobile(), gateway());
            left.peers[0].redirects = vec![prefix(LISTED)];
            let to = address(OTHER);
            right.elsewhere = Some(Elsewhere {
                to: to.into(),
                at_once,
            });
            let mut pair = Pair::seeded(left, right, seed);
            pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
            pair.initiate(Side::Left);
            pair.run_for(Duration::from_secs(300));
            assert!(is_up_at(&pair, OTHER), "seed {seed}");
            assert_eq!(pair.left.sent_to(), [to], "seed {seed}");
        }
    }
}
