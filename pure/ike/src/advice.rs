//! Advice for people about refusals, and the phrases of error messages.

use model::{Identity, Kem};
use wire::ike::{CertificateRefusal, NotifyType, RefusalCode};

/// Returns the phrase for a child SA in messages.
pub(crate) fn tunnel(name: &Option<String>) -> String {
    name.as_ref().map_or_else(
        || "the tunnel".to_owned(),
        |name| format!("the tunnel `{name}`"),
    )
}

/// Returns the advice to enable IKE fragmentation, at our end or at the peer's.
pub(crate) const fn cutter(ours: bool) -> &'static str {
    match ours {
        true => "set `fragment = 1280` in [listen]",
        false => "the peer does not offer IKE fragmentation (RFC 7383): turn it on there",
    }
}

/// Returns the phrase for the allowed kinds of sequence numbers.
pub(crate) const fn numbers(esn: bool) -> &'static str {
    match esn {
        true => "with or without extended sequence numbers",
        false => "without extended sequence numbers",
    }
}

/// Returns the phrase for a required additional key exchange; empty if it is optional.
pub(crate) fn besides(kems: &[Option<Kem>]) -> String {
    let required: Option<Vec<_>> = kems.iter().copied().collect();
    let required = required.filter(|kems| !kems.is_empty());
    required.map_or_else(String::new, |kems| format!(", and {}", either(&kems)))
}

/// Returns the phrase that adds `kem` to the settings to compare, if an additional key exchange is
/// required.
pub(crate) fn kem_too(kems: &[Option<Kem>]) -> &'static str {
    match besides(kems).is_empty() {
        true => "",
        false => ", and `kem`",
    }
}

/// Explains the refusal of an offer to license these nodes.
pub(crate) fn offers(nodes: &[Identity]) -> String {
    let read = match nodes {
        [node] => format!("{node} read, but no licence here names that node"),
        _ => format!(
            "{} read with shared keys, but no licences here are for exactly these nodes",
            listed(nodes)
        ),
    };
    let both = match nodes {
        [_] => "set the same licence, with `at`, at both ends",
        _ => "set the same licences, with `at` and `holders`, at both ends",
    };
    format!(
        "the peer offers to let {read}: no keys are distributed, and no node reads there; {both}"
    )
}

pub(crate) fn listed(nodes: &[Identity]) -> String {
    let nodes: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    nodes.join(", ")
}

pub(crate) fn either(allowed: &[impl ToString]) -> String {
    let names: Vec<_> = allowed.iter().map(ToString::to_string).collect();
    names.join(" or ")
}

/// Returns advice for an error notify.
pub(crate) fn advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::NO_PROPOSAL_CHOSEN => {
            "nothing in common: compare `suite` and `groups` at both ends, and `kem` and `mode` if set"
        }
        NotifyType::INVALID_KE_PAYLOAD => {
            "no key exchange in common: allow x25519 (group 31) or p256 (group 19) there"
        }
        NotifyType::TS_UNACCEPTABLE => {
            "nothing in common: compare `local` and `remote` at both ends"
        }
        NotifyType::INTERNAL_ADDRESS_FAILURE => {
            "its pool has no free address for us: extend the pool there, or free a lease"
        }
        NotifyType::FAILED_CP_REQUIRED => {
            "the peer assigns inner addresses: set `local = [\"dynamic\"]` here"
        }
        NotifyType::OFFER_REFUSED => {
            "no licence there names that node, or the node shares keys with others there: set the same licences, with `at`, and the same `holders` at both ends"
        }
        NotifyType::ZONES_REQUIRED => {
            "zones are required there: set `zones` here like there, or make the peer accept plain ESP"
        }
        NotifyType::INVALID_MAJOR_VERSION => "the peer speaks another version of IKE",
        NotifyType::TEMPORARY_FAILURE => {
            "the tunnel was taken down there: run `strata up` there to accept us again"
        }
        NotifyType::NO_ADDITIONAL_SAS => "our role there allows no tunnel",
        NotifyType::AUTHENTICATION_FAILED => "compare `id` and `psk` at both ends",
        NotifyType::UNACCEPTABLE_ADDRESSES => {
            "the peer does not accept us at that address: see its log, and remove our `address` there"
        }
        NotifyType::UNEXPECTED_NAT_DETECTED => {
            "a NAT translates our address: allow NATs (`nat`), or find the device that translates"
        }
        _ => "the peer's log may say more",
    }
}

