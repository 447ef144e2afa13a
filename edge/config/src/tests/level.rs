//! Packets that may go without encryption.

use super::{Folder, OFFICE};
use crate::LevelPolicy;
use model::{Class, LevelGrant, Pictures, Span};

fn with(zones: &str, lines: &str) -> String {
    format!("{OFFICE}zones = \"{zones}\"\n{lines}")
}

fn levels(lines: &str) -> LevelPolicy {
    Folder::new()
        .load(&with("require", lines))
        .unwrap()
        .peers
        .remove(0)
        .levels
}

/// Returns the only fault of a class, with its fix.
fn fault(class: &str) -> String {
    let lines = format!("[peer.office.level]\nintegrity = {{ {class} }}\n");
    let faults = Folder::new().lines(&with("require", &lines));
    assert_eq!(faults.len(), 1, "{faults:#?}");
    faults.into_iter().next().unwrap()
}

#[test]
fn without_a_word_everything_is_encrypted() {
    assert_eq!(levels(""), LevelPolicy::default());
    assert_eq!(levels("").integrity, None);
}

#[test]
fn a_class_is_named_and_bounded() {
    let integrity = "integrity = { protocol = \"udp\", ports = \"5004-5005\", dscp = \"af41\", \
                     rtp = \"unmarked\", mpeg = \"PB\", packets = 1000, seconds = 60, renewals = 2 }";
    let read = levels(&format!("[peer.office.level]\n{integrity}\nevery = 5\n"));
    let expected = LevelGrant {
        class: Class {
            protocol: Some(17),
            ports: Span::new(5004, 5005),
            dscp: Some(34),
            marker: Some(false),
            pictures: Pictures::from_letters("PB"),
        },
        packets: 1000,
        seconds: 60,
        renewals: 2,
    };
    assert_eq!((read.integrity, read.every), (Some(expected), 5));
    let short = "[peer.office.level]\nintegrity = { ports = \"53\", packets = 1, seconds = 1 }\n";
    let short = levels(short).integrity.unwrap();
    assert_eq!((short.class.ports, short.renewals), (Span::new(53, 53), 0));
}

// Refuses: dynamic-levels
#[test]
fn what_is_not_named_or_not_bounded_is_refused_with_the_fix() {
    for (class, words) in [
        ("packets = 1, seconds = 1", "add `ports`"),
        (
            "protocol = \"udp\", rtp = \"marked\", packets = 1, seconds = 1",
            "add `ports`",
        ),
        ("ports = \"1-2\", seconds = 1", "packets"),
        ("ports = \"1-2\", packets = 1", "seconds"),
        ("ports = \"1-2\", packets = 0, seconds = 1", "1"),
        ("ports = \"2-1\", packets = 1, seconds = 1", "5004-5005"),
        ("ports = \"http\", packets = 1, seconds = 1", "5004"),
        ("dscp = \"af44\", packets = 1, seconds = 1", "af43"),
        ("dscp = 64, packets = 1, seconds = 1", "63"),
        (
            "ports = \"1-2\", mpeg = \"X\", packets = 1, seconds = 1",
            "I, P, B and D",
        ),
    ] {
        let fault = fault(class);
        assert!(fault.contains(words), "{class}: {fault}");
    }
}

// Refuses: link-levels
#[test]
fn how_good_a_link_has_to_be_is_a_share_of_its_packets() {
    let table = |share: &str| format!("[peer.office.level]\nopaque_below = \"{share}\"\n");
    for (share, expected) in [("1%", 100), ("0.01%", 1), ("0.5%", 50), ("12.34%", 1234)] {
        let read = levels(&table(share));
        assert_eq!((read.opaque_below, read.integrity), (expected, None));
    }
    for share in [
        "1",
        "%",
        "0%",
        "0.001%",
        "50.01%",
        "-1%",
        "1.%%",
        "1,5%",
        "99999999%",
    ] {
        let faults = Folder::new().lines(&with("require", &table(share)));
        assert_eq!(faults.len(), 1, "{share}: {faults:#?}");
        assert!(faults[0].contains("write it like \"1%\""), "{faults:#?}");
    }
}

#[test]
fn without_zones_there_are_no_levels() {
    let lines = "[peer.office.level]\nintegrity = { ports = \"53\", packets = 1, seconds = 1 }\n";
    let faults = Folder::new().lines(&with("refuse", lines));
    assert!(faults[0].contains("add `zones = "), "{faults:?}");
    let misspelt = lines.replace("seconds", "minutes");
    assert!(!Folder::new().lines(&with("require", &misspelt)).is_empty());
    let unknown = format!("{lines}often = 3\n");
    assert!(!Folder::new().lines(&with("require", &unknown)).is_empty());
}

#[test]
fn a_class_of_service_is_no_class_where_it_stays_behind() {
    let class = "integrity = { dscp = \"af41\", packets = 1, seconds = 1 }";
    let child = "[peer.office.child.voice]\nlocal = [\"10.1.0.2/32\"]\nremote = [\"10.9.0.1/32\"]\nmode = \"beet\"\n";
    let text = format!("[peer.office.level]\n{class}\n{child}");
    let faults = Folder::new().lines(&with("require", &text));
    assert_eq!(faults.len(), 1, "{faults:#?}");
    for words in ["in beet mode", "by `ports` or `protocol`"] {
        assert!(faults[0].contains(words), "{faults:#?}");
    }
    let ports = text.replace("dscp = \"af41\"", "ports = \"5004\"");
    assert!(Folder::new().load(&with("require", &ports)).is_ok());
}
