//! Faults of `cert`, `key` and `ca`, and warnings before certificates end.

use super::Folder;
use crate::{Warning, expiry};
use crypto::UnixTime;
use std::path::Path;

/// A folder with the certificates that openssl made for the tests of `ike`; keys are exposed to
/// nobody.
fn folder() -> Folder {
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
    assert!(fault.contains("a certificate without its key"), "{fault}");
    let faults = folder.lines(&text(&GOOD.replace("cert = \"gateway.pem\"\n", "")));
    let alone = |fault: &String| fault.contains("a key without its certificate");
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
        ("gateway.key", "ca.pem", "this is no private key"),
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
    assert!(faults[0].contains("www.example.net is not among its subjectAltNames"));
}

#[test]
fn the_end_of_a_certificate_is_told_two_weeks_before() {
    let config = folder().load(&text(GOOD)).unwrap();
    let end = config.certificates().next().unwrap().not_after;
    let warnings = |before: u64| expiry(config.certificates(), UnixTime(end.0 - before));
    let day = 86_400;
    assert_eq!(warnings(14 * day), []);
    let soon = warnings(14 * day - 1);
    assert!(matches!(soon[..], [Warning::Expires { days: 13, .. }, _]));
    let past = expiry(config.certificates(), UnixTime(end.0 + 1));
    assert!(matches!(past[0], Warning::Expired { .. }));
}
