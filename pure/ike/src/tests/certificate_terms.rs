//! The CA and the organisational unit that a peer's certificate needs. The certificates in `units/`
//! were made by openssl and are valid in 2030. All are for alice, except those of the two CAs.

use super::certificates::{TODAY, by_certificate, certificate, credential, ends, pair};
use super::pair::{Pair, Side};
use super::ticket::{LONG, connected_as, lose_both, resuming};
use super::users::{
    STAFF, alice, connect_other, connected, entered, gateway_with, here, identity, names, table,
};
use super::*;
use crate::{CertificateTerms, DownReason, Resumption};
use crypto::TrustStore;
use wire::ike::CertificateRefusal;

fn made(name: &str) -> String {
    format!("../units/{name}")
}

/// Returns alice with another of her certificates.
fn alice_by(name: &str) -> Config {
    let mut config = alice();
    config.credential = Some(credential(&[&made(name)], &made(name)));
    config
}

/// Returns a table for a pattern with these terms: CA and unit, or an empty word for any.
fn table_of(id: &str, pattern: &str, authority: &str, unit: &str) -> Peer {
    let mut table = table(pattern);
    table.id = peer_id(id);
    table.certificate = CertificateTerms {
        authorities: match authority {
            "" => Vec::new(),
            name => vec![certificate(&made(name))],
        },
        unit: (!unit.is_empty()).then(|| unit.to_owned()),
    };
    table
}

/// Returns the gateway with these tables, which trusts one CA for tables without their own.
fn gateway_of(tables: impl IntoIterator<Item = Peer>, authority: &str) -> Config {
    let mut config = gateway_with(tables);
    config.trust = TrustStore::new(vec![certificate(&made(authority))]);
    config
}

/// Returns the table of the user that came, or the reason for which it was refused.
fn outcome(pair: &Pair) -> Result<PeerId, String> {
    let engine = &pair.right.engine;
    let user = engine.users().next();
    match user.and_then(|user| engine.table_of(user.id)) {
        Some(table) if pair.right.up() == 1 => Ok(table),
        _ => Err(pair.right.refusals().pop().unwrap_or_default()),
    }
}

fn come(certificate: &str, gateway: Config) -> Result<PeerId, String> {
    outcome(&connected(alice_by(certificate), gateway))
}

fn refused(certificate: &str, gateway: Config) -> String {
    come(certificate, gateway).unwrap_err()
}

#[test]
fn a_table_with_a_unit_admits_certificates_of_that_unit_only() {
    let gateway = || gateway_of([table_of("staff", STAFF, "", "Staff")], "ca");
    let staff = || Ok(peer_id("staff"));
    assert_eq!(come("staff", gateway()), staff());
    assert_eq!(come("both", gateway()), staff());
    let why = "the peer's certificate has the organisational unit `Guests`, but must have the \
               organisational unit `Staff`";
    assert!(refused("guest", gateway()).contains(why));
    let why = refused("none", gateway());
    assert!(
        why.contains("has no organisational unit, but must"),
        "{why}"
    );
    let mut pair = connected(alice_by("guest"), gateway());
    let [DownReason::CertificateRefused { why, .. }] = pair.left.down_reasons()[..] else {
        panic!("{:?}", pair.left.down_reasons());
    };
    assert_eq!(*why, Some(CertificateRefusal::WRONG_UNIT));
    connect_other(&mut pair, alice_by("staff"), 2);
    assert_eq!(outcome(&pair), staff(), "the gateway is well");
}

#[test]
fn the_ca_of_a_table_proves_its_users_and_nobody_else() {
    let own = || table_of("staff", STAFF, "ca", "");
    let sales = || table_of("sales", "*@sales.example.net", "", "");
    let gateway = |tables: Vec<Peer>| gateway_of(tables, "other");
    assert_eq!(
        come("staff", gateway(vec![own(), sales()])),
        Ok(peer_id("staff"))
    );
    // The CA of all other tables is not that of this one.
    let why = refused("elsewhere", gateway(vec![own(), sales()]));
    let expected = "issued by `CN=Unit CA other`, but must chain to `CN=Unit CA ca`";
    assert!(why.contains(expected), "{why}");
    // Nor is the CA of another table that of a table without its own.
    let mut lax = table_of("staff", STAFF, "", "");
    let mut strict = sales();
    strict.certificate = own().certificate.clone();
    let why = refused("staff", gateway(vec![lax.clone(), strict]));
    let expected = "issued by `CN=Unit CA ca`, but must chain to `CN=Unit CA other`";
    assert!(why.contains(expected), "{why}");
    // A CA that no table has is unknown, as ever.
    lax.certificate = CertificateTerms::default();
    let why = refused("staff", gateway(vec![lax]));
    assert!(why.contains("does not chain to any CA"), "{why}");
}

