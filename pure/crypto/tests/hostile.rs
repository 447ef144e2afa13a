//! Certificates and keys crafted to harm their reader. Each is refused on a small stack and before
//! a deadline.

#![allow(clippy::unwrap_used, reason = "what a test sets up has to work")]

use crypto::{
    Certificate, KeyKind, PublicKey, RawKey, SignatureAlgorithm, TrustStore, UnixTime, sha256,
};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// 2030-03-17, when the certificates of `ike` are valid.
const TODAY: UnixTime = UnixTime(1_900_000_000);

/// Depth of nested values of four octets each: as many as fit into the longest IKE message.
const DEPTH: usize = 4000;

/// Stack of the reader in octets, about 128 for each nested value.
const STACK: usize = 512 * 1024;

/// Long enough for a machine that is busy otherwise.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs `what`, and fails if it overflows the stack or does not end before the deadline.
fn within_bounds(what: impl FnOnce() + Send + 'static) {
    let (done, end) = mpsc::channel();
    let body = move || {
        what();
        // The receiver may have timed out.
        let _ = done.send(());
    };
    let thread = thread::Builder::new().stack_size(STACK);
    let thread = thread.spawn(body).unwrap();
    match end.recv_timeout(DEADLINE) {
        Err(RecvTimeoutError::Timeout) => panic!("no end in {DEADLINE:?}"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => thread.join().unwrap(),
    }
}

fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len().to_be_bytes();
    let length = match value.len() {
        0..128 => vec![length[7]],
        128..256 => vec![0x81, length[7]],
        _ => vec![0x82, length[6], length[7]],
    };
    [&[tag], &length[..], value].concat()
}

/// Returns the first value of some octets, and its content.
fn first(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, length) = match octets {
        [_, length @ 0..=0x7f, ..] => (2, usize::from(*length)),
        [_, 0x81, length, ..] => (3, usize::from(*length)),
        [_, 0x82, high, low, ..] => (4, usize::from(u16::from_be_bytes([*high, *low]))),
        _ => return None,
    };
    let value = octets.get(..header + length)?;
    Some((value, &value[header..]))
}

/// Returns the values that make up these octets, or `None` if other octets remain.
fn values(mut octets: &[u8]) -> Option<Vec<&[u8]>> {
    let mut values = Vec::new();
    while !octets.is_empty() {
        let (value, _) = first(octets)?;
        values.push(value);
        octets = &octets[value.len()..];
    }
    Some(values)
}

/// Returns the values inside a value, also those in an octet or bit string, and the octets before
/// them.
fn inside(value: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let (_, content) = first(value)?;
    let unused_bits = usize::from(value[0] == 0x03);
    let (front, rest) = content.split_at_checked(unused_bits)?;
    let may_have = value[0] & 0x20 != 0 || matches!(value[0], 0x03 | 0x04);
    may_have.then(|| Some((front, values(rest)?)))?
}

/// Shows the value with `hostile` in place of itself, and of each value inside it.
fn each_instead(value: &[u8], hostile: &[Vec<u8>], show: &mut dyn FnMut(Vec<u8>)) {
    lies(value).into_iter().for_each(&mut *show);
    hostile.iter().for_each(|instead| show(instead.clone()));
    let Some((front, parts)) = inside(value) else {
        return;
    };
    for (at, part) in parts.iter().enumerate() {
        each_instead(part, hostile, &mut |instead| {
            let (before, after) = (parts[..at].concat(), parts[at + 1..].concat());
            show(der(value[0], &[front, &before, &instead, &after].concat()));
        });
    }
}

