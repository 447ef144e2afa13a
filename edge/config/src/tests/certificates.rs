//! Faults of `cert`, `key`, `ca`, `crl` and `pubkey`, and warnings before certificates and lists
//! end.

use super::Folder;
use crate::{Warning, expiry};
use crypto::{Revocation, UnixTime};
use std::path::Path;

/// Returns a folder with the certificates that openssl made for the tests of `ike`; only the owner
/// can read the keys.
pub(super) fn folder() -> Folder {
    let folder = Folder::new();
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pure/ike/src/tests/certificates");
    for name in ["ca.pem", "gateway.pem", "gateway.key", "thief.key"] {
        folder.key(name, &std::fs::read(made.join(name)).unwrap(), 0o600);
    }
    folder
}

fn text(lines: &str) -> String {
    format!(
        "[node]\nid = \"gateway.example.net\"\n{lines}\n[peer.alice]\nid = \"alice@example.net\"\n\
         local = [\"10.8.0.0/16\"]\nremote = [\"10.1.0.2/32\"]\n"
    )
}

fn only_fault(folder: &Folder, lines: &str) -> String {
    let lines = folder.lines(&text(lines));
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.into_iter().next().unwrap()
}

const GOOD: &str = "cert = \"gateway.pem\"\nkey = \"gateway.key\"\nca = [\"ca.pem\"]";

#[test]
fn certificates_stand_in_for_a_psk() {
    let config = folder().load(&text(GOOD)).unwrap();
    assert!(config.credential.is_some() && config.peers[0].party.psk.is_none());
    let fault = only_fault(&folder(), "");
    assert!(fault.contains("`psk` is missing") && fault.contains("`cert`, `key` and `ca`"));
}

#[test]
fn a_certificate_and_its_key_belong_together() {
    let folder = folder();
    let fault = only_fault(&folder, &GOOD.replace("gateway.key", "thief.key"));
    assert!(fault.contains("not for the key in `key`"), "{fault}");
    let fault = only_fault(&folder, &GOOD.replace("key = \"gateway.key\"\n", ""));
    assert!(fault.contains("`cert` has no private key"), "{fault}");
    let faults = folder.lines(&text(&GOOD.replace("cert = \"gateway.pem\"\n", "")));
    let alone = |fault: &String| fault.contains("`key` has no certificate");
    assert!(faults.iter().any(alone), "{faults:#?}");
}

#[test]
fn a_key_that_others_can_read_is_refused_and_never_shown() {
    let folder = folder();
    let key = std::fs::read(folder.path().join("gateway.key")).unwrap();
    folder.key("gateway.key", &key, 0o644);
    let fault = only_fault(&folder, GOOD);
    assert!(fault.contains("mode 0644"), "{fault}");
    let written = folder.faults(&text(&GOOD.replace("gateway.key", "MC4CAQAwBQYDK2Vw")));
    let shown = written.to_string();
    assert!(!shown.contains("MC4CAQAwBQYDK2Vw"), "{shown}");
}

#[test]
fn a_file_without_what_it_should_hold_is_told() {
    let folder = folder();
    for (key, wrong, problem) in [
        (
            "gateway.pem",
            "gateway.key",
            "there is no X.509 certificate",
        ),
        ("gateway.key", "ca.pem", "is not a PEM private key"),
        ("ca.pem", "gateway.pem", "is not the certificate of a CA"),
        ("ca.pem", "none.pem", "cannot read"),
    ] {
        let fault = only_fault(&folder, &GOOD.replace(key, wrong));
        assert!(fault.contains(problem), "{fault}");
    }
}

#[test]
fn an_id_that_the_certificate_does_not_name_is_refused() {
    let text = text(GOOD).replace("gateway.example.net", "www.example.net");
    let faults = folder().lines(&text);
    assert!(faults[0].contains("www.example.net is not a subjectAltName"));
}

