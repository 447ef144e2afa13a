//! Transport and BEET mode.

use super::Folder;
use crate::{Config, Tfc};
use model::Mode;

const TRANSPORT: &str = r#"[node]
id = "alice@example.net"
[peer.office]
address = "192.0.2.1"
id = "gw.example.net"
psk = "office.psk"
local = ["192.0.2.7/32"]
remote = ["192.0.2.1/32"]
mode = "transport"
"#;

fn load(text: &str) -> Config {
    Folder::new().load(text).unwrap()
}

/// Returns the only fault of the file after a replacement.
fn fault(this: &str, instead_of: &str) -> String {
    let lines = Folder::new().lines(&TRANSPORT.replace(instead_of, this));
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.into_iter().next().unwrap()
}

#[test]
fn without_a_word_it_is_a_tunnel_that_moves() {
    let peer = &load(&TRANSPORT.replace("mode = \"transport\"\n", "")).peers[0];
    assert_eq!((peer.mode, peer.features.mobike), (Mode::Tunnel, true));
}

// Refuses: mobikex
#[test]
fn transport_mode_with_one_address_stays_where_it_is_and_beet_mode_moves() {
    let peer = &load(TRANSPORT).peers[0];
    assert_eq!((peer.mode, peer.features.mobike), (Mode::Transport, false));
    let peer = &load(&TRANSPORT.replace("transport", "beet")).peers[0];
    assert_eq!((peer.mode, peer.features.mobike), (Mode::Beet, true));
    let fault = fault(
        "mode = \"transport\"\nmobike = \"on\"",
        "mode = \"transport\"",
    );
    assert!(fault.contains("10:10 peer.office.mobike"), "{fault}");
    assert!(
        fault.contains("`mode = \"beet\"`, which can move"),
        "{fault}"
    );
}

#[test]
fn transport_mode_moves_between_the_addresses_that_a_host_lists() {
    let two = "[\"192.0.2.7/32\", \"198.51.100.7/32\"]";
    let mobile = TRANSPORT.replace("[\"192.0.2.7/32\"]", two);
    assert!(load(&mobile).peers[0].features.mobike);
    let off = mobile.replace("mode =", "mobike = \"off\"\nmode =");
    assert!(!load(&off).peers[0].features.mobike);
    let gateway = TRANSPORT.replace("address = \"192.0.2.1\"\n", "");
    let gateway = gateway.replace("[\"192.0.2.1/32\"]", two);
    assert!(load(&gateway).peers[0].features.mobike);
    // One of several addresses of the peer is that for the first message.
    let both = TRANSPORT.replace("192.0.2.1/32", "192.0.2.1/32\", \"192.0.2.9/32");
    assert!(load(&both).peers[0].features.mobike);
    for other in ["2001:db8::7/128", "198.51.100.0/24"] {
        let lines = Folder::new().lines(&mobile.replace("198.51.100.7/32", other));
        let expected = "transport mode requires single addresses at each end";
        assert!(lines[0].contains(expected), "{lines:?}");
    }
}

#[test]
fn a_misspelt_mode_is_not_taken_for_a_tunnel() {
    let fault = fault("mode = \"transprot\"", "mode = \"transport\"");
    assert!(fault.contains("did you mean `transport`?"), "{fault}");
}

#[test]
fn transport_mode_carries_what_goes_to_the_peers_address() {
    for remote in ["192.0.2.0/24", "192.0.2.2/32"] {
        let fault = fault(
            &format!("remote = [\"{remote}\"]"),
            "remote = [\"192.0.2.1/32\"]",
        );
        assert!(
            fault.contains("write `remote = [\"192.0.2.1/32\"]`"),
            "{fault}"
        );
    }
    let fault = fault("", "address = \"192.0.2.1\"\n");
    assert!(fault.contains("with `start = \"manual\"`"), "{fault}");
}

#[test]
fn both_modes_have_one_address_at_each_end() {
    for mode in ["transport", "beet"] {
        let (many, expected) = match mode {
            "beet" => (
                "192.0.2.7/32\", \"192.0.2.8/32",
                "exactly one address at each end",
            ),
            _ => (
                "192.0.2.7/32\", \"192.0.2.8/31",
                "single addresses at each end",
            ),
        };
        for local in ["192.0.2.0/24", many, "2001:db8::7/128"] {
            let text = TRANSPORT.replace("transport", mode);
            let lines = Folder::new().lines(&text.replace("192.0.2.7/32", local));
            let expected = format!("{mode} mode requires {expected}");
            assert!(lines[0].contains(&expected), "{lines:?}");
        }
    }
}

#[test]
fn zones_are_for_every_mode_and_begin_with_the_header_that_it_seals() {
    let zoned = |mode: &str, layout: &str| {
        let lines = format!("mode = \"{mode}\"\nzones = \"require\"\nlayout = {layout}");
        TRANSPORT.replace("mode = \"transport\"", &lines)
    };
    for mode in ["transport", "beet"] {
        for layout in [
            "[\"headers\", \"payload\"]",
            "[\"transport\", \"payload\"]",
            "[\"octets 0-3\", \"transport\", \"rtp 5004-5007\", \"payload\"]",
        ] {
            load(&zoned(mode, layout));
        }
        for (layout, what) in [
            ("[\"ip\", \"payload\"]", "zone `ip` is empty in"),
            (
                "[\"octets 0-3\", \"ip\", \"payload\"]",
                "zone `ip` is empty in",
            ),
            (
                "[\"octets 1-3\", \"payload\"]",
                "`octets 1-3` does not cover the start",
            ),
            (
                "[\"rtp 5004-5007\", \"payload\"]",
                "does not cover the start of a packet in",
            ),
        ] {
            let lines = Folder::new().lines(&zoned(mode, layout));
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(
                lines[0].contains("peer.office.layout") && lines[0].contains(what),
                "{lines:?}"
            );
            assert!(lines[0].contains(&format!("{mode} mode")), "{lines:?}");
        }
    }
}

