//! The zones of packets.

use super::{Folder, OFFICE};
use crate::{Config, Warning, ZonePolicy, default_mtu};
use model::{Hmac, MapKind, Run, Sha2, Suite, ZoneId, ZoneSelector, ZoneSuite};

fn with(lines: &str) -> String {
    format!("{OFFICE}zones = \"require\"\n{lines}")
}

fn load(lines: &str) -> Config {
    Folder::new().load(&with(lines)).unwrap()
}

fn zones(lines: &str) -> ZonePolicy {
    load(lines).peers.remove(0).zones.clone()
}

fn fault(lines: &str) -> String {
    let faults = Folder::new().lines(&with(lines));
    assert_eq!(faults.len(), 1, "{faults:#?}");
    faults.into_iter().next().unwrap()
}

#[test]
fn without_a_word_there_are_headers_and_payload() {
    let layout = zones("").layout;
    let expected = [
        (ZoneSelector::IpTransport, None),
        (ZoneSelector::Rest, None),
    ];
    assert_eq!(layout, expected);
}

#[test]
fn each_zone_may_have_a_suite_of_its_own() {
    let layout = zones(
        "layout = [{ zone = \"ip\", suite = \"chacha20poly1305\" }, \"transport\", \"payload\"]\n",
    )
    .layout;
    let expected = [
        (ZoneSelector::Ip, Some(ZoneSuite::ChaCha20Poly1305)),
        (ZoneSelector::Transport, None),
        (ZoneSelector::Rest, None),
    ];
    assert_eq!(layout, expected);
}

#[test]
fn a_zone_may_have_a_suite_that_esp_has_not() {
    for suite in ZoneSuite::all() {
        let layout =
            format!("layout = [{{ zone = \"headers\", suite = \"{suite}\" }}, \"payload\"]\n");
        assert_eq!(zones(&layout).layout[0].1, Some(suite));
    }
    let unknown = fault("layout = [{ zone = \"headers\", suite = \"aes128gcm8\" }, \"payload\"]\n");
    assert!(unknown.contains("`aes128gcm8` is not known"), "{unknown}");
}

#[test]
fn zones_without_a_suite_have_the_best_of_the_peers() {
    let layout = load("suite = \"aes256-sha384\"\n").peers[0]
        .layout()
        .collect::<Vec<_>>();
    let best = ZoneSuite::from(Suite::Aes256Cbc(Sha2::Sha384));
    let expected = [
        (ZoneSelector::IpTransport, best),
        (ZoneSelector::Rest, best),
    ];
    assert_eq!(layout, expected);
}

// Refuses: zones
#[test]
fn a_payload_that_everybody_reads_is_refused() {
    let fault = fault("layout = [\"headers\", { zone = \"payload\", suite = \"aes256gmac\" }]\n");
    assert!(
        fault.contains("aes256gmac does not encrypt, so every router could read the payload"),
        "{fault}"
    );
}

#[test]
fn headers_that_everybody_reads_are_warned_of() {
    let config =
        load("layout = [{ zone = \"ip\", suite = \"aes128gmac\" }, \"transport\", \"payload\"]\n");
    let [Warning::ZoneInClear { peer, zone }] = &config.warnings[..] else {
        panic!("{:?}", config.warnings)
    };
    assert_eq!((peer.as_str(), zone.as_str()), ("office", "ip"));
    let secret = "layout = [{ zone = \"ip\", suite = \"aes128ctr-sha256\" }, \"payload\"]\n";
    assert!(load(secret).warnings.is_empty());
}

#[test]
fn a_licence_calls_a_zone_as_the_layout_does() {
    let policy = zones(
        "layout = [\"headers\", \"rtp 5004-5007\", \"payload\"]\n\
         licences = [{ node = \"fa\", zones = [\"headers\", \"rtp 5004-5007\"], right = \"read\" }]\n",
    );
    let licensed: Vec<_> = policy.licences.iter().map(|licence| licence.zone).collect();
    assert_eq!(licensed, [ZoneId(1), ZoneId(2)]);
    assert_eq!(policy.name(ZoneId(2)), "rtp 5004-5007");
    assert!(
        !policy
            .licences
            .iter()
            .any(|licence| policy.opens_payload(licence))
    );
    let other = fault(
        "layout = [\"ip\", \"transport\", \"payload\"]\n\
         licences = [{ node = \"fa\", zones = [\"headers\"], right = \"read\" }]\n",
    );
    assert!(
        other.ends_with("`headers` is not known | possible here: `ip`, `transport`, `payload`"),
        "{other}"
    );
}

