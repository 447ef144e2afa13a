//! Offers, choices and answers, without engines.

use crate::PeerRole;
use crate::allowed_suites::{AllowedEspSuites, AllowedIkeSuites};
use crate::proposal::*;
use model::{EspSuite, Group, Kem, Sha2, Spi, Suite};
use wire::ike::{
    Attribute, EncryptionId, EsnId, GroupId, IntegrityId, PrfId, Proposal, Protocol, Transform,
    TransformType,
};

const BOTH: [Suite; 2] = [Suite::Aes256Gcm16, Suite::Aes128Gcm16];
const SPI: Spi = Spi(0x1000);

fn menu(suites: &[Suite], groups: &[Group]) -> AllowedIkeSuites {
    AllowedIkeSuites {
        suites: suites.to_vec(),
        groups: groups.to_vec(),
        kems: vec![None],
    }
}

/// Returns a menu of both suites with X25519.
fn both() -> AllowedIkeSuites {
    menu(&BOTH, &[Group::X25519])
}

fn only(suite: Suite) -> AllowedIkeSuites {
    menu(&[suite], &[Group::X25519])
}

/// Returns the single proposal of an offer with only AEAD suites.
fn single(offer: Vec<Proposal>) -> Proposal {
    <[Proposal; 1]>::try_from(offer)
        .unwrap()
        .into_iter()
        .next()
        .unwrap()
}

fn ike(menu: &AllowedIkeSuites) -> Proposal {
    single(offer_ike(menu))
}

fn exchanging(suites: &[Suite], groups: &[GroupId]) -> AllowedEspSuites {
    AllowedEspSuites {
        groups: groups.to_vec(),
        ..AllowedEspSuites::plain(suites)
    }
}

fn esp(suites: &[Suite], groups: &[GroupId], spi: Spi) -> Proposal {
    single(offer_esp(&exchanging(suites, groups), spi))
}

fn successor(menu: &AllowedIkeSuites, spi: u64) -> Proposal {
    single(offer_successor(menu, spi))
}

#[test]
fn our_own_offer_is_chosen_and_the_answer_passes() {
    let choice = choose_ike(&[ike(&both())], &only(Suite::Aes128Gcm16)).unwrap();
    assert_eq!(choice.suite, Suite::Aes128Gcm16);
    assert_eq!(choice.answer.transforms.len(), 3);
    let answer = std::slice::from_ref(&choice.answer);
    assert_eq!(check_ike(answer, &both()), Some(choice.clone()));
}

#[test]
fn the_responders_order_decides_between_suites() {
    let choice = choose_esp(
        &[esp(&BOTH, &[], SPI)],
        &AllowedEspSuites::plain(&[Suite::Aes128Gcm16]),
        Spi(999),
    );
    let choice = choice.unwrap();
    assert_eq!(
        (choice.suite, choice.peer_spi),
        (EspSuite::from(Suite::Aes128Gcm16), SPI)
    );
    assert!(choice.implicit_iv);
    assert_eq!(choice.answer.spi, 999_u32.to_be_bytes());
}

#[test]
fn a_peer_without_implicit_ivs_gets_explicit_ones() {
    let mut offered = esp(&BOTH, &[], SPI);
    offered
        .transforms
        .retain(|transform| transform.id != EncryptionId::AES_GCM_16_IIV.0);
    let choice = choose_esp(&[offered], &AllowedEspSuites::plain(&BOTH), Spi(999)).unwrap();
    assert_eq!(
        (choice.suite, choice.implicit_iv),
        (EspSuite::from(Suite::Aes256Gcm16), false)
    );
}

// Weakness: 1
#[test]
fn an_unknown_type_or_attribute_makes_a_proposal_unacceptable() {
    let mut strange = ike(&both());
    strange
        .transforms
        .push(Transform::plain(TransformType(6), 35));
    let mut marked = ike(&only(Suite::Aes128Gcm16));
    // A second key length.
    marked.transforms[0].others.push(Attribute {
        kind: 0x800e,
        value: vec![0, 128],
    });
    assert_eq!(choose_ike(&[strange.clone(), marked], &both()), None);
    let plain = Proposal {
        number: 2,
        ..ike(&both())
    };
    let choice = choose_ike(&[strange, plain], &both()).unwrap();
    assert_eq!(choice.answer.number, 2);
}