/// Returns advice for a refused child SA.
pub(crate) fn child_advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::NO_ADDITIONAL_SAS => {
            "all tunnels that are configured there exist already, or one of them carries the same traffic"
        }
        notify => advice(notify),
    }
}

/// Returns advice for a refused rekey.
pub(crate) fn rekey_advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::NO_PROPOSAL_CHOSEN => {
            "nothing in common: compare `suite`, `groups` and, for a tunnel, `pfs` at both ends, and `kem` if set"
        }
        NotifyType::INVALID_KE_PAYLOAD => {
            "the peer wants a group that is not in `groups` here: add one that both ends support, or for a tunnel set `pfs = false`"
        }
        notify => child_advice(notify),
    }
}

/// Returns advice for a refused clone.
pub(crate) fn clone_advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::TEMPORARY_FAILURE => "the peer was busy: try again",
        NotifyType::NO_ADDITIONAL_SAS => "the peer accepts no more IKE SAs: wait until one is gone",
        notify => advice(notify),
    }
}

/// Returns advice for a refused grant.
pub(crate) const fn grant_advice(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::NOT_A_LICENSED_NODE | RefusalCode::NOT_THE_GATEWAY => {
            "add a [gateway.NAME] with our `id` there"
        }
        RefusalCode::TOO_MANY_GRANTS => "the node holds as many grants as it can",
        _ => "both ends should run the same release",
    }
}

/// Returns advice for a refused request for keys.
pub(crate) const fn key_advice(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::NOT_A_NEIGHBOUR => "add a [neighbour.NAME] with our `id` there",
        RefusalCode::UNKNOWN_GRANT => {
            "the peer has no keys that it may hand on, or no longer has them"
        }
        RefusalCode::WRONG_TOKEN => "the token is not for us, or was not made by the mobile node",
        RefusalCode::STALE_TOKEN => "compare the clocks of the mobile node and of both nodes",
        RefusalCode::USED_TOKEN => "the peer gave us these keys before",
        RefusalCode::NOT_LICENSED => {
            "license this node at both ends of the tunnel, by `licences` with `at`"
        }
        RefusalCode::BUSY => "too many requests at once",
        _ => "both ends should run the same release",
    }
}

/// Returns advice for a refused certificate of ours.
pub(crate) fn refusal_of_ours(why: Option<CertificateRefusal>) -> &'static str {
    match why {
        Some(CertificateRefusal::EXPIRED) => {
            "the certificate or its CA has expired: issue a new one"
        }
        Some(CertificateRefusal::NOT_YET_VALID) => {
            "the certificate is not valid yet there: compare the clocks"
        }
        Some(CertificateRefusal::UNKNOWN_AUTHORITY) => {
            "our CA is not trusted there: add it to `ca` there, and the intermediates to our `cert`"
        }
        Some(CertificateRefusal::WRONG_NAME) => {
            "our `id` is not a name in the certificate: issue a new one"
        }
        Some(CertificateRefusal::WRONG_USAGE) => {
            "its key usage does not allow IKE: issue a new one"
        }
        Some(CertificateRefusal::WRONG_SIGNATURE) => {
            "our signature does not verify: check that `key` belongs to `cert`"
        }
        Some(CertificateRefusal::REVOKED) => {
            "the certificate was revoked: issue a new one, with a new key"
        }
        Some(CertificateRefusal::REVOCATION_UNKNOWN) => {
            "the peer cannot check its revocation: put the newest revocation list of our CA into `crl` there"
        }
        Some(_) => "the certificate violates RFC 5280; see the peer's log",
        None => {
            "our `id` is unknown or has a `psk` or `pubkey` there, or our CA is not trusted there; see the peer's log"
        }
    }
}