#[test]
fn a_licence_has_the_zone_by_which_the_others_are_found() {
    let fault = fault(
        "layout = [\"ip\", \"transport\", \"payload\"]\n\
         licences = [{ node = \"fa\", zones = [\"transport\"], right = \"read\" }]\n",
    );
    assert!(
        fault.ends_with(
            "a node cannot open packets without the zone `ip` | add \"ip\", or remove this licence"
        ),
        "{fault}"
    );
}

// Refuses: several-licensed-nodes
// Refuses: shared-licences
#[test]
fn two_nodes_that_would_share_a_key_are_refused() {
    let licences = |layout: &str, nodes: &[&str]| {
        let licences = nodes.iter().zip(["fa", "fb", "fc"]).map(|(zones, node)| {
            format!("{{ node = \"{node}\", zones = [{zones}], right = \"read\" }}, ")
        });
        let licences: String = licences.collect();
        format!("layout = [{layout}]\nlicences = [{licences}]\n")
    };
    let three = "\"ip\", \"transport\", \"payload\"";
    let [ip, both, all] = ["\"ip\"", "\"ip\", \"transport\"", three];
    let four = "\"ip\", \"transport\", \"rtp 5004-5007\", \"payload\"";
    let rtp = "\"ip\", \"rtp 5004-5007\"";
    assert_eq!(zones(&licences(three, &[ip, both])).licences.len(), 3);
    assert_eq!(zones(&licences(four, &[ip, both, rtp])).licences.len(), 5);
    for (nodes, what) in [
        ([ip, ip], "fa and fb would share the key of `ip`"),
        ([both, both], "fa and fb would share the key of `transport`"),
        ([all, both], "fa and fb would share the key of `transport`"),
    ] {
        let fault = fault(&licences(three, &nodes));
        assert!(
            fault.contains(what) && fault.contains("| license one of them, or split `layout`"),
            "{fault}"
        );
        // `shared` allows it, with a warning.
        let shared = load(&(licences(three, &nodes) + "shared = true\n"));
        let warnings: Vec<_> = shared.warnings.iter().map(ToString::to_string).collect();
        let told = what.replace("would share", "share");
        assert!(
            warnings.iter().any(|text| text.starts_with(&told)),
            "{warnings:?}"
        );
    }
}

#[test]
fn a_layout_that_says_nothing_about_every_octet_is_refused() {
    for (layout, what) in [
        ("[\"payload\"]", "a layout cannot have 1 zones"),
        ("[\"headers\", \"ip\"]", "the last zone is not \"payload\""),
        (
            "[\"payload\", \"headers\"]",
            "the last zone is not \"payload\"",
        ),
        (
            "[\"headers\", \"payload\", \"payload\"]",
            "the last zone is not \"payload\"",
        ),
        (
            "[\"transport\", \"payload\"]",
            "`transport` does not cover the start of a packet",
        ),
        (
            "[\"octets 1-9\", \"payload\"]",
            "`octets 1-9` does not cover the start of a packet",
        ),
        (
            "[\"rtp 5004-5007\", \"payload\"]",
            "does not cover the start of a packet",
        ),
        (
            "[\"headers\", \"ip\", \"payload\"]",
            "the zones before `ip` contain all of its octets",
        ),
        (
            "[\"octets 0-39\", \"octets 2-9\", \"payload\"]",
            "the zones before `octets 2-9` contain all of its octets",
        ),
        (
            "[\"octets 27-0\", \"payload\"]",
            "`octets 27-0` is not a zone",
        ),
        ("[\"header\", \"payload\"]", "`header` is not a zone"),
    ] {
        let fault = fault(&format!("layout = {layout}\n"));
        assert!(fault.contains(what), "{layout}: {fault}");
    }
}

