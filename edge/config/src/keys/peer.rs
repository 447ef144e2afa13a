//! The keys of `[peer.NAME]` and `[peer.NAME.child.NAME]`.

use super::show::{list, or, secret, selectors, text, word};
use super::{DAY, Effect, HOUR, Key, Read, SECOND, put, small, time};
use crate::mode::mode;
use crate::peer::{NAT, selectors as selectors_of};
use crate::ppk::ppk;
use crate::reader::Value;
use crate::tfc::{cover, tfc};
use crate::traffic::traffic;
use crate::unencrypted::unencrypted;
use crate::users::MOST_USERS;
use crate::{Addressing, Child, Leak, Peer, Ppk, Resume, Routing, Start, Tcp, peer};
use model::{Features, MOST_PATHS, MOST_RESOURCES, Unique};
use std::time::Duration;

/// The values of `mobike`.
const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

/// The other keys of `[peer.NAME]`, without those of zones.
pub(crate) const PEER: &[Key<Peer>] = &[
    Key {
        name: "address",
        about: "with an address we initiate, without one the peer does. A name like \
            \"gw.example.net\" is looked up for each attempt. A port may follow: \
            \"gw.example.net:4501\". A link-local address has its interface: \"fe80::1%eth0\"",
        example: r#""192.0.2.1""#,
        effect: Effect::Anew,
        read: Read::Optional(peer::address),
        show: |peer| or("any", peer.address.as_ref()),
    },
    Key {
        name: "local",
        about: "our end of the traffic; [\"dynamic\"]: an address that the gateway assigns us, \
            without `addresses` in [tunnel]",
        example: r#"["10.1.0.2/32"]"#,
        effect: Effect::Anew,
        read: Read::Required(peer::local),
        show: |peer| selectors(&peer.local, peer.addressing == Addressing::Requested),
    },
    Key {
        name: "remote",
        about: "the peer's end of the traffic; for one service only: \"10.8.0.0/16 tcp 443\" or \
            \"10.8.0.0/16 udp 5000-5010\", and all other packets to the prefix are dropped",
        example: r#"["10.8.0.0/16"]"#,
        effect: Effect::Anew,
        read: Read::Unless("pool", peer::remote),
        show: |peer| selectors(&peer.remote, peer.pool().is_some()),
    },
    Key {
        name: "mode",
        about: "\"transport\": between two hosts, with `address` as `remote` and no NAT on the \
            path; several in `local` or `remote`: the host may have any, and moves between them; \
            \"beet\": one inner address at each end, whatever the addresses outside. Both save a \
            header and have no zone \"ip\"",
        example: r#""beet""#,
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| put(&mut peer.mode, mode(value))),
        show: |peer| text(peer.mode),
    },
    Key {
        name: "pool",
        about: "the peer leases an address of this [pool.NAME]",
        example: r#""office""#,
        effect: Effect::Anew,
        read: Read::Optional(peer::pool),
        show: |peer| or("none", peer.pool()),
    },
    Key {
        name: "users",
        about: "with a pattern as `id`: most users at once, up to 100000",
        example: "200",
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.users, value.number(1..=MOST_USERS))),
        show: |peer| text(peer.users),
    },
    Key {
        name: "unique",
        about: "a second tunnel of one identity, from another address: \"replace\": replaces the \
            first; \"keep\": is refused while the first is up; \"never\": stays beside it, with an \
            address of its own from `pool`, up to 16 of them",
        example: r#""keep""#,
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| put(&mut peer.unique, value.choice(&Unique::WORDS))),
        show: |peer| word(&Unique::WORDS, &peer.unique),
    },
    Key {
        name: "dns",
        about: "with \"dynamic\": use the name servers that the gateway sends",
        example: r#""from-peer""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| {
            put(
                &mut peer.dns_from_peer,
                value.choice(&[("from-peer", true)]),
            )
        }),
        show: |peer| {
            text(if peer.dns_from_peer {
                "from-peer"
            } else {
                "none"
            })
        },
    },
    Key {
        name: "routes",
        about: "\"subnets\", with \"dynamic\" only: route into the tunnel only the subnets of \
            `remote` that the gateway announces",
        example: r#""subnets""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.routes, value.choice(&Routing::WORDS))),
        show: |peer| word(&Routing::WORDS, &peer.routes),
    },
    Key {
        name: "start",
        about: "\"manual\": wait for `strata up office`",
        example: r#""manual""#,
        effect: Effect::Applied,
        read: Read::Optional(peer::start),
        show: |peer| word(&Start::WORDS, &peer.start),
    },
    Key {
        name: "leak",
        about: "`remote` is never reached outside the tunnel, also after a stop, until `stratad \
            --unlock`; needs nft. Default \"stopped\": open only after a clean stop",
        example: r#""never""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.leak, value.choice(&Leak::WORDS))),
        show: |peer| word(&Leak::WORDS, &peer.leak),
    },
    Key {
        name: "rekey",
        about: "lifetime of the keys of the tunnel",
        example: r#""40m""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.rekey, value.duration(SECOND..=DAY))),
        show: |peer| text(time(peer.rekey)),
    },
    Key {
        name: "pfs",
        about: "a key exchange for each rekey, if the peer supports it; with `kem`, an additional \
            one as well",
        example: "false",
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.pfs, value.boolean())),
        show: |peer| text(peer.pfs),
    },
    Key {
        name: "mobike",
        about: "the tunnel moves when our address changes; \"off\": it is closed and established \
            again",
        example: r#""off""#,
        effect: Effect::Anew,
        read: Read::Late(mobike),
        show: |peer| word(&SWITCH, &peer.features.mobike),
    },
    Key {
        name: "clone",
        about: "true at both ends: the tunnel moves without a pause while its path works, by a \
            second IKE SA (RFC 7791) that replaces the first",
        example: "true",
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| put(&mut peer.features.clones, value.boolean())),
        show: |peer| text(peer.features.clones),
    },
    Key {
        name: "probe_paths",
        about: "with `clone`: interval at which two requests measure the path in use and one of \
            the others, so that a path that loses packets is left before it is dead; \"off\": never",
        example: r#""30s""#,
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| put(&mut peer.features.probes, probes(value))),
        show: |peer| match peer.features.probes {
            Duration::ZERO => text("off"),
            every => text(time(every)),
        },
    },
    Key {
        name: "resources",
        about: "parallel tunnels for the same traffic, up to 64, one for each processor, if the \
            peer supports it (RFC 9611). A flow stays in one tunnel. Default: the value of \
            `workers`",
        example: "4",
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| {
            put(
                &mut peer.resources,
                small(value, 1..=MOST_RESOURCES).map(Some),
            )
        }),
        show: |peer| or("as workers", peer.resources),
    },
    Key {
        name: "paths",
        about: "above 1, at both ends: so many paths, up to 4, carry packets at the same time, each \
            with a tunnel of its own. A flow stays on one path, and takes another one at once if \
            that fails. Only between Strata hosts. A licence with `at` gives its node the keys of \
            the path that has one of these addresses",
        example: "2",
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| {
            put(&mut peer.features.paths, small(value, 1..=MOST_PATHS))
        }),
        show: |peer| text(peer.features.paths),
    },
    Key {
        name: "traffic",
        about: "with `paths`, at the end that initiates: traffic that goes by certain interfaces, \
            and by any other path while packets cannot leave there or get no answer. Such an \
            interface carries nothing else while another path works",
        example: r#"[{ interface = "wwan0", remote = ["10.8.0.0/16 udp 5060-5061"] }]"#,
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.traffic, traffic(value))),
        show: |peer| list(&peer.traffic),
    },
    Key {
        name: "esn",
        about: "true at both ends: sequence numbers of 64 bits, for more than 2^32 packets between \
            rekeys; only with `zones = \"refuse\"`",
        example: "true",
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| put(&mut peer.features.esn, value.boolean())),
        show: |peer| text(peer.features.esn),
    },
    Key {
        name: "unencrypted",
        about: "tunnels that are authenticated and NOT ENCRYPTED: every router on the path can read \
            them. The same at both ends: [\"aes128gmac\", \"aes256gmac\", \"null-sha256\", \
            \"null-sha384\", \"null-sha512\"], best first, and the time from which the tunnel is \
            encrypted again; at most a year ahead, and only with `zones = \"refuse\"`. It is \
            encrypted earlier once `packets` packets, both ways together, have gone without \
            encryption (default: 1000000000). The count stays at a rekey, at a move, at a \
            re-authentication, and at a reload that does not change the line; it starts at zero \
            when stratad starts",
        example: r#"{ suite = "null-sha256", until = 2026-12-24T18:00:00Z }"#,
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| {
            put(&mut peer.unencrypted, unencrypted(value).map(Some))
        }),
        show: |peer| or("none", peer.unencrypted.as_ref()),
    },
    Key {
        name: "nat",
        about: "\"forbidden\": refuse addresses that a NAT has translated",
        example: r#""forbidden""#,
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| put(&mut peer.features.forbids_nat, value.choice(&NAT))),
        show: |peer| word(&NAT, &peer.features.forbids_nat),
    },
    Key {
        name: "resume",
        about: "\"ticket\" at both ends: a tunnel that was lost comes back by a ticket (RFC 5723), \
            without key exchange and certificates; \"skid3\": within one round trip if both ends \
            are Strata; \"skid3-pfs\": the same with a key exchange. Applies to tunnels that come \
            up from then on",
        example: r#""skid3""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.resume, value.choice(&Resume::WORDS))),
        show: |peer| word(&Resume::WORDS, &peer.resume),
    },
    Key {
        name: "redirect",
        about: "gateways to which the peer may redirect us; with the same `id`",
        example: r#"["192.0.2.64/28"]"#,
        effect: Effect::Applied,
        read: Read::Optional(peer::redirects),
        show: |peer| list(&peer.redirects),
    },
    Key {
        name: "tcp",
        about: "\"fallback\": TCP (RFC 9329) if UDP gets no answer. TCP is slower, and licensed \
            nodes see nothing of it; \"always\": do not try UDP. The peer has to listen on TCP",
        example: r#""fallback""#,
        effect: Effect::Anew,
        read: Read::Optional(peer::tcp),
        show: |peer| word(&Tcp::WORDS, &peer.tcp),
    },
    Key {
        name: "tcp_port",
        about: "TCP port of the peer",
        example: "443",
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| put(&mut peer.tcp_port, value.port())),
        show: |peer| text(peer.tcp_port),
    },
    Key {
        name: "dscp",
        about: "class of service of outer packets; \"copy\": that of the inner packet, which \
            exposes it to all routers; or a number up to 63",
        example: r#""copy""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.dscp, peer::dscp(value))),
        show: |peer| text(peer.dscp),
    },
    Key {
        name: "tfc",
        about: "\"mtu\": pad all packets to the same length, which hides their own; \"buckets\": \
            pad to a few lengths, each twice the one before, which costs less. Applies to packets \
            that we send",
        example: r#""mtu""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.tfc, tfc(value))),
        show: |peer| text(peer.tfc),
    },
    Key {
        name: "cover",
        about: "with `tfc`: fewest packets per second, up to 1000. Dummy packets fill the gaps, \
            which hides when data is sent but uses the bandwidth. Default: none",
        example: "20",
        effect: Effect::Applied,
        read: Read::Optional(|value, peer| put(&mut peer.cover, cover(value).map(Some))),
        show: |peer| or("none", peer.cover),
    },
    Key {
        name: "ppk",
        about: "a secret in addition to `psk` or certificates, against quantum computers: a file \
            like office.psk, with the same id and key at both ends. Add `required = false` to use \
            it only if the peer has it",
        example: r#"{ id = "office2026", key = "office.ppk" }"#,
        effect: Effect::Anew,
        read: Read::Optional(|value, peer| put(&mut peer.ppk, ppk(value).map(Box::new).map(Some))),
        show: |peer| or("none", peer.ppk.as_deref().map(Ppk::shown)),
    },
    Key {
        name: "ppk.key",
        about: "",
        example: "",
        effect: Effect::Anew,
        read: Read::Part,
        show: |peer| secret(peer.ppk.as_ref().map(|ppk| &ppk.key)),
    },
];

