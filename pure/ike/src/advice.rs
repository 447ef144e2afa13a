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
        true => "with extended sequence numbers or without",
        false => "without extended sequence numbers",
    }
}

/// Returns the phrase for a required additional key exchange; empty if it is optional.
pub(crate) fn besides(kems: &[Option<Kem>]) -> String {
    let required: Option<Vec<_>> = kems.iter().copied().collect();
    let required = required.filter(|kems| !kems.is_empty());
    required.map_or_else(String::new, |kems| {
        format!(" and {} besides", either(&kems))
    })
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
        [node] => format!("{node} read, and no licence here names it"),
        _ => format!(
            "each of {} read by the same keys, and no licences here are for these nodes and no others",
            listed(nodes)
        ),
    };
    let both = match nodes {
        [_] => "write the same licence, with `at`, at both ends",
        _ => "write the same licences, with `at` and `holders`, at both ends",
    };
    format!(
        "it offers to let {read}: its keys do not leave, and nobody reads in that place; {both}"
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
            "nothing in common: compare `suite` and `groups` at both ends, and `kem` and `mode` where there are any"
        }
        NotifyType::INVALID_KE_PAYLOAD => {
            "no key exchange in common: allow x25519 (group 31) or p256 (group 19) there"
        }
        NotifyType::TS_UNACCEPTABLE => {
            "nothing in common: compare `local` and `remote` at both ends"
        }
        NotifyType::INTERNAL_ADDRESS_FAILURE => {
            "its pool has no address left for us: add to it there, or end what uses it"
        }
        NotifyType::FAILED_CP_REQUIRED => {
            "it lends the addresses inside: set `local = [\"dynamic\"]` here"
        }
        NotifyType::OFFER_REFUSED => {
            "no licence there names that node, or it shares keys with others there: write the same ones, with `at`, and the same `holders` at both ends"
        }
        NotifyType::ZONES_REQUIRED => {
            "zones are required there: set `zones` here like there, or make the peer accept plain ESP"
        }
        NotifyType::INVALID_MAJOR_VERSION => "the peer speaks another version of IKE",
        NotifyType::TEMPORARY_FAILURE => {
            "somebody has taken it down there; `strata up` there lets us in again"
        }
        NotifyType::NO_ADDITIONAL_SAS => "our role there allows no tunnel",
        NotifyType::AUTHENTICATION_FAILED => "compare `id` and `psk` at both ends",
        NotifyType::UNACCEPTABLE_ADDRESSES => {
            "it does not want us at that address: see its log, and leave our `address` out there"
        }
        NotifyType::UNEXPECTED_NAT_DETECTED => {
            "our address is translated on the way: allow it (`nat`), or find who translates"
        }
        _ => "the peer's log may say more",
    }
}

/// Returns advice for a refused child SA.
pub(crate) fn child_advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::NO_ADDITIONAL_SAS => "it has no more than it has, or one that carries the same",
        notify => advice(notify),
    }
}

/// Returns advice for a refused rekey.
pub(crate) fn rekey_advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::NO_PROPOSAL_CHOSEN => {
            "nothing in common: compare `suite`, `groups` and, for a tunnel, `pfs` at both ends, and `kem` where there is any"
        }
        NotifyType::INVALID_KE_PAYLOAD => {
            "it wants a group that is not in `groups` here: write one of both ends there, or for a tunnel `pfs = false`"
        }
        notify => child_advice(notify),
    }
}

/// Returns advice for a refused clone.
pub(crate) fn clone_advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::TEMPORARY_FAILURE => "it was busy: try again",
        NotifyType::NO_ADDITIONAL_SAS => "it wants no more of them: wait until one is gone",
        notify => advice(notify),
    }
}

/// Returns advice for a refused grant.
pub(crate) const fn grant_advice(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::NOT_A_LICENSED_NODE | RefusalCode::NOT_THE_GATEWAY => {
            "it has to know us by a [gateway.NAME] with our `id`"
        }
        RefusalCode::TOO_MANY_GRANTS => "it holds as many as it can",
        _ => "both ends should run the same release",
    }
}

/// Returns advice for a refused request for keys.
pub(crate) const fn key_advice(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::NOT_A_NEIGHBOUR => "it has to know us by a [neighbour.NAME] with our `id`",
        RefusalCode::UNKNOWN_GRANT => "it has no keys that it may hand on, or not any more",
        RefusalCode::WRONG_TOKEN => {
            "the mobile node's token is not for us, or not the mobile node's"
        }
        RefusalCode::STALE_TOKEN => "compare the clocks of the mobile node and of both nodes",
        RefusalCode::USED_TOKEN => "it has given them to us before",
        RefusalCode::NOT_LICENSED => {
            "both ends of the tunnel have to license us, by `licences` with `at`"
        }
        RefusalCode::BUSY => "it is asked too often",
        _ => "both ends should run the same release",
    }
}

/// Returns advice for a refused certificate of ours.
pub(crate) fn refusal_of_ours(why: Option<CertificateRefusal>) -> &'static str {
    match why {
        Some(CertificateRefusal::EXPIRED) => "it, or its CA, has expired; issue it anew",
        Some(CertificateRefusal::NOT_YET_VALID) => "it is not valid yet there; compare the clocks",
        Some(CertificateRefusal::UNKNOWN_AUTHORITY) => {
            "our CA is not trusted there; add it to `ca` there, and the intermediates to our `cert`"
        }
        Some(CertificateRefusal::WRONG_NAME) => "our `id` is not a name in it; issue it anew",
        Some(CertificateRefusal::WRONG_USAGE) => "its key usage does not allow IKE; issue it anew",
        Some(CertificateRefusal::WRONG_SIGNATURE) => {
            "our signature does not verify: is `key` that of `cert`?"
        }
        Some(CertificateRefusal::REVOKED) => "it was revoked; issue it anew, with a new key",
        Some(CertificateRefusal::REVOCATION_UNKNOWN) => {
            "it cannot tell there whether it was revoked: the newest list of our CA has to be in `crl` there"
        }
        Some(_) => "it breaks a rule of RFC 5280; the peer's log says which",
        None => {
            "our `id` is unknown or has a `psk` or `pubkey` there, or it does not believe our CA; its log may say more"
        }
    }
}
