//! Advice about failures and refusals, in a sentence for `strata status` and the log. The engines
//! state facts, without keys of the configuration and commands. [`super::remedy`] names the line to
//! change.

use crypto::Untrusted;
use model::{Identity, Kem};
use node::{
    BadMode, BadPpk, BadProof, Cause, DownReason, GrantRefusal, KeyRefusal, NoKeys, NotFound,
    NotResumed, NotVerified, Refusal, Unplaced,
};
use std::borrow::Cow;
use std::fmt::Display;
use wire::ike::{CertificateRefusal, NotifyType, RefusalCode};

/// A sentence; empty if there is nothing to do.
type Advice = Cow<'static, str>;

/// Returns a cause, with advice.
pub fn told(why: &Cause) -> String {
    let advice = match why {
        Cause::Down(why) => of_end(why),
        Cause::Refused(why) => of_refusal(why),
        Cause::Grant(why) => of_grant(*why).into(),
        Cause::Keys(why) => of_keys(*why).into(),
        Cause::NoKeys(why) | Cause::Visitor(why) => of_no_keys(*why).into(),
        Cause::UnknownHolder(_) => "add a [neighbour.NAME] for that node".into(),
        Cause::Name { why, .. } => of_not_found(why).into(),
        Cause::LeftOut { .. } => "raise `holders`, or let nodes name fewer neighbours".into(),
        Cause::Other(_) => "".into(),
    };
    joined(why, &advice)
}

/// Returns the reason for which an IKE SA is down, with advice.
pub fn told_end(why: &DownReason) -> String {
    joined(why, &of_end(why))
}

/// Returns a refusal, with advice.
pub fn told_refusal(why: &Refusal) -> String {
    joined(why, &of_refusal(why))
}

/// Returns the reason for which a name has no address, with advice.
pub fn told_not_found(why: &NotFound) -> String {
    joined(why, of_not_found(why))
}

/// Appends advice to a fact. A second colon in one sentence would be hard to read.
fn joined(fact: &impl Display, advice: &str) -> String {
    let fact = fact.to_string();
    match advice {
        "" => fact,
        _ if fact.contains(": ") || fact.contains("; ") => format!("{fact}; {advice}"),
        _ => format!("{fact}: {advice}"),
    }
}

const fn of_not_found(why: &NotFound) -> &'static str {
    match why {
        NotFound::NoServer => {
            "connect to a network that has one, or list one in `resolve_via` of [tunnel]"
        }
        NotFound::NoAnswer { .. } | NotFound::NotSent { .. } => {
            "check the network, or list another one in `resolve_via` of [tunnel]"
        }
        NotFound::NoSuchName { .. } | NotFound::NoAddress { .. } => {
            "correct `address` in the peer's table, or the name's zone"
        }
        NotFound::Failed { .. } | NotFound::Malformed { .. } => {
            "list another one in `resolve_via` of [tunnel]"
        }
        NotFound::NotListed { .. } => {
            "add it to `redirect` in the peer's table if it is a gateway of that peer"
        }
        NotFound::Inside { .. } => {
            "list a name server of the outside in `resolve_via` of [tunnel], or except the address by a [[policy]]"
        }
    }
}