// Weakness: 16
#[test]
fn none_may_stand_for_integrity_beside_an_aead() {
    let mut offered = esp(&BOTH, &[], SPI);
    let hmac = IntegrityId::HMAC_SHA2_256_128.0;
    offered
        .transforms
        .push(Transform::plain(TransformType::INTEG, hmac));
    assert_eq!(
        choose_esp(&[offered.clone()], &AllowedEspSuites::plain(&BOTH), SPI),
        None
    );
    offered
        .transforms
        .push(Transform::plain(TransformType::INTEG, 0));
    let choice = choose_esp(&[offered], &AllowedEspSuites::plain(&BOTH), SPI).unwrap();
    assert_eq!(choice.answer.transforms.len(), 3);
}

// Weakness: 74
#[test]
fn extended_sequence_numbers_that_nobody_wants_and_reserved_spis_are_refused() {
    let mut extended = esp(&BOTH, &[], SPI);
    extended.transforms.pop();
    extended.transforms.push(Transform::esn(EsnId::YES));
    let refused = choose_esp(
        std::slice::from_ref(&extended),
        &AllowedEspSuites::plain(&BOTH),
        SPI,
    );
    assert_eq!(refused, None);
    assert!(choose_esp(&[extended], &with_esn(), SPI).unwrap().esn);
    assert_eq!(
        choose_esp(
            &[esp(&BOTH, &[], Spi(255))],
            &AllowedEspSuites::plain(&BOTH),
            SPI
        ),
        None
    );
}

fn with_esn() -> AllowedEspSuites {
    AllowedEspSuites {
        esn: true,
        ..AllowedEspSuites::plain(&BOTH)
    }
}

/// RFC 7296 section 3.3.2: "will usually include two ESN transforms". An answer has one of these.
#[test]
fn who_wants_extended_numbers_offers_both_kinds_and_takes_what_is_answered() {
    let offered = offer_esp(&with_esn(), SPI);
    let numbers = |proposal: &Proposal| {
        let numbers = proposal.transforms.iter();
        let numbers = numbers.filter(|transform| transform.kind == TransformType::ESN);
        numbers.map(|transform| transform.id).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&offered[0]), [EsnId::YES.0, EsnId::NO.0]);
    for (menu, esn) in [(with_esn(), true), (AllowedEspSuites::plain(&BOTH), false)] {
        let choice = choose_esp(&offered, &menu, SPI).unwrap();
        assert_eq!((choice.esn, numbers(&choice.answer).len()), (esn, 1));
        assert_eq!(check_esp(&[choice.answer], &with_esn()).unwrap().esn, esn);
    }
    assert_eq!(check_esp(&offered, &with_esn()), None, "a choice is left");
    let choice = choose_esp(&offered, &with_esn(), SPI).unwrap();
    let uncalled = check_esp(&[choice.answer], &AllowedEspSuites::plain(&BOTH));
    assert_eq!(uncalled, None, "it was not offered");
}

// Weakness: 13
#[test]
fn an_answer_that_leaves_a_choice_or_was_not_offered_is_refused() {
    assert_eq!(check_ike(&[ike(&both())], &both()), None);
    let one = || ike(&only(Suite::Aes128Gcm16));
    assert!(check_ike(&[one()], &both()).is_some());
    assert_eq!(check_ike(&[one()], &only(Suite::Aes256Gcm16)), None);
    assert_eq!(check_ike(&[one(), one()], &both()), None);
    assert_eq!(check_ike(&[Proposal { number: 2, ..one() }], &both()), None);
}