#[test]
fn an_id_may_be_spelled_in_other_letters_than_in_the_certificate() {
    let text = text(GOOD).replace("gateway.example.net", "Gateway.Example.NET");
    assert!(folder().load(&text).is_ok());
}

#[test]
fn the_end_of_a_certificate_is_told_two_weeks_before() {
    let config = folder().load(&text(GOOD)).unwrap();
    let end = config.certificates().next().unwrap().not_after;
    let warnings = |before: u64| expiry(config.certificates(), &[], UnixTime(end.0 - before));
    let day = 86_400;
    assert_eq!(warnings(14 * day), []);
    let soon = warnings(14 * day - 1);
    assert!(matches!(soon[..], [Warning::Expires { days: 13, .. }, _]));
    let past = expiry(config.certificates(), &[], UnixTime(end.0 + 1));
    assert!(matches!(past[0], Warning::Expired { .. }));
}

/// Peers refuse such a certificate, which is the first that a host with a slow clock notices.
#[test]
fn a_certificate_of_the_future_is_told_from_one_that_has_ended() {
    let config = folder().load(&text(GOOD)).unwrap();
    let start = config.certificates().next().unwrap().not_before;
    let at = |today| expiry(config.certificates().take(1), &[], UnixTime(today));
    assert_eq!(at(start.0), []);
    let [told @ Warning::NotYetValid { subject, .. }] = &at(start.0 - 1)[..] else {
        panic!("one: {:?}", at(start.0 - 1));
    };
    assert_eq!(subject, "CN=gateway");
    let text = told.to_string();
    for words in [&format!("valid only from {start}"), "`date --utc`", "clock"] {
        assert!(text.contains(words), "{text}");
    }
    assert!(!text.contains("EXPIRED"), "{text}");
}

/// Returns a revocation list that openssl made for the tests of `ike`.
pub(super) fn list(name: &str) -> Vec<u8> {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pure/ike/src/tests/revocation");
    std::fs::read(made.join(name)).expect("openssl made it")
}

/// Returns the same folder with revocation lists.
fn with_lists(names: &[&str]) -> Folder {
    let folder = folder();
    for name in names {
        folder.key(name, &list(name), 0o644);
    }
    folder
}

const LISTS: &str = "crl = [\"mobile.crl\", \"ended.crl\"]";

#[test]
fn revocation_lists_are_read_and_relaxed_is_how() {
    let folder = with_lists(&["mobile.crl", "ended.crl"]);
    let config = folder.load(&text(&format!("{GOOD}\n{LISTS}"))).unwrap();
    let issuers: Vec<_> = config.lists.iter().map(|list| &list.issuer).collect();
    assert_eq!(issuers, ["CN=List CA", "CN=List CA"]);
    assert_eq!(config.revocation, Revocation::Relaxed);
    let strict = format!("{GOOD}\ncrl = \"mobile.crl\"\nrevocation = \"strict\"");
    let config = folder.load(&text(&strict)).unwrap();
    assert_eq!(
        (config.lists.len(), config.revocation),
        (1, Revocation::Strict)
    );
}

#[test]
fn what_is_no_list_or_is_not_enough_is_told() {
    let folder = with_lists(&["first-version.crl"]);
    for (lines, problem, fix) in [
        ("crl = [\"none.crl\"]", "cannot read", "name a PEM file"),
        (
            "crl = [\"ca.pem\"]",
            "not a version 2 revocation list",
            "X509 CRL",
        ),
        (
            "crl = [\"first-version.crl\"]",
            "not a version 2 revocation list",
            "name a PEM file",
        ),
        ("revocation = \"strict\"", "without `crl`", "strata pki crl"),
        ("revocation = \"strikt\"", "is not known", "`strict`"),
    ] {
        let fault = only_fault(&folder, &format!("{GOOD}\n{lines}"));
        assert!(fault.contains(problem) && fault.contains(fix), "{fault}");
    }
}

