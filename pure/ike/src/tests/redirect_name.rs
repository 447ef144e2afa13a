//! Redirects to a gateway by its name. The test is the caller, which looks the name up. As in
//! `redirect.rs`, the right host plays both gateways.

use super::pair::{Host, Pair, RIGHT, Side};
use super::redirect::{LISTED, OTHER, is_up_at, serve};
use super::*;
use crate::{ApiMisuse, Destination, DownReason, Elsewhere, Event};
use model::{IkeSaId, PeerId};
use std::net::IpAddr;

const NAME: &str = "gw2.example.net";

/// Returns a mobile node, and a gateway that redirects it to a name.
fn naming(at_once: bool) -> (Config, Config) {
    let (mut left, mut right) = (mobile(), gateway());
    left.peers[0].redirects = vec![prefix(LISTED)];
    let to = NAME.parse().unwrap();
    right.elsewhere = Some(Elsewhere { to, at_once });
    (left, right)
}

fn named(at_once: bool) -> Pair {
    let (left, right) = naming(at_once);
    Pair::new(left, right)
}

impl Host {
    /// Returns the names to which the host was redirected, with the peer.
    fn told_names(&self) -> Vec<(PeerId, &str)> {
        let told = self.events.iter().filter_map(|event| match event {
            Event::RedirectedToName { peer, name, .. } => Some((*peer, &**name)),
            _ => None,
        });
        told.collect()
    }
}

/// Follows the last redirection of the left host to an address of its name.
fn follow(pair: &mut Pair, to: &str) -> Result<IkeSaId, ApiMisuse> {
    let peer = pair
        .left
        .told_names()
        .last()
        .map_or(PeerId::NONE, |(peer, _)| *peer);
    let to = to.parse().unwrap();
    pair.with(Side::Left, |engine, now| engine.follow(peer, to, now))
}

/// Initiates until the left host is redirected.
fn tell(pair: &mut Pair) {
    pair.initiate(Side::Left);
    while pair.left.told_names().is_empty() {
        assert!(pair.deliver_next(), "nothing was told");
    }
}

#[test]
fn the_name_of_a_gateway_is_told_and_an_address_of_it_followed() {
    for at_once in [true, false] {
        let mut pair = named(at_once);
        tell(&mut pair);
        assert!(follow(&mut pair, OTHER).is_ok());
        pair.run_for(Duration::from_secs(60));
        assert_eq!(
            pair.left.told_names().len(),
            1,
            "{:?}",
            pair.left.told_names()
        );
        assert_eq!(pair.left.told_names()[0].1, NAME);
        assert_eq!(pair.left.sent_to(), [OTHER.parse::<IpAddr>().unwrap()]);
        assert!(is_up_at(&pair, OTHER), "{at_once}");
    }
}

#[test]
fn a_client_that_is_up_is_never_without_a_tunnel() {
    let mut pair = named(true);
    serve(&mut pair);
    pair.connect();
    let (sa, to) = (pair.right.sa(), NAME.parse::<Destination>().unwrap());
    let asked = pair.with(Side::Right, |engine, now| engine.redirect(sa, to, now));
    assert_eq!(asked, Ok(()));
    pair.run_for(Duration::from_secs(20));
    assert!(is_up_at(&pair, RIGHT), "the name is being looked up");
    assert!(follow(&mut pair, OTHER).is_ok());
    while pair.deliver_next() {
        assert!(!pair.left.children().is_empty(), "it is never without");
    }
    pair.run_for(Duration::from_secs(60));
    assert!(is_up_at(&pair, OTHER));
    assert_eq!(pair.left.down_reasons(), [&DownReason::Replaced]);
}

/// The first answer ends the attempt at the other address, and the one that was redirected.
#[test]
fn of_several_addresses_one_is_up() {
    let mut pair = named(true);
    tell(&mut pair);
    for to in [OTHER, "198.51.100.8"] {
        assert!(follow(&mut pair, to).is_ok());
    }
    pair.run_for(Duration::from_secs(60));
    let up = pair.left.engine.sas().map(|sa| sa.path.remote.ip());
    assert_eq!(up.collect::<Vec<_>>(), [OTHER.parse::<IpAddr>().unwrap()]);
    assert_eq!(pair.left.children().len(), 1);
}

// Refuses: redirect
#[test]
fn an_address_that_is_not_listed_is_refused_and_the_attempt_continues() {
    let mut pair = named(true);
    assert_eq!(follow(&mut pair, OTHER), Err(ApiMisuse::UnknownPeer));
    tell(&mut pair);
    assert_eq!(
        follow(&mut pair, "203.0.113.9"),
        Err(ApiMisuse::UnknownPeer)
    );
    assert!(pair.left.down_reasons().is_empty(), "it may be forged");
    // The name means nothing, and the gateway serves again.
    serve(&mut pair);
    pair.run_for(Duration::from_secs(60));
    assert!(is_up_at(&pair, RIGHT));
    assert!(pair.left.sent_to().is_empty());
}

// Refuses: redirect
#[test]
fn octets_that_are_no_name_are_not_looked_up() {
    let long = format!("{}.net", "a".repeat(64));
    for name in [
        "gw\u{1b}[m.net",
        "gw",
        "a..net",
        "192.0.2.300",
        "gw.net\0",
        long.as_str(),
    ] {
        let (left, mut right) = naming(true);
        let to = Destination::Name(name.into());
        right.elsewhere = Some(Elsewhere { to, at_once: true });
        let mut pair = Pair::new(left, right);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(10));
        assert!(pair.left.told_names().is_empty(), "{name:?}");
        let told = &pair.left.refusals()[0];
        assert!(told.contains("not listed here as its gateway"), "{told}");
        assert!(!told.contains(|c: char| c.is_control()), "{told}");
    }
}

// Refuses: redirect
#[test]
fn a_name_counts_among_five_redirections() {
    let mut pair = named(true);
    tell(&mut pair);
    assert!(follow(&mut pair, "198.51.100.1").is_ok());
    for turn in 2..=8 {
        let to = format!("198.51.100.{turn}").parse().unwrap();
        let at_once = true;
        pair.right.engine.config.elsewhere = Some(Elsewhere { to, at_once });
        pair.settle_one_round();
    }
    assert_eq!(pair.left.sent_to().len(), 5);
    let told = &pair.left.refusals()[0];
    assert!(told.contains("more than 5 times"), "{told}");
}

// Recovers: redirect
#[test]
fn losses_change_nothing_for_a_name() {
    for seed in 0..20 {
        for at_once in [true, false] {
            let (left, right) = naming(at_once);
            let mut pair = Pair::seeded(left, right, seed);
            pair.hop = pair.hop.losing(200).repeating(200).delaying(200);
            pair.initiate(Side::Left);
            let mut seconds = 0..100;
            while pair.left.told_names().is_empty() && seconds.next().is_some() {
                pair.run_for(Duration::from_secs(1));
            }
            assert!(follow(&mut pair, OTHER).is_ok(), "seed {seed}");
            pair.run_for(Duration::from_secs(300));
            assert!(is_up_at(&pair, OTHER), "seed {seed}");
        }
    }
}