#[test]
fn the_responders_order_decides_between_groups_and_every_suite_is_chosen() {
    let suites = [Suite::ChaCha20Poly1305, Suite::Aes256Gcm16];
    let offered = [ike(&menu(&suites, &[Group::X25519, Group::P256]))];
    let ours = menu(&BOTH, &[Group::P256, Group::X25519]);
    let choice = choose_ike(&offered, &ours).unwrap();
    assert_eq!(
        (choice.suite, choice.group),
        (Suite::Aes256Gcm16, Group::P256)
    );
    let ours = only(Suite::ChaCha20Poly1305);
    let choice = choose_ike(&offered, &ours).unwrap();
    assert_eq!(
        (choice.suite, choice.group),
        (ours.suites[0], Group::X25519)
    );
    let plain = Transform::plain(TransformType::ENCR, EncryptionId::CHACHA20_POLY1305.0);
    assert_eq!(choice.answer.transforms[0], plain);
}

#[test]
fn a_key_exchange_for_a_child_is_made_where_both_want_one() {
    let group = GroupId::CURVE25519;
    let chosen = |offered: &[GroupId], ours: &[GroupId]| {
        let offer = esp(&BOTH, offered, SPI);
        let choice = choose_esp(&[offer], &exchanging(&BOTH, ours), Spi(999)).unwrap();
        let answer = std::slice::from_ref(&choice.answer);
        let checked = check_esp(answer, &exchanging(&BOTH, offered)).unwrap();
        assert_eq!(checked.group, choice.group);
        choice.group
    };
    assert_eq!(chosen(&[group], &[group]), Some(group));
    assert_eq!(chosen(&[group], &[]), None);
    assert_eq!(chosen(&[], &[group]), None);
    let mut only = esp(&BOTH, &[group], SPI);
    only.transforms.pop();
    assert_eq!(
        choose_esp(&[only], &AllowedEspSuites::plain(&BOTH), SPI),
        None
    );
}

#[test]
fn the_offer_for_a_successor_carries_an_spi_and_a_first_one_none() {
    let offered = [successor(&both(), 7)];
    assert_eq!(choose_ike(&offered, &both()), None);
    let (choice, theirs) = choose_successor(&offered, &both(), 8).unwrap();
    assert_eq!(theirs, 7);
    let (_, ours) = check_successor(&[choice.answer], &both()).unwrap();
    assert_eq!(ours, 8);
    for bare in [successor(&both(), 0), ike(&both())] {
        assert_eq!(choose_successor(&[bare], &both(), 8), None);
    }
}

/// CVE-2014-9221 and similar: no unknown group number is taken for a known group.
// Weakness: 1
#[test]
fn every_other_group_is_just_not_ours() {
    for id in (0..=u16::MAX).filter(|&id| id != GroupId::CURVE25519.0) {
        let mut offered = ike(&both());
        offered.transforms.pop();
        offered.transforms.push(Transform::group(GroupId(id)));
        assert_eq!(choose_ike(&[offered], &both()), None, "{id}");
    }
}

const CBC: [Suite; 4] = [
    Suite::Aes256Cbc(Sha2::Sha512),
    Suite::Aes128Gcm16,
    Suite::Aes128Cbc(Sha2::Sha256),
    Suite::Aes256Cbc(Sha2::Sha256),
];

fn has(proposal: &Proposal, kind: TransformType) -> bool {
    let mut kinds = proposal.transforms.iter().map(|transform| transform.kind);
    kinds.any(|found| found == kind)
}