#[test]
fn tables_with_one_pattern_are_told_apart_by_the_unit_or_the_ca_of_the_certificate() {
    let units = || {
        let guests = table_of("guests", STAFF, "", "Guests");
        gateway_of([guests, table_of("staff", STAFF, "", "Staff")], "ca")
    };
    assert_eq!(come("staff", units()), Ok(peer_id("staff")));
    assert_eq!(come("guest", units()), Ok(peer_id("guests")));
    let why = refused("none", units());
    assert!(
        why.contains("must have the organisational units `Guests`, `Staff`"),
        "{why}"
    );
    let why = refused("both", units());
    assert!(
        why.contains("`Staff`, `Guests`, which are those of several tables"),
        "{why}"
    );
    let authorities = || {
        let one = table_of("one", STAFF, "ca", "");
        gateway_of([one, table_of("two", STAFF, "other", "")], "ca")
    };
    assert_eq!(come("staff", authorities()), Ok(peer_id("one")));
    assert_eq!(come("elsewhere", authorities()), Ok(peer_id("two")));
    let mut stranger = alice();
    stranger.identity = identity("alice@staff.example.net");
    let pair = connected(stranger, authorities());
    let why = outcome(&pair).unwrap_err();
    assert!(why.contains("does not chain to any CA"), "{why}");
}

/// The identity selects the table before the certificate is looked at.
#[test]
fn a_certificate_that_does_not_meet_its_table_is_not_tried_with_a_laxer_one() {
    let mut own = table_of("alice", STAFF, "", "Staff");
    (own.identity, own.users) = (identity("alice@staff.example.net"), None);
    let strict = table_of("strict", STAFF, "", "Staff");
    for first in [own, strict] {
        let gateway = gateway_of([first, table_of("lax", "*", "", "")], "ca");
        let why = refused("guest", gateway);
        assert!(
            why.contains("must have the organisational unit `Staff`"),
            "{why}"
        );
    }
    let lax = gateway_of([table_of("lax", "*", "", "")], "ca");
    assert_eq!(come("guest", lax), Ok(peer_id("lax")));
}

/// The answer to a user's certificate tells the same of identities with and without a table.
#[test]
fn the_owner_of_a_certificate_learns_no_other_identity_by_it() {
    let answer = |claimed: &str| {
        let mut liar = alice_by("staff");
        liar.identity = identity(claimed);
        let gateway = gateway_of([table_of("staff", STAFF, "ca", "Staff")], "other");
        let pair = connected(liar, gateway);
        assert_eq!(pair.right.up(), 0);
        match pair.left.down_reasons()[..] {
            [DownReason::CertificateRefused { why, .. }] => *why,
            _ => None,
        }
    };
    let name = Some(CertificateRefusal::WRONG_NAME);
    assert_eq!(answer("bob@staff.example.net"), name);
    assert_eq!(
        answer("bob@staff.example.net"),
        answer("bob@nowhere.example.net")
    );
}

#[test]
fn a_gateway_of_another_ca_than_that_of_its_table_is_refused() {
    let (mut left, right) = ends();
    left.peers[0].certificate.authorities = vec![certificate("ca")];
    left.trust = TrustStore::default();
    let good = connected(left.clone(), right.clone());
    assert_eq!((good.left.up(), good.right.up()), (1, 1));
    left.trust = TrustStore::new(vec![certificate("ca")]);
    left.peers[0].certificate.authorities = vec![certificate("other")];
    let bad = connected(left, right);
    assert_eq!((bad.left.up(), bad.right.up()), (0, 0));
    let why = bad.left.down_reasons().first().map(ToString::to_string);
    let why = why.unwrap_or_default();
    assert!(why.contains("but must chain to `CN=Other CA`"), "{why}");
}

#[test]
fn a_reload_with_other_terms_has_the_users_prove_themselves_again() {
    let gateway = |unit: &str| gateway_of([table_of("staff", STAFF, "", unit)], "ca");
    let mut pair = connected(alice_by("staff"), gateway("Staff"));
    let user = entered(&pair)[0].1;
    let same = pair.with(Side::Right, |engine, now| {
        engine.reconfigure(gateway("Staff"), now)
    });
    assert_eq!((same, pair.right.up()), (vec![], 1));
    // A second table with the same pattern is none of this user's business.
    let guests = table_of("guests", STAFF, "", "Guests");
    let two = gateway_of([guests, table_of("staff", STAFF, "", "Staff")], "ca");
    let same = pair.with(Side::Right, |engine, now| engine.reconfigure(two, now));
    assert_eq!((same, pair.right.up()), (vec![], 1));
    let other = gateway("Guests");
    let changed = pair.with(Side::Right, |engine, now| engine.reconfigure(other, now));
    assert_eq!(changed, [peer_id("staff"), user]);
    pair.settle();
    assert_eq!(pair.right.up(), 0);
    pair.connect();
    assert_eq!((pair.right.up(), here(&pair).len()), (0, 0));
    assert!(
        outcome(&pair)
            .unwrap_err()
            .contains("must have the organisational unit `Guests`")
    );
}

