//! Files of swanctl.

use super::{Folder, alone, file, finished, has_no_secret, places, rows};
use crate::Weight::{Lost, Refused, Remark};
use crate::{File, Import, swanctl};

const SITES: &str = include_str!("../../../../fuzz/seeds/import/swanctl-sites.conf");
const CLIENT: &str = include_str!("../../../../fuzz/seeds/import/swanctl-client.conf");
const GATEWAY: &str = include_str!("../../../../fuzz/seeds/import/swanctl-gateway.conf");
const OLD: &str = include_str!("../../../../fuzz/seeds/import/swanctl-old.conf");

fn conf(text: &str) -> File {
    file("/etc/swanctl/swanctl.conf", text)
}

fn import(text: &str) -> Import {
    finished(swanctl(&conf(text), "/etc/swanctl", &alone).expect("it is a swanctl.conf"))
}

#[test]
fn two_sites_with_a_secret() {
    let import = import(SITES);
    let expected = r#"[node]
id = "moon.strongswan.org"
[peer.gw-gw]
address = "192.168.0.2"
id = "sun.strongswan.org"
psk = "gw-gw.psk"
suite = ["aes128-sha256", "aes128gcm16"]
groups = ["x25519"]
mobike = "off"
reauth = "3h"
local = ["10.1.0.0/16"]
remote = ["10.2.0.0/16"]
rekey = "90m"
[peer.gw-gw.child.voice]
local = ["10.1.0.0/16 udp 5060"]
remote = ["10.3.0.0/16 udp"]
start = "manual"
[listen]
addresses = ["192.168.0.1"]
"#;
    assert_eq!(rows(&import), expected);
    assert_eq!(places(&import), [(20, Remark), (24, Remark), (30, Lost)]);
    let config = Folder::with(&import)
        .check()
        .expect("strata check accepts it");
    let psk = config.peers[0].party.psk.as_ref().expect("a secret");
    assert_eq!(psk.expose().len(), 18);
    assert!(psk.is_decoded());
    has_no_secret(&import, &["FpZAZqEN6Ti9sqt4ZP5EWcqx", "45a30759df97dc26"]);
    let comment = "# LEFT OUT: updown = /usr/local/libexec/ipsec/_updown iptables (line 30): Strata runs \
                   no scripts";
    assert!(import.toml.contains(comment), "{}", import.toml);
}

#[test]
fn a_client_that_asks_for_an_address() {
    let import = import(CLIENT);
    let expected = r#"[node]
id = "carol@strongswan.org"
[peer.home]
address = "192.0.2.1"
id = "moon.strongswan.org"
psk = "home.psk"
suite = ["aes256gcm16"]
groups = ["p384"]
liveness = "1m"
local = ["dynamic"]
remote = ["10.1.0.0/16"]
"#;
    assert_eq!(rows(&import), expected);
    assert_eq!(places(&import), []);
    let config = Folder::with(&import)
        .check()
        .expect("strata check accepts it");
    let psk = config.peers[0].party.psk.as_ref().expect("a secret");
    assert_eq!(psk.expose(), b"correct horse # battery {staple} 42");
    has_no_secret(&import, &["staple"]);
}

#[test]
fn a_gateway_with_templates_a_pool_and_certificates() {
    let draft = swanctl(&conf(GATEWAY), "/etc/swanctl", &alone).expect("it is a swanctl.conf");
    assert_eq!(
        draft.certificate.as_deref(),
        Some("/etc/swanctl/x509/moonCert.pem")
    );
    assert!(draft.needs_certificate && !draft.needs_authorities);
    let import = finished(draft);
    let expected = r#"[node]
id = "moon.strongswan.org"
cert = "/etc/swanctl/x509/moonCert.pem"
[peer.carol]
id = "carol@strongswan.org"
ca = ["/etc/swanctl/x509ca/strongswanCert.pem"]
pool = "office"
local = ["10.1.0.0/16"]
[peer.dave]
id = "dave@strongswan.org"
ca = ["/etc/swanctl/x509ca/strongswanCert.pem"]
pool = "office"
local = ["10.1.0.0/16"]
[listen]
addresses = ["192.0.2.1"]
[pool.office]
addresses = ["10.3.0.0/28"]
dns = ["10.1.0.20", "2001:db8::20"]
"#;
    assert_eq!(rows(&import), expected);
    let all = places(&import);
    let users = import.notes.iter().filter(|note| note.why.contains("EAP"));
    assert!(users.clone().any(|note| note.weight == Refused), "{all:?}");
    assert!(all.contains(&(57, Lost)), "the password of carol: {all:?}");
    has_no_secret(&import, &["Ar3etTnp", "nutsAndBolts"]);
}

