//! The differences that a changed file causes, key by key.

use super::{Folder, OFFICE};
use crate::keys::{described, sections};
use crate::{Change, Config, Effect, What};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Every key, with a value that is not its default.
pub(super) const FULL: &str = r#"[node]
id = "gw.example.net"
cert = "first.pem"
key = "first.key"
ca = ["first.pem"]
crl = ["mobile.crl"]
revocation = "strict"
aead = "auto"
[tunnel]
name = "strata1"
mtu = 1300
clamp = false
path_mtu = "icmp"
offload = "off"
workers = 3
addresses = ["10.8.0.1/16"]
dns = ["10.1.0.53"]
resolver = "/etc/other.conf"
resolve_via = ["9.9.9.9"]
[listen]
addresses = ["198.51.100.7"]
ike = 501
nat = 4501
encapsulation = "nat"
tcp = 4500
fragment = 1400
[control]
socket = "/run/other.sock"
group = "other"
[metrics]
listen = "127.0.0.1:9581"
[log]
level = "warn"
peers = ["alice"]
[audit]
file = "/var/log/other.jsonl"
required = true
[peer.alice]
address = "192.0.2.1"
id = "alice@example.net"
psk = "alice.psk"
reauth = "10h"
suite = "aes256gcm16"
window = 8
kem = "mlkem1024"
groups = "p256"
liveness = "20s"
ike_rekey = "2h"
local = ["10.8.0.0/16"]
remote = ["10.1.0.2/32"]
start = "manual"
leak = "never"
rekey = "40m"
pfs = false
mobike = "off"
clone = true
probe_paths = "30s"
resources = 4
nat = "forbidden"
resume = "ticket"
redirect = ["192.0.2.64/28"]
tcp = "fallback"
tcp_port = 443
dscp = "copy"
tfc = "mtu"
cover = 20
ppk = { id = "office2026", key = "alice.ppk", required = false }
zones = "require"
layout = ["headers", "rtp 5004-5007", "payload"]
map = ["28 headers"]
licences = [{ node = "fa.example.net", zones = ["headers"], right = "read", at = ["198.51.100.2"] }]
handover = "pkd"
shared = true
[peer.alice.level]
integrity = { protocol = "udp", ports = "5004-5005", dscp = "af41", rtp = "unmarked", mpeg = "PB", packets = 77, seconds = 60, renewals = 23 }
every = 5
opaque_below = "1.5%"
[peer.alice.child.voice]
local = ["10.18.0.0/16"]
remote = ["10.1.7.0/24"]
start = "manual"
rekey = "30m"
pfs = true
[peer.carol]
id = "carol@example.net"
psk = "carol.psk"
local = ["10.8.0.0/16"]
pool = "office"
zones = "accept"
licences = [{ node = "fb.example.net", zones = ["headers"], right = "read", at = ["198.51.100.3"] }, { node = "fc.example.net", zones = ["headers"], right = "read", at = ["198.51.100.4"] }]
handover = "pkd"
holders = 2
[peer.dave]
address = "192.0.2.4"
id = "dave.example.net"
psk = "carol.psk"
local = ["dynamic"]
remote = ["10.7.0.0/16"]
dns = "from-peer"
routes = "subnets"
[peer.staff]
id = "*@staff.example.net"
local = ["10.8.0.0/16"]
pool = "spare"
ca = "second.pem"
ou = "Staff"
users = 200
unique = "keep"
[peer.erin]
address = "192.0.2.5"
id = "erin@example.net"
pubkey = "second.pub"
local = ["10.8.0.1/32"]
remote = ["10.6.0.1/32"]
esn = true
paths = 2
traffic = [{ interface = "wwan0", remote = ["10.6.0.1/32 udp 5060-5061"] }]
unencrypted = { suite = "null-sha256", until = 2026-12-24T18:00:00Z }
mode = "beet"
[peer.erin.child.voice]
remote = ["10.6.0.2/32"]
mode = "beet"
[pool.office]
addresses = ["10.19.0.0/24"]
dns = ["10.8.0.53"]
subnets = ["10.8.1.0/24"]
lease = "8h"
[pool.spare]
addresses = ["10.20.0.0/24"]
[store]
file = "/var/lib/other/strata.redb"
[sessions]
clocked = "3h"
established = "90m"
data = "50MiB"
tickets_by_value = true
file = "/var/lib/other/sessions.redb"
crash_tokens = false
[licensed.fd]
address = "10.3.0.8"
id = "fd.example.net"
ca = "second.pem"
ou = "Nodes"
[licensed.fc]
address = "10.3.0.9"
id = "fc.example.net"
pubkey = "second.pub"
[licensed.fa]
address = "10.3.0.1"
at = ["10.3.1.0/24"]
id = "fa.example.net"
psk = "fa.psk"
reauth = "10h"
suite = "aes256gcm16"
window = 9
kem = "mlkem1024"
groups = "p256"
liveness = "20s"
ike_rekey = "2h"
[gateway.g4]
id = "g4.example.net"
ca = "second.pem"
ou = "Gateways"
[gateway.g3]
id = "g3.example.net"
pubkey = "second.pub"
[gateway.gw]
address = "10.3.0.2"
id = "other.example.net"
psk = "gw.psk"
reauth = "10h"
suite = "aes256gcm16"
window = 10
kem = "mlkem1024"
groups = "p256"
liveness = "20s"
ike_rekey = "2h"
[[policy]]
action = "discard"
remote = "10.8.9.0/24"
protocol = "tcp"
ports = 25
[redirect]
to = "192.0.2.70"
when = "init"
[divert]
wired = "eth1"
wireless = "wlan1"
clear_tcp = true
offload = "off"
[neighbour.n4]
id = "n4.example.net"
ca = "second.pem"
ou = "Neighbours"
[neighbour.n2]
id = "n2.example.net"
pubkey = "second.pub"
[neighbour.fe]
address = "10.3.0.5"
id = "fe.example.net"
psk = "carol.psk"
reauth = "12h"
suite = "aes256gcm16"
window = 11
kem = "mlkem1024"
groups = "p384"
liveness = "25s"
ike_rekey = "5h"
[snoop]
enabled = false
flows = 100
packets = 100
octets = "1MiB"
[regulate]
window = "64KiB"
[handover]
neighbours = ["fc.example.net"]
[stand_in]
after = "1500ms"
limit = "7m"
"#;