/// One layout must suit all tunnels of a peer.
#[test]
fn a_child_in_another_mode_needs_a_layout_that_suits_both() {
    let child = |layout: &str| {
        let tunnel = TRANSPORT.replace("mode = \"transport\"\n", "");
        let tunnel = tunnel.replace("192.0.2.1/32", "10.8.0.0/16");
        format!(
            "{tunnel}zones = \"require\"\nlayout = {layout}\n[peer.office.child.direct]\nremote = [\"192.0.2.1/32\"]\nmode = \"transport\"\n"
        )
    };
    load(&child("[\"headers\", \"payload\"]"));
    for layout in [
        "[\"ip\", \"transport\", \"payload\"]",
        "[\"transport\", \"payload\"]",
    ] {
        let lines = Folder::new().lines(&child(layout));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("peer.office.layout"), "{lines:?}");
    }
}

#[test]
fn a_licence_needs_a_payload_whose_length_shows() {
    let licensed = |mode: &str, lines: &str| {
        let lines = format!(
            "mode = \"{mode}\"\nzones = \"require\"\nlicences = [{{ node = \"fa.example.net\", zones = [\"headers\"], right = \"read\" }}]\n{lines}"
        );
        TRANSPORT.replace("mode = \"transport\"", &lines)
    };
    let blocks = "layout = [\"headers\", { zone = \"payload\", suite = \"aes128-sha256\" }]";
    for mode in ["transport", "beet"] {
        load(&licensed(mode, ""));
        for lines in [blocks, "suite = \"aes128-sha256\""] {
            let lines = Folder::new().lines(&licensed(mode, lines));
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].contains("peer.office.licences"), "{lines:?}");
        }
    }
    load(&licensed("tunnel", blocks));
}

// Refuses: modes
#[test]
fn lent_addresses_are_for_tunnels() {
    let lent = fault("local = [\"dynamic\"]", "local = [\"192.0.2.7/32\"]");
    assert!(
        lent.contains("one of them is assigned dynamically"),
        "{lent}"
    );
}

#[test]
fn a_child_has_its_peers_mode_or_one_of_its_own() {
    let child =
        "[peer.office.child.inner]\nlocal = [\"10.1.0.2/32\"]\nremote = [\"10.8.0.1/32\"]\n";
    let own = load(&format!("{TRANSPORT}{child}mode = \"beet\"\n"));
    assert_eq!(own.peers[0].children[0].mode, Mode::Beet);
    let lines = Folder::new().lines(&format!("{TRANSPORT}{child}"));
    assert!(lines[0].contains("peer.office.child.inner"), "{lines:?}");
    assert!(
        lines[0].contains("write `remote = [\"192.0.2.1/32\"]`"),
        "{lines:?}"
    );
    let tunnel = TRANSPORT.replace("mode = \"transport\"\n", "");
    let tunnel = tunnel.replace("192.0.2.1/32", "10.8.0.0/16");
    let direct = "[peer.office.child.direct]\nremote = [\"192.0.2.1/32\"]\nmode = \"transport\"\n";
    let peer = &load(&format!("{tunnel}{direct}")).peers[0];
    assert_eq!(peer.children[0].mode, Mode::Transport);
    assert!(
        !peer.features.mobike,
        "all of its tunnels stay where they are"
    );
}

/// "this padding […] can be added only if the Payload Data field contains a specification of the
/// length" (RFC 4303 section 2.7).
// Refuses: tfc
#[test]
fn padding_is_for_tunnels() {
    for mode in ["transport", "beet"] {
        for tfc in ["mtu", "buckets"] {
            let lines = format!("mode = \"{mode}\"\ntfc = \"{tfc}\"");
            let fault = fault(&lines, "mode = \"transport\"");
            assert!(fault.contains("peer.office.tfc"), "{fault}");
            assert!(fault.contains(&format!("{mode} mode omits")), "{fault}");
        }
        load(&TRANSPORT.replace("transport\"", &format!("{mode}\"\ntfc = \"off\"")));
    }
    let tunnel = TRANSPORT.replace("mode = \"transport\"\n", "tfc = \"mtu\"\n");
    assert_eq!(load(&tunnel).peers[0].tfc, Tfc::Mtu);
    let child = "[peer.office.child.direct]\nremote = [\"10.8.0.1/32\"]\nmode = \"beet\"\n";
    let lines = Folder::new().lines(&format!("{tunnel}{child}"));
    assert!(lines[0].contains("beet mode omits"), "{lines:?}");
}

#[test]
fn a_misspelt_padding_is_not_taken_for_none() {
    let fault = fault("tfc = \"bucket\"", "mode = \"transport\"");
    assert!(fault.contains("did you mean `buckets`?"), "{fault}");
}

#[test]
fn dummies_are_for_tunnels_that_hide_their_lengths() {
    let tunnel = TRANSPORT.replace("mode = \"transport\"\n", "cover = 20\n");
    let lines = Folder::new().lines(&tunnel);
    assert!(lines[0].contains("add `tfc = \"mtu\"`"), "{lines:?}");
    assert_eq!(
        load(&format!("{tunnel}tfc = \"mtu\"\n")).peers[0].cover,
        Some(20)
    );
    for rate in ["0", "1001", "-1", "\"20\""] {
        let lines = Folder::new().lines(&format!("{}tfc = \"mtu\"\n", tunnel.replace("20", rate)));
        assert!(lines[0].contains("peer.office.cover"), "{lines:?}");
    }
}