#[test]
fn more_zones_leave_less_room_for_a_packet() {
    let with = |layout: &str| load(&format!("layout = {layout}\n")).tunnel.mtu;
    assert_eq!(with("[\"headers\", \"payload\"]"), default_mtu(2 * 16));
    assert_eq!(
        with("[\"ip\", \"transport\", \"payload\"]"),
        default_mtu(3 * 16)
    );
    let whole = Hmac {
        hash: Sha2::Sha256,
        whole: true,
    };
    let blocks = usize::from(default_mtu(
        16 + ZoneSuite::Aes128Cbc(whole).overhead() as u16,
    ));
    let layout = "[\"headers\", { zone = \"payload\", suite = \"aes128-sha256_256\" }]";
    assert_eq!(usize::from(with(layout)), blocks);
    let plain = format!("{OFFICE}zones = \"refuse\"\nsuite = \"aes128-sha512\"\n");
    assert_eq!(Folder::new().load(&plain).unwrap().tunnel.mtu, 1380);
}

#[test]
fn a_layout_without_zones_is_refused() {
    let plain = format!("{OFFICE}layout = [\"ip\", \"payload\"]\n");
    let lines = Folder::new().lines(&plain);
    assert!(
        lines[0].contains("`layout` requires zones, and packets of this peer have none"),
        "{lines:?}"
    );
}

#[test]
fn without_a_word_each_packet_carries_its_map() {
    assert_eq!(zones("").map, MapKind::Changeable);
}

#[test]
fn a_map_that_all_packets_have_names_its_runs() {
    let run = |zone, len| Run {
        zone: ZoneId(zone),
        len,
    };
    let lines = "layout = [\"headers\", \"rtp 5004-5005\", \"payload\"]\n\
                 map = [\"28 headers\", \"12 rtp 5004-5005\"]\n";
    assert_eq!(
        zones(lines).map,
        MapKind::Fixed(vec![run(1, 28), run(2, 12)])
    );
    let lines = "map = [\"36 headers\", \"2 payload\", \"14 headers\"]\n";
    let runs = vec![run(1, 36), run(2, 2), run(1, 14)];
    assert_eq!(zones(lines).map, MapKind::Fixed(runs));
}

// Refuses: fixed-maps
#[test]
fn a_map_that_no_packet_could_carry_is_refused_with_what_to_write() {
    let cases = [
        ("[]", "a map cannot have 0 runs"),
        ("[\"0 headers\"]", "`0 headers` is not a number and a zone"),
        ("[\"65536 headers\"]", "`65536 headers` is not a number"),
        ("[\"52\"]", "`52` is not a number"),
        (
            "[\"52 ip\"]",
            "write a number of octets and a zone, like \"52 headers\"",
        ),
        (
            "[\"20 payload\", \"20 headers\"]",
            "a packet begins with `headers`, not `payload`",
        ),
        (
            "[\"20 headers\", \"32 headers\"]",
            "write one run with the sum of both",
        ),
        ("[\"20 headers\", \"20 payload\"]", "remove the last entry"),
        (
            "[\"1 headers\", \"1 payload\", \"1 headers\", \"1 payload\", \"1 headers\", \
             \"1 payload\", \"1 headers\", \"1 payload\"]",
            "a map cannot have 8 runs",
        ),
    ];
    for (map, words) in cases {
        let fault = fault(&format!("map = {map}\n"));
        assert!(fault.contains(words), "{map}: {fault}");
    }
}

#[test]
fn a_map_without_zones_is_refused() {
    let plain = format!("{OFFICE}map = [\"52 headers\"]\n");
    let faults = Folder::new().lines(&plain);
    assert!(faults[0].contains("`map` requires zones"), "{faults:?}");
}

#[test]
fn nothing_is_written_where_the_map_is_fixed() {
    let licence = "licences = [{ node = \"fa\", zones = [\"headers\"], right = \"write\" }]\n";
    assert_eq!(zones(licence).licences.len(), 1);
    let fault = fault(&format!("map = [\"52 headers\"]\n{licence}"));
    assert!(fault.contains("or remove `map`"), "{fault}");
}