#[test]
fn what_is_obsolete_is_refused_with_its_line() {
    let import = import(OLD);
    let expected = r#"[node]
id = "moon.strongswan.org"
[[policy]]
action = "bypass"
remote = "10.1.0.0/16"
protocol = "tcp"
ports = 22
[peer.half]
address = "192.168.0.5"
id = "pluto.strongswan.org"
psk = "half.psk"
ppk = { id = "moonpluto", key = "half.ppk" }
suite = ["aes256-sha256"]
groups = ["modp2048"]
local = ["10.1.0.0/16"]
remote = ["10.5.0.0/16"]
start = "manual"
tfc = "mtu"
"#;
    assert_eq!(rows(&import), expected);
    let places = places(&import);
    for place in [
        (3, Refused),
        (4, Refused),
        (15, Refused),
        (29, Refused),
        (35, Lost),
    ] {
        assert!(places.contains(&place), "{place:?}: {places:?}");
    }
    assert!(Folder::with(&import).check().is_ok());
    has_no_secret(&import, &["4qHg8o8xEl1a", "4fb0b2c4"]);
}

// Works: link-local
#[test]
fn a_peer_on_a_link_keeps_its_interface() {
    let text = "connections { a { remote_addrs = fe80::1%eth0\n local_addrs = fe80::2%eth0\n \
                local { auth = psk\n id = us }\n remote { auth = psk }\n children { n { \
                local_ts = 10.1.0.0/16\n remote_ts = 10.2.0.0/16 } } } }\n\
                secrets { ike { secret = a secret of some length } }\n";
    let import = import(text);
    let rows = rows(&import);
    assert!(
        rows.contains("address = \"fe80::1%eth0\"\nid = \"fe80::1\"\n"),
        "{rows}"
    );
    assert!(!rows.contains("[listen]"), "{rows}");
    let config = Folder::with(&import).check();
    let config = config.expect("strata check accepts it");
    assert_eq!(config.linked_hosts().count(), 1);
}

/// The secret whose owners are both ends of the connection wins, wherever it stands.
#[test]
fn the_secret_of_both_ends_is_chosen() {
    let text = |order: [&str; 3]| {
        let connection = "connections { a { remote_addrs = 192.0.2.2\n local { auth = psk\n id = us }\n \
             remote { auth = psk\n id = them }\n children { n { local_ts = 10.1.0.0/16\n \
             remote_ts = 10.2.0.0/16 } } } }\n";
        format!(
            "{connection}secrets {{ {} {} {} }}\n",
            order[0], order[1], order[2]
        )
    };
    let all = "ike-1 { secret = open }";
    let ours = "ike-2 { id = us\n secret = half }";
    let both = "ike-3 { id-1 = us\n id-2 = them\n secret = whole }";
    for order in [[all, ours, both], [both, ours, all], [ours, both, all]] {
        let import = import(&text(order));
        assert_eq!(import.secrets[0].text.as_str(), "whole\n");
    }
    let without = text([all, ours, ""]).replace("id = us\n secret", "id = others\n secret");
    assert_eq!(import(&without).secrets[0].text.as_str(), "open\n");
}

#[test]
fn a_connection_without_its_secret_or_identity_is_refused() {
    let whole = "connections { a { remote_addrs = 192.0.2.2\n local { auth = psk\n id = us }\n \
                 remote { auth = psk\n id = them }\n children { n { local_ts = 10.1.0.0/16\n \
                 remote_ts = 10.2.0.0/16 } } } }\nsecrets { ike { secret = foobar } }\n";
    assert_eq!(import(whole).peers, 1);
    for (right, wrong, why) in [
        ("secret = foobar", "", "no secret"),
        ("secret = foobar", "secret = 0sx", "cannot be decoded"),
        (
            "{ ike {",
            "{ ike { id = others\n",
            "no secret for the two identities",
        ),
        ("id = us", "", "needs an identity"),
        ("id = them", "id = %any", "any identity"),
        ("id = them", "id = \"C=CH, CN=them\"", "distinguished names"),
        (
            "auth = psk\n id = them",
            "auth = pubkey\n id = them",
            "same way",
        ),
        ("auth = psk\n id = us", "auth = xauth\n id = us", "xauth"),
        ("remote_ts = 10.2.0.0/16", "remote_ts = moon", "no address"),
        (
            "local_ts = 10.1.0.0/16",
            "",
            "our address is not in the file",
        ),
    ] {
        assert!(whole.contains(right), "{right}");
        let import = import(&whole.replace(right, wrong));
        assert_eq!(import.peers, 0, "{wrong}");
        let mut notes = import.notes.iter();
        assert!(
            notes.any(|note| note.weight == Refused && note.why.contains(why)),
            "{wrong}: {:#?}",
            import.notes
        );
    }
}