/// One change of each key: the key, its text, the replacement, and the effect.
const CHANGES: &[(&str, &str, &str, Effect)] = {
    use Effect::{Anew, Applied, Rekeyed, Restart};
    &[
        ("node.id", "id = \"gw", "id = \"gate", Anew),
        ("node.cert", "cert = \"first", "cert = \"renewed", Applied),
        (
            "node.ca",
            "ca = [\"first.pem\"",
            "ca = [\"first.pem\", \"second.pem\"",
            Applied,
        ),
        ("node.crl", "crl = [\"mobile", "crl = [\"gateway", Applied),
        ("node.revocation", "\"strict\"", "\"relaxed\"", Applied),
        (
            "node.aead",
            "aead = \"auto\"",
            "aead = \"ipsec-mb\"",
            Restart,
        ),
        ("tunnel.name", "strata1", "strata2", Restart),
        ("tunnel.mtu", "1300", "1301", Restart),
        ("tunnel.clamp", "clamp = false", "clamp = true", Applied),
        ("tunnel.path_mtu", "\"icmp\"", "\"off\"", Applied),
        ("tunnel.offload", "\"off\"", "\"auto\"", Restart),
        ("tunnel.workers", "workers = 3", "workers = 2", Restart),
        ("tunnel.addresses", "0.1/16\"", "0.2/16\"", Restart),
        ("tunnel.dns", "10.1.0.53", "10.1.0.54", Applied),
        ("tunnel.resolver", "other.conf", "another.conf", Restart),
        ("tunnel.resolve_via", "9.9.9.9", "9.9.9.10", Applied),
        ("listen.addresses", "100.7", "100.8", Restart),
        ("listen.ike", "ike = 501", "ike = 500", Restart),
        ("listen.nat", "nat = 4501", "nat = 4500", Restart),
        (
            "listen.encapsulation",
            "encapsulation = \"nat\"",
            "encapsulation = \"always\"",
            Restart,
        ),
        ("listen.tcp", "tcp = 4500", "tcp = 443", Restart),
        (
            "listen.fragment",
            "fragment = 1400",
            "fragment = 0",
            Applied,
        ),
        ("control.socket", "other.sock", "another.sock", Restart),
        ("control.group", "\"other\"", "\"another\"", Restart),
        ("metrics.listen", ":9581", ":9582", Applied),
        ("log.level", "warn", "debug", Applied),
        (
            "log.peers",
            "peers = [\"alice\"]",
            "peers = [\"al*\"]",
            Applied,
        ),
        ("audit.file", "other.jsonl", "another.jsonl", Applied),
        (
            "audit.required",
            "required = true",
            "required = false",
            Applied,
        ),
        ("peer.alice.address", "192.0.2.1", "192.0.2.9", Anew),
        ("peer.alice.id", "alice@example.net", "al@example.net", Anew),
        ("peer.alice.psk", "alice.psk", "office.psk", Anew),
        (
            "peer.erin.pubkey",
            "second.pub\"\nlocal",
            "first.pub\"\nlocal",
            Anew,
        ),
        (
            "licensed.fc.pubkey",
            "second.pub\"\n[licensed",
            "first.pub\"\n[licensed",
            Anew,
        ),
        (
            "gateway.g3.pubkey",
            "second.pub\"\n[gateway",
            "first.pub\"\n[gateway",
            Anew,
        ),
        ("peer.alice.suite", "aes256gcm16", "aes128gcm16", Anew),
        ("peer.alice.groups", "p256", "x25519", Anew),
        ("peer.alice.kem", "mlkem1024", "mlkem768", Anew),
        ("peer.erin.unencrypted", "null-sha256", "null-sha512", Anew),
        ("peer.erin.unencrypted", "Z }", "Z, packets = 9 }", Anew),
        ("peer.alice.liveness", "20s", "1500ms", Applied),
        ("peer.alice.local", "[\"10.8.0.0/16", "[\"10.8.0.0/17", Anew),
        ("peer.alice.remote", "10.1.0.2/32", "10.1.0.3/32", Anew),
        ("peer.alice.start", "manual", "auto", Applied),
        ("peer.alice.rekey", "40m", "50m", Applied),
        ("peer.alice.pfs", "pfs = false", "pfs = true", Applied),
        (
            "peer.alice.child.voice.local",
            "10.18.0.0/16",
            "10.18.0.0/17",
            Anew,
        ),
        (
            "peer.alice.child.voice.remote",
            "10.1.7.0/24",
            "10.1.7.0/25",
            Anew,
        ),
        (
            "peer.alice.child.voice.start",
            "start = \"manual\"\nrekey = \"30m\"",
            "start = \"auto\"\nrekey = \"30m\"",
            Applied,
        ),
        ("peer.alice.child.voice.rekey", "30m", "20m", Applied),
        (
            "peer.alice.child.voice.pfs",
            "pfs = true",
            "pfs = false",
            Applied,
        ),
        (
            "peer.alice.child.video",
            "[peer.carol]",
            "[peer.alice.child.video]\nremote = [\"10.1.8.0/24\"]\n[peer.carol]",
            Applied,
        ),
        (
            "peer.alice.mobike",
            "mobike = \"off\"",
            "mobike = \"on\"",
            Anew,
        ),
        ("peer.alice.clone", "clone = true", "clone = false", Anew),
        (
            "peer.alice.probe_paths",
            "probe_paths = \"30s\"",
            "probe_paths = \"off\"",
            Anew,
        ),
        (
            "peer.alice.resources",
            "resources = 4",
            "resources = 8",
            Anew,
        ),
        ("peer.erin.esn", "esn = true\n", "", Anew),
        ("peer.erin.paths", "paths = 2\n", "paths = 3\n", Anew),
        ("peer.erin.traffic", "5060-5061", "5060-5069", Applied),
        ("peer.erin.mode", "mode = \"beet\"\n", "", Anew),
        (
            "peer.erin.child.voice.mode",
            "mode = \"beet\"\n[pool",
            "mode = \"tunnel\"\n[pool",
            Anew,
        ),
        ("peer.alice.dscp", "dscp = \"copy\"", "dscp = 46", Applied),
        (
            "peer.alice.tfc",
            "tfc = \"mtu\"\n",
            "tfc = \"buckets\"\n",
            Applied,
        ),
        ("peer.alice.cover", "cover = 20", "cover = 10", Applied),
        (
            "peer.alice.level.integrity",
            "packets = 77,",
            "packets = 78,",
            Anew,
        ),
        ("peer.alice.level.every", "every = 5", "every = 10", Applied),
        ("peer.alice.level.opaque_below", "1.5%", "1.25%", Applied),
        ("peer.alice.nat", "forbidden", "allowed", Anew),
        ("peer.alice.redirect", "64/28", "64/27", Applied),
        ("peer.alice.tcp", "\"fallback\"", "\"always\"", Anew),
        ("peer.alice.tcp_port", "= 443", "= 4500", Anew),
        ("redirect.to", "192.0.2.70", "192.0.2.71", Applied),
        ("redirect.when", "\"init\"", "\"auth\"", Applied),
        ("peer.alice.ppk", "office2026", "office2027", Anew),
        (
            "peer.alice.ppk",
            "required = false",
            "required = true",
            Anew,
        ),
        ("peer.alice.ppk.key", "alice.ppk", "office.ppk", Anew),
        ("peer.alice.ike_rekey", "2h", "3h", Applied),
        (
            "licensed.fa.ike_rekey",
            "\"2h\"\n[gateway",
            "\"3h\"\n[gateway",
            Applied,
        ),
        (
            "gateway.gw.ike_rekey",
            "\"2h\"\n[[policy",
            "\"3h\"\n[[policy",
            Applied,
        ),
        ("peer.alice.window", "window = 8\n", "window = 7\n", Applied),
        ("licensed.fa.window", "window = 9\n", "", Applied),
        ("gateway.gw.window", "window = 10", "window = 11", Applied),
        ("neighbour.fe.address", "10.3.0.5", "10.3.0.6", Anew),
        ("neighbour.fe.id", "fe.example.net", "ff.example.net", Anew),
        (
            "neighbour.fe.psk",
            "fe.example.net\"\npsk = \"carol",
            "fe.example.net\"\npsk = \"office",
            Anew,
        ),
        (
            "neighbour.n2.pubkey",
            "second.pub\"\n[neighbour",
            "first.pub\"\n[neighbour",
            Anew,
        ),
        ("neighbour.fe.reauth", "12h", "13h", Applied),
        (
            "neighbour.fe.suite",
            "12h\"\nsuite = \"aes256",
            "12h\"\nsuite = \"aes128",
            Anew,
        ),
        ("neighbour.fe.window", "window = 11", "window = 12", Applied),
        (
            "neighbour.fe.kem",
            "mlkem1024\"\ngroups = \"p384",
            "mlkem768\"\ngroups = \"p384",
            Anew,
        ),
        ("neighbour.fe.groups", "p384", "x25519", Anew),
        ("neighbour.fe.liveness", "25s", "26s", Applied),
        ("neighbour.fe.ike_rekey", "\"5h", "\"6h", Applied),
        ("peer.alice.reauth", "10h", "11h", Applied),
        (
            "licensed.fa.reauth",
            "fa.psk\"\nreauth = \"10h\"",
            "fa.psk\"\nreauth = \"11h\"",
            Applied,
        ),
        (
            "gateway.gw.reauth",
            "gw.psk\"\nreauth = \"10h\"\n",
            "gw.psk\"\n",
            Applied,
        ),
        ("peer.alice.leak", "never", "stopped", Applied),
        ("peer.alice.zones", "\"require\"", "\"accept\"", Anew),
        ("peer.alice.layout", "rtp 5004-5007", "rtp 5004-5005", Anew),
        ("peer.alice.map", "\"28 headers\"", "\"40 headers\"", Anew),
        (
            "peer.alice.shared",
            "shared = true",
            "shared = false",
            Applied,
        ),
        ("peer.alice.handover", "\"pkd\"", "\"push\"", Applied),
        ("peer.carol.holders", "holders = 2", "holders = 3", Applied),
        ("handover.neighbours", "[\"fc.", "[\"fd.", Applied),
        (
            "peer.alice.licences",
            "[\"headers\"]",
            "[\"headers\", \"payload\"]",
            Rekeyed,
        ),
        ("peer.carol.pool", "pool = \"office", "pool = \"spare", Anew),
        ("peer.dave.dns", "dns = \"from-peer\"\n", "", Applied),
        (
            "peer.dave.routes",
            "routes = \"subnets\"",
            "routes = \"remote\"",
            Applied,
        ),
        (
            "peer.staff.ca",
            "ca = \"second.pem\"\nou = \"Staff",
            "ca = \"renewed.pem\"\nou = \"Staff",
            Anew,
        ),
        ("peer.staff.ou", "ou = \"Staff", "ou = \"Other", Anew),
        (
            "licensed.fd.ca",
            "ca = \"second.pem\"\nou = \"Nodes",
            "ca = \"renewed.pem\"\nou = \"Nodes",
            Anew,
        ),
        ("licensed.fd.ou", "ou = \"Nodes", "ou = \"Other", Anew),
        (
            "gateway.g4.ca",
            "ca = \"second.pem\"\nou = \"Gateways",
            "ca = \"renewed.pem\"\nou = \"Gateways",
            Anew,
        ),
        ("gateway.g4.ou", "ou = \"Gateways", "ou = \"Other", Anew),
        (
            "neighbour.n4.ca",
            "ca = \"second.pem\"\nou = \"Neighbours",
            "ca = \"renewed.pem\"\nou = \"Neighbours",
            Anew,
        ),
        ("neighbour.n4.ou", "ou = \"Neighbours", "ou = \"Other", Anew),
        ("peer.staff.users", "users = 200", "users = 300", Applied),
        (
            "peer.staff.unique",
            "unique = \"keep\"",
            "unique = \"never\"",
            Anew,
        ),
        (
            "pool.office.addresses",
            "10.19.0.0/24",
            "10.19.1.0/24",
            Anew,
        ),
        (
            "pool.office.dns",
            "[\"10.8.0.53\"]",
            "[\"10.8.0.54\"]",
            Anew,
        ),
        (
            "pool.office.subnets",
            "[\"10.8.1.0/24\"]",
            "[\"10.8.2.0/24\"]",
            Anew,
        ),
        ("pool.office.lease", "8h", "9h", Anew),
        (
            "store.file",
            "/var/lib/other/strata",
            "/var/lib/another/strata",
            Restart,
        ),
        ("sessions.clocked", "\"3h\"", "\"4h\"", Applied),
        ("sessions.established", "90m", "80m", Applied),
        ("sessions.data", "50MiB", "20MiB", Applied),
        (
            "sessions.tickets_by_value",
            "tickets_by_value = true",
            "tickets_by_value = false",
            Applied,
        ),
        (
            "sessions.file",
            "/var/lib/other/sessions",
            "/var/lib/another/sessions",
            Restart,
        ),
        (
            "sessions.crash_tokens",
            "crash_tokens = false",
            "crash_tokens = true",
            Restart,
        ),
        ("licensed.fa.address", "10.3.0.1", "10.3.0.3", Anew),
        ("licensed.fa.at", "10.3.1.0/24", "10.3.2.0/24", Applied),
        (
            "licensed.fa.id",
            "\"fa.example.net\"\npsk",
            "\"fb.example.net\"\npsk",
            Anew,
        ),
        ("licensed.fa.psk", "fa.psk", "office.psk", Anew),
        (
            "licensed.fa.kem",
            "mlkem1024\"\ngroups = \"p256\"\nliveness = \"20s\"\nike_rekey = \"2h\"\n[gateway",
            "mlkem768\"\ngroups = \"p256\"\nliveness = \"20s\"\nike_rekey = \"2h\"\n[gateway",
            Anew,
        ),
        (
            "licensed.fa.groups",
            "p256\"\nliveness = \"20s\"\nike_rekey = \"2h\"\n[gateway",
            "x25519\"\nliveness = \"20s\"\nike_rekey = \"2h\"\n[gateway",
            Anew,
        ),
        (
            "licensed.fa.suite",
            "fa.psk\"\nreauth = \"10h\"\nsuite = \"aes256",
            "fa.psk\"\nreauth = \"10h\"\nsuite = \"aes128",
            Anew,
        ),
        (
            "licensed.fa.liveness",
            "\"20s\"\nike_rekey = \"2h\"\n[gateway",
            "\"21s\"\nike_rekey = \"2h\"\n[gateway",
            Applied,
        ),
        ("gateway.gw.address", "10.3.0.2", "10.3.0.4", Anew),
        (
            "gateway.gw.id",
            "other.example.net",
            "another.example.net",
            Anew,
        ),
        ("gateway.gw.psk", "gw.psk", "office.psk", Anew),
        (
            "gateway.gw.kem",
            "mlkem1024\"\ngroups = \"p256\"\nliveness = \"20s\"\nike_rekey = \"2h\"\n[[policy",
            "mlkem768\"\ngroups = \"p256\"\nliveness = \"20s\"\nike_rekey = \"2h\"\n[[policy",
            Anew,
        ),
        (
            "gateway.gw.groups",
            "p256\"\nliveness = \"20s\"\nike_rekey = \"2h\"\n[[policy",
            "x25519\"\nliveness = \"20s\"\nike_rekey = \"2h\"\n[[policy",
            Anew,
        ),
        (
            "gateway.gw.suite",
            "gw.psk\"\nreauth = \"10h\"\nsuite = \"aes256",
            "gw.psk\"\nreauth = \"10h\"\nsuite = \"aes128",
            Anew,
        ),
        (
            "gateway.gw.liveness",
            "\"20s\"\nike_rekey = \"2h\"\n[[policy",
            "\"21s\"\nike_rekey = \"2h\"\n[[policy",
            Applied,
        ),
        (
            "policy[0]",
            "discard\"\nremote = \"10.8.9.0/24\"\nprotocol = \"tcp\"\nports = 25",
            "bypass\"\nremote = \"10.8.9.0/24\"",
            Applied,
        ),
        ("policy[0]", "10.8.9.0/24", "10.8.8.0/24", Applied),
        (
            "policy[0]",
            "protocol = \"tcp\"",
            "protocol = \"udp\"",
            Applied,
        ),
        ("policy[0]", "ports = 25", "ports = \"25-26\"", Applied),
        ("divert.wired", "eth1", "eth2", Restart),
        ("divert.wireless", "wlan1", "wlan2", Restart),
        (
            "divert.clear_tcp",
            "clear_tcp = true",
            "clear_tcp = false",
            Restart,
        ),
        (
            "divert.offload",
            "clear_tcp = true\noffload = \"off\"",
            "clear_tcp = true\noffload = \"auto\"",
            Restart,
        ),
        (
            "snoop.enabled",
            "enabled = false",
            "enabled = true",
            Applied,
        ),
        ("snoop.flows", "flows = 100", "flows = 101", Applied),
        ("snoop.packets", "packets = 100", "packets = 101", Applied),
        ("snoop.octets", "1MiB", "2000KiB", Applied),
        ("regulate.window", "64KiB", "65KiB", Applied),
        ("stand_in.after", "1500ms", "1600ms", Applied),
        ("stand_in.limit", "\"7m\"", "\"8m\"", Applied),
        (
            "peer.bob",
            "[licensed.fa]",
            "[peer.bob]\nid = \"b\"\npsk = \"gw.psk\"\nlocal = [\"10.0.0.0/8\"]\nremote = [\"10.9.0.0/16\"]\n[licensed.fa]",
            Applied,
        ),
        (
            "licensed.fb",
            "[licensed.fa]",
            "[licensed.fb]\nid = \"b\"\npsk = \"gw.psk\"\naddress = \"192.0.2.2\"\n[licensed.fa]",
            Applied,
        ),
        (
            "gateway.g2",
            "[gateway.gw]",
            "[gateway.g2]\nid = \"b\"\npsk = \"gw.psk\"\n[gateway.gw]",
            Applied,
        ),
        (
            "neighbour.fg",
            "[neighbour.fe]",
            "[neighbour.fg]\nid = \"b\"\npsk = \"gw.psk\"\n[neighbour.fe]",
            Applied,
        ),
        (
            "policy[1]",
            "[divert]",
            "[[policy]]\naction = \"bypass\"\nremote = \"10.9.0.0/16\"\n[divert]",
            Applied,
        ),
    ]
};