fn of_end(why: &DownReason) -> Advice {
    let advice = match why {
        DownReason::AuthenticationRefused { .. } => "compare `id` and `psk` at both ends",
        DownReason::PpkRefused { .. } => "compare `ppk`, `id` and `psk` at both ends",
        DownReason::NoPpk => "set the same `ppk` there, or `required = false` in `ppk` here",
        DownReason::CertificateRefused { why, .. } => of_our_certificate(*why),
        DownReason::KeyRefused { .. } => {
            "compare `pubkey` there with our key, which `strata pki pubkey` prints"
        }
        DownReason::BadProof(why) => of_proof(why),
        DownReason::SignatureNotAccepted(why) => of_signature(*why),
        DownReason::CannotSign => "check `cert` and `key` in [node]",
        DownReason::AuthUnanswered { .. } => "check that no firewall blocks that port",
        DownReason::LongAuthUnanswered(uncut) | DownReason::LongKemUnanswered(uncut) => {
            match uncut.ours {
                true => "set `fragment = 1280` in [listen]",
                false => "the peer does not offer IKE fragmentation (RFC 7383): turn it on there",
            }
        }
        DownReason::KemRefused { notify }
        | DownReason::ChildRefused { notify }
        | DownReason::Refused { notify } => of_notify(*notify),
        DownReason::Mode(why) => return of_mode(*why),
        DownReason::NoAddress => {
            "configure a pool there, or list our address in `local` here and in [tunnel]"
        }
        DownReason::ProofTooOld => "`reauth` is the limit; see the log",
        DownReason::NotFollowed => "see the peer's log",
        DownReason::RedirectNotListed { .. } => {
            "add it to `redirect` in the peer's table if it is one"
        }
        DownReason::RedirectedTooOften => "check their `redirect` for a loop",
        DownReason::NotConnected { to } => {
            let port = to.port();
            return format!(
                "check that the peer runs there with `tcp = {port}` in its [listen], and that firewalls pass that port"
            )
            .into();
        }
        DownReason::StreamUnanswered { .. } => {
            "another program may use that port; compare `tcp_port` here with `tcp` in the peer's [listen]"
        }
        DownReason::Unreachable { .. } => {
            "check that the peer runs there, and that firewalls pass UDP ports 500 and 4500"
        }
        DownReason::WrongKey => "compare `psk` at both ends",
        DownReason::WrongIdentity { .. } => "change `id` here or there",
        DownReason::ZonesRequired => "set its `zones` like ours, or `zones = \"accept\"` here",
        DownReason::ClosedByPeer
        | DownReason::ClosedHere
        | DownReason::NoKemKey
        | DownReason::ChildDeleted
        | DownReason::NotOffered(_)
        | DownReason::NotResumed
        | DownReason::NoNatTraversal
        | DownReason::NotChildless
        | DownReason::PeerGone { .. }
        | DownReason::LifetimeOver
        | DownReason::Forgetful
        | DownReason::Reconfigured
        | DownReason::Removed
        | DownReason::Replaced
        | DownReason::Misbehaved(_)
        | DownReason::Unreadable { .. }
        | DownReason::ZonesWidened => "",
    };
    advice.into()
}

