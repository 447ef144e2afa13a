//! Names in upper and lower case (RFC 4343, RFC 5280 sections 7.2 and 7.5).

use super::certificates::{self, TODAY};
use super::pair::{Host, Pair, Side, fit};
use super::*;
use crypto::Name;
use std::time::Duration;

#[test]
fn a_domain_name_is_the_same_identity_in_letters_of_either_case() {
    let (mut left, mut right) = (mobile(), gateway());
    left.identity = "MOBILE.Example.NET".parse().unwrap();
    left.peers[0].identity = "Gateway.example.net".parse().unwrap();
    right.identity = "gateway.EXAMPLE.net".parse().unwrap();
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
}

#[test]
fn the_local_part_of_a_mail_address_is_not() {
    for (ours, theirs, up) in [
        ("alice@Example.NET", "alice@example.net", 1),
        ("Alice@example.net", "alice@example.net", 0),
    ] {
        let (mut left, mut right) = (mobile(), gateway());
        left.identity = ours.parse().unwrap();
        right.peers[0].identity = theirs.parse().unwrap();
        let mut pair = Pair::new(left, right);
        pair.connect();
        assert_eq!((pair.left.up(), pair.right.up()), (up, up), "{ours}");
    }
}

#[test]
fn a_certificate_vouches_for_its_names_in_letters_of_either_case() {
    let (mut left, right) = certificates::ends();
    left.identity = "Mobile.EXAMPLE.net".parse().unwrap();
    let mut pair = certificates::pair(left, right, TODAY, 1);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    let named = |name: Name| {
        let mut certificate = certificates::certificate("gateway");
        certificate.names = vec![name];
        certificate
    };
    let vouches =
        |name, identity: &str| crate::signature::vouches(&named(name), &identity.parse().unwrap());
    assert!(vouches(Name::Dns("GW.example".to_owned()), "gw.example"));
    assert!(vouches(
        Name::Email("a@GW.example".to_owned()),
        "a@gw.example"
    ));
    assert!(!vouches(
        Name::Email("A@gw.example".to_owned()),
        "a@gw.example"
    ));
    assert!(!vouches(
        Name::Email("a@gw.example".to_owned()),
        "gw.example"
    ));
}

/// An initiator that has lost all state and spells its name in another case replaces its old SA.
// Weakness: 95
#[test]
fn initial_contact_acts_on_the_same_name_in_other_letters() {
    let mut pair = Pair::new(mobile(), gateway());
    pair.connect();
    let mut again = mobile();
    again.identity = "Mobile.Example.Net".parse().unwrap();
    let fresh = Host::seeded(again, 9, 1);
    pair.restart(Side::Left, fresh);
    pair.connect();
    pair.run_for(Duration::from_secs(60));
    assert_eq!((pair.left.up(), pair.right.up()), (1, 1));
    assert!(fit(pair.left.child(), pair.right.child()));
}