/// Files made by openssl: a certificate, its renewal, and one for another key; both public keys.
const CERTIFICATES: [&str; 7] = [
    "first.pem",
    "first.key",
    "first.pub",
    "renewed.pem",
    "second.pem",
    "second.key",
    "second.pub",
];

/// Revocation lists.
const LISTS: [&str; 2] = ["mobile.crl", "gateway.crl"];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.key("office.psk", b"another key that is long enough\n", 0o600);
    folder.key("carol.psk", b"a third key that is long enough\n", 0o600);
    folder.key("alice.ppk", &super::varied(b"0123456789abcdef", 64), 0o600);
    folder.key("office.ppk", &super::varied(b"fedcba9876543210", 64), 0o600);
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/certificates");
    for name in CERTIFICATES {
        folder.key(name, &fs::read(made.join(name)).unwrap(), 0o600);
    }
    for name in LISTS {
        folder.key(name, &super::certificates::list(name), 0o600);
    }
    folder
}

/// Returns the dotted keys of all settings.
fn keys(config: &Config) -> BTreeSet<String> {
    let sections = sections(config);
    let dotted = sections.iter().flat_map(|section| {
        let settings = section.settings.iter();
        settings.map(|setting| section.dotted(setting))
    });
    dotted.collect()
}

/// Maps the keys of tables of one kind to the same table, because they behave alike.
fn kind(key: &str) -> String {
    let peers = [".carol.", ".dave.", ".erin.", ".staff."];
    let key = peers
        .iter()
        .fold(key.to_owned(), |key, peer| key.replace(peer, ".alice."));
    key.replace(".spare.", ".office.")
        .replace(".fc.", ".fa.")
        .replace(".fd.", ".fa.")
        .replace(".g3.", ".gw.")
        .replace(".g4.", ".gw.")
        .replace(".n2.", ".fe.")
        .replace(".n4.", ".fe.")
}