fn of_refusal(why: &Refusal) -> Advice {
    let advice = match why {
        Refusal::NotWhoWeAre { .. } => "change `id` here or there",
        Refusal::WrongAddress { .. } => "change or remove `address` in the peer's table",
        Refusal::WrongKey(_) => "compare `psk` at both ends",
        Refusal::BadProof { why, .. } => of_proof(why),
        Refusal::BadPpk { why, .. } => of_ppk(why),
        Refusal::WithoutPpk => "set the same `ppk` there",
        Refusal::WithoutKem => "set the same `kem` there",
        Refusal::WithoutResources => "set the same `resources` there",
        Refusal::WithoutPaths => {
            "several live paths need Strata of this version and `mobike` at both ends; remove `paths` here otherwise"
        }
        Refusal::WithoutPathTraffic => {
            "update the peer, or remove `traffic` here to have all flows share the paths"
        }
        Refusal::PathTrafficOfPeer => "set `traffic` there, or remove `address` there",
        Refusal::NoMorePaths => "set the same `paths` there",
        Refusal::TooManyPaths(_) => "set the same `paths` here",
        Refusal::CannotProve => "check `cert` and `key` in [node]",
        Refusal::SignatureNotAccepted(why) => of_signature(*why),
        Refusal::NoIkeProposal { kems, .. } => match is_required(kems) {
            false => "compare `suite` and `groups` at both ends",
            true => "compare `suite` and `groups` at both ends, and `kem`",
        },
        Refusal::NoEspProposal { .. } => "compare `suite`, `groups` and `esn` at both ends",
        Refusal::Unencrypted => {
            "set the same `unencrypted` at both ends, or remove it there to encrypt the tunnel"
        }
        Refusal::TrafficSelectors => "compare `local` and `remote` at both ends",
        Refusal::Mode(why) => return of_mode(*why),
        Refusal::NoRequest { .. } => {
            "set `local = [\"dynamic\"]` there, or `remote` instead of `pool` here"
        }
        Refusal::NoAddressLeft { pool } => {
            return format!(
                "extend `addresses` in [pool.{pool}], or shorten `lease`; `strata leases` lists the leases"
            )
            .into();
        }
        Refusal::AddressNotAsked => "run `strata up NAME`",
        Refusal::ZonesRequired => "set its `zones` like ours, or `zones = \"accept\"` here",
        Refusal::LevelNotAgreed => "set the same `integrity` under `level` at both ends",
        Refusal::UpElsewhere { .. } => {
            "take that tunnel down, or write `unique = \"replace\"` in the peer's table"
        }
        Refusal::TooManyUsers { .. } => "raise `users` in the table of these users",
        Refusal::TakenDown => "run `strata up NAME` to accept it again",
        Refusal::RekeyRefused(notify) => of_rekey(*notify),
        Refusal::ExchangeRefused => {
            "compare `pfs`, `groups` and `kem` at both ends, or set `pfs = false` here"
        }
        Refusal::UnprovedLack(why)
        | Refusal::NotReauthenticated(why)
        | Refusal::NotHandedOver(why)
        | Refusal::RedirectNotFollowed(why)
        | Refusal::ChildFailed { why, .. } => return of_end(why),
        Refusal::CloneRefused(notify) => of_clone(*notify),
        Refusal::CloneNotAgreed => "set `clone = true` at both ends",
        Refusal::AnotherChild => "add a [peer.NAME.child.NAME] for that traffic",
        Refusal::OfferRefused(nodes) => of_offer(nodes),
        Refusal::OfferWithoutPlace(_) => "license the domain at both ends, or the node by its name",
        Refusal::TooManyOfDomain { .. } => "set the same `at_most` at both ends",
        Refusal::TooManyResources(_) | Refusal::NoMoreResources => {
            "set the same `resources` at both ends"
        }
        Refusal::ChildTakenDown(_) => "run `strata up` to accept it again",
        Refusal::ChildRefused { notify, .. } => of_child(*notify),
        Refusal::InformationRefused { notify } | Refusal::MoveRefused(notify) => of_notify(*notify),
        Refusal::Unplaced(why) => of_placement(*why),
        Refusal::MovedAway { .. } => "remove `address` for a peer that moves",
        Refusal::Translated => "allow NATs there (`nat`), or find the device that translates",
        Refusal::NotResumed {
            why: NotResumed::Off,
            ..
        } => "set the same `resume` in its table here",
        Refusal::AuthenticationMethod
        | Refusal::UnknownIdentity(_)
        | Refusal::NotResumed { .. }
        | Refusal::ModeDeclined(_)
        | Refusal::NotItsAddress(_)
        | Refusal::NoChildForRole
        | Refusal::ChildMissing
        | Refusal::NoNatTraversal
        | Refusal::ZonesNotAgreed
        | Refusal::LicenceNotAccepted(_)
        | Refusal::Unproved(_)
        | Refusal::Restarted
        | Refusal::NotOurGateway
        | Refusal::TooManyClones(_)
        | Refusal::TooManyTunnels { .. }
        | Refusal::SentElsewhere(_)
        | Refusal::KeyExchange
        | Refusal::TooManyChildren(_)
        | Refusal::NotTheirsToMove
        | Refusal::WrongPort
        | Refusal::NotFollowed { .. }
        | Refusal::Misbehaved(_) => "",
    };
    advice.into()
}

/// Returns advice about an address that a tunnel in transport mode cannot have.
pub const fn of_placement(why: Unplaced) -> &'static str {
    match why {
        Unplaced::NotListed(_) => {
            "add it to `local` or `remote` of that tunnel, or leave it where it is"
        }
        Unplaced::Bypassed(_) => "remove that [[policy]]",
        Unplaced::Claimed(_) => "list each address in one peer's table alone",
        Unplaced::Taken(_) => "take that tunnel down",
        Unplaced::Translated(_) => "write `mode = \"tunnel\"` or `mode = \"beet\"` at both ends",
    }
}

