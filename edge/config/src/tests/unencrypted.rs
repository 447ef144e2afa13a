//! Tunnels without encryption.

use super::{Folder, OFFICE};
use crate::{Config, Warning, today};
use crypto::UnixTime;
use model::{EspSuite, Sha2};

/// A day in the past, and one in the future.
const PAST: &str = "2026-01-31";
const FUTURE: fn() -> String = || UnixTime(today().0 + 86_400).rfc3339();

fn load(lines: &str) -> Config {
    Folder::new().load(&format!("{OFFICE}{lines}\n")).unwrap()
}

fn line(suite: &str, until: &str) -> String {
    format!("unencrypted = {{ suite = {suite}, until = {until} }}")
}

/// Returns the only fault of these lines.
fn fault(lines: &str) -> String {
    let faults = Folder::new().lines(&format!("{OFFICE}{lines}\n"));
    assert_eq!(faults.len(), 1, "{faults:#?}");
    faults.into_iter().next().unwrap()
}

#[test]
fn without_a_word_every_tunnel_is_encrypted() {
    let config = load("suite = \"legacy\"");
    assert_eq!(config.peers[0].unencrypted, None);
    assert!(config.warnings.is_empty());
}

#[test]
fn suites_and_times_are_as_they_are_written() {
    let null = EspSuite::Null(Sha2::Sha256);
    let both = "[\"aes256gmac\", \"null-sha256\"]";
    for (suite, until, suites, second) in [
        ("\"null-sha256\"", PAST, vec![null], 0),
        (
            both,
            "2026-01-31T00:00:00Z",
            vec![EspSuite::Aes256Gmac, null],
            0,
        ),
        (
            both,
            "2026-01-31T18:30:05+02:00",
            vec![EspSuite::Aes256Gmac, null],
            59_405,
        ),
        (
            both,
            "2026-01-30 23:00:00-01:00",
            vec![EspSuite::Aes256Gmac, null],
            0,
        ),
    ] {
        let config = load(&line(suite, until));
        let unencrypted = config.peers[0].unencrypted.as_ref().unwrap();
        assert_eq!(unencrypted.suites, suites);
        let midnight = UnixTime::from_date(2026, 1, 31).0;
        assert_eq!(unencrypted.until, UnixTime(midnight + second), "{until}");
    }
}

#[test]
fn packets_are_as_they_are_written_and_otherwise_a_thousand_million() {
    for (more, packets) in [("", 1_000_000_000), (", packets = 5000", 5000)] {
        let line = line("\"null-sha256\"", &format!("{}{more}", FUTURE()));
        let config = load(&line);
        let unencrypted = config.peers[0].unencrypted.as_ref().unwrap();
        assert_eq!(unencrypted.packets, packets);
        let told = config.warnings[0].to_string();
        assert!(
            told.contains(&format!(" or for {packets} packets,")),
            "{told}"
        );
    }
}

// Refuses: unencrypted
#[test]
fn no_number_of_packets_is_refused() {
    for (packets, told) in [
        ("0", "4294967295"),
        ("-1", "4294967295"),
        ("4294967296", "4294967295"),
        ("\"many\"", "expected a number"),
        ("1.5", "expected a number"),
    ] {
        let until = format!("{PAST}, packets = {packets}");
        let fault = fault(&line("\"null-sha256\"", &until));
        assert!(fault.contains("peer.office.unencrypted.packets"), "{fault}");
        assert!(fault.contains(told), "{fault}");
    }
}

#[test]
fn a_tunnel_that_everybody_reads_is_warned_of_until_its_end_and_then_of_the_line() {
    let warnings = |until: &str| load(&line("\"aes128gmac\"", until)).warnings;
    let future = FUTURE();
    let [warning @ Warning::TunnelInClear { peer, .. }] = &warnings(&future)[..] else {
        panic!("{:?}", warnings(&future));
    };
    assert_eq!(peer, "office");
    let told = warning.to_string();
    assert!(told.starts_with("TUNNEL IN CLEAR: until 20"), "{told}");
    assert!(told.ends_with("`unencrypted` accepts aes128gmac"), "{told}");
    let [warning] = &warnings(PAST)[..] else {
        panic!("{:?}", warnings(PAST));
    };
    let told = "`unencrypted` of office ended on 2026-01-31 00:00 UTC, and its tunnel is \
                encrypted: remove it";
    assert_eq!(warning.to_string(), told);
}

// Refuses: unencrypted
#[test]
fn what_is_no_point_in_time_is_refused_with_one() {
    let year = UnixTime(today().0 + 400 * 86_400).rfc3339();
    for (until, told) in [
        (
            "\"2026-12-24\"",
            "without quotes, like 2026-12-24T18:00:00Z",
        ),
        ("18:00:00", "this time has no date"),
        ("2026-12-24T18:00:00", "this time has no zone"),
        ("8", "expected a point in time"),
        (year.as_str(), "more than a year ahead"),
    ] {
        let fault = fault(&line("\"null-sha256\"", until));
        assert!(fault.contains("peer.office.unencrypted.until"), "{fault}");
        assert!(fault.contains(told), "{fault}");
    }
}

/// A suite without encryption is never one among others.
// Refuses: unencrypted
#[test]
fn a_suite_that_does_not_encrypt_is_accepted_in_its_own_key_alone() {
    for (lines, told) in [
        ("suite = \"null-sha256\"", "`null-sha256` does not encrypt"),
        (
            "suite = [\"aes128gcm16\", \"aes128gmac\"]",
            "`aes128gmac` does not encrypt",
        ),
        (&line("\"aes128gcm16\"", PAST), "`aes128gcm16` is not known"),
        (&line("\"null\"", PAST), "`null` is not known"),
        ("unencrypted = { until = 2026-01-31 }", "`suite` is missing"),
        (
            "unencrypted = { suite = \"null-sha256\" }",
            "`until` is missing",
        ),
    ] {
        let fault = fault(lines);
        assert!(fault.contains(told), "{fault}");
    }
}

// Refuses: unencrypted
#[test]
fn beside_what_hides_and_for_many_it_is_refused_with_the_fix() {
    let line = line("\"null-sha256\"", PAST);
    for (lines, told) in [
        ("zones = \"accept\"", "`zones = \"refuse\"`"),
        ("zones = \"require\"", "`zones = \"refuse\"`"),
        ("tfc = \"mtu\"", "`tfc` hides the lengths"),
    ] {
        let fault = fault(&format!("{lines}\n{line}"));
        assert!(fault.contains("peer.office.unencrypted"), "{fault}");
        assert!(fault.contains(told), "{fault}");
    }
}

// Refuses: unencrypted
#[test]
fn a_table_for_many_users_does_not_accept_it() {
    let line = line("\"null-sha256\"", PAST);
    let text = format!(
        "[node]\nid = \"gateway.example.net\"\ncert = \"gateway.pem\"\nkey = \"gateway.key\"\n\
         ca = \"ca.pem\"\n[peer.staff]\nid = \"*@staff.example.net\"\n\
         local = [\"10.8.0.0/16\"]\npool = \"office\"\n{line}\n[pool.office]\n\
         addresses = [\"10.9.0.0/24\"]\n"
    );
    let folder = super::certificates::folder();
    let faults = folder.lines(&text);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(faults[0].contains("stands for many peers"), "{faults:#?}");
    assert!(folder.load(&text.replace("*@", "alice@")).is_ok());
}
