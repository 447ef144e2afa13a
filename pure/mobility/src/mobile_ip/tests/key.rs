use super::*;

fn verifies(key: &Association, octets: &[u8]) -> bool {
    let (_, extensions) = Request::parse(octets).unwrap();
    key.verify(extensions, Between::MobileHome).is_some()
}

/// Section 3.5.1 defines the covered octets; Python's `hmac` computed the values.
#[test]
fn an_authenticator_is_that_of_another_implementation() {
    let request = Request {
        identification: 0x0123_4567_89ab_cdef,
        ..request(2, at(0))
    };
    let mut octets = request.encode();
    let key = Association {
        algorithm: Algorithm::HmacMd5,
        key: Secret::new((0..16).collect()),
        ..mobile_home()
    };
    key.sign(&mut octets, Between::MobileHome);
    let expected = 0x9abc_038f_9691_653e_9c57_bcfc_48e0_baa2_u128.to_be_bytes();
    assert_eq!(octets[30..], expected);
    let mut octets = request.encode();
    let key = Association {
        algorithm: Algorithm::HmacSha256,
        ..key
    };
    key.sign(&mut octets, Between::MobileHome);
    let expected = 0x249d_3031_26a4_8fde_194b_b41a_b6c5_5248_u128.to_be_bytes();
    assert_eq!(octets[30..46], expected);
    assert_eq!(octets.len(), 30 + 32);
}

#[test]
fn a_message_is_authentic_if_no_bit_of_it_was_changed() {
    for algorithm in [Algorithm::HmacMd5, Algorithm::HmacSha256] {
        let key = Association {
            algorithm,
            ..mobile_home()
        };
        let mut octets = request(2, at(0)).encode();
        key.sign(&mut octets, Between::MobileHome);
        assert!(verifies(&key, &octets));
        // Bits r and x are ignored but covered. The type decides how the message is parsed.
        for bit in 8..octets.len() * 8 {
            let mut changed = octets.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let Ok((_, extensions)) = Request::parse(&changed) else {
                continue;
            };
            let found = key.verify(extensions, Between::MobileHome);
            assert!(found.is_none(), "{algorithm:?}, bit {bit}");
        }
    }
}

#[test]
fn another_key_and_another_spi_prove_nothing() {
    let octets = signed(&request(2, at(0)));
    assert!(verifies(&mobile_home(), &octets));
    let other_key = Association {
        key: Secret::new(vec![9; 32]),
        ..mobile_home()
    };
    let other_spi = Association {
        spi: 0x1002,
        ..mobile_home()
    };
    assert!(!verifies(&other_key, &octets) && !verifies(&other_spi, &octets));
}

#[test]
fn a_key_is_not_printed() {
    assert!(format!("{:?}", mobile_home()).contains("Secret(32 octets)"));
}
