//! Certificates instead of pre-shared keys. Those in `certificates/` were made by openssl and are
//! valid in 2030.

use super::pair::{Pair, Side, fit};
use super::{methods, *};
use crate::auth::Claim;
use crate::peer_table::PeerTable;
use crate::prf::PrfKey;
use crate::signature;
use crate::{BadProof, Credential, Signer};
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use crypto::{
    Certificate, KeyKind, Prf, RawKey, SignatureAlgorithm, TrustStore, UnixTime, Untrusted,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wire::ike::{
    AuthMethod, Authentication, CertificateEncoding, Datagram, ExchangeType, Flags, Header,
    Message, NotifyType, Payload, VERSION_2,
};

/// 2030-03-17.
pub(crate) const TODAY: UnixTime = UnixTime(1_900_000_000);

#[derive(Debug)]
struct Key(Ed25519KeyPair);

impl Key {
    fn public(&self) -> RawKey {
        let der = self.0.public_key().as_der();
        let der: PublicKeyX509Der<'_> = der.expect("a key has a form");
        RawKey::from_der(der.as_ref()).expect("it is for Ed25519")
    }
}

impl Signer for Key {
    fn sign(&self, octets: &[u8]) -> Option<Vec<u8>> {
        Some(self.0.sign(octets).as_ref().to_vec())
    }
}

/// Returns the public key of a file.
pub(crate) fn public(name: &str) -> RawKey {
    key(name).public()
}

/// A signer whose octets differ slightly from those of the exchange.
#[derive(Debug)]
struct Other(Key);

impl Signer for Other {
    fn sign(&self, octets: &[u8]) -> Option<Vec<u8>> {
        self.0.sign(&[octets, b"!"].concat())
    }
}

pub(crate) fn pem(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/certificates");
    std::fs::read(folder.join(name)).unwrap()
}

pub(crate) fn certificate(name: &str) -> Certificate {
    let all = Certificate::all_from_pem(&pem(&format!("{name}.pem"))).unwrap();
    all.into_iter().next().unwrap()
}

fn key(name: &str) -> Key {
    let text = String::from_utf8(pem(&format!("{name}.key"))).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('-'));
    Key(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&base64(&lines.collect::<String>())).unwrap())
}

/// Makes a host sign octets other than those of the exchange.
pub(crate) fn sign_other_octets(config: &mut Config, key_of: &str) {
    if let Some(credential) = &mut config.credential {
        credential.signer = Arc::new(Other(key(key_of)));
    }
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = text.chars().filter_map(|c| DIGITS.find(c));
    let bits: Vec<_> = bits
        .flat_map(|d| (0..6).rev().map(move |i| d >> i & 1))
        .collect();
    let octet = |bits: &[usize]| bits.iter().fold(0, |octet, bit| octet << 1 | *bit as u8);
    bits.chunks_exact(8).map(octet).collect()
}

pub(crate) fn credential(chain: &[&str], key_of: &str) -> Credential {
    let key = key(key_of);
    Credential {
        chain: chain.iter().map(|name| certificate(name).der).collect(),
        key: key.public(),
        algorithm: SignatureAlgorithm::Ed25519,
        signer: Arc::new(key),
    }
}

pub(crate) fn by_certificate(mut config: Config, chain: &[&str]) -> Config {
    config.peers[0].psk = None;
    config.credential = Some(credential(chain, chain[0]));
    config.trust = TrustStore::new(vec![certificate("ca")]);
    config
}

/// Returns a mobile node and a gateway, each with a certificate of the CA that both trust.
pub(crate) fn ends() -> (Config, Config) {
    (
        by_certificate(mobile(), &["mobile-ca"]),
        by_certificate(gateway(), &["gateway"]),
    )
}

/// Returns two hosts whose wall clocks show `today`.
pub(crate) fn pair(left: Config, right: Config, today: UnixTime, seed: u8) -> Pair {
    let mut pair = Pair::seeded(left, right, seed);
    pair.left.engine.set_wall_clock(today);
    pair.right.engine.set_wall_clock(today);
    pair
}

/// Returns the reason why the left host is down, and the refusals of the right host.
pub(crate) fn refused(left: Config, right: Config, today: UnixTime) -> (String, String) {
    let mut pair = pair(left, right, today, 1);
    pair.initiate(Side::Left);
    pair.run_for(Duration::from_secs(300));
    assert_eq!((pair.left.up(), pair.right.up()), (0, 0));
    assert!(pair.left.children().is_empty() && pair.right.children().is_empty());
    let down = pair.left.down_reasons().first().map(ToString::to_string);
    let there = pair
        .right
        .down_reasons()
        .into_iter()
        .map(ToString::to_string);
    let there = pair
        .right
        .refusals()
        .into_iter()
        .chain(there)
        .collect::<Vec<_>>();
    (down.unwrap_or_default(), there.join("; "))
}

