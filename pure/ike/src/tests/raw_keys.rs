//! Raw public keys instead of certificates (RFC 7670).

use super::certificates::{
    self, TODAY, by_certificate, credential, pair, public, refused, sign_other_octets,
};
use super::pair::{Pair, Side, fit};
use super::*;
use crate::Ppk;
use crypto::TrustStore;
use std::time::Duration;
use wire::ike::{CertificateEncoding, Datagram, Message, Payload};

/// Returns a host with its own key and its peer's public key.
fn by_key(mut config: Config, own: &str, peers: &str) -> Config {
    config.peers[0].psk = None;
    config.peers[0].key = Some(Box::new(public(peers)));
    config.credential = Some(credential(&[], own));
    config
}

/// Returns a mobile node and a gateway that know each other's keys and no CA.
fn ends() -> (Config, Config) {
    (
        by_key(mobile(), "mobile-ca", "gateway"),
        by_key(gateway(), "gateway", "mobile-ca"),
    )
}

/// Returns the mobile node with a key that the gateway does not know.
fn thief() -> Config {
    by_key(mobile(), "thief", "gateway")
}

#[test]
fn keys_that_both_ends_know_prove_them_in_short_messages() {
    let (left, right) = ends();
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    assert!(pair.sent.iter().all(|flying| flying.message.len() < 600));
}

// Recovers: raw-public-keys
#[test]
fn keys_survive_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let (left, right) = ends();
        let mut pair = Pair::seeded(left, right, seed);
        pair.hop = pair.hop.losing(200).repeating(300).delaying(300);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(300));
        assert!(fit(pair.left.child(), pair.right.child()), "seed {seed}");
    }
}

/// RFC 7670 section 3: "the Certification Authority field MUST be empty".
#[test]
fn a_responder_asks_for_what_its_peers_have() {
    let asked = |config: Config| {
        let mut pair = pair(ends().0, config, TODAY, 1);
        pair.initiate(Side::Left);
        assert!(pair.deliver_next());
        let answer = pair.sent.last().expect("it answers").message.clone();
        let Ok(Datagram::Clear(Message { payloads, .. })) = Datagram::decode(&answer) else {
            panic!("IKE_SA_INIT is in the clear");
        };
        let asked = payloads.into_iter().filter_map(|payload| match payload {
            Payload::CertificateRequest { encoding, data } => Some((encoding, data.len())),
            _ => None,
        });
        asked.collect::<Vec<_>>()
    };
    let key = (CertificateEncoding::RAW_PUBLIC_KEY, 0);
    let certificate = (CertificateEncoding::X509_SIGNATURE, 20);
    let (_, mut right) = ends();
    assert_eq!(asked(right.clone()), [key]);
    assert_eq!(
        asked(by_certificate(gateway(), &["gateway"])),
        [certificate]
    );
    let other = Peer {
        key: None,
        psk: None,
        ..peer("another", right.peers[0].role.clone())
    };
    right.peers.push(other);
    right.trust = certificates::ends().1.trust;
    assert_eq!(asked(right), [certificate, key]);
    assert!(asked(gateway()).is_empty());
}

#[test]
fn another_key_is_refused_and_both_ends_say_so() {
    let (_, right) = ends();
    let (here, there) = refused(thief(), right, TODAY);
    assert!(here.contains("refused our public key"), "{here}");
    let expected = format!(
        "the peer's public key is {}, but {} is configured",
        public("thief"),
        public("mobile-ca")
    );
    assert!(there.contains(&expected), "{there}");
}

#[test]
fn a_responder_with_another_key_is_left_and_told() {
    let (left, _) = ends();
    let right = by_key(gateway(), "thief", "mobile-ca");
    let (here, there) = refused(left, right, TODAY);
    assert!(here.contains("the peer's public key is Ed25519 "), "{here}");
    assert!(there.contains("refused our public key"), "{there}");
}

/// Possession of a public key proves nothing.
#[test]
fn a_key_without_its_private_half_proves_nothing() {
    let (mut left, right) = ends();
    let mut own = credential(&[], "thief");
    own.key = public("mobile-ca");
    left.credential = Some(own);
    let (_, there) = refused(left, right.clone(), TODAY);
    assert!(
        there.contains("verify with its configured public key"),
        "{there}"
    );
    let (mut left, _) = ends();
    sign_other_octets(&mut left, "mobile-ca");
    let (_, there) = refused(left, right, TODAY);
    assert!(
        there.contains("verify with its configured public key"),
        "{there}"
    );
}

/// No kind of proof replaces another, whichever end requires which.
#[test]
fn keys_certificates_and_secrets_do_not_stand_in_for_each_other() {
    let ca = || certificates::ends().1.trust;
    let with_ca = |config: Config, trust: TrustStore| Config { trust, ..config };
    let certified = || by_certificate(mobile(), &["mobile-ca"]);
    let (left, right) = ends();
    let (_, there) = refused(certified(), with_ca(right.clone(), ca()), TODAY);
    let expected = "must authenticate with its configured public key";
    assert!(there.contains(expected), "{there}");
    let (_, there) = refused(left.clone(), by_certificate(gateway(), &["gateway"]), TODAY);
    assert!(there.contains("authenticate by certificate"), "{there}");
    let (_, there) = refused(mobile(), right.clone(), TODAY);
    let expected = "must authenticate with its configured public key";
    assert!(there.contains(expected), "{there}");
    let mut secret = gateway();
    let other = Peer {
        identity: "another.example.net".parse().unwrap(),
        ..right.peers[0].clone()
    };
    secret.peers.push(other);
    secret.credential = right.credential;
    let (_, there) = refused(left, secret, TODAY);
    assert!(there.contains("authenticate by pre-shared key"), "{there}");
}

/// An attacker that tries identities cannot learn from the answers which ones are known.
// Refuses: raw-public-keys
#[test]
fn an_unknown_identity_and_a_wrong_key_get_the_same_answer() {
    let answer = |left: Config, why: &str| {
        let mut pair = Pair::new(left, ends().1);
        pair.connect();
        let refusals = pair.right.refusals().join("; ");
        assert!(refusals.contains(why), "{refusals}");
        let mut sent = pair.sent.iter().rev();
        let answer = sent.find(|flying| flying.to == Side::Left);
        answer.expect("it answers").message.len()
    };
    let known = answer(thief(), "the peer's public key is");
    let mut stranger = thief();
    stranger.identity = "nobody.example.net".parse().unwrap();
    let unknown = answer(stranger, "no peer with the identity");
    assert_eq!(known, unknown);
}

#[test]
fn a_ppk_goes_beside_a_key() {
    let (mut left, mut right) = ends();
    for config in [&mut left, &mut right] {
        config.peers[0].ppk = Some(Box::new(Ppk {
            id: "office2026".to_owned(),
            secret: Secret::new(vec![7; 32]),
            required: true,
        }));
    }
    let mut pair = Pair::new(left, right);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    assert!(pair.left.engine.sas().all(|sa| sa.ppk));
}