/// Returns true if an additional key exchange is required.
fn is_required(kems: &[Option<Kem>]) -> bool {
    !kems.is_empty() && kems.iter().all(Option::is_some)
}

const fn of_proof(why: &BadProof) -> &'static str {
    match why {
        BadProof::Untrusted(why) => of_chain(why),
        BadProof::WrongName { .. } => "issue a new one, or change `id`",
        BadProof::OtherAuthority { .. } => "issue it by that CA, or change `ca` in its table here",
        BadProof::OtherUnit { .. } => "issue it with `--ou`, or change `ou` in its table here",
        BadProof::SeveralTables { .. } => "issue it with one organisational unit",
        BadProof::AnotherKey { .. } | BadProof::WrongKey => {
            "compare `pubkey` here with the peer's key, which `strata pki pubkey` prints"
        }
        BadProof::CertificateExpected => {
            "its table here has neither `psk` nor `pubkey`: add one, or a `cert` there"
        }
        BadProof::SharedKeyExpected => {
            "its table here has a `psk`: remove it, or write the same there"
        }
        BadProof::KeyExpected => {
            "its table here has a `pubkey`: remove it, or write our `pubkey` there"
        }
        BadProof::OldRsa => "issue its certificate for an ECDSA P-256 or P-384 key",
        BadProof::WrongSignature | BadProof::UnknownSignature | BadProof::NoCertificateExpected => {
            ""
        }
    }
}

/// Returns advice about a chain of certificates. [`super::certificate`] has more.
const fn of_chain(why: &Untrusted) -> &'static str {
    match why {
        Untrusted::NotYetValid(_) | Untrusted::AuthorityNotYetValid(_) => "compare the clocks",
        Untrusted::TooMany => "it should send only its own and the intermediates up to a CA",
        _ => "",
    }
}

const fn of_signature(why: NotVerified) -> &'static str {
    match why {
        NotVerified::OtherHashes(_) => {
            "issue our certificate for a kind of key that it supports, or use a `psk`"
        }
        NotVerified::NoHashes(_) => {
            "issue our certificate for an ECDSA P-256 or P-384 key, or use a `psk`"
        }
    }
}

const fn of_ppk(why: &BadPpk) -> &'static str {
    match why {
        BadPpk::Missing => "set the same `ppk` there, or `required = false` in `ppk` here",
        BadPpk::Unknown(_) => "set the same `ppk` at both ends",
        BadPpk::Wrong => {
            "put the same key into the file of `ppk` at both ends, and compare `psk`, `pubkey` or `cert`"
        }
        BadPpk::Unnamed => "",
    }
}

fn of_mode(why: BadMode) -> Advice {
    let advice = match why {
        BadMode::Translated => "set `mode = \"tunnel\"` or `mode = \"beet\"` at both ends",
        BadMode::NotOutside { .. } => {
            "set these in `local` and `remote` at both ends; with a NAT between them, set `mode = \"tunnel\"` or `mode = \"beet\"`"
        }
        BadMode::NotOnePair(_) => "set one in `local` and one in `remote`, at both ends",
        BadMode::NotTheFront(..) => "set a layout that begins with `headers`, at both ends",
        BadMode::NotUnderstood => "set `mode = \"tunnel\"` at both ends",
        BadMode::Declined(mode) => {
            return format!("set `mode = \"{mode}\"` there, or `mode = \"tunnel\"` here").into();
        }
        BadMode::Differs { .. } => "set the same `mode` at both ends",
        BadMode::Both => "",
    };
    advice.into()
}

/// Returns advice about an offer to license these nodes.
const fn of_offer(nodes: &[Identity]) -> &'static str {
    match nodes {
        [_] => "set the same licence, with `at`, at both ends",
        _ => "set the same licences, with `at` and `holders`, at both ends",
    }
}

