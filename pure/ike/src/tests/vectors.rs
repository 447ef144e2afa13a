//! Keys of `docs/protocol-vectors.json`, which an independent implementation derives as well.

use crate::exchange::vendor_id;
use crate::extension::zones::{Beside, Spis, bound, halves};
use crate::keys::{ChildKeys, own_first};
use crate::{is_signed, sign_token, token_key};
use crypto::{Secret, sha256};
use model::{Half, Identity, Keys, Right, Spi, ZoneAgreement};
use pages::{Vector, check_vectors};
use wire::ike::{Payload, Token, VENDOR_ID_TEXT, decode_level, decode_nodes, decode_zone_map};

const FROM_INITIATOR: &str = "initiator to responder";
const TO_INITIATOR: &str = "responder to initiator";

#[test]
fn the_vendor_id_is_that_of_section_3_1() {
    check_vectors("vendor-id", |vector| {
        vector.text("text") == VENDOR_ID_TEXT && vendor_id() == Payload::VendorId(vector.output(""))
    });
}

#[test]
fn keys_of_composite_sas_are_those_of_section_7_2() {
    check_vectors("composite-keymat", |vector| {
        let composite = Composite::read(vector);
        composite.has_all_keys(vector)
            && [true, false]
                .iter()
                .all(|i| composite.is_derived(vector, *i))
    });
}

/// A vector with its inputs read.
struct Composite {
    agreement: ZoneAgreement,
    is_slot: bool,
    keys: ChildKeys,
    /// SPIs of the initiator and the responder.
    spis: Spis,
    beside: Beside<Spis>,
}

impl Composite {
    fn read(vector: &Vector) -> Self {
        let level = vector
            .has("level_grant")
            .then(|| vector.octets("level_grant"));
        let pair = |name: &str| {
            let (i, r) = (format!("{name}spi_i"), format!("{name}spi_r"));
            vector.has(&i).then(|| (spi(vector, &i), spi(vector, &r)))
        };
        let nonces = [vector.octets("Ni"), vector.octets("Nr")].concat();
        Self {
            agreement: ZoneAgreement {
                level: level.map(|data| decode_level(&data).unwrap()),
                ..decode_zone_map(&vector.octets("zone_map")).unwrap()
            },
            is_slot: vector.has("slot"),
            keys: ChildKeys::known(vector.octets("SK_d"), vector.octets("shared"), nonces),
            spis: pair("").unwrap(),
            beside: Beside {
                opaque: pair("opaque_"),
                integrity: pair("integrity_"),
            },
        }
    }

    /// Returns the names of all keys, in the order of KEYMAT.
    fn names(&self) -> Vec<String> {
        let ways = [FROM_INITIATOR, TO_INITIATOR];
        let of_both = |names: &[String]| {
            let ways = ways.into_iter();
            let named = ways.flat_map(|way| names.iter().map(move |name| format!("{name}, {way}")));
            named.collect::<Vec<_>>()
        };
        let zones: Vec<_> = (1..=self.agreement.zones.len())
            .map(|n| format!("zone {n}"))
            .collect();
        let mut names = of_both(&zones);
        names.extend(of_both(&["root_w".to_owned(), "root_inj".to_owned()]));
        if self.beside.opaque.is_some() {
            names.extend(of_both(&["opaque companion".to_owned()]));
        }
        if self.beside.integrity.is_some() {
            names.extend(of_both(&["integrity companion".to_owned()]));
        }
        names.extend(self.is_slot.then(|| "root_tok".to_owned()));
        names
    }

    /// Returns true if `bound`, H and the whole of KEYMAT are those of the vector.
    fn has_all_keys(&self, vector: &Vector) -> bool {
        let bound = bound(&self.agreement, true, self.spis, self.beside);
        let hash = sha256(&[&bound]);
        let keys = self.names().into_iter().map(|name| key(vector, &name));
        let keymat = keys.collect::<Vec<_>>().concat();
        bound == vector.output("/bound")
            && hash[..] == vector.output("/H")
            && self.keys.keymat(&hash, keymat.len()).expose() == keymat
    }