#[test]
fn certificates_prove_both_ends_in_messages_of_one_packet() {
    let (left, right) = ends();
    let mut pair = pair(left, right, TODAY, 1);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    assert!(pair.sent.iter().all(|flying| flying.message.len() < 1400));
}

#[test]
fn an_intermediate_is_followed_and_missed() {
    let (_, right) = ends();
    let left = by_certificate(mobile(), &["mobile-middle", "middle"]);
    let mut pair = pair(left, right.clone(), TODAY, 1);
    pair.connect();
    assert!(fit(pair.left.child(), pair.right.child()));
    assert!(pair.sent.iter().all(|flying| flying.message.len() < 1400));
    let left = by_certificate(mobile(), &["mobile-middle"]);
    let (here, there) = refused(left, right, TODAY);
    assert!(here.contains("our CA is not trusted there"), "{here}");
    assert!(there.contains("issued by `CN=Middle CA`"), "{there}");
}

// Recovers: certificates
#[test]
fn certificates_survive_a_network_that_loses_doubles_and_reorders() {
    for seed in 0..40 {
        let (left, right) = ends();
        let mut pair = pair(left, right, TODAY, seed);
        pair.hop = pair.hop.losing(200).repeating(300).delaying(300);
        pair.initiate(Side::Left);
        pair.run_for(Duration::from_secs(300));
        assert!(fit(pair.left.child(), pair.right.child()), "seed {seed}");
    }
}

#[test]
fn a_certificate_outside_its_time_is_refused_and_both_ends_say_so() {
    let (left, right) = ends();
    let (here, there) = refused(left, right, UnixTime(1_950_000_000));
    assert!(here.contains("has expired"), "{here}");
    assert!(there.contains("expired on 2031-01-01 00:00 UTC"), "{there}");
    let (left, right) = ends();
    let (here, there) = refused(left, right, UnixTime(1_800_000_000));
    assert!(here.contains("not valid yet there"), "{here}");
    assert!(there.contains("valid only from 2030-01-01"), "{there}");
}

#[test]
fn an_engine_that_was_never_told_the_time_believes_nobody() {
    let (left, right) = ends();
    let (_, there) = refused(left, right, UnixTime::default());
    assert!(there.contains("valid only from"), "{there}");
}

#[test]
fn a_chain_to_nobody_we_know_is_refused() {
    let (_, right) = ends();
    let left = by_certificate(mobile(), &["mobile-other", "other"]);
    let (here, there) = refused(left, right, TODAY);
    assert!(here.contains("our CA is not trusted there"), "{here}");
    assert!(
        there.contains("does not chain to any CA in `ca`"),
        "{there}"
    );
}

#[test]
fn a_ca_of_the_same_name_with_another_key_is_refused() {
    let (_, right) = ends();
    let left = by_certificate(mobile(), &["mobile-same", "same"]);
    let (here, there) = refused(left, right, TODAY);
    assert!(here.contains("our CA is not trusted there"), "{here}");
    assert!(there.contains("signed with another key"), "{there}");
}

#[test]
fn a_certificate_for_another_use_is_refused() {
    let (_, right) = ends();
    let left = by_certificate(mobile(), &["coder"]);
    let (here, there) = refused(left, right, TODAY);
    assert!(here.contains("key usage does not allow IKE"), "{here}");
    assert!(there.contains("key usage does not allow IKE"), "{there}");
}

/// A thief with a genuine certificate of its own, and a thief with a copy of the mobile node's
/// certificate.
// Weakness: 49
// Weakness: 50
#[test]
fn somebody_elses_certificate_proves_nothing() {
    let (_, right) = ends();
    let left = by_certificate(mobile(), &["thief"]);
    let (_, there) = refused(left, right.clone(), TODAY);
    assert!(
        there.contains("not for mobile.example.net but for thief.example.net"),
        "{there}"
    );
    let (mut left, _) = ends();
    left.credential = Some(credential(&["mobile-ca"], "thief"));
    let (here, there) = refused(left, right, TODAY);
    assert!(here.contains("our signature does not verify"), "{here}");
    assert!(
        there.contains("signature does not verify with the key"),
        "{there}"
    );
}

// Weakness: 46
#[test]
fn a_signature_over_other_octets_proves_nothing() {
    let (mut left, right) = ends();
    sign_other_octets(&mut left, "mobile-ca");
    let (_, there) = refused(left, right, TODAY);
    assert!(
        there.contains("signature does not verify with the key"),
        "{there}"
    );
}

