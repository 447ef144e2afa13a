//! Every mistake is found, at its place, with a fix.

use super::Folder;
use crate::{Error, Warning};
use model::Right;

const NODE: &str = "[node]\nid = \"alice@example.net\"\n";
const OFFICE: &str = r#"[peer.office]
address = "192.0.2.1"
id = "gw.example.net"
psk = "office.psk"
local = ["10.1.0.2/32"]
remote = ["10.8.0.0/16"]
"#;

/// Returns the only fault of `text`, as `line:column key | problem | fix`.
fn only_fault(text: &str) -> String {
    let lines = Folder::new().lines(text);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.into_iter().next().unwrap()
}

/// Returns the only fault of a good file with more lines below `[peer.office]`.
fn only_fault_in_office(lines: &str) -> String {
    only_fault(&format!("{NODE}{OFFICE}{lines}"))
}

/// A post-quantum pre-shared key.
const PPK: &[u8] = b"4qHg8o8xEl1a3mVYz0j9k7bDq5Tn2RcuWfPyGhSIA6MLPJN=";

fn warnings(text: &str) -> Vec<Warning> {
    Folder::new().load(text).unwrap().warnings
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_nearest_known_one() {
    assert_eq!(
        only_fault_in_office("adress = \"192.0.2.7\"\n"),
        "9:1 peer.office.adress | unknown key | did you mean `address`?"
    );
    assert_eq!(
        only_fault(&format!("{NODE}{OFFICE}[tunel]\n")),
        "9:2 tunel | unknown key | did you mean `tunnel`?"
    );
    assert_eq!(
        only_fault(&format!("{NODE}{OFFICE}[log]\nxyz = 1\n")),
        "10:1 log.xyz | unknown key | possible here: `level`, `peers`"
    );
}

#[test]
fn a_peer_to_log_about_has_a_table_unless_it_is_a_pattern() {
    let told = |peers: &str| format!("{NODE}{OFFICE}[log]\npeers = {peers}\n");
    assert_eq!(
        only_fault(&told(r#"["office", "ofice"]"#)),
        "10:20 log.peers[1] | there is no peer `ofice` | did you mean `office`?"
    );
    let loaded = Folder::new().load(&told(r#"["office", "u1*"]"#));
    assert_eq!(loaded.unwrap().log_peers, ["office", "u1*"]);
}

// Refuses: resume
#[test]
fn one_file_is_not_for_leases_and_sessions() {
    let both = "[store]\nfile = \"/x/strata.redb\"\n[sessions]\nfile = \"/x/strata.redb\"\n";
    assert_eq!(
        only_fault(&format!("{NODE}{OFFICE}{both}")),
        "12:8 sessions.file | this file keeps the leases of pools (`file` in [store]) | name \
         another file, such as \"/var/lib/strata/sessions.redb\""
    );
}

#[test]
fn a_misspelt_lock_is_not_taken_for_none() {
    assert_eq!(
        only_fault_in_office("leak = \"nevr\"\n"),
        "9:8 peer.office.leak | `nevr` is not known | did you mean `never`?"
    );
}

// Refuses: audit
#[test]
fn an_audit_log_has_a_place_that_does_not_depend_on_where_the_daemon_runs() {
    assert_eq!(
        only_fault(&format!("{NODE}{OFFICE}[audit]\nfile = \"audit.jsonl\"\n")),
        "10:8 audit.file | this cannot be the path of a file | write an absolute path, like \"/etc/resolv.conf\""
    );
    assert_eq!(
        only_fault(&format!("{NODE}{OFFICE}[audit]\nrequired = true\n")),
        "9:1 audit | `file` is missing | add `file = \"/var/log/strata/audit.jsonl\"`"
    );
}

#[test]
fn all_faults_are_told_at_once_in_the_order_of_the_lines() {
    let text =
        "[node]\nid = 3\n[peer.a]\naddress = \"gw\"\nzons = \"require\"\n[listen]\nike = 0\n";
    let keys: Vec<_> = Folder::new()
        .faults(text)
        .faults
        .into_iter()
        .map(|f| (f.line, f.key))
        .collect();
    let expected = [
        (2, "node.id"),
        (3, "peer.a"),
        (3, "peer.a"),
        (3, "peer.a"),
        (4, "peer.a.address"),
        (5, "peer.a.zons"),
        (7, "listen.ike"),
    ];
    assert_eq!(keys, expected.map(|(line, key)| (line, key.to_owned())));
}

#[test]
fn a_fault_shows_its_line_with_a_caret() {
    let faults = Folder::new().faults(&format!("{NODE}{OFFICE}\tstart = \"atuo\"\n"));
    assert_eq!(
        faults.faults[0].to_string(),
        "9:10: peer.office.start: `atuo` is not known\n  \
         9 |  start = \"atuo\"\n    |          ^\n  fix: did you mean `auto`?"
    );
}

#[test]
fn a_missing_key_is_asked_for_where_it_belongs() {
    assert_eq!(
        only_fault(&format!(
            "{NODE}{}",
            OFFICE.replace("id = \"gw.example.net\"\n", "")
        )),
        "3:1 peer.office | `id` is missing | add `id = \"peer.example.net\"`"
    );
    assert!(
        only_fault(OFFICE).starts_with("1:1  | [node] is missing | add the two lines `[node]`")
    );
}

#[test]
fn a_word_that_resembles_no_known_one_leads_to_the_list_and_not_to_a_guess() {
    let fault = only_fault(&format!("{NODE}{OFFICE}[include]\nfile = \"x\"\n"));
    assert!(fault.contains("unknown key | possible here: "), "{fault}");
}

#[test]
fn a_file_that_every_user_may_change_is_reviewed() {
    let folder = Folder::new();
    let text = format!("{NODE}{OFFICE}");
    assert!(folder.load(&text).unwrap().warnings.is_empty());
    folder.key("strata.toml", b"", 0o646);
    let warnings = folder.load(&text).unwrap().warnings;
    assert!(
        matches!(warnings[..], [Warning::Writable { .. }]),
        "{warnings:?}"
    );
    let warning = warnings[0].to_string();
    assert!(
        warning.contains("strata.toml") && warning.contains("`chmod o-w`"),
        "{warning}"
    );
}

#[test]
fn an_address_of_one_link_cannot_be_a_peers() {
    let text = format!("{NODE}{OFFICE}").replace("192.0.2.1", "fe80::1");
    assert!(text.contains("fe80::1"), "{text}");
    assert!(only_fault(&text).contains("`fe80::1` is link-local"));
}

#[test]
fn a_value_of_the_wrong_type_is_told_what_it_should_be() {
    assert_eq!(
        only_fault_in_office("liveness = 30\n"),
        "9:12 peer.office.liveness | expected a time, found integer | write \"30s\", with quotes and unit"
    );
    assert_eq!(
        only_fault(&format!("{NODE}{OFFICE}[tunnel]\nmtu = \"1400\"\n")),
        "10:7 tunnel.mtu | expected a number, found string | write it in digits, without quotes"
    );
    assert_eq!(
        only_fault(&format!("peer = 3\n{NODE}")),
        "1:8 peer | expected a table, found integer | write it as a [table]"
    );
}

#[test]
fn what_is_not_toml_has_its_place_too() {
    let fault = only_fault("[node]\nid = \"alice\n");
    assert!(fault.starts_with("2:"), "{fault}");
}

/// The list is long, or the first one is in a file that was put together from several.
#[test]
fn a_duplicate_key_or_table_says_where_the_first_is() {
    let inline = "node = { id = \"bob\",\n id = \"bob\" }\n";
    let array = "[[policy]]\naction = \"drop\"\n[[policy]]\naction = \"drop\"\naction = \"drop\"\n";
    let tables = "[peer.a]\nid = \"a\"\n[peer.b]\nid = \"b\"\n[peer.a]\n";
    for (text, place, first) in [
        (format!("{NODE}id = \"bob\"\n"), "3:1", Some(2)),
        (format!("{NODE}{OFFICE}\n[node]\n"), "10:2", Some(1)),
        (tables.to_owned(), "5:7", Some(1)),
        (format!("{tables}id = \"a\"\n"), "5:7", Some(1)),
        (
            "[peer.a]\n[peer.b]\nid = \"b\"\n[peer.c]\nid = 1\nid = 2\n".to_owned(),
            "6:1",
            Some(5),
        ),
        ("a.b = 1\na.c = 2\na.b = 3\n".to_owned(), "3:3", Some(1)),
        (array.to_owned(), "5:1", Some(4)),
        (inline.to_owned(), "2:2", None),
    ] {
        let told = Folder::new().lines(&text).remove(0);
        let known = match first {
            Some(line) => format!("{place}  | duplicate key: line {line} has it too | keep one"),
            None => format!("{place}  | duplicate key | "),
        };
        assert!(told.starts_with(&known), "{told}");
    }
}

#[test]
fn a_table_that_resembles_none_is_not_mistaken_for_another() {
    let fault = only_fault(&format!("{NODE}{OFFICE}[include]\nfile = \"more.toml\"\n"));
    assert!(
        fault.contains("include | unknown key | possible here: "),
        "{fault}"
    );
}

#[test]
fn a_prefix_with_host_bits_is_corrected() {
    let text = format!("{NODE}{OFFICE}").replace("10.8.0.0/16", "10.8.0.7/16");
    assert_eq!(
        only_fault(&text),
        "8:11 peer.office.remote[0] | `10.8.0.7/16` has bits set beyond its length | write \"10.8.0.0/16\""
    );
    for bad in [
        "10.8.0.0",
        "10.8.0.0/33",
        "10.8.0.0/+8",
        "fd00::/129",
        "10.8.0.0/",
        "/8",
    ] {
        let fault = only_fault(&format!("{NODE}{OFFICE}").replace("10.8.0.0/16", bad));
        assert!(fault.contains("is not a prefix"), "{fault}");
    }
}

// Refuses: reauth
// Refuses: rekey
// Refuses: suites
// Refuses: window
#[test]
fn limits_are_kept_and_told() {
    for (lines, key, limits) in [
        ("[tunnel]\nmtu = 1279", "tunnel.mtu", "1280 and 9000"),
        ("[tunnel]\nmtu = -1", "tunnel.mtu", "1280 and 9000"),
        (
            "[listen]\nnat = 99999999999999",
            "listen.nat",
            "1 and 65535",
        ),
        ("liveness = \"999ms\"", "peer.office.liveness", "1s and 1h"),
        ("liveness = \"2h\"", "peer.office.liveness", "1s and 1h"),
        ("rekey = \"25h\"", "peer.office.rekey", "1s and 24h"),
        ("ike_rekey = \"0s\"", "peer.office.ike_rekey", "1s and 24h"),
        ("reauth = \"9s\"", "peer.office.reauth", "10s and 720h"),
        (
            "clone = true\nprobe_paths = \"99ms\"",
            "peer.office.probe_paths",
            "100ms and 1h",
        ),
        (
            "clone = true\nprobe_paths = \"61m\"",
            "peer.office.probe_paths",
            "100ms and 1h",
        ),
        ("window = 0", "peer.office.window", "1 and 64"),
        ("window = 65", "peer.office.window", "1 and 64"),
    ] {
        let fault = only_fault_in_office(&format!("{lines}\n"));
        assert!(
            fault.contains(&format!("{key} | is not between {limits} | ")),
            "{fault}"
        );
    }
}

// Refuses: redirect
#[test]
fn who_is_called_is_not_sent_elsewhere() {
    let waiting = OFFICE.replace("address = \"192.0.2.1\"\n", "");
    let fault = only_fault(&format!("{NODE}{waiting}redirect = [\"192.0.2.7\"]\n"));
    assert!(
        fault.contains("peer.office.redirect | only the initiator"),
        "{fault}"
    );
}

// Refuses: tcp
#[test]
fn who_waits_does_not_choose_tcp() {
    let waiting = OFFICE.replace("address = \"192.0.2.1\"\n", "");
    let fault = only_fault(&format!("{NODE}{waiting}tcp = \"always\"\n"));
    assert!(
        fault.contains("peer.office.tcp | only the initiator"),
        "{fault}"
    );
    assert!(fault.contains("write `tcp = 4500` in [listen]"), "{fault}");
    let fault = only_fault_in_office("tcp = \"maybe\"\n");
    assert!(fault.contains("fallback"), "{fault}");
    let fault = only_fault_in_office("tcp_port = 0\n");
    assert!(fault.contains("peer.office.tcp_port"), "{fault}");
    for good in ["tcp = \"off\"\n", ""] {
        Folder::new()
            .load(&format!("{NODE}{waiting}{good}"))
            .unwrap();
    }
}

#[test]
fn a_redirect_leads_somewhere() {
    let fault = only_fault(&format!("{NODE}{OFFICE}[redirect]\nwhen = \"init\"\n"));
    assert!(fault.contains("redirect"), "{fault}");
    let fault = only_fault_in_office("redirect = []\n");
    assert!(fault.contains("names no prefix"), "{fault}");
}

// Weakness: 53
#[test]
fn a_key_file_must_exist_be_private_be_long_and_be_hard_to_guess() {
    let text = format!("{NODE}{OFFICE}");
    for (octets, mode, problem) in [
        (
            &b"0123456789abcdef\n"[..],
            0o640,
            "the file is accessible to users other than its owner (mode 0640)",
        ),
        (
            b"0123456789abcdef\n",
            0o602,
            "the file is accessible to users other than its owner (mode 0602)",
        ),
        (
            b"0123456789abcde\n",
            0o600,
            "the key has 15 octets, fewer than 16",
        ),
        (b"", 0o600, "the key has 0 octets, fewer than 16"),
        (
            b"passwordpassword\n",
            0o600,
            "the key has about 21 bits of entropy, fewer than 60",
        ),
        (&[b'x'; 1025], 0o600, "the key has more than 1024 octets"),
    ] {
        let folder = Folder::new();
        folder.key("office.psk", octets, mode);
        let lines = folder.lines(&text);
        assert!(
            lines[0].starts_with(&format!("6:7 peer.office.psk | {problem}")),
            "{lines:#?}"
        );
    }
    let missing = only_fault(&text.replace("office.psk", "none.psk"));
    assert!(missing.contains("there is no such file in /"), "{missing}");
    let folder_itself = only_fault(&text.replace("office.psk", "."));
    assert!(
        folder_itself.contains("not a regular file"),
        "{folder_itself}"
    );
}

#[test]
fn a_key_file_of_the_shortest_and_of_the_longest_kind_is_read_without_its_line_end() {
    for octets in [
        &b"9f86d081884c7d65\r\n"[..],
        &super::varied(b"0123456789abcdef", 1024),
    ] {
        let folder = Folder::new();
        folder.key("office.psk", octets, 0o400);
        let config = folder.load(&format!("{NODE}{OFFICE}")).unwrap();
        assert_eq!(
            config.peers[0].party.psk.as_ref().unwrap().expose(),
            octets.strip_suffix(b"\r\n").unwrap_or(octets)
        );
    }
}

#[test]
fn a_key_behind_a_mark_is_decoded_and_judged_as_decoded() {
    let load = |text: &[u8]| {
        let folder = Folder::new();
        folder.key("office.psk", text, 0o600);
        folder.load(&format!("{NODE}{OFFICE}"))
    };
    let octets = b"\x9f\x86\xd0\x81\x88\x4c\x7d\x65\x9a\x2f\xea\xa0\xc5\x5a\xd0\x15";
    for text in [
        &b"0sn4bQgYhMfWWaL+qgxVrQFQ==\n"[..],
        b"0x9f86d081884c7d659a2feaa0c55ad015\r\n",
        b"0X9F86D081884C7D659A2FEAA0C55AD015",
    ] {
        let config = load(text).unwrap();
        let psk = config.peers[0].party.psk.as_ref().unwrap();
        assert_eq!(psk.expose(), octets);
        assert!(psk.is_decoded());
    }
    for (text, problem) in [
        (
            &b"0sn4bQgYhMfWWaL+qgxVrQFQ\n"[..],
            "begins with `0s`, but its other characters are no base64",
        ),
        (
            b"0x9f86d081884c7d659a2feaa0c55ad01\n",
            "are no hexadecimal digits",
        ),
        // 12 octets, and a word.
        (
            b"0sn4bQgYhMfWWaL+qg\n",
            "the key has 12 octets, fewer than 16",
        ),
        (b"0scGFzc3dvcmRwYXNzd29yZA==\n", "about 21 bits of entropy"),
    ] {
        let told = load(text).unwrap_err().to_string();
        assert!(told.contains(problem), "{told}");
        assert!(!told.contains("n4bQ") && !told.contains("9f86"), "{told}");
    }
}

#[test]
fn a_key_written_into_the_file_by_mistake_is_never_repeated() {
    let text = format!("{NODE}{OFFICE}").replace("office.psk", "correct horse battery");
    let shown = Folder::new().faults(&text).to_string();
    assert!(
        shown.contains("name a file, never the key itself"),
        "{shown}"
    );
    assert!(!shown.contains("horse"), "{shown}");
    let unclosed = text.replace("battery\"", "battery");
    let shown = Folder::new().faults(&unclosed).to_string();
    assert!(!shown.contains("horse"), "{shown}");
}

/// RFC 8784 section 6 asks for 256 bits of entropy, which 32 octets of text cannot have.
#[test]
fn a_ppk_too_short_against_quantum_computers_is_refused() {
    let folder = Folder::new();
    let line = "ppk = { id = \"office2026\", key = \"office.psk\" }\n";
    let faults = folder.lines(&format!("{NODE}{OFFICE}{line}"));
    assert_eq!(faults.len(), 1, "{faults:#?}");
    let told = "peer.office.ppk.key | the key has 32 hexadecimal digits, fewer than 64: 256 bits";
    assert!(faults[0].contains(told), "{faults:#?}");
    assert!(faults[0].contains("head -c 32 /dev/urandom"), "{faults:#?}");
}

#[test]
fn a_ppk_has_a_name_and_a_key_and_is_required_if_nothing_else_is_said() {
    let folder = Folder::new();
    folder.key("office.ppk", PPK, 0o600);
    let load = |ppk: &str| folder.load(&format!("{NODE}{OFFICE}ppk = {{ {ppk} }}\n"));
    let key = "key = \"office.ppk\"";
    let config = load(&format!("id = \"office2026\", {key}")).unwrap();
    let ppk = config.peers[0].ppk.as_ref().unwrap();
    assert_eq!((ppk.id.as_str(), ppk.required), ("office2026", true));
    assert_eq!(ppk.key.expose(), PPK);
    assert!(!format!("{config:?}").contains("LPJN"));
    let optional = load(&format!("id = \"a\", {key}, required = false")).unwrap();
    assert!(!optional.peers[0].ppk.as_ref().unwrap().required);
    for (ppk, problem) in [
        (key.to_owned(), "`id` is missing"),
        ("id = \"office2026\"".to_owned(), "`key` is missing"),
        (format!("id = \"two words\", {key}"), "cannot be the name"),
    ] {
        let told = load(&ppk).unwrap_err().to_string();
        assert!(told.contains(problem), "{told}");
    }
}

#[test]
fn a_ppk_written_into_the_file_by_mistake_is_never_repeated() {
    for line in [
        "ppk = { id = \"office2026\", key = \"correct horse battery\" }\n",
        "[peer.office.ppk]\nid = \"office2026\"\nkey = \"correct horse battery\"\n",
        "ppk = \"correct horse battery\"\n",
    ] {
        let shown = Folder::new().faults(&format!("{NODE}{OFFICE}{line}"));
        assert!(!shown.to_string().contains("horse"), "{shown}");
    }
}

/// RFC 8784 section 6: keys for licensed nodes travel in an IKE SA of their own, which has no PPK.
#[test]
fn a_ppk_beside_licences_is_warned_of() {
    let folder = Folder::new();
    folder.key("office.ppk", PPK, 0o600);
    let licences = "zones = \"require\"\n\
        licences = [{ node = \"fa.example.net\", zones = [\"headers\"], right = \"read\" }]\n";
    let ppk = "ppk = { id = \"office2026\", key = \"office.ppk\" }\n";
    let config = folder.load(&format!("{NODE}{OFFICE}{licences}{ppk}"));
    let warning = Warning::LicenceWithoutPpk {
        peer: "office".to_owned(),
        node: "fa.example.net".parse().unwrap(),
    };
    assert_eq!(config.unwrap().warnings, [warning]);
    assert_eq!(warnings(&format!("{NODE}{OFFICE}{licences}")), []);
}

/// An attacker that breaks the key exchange of the node's IKE SA obtains the keys that travel in
/// it.
#[test]
fn a_kem_beside_a_licensed_node_without_one_is_warned_of() {
    let folder = Folder::new();
    let licences = "zones = \"require\"\n\
        licences = [{ node = \"fa.example.net\", zones = [\"headers\"], right = \"read\" }]\n";
    let node = "[licensed.fa]\naddress = \"192.0.2.9\"\nid = \"fa.example.net\"\n\
        psk = \"office.psk\"\n";
    let kem = "kem = \"mlkem768\"\n";
    let warnings = |office: &str, fa: &str| {
        let text = format!("{NODE}{OFFICE}{licences}{office}{node}{fa}");
        folder.load(&text).unwrap().warnings
    };
    let warning = Warning::LicenceWithoutKem {
        peer: "office".to_owned(),
        node: "fa".to_owned(),
    };
    assert_eq!(warnings(kem, ""), [warning]);
    assert_eq!(warnings(kem, kem), []);
    assert_eq!(warnings("", kem), []);
}

#[test]
fn keys_are_not_in_debug_output() {
    let config = Folder::new().load(&format!("{NODE}{OFFICE}")).unwrap();
    let shown = format!("{config:?}");
    assert!(shown.contains("Psk(32 octets)"), "{shown}");
    assert!(!shown.contains("9f86d081884c7d65"), "{shown}");
}

#[test]
fn two_tables_with_one_id_or_one_name_are_refused() {
    let second = OFFICE
        .replace("peer.office", "gateway.gw")
        .replace("local", "#")
        .replace("remote", "#");
    assert_eq!(
        only_fault(&format!("{NODE}{OFFICE}{second}")),
        "11:6 gateway.gw.id | [peer.office] has the same id | \
         give each host its own identity: a peer's table is found by it"
    );
    let named = second
        .replace("gateway.gw", "gateway.office")
        .replace("gw.example.net", "other");
    assert!(
        only_fault(&format!("{NODE}{OFFICE}{named}")).contains("[peer.office] has the same name")
    );
    for ours in ["alice@example.net", "alice@Example.NET"] {
        let ours = OFFICE.replace("gw.example.net", ours);
        assert!(only_fault(&format!("{NODE}{ours}")).contains("[node] has the same id"));
    }
}

#[test]
fn licences_name_known_zones_and_the_payload_only_by_its_name() {
    let licences = |zones: &str| {
        format!(
            "zones = \"accept\"\nlicences = [{{ node = \"fa\", zones = {zones}, right = \"read\" }}]\n"
        )
    };
    let unknown = only_fault_in_office(&licences("[\"header\"]"));
    assert!(
        unknown.ends_with("licences[0].zones[0] | `header` is not known | did you mean `headers`?")
    );
    let wildcard = only_fault_in_office(&licences("[\"*\"]"));
    assert!(
        wildcard.ends_with("`*` is not known | possible here: `headers`, `payload`"),
        "{wildcard}"
    );
    let lonely = only_fault_in_office(&licences("[\"payload\"]"));
    assert!(
        lonely.contains("a node cannot open packets without the zone `headers`"),
        "{lonely}"
    );
    let right = only_fault_in_office(&licences("[\"headers\"]").replace("read", "forge"));
    assert!(
        right.contains("`forge` is not known | possible here: `read`, `write`, `inject`"),
        "{right}"
    );
    let pattern = only_fault_in_office(&licences("[\"headers\"]").replace("fa", "*@net"));
    assert!(pattern.contains("`*@net` is not an identity"), "{pattern}");
}

/// DESIGN section 3: write rights cover the TCP window in the first zone, and inject rights the TCP
/// header there.
// Refuses: inject-right
#[test]
fn nothing_may_be_written_or_injected_but_where_the_first_zone_has_the_headers() {
    for (right, done) in [(Right::Write, "written"), (Right::Inject, "injected")] {
        of_the_headers_alone(right, done);
    }
}

fn of_the_headers_alone(right: Right, done: &str) {
    let licensing = |layout: &str, zones: &str| {
        format!(
            "zones = \"accept\"\nlayout = {layout}\n\
             licences = [{{ node = \"fa\", zones = {zones}, right = \"{}\" }}]\n",
            right.name()
        )
    };
    let headers = r#"["headers", "payload"]"#;
    let loaded = Folder::new().load(&format!(
        "{NODE}{OFFICE}{}",
        licensing(headers, r#"["headers"]"#)
    ));
    let licence = &loaded.unwrap().peers[0].zones.licences[0];
    assert_eq!(licence.right, right);
    for (layout, zones, refused) in [
        (headers, r#"["headers", "payload"]"#, "payload"),
        (r#"["ip", "transport", "payload"]"#, r#"["ip"]"#, "ip"),
        (
            r#"["ip", "transport", "payload"]"#,
            r#"["ip", "transport"]"#,
            "transport",
        ),
        (
            r#"["octets 0-40", "payload"]"#,
            r#"["octets 0-40"]"#,
            "octets 0-40",
        ),
    ] {
        let fault = only_fault_in_office(&licensing(layout, zones));
        let words = format!("licences[0].right | zone `{refused}` cannot be {done}");
        assert!(fault.contains(&words), "{fault}");
    }
}

#[test]
fn licences_without_zones_are_refused() {
    let licences = "licences = [{ node = \"fa\", zones = [\"headers\"], right = \"read\" }]\n";
    for stance in ["", "zones = \"refuse\"\n"] {
        let fault = only_fault_in_office(&format!("{stance}{licences}"));
        assert!(fault.contains("`licences` requires zones, and packets of this peer have none"));
    }
}

// Refuses: exceptions
#[test]
fn ports_are_those_of_a_protocol_that_has_them() {
    let policy = "[[policy]]\naction = \"bypass\"\nremote = \"10.8.9.0/24\"\nports = 80\n";
    for ports in ["65535", "\"80-65535\"", "\"0-80\""] {
        let policy = policy.replace("80", ports);
        let fault = only_fault(&format!("{NODE}{OFFICE}{policy}protocol = \"tcp\"\n"));
        assert!(fault.contains("have no ports 0 and 65535"), "{fault}");
    }
    assert!(
        only_fault(&format!("{NODE}{OFFICE}{policy}"))
            .contains("only tcp, udp and sctp have ports")
    );
    let without_protocol = policy.replace("bypass", "discard");
    assert!(
        only_fault(&format!("{NODE}{OFFICE}{without_protocol}"))
            .contains("only tcp, udp and sctp have ports")
    );
    let backwards = without_protocol.replace("80", "\"90-80\"\nprotocol = \"tcp\"");
    assert!(
        only_fault(&format!("{NODE}{OFFICE}{backwards}"))
            .contains("`90-80` is not a range of ports")
    );
}

#[test]
fn a_bypass_after_a_discard_that_it_would_open_is_refused() {
    let policy =
        |action, remote| format!("[[policy]]\naction = \"{action}\"\nremote = \"{remote}\"\n");
    let discard = policy("discard", "10.8.9.0/24") + "protocol = \"tcp\"\nports = 25\n";
    let bypass = policy("bypass", "10.8.0.0/20");
    assert_eq!(
        only_fault(&format!("{NODE}{OFFICE}{discard}{bypass}")),
        "14:1 policy[1] | policy[0] discards packets that this entry bypasses, but a bypass applies first | \
         move the bypass before the discard, or make the two disjoint"
    );
    let apart = policy("bypass", "10.8.10.0/24");
    for good in [bypass + &discard, discard + &apart] {
        assert_eq!(warnings(&format!("{NODE}{OFFICE}{good}")), []);
    }
}

#[test]
fn a_discard_that_no_tunnel_leads_to_is_told() {
    let policy = "[[policy]]\naction = \"discard\"\nremote = \"10.9.0.0/16\"\n";
    let packets = "10.9.0.0/16".to_owned();
    assert_eq!(
        warnings(&format!("{NODE}{OFFICE}{policy}")),
        [Warning::DiscardOutside { packets }]
    );
}

#[test]
fn a_peer_without_an_address_cannot_be_started() {
    let waiting = format!("{NODE}{OFFICE}start = \"auto\"\n").replace("address", "#");
    assert!(only_fault(&waiting).contains("there is no `address` to connect to"));
}

#[test]
fn a_host_needs_something_to_do() {
    assert!(only_fault(NODE).contains("the file has no tunnel, no licensed node"));
    let snoop = only_fault(&format!("{NODE}{OFFICE}[snoop]\n"));
    assert!(
        snoop.contains("without [divert], this node examines no packets"),
        "{snoop}"
    );
    let regulate = only_fault(&format!("{NODE}{OFFICE}[regulate]\nwindow = \"64KiB\"\n"));
    assert!(regulate.contains("or remove [regulate]"), "{regulate}");
    let stand_in = only_fault(&format!("{NODE}{OFFICE}[stand_in]\n"));
    assert!(stand_in.contains("or remove [stand_in]"), "{stand_in}");
    let one = "[divert]\nwired = \"eth0\"\nwireless = \"eth0\"\n[snoop]\n";
    let lines = Folder::new().lines(&format!("{NODE}{one}"));
    assert!(
        lines
            .iter()
            .any(|line| line.contains("are the same device")),
        "{lines:#?}"
    );
    assert!(
        !lines.iter().any(|line| line.contains("without [divert]")),
        "{lines:#?}"
    );
}

#[test]
fn names_can_be_typed_and_devices_can_exist() {
    let quoted = format!("{NODE}{OFFICE}").replace("peer.office", "peer.\"a b\"");
    assert!(only_fault(&quoted).contains("commands cannot use this name"));
    for bad in ["sixteen-letters!", "a/b", "a b", ".."] {
        let fault = only_fault(&format!("{NODE}{OFFICE}[tunnel]\nname = \"{bad}\"\n"));
        assert!(fault.contains("cannot be a device's name"), "{fault}");
    }
    let relative = only_fault(&format!(
        "{NODE}{OFFICE}[control]\nsocket = \"strata.sock\"\n"
    ));
    assert!(
        relative.contains("this cannot be the path of a socket"),
        "{relative}"
    );
    let same = only_fault(&format!("{NODE}{OFFICE}[listen]\nike = 4500\n"));
    assert!(same.contains("`ike` and `nat` are the same port"), "{same}");
}

// Refuses: metrics
#[test]
fn metrics_are_read_at_an_address_with_a_port_or_at_a_path() {
    let listen = |at: &str| format!("{NODE}{OFFICE}[metrics]\nlisten = \"{at}\"\n");
    for bad in [
        "9580",
        "127.0.0.1",
        "127.0.0.1:0",
        "[::1]:99999",
        "localhost:9580",
        "metrics.sock",
    ] {
        assert_eq!(
            only_fault(&listen(bad)),
            format!(
                "10:10 metrics.listen | `{bad}` is neither an address with a port nor a path | \
                 write \"127.0.0.1:9580\", \"[::1]:9580\", or the absolute path of a Unix socket"
            )
        );
    }
    for local in [
        "127.0.0.1:9580",
        "127.8.9.1:9580",
        "[::1]:9580",
        "/run/strata/metrics.sock",
    ] {
        assert_eq!(warnings(&listen(local)), [], "{local}");
    }
    for exposed in [
        "0.0.0.0:9580",
        "192.0.2.1:9580",
        "[::]:9580",
        "[::ffff:192.0.2.1]:9580",
    ] {
        let address = exposed.parse().unwrap();
        let warning = Warning::MetricsExposed { address };
        assert_eq!(warnings(&listen(exposed)), [warning], "{exposed}");
    }
}

// Refuses: readers
#[test]
fn a_group_is_named_and_not_numbered() {
    let group = |name: &str| format!("{NODE}{OFFICE}[control]\ngroup = \"{name}\"\n");
    for bad in ["100", "a b", "x/y", "-x"] {
        let fault = only_fault(&group(bad));
        assert!(fault.contains("cannot be the name of a group"), "{fault}");
    }
    assert_eq!(warnings(&group("strata")), []);
}

// Refuses: ike-fragments
#[test]
fn fragments_too_small_for_anything_are_a_fault() {
    let listen = |octets: u32| format!("{NODE}{OFFICE}[listen]\nfragment = {octets}\n");
    for few in [1, 575] {
        let fault = only_fault(&listen(few));
        assert!(fault.contains("write 576 or more, or 0"), "{fault}");
    }
    let fault = only_fault(&listen(65536));
    assert!(fault.contains("65535"), "{fault}");
    for good in [0, 576, 65535] {
        let config = Folder::new().load(&listen(good)).unwrap();
        assert_eq!(u32::from(config.listen.fragment), good);
    }
}

#[test]
fn a_licensed_payload_is_a_loud_warning() {
    let text = format!(
        "{NODE}{OFFICE}zones = \"accept\"\n\
         licences = [{{ node = \"fa\", zones = [\"headers\", \"payload\"], right = \"read\" }}]\n"
    );
    let warnings = warnings(&text);
    let [warning @ Warning::PayloadLicensed { .. }] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    assert!(
        warning
            .to_string()
            .starts_with("PAYLOAD LICENSED: fa may read everything")
    );
}

// Weakness: 135
#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let gateway = include_str!("../../examples/gateway.toml");
    let other = gateway.replace("node = \"fa.example.net\"", "node = \"fb.example.net\"");
    assert!(matches!(
        warnings(&other).as_slice(),
        [
            Warning::NodeWithoutTable { .. },
            Warning::NodeWithoutLicence { .. }
        ]
    ));
    let families =
        format!("{NODE}{OFFICE}").replace("\"10.8.0.0/16\"", "\"10.8.0.0/16\", \"fd00::/8\"");
    let [warning] = &warnings(&families)[..] else {
        panic!()
    };
    assert!(
        warning
            .to_string()
            .starts_with("the tunnel with office never carries fd00::/8")
    );
    let twice = format!(
        "{NODE}{OFFICE}{}",
        OFFICE.replace("office]", "home]").replace("gw.", "home.")
    );
    assert!(
        matches!(&warnings(&twice)[..], [Warning::Overlap { prefix, .. }] if prefix == "10.8.0.0/16")
    );
    let [warning] = &warnings(&twice)[..] else {
        panic!()
    };
    assert!(
        warning
            .to_string()
            .ends_with("the tunnel of the one that was up first")
    );
    let wider = twice.replacen("10.8.0.0/16", "10.0.0.0/8", 1);
    let [warning] = &warnings(&wider)[..] else {
        panic!("{:?}", warnings(&wider))
    };
    let taken = "the tunnel of home, which claims less";
    assert!(warning.to_string().ends_with(taken), "{warning}");
    let idle = include_str!("../../examples/licensed.toml");
    let idle = &idle[..idle.find("[divert]").unwrap()];
    assert_eq!(warnings(idle), [Warning::NothingDiverted]);
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_what_to_do() {
    let folder = Folder::new();
    let missing = crate::load(&folder.path().join("none.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("none.toml: No such file") && missing.contains("copy one of the examples")
    );
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, [0xff, 0xfe]).unwrap();
    let error = crate::load(&binary).unwrap_err();
    assert!(
        matches!(&error, Error::Unreadable { .. })
            && error.to_string().contains("save the file as UTF-8")
    );
}

// Recovers: check
#[test]
fn no_damage_to_a_file_makes_it_panic_or_lose_its_faults() {
    let folder = Folder::new();
    let text = include_str!("../../examples/mobile.toml");
    let ends = text.char_indices().map(|(at, _)| at).step_by(7);
    for at in ends {
        for damaged in [
            text[..at].to_owned(),
            format!("{}{}", &text[..at], text.get(at + 5..).unwrap_or_default()),
            format!("{}]\"{}", &text[..at], &text[at..]),
        ] {
            if let Err(error) = folder.load(&damaged) {
                let Error::Invalid(faults) = error else {
                    panic!("{error}")
                };
                assert!(!faults.faults.is_empty());
                assert!(faults.faults.iter().all(|fault| !fault.fix.is_empty()));
            }
        }
    }
}

#[test]
fn a_name_server_that_no_tunnel_leads_to_is_told() {
    let dns = "[tunnel]\ndns = [\"10.8.0.53\", \"192.0.2.53\"]\n";
    let server = "192.0.2.53".parse().unwrap();
    assert_eq!(
        warnings(&format!("{NODE}{dns}{OFFICE}")),
        [Warning::NameServerOutside { server }]
    );
}

// Refuses: dns
#[test]
fn the_list_of_name_servers_is_named_from_the_root() {
    let lines = "[tunnel]\nresolver = \"resolv.conf\"\n";
    assert_eq!(
        only_fault(&format!("{NODE}{lines}{OFFICE}")),
        "4:12 tunnel.resolver | this cannot be the path of a file | \
         write an absolute path, like \"/etc/resolv.conf\""
    );
}

// Refuses: suites
#[test]
fn a_set_of_suites_stands_alone() {
    let list = "suite = [\"strict\", \"aes128gcm16\"]\n";
    assert_eq!(
        only_fault_in_office(list),
        "9:9 peer.office.suite | a set of suites cannot be in a list \
         | write `suite = \"modern\"` without a list, or list single suites"
    );
    assert_eq!(
        only_fault_in_office("suite = \"modem\"\n"),
        "9:9 peer.office.suite | `modem` is not known | did you mean `modern`?"
    );
}

#[test]
fn a_set_of_suites_brings_its_groups_unless_there_are_others() {
    use model::{Group, Suite};
    let office = |lines: &str| {
        let text = format!("{NODE}{OFFICE}{lines}");
        let loaded = Folder::new().load(&text).unwrap();
        let party = loaded.peers[0].party.clone();
        (party.suites.clone(), party.groups.clone())
    };
    assert_eq!(office(""), office("suite = \"modern\"\n"));
    let strict = (vec![Suite::Aes256Gcm16], vec![Group::P384]);
    assert_eq!(office("suite = \"strict\"\n"), strict);
    let (_, groups) = office("suite = \"strict\"\ngroups = \"x25519\"\n");
    assert_eq!(groups, [Group::X25519]);
    let ((modern, curves), (legacy, groups)) = (office(""), office("suite = \"legacy\"\n"));
    assert_eq!(groups[..3], curves);
    assert_eq!(groups[3..], [Group::Modp3072, Group::Modp2048]);
    assert!(modern.iter().all(|suite| suite.hash().is_none()));
    assert_eq!(legacy[..3], modern);
    assert!(legacy[3..].iter().all(|suite| suite.hash().is_some()) && legacy.len() == 9);
}

#[test]
fn an_additional_key_exchange_is_asked_for_by_name_and_may_be_left_out() {
    use model::Kem;
    let office = |line: &str| {
        let text = format!("{NODE}{OFFICE}{line}");
        let loaded = Folder::new().load(&text).unwrap();
        loaded.peers[0].party.kems.clone()
    };
    assert_eq!(office(""), [None]);
    assert_eq!(office("suite = \"strict\"\n"), [None]);
    assert_eq!(office("kem = \"mlkem768\"\n"), [Some(Kem::MlKem768)]);
    let list = "kem = [\"mlkem1024\", \"mlkem768\", \"none\"]\n";
    let all = [Some(Kem::MlKem1024), Some(Kem::MlKem768), None];
    assert_eq!(office(list), all);
    assert_eq!(
        only_fault_in_office("kem = \"mlkem786\"\n"),
        "9:7 peer.office.kem | `mlkem786` is not known | did you mean `mlkem768`?"
    );
    assert_eq!(
        only_fault_in_office("kem = []\n"),
        "9:7 peer.office.kem | the list is empty | leave the key out for the default"
    );
}