/// The keys of `[peer.NAME.child.NAME]`. Those without a text are explained at the peer.
pub(crate) const CHILD: &[Key<Child>] = &[
    Key {
        name: "local",
        about: "",
        example: r#"["10.18.0.0/16"]"#,
        effect: Effect::Anew,
        read: Read::Sound(|value, child| put(&mut child.local, selectors_of(value))),
        show: |child| selectors(&child.local, child.addressing == Addressing::Requested),
    },
    Key {
        name: "remote",
        about: "prefixes of this tunnel; or `local`, or both",
        example: r#"["10.9.0.0/16"]"#,
        effect: Effect::Anew,
        read: Read::Sound(|value, child| put(&mut child.remote, selectors_of(value))),
        show: |child| {
            selectors(
                &child.remote,
                matches!(child.addressing, Addressing::Lent(_)),
            )
        },
    },
    Key {
        name: "mode",
        about: "",
        example: r#""beet""#,
        effect: Effect::Anew,
        read: Read::Optional(|value, child| put(&mut child.mode, mode(value))),
        show: |child| text(child.mode),
    },
    Key {
        name: "start",
        about: "\"manual\": wait for `strata up office --child voice`",
        example: r#""manual""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, child| put(&mut child.start, value.choice(&Start::WORDS))),
        show: |child| word(&Start::WORDS, &child.start),
    },
    Key {
        name: "rekey",
        about: "",
        example: r#""30m""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, child| put(&mut child.rekey, value.duration(SECOND..=DAY))),
        show: |child| text(time(child.rekey)),
    },
    Key {
        name: "pfs",
        about: "",
        example: "false",
        effect: Effect::Applied,
        read: Read::Optional(|value, child| put(&mut child.pfs, value.boolean())),
        show: |child| text(child.pfs),
    },
];

/// Reads `probe_paths`. After a loss, requests follow each other at the shortest interval anyway.
fn probes(value: &Value<'_>) -> Option<Duration> {
    const SHORTEST: Duration = Duration::from_millis(100);
    match value.is_text() && value.text()? == "off" {
        true => Some(Duration::ZERO),
        false => value.duration(SHORTEST..=HOUR),
    }
}

/// Reads `mobike`, which is on unless a tunnel in transport mode has one address at each end.
fn mobike(value: Option<&Value<'_>>, peer: &mut Peer) -> Option<()> {
    let switch = value.and_then(|value| value.choice(&SWITCH));
    let moves = Features::offered().mobike && !peer.is_fixed();
    peer.features.mobike = switch.unwrap_or(moves);
    match value {
        Some(value) if peer.features.mobike && peer.is_fixed() => value.fault(
            "a tunnel in transport mode has one address at each end, so MOBIKE cannot move it",
            "list all addresses of the host that moves, in its `local` and in `remote` at the other \
             end; or write `mobike = \"off\"`, or `mode = \"beet\"`, which can move",
        ),
        _ => Some(()),
    }
}