fn kinds(config: &Config) -> BTreeSet<String> {
    keys(config).iter().map(|key| kind(key)).collect()
}

#[test]
fn every_key_says_what_happens_when_it_changes() {
    let folder = folder();
    let full = folder.load(FULL).unwrap();
    for &(key, from, to, effect) in CHANGES {
        assert!(FULL.contains(from), "{key}");
        let new = folder.load(&FULL.replacen(from, to, 1)).unwrap();
        let [change] = &full.diff(&new)[..] else {
            panic!("{key}: {:?}", full.diff(&new));
        };
        assert_eq!((change.key.as_str(), change.effect), (key, effect));
        let back = &new.diff(&full)[..];
        assert_eq!((back.len(), back[0].effect), (1, effect), "{key}");
    }
    let changed: BTreeSet<_> = CHANGES.iter().map(|change| kind(change.0)).collect();
    assert!(changed.len() >= 109, "{} kinds of keys", changed.len());
    let keys = kinds(&full);
    let others: Vec<_> = keys.difference(&changed).collect();
    let (others, new): (Vec<_>, Vec<_>) = others.into_iter().partition(|key| *key == "node.key");
    assert_eq!(others, ["node.key"], "it fits no other certificate");
    for key in new {
        let key = key
            .strip_prefix("peer.alice.")
            .expect("a change of each key");
        changes_by_its_example(&folder, key);
    }
}