/// RFC 7296 section 3.3: an AEAD and an integrity transform "MUST NOT" be in one proposal. No
/// combination outside the configured suites is offered either, such as AES-128 with SHA-512.
#[test]
fn suites_stand_together_only_if_any_cipher_goes_with_any_hmac() {
    for offer in [
        offer_ike(&menu(&CBC, &[Group::X25519])),
        offer_esp(&AllowedEspSuites::plain(&CBC), SPI),
    ] {
        let numbers: Vec<_> = offer.iter().map(|proposal| proposal.number).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let hmacs = offer.iter().map(|proposal| {
            let of = |kind| proposal.transforms.iter().filter(move |t| t.kind == kind);
            (
                of(TransformType::ENCR).count(),
                of(TransformType::INTEG).map(|t| t.id).next(),
            )
        });
        let ciphers = if has(&offer[0], TransformType::ESN) {
            2
        } else {
            1
        };
        let expected = [(1, Some(14)), (ciphers, None), (2, Some(12))];
        assert_eq!(hmacs.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn every_suite_of_an_offer_is_found_in_the_proposal_that_has_it() {
    let (offered, esp) = (
        offer_ike(&menu(&CBC, &[Group::X25519])),
        offer_esp(&AllowedEspSuites::plain(&CBC), SPI),
    );
    for (suite, number) in CBC.into_iter().zip([1, 2, 3, 3]) {
        let choice = choose_ike(&offered, &only(suite)).unwrap();
        assert_eq!((choice.suite, choice.answer.number), (suite, number));
        let all = menu(&CBC, &[Group::X25519]);
        assert_eq!(
            check_ike(std::slice::from_ref(&choice.answer), &all),
            Some(choice)
        );
        let choice = choose_esp(&esp, &AllowedEspSuites::plain(&[suite]), Spi(999)).unwrap();
        let suite = EspSuite::from(suite);
        assert_eq!((choice.suite, choice.answer.number), (suite, number));
        let checked = check_esp(&[choice.answer], &AllowedEspSuites::plain(&CBC)).unwrap();
        assert_eq!(
            (checked.suite, checked.implicit_iv),
            (suite, choice.implicit_iv)
        );
    }
    assert_eq!(
        choose_ike(&offered, &only(Suite::Aes128Cbc(Sha2::Sha512))),
        None
    );
}

/// Otherwise an attacker on the path, or a careless responder, could combine transforms that were
/// never offered together.
#[test]
fn an_answer_with_transforms_of_two_proposals_is_refused() {
    let all = menu(&CBC, &[Group::X25519]);
    let choice = choose_ike(&offer_ike(&all), &only(Suite::Aes128Cbc(Sha2::Sha256))).unwrap();
    for number in [0, 1, 2, 4] {
        let answer = Proposal {
            number,
            ..choice.answer.clone()
        };
        assert_eq!(check_ike(&[answer], &all), None, "{number}");
    }
    let mut mixed = choice.answer;
    mixed.transforms[1].id = IntegrityId::HMAC_SHA2_512_256.0;
    assert_eq!(check_ike(&[mixed], &all), None);
}

/// The responder's order decides: the initiator's favourite loses against a better suite that it
/// also offers.
#[test]
fn our_order_decides_between_kinds_of_suites() {
    let offered = offer_ike(&menu(&CBC, &[Group::X25519]));
    let ours = [Suite::Aes128Gcm16, Suite::Aes256Cbc(Sha2::Sha512)];
    let choice = choose_ike(&offered, &menu(&ours, &[Group::X25519])).unwrap();
    assert_eq!(
        (choice.suite, choice.answer.number),
        (Suite::Aes128Gcm16, 2)
    );
}

/// strongSwan puts all ciphers and all HMACs of a kind into one proposal.
#[test]
fn an_hmac_of_ours_is_found_among_others() {
    let mut offered = offer_ike(&only(Suite::Aes256Cbc(Sha2::Sha384))).remove(0);
    let others = [
        Suite::Aes128Cbc(Sha2::Sha256),
        Suite::Aes256Cbc(Sha2::Sha512),
    ];
    for other in others {
        offered.transforms.insert(0, Transform::suite(other, false));
        offered
            .transforms
            .insert(0, Transform::integrity(other).unwrap());
    }
    let choice = choose_ike(&[offered], &only(Suite::Aes128Cbc(Sha2::Sha512))).unwrap();
    assert_eq!(choice.answer.transforms.len(), 4);
    assert_eq!(choice.suite, Suite::Aes128Cbc(Sha2::Sha512));
}

#[test]
fn a_successor_may_have_another_kind_of_suite() {
    let offered = offer_successor(&menu(&CBC, &[Group::X25519]), 7);
    let ours = only(Suite::Aes256Cbc(Sha2::Sha256));
    let (choice, theirs) = choose_successor(&offered, &ours, 8).unwrap();
    assert_eq!((choice.answer.number, theirs), (3, 7));
    let all = menu(&CBC, &[Group::X25519]);
    let (checked, ours) = check_successor(&[choice.answer], &all).unwrap();
    assert_eq!((checked.suite, ours), (Suite::Aes256Cbc(Sha2::Sha256), 8));
}

/// Returns menus with everything that can be offered for an IKE SA and for a child.
fn everything() -> (AllowedIkeSuites, AllowedEspSuites) {
    let kems: Vec<_> = Kem::ALL.map(Some).into_iter().chain([None]).collect();
    let ike = AllowedIkeSuites {
        kems: kems.clone(),
        ..menu(&Suite::ALL, &Group::ALL)
    };
    let esp = AllowedEspSuites {
        kems,
        esn: true,
        ..exchanging(&Suite::ALL, &[GroupId::CURVE25519])
    };
    (ike, esp)
}

/// Returns a proposal with this transform, and with the first one of every other type.
fn with_only(proposal: &Proposal, transform: &Transform) -> Proposal {
    let mut transforms = vec![transform.clone()];
    for other in &proposal.transforms {
        if transforms.iter().all(|taken| taken.kind != other.kind) {
            transforms.push(other.clone());
        }
    }
    Proposal {
        transforms,
        ..proposal.clone()
    }
}

/// CVE-2016-3071: an implementation advertised a transform that it did not have.
// Weakness: 15
#[test]
fn every_transform_that_is_offered_can_be_chosen_alone() {
    let (ike, esp) = everything();
    for proposal in offer_ike(&ike) {
        for transform in &proposal.transforms {
            let choice = choose_ike(&[with_only(&proposal, transform)], &ike).unwrap();
            let answer = [choice.answer.clone()];
            assert!(answer[0].transforms.contains(transform), "{transform:?}");
            assert_eq!(check_ike(&answer, &ike), Some(choice));
        }
    }
    for proposal in offer_esp(&esp, SPI) {
        for transform in &proposal.transforms {
            let choice = choose_esp(&[with_only(&proposal, transform)], &esp, SPI).unwrap();
            let answer = [choice.answer];
            assert!(answer[0].transforms.contains(transform), "{transform:?}");
            assert!(check_esp(&answer, &esp).is_some(), "{transform:?}");
        }
    }
}

/// Returns ciphers with any number and key length, each with any integrity and without.
fn combinations() -> Vec<Vec<Transform>> {
    let numbers = || (0..50).chain(41_095..41_105);
    let lengths = [0, 1, 64, 128, 192, 256, 512].map(Some);
    let cipher = |id, bits: Option<u16>| Transform {
        key_bits: bits,
        ..Transform::plain(TransformType::ENCR, id)
    };
    let mut combinations = Vec::new();
    for id in numbers() {
        for bits in lengths.into_iter().chain([None]) {
            combinations.push(vec![cipher(id, bits)]);
            combinations.extend(numbers().map(|integrity| {
                let integrity = Transform::plain(TransformType::INTEG, integrity);
                vec![cipher(id, bits), integrity]
            }));
        }
    }
    combinations
}

/// Asserts that these transforms are those of the suite, that all of them were offered, and that
/// none of its keys is empty.
fn is_whole(suite: EspSuite, picked: &[Transform], offered: &[Transform]) {
    let ciphers = [true, false].map(|implicit| Transform::esp(suite, implicit));
    assert!(ciphers.contains(&picked[0]), "{suite}: {picked:?}");
    let hmac = picked
        .iter()
        .find(|t| t.kind == TransformType::INTEG && t.id != 0);
    assert_eq!(hmac.cloned(), suite.hash().map(Transform::hmac), "{suite}");
    assert!(picked.iter().all(|one| offered.contains(one)), "{suite}");
    assert!(suite.keymat_len() >= 20 && (suite.key_len() >= 16 || !suite.encrypts()));
}

/// CVE-2024-3652, CVE-2018-10811, CVE-2026-35328: empty keys, and algorithms that do not go
/// together.
// Weakness: 16
// Weakness: 70
#[test]
fn of_all_combinations_of_ciphers_and_integrity_those_of_our_suites_alone_are_chosen() {
    let (ike, esp) = everything();
    let clear = AllowedEspSuites {
        suites: EspSuite::UNENCRYPTED.to_vec(),
        ..esp.clone()
    };
    let (mut for_ike, mut for_esp) = (Vec::new(), Vec::new());
    for some in combinations() {
        let proposal = |protocol, spi: &[u8], others: &[Transform]| Proposal {
            number: 1,
            protocol,
            spi: spi.to_vec(),
            transforms: [&some[..], others].concat(),
        };
        let others = [
            Transform::prf(PrfId::HMAC_SHA2_256),
            Transform::group(GroupId::CURVE25519),
        ];
        let first = proposal(Protocol::IKE, &[], &others);
        if let Some(choice) = choose_ike(std::slice::from_ref(&first), &ike) {
            let suite = choice.suite.into();
            is_whole(suite, &choice.answer.transforms, &first.transforms);
            for_ike.push(choice.suite);
        }
        let spi = SPI.0.to_be_bytes();
        let child = proposal(Protocol::ESP, &spi, &[Transform::esn(EsnId::NO)]);
        if let Some(choice) = choose_esp(std::slice::from_ref(&child), &esp, SPI) {
            is_whole(choice.suite, &choice.answer.transforms, &child.transforms);
            for_esp.push(choice.suite);
        }
        if let Some(choice) = choose_esp(std::slice::from_ref(&child), &clear, SPI) {
            is_whole(choice.suite, &choice.answer.transforms, &child.transforms);
            for_esp.push(choice.suite);
        }
    }
    for suite in Suite::ALL {
        assert!(for_ike.contains(&suite), "{suite}");
    }
    for suite in EspSuite::all() {
        assert!(for_esp.contains(&suite), "{suite}");
    }
}

const KEM_768: u16 = GroupId::ML_KEM_768.0;
const KEM_1024: u16 = GroupId::ML_KEM_1024.0;

/// Returns a menu of AES-256-GCM with X25519 and these KEMs.
fn with_kems(kems: &[Option<Kem>]) -> AllowedIkeSuites {
    AllowedIkeSuites {
        kems: kems.to_vec(),
        ..only(Suite::Aes256Gcm16)
    }
}

/// Returns an offer of one proposal with these additional key exchanges.
fn adding(additional: &[(TransformType, u16)]) -> [Proposal; 1] {
    let mut proposal = ike(&with_kems(&[None]));
    let transforms = additional.iter();
    proposal
        .transforms
        .extend(transforms.map(|(kind, id)| Transform::plain(*kind, *id)));
    [proposal]
}

#[test]
fn what_may_be_without_a_kem_is_offered_without_one_as_well() {
    let kems = |kems: &[Option<Kem>]| {
        let offered = offer_ike(&with_kems(kems)).into_iter();
        let ids = offered.map(|proposal| {
            let all = proposal.transforms.into_iter();
            let kems = all.filter(|one| one.kind == TransformType::ADDKE1);
            kems.map(|one| one.id).collect::<Vec<_>>()
        });
        ids.collect::<Vec<_>>()
    };
    assert_eq!(kems(&[None]), [Vec::<u16>::new()]);
    assert_eq!(kems(&[Some(Kem::MlKem768)]), [vec![KEM_768]]);
    let all = [Some(Kem::MlKem1024), None, Some(Kem::MlKem768)];
    assert_eq!(kems(&all), [vec![KEM_1024, KEM_768], Vec::new()]);
}

/// RFC 9370 section 2.2.1: any of the types may be used, "not consecutive" ones too, in their
/// order, and no method twice.
#[test]
fn additional_key_exchanges_are_chosen_by_type_and_no_method_twice() {
    use TransformType as Type;
    let both = with_kems(&[Some(Kem::MlKem768), Some(Kem::MlKem1024)]);
    let chosen = |additional: &[(Type, u16)]| {
        let choice = choose_ike(&adding(additional), &both)?;
        Some(choice.kems)
    };
    const NONE: u16 = GroupId::NONE.0;
    let (a, b) = (KEM_768, KEM_1024);
    type Row<'a> = (&'a [(Type, u16)], Option<&'a [Kem]>);
    let table: &[Row<'_>] = &[
        (&[], None),
        (&[(Type::ADDKE1, NONE)], None),
        (&[(Type::ADDKE1, 99)], None),
        (&[(Type::ADDKE1, a), (Type::ADDKE2, 99)], None),
        (&[(Type::ADDKE1, a), (Type::ADDKE2, a)], None),
        (&[(Type::ADDKE1, a)], Some(&[Kem::MlKem768])),
        (&[(Type::ADDKE5, a)], Some(&[Kem::MlKem768])),
        (
            &[(Type::ADDKE1, a), (Type::ADDKE2, a), (Type::ADDKE2, NONE)],
            Some(&[Kem::MlKem768]),
        ),
        (
            &[(Type::ADDKE7, a), (Type::ADDKE2, b)],
            Some(&[Kem::MlKem1024, Kem::MlKem768]),
        ),
        // Taking the first choice for one type would leave no choice for the other type.
        (
            &[(Type::ADDKE1, a), (Type::ADDKE1, b), (Type::ADDKE2, a)],
            Some(&[Kem::MlKem1024, Kem::MlKem768]),
        ),
    ];
    for (additional, expected) in table {
        assert_eq!(chosen(additional).as_deref(), *expected, "{additional:?}");
    }
}

/// "Provided they are proposed by the initiator": NONE is chosen if no KEM is wanted.
#[test]
fn an_additional_key_exchange_is_left_out_where_none_is_wanted() {
    let none = with_kems(&[None]);
    let chosen = |ids: &[u16]| {
        let additional: Vec<_> = ids.iter().map(|id| (TransformType::ADDKE1, *id)).collect();
        choose_ike(&adding(&additional), &none)
    };
    let choice = chosen(&[KEM_768, GroupId::NONE.0]).unwrap();
    assert!(choice.kems.is_empty());
    let answered = Transform::plain(TransformType::ADDKE1, GroupId::NONE.0);
    assert!(choice.answer.transforms.contains(&answered));
    assert_eq!(chosen(&[KEM_768]), None);
}

#[test]
fn an_answer_with_other_additional_key_exchanges_than_offered_is_none() {
    use TransformType as Type;
    let offered = with_kems(&[Some(Kem::MlKem768), Some(Kem::MlKem1024)]);
    let checked = |additional: &[(Type, u16)]| check_ike(&adding(additional), &offered).is_some();
    assert!(checked(&[(Type::ADDKE1, KEM_768)]));
    assert!(!checked(&[]));
    assert!(!checked(&[(Type::ADDKE2, KEM_768)]));
    assert!(!checked(&[
        (Type::ADDKE1, KEM_768),
        (Type::ADDKE1, KEM_1024)
    ]));
    assert!(!checked(&[
        (Type::ADDKE1, KEM_768),
        (Type::ADDKE2, KEM_1024)
    ]));
    assert!(!checked(&[(Type::ADDKE1, GroupId::ML_KEM_512.0)]));
    assert!(!checked(&[(Type::ADDKE1, GroupId::NONE.0)]));
}

/// As for the first IKE SA, a required KEM is chosen.
#[test]
fn a_successor_is_chosen_with_the_additional_key_exchange_that_is_required() {
    let mut peer = super::peer("gateway", PeerRole::Gateway);
    peer.kems = vec![Some(Kem::MlKem768)];
    let ours = AllowedIkeSuites::of(&peer);
    let (choice, _) = choose_successor(&offer_successor(&ours, 7), &ours, 9).unwrap();
    assert_eq!(choice.kems, [Kem::MlKem768]);
    let mut without = offer_successor(&ours, 7);
    without[0]
        .transforms
        .retain(|one| !one.kind.is_additional());
    assert!(choose_successor(&without, &ours, 9).is_none());
}

/// Returns a menu of AES-256-GCM with X25519, followed by these KEMs.
fn esp_with_kems(kems: &[Option<Kem>]) -> AllowedEspSuites {
    AllowedEspSuites {
        kems: kems.to_vec(),
        ..exchanging(&[Suite::Aes256Gcm16], &[GroupId::CURVE25519])
    }
}

/// RFC 9370 section 2.2.4: "along with a Key Exchange Method transform".
#[test]
fn a_child_has_an_additional_key_exchange_beside_a_group_and_never_beside_none() {
    let kems = [Some(Kem::MlKem768), None];
    let offered = offer_esp(&esp_with_kems(&kems), SPI);
    let of = |proposal: &Proposal, kind| {
        let all = proposal.transforms.iter().filter(|one| one.kind == kind);
        all.map(|one| one.id).collect::<Vec<_>>()
    };
    let (x25519, none) = (GroupId::CURVE25519.0, GroupId::NONE.0);
    let both = offered
        .iter()
        .map(|proposal| [TransformType::KE, TransformType::ADDKE1].map(|kind| of(proposal, kind)));
    let expected = [[vec![x25519], vec![KEM_768]], [vec![x25519, none], vec![]]];
    assert_eq!(both.collect::<Vec<_>>(), expected);
    let ours = esp_with_kems(&kems);
    for (at, kems) in [(0, &[Kem::MlKem768][..]), (1, &[])] {
        let choice = choose_esp(&offered[at..=at], &ours, Spi(999)).unwrap();
        assert_eq!(choice.kems, kems);
        assert_eq!(choice.group, Some(GroupId::CURVE25519));
        let checked = check_esp(std::slice::from_ref(&choice.answer), &ours).unwrap();
        assert_eq!(checked.kems, kems);
    }
    let mut odd = offered[0].clone();
    for transform in &mut odd.transforms {
        if transform.kind == TransformType::KE {
            transform.id = none;
        }
    }
    assert_eq!(choose_esp(&[odd], &ours, SPI), None);
}

/// RFC 7296 section 1.2: a child of IKE_AUTH has no key exchange. The same holds if a peer sent no
/// KE payload.
#[test]
fn an_additional_key_exchange_for_a_child_without_a_first_one_is_passed_over() {
    let plain = AllowedEspSuites::plain(&[Suite::Aes256Gcm16]);
    let mut offered = single(offer_esp(&plain, SPI));
    let one = |id| Transform::plain(TransformType::ADDKE1, id);
    offered.transforms.push(one(KEM_768));
    let with = esp_with_kems(&[Some(Kem::MlKem768)]);
    for ours in [&plain, &with] {
        assert_eq!(choose_esp(&[offered.clone()], ours, SPI), None);
    }
    offered.transforms.push(one(GroupId::NONE.0));
    let choice = choose_esp(&[offered], &plain, Spi(999)).unwrap();
    assert!(choice.kems.is_empty() && choice.group.is_none());
}

#[test]
fn an_answer_for_a_child_with_less_or_more_than_was_asked_for_is_none() {
    let required = esp_with_kems(&[Some(Kem::MlKem768), Some(Kem::MlKem1024)]);
    let right = choose_esp(&offer_esp(&required, SPI), &required, Spi(999));
    let right = right.unwrap().answer;
    assert!(check_esp(std::slice::from_ref(&right), &required).is_some());
    let is_taken = |change: &dyn Fn(&mut Vec<Transform>)| {
        let mut answer = right.clone();
        change(&mut answer.transforms);
        check_esp(&[answer], &required).is_some()
    };
    let one = |kind, id| Transform::plain(kind, id);
    let additional = |one: &Transform| one.kind.is_additional();
    assert!(!is_taken(&|all| all.retain(|one| !additional(one))));
    assert!(!is_taken(
        &|all| all.retain(|one| one.kind != TransformType::KE)
    ));
    assert!(!is_taken(&|all| {
        all.retain(|one| one.kind != TransformType::KE && !additional(one))
    }));
    assert!(!is_taken(
        &|all| all.push(one(TransformType::ADDKE1, KEM_1024))
    ));
    assert!(!is_taken(
        &|all| all.push(one(TransformType::ADDKE2, KEM_1024))
    ));
    assert!(!is_taken(&|all| {
        all.retain(|one| !additional(one));
        all.push(one(TransformType::ADDKE2, KEM_768));
    }));
}
