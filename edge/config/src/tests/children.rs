//! Additional tunnels of a peer.

use super::Folder;
use crate::{Config, Start};
use std::time::Duration;

const MOBILE: &str = r#"[node]
id = "alice@example.net"
[peer.office]
address = "192.0.2.1"
id = "gw.example.net"
psk = "office.psk"
local = ["10.1.0.2/32"]
remote = ["10.8.0.0/16"]
rekey = "20m"
[peer.office.child.voice]
remote = ["10.9.0.0/16"]
"#;

fn load(text: &str) -> Config {
    Folder::new().load(text).unwrap()
}

/// Returns the only fault of the file with more lines below.
fn fault(more: &str) -> String {
    let lines = Folder::new().lines(&format!("{MOBILE}{more}"));
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.into_iter().next().unwrap()
}

#[test]
fn what_a_child_leaves_out_is_as_its_peer_has_it() {
    let config = load(MOBILE);
    let peer = &config.peers[0];
    let voice = &peer.children[0];
    assert_eq!(
        (voice.name.as_str(), &voice.local[..]),
        ("voice", &peer.local[..])
    );
    assert_eq!(voice.remote[0].to_string(), "10.9.0.0/16");
    let twenty = Duration::from_secs(1200);
    assert_eq!((voice.rekey, voice.pfs), (twenty, true));
    assert_eq!(voice.start, Start::Auto);
    let all: Vec<_> = peer.all_remote().map(ToString::to_string).collect();
    assert_eq!(all, ["10.8.0.0/16", "10.9.0.0/16"]);
}

// Refuses: children
#[test]
fn two_tunnels_that_carry_the_same_are_a_fault() {
    let video = "[peer.office.child.video]\nlocal = [\"10.1.0.0/24\"]\n";
    let fault = fault(video);
    assert!(
        fault.contains("[peer.office] also carries 10.1.0.2/32 <-> 10.8.0.0/16,"),
        "{fault}"
    );
    let other = video.replace("local", "remote = [\"10.9.7.0/24\"]\nlocal");
    let lines = Folder::new().lines(&format!("{MOBILE}{other}"));
    assert!(
        lines[0].contains("[peer.office.child.video] also carries 10.1.0.2/32 <-> 10.9.7.0/24,"),
        "{lines:?}"
    );
}

// Refuses: children
#[test]
fn a_child_says_what_it_carries() {
    let fault = fault("[peer.office.child.video]\nstart = \"manual\"\n");
    assert!(
        fault.contains("this tunnel carries nothing of its own"),
        "{fault}"
    );
}

#[test]
fn an_address_that_is_lent_is_lent_for_all_tunnels() {
    let lent = MOBILE.replace("[\"10.1.0.2/32\"]", "[\"dynamic\"]");
    let voice = &load(&lent).peers[0].children[0];
    assert_eq!(voice.local[0].to_string(), "0.0.0.0/0");
    let own = format!("{lent}local = [\"10.1.0.3/32\"]\n");
    let lines = Folder::new().lines(&own);
    assert!(
        lines[0].contains("the address that the peer assigns us"),
        "{lines:?}"
    );
}

#[test]
fn an_unknown_key_of_a_child_is_told_with_its_place() {
    let lines = Folder::new().lines(&format!("{MOBILE}zones = \"require\"\n"));
    assert!(
        lines[0].starts_with("12:1 peer.office.child.voice.zones | unknown key"),
        "{lines:?}"
    );
}

#[test]
fn more_than_sixteen_are_too_many() {
    let more = (0..16).map(|n| {
        format!(
            "[peer.office.child.n{n}]\nremote = [\"10.{}.0.0/16\"]\n",
            n + 20
        )
    });
    let lines = Folder::new().lines(&format!("{MOBILE}{}", more.collect::<String>()));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("more than 16 tunnels"), "{lines:?}");
}