/// A key of a peer needs no other test of its effect than the example in its row, if the key needs
/// no other keys.
fn changes_by_its_example(folder: &Folder, key: &str) {
    let rows = described();
    let row = rows
        .iter()
        .find(|row| (row.table, row.key) == ("peer.NAME", key));
    let row = row.unwrap_or_else(|| panic!("{key} has no row"));
    let plain = folder.load(OFFICE).unwrap();
    let set = folder
        .load(&format!("{OFFICE}{key} = {}\n", row.example))
        .unwrap();
    let [change] = &plain.diff(&set)[..] else {
        panic!("{key}: {:?}", plain.diff(&set));
    };
    let name = format!("peer.office.{key}");
    assert_eq!(
        (change.key.as_str(), change.effect),
        (name.as_str(), row.effect)
    );
}

/// Most keys of a peer change by the example in their row. The others need a file, another key, or
/// another place.
#[test]
fn the_examples_of_a_peers_keys_are_other_values_than_the_defaults() {
    let folder = folder();
    let written = ["address", "id", "psk", "local", "remote"];
    let needing = [
        "pubkey", "pool", "dns", "routes", "cover", "ppk", "mode", "layout", "map", "licences",
        "handover", "holders", "shared", "users", "ca", "ou", "traffic",
    ];
    let rows = described()
        .into_iter()
        .filter(|row| row.table == "peer.NAME");
    let rows = rows.filter(|row| !row.key.starts_with("level."));
    let alone: Vec<_> = rows
        .map(|row| row.key)
        .filter(|key| !written.contains(key) && !needing.contains(key))
        .collect();
    assert!(alone.len() >= 22, "{alone:?}");
    for key in alone {
        changes_by_its_example(&folder, key);
    }
}