/// Returns advice about an error notify.
const fn of_notify(notify: NotifyType) -> &'static str {
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
            "the peer does not accept us at that address: see its log; remove our `address` there, or list it in `remote` for transport mode"
        }
        NotifyType::UNEXPECTED_NAT_DETECTED => {
            "a NAT translates our address: allow NATs (`nat`), or find the device that translates"
        }
        _ => "the peer's log may say more",
    }
}

/// Returns advice about a refused child SA.
const fn of_child(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::NO_ADDITIONAL_SAS => {
            "all tunnels that are configured there exist already, or one of them carries the same traffic"
        }
        notify => of_notify(notify),
    }
}

/// Returns advice about a refused rekey.
const fn of_rekey(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::NO_PROPOSAL_CHOSEN => {
            "nothing in common: compare `suite`, `groups` and, for a tunnel, `pfs` at both ends, and `kem` if set"
        }
        NotifyType::INVALID_KE_PAYLOAD => {
            "the peer wants a group that is not in `groups` here: add one that both ends support, or for a tunnel set `pfs = false`"
        }
        notify => of_child(notify),
    }
}

/// Returns advice about a refused clone.
const fn of_clone(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::TEMPORARY_FAILURE => "the peer was busy: try again",
        NotifyType::NO_ADDITIONAL_SAS => "the peer accepts no more IKE SAs: wait until one is gone",
        notify => of_notify(notify),
    }
}

const fn of_grant(why: GrantRefusal) -> &'static str {
    match why {
        GrantRefusal::Code(code) => of_grant_code(code),
        GrantRefusal::Notify(_)
        | GrantRefusal::NoAnswer
        | GrantRefusal::NotEstablished
        | GrantRefusal::NotLicensed => "",
    }
}

const fn of_grant_code(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::NOT_A_LICENSED_NODE | RefusalCode::NOT_THE_GATEWAY => {
            "add a [gateway.NAME] with our `id` there"
        }
        RefusalCode::TOO_MANY_GRANTS => "the node holds as many grants as it can",
        _ => "both ends should run the same release",
    }
}

const fn of_keys(why: KeyRefusal) -> &'static str {
    match why {
        KeyRefusal::Code(code) => of_key_code(code),
        KeyRefusal::Notify(_)
        | KeyRefusal::NoAnswer
        | KeyRefusal::NotANeighbour
        | KeyRefusal::TooMany => "",
    }
}

const fn of_key_code(code: RefusalCode) -> &'static str {
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

const fn of_no_keys(why: NoKeys) -> &'static str {
    match why {
        NoKeys::Stale => "compare both",
        NoKeys::Unknown
        | NoKeys::Wrong
        | NoKeys::NoClock
        | NoKeys::Used
        | NoKeys::NotLicensed
        | NoKeys::Busy => "",
    }
}