    /// Returns true if an end takes each key from its place.
    fn is_derived(&self, vector: &Vector, initiator: bool) -> bool {
        let ours = |(i, r): Spis| own_first(initiator, i, r);
        let beside = Beside {
            opaque: self.beside.opaque.map(ours),
            integrity: self.beside.integrity.map(ours),
        };
        let (inbound, outbound, besides, tokens) = halves(
            &self.keys,
            &self.agreement,
            self.is_slot,
            initiator,
            ours(self.spis),
            beside,
        );
        let (to_us, from_us) = own_first(initiator, TO_INITIATOR, FROM_INITIATOR);
        let same = |secret: &Secret, name: &str| secret.expose() == key(vector, name);
        let same_root = |root: &Option<Secret>, right, name: &str| match root {
            Some(root) => same(root, name),
            None => !self.agreement.has(right),
        };
        let same_half = |half: &Half<Secret>, way: &str| {
            same_zones(&zone_keys(half), |n| {
                key(vector, &format!("zone {n}, {way}"))
            }) && same_root(&half.writers, Right::Write, &format!("root_w, {way}"))
                && same_root(&half.injectors, Right::Inject, &format!("root_inj, {way}"))
        };
        let same_companion =
            |half: &Half<Secret>, name: &str| same_zones(&zone_keys(half), |_| key(vector, name));
        let companions = [
            ("opaque companion", besides.opaque, self.beside.opaque),
            (
                "integrity companion",
                besides.integrity,
                self.beside.integrity,
            ),
        ];
        same_half(&inbound, to_us)
            && same_half(&outbound, from_us)
            && companions.iter().all(|(name, sa, spis)| match sa {
                Some(sa) => {
                    same_companion(&sa.inbound, &format!("{name}, {to_us}"))
                        && same_companion(&sa.outbound, &format!("{name}, {from_us}"))
                }
                None => spis.is_none(),
            })
            && tokens.is_some() == self.is_slot
            && tokens.is_none_or(|root| same(&root, "root_tok"))
    }
}

fn key(vector: &Vector, name: &str) -> Vec<u8> {
    vector.output(&format!("/keymat/{name}"))
}

fn zone_keys(half: &Half<Secret>) -> Vec<&[u8]> {
    match &half.keys {
        Keys::Zoned(zones) => zones.iter().map(|zone| zone.key.expose()).collect(),
        Keys::Plain { .. } => panic!("a composite SA has keys of zones"),
    }
}

fn same_zones(keys: &[&[u8]], expected: impl Fn(usize) -> Vec<u8>) -> bool {
    let mut keys = (1..).zip(keys);
    keys.all(|(serial, key)| *key == expected(serial))
}

fn spi(vector: &Vector, input: &str) -> Spi {
    Spi(u32::from_be_bytes(vector.octets(input).try_into().unwrap()))
}

fn node(vector: &Vector, input: &str) -> Identity {
    let nodes = decode_nodes(&vector.octets(input)).unwrap();
    nodes.into_iter().next().unwrap()
}

#[test]
fn keys_of_tokens_are_those_of_section_7_4() {
    check_vectors("token-key", |vector| {
        let root = Secret::new(vector.octets("root_tok"));
        token_key(&root, &node(vector, "holder")).expose() == vector.output("")
    });
}

/// The fields in the front of a token are compared in `wire`.
#[test]
fn macs_of_tokens_are_those_of_section_10_3() {
    check_vectors("token", |vector| {
        let key = Secret::new(vector.octets("key"));
        let asker = node(vector, "asker");
        let octets = vector.output("/token");
        let Ok(shown) = Token::decode(&octets) else {
            return false;
        };
        let mut signed = shown.clone();
        sign_token(&mut signed, &key, &asker);
        is_signed(&shown, &key, &asker)
            && signed.mac[..] == vector.output("/mac")
            && signed.covered(&asker) == vector.output("/covered")
            && octets.starts_with(&vector.output("/front"))
    });
}