#[test]
fn a_certificate_is_shown_and_its_key_is_not() {
    let folder = folder();
    let old = folder.load(FULL).unwrap();
    let text = FULL.replacen("cert = \"first", "cert = \"second", 1);
    let new = folder.load(&text.replace("first.key", "second.key"));
    let changes = old.diff(&new.unwrap());
    let [cert, key] = &changes[..] else {
        panic!("{changes:?}");
    };
    let What::Changed { before, after } = &cert.what else {
        panic!("{cert:?}");
    };
    assert!(before.starts_with("[CN=gw until 21") && before != after);
    let hidden = Change {
        key: "node.key".to_owned(),
        what: What::SecretChanged,
        effect: Effect::Applied,
    };
    assert_eq!(key, &hidden);
}

/// The certificate is renewed in place, so the configuration file itself does not change.
#[test]
fn a_certificate_renewed_under_its_name_is_a_change() {
    let folder = folder();
    let old = folder.load(FULL).unwrap();
    let renewed = fs::read(folder.path().join("renewed.pem")).unwrap();
    folder.key("first.pem", &renewed, 0o600);
    let changes = old.diff(&folder.load(FULL).unwrap());
    let keys: Vec<_> = changes.iter().map(|change| change.key.as_str()).collect();
    assert_eq!(keys, ["node.cert", "node.ca"]);
}