/// Returns the value with a wrong length, without an end, as each alternative of a CHOICE, and
/// doubled.
fn lies(value: &[u8]) -> Vec<Vec<u8>> {
    let (tag, Some((_, content))) = (value[0], first(value)) else {
        return Vec::new();
    };
    let lengths = [
        &[(content.len() as u8).wrapping_add(1)][..],
        &[(content.len() as u8).wrapping_sub(1)],
        &[0],
        &[0x7f],
        &[0x80],
        &[0x81, 0],
        &[0x82, 0xff, 0xff],
        &[0x84, 0xff, 0xff, 0xff, 0xff],
        &[0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xff; 128],
    ];
    let lengths = lengths.map(|length| [&[tag], length, content].concat());
    let lengths = lengths.into_iter().filter(|lie| lie != value);
    let choices = (0x80..0x89).chain(0xa0..0xa9);
    let choices = choices.flat_map(|tag| [der(tag, content), der(tag, value)]);
    let choices = choices.filter(|choice| choice != value);
    lengths.chain(choices).chain([value.repeat(2)]).collect()
}

/// Values that no certificate has: deep, wide, and with endless numbers.
fn monsters() -> Vec<Vec<u8>> {
    let nested = |tag: u8| {
        let mut value = Vec::new();
        for _ in 0..DEPTH {
            value = der(tag, &value);
        }
        value
    };
    let deep = [0x24, 0x30, 0x31, 0xa0, 0xa4].map(nested);
    let endless = [0x24, 0x30, 0xa0].map(|tag| [tag, 0x80].repeat(DEPTH));
    let wide = [0x30, 0x31, 0xa0].map(|tag| der(tag, &[tag, 0].repeat(DEPTH)));
    let long = [0x02, 0x06, 0x0a, 0x0d, 0x17, 0x18, 0x7f].map(|tag| der(tag, &[0xff; DEPTH]));
    deep.into_iter()
        .chain(endless)
        .chain(wide)
        .chain(long)
        .collect()
}

fn certificate(name: &str) -> Certificate {
    let folder = "../ike/src/tests/certificates";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let pem = std::fs::read(folder.join(format!("{name}.pem"))).unwrap();
    Certificate::all_from_pem(&pem).unwrap().remove(0)
}

/// Returns a certificate whose first extension has another type, so that another parser reads the
/// hostile value.
fn with_extension(certificate: &[u8], number: u8) -> Vec<u8> {
    const EXTENSION: [u8; 4] = [6, 3, 0x55, 0x1d];
    let mut other = certificate.to_vec();
    let at = other.windows(4).position(|four| four == EXTENSION).unwrap();
    other[at + 4] = number;
    other
}

/// CVE-2017-9023: a CHOICE sent the reader into an endless loop.
// Weakness: 19
#[test]
fn hostile_der_in_the_place_of_any_value_of_a_chain_is_refused_within_bounds() {
    within_bounds(|| {
        let store = TrustStore::new(vec![certificate("fence")]);
        let chain = ["gateway-permitted", "permitted"].map(|name| certificate(name).der);
        assert!(store.verify(&chain, TODAY).is_ok());
        let (monsters, mut tried) = (monsters(), 0);
        for place in 0..chain.len() {
            each_instead(&chain[place], &monsters, &mut |instead| {
                let mut chain = chain.clone();
                chain[place] = instead;
                assert!(store.verify(&chain, TODAY).is_err(), "{:x?}", chain[place]);
                tried += 1;
            });
        }
        assert!(tried > 3000, "only {tried}");
    });
}

/// subjectAltName, basicConstraints, nameConstraints, revocation lists, policies and policy
/// mappings, CA keys, and key usage.
// Weakness: 19
#[test]
fn hostile_der_in_every_extension_that_has_choices_is_refused_within_bounds() {
    within_bounds(|| {
        let store = TrustStore::new(vec![certificate("ca")]);
        let genuine = certificate("gateway").der;
        let monsters = monsters();
        for number in [15, 16, 17, 18, 19, 28, 30, 31, 32, 33, 35, 36, 37, 46, 54] {
            let other = with_extension(&genuine, number);
            for instead in monsters.iter().flat_map(|monster| {
                let general_names = der(0x30, &der(0xa4, monster));
                [monster.clone(), der(0x30, monster), general_names]
            }) {
                let other = with_value(&other, number, &instead);
                assert!(store.verify(&[other], TODAY).is_err(), "{number}");
            }
        }
    });
}

