//! Files of wg-quick.

use super::{finished, has_no_secret, places, rows};
use crate::Weight::{Lost, Refused, Remark};
use crate::wg;
use crate::wg::key;

const CLIENT: &str = include_str!("../../../../fuzz/seeds/import/wg-client.conf");
const SERVER: &str = include_str!("../../../../fuzz/seeds/import/wg-server.conf");
const SITES: &str = include_str!("../../../../fuzz/seeds/import/wg-sites.conf");
const MINIMAL: &str = include_str!("../../../../fuzz/seeds/import/wg-minimal.conf");

#[test]
fn a_client_of_everything() {
    let draft = wg(CLIENT).expect("it is a file of wg-quick");
    assert_eq!(draft.new_key.as_deref(), Some("wg-1c8828f71373"));
    assert_eq!(draft.awaited_keys, ["wg-c53201039adb.pub"]);
    let import = finished(draft);
    let expected = r#"[node]
id = "wg-1c8828f71373"
key = "wg-1c8828f71373.key"
[tunnel]
addresses = ["10.192.122.2/32", "fd86:ea04:1111::2/128"]
dns = ["10.192.122.1"]
mtu = 1380
[peer.wg-c53201039adb]
address = "192.95.5.67"
id = "wg-c53201039adb"
pubkey = "wg-c53201039adb.pub"
local = ["0.0.0.0/0", "::/0"]
remote = ["0.0.0.0/0", "::/0"]
ppk = { id = "wg-1c8828f71373-wg-c53201039adb", key = "wg-c53201039adb.ppk" }
"#;
    assert_eq!(rows(&import), expected);
    assert_eq!(places(&import), [(4, Remark), (12, Remark)]);
    let text = "0s/UwcSPg38hW/D9Y3tcS1FOV0K1wuURMbS0sesJEP5ak=\n";
    assert_eq!(import.secrets[0].text.as_str(), text);
    has_no_secret(&import, &["yAnz5TF", "UwcSPg38"]);
}

#[test]
fn a_server_with_scripts_and_peers() {
    let import = finished(wg(SERVER).expect("it is a file of wg-quick"));
    let rows = rows(&import);
    assert!(rows.contains("addresses = [\"10.192.122.1/24\"]"), "{rows}");
    assert!(
        rows.contains("remote = [\"10.192.122.3/32\", \"10.192.124.0/24\"]"),
        "{rows}"
    );
    assert_eq!(import.peers, 2);
    assert!(!rows.contains("\naddress ="), "the peers connect: {rows}");
    assert_eq!(
        places(&import),
        [(3, Remark), (5, Remark), (6, Lost), (7, Lost)]
    );
}

#[test]
fn a_site_with_its_own_routes() {
    let import = finished(wg(SITES).expect("it is a file of wg-quick"));
    let rows = rows(&import);
    assert!(rows.contains("address = \"vpn.b.example.net\""), "{rows}");
    assert!(
        rows.contains("remote = [\"10.0.0.2/32\", \"192.168.2.0/24\"]"),
        "{rows}"
    );
    assert_eq!(places(&import), [(5, Remark), (6, Lost)]);
}

#[test]
fn a_minimal_file() {
    let import = finished(wg(MINIMAL).expect("it is a file of wg-quick"));
    let rows = rows(&import);
    assert!(rows.contains("address = \"2001:db8::2\""), "{rows}");
    assert!(rows.contains("remote = [\"10.0.0.2/32\"]"), "{rows}");
    assert!(!rows.contains("[tunnel]"), "{rows}");
    assert_eq!(places(&import), []);
}

/// Two files that name each other's keys have the same names and the same PPK.
#[test]
fn both_ends_call_each_other_alike() {
    let ends = [
        (
            "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=",
            "wg-1c8828f71373",
        ),
        ("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=", ""),
    ];
    let key = |private: &str| {
        let octets = key::key(private).expect("a key");
        let public = key::public(&octets).expect("a public key");
        data_encoding::BASE64.encode(&public)
    };
    let psk = "/UwcSPg38hW/D9Y3tcS1FOV0K1wuURMbS0sesJEP5ak=";
    let file = |own: usize, other: usize| {
        let text = format!(
            "[Interface]\nPrivateKey = {}\n[Peer]\nPublicKey = {}\nPresharedKey = {psk}\nAllowedIPs = 10.0.0.0/8\n",
            ends[own].0,
            key(ends[other].0)
        );
        wg(&text).expect("it is a file of wg-quick")
    };
    let (one, other) = (file(0, 1), file(1, 0));
    assert_eq!(one.new_key.as_deref(), Some(ends[0].1));
    let pub_of = |name: &Option<String>| vec![format!("{}.pub", name.clone().unwrap_or_default())];
    assert_eq!(one.awaited_keys, pub_of(&other.new_key));
    assert_eq!(other.awaited_keys, pub_of(&one.new_key));
    let ppk = |text: &str| {
        text.lines()
            .find(|line| line.starts_with("ppk"))
            .map(str::to_owned)
    };
    let id = |line: Option<String>| line.and_then(|line| line.split('"').nth(1).map(str::to_owned));
    let (one, other) = (finished(one), finished(other));
    assert_eq!(id(ppk(&one.toml)), id(ppk(&other.toml)));
    assert_eq!(one.secrets[0].text, other.secrets[0].text);
}

#[test]
fn a_peer_without_a_usable_key_is_refused_and_told_without_it() {
    for (right, wrong, what) in [
        (
            "PresharedKey = /UwcSPg38hW",
            "PresharedKey = UwcSPg38hW",
            "PresharedKey",
        ),
        ("PublicKey = xTIB", "PublicKey = x", "PublicKey"),
        ("AllowedIPs = 0.0.0.0/0, ::/0", "", "AllowedIPs"),
        (
            "AllowedIPs = 0.0.0.0/0",
            "AllowedIPs = moon",
            "AllowedIPs = moon",
        ),
    ] {
        let import = finished(wg(&CLIENT.replace(right, wrong)).expect("the format is right"));
        assert_eq!(import.peers, 0, "{wrong}");
        let mut notes = import.notes.iter();
        assert!(
            notes.any(|note| note.weight == Refused && note.what.starts_with(what)),
            "{wrong}"
        );
        has_no_secret(&import, &["UwcSPg38", "yAnz5TF"]);
    }
    assert!(wg(&CLIENT.replace("yAnz5TF", "yAn")).is_err());
}

#[test]
fn a_second_peer_with_the_same_key_is_refused() {
    let peer = "[Peer]\nPublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=\nAllowedIPs = 10.0.0.0/8\n";
    let import = finished(wg(&format!("{CLIENT}{peer}")).expect("the format is right"));
    assert_eq!(import.peers, 1);
    assert!(
        places(&import).contains(&(13, Refused)),
        "{:?}",
        import.notes
    );
}