/// If the reader knew a key that the comparison does not, a change of that key would have no effect
/// and no message.
#[test]
fn every_key_that_can_be_written_is_compared() {
    let full = folder().load(FULL).unwrap();
    let compared = keys(&full);
    let places: BTreeSet<_> = full.places.keys().map(kind).collect();
    for key in full.places.keys() {
        let below = |outer: &str, inner: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        let mut compared = compared.iter();
        let known = compared.any(|known| known == key || below(known, key) || below(key, known));
        assert!(known, "{key} is in no setting");
    }
    let examples: BTreeSet<_> = described()
        .iter()
        .filter(|row| row.table == "peer.NAME")
        .map(|row| format!("peer.alice.{}", row.key))
        .collect();
    for key in &kinds(&full) {
        let is_written = places.iter().any(|place| place.starts_with(key.as_str()));
        assert!(
            is_written || examples.contains(key),
            "{key} is not in the full file"
        );
    }
}

#[test]
fn the_same_in_other_words_is_no_change() {
    let folder = folder();
    let config = folder.load(FULL).unwrap();
    let other = FULL
        .replace("suite = \"aes256gcm16\"", "suite = [\"aes256gcm16\"]")
        .replace("20s", "20000ms")
        .replace("1MiB", "1024KiB")
        .replace("[[policy]]", "# a remark\n[[policy]]");
    assert_eq!(config.diff(&folder.load(&other).unwrap()), []);
    let brief = "[node]\nid = \"a\"\n[gateway.gw]\nid = \"b\"\npsk = \"gw.psk\"\n[divert]\nwired = \"a\"\nwireless = \"b\"\n";
    let long = format!("{brief}[listen]\nike = 500\n[snoop]\nenabled = true\n");
    let (brief, long) = (folder.load(brief).unwrap(), folder.load(&long).unwrap());
    assert_eq!(brief.diff(&long), []);
}