/// Returns the certificate with another value for an extension.
fn with_value(certificate: &[u8], number: u8, instead: &[u8]) -> Vec<u8> {
    let kind = [6, 3, 0x55, 0x1d, number];
    replaced(certificate, &|value| {
        let (_, parts) = inside(value)?;
        (parts.first() == Some(&&kind[..]))
            .then(|| der(0x30, &[&kind[..], &der(4, instead)].concat()))
    })
}

/// Returns a value in which `other` replaces each value that it returns a substitute for.
fn replaced(value: &[u8], other: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    if let Some(instead) = other(value) {
        return instead;
    }
    match inside(value) {
        Some((front, parts)) => {
            let parts: Vec<_> = parts.iter().map(|part| replaced(part, other)).collect();
            der(value[0], &[front, &parts.concat()].concat())
        }
        None => value.to_vec(),
    }
}

// Weakness: 19
#[test]
fn hostile_der_in_the_place_of_any_value_of_a_key_is_read_within_bounds() {
    within_bounds(|| {
        let key = rsa_info(&rsa(&[0xff; 256], &[1, 0, 1]));
        assert!(RawKey::from_der(&key).is_ok());
        each_instead(&key, &monsters(), &mut |instead| {
            let Ok(read) = RawKey::from_der(&instead) else {
                return;
            };
            for by in SignatureAlgorithm::ALL {
                assert!(!read.key().verifies(by, b"", &[1; 256]), "{instead:x?}");
            }
        });
    });
}

/// Returns an RSAPublicKey (RFC 8017 appendix A.1.1).
fn rsa(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let positive = |number: &[u8]| der(2, &[&[0], number].concat());
    let integer = |number: &[u8]| match number {
        [0x80..=0xff, ..] => positive(number),
        _ => der(2, number),
    };
    der(0x30, &[integer(modulus), integer(exponent)].concat())
}

/// Returns the SubjectPublicKeyInfo of an RSAPublicKey.
fn rsa_info(key: &[u8]) -> Vec<u8> {
    let rsa_encryption = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1, 5, 0];
    let bits = der(3, &[&[0], key].concat());
    der(0x30, &[der(0x30, &rsa_encryption), bits].concat())
}

/// Returns the encoded message of RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 section 9.2). With an
/// exponent of 1 it is its own signature.
fn encoded(message: &[u8], len: usize) -> Vec<u8> {
    let sha256_of = [
        0x30, 49, 0x30, 13, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1, 5, 0, 4, 32,
    ];
    let digest = [&sha256_of[..], &sha256(&[message])].concat();
    let padding = vec![0xff; len - digest.len() - 3];
    [&[0, 1], &padding[..], &[0], &digest].concat()
}

/// CVE-2017-9022, CVE-2017-11185, CVE-2018-17540: moduli that are zero or even, and costly
/// exponents and lengths.
// Weakness: 60
#[test]
fn no_rsa_key_of_a_kind_that_nobody_makes_verifies_anything_within_bounds() {
    within_bounds(|| {
        let message = b"a claim";
        for bits in [8, 512, 1024, 2048, 8192, 16384, 65536] {
            let len = bits / 8;
            let (odd, mut even, mut power) = (vec![0xff; len], vec![0xff; len], vec![0; len]);
            (even[len - 1], power[0]) = (0xfe, 0x80);
            for modulus in [&odd, &even, &power, &vec![0; len]] {
                for exponent in [&[0][..], &[1], &[2], &[0xff; 5], &[0xff; 256], modulus] {
                    let octets = rsa(modulus, exponent);
                    let info = RawKey::from_der(&rsa_info(&octets));
                    let key = PublicKey {
                        kind: KeyKind::Rsa,
                        octets,
                    };
                    let longest = len.max(64);
                    for signature in [vec![0; len], vec![1; len], encoded(message, longest)] {
                        for by in SignatureAlgorithm::ALL {
                            assert!(!key.verifies(by, message, &signature), "{bits}");
                            if let Ok(read) = &info {
                                assert!(!read.key().verifies(by, message, &signature), "{bits}");
                            }
                        }
                    }
                }
            }
        }
    });
}