// Weakness: 45
#[test]
fn a_responder_that_proves_nothing_is_left_and_told_why() {
    let (left, mut right) = ends();
    right.credential = Some(credential(&["gateway"], "thief"));
    let (here, there) = refused(left, right, TODAY);
    assert!(
        here.contains("signature does not verify with the key"),
        "{here}"
    );
    assert!(there.contains("our signature does not verify"), "{there}");
}

/// Neither kind of proof replaces the other, whichever end requires which.
#[test]
fn a_pre_shared_key_is_not_answered_with_a_certificate_nor_the_other_way_round() {
    let (left, mut right) = ends();
    right.peers[0].psk = gateway().peers[0].psk.clone();
    let (here, _) = refused(left.clone(), right.clone(), TODAY);
    assert!(here.contains("does not support signatures"), "{here}");
    let mut another = right.peers[0].clone();
    another.psk = None;
    another.identity = model::Identity::Fqdn("another.example.net".to_owned());
    right.peers.push(another);
    let (_, there) = refused(left, right, TODAY);
    assert!(there.contains("authenticate by pre-shared key"), "{there}");
    let (mut left, right) = ends();
    left.peers[0].psk = mobile().peers[0].psk.clone();
    let (_, there) = refused(left, right, TODAY);
    assert!(
        there.contains("must authenticate by certificate"),
        "{there}"
    );
}

/// Each certificate of the chain is garbage, which only a host that parses it notices.
// Weakness: 61
#[test]
fn a_chain_is_not_looked_at_where_no_peer_authenticates_by_certificate() {
    let garbage = vec![vec![0x30; 1000]; 10];
    for (identity, why) in [
        (mobile().identity, "must authenticate by pre-shared key"),
        (
            "eve@example.net".parse().unwrap(),
            "no peer with the identity",
        ),
    ] {
        let mut left = mobile();
        left.identity = identity;
        left.peers[0].psk = None;
        left.credential = Some(Credential {
            chain: garbage.clone(),
            ..methods::credential(KeyKind::P256)
        });
        let (here, there) = refused(left, gateway(), TODAY);
        assert!(here.contains("AUTHENTICATION_FAILED"), "{here}");
        assert!(there.contains(why), "{there}");
    }
    let certificate = |data| Payload::Certificate {
        encoding: CertificateEncoding::X509_SIGNATURE,
        data,
    };
    let header = Header {
        spi_i: 1,
        spi_r: 2,
        version: VERSION_2,
        exchange: ExchangeType::IKE_AUTH,
        flags: Flags {
            initiator: true,
            higher_version: false,
            response: false,
        },
        message_id: 1,
    };
    let payloads = garbage.into_iter().map(certificate).collect();
    let message = Message { header, payloads };
    let verify = |config: Config| {
        let claim = Claim {
            message: &[],
            nonce: &[],
            proof_key: &PrfKey::new(Prf::HmacSha256, Secret::new(vec![9; 32])),
            id: &config.identity.clone().into(),
            intermediate: &[],
        };
        let proof = Authentication {
            method: AuthMethod::DIGITAL_SIGNATURE,
            data: vec![0; 64],
        };
        let config = PeerTable::new(config);
        signature::verify(&claim, &proof, &message, None, &config, TODAY).err()
    };
    assert_eq!(verify(gateway()), Some(BadProof::NoCertificateExpected));
    let unreadable = BadProof::Untrusted(Untrusted::Unreadable);
    assert_eq!(verify(ends().1), Some(unreadable));
}

/// RFC 7427 section 4: AUTH covers the announcement, so its removal is detected. An answer without
/// it proves nothing yet, and the genuine answer is awaited.
#[test]
fn hash_algorithms_that_somebody_takes_away_are_missed() {
    for (index, up) in [(0, 0), (1, 1)] {
        let (left, right) = ends();
        let mut pair = pair(left, right, TODAY, 1);
        pair.initiate(Side::Left);
        if index == 1 {
            pair.deliver_next();
        }
        let mut changed = pair.intercept().remove(0);
        let Ok(Datagram::Clear(mut message)) = Datagram::decode(&changed.message) else {
            panic!("IKE_SA_INIT is in the clear");
        };
        for payload in &mut message.payloads {
            if let Payload::Notify(notify) = payload
                && notify.kind == NotifyType::SIGNATURE_HASH_ALGORITHMS
            {
                notify.data = vec![0, 1];
            }
        }
        changed.message = Message::encode(&message);
        pair.deliver(&changed);
        pair.run_for(Duration::from_secs(300));
        assert_eq!((pair.left.up(), pair.right.up()), (up, up), "{index}");
    }
}