#[test]
fn a_secret_is_compared_by_its_octets_and_never_shown() {
    let folder = folder();
    let old = folder.load(FULL).unwrap();
    folder.key("alice.psk", b"5994471abb01112afcc18159f6cc74b4\n", 0o600);
    let changes = old.diff(&folder.load(FULL).unwrap());
    assert_eq!(
        changes,
        [Change {
            key: "peer.alice.psk".to_owned(),
            what: What::SecretChanged,
            effect: Effect::Anew
        }]
    );
    let shown = format!("{changes:?}");
    assert!(
        !shown.contains("fedcba") && !shown.contains("102"),
        "{shown}"
    );
}

#[test]
fn values_are_shown_as_a_person_writes_them() {
    let folder = folder();
    // Without an address, a peer can have neither `redirect` nor `tcp`.
    let full = FULL.replace("redirect = [\"192.0.2.64/28\"]\n", "");
    let full = full.replace("tcp = \"fallback\"\n", "");
    let old = folder.load(&full).unwrap();
    let values = |from: &str, to: &str| {
        let new = folder.load(&full.replacen(from, to, 1)).unwrap();
        match &old.diff(&new)[0].what {
            What::Changed { before, after } => format!("{before} -> {after}"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(values("20s", "1500ms"), "20s -> 1500ms");
    assert_eq!(values("20s", "60s"), "20s -> 1m");
    assert_eq!(values("20s", "3600s"), "20s -> 1h");
    assert_eq!(values("20s", "61s"), "20s -> 61s");
    assert_eq!(values("1MiB", "66000B"), "1MiB -> 66000B");
    assert_eq!(values("address = \"192.0.2.1\"\n", ""), "192.0.2.1 -> any");
    assert_eq!(
        values("[\"headers\"]", "[\"headers\", \"payload\"]"),
        "[fa.example.net read headers at [198.51.100.2/32]] -> [fa.example.net read headers at [198.51.100.2/32], fa.example.net read payload at [198.51.100.2/32]]"
    );
    assert_eq!(
        values("ports = 25", "ports = 26"),
        "discard 10.8.9.0/24 protocol 6 ports 25-25 -> discard 10.8.9.0/24 protocol 6 ports 26-26"
    );
}

#[test]
fn what_needs_a_restart_stays_and_is_told_again_the_next_time() {
    let folder = folder();
    let running = folder.load(FULL).unwrap();
    for &(key, from, to, effect) in CHANGES {
        let new = folder.load(&FULL.replacen(from, to, 1)).unwrap();
        let kept = new.clone().keeping(&running);
        let left = kept.diff(&new);
        assert_eq!(left.len(), usize::from(effect == Effect::Restart), "{key}");
        assert!(
            kept.diff(&running)
                .iter()
                .all(|change| change.effect != Effect::Restart)
        );
    }
    let (diverted, plain) = (
        FULL.to_owned(),
        FULL[..FULL.find("[divert]").unwrap()].to_owned(),
    );
    let changes = running.diff(&folder.load(&plain).unwrap());
    let divert = changes.iter().find(|change| change.key == "divert");
    assert_eq!(
        divert.map(|change| (&change.what, change.effect)),
        Some((&What::Removed, Effect::Restart))
    );
    let kept = folder.load(&plain).unwrap().keeping(&running);
    assert_eq!(kept.divert, folder.load(&diverted).unwrap().divert);
}

#[test]
fn a_key_is_found_on_its_line_and_one_left_out_on_that_of_its_table() {
    let config = folder().load(FULL).unwrap();
    let line = |key: &str| {
        config
            .places
            .line(key)
            .map(|line| FULL.lines().nth(line - 1))
    };
    assert_eq!(
        line("peer.alice.liveness"),
        Some(Some("liveness = \"20s\""))
    );
    assert_eq!(line("peer.alice.nothing"), Some(Some("[peer.alice]")));
    assert_eq!(
        line("licensed.fa.id"),
        Some(Some("id = \"fa.example.net\""))
    );
    assert_eq!(line("node.id"), Some(Some("id = \"gw.example.net\"")));
    assert_eq!(line("pear.alice.id"), None);
}