#[test]
fn the_end_of_a_list_is_told_a_day_before() {
    let folder = with_lists(&["mobile.crl", "ended.crl"]);
    let config = folder.load(&text(&format!("{GOOD}\n{LISTS}"))).unwrap();
    let [long, short] = &config.lists[..] else {
        panic!("two lists, not {:?}", config.lists);
    };
    let told = |today: u64| {
        let warnings = expiry([], &config.lists, UnixTime(today)).into_iter();
        let texts = warnings.map(|warning| warning.to_string());
        texts.collect::<Vec<_>>()
    };
    let (day, end) = (86_400, short.next_update.0);
    assert!(told(end - day).is_empty());
    assert!(told(end - day + 1)[0].contains("`CN=List CA` expires on 2030-03-01"));
    assert!(told(end)[0].contains("EXPIRED on 2030-03-01"));
    assert_eq!(told(long.next_update.0).len(), 2);
}

#[test]
fn a_certificate_of_ours_that_our_own_list_revokes_is_warned_of() {
    let folder = with_lists(&["mobile.crl", "gateway.crl"]);
    for name in ["ca.pem", "gateway.pem", "gateway.key"] {
        folder.key(name, &list(name), 0o600);
    }
    let warnings = |name: &str| {
        let lines = format!("{GOOD}\ncrl = [\"{name}\"]");
        folder.load(&text(&lines)).unwrap().warnings
    };
    assert_eq!(warnings("mobile.crl"), []);
    let [Warning::Revoked { subject, .. }] = &warnings("gateway.crl")[..] else {
        panic!("one: {:?}", warnings("gateway.crl"));
    };
    assert_eq!(subject, "CN=gateway");
}

/// Returns the folder with public keys.
fn with_keys() -> Folder {
    let folder = folder();
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/certificates");
    for name in ["first.pub", "second.pub", "first.key"] {
        let octets = std::fs::read(made.join(name)).expect("openssl made it");
        folder.key(name, &octets, 0o600);
    }
    folder
}

/// Returns the same configuration with a line in the peer's table.
fn about_alice(lines: &str, line: &str) -> String {
    text(lines).replace("[peer.alice]", &format!("[peer.alice]\n{line}"))
}

const PUBKEY: &str = "pubkey = \"second.pub\"";

#[test]
fn a_public_key_stands_in_for_a_psk_and_our_key_for_a_certificate() {
    let folder = with_keys();
    let text = about_alice("key = \"first.key\"", PUBKEY);
    let config = folder.load(&text).unwrap();
    let own = config.credential.expect("there is a key");
    let peers = config.peers[0].party.pubkey.as_ref();
    assert!(own.chain.is_empty() && peers.is_some_and(|key| &**key != own.key.raw()));
    // Our export of the key equals openssl's.
    let first = std::fs::read(folder.path().join("first.pub")).unwrap();
    assert_eq!(own.key.raw(), &crypto::RawKey::from_pem(&first).unwrap());
    assert!(folder.load(&about_alice(GOOD, PUBKEY)).is_ok());
}

#[test]
fn what_is_no_public_key_or_leads_to_none_of_ours_is_told() {
    let folder = with_keys();
    let own = "key = \"first.key\"";
    for (lines, line, problem, fix) in [
        ("", PUBKEY, "[node] has none", "strata pki key"),
        (
            own,
            "pubkey = \"none.pub\"",
            "cannot read",
            "name a PEM file",
        ),
        (
            own,
            "pubkey = \"gateway.pem\"",
            "no public key",
            "strata pki pubkey",
        ),
        (
            own,
            "pubkey = \"first.key\"",
            "no public key",
            "strata pki pubkey",
        ),
        (
            own,
            "psk = \"alice.psk\"\npubkey = \"second.pub\"",
            "`psk` and `pubkey` are both set",
            "remove",
        ),
    ] {
        let faults = folder.lines(&about_alice(lines, line));
        assert_eq!(faults.len(), 1, "{faults:#?}");
        assert!(faults[0].contains(problem), "{faults:#?}");
        assert!(faults[0].contains(fix), "{faults:#?}");
    }
}