/// Returns advice about a certificate of ours that the peer refused.
const fn of_our_certificate(why: Option<CertificateRefusal>) -> &'static str {
    match why {
        Some(
            CertificateRefusal::EXPIRED
            | CertificateRefusal::WRONG_NAME
            | CertificateRefusal::WRONG_USAGE,
        ) => "issue a new one",
        Some(CertificateRefusal::UNSUPPORTED) => {
            "`strata check` names the part, if `ca` has its CA; issue a new one without it"
        }
        Some(CertificateRefusal::WRONG_UNIT) => {
            "issue a new one with that unit, or change `ou` there"
        }
        Some(CertificateRefusal::NOT_YET_VALID) => "compare the clocks",
        Some(CertificateRefusal::UNKNOWN_AUTHORITY) => {
            "add it to `ca` there, and the intermediates to our `cert`"
        }
        Some(CertificateRefusal::WRONG_SIGNATURE) => "check that `key` belongs to `cert`",
        Some(CertificateRefusal::REVOKED) => "issue a new one, with a new key",
        Some(CertificateRefusal::REVOCATION_UNKNOWN) => {
            "put the newest revocation list of our CA into `crl` there"
        }
        Some(_) | None => "see the peer's log",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn identity(name: &str) -> Identity {
        name.parse().expect("any text is an identity")
    }

    fn down(why: DownReason) -> String {
        told(&why.into())
    }

    fn refused(why: Refusal) -> String {
        told(&why.into())
    }

    fn child_refused(notify: NotifyType) -> String {
        refused(Refusal::ChildRefused {
            name: Some("voice".to_owned()),
            notify,
        })
    }

    #[test]
    fn an_end_says_what_happened_and_what_to_change() {
        let to = SocketAddr::from(([203, 0, 113, 1], 443));
        for (why, text) in [
            (DownReason::ClosedByPeer, "the peer closed the IKE SA"),
            (
                DownReason::WrongKey,
                "the pre-shared key of the peer does not match ours: compare `psk` at both ends",
            ),
            (
                DownReason::NotConnected { to },
                "no TCP connection to 203.0.113.1:443: check that the peer runs there with \
                 `tcp = 443` in its [listen], and that firewalls pass that port",
            ),
            (
                DownReason::Refused {
                    notify: NotifyType::NO_PROPOSAL_CHOSEN,
                },
                "the peer refused our first message: NO_PROPOSAL_CHOSEN; nothing in common: \
                 compare `suite` and `groups` at both ends, and `kem` and `mode` if set",
            ),
            (
                DownReason::ChildRefused {
                    notify: NotifyType::TEMPORARY_FAILURE,
                },
                "the peer refused the tunnel: TEMPORARY_FAILURE; the tunnel was taken down \
                 there: run `strata up` there to accept us again",
            ),
            (
                DownReason::CertificateRefused {
                    ours: identity("a.example"),
                    why: Some(CertificateRefusal::NOT_YET_VALID),
                },
                "the peer refused our certificate for a.example (AUTHENTICATION_FAILED): the \
                 certificate is not valid yet there; compare the clocks",
            ),
        ] {
            assert_eq!(down(why), text);
        }
    }

    #[test]
    fn a_notify_says_what_differs() {
        for (notify, says) in [
            (NotifyType::TS_UNACCEPTABLE, "compare `local` and `remote`"),
            (NotifyType::INTERNAL_ADDRESS_FAILURE, "no free address"),
            (NotifyType::FAILED_CP_REQUIRED, "\"dynamic\""),
            (NotifyType::ZONES_REQUIRED, "zones are required there"),
            (
                NotifyType::OFFER_REFUSED,
                "no licence there names that node",
            ),
            (NotifyType::OFFER_REFUSED, "the same `holders`"),
            (NotifyType::NO_PROPOSAL_CHOSEN, "`mode`"),
            (
                NotifyType::UNEXPECTED_NAT_DETECTED,
                "a NAT translates our address",
            ),
            (NotifyType::NO_ADDITIONAL_SAS, "the same traffic"),
            (NotifyType(16_000), "the peer's log"),
        ] {
            let text = child_refused(notify);
            assert!(text.contains("`voice`: "), "{text}");
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_change() {
        let pool = "office".to_owned();
        let address = std::net::IpAddr::from([192, 0, 2, 7]);
        let unplaced = |why: fn(std::net::IpAddr) -> Unplaced| Refusal::Unplaced(why(address));
        let nodes = |names: &[&str]| {
            Refusal::OfferRefused(names.iter().map(|name| identity(name)).collect())
        };
        let kems = vec![Some(Kem::MlKem768)];
        let no_proposal = |kems| Refusal::NoIkeProposal {
            suites: Vec::new(),
            groups: Vec::new(),
            kems,
        };
        for (why, says) in [
            (Refusal::ExchangeRefused, "`pfs = false`"),
            (
                Refusal::RekeyRefused(NotifyType::NO_PROPOSAL_CHOSEN),
                "; nothing in common: compare `suite`, `groups` and, for a tunnel, `pfs`",
            ),
            (
                Refusal::CloneRefused(NotifyType::TEMPORARY_FAILURE),
                "the peer was busy: try again",
            ),
            (Refusal::CloneNotAgreed, "set `clone = true` at both ends"),
            (
                Refusal::NoEspProposal {
                    allowed: Vec::new(),
                    esn: false,
                },
                "compare `suite`, `groups` and `esn`",
            ),
            (Refusal::Unencrypted, "the same `unencrypted` at both ends"),
            (Refusal::Translated, "`nat`"),
            (
                unplaced(Unplaced::NotListed),
                "add it to `local` or `remote`",
            ),
            (unplaced(Unplaced::Bypassed), "[[policy]]"),
            (unplaced(Unplaced::Claimed), "in one peer's table alone"),
            (unplaced(Unplaced::Translated), "`mode = \"beet\"`"),
            (Refusal::AnotherChild, "add a [peer.NAME.child.NAME]"),
            (Refusal::LevelNotAgreed, "`integrity` under `level`"),
            (
                Refusal::NoAddressLeft { pool: pool.clone() },
                "[pool.office]",
            ),
            (Refusal::NoRequest { pool }, "local = [\"dynamic\"]"),
            (nodes(&["b.example"]), "same licence, with `at`"),
            (nodes(&["b.example", "c.example"]), "`holders`"),
            (no_proposal(kems), "and `kem`"),
            (
                BadMode::Differs {
                    ours: model::Mode::Tunnel,
                    theirs: model::Mode::Beet,
                }
                .into(),
                "`mode`",
            ),
        ] {
            let text = refused(why);
            assert!(text.contains(says), "{text}");
        }
        let optional = refused(no_proposal(vec![None]));
        assert!(optional.ends_with("at both ends"), "{optional}");
    }

    #[test]
    fn the_advice_about_a_reason_within_another_is_kept() {
        let psk = "compare `psk` at both ends";
        let inner = || Box::new(DownReason::WrongKey);
        for why in [
            Refusal::UnprovedLack(inner()),
            Refusal::NotReauthenticated(inner()),
            Refusal::NotHandedOver(inner()),
            Refusal::RedirectNotFollowed(inner()),
            Refusal::ChildFailed {
                name: None,
                why: inner(),
            },
        ] {
            let text = refused(why);
            assert!(text.contains("does not match ours"), "{text}");
            assert!(text.ends_with(psk), "{text}");
        }
        let proof = Refusal::BadProof {
            claimed: identity("a.example"),
            why: BadProof::OldRsa,
        };
        let text = refused(proof);
        assert!(
            text.ends_with("; issue its certificate for an ECDSA P-256 or P-384 key"),
            "{text}"
        );
    }

    #[test]
    fn names_that_are_not_found_say_what_to_change() {
        let server = std::net::IpAddr::from([192, 0, 2, 53]);
        for (why, says) in [
            (NotFound::NoServer, "`resolve_via` of [tunnel]"),
            (
                NotFound::NoAnswer {
                    servers: vec![server],
                },
                "192.0.2.53: check the network",
            ),
            (NotFound::NoSuchName { server }, "correct `address`"),
            (
                NotFound::NotListed {
                    addresses: vec![server],
                },
                "add it to `redirect`",
            ),
            (
                NotFound::Inside {
                    addresses: vec![server],
                },
                "[[policy]]",
            ),
        ] {
            let name = "gw.example.net".to_owned();
            let text = told(&Cause::Name {
                name,
                why: why.clone(),
            });
            assert!(text.starts_with("cannot find gw.example.net: "), "{text}");
            assert!(text.replace(';', ":").contains(says), "{text}");
        }
    }

    #[test]
    fn licensed_nodes_say_what_to_change() {
        for (why, says) in [
            (
                GrantRefusal::Code(RefusalCode::TOO_MANY_GRANTS).into(),
                "as many grants as it can",
            ),
            (
                KeyRefusal::Code(RefusalCode::UNKNOWN_GRANT).into(),
                "no keys that it may hand on",
            ),
            (
                Cause::Visitor(NoKeys::Stale),
                "differs from ours; compare both",
            ),
            (
                Cause::UnknownHolder(identity("a.example")),
                "[neighbour.NAME]",
            ),
            (
                Cause::LeftOut {
                    node: identity("a.example"),
                    most: 2,
                },
                "raise `holders`",
            ),
        ] {
            let text = told(&why);
            assert!(text.contains(says), "{text}");
        }
    }
}