/// What a session has proved is less than what the table asks for now.
#[test]
fn a_session_does_not_come_back_to_a_table_with_other_terms() {
    for way in [Resumption::Tickets, Resumption::Skid3] {
        let gateway = |unit: &str| {
            let right = gateway_of([table_of("staff", STAFF, "", unit)], "ca");
            resuming((alice_by("none"), right), way)
        };
        let resumed = |unit: &str| {
            let mut pair = connected_as(gateway(""));
            assert!(pair.left.holds_ticket());
            lose_both(&mut pair);
            let (_, changed) = gateway(unit);
            pair.with(Side::Right, |engine, now| engine.reconfigure(changed, now));
            pair.connect();
            (pair.right.resumed().contains(&true), pair.right.up())
        };
        assert_eq!(resumed(""), (true, 1), "{way:?}");
        assert_eq!(resumed("Staff"), (false, 0), "{way:?}");
    }
}

#[test]
fn a_revocation_list_counts_for_the_ca_of_a_table() {
    let mut right = by_certificate(gateway(), &["gateway"]);
    right.peers[0].certificate.authorities = vec![certificate("ca")];
    right.trust = TrustStore::default();
    let strict = crypto::Revocation::Strict;
    right.trust = right.trust.with_revocation(Vec::new(), strict);
    let left = ends().0;
    let pair = pair_up(left.clone(), right.clone());
    let why = pair.right.refusals().pop().unwrap_or_default();
    assert!(why.contains("no revocation list"), "{why}");
    right.trust = TrustStore::default();
    assert_eq!(pair_up(left, right).right.up(), 1);
}

fn pair_up(left: Config, right: Config) -> Pair {
    let mut pair = pair(left, right, TODAY, 1);
    pair.connect();
    pair
}

/// A gateway with a CA for each of many tables still answers IKE_SA_INIT with one datagram.
#[test]
fn the_cas_of_many_tables_do_not_make_the_first_answer_long() {
    let mut right = gateway_of([table_of("staff", STAFF, "ca", "")], "ca");
    let other = certificate(&made("other"));
    let many = (0..5000u16).map(|number| {
        let mut another = other.clone();
        another.der.extend(number.to_be_bytes());
        another
    });
    let mut sales = table_of("sales", "*@sales.example.net", "", "");
    sales.certificate.authorities = many.collect();
    right.peers.push(sales);
    let pair = connected(alice_by("staff"), right);
    assert_eq!(outcome(&pair), Ok(peer_id("staff")));
    let to_left = pair
        .sent
        .iter()
        .filter(|sent| matches!(sent.to, Side::Left));
    // A cookie may come before the answer.
    let lengths = to_left.take(2).map(|sent| sent.message.len());
    let length = lengths.max().unwrap_or_default();
    assert!((1000..1600).contains(&length), "{length}");
}

/// A user that moves from one unit to another, with a new certificate for the same name.
#[test]
fn an_identity_is_the_user_of_one_table_at_once() {
    let tables = [("guests", "Guests"), ("staff", "Staff")].map(|(id, unit)| {
        let mut table = table_of(id, STAFF, "", unit);
        table.liveness = Duration::from_secs(30);
        table
    });
    let mut pair = connected(alice_by("guest"), gateway_of(tables, "ca"));
    connect_other(&mut pair, alice_by("guest"), 2);
    assert_eq!(outcome(&pair), Ok(peer_id("guests")), "it replaces itself");
    connect_other(&mut pair, alice_by("staff"), 3);
    let why = pair.right.refusals().pop().unwrap_or_default();
    assert!(why.contains("and that tunnel stays"), "{why}");
    // Its old tunnel answers no more, which the attempt has found out.
    pair.run_for(LONG);
    connect_other(&mut pair, alice_by("staff"), 4);
    assert_eq!(outcome(&pair), Ok(peer_id("staff")));
    // An ended tunnel, of which the last answer is kept, is in nobody's way.
    let sa = pair.right.engine.sas().find(|sa| sa.since.is_some());
    let sa = sa.map(|sa| sa.id).unwrap();
    pair.with(Side::Right, |engine, now| engine.close(sa, now));
    pair.lose();
    connect_other(&mut pair, alice_by("guest"), 5);
    assert_eq!(outcome(&pair), Ok(peer_id("guests")));
    let names = names(&pair);
    assert!(
        names.iter().all(|name| name == "alice@staff.example.net"),
        "{names:?}"
    );
}
