//! Traffic of interfaces.

use super::{Folder, OFFICE};

const VOICE: &str = r#"{ interface = "wwan0", remote = ["10.8.0.0/16 udp 5060-5061"] }"#;

fn with(paths: &str, entries: &str) -> String {
    format!("{OFFICE}{paths}\ntraffic = [{entries}]\n")
}

#[test]
fn an_interface_has_traffic_in_the_syntax_of_remote() {
    let bulk = r#"{ interface = "wlan0", remote = ["10.8.2.0/24 tcp", "10.8.3.0/24 tcp 80"] }"#;
    let text = with("paths = 2", &format!("{VOICE}, {bulk}"));
    let config = Folder::new().load(&text).unwrap();
    let shown: Vec<_> = config.peers[0]
        .traffic
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        shown,
        [
            "wwan0: 10.8.0.0/16 protocol 17 ports 5060-5061",
            "wlan0: 10.8.2.0/24 protocol 6, 10.8.3.0/24 protocol 6 ports 80-80",
        ]
    );
    let none = Folder::new().load(&with("", "")).unwrap();
    assert!(none.peers[0].traffic.is_empty());
}

// Refuses: path-traffic
#[test]
fn what_cannot_work_is_refused_with_what_to_change() {
    let entry = |interface: &str, remote: &str| {
        format!("{{ interface = \"{interface}\", remote = [{remote}] }}")
    };
    let voice = |other: String| format!("{VOICE}, {other}");
    let many = ["a0", "a1", "a2", "a3", "a4"];
    let many = many.iter().enumerate();
    let many = many.map(|(n, name)| entry(name, &format!("\"10.8.{n}.0/24\"")));
    let many: Vec<_> = many.collect();
    let (three, many) = (many[..3].join(", "), many.join(", "));
    let cases = [
        ("", VOICE.to_owned(), "add `paths = 2`"),
        ("paths = 1", VOICE.to_owned(), "add `paths = 2`"),
        (
            "paths = 2",
            entry("wwan0", "\"10.9.0.0/16\""),
            "10.9.0.0/16 is not in `remote`",
        ),
        (
            "paths = 2",
            entry("wwan0", "\"10.0.0.0/8\""),
            "10.0.0.0/8 is not in `remote`",
        ),
        (
            "paths = 2",
            voice(entry("wlan0", "\"10.8.7.0/24\"")),
            "10.8.7.0/24 protocol 17 ports 5060-5061 is also traffic of wwan0",
        ),
        (
            "paths = 2",
            voice(entry("wwan0", "\"10.8.7.0/24 tcp\"")),
            "wwan0 is listed twice",
        ),
        (
            "paths = 2",
            entry("strata0", "\"10.8.7.0/24\""),
            "the tunnels themselves",
        ),
        (
            "paths = 2",
            entry("a/b", "\"10.8.7.0/24\""),
            "cannot be a device's name",
        ),
        ("paths = 2", entry("wwan0", ""), "names no prefix"),
        (
            "paths = 2",
            "{ interface = \"wwan0\" }".to_owned(),
            "`remote` is missing",
        ),
        ("paths = 4", many, "5 interfaces, but 4 paths at a time"),
        ("paths = 2", three.clone(), "raise `paths` at both ends"),
        (
            "paths = 2\nzones = \"require\"\nlicences = [{ node = \"fa.example.net\", \
             zones = [\"headers\"], right = \"read\" }]",
            VOICE.to_owned(),
            "a licensed node is on one path",
        ),
    ];
    for (paths, entries, words) in cases {
        let faults = Folder::new().lines(&with(paths, &entries));
        assert_eq!(faults.len(), 1, "{paths} {entries}: {faults:#?}");
        let told = faults[0].contains(words) && faults[0].contains("peer.office.traffic");
        assert!(told, "{entries}: {faults:#?}");
    }
    // Each path may have a rule: all else is then shared among them.
    assert!(Folder::new().load(&with("paths = 3", &three)).is_ok());
    let waiting = with("paths = 2", VOICE).replace("address = \"192.0.2.1\"\n", "");
    let faults = Folder::new().lines(&waiting);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(
        faults[0].contains("write `traffic` at the other end"),
        "{faults:#?}"
    );
}
