//! Files of strongSwan's starter and of Libreswan.

use super::{Folder, alone, file, finished, has_no_secret, places, rows};
use crate::Weight::{Lost, Refused, Remark};
use crate::{Import, ipsec};
use std::net::IpAddr;

const SITES: &str = include_str!("../../../../fuzz/seeds/import/ipsec-sites.conf");
const GATEWAY: &str = include_str!("../../../../fuzz/seeds/import/ipsec-gateway.conf");
const LIBRESWAN: &str = include_str!("../../../../fuzz/seeds/import/ipsec-libreswan.conf");
const OLD: &str = include_str!("../../../../fuzz/seeds/import/ipsec-old.conf");
const SECRETS: &str = include_str!("../../../../fuzz/seeds/import/ipsec.secrets");

fn import_at(text: &str, own: &str) -> Import {
    let own: IpAddr = own.parse().unwrap();
    let (conf, secrets) = (
        file("/etc/ipsec.conf", text),
        file("/etc/ipsec.secrets", SECRETS),
    );
    let is_ours = |address| address == own;
    let draft = ipsec(&conf, Some(&secrets), "/etc", &is_ours, &alone);
    finished(draft.expect("it is an ipsec.conf"))
}

#[test]
fn two_sites_with_a_secret() {
    let import = import_at(SITES, "192.168.0.1");
    let expected = r#"[node]
id = "moon.strongswan.org"
[peer.net-net]
address = "192.168.0.2"
id = "sun.strongswan.org"
psk = "net-net.psk"
suite = ["aes128gcm16"]
groups = ["x25519"]
ike_rekey = "1h"
mobike = "off"
local = ["10.1.0.0/16"]
remote = ["10.2.0.0/16"]
rekey = "20m"
[listen]
addresses = ["192.168.0.1"]
"#;
    assert_eq!(rows(&import), expected);
    let places = places(&import);
    assert!(places.contains(&(20, Lost)), "leftfirewall: {places:?}");
    assert!(!places.iter().any(|(_, weight)| *weight == Refused));
    let config = Folder::with(&import)
        .check()
        .expect("strata check accepts it");
    assert!(config.peers[0].party.psk.is_some());
    has_no_secret(&import, &["v+NkxY9LLZ", "Ar3etTnp"]);
}

/// Administrators copy one file to both hosts.
#[test]
fn the_end_with_an_address_of_this_host_is_ours() {
    let import = import_at(SITES, "192.168.0.2");
    let rows = rows(&import);
    assert!(
        rows.starts_with("[node]\nid = \"sun.strongswan.org\"\n"),
        "{rows}"
    );
    assert!(
        rows.contains("address = \"192.168.0.1\"\nid = \"moon.strongswan.org\""),
        "{rows}"
    );
    assert!(
        rows.contains("local = [\"10.2.0.0/16\"]\nremote = [\"10.1.0.0/16\"]"),
        "{rows}"
    );
}

#[test]
fn a_gateway_with_a_pool_and_certificates() {
    let import = import_at(GATEWAY, "203.0.113.1");
    let expected = r#"[node]
id = "vpn.example.com"
revocation = "strict"
cert = "/etc/ipsec.d/certs/server-cert.pem"
[peer.alice]
id = "alice@example.com"
suite = ["aes256-sha256"]
groups = ["modp2048"]
liveness = "5m"
pool = "alice"
local = ["0.0.0.0/0"]
[pool.alice]
addresses = ["10.10.10.0/24"]
dns = ["8.8.8.8", "8.8.4.4"]
"#;
    assert_eq!(rows(&import), expected);
    let places = places(&import);
    for place in [(17, Lost), (18, Lost), (27, Refused), (28, Refused)] {
        assert!(places.contains(&place), "{place:?}: {places:?}");
    }
}

#[test]
fn a_file_of_libreswan() {
    let import = import_at(LIBRESWAN, "192.1.2.23");
    let expected = r#"[node]
id = "west.example.com"
[peer.mysubnet]
address = "192.1.2.45"
id = "east.example.com"
psk = "mysubnet.psk"
suite = ["aes256gcm16"]
groups = ["x25519"]
local = ["192.0.1.0/24"]
remote = ["192.0.2.0/24"]
"#;
    let rows = rows(&import);
    assert!(rows.starts_with(expected), "{rows}");
    assert!(
        rows.contains("local = [\"192.1.2.23/32 udp 1701\"]"),
        "{rows}"
    );
    assert_eq!(
        import.secrets[0].text.as_str(),
        "4qHg8o8xEl1a3mVYz0j9k7bDq5Tn2Rcu\n"
    );
}

#[test]
fn what_is_obsolete_is_refused_with_its_line() {
    let import = import_at(OLD, "192.168.0.1");
    assert_eq!(import.peers, 0);
    let places = places(&import);
    for place in [(2, Refused), (3, Refused), (4, Refused), (16, Refused)] {
        assert!(places.contains(&place), "{place:?}: {places:?}");
    }
    let rows = rows(&import);
    assert!(
        rows.contains("[[policy]]\naction = \"bypass\"\nremote = \"10.1.0.0/16\"\n"),
        "{rows}"
    );
}

#[test]
fn a_connection_that_is_not_loaded_is_left_out() {
    let text = format!("{SITES}\nconn spare\n\tleft=192.168.0.1\n\tright=192.168.0.9\n");
    let import = import_at(&text, "192.168.0.1");
    assert_eq!(import.peers, 1);
    let spare = import.notes.iter().find(|note| note.what == "conn spare");
    assert_eq!(spare.map(|note| note.weight), Some(Remark));
}
