//! The keys of the tables about this host: identity, tunnel device, sockets, files and pools.

use super::show::{certificates, file, list, or, revocation_list, size, text, word};
use super::{DAY, Effect, Key, Read, SECOND, Shown, own, put, time};
use crate::config::{group, socket_path};
use crate::reader::Value;
use crate::{
    Aead, Audit, Config, Host, Listen, LogLevel, MetricsAddress, Offload, PathMtu, Pool, Redirect,
    Sessions, Tunnel, When, credential, listen, pool, revocation, tunnel,
};

/// The keys of `[node]`. Peers were authenticated when an SA was established, so another
/// certificate does not end it. A revocation list that revokes the peer's certificate does, and
/// the SA is not established again.
pub(crate) const NODE: &[Key<Config>] = &[
    Key {
        name: "id",
        about: "our identity: a mail address, a name or an IP address",
        example: r#""gw.example.net""#,
        effect: Effect::Anew,
        read: Read::Required(|value, config| put(&mut config.identity, value.identity())),
        show: |config| text(&config.identity),
    },
    Key {
        name: "cert",
        about: "our certificate, with `id` as a name, then intermediates",
        example: r#""gw.pem""#,
        effect: Effect::Applied,
        read: Read::Together,
        show: |config| certificates(config.chain()),
    },
    Key {
        name: "key",
        about: "its private key: Ed25519, ECDSA or RSA, mode 0600",
        example: r#""gw.key""#,
        effect: Effect::Applied,
        read: Read::Together,
        show: |config| {
            Shown::Key(
                config
                    .credential
                    .as_ref()
                    .map(|own| own.key.public().clone()),
            )
        },
    },
    Key {
        name: "ca",
        about: "trusted CAs",
        example: r#"["ca.pem"]"#,
        effect: Effect::Applied,
        read: Read::Optional(|value, config| {
            put(&mut config.authorities, credential::authorities(value))
        }),
        show: |config| certificates(&config.authorities),
    },
    Key {
        name: "crl",
        about: "their revocation lists; SAs of revoked certificates are closed",
        example: r#"["ca.crl"]"#,
        effect: Effect::Applied,
        read: Read::Optional(|value, config| put(&mut config.lists, revocation::lists(value))),
        show: |config| list(config.lists.iter().map(revocation_list)),
    },
    Key {
        name: "revocation",
        about: "\"strict\": each certificate needs a current revocation list",
        example: r#""strict""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, config| {
            put(&mut config.revocation, revocation::status(value))
        }),
        show: |config| word(&revocation::WORDS, &config.revocation),
    },
    Key {
        name: "aead",
        about: "\"ipsec-mb\": AES-GCM of the package libipsec-mb1, faster on processors with \
            AVX-512; \"auto\": ipsec-mb if installed",
        example: r#""auto""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, config| put(&mut config.aead, value.choice(&Aead::WORDS))),
        show: |config| word(&Aead::WORDS, &config.aead),
    },
];

/// The keys of `[tunnel]`.
pub(crate) const TUNNEL: &[Key<Tunnel>] = &[
    Key {
        name: "name",
        about: "name of the device",
        example: r#""strata1""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, tunnel| put(&mut tunnel.name, value.interface())),
        show: |tunnel| text(&tunnel.name),
    },
    Key {
        name: "mtu",
        about: "longest inner packet; the default fits an outer MTU of 1500",
        example: "1300",
        effect: Effect::Restart,
        read: Read::Optional(|value, tunnel| put(&mut tunnel.mtu, tunnel::mtu(value))),
        show: |tunnel| text(tunnel.mtu),
    },
    Key {
        name: "clamp",
        about: "clamp the MSS of TCP connections to the MTU, which also works where ICMP is \
            dropped",
        example: "false",
        effect: Effect::Applied,
        read: Read::Optional(|value, tunnel| put(&mut tunnel.clamp, value.boolean())),
        show: |tunnel| text(tunnel.clamp),
    },
    Key {
        name: "path_mtu",
        about: "outer packets are not fragmented: probes find the length that the path carries. \
            \"icmp\": routers report it; \"off\": packets may be fragmented",
        example: r#""icmp""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, tunnel| {
            put(&mut tunnel.path_mtu, value.choice(&PathMtu::WORDS))
        }),
        show: |tunnel| word(&PathMtu::WORDS, &tunnel.path_mtu),
    },
    Key {
        name: "offload",
        about: "\"off\": read and write packets one by one, for kernels and drivers whose \
            segmentation offload is faulty",
        example: r#""off""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, tunnel| {
            put(&mut tunnel.offload, value.choice(&Offload::WORDS))
        }),
        show: |tunnel| word(&Offload::WORDS, &tunnel.offload),
    },
    Key {
        name: "workers",
        about: "threads that seal and open packets, up to 32. On a gateway with one busy processor \
            (`top -H`), use one for each processor",
        example: "3",
        effect: Effect::Restart,
        read: Read::Optional(|value, tunnel| put(&mut tunnel.workers, tunnel::workers(value))),
        show: |tunnel| text(tunnel.workers),
    },
    Key {
        name: "addresses",
        about: "our inner addresses, set on the device",
        example: r#"["10.1.0.2/32"]"#,
        effect: Effect::Restart,
        read: Read::Optional(|value, tunnel| {
            put(&mut tunnel.addresses, value.list(Value::interface_address))
        }),
        show: |tunnel| list(&tunnel.addresses),
    },
    Key {
        name: "dns",
        about: "name servers of this host while a tunnel is up",
        example: r#"["10.8.0.53"]"#,
        effect: Effect::Applied,
        read: Read::Optional(|value, tunnel| put(&mut tunnel.dns, value.list(Value::address))),
        show: |tunnel| list(&tunnel.dns),
    },
    Key {
        name: "resolver",
        about: "file that lists them; default: its manager, if there is one",
        example: r#""/etc/resolv.conf""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, tunnel| {
            put(&mut tunnel.resolver, value.absolute_path().map(Some))
        }),
        show: |tunnel| file(tunnel.resolver.as_deref()),
    },
    Key {
        name: "resolve_via",
        about: "name servers for an `address` that is a name, asked outside of all tunnels. \
            Default: those of the network",
        example: r#"["9.9.9.9"]"#,
        effect: Effect::Applied,
        read: Read::Optional(|value, tunnel| {
            put(&mut tunnel.resolve_via, value.list(Value::address))
        }),
        show: |tunnel| list(&tunnel.resolve_via),
    },
];

/// The keys of `[listen]`.
pub(crate) const LISTEN: &[Key<Listen>] = &[
    Key {
        name: "addresses",
        about: "default: every address",
        example: r#"["198.51.100.7"]"#,
        effect: Effect::Restart,
        read: Read::Optional(|value, listen| {
            put(&mut listen.addresses, value.list(Value::address))
        }),
        show: |listen| list(&listen.addresses),
    },
    Key {
        name: "ike",
        about: "UDP port of IKE",
        example: "501",
        effect: Effect::Restart,
        read: Read::Optional(|value, listen| put(&mut listen.ike, value.port())),
        show: |listen| text(listen.ike),
    },
    Key {
        name: "nat",
        about: "UDP port of IKE behind a NAT, and of ESP in UDP",
        example: "4501",
        effect: Effect::Restart,
        read: Read::Optional(|value, listen| put(&mut listen.nat, value.port())),
        show: |listen| text(listen.nat),
    },
    Key {
        name: "encapsulation",
        about: "ESP in UDP; \"nat\": only if one end detects a NAT or requests UDP, otherwise \
            protocol 50, which is 8 octets shorter but dropped by some networks",
        example: r#""nat""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, listen| {
            put(&mut listen.encapsulation, listen::encapsulation(value))
        }),
        show: |listen| text(listen.encapsulation.name()),
    },
    Key {
        name: "tcp",
        about: "also accept peers by TCP; default: none",
        example: "4500",
        effect: Effect::Restart,
        read: Read::Optional(|value, listen| put(&mut listen.tcp, value.port().map(Some))),
        show: |listen| or("none", listen.tcp),
    },
    Key {
        name: "fragment",
        about: "longest IP datagram of IKE. Longer messages are sent as IKE fragments, because \
            firewalls drop IP fragments; 0: never",
        example: "1400",
        effect: Effect::Applied,
        read: Read::Optional(|value, listen| put(&mut listen.fragment, listen::fragment(value))),
        show: |listen| text(listen.fragment),
    },
];

/// The keys of `[control]`.
pub(crate) const CONTROL: &[Key<Config>] = &[
    Key {
        name: "socket",
        about: "socket on which `strata` reaches `stratad`",
        example: r#""/run/strata/strata.sock""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, config| put(&mut config.socket, socket_path(value))),
        show: |config| text(config.socket.display()),
    },
    Key {
        name: "group",
        about: "group whose members may use the commands that change nothing and show no keys; \
            default: none",
        example: r#""strata""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, config| put(&mut config.readers, group(value).map(Some))),
        show: |config| or("none", config.readers.as_ref()),
    },
];

/// The key of `[metrics]`.
pub(crate) const METRICS: &[Key<Config>] = &[Key {
    name: "listen",
    about: "address and port, or path of a Unix socket, at which Prometheus reads counters; default: \
        none",
    example: r#""127.0.0.1:9580""#,
    effect: Effect::Applied,
    read: Read::Optional(|value, config| {
        put(&mut config.metrics, MetricsAddress::read(value).map(Some))
    }),
    show: |config| or("none", config.metrics.as_ref()),
}];

/// The keys of `[log]`.
pub(crate) const LOG: &[Key<Config>] = &[
    Key {
        name: "level",
        about: "error, warn, info, debug, trace",
        example: r#""debug""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, config| put(&mut config.log, value.choice(&LogLevel::WORDS))),
        show: |config| text(config.log),
    },
    Key {
        name: "peers",
        about: "`debug` and `trace` lines are about these peers only; `*` is any text, `?` one \
            character; default: about all",
        example: r#"["office"]"#,
        effect: Effect::Applied,
        read: Read::Optional(|value, config| {
            let names = value.list(|name| name.text().map(str::to_owned));
            put(&mut config.log_peers, names)
        }),
        show: |config| match config.log_peers.as_slice() {
            [] => text("all"),
            peers => list(peers),
        },
    },
];

/// The keys of `[audit]`.
pub(crate) const AUDIT: &[Key<Option<Audit>>] = &[
    Key {
        name: "file",
        about: "`strata audit` shows it; `strata reload` reopens it",
        example: r#""/var/log/strata/audit.jsonl""#,
        effect: Effect::Applied,
        read: Read::Required(|value, audit| put(&mut own(audit).file, value.absolute_path())),
        show: |audit| file(audit.as_ref().map(|audit| audit.file.as_path())),
    },
    Key {
        name: "required",
        about: "send a key only after its line is on disk",
        example: "true",
        effect: Effect::Applied,
        read: Read::Optional(|value, audit| put(&mut own(audit).required, value.boolean())),
        show: |audit| text(audit.as_ref().is_some_and(|audit| audit.required)),
    },
];

/// The key of `[store]`.
pub(crate) const STORE: &[Key<Config>] = &[Key {
    name: "file",
    about: "file of the leases, readable by its owner only",
    example: r#""/var/lib/strata/strata.redb""#,
    effect: Effect::Restart,
    read: Read::Optional(|value, config| put(&mut config.store, value.absolute_path())),
    show: |config| text(config.store.display()),
}];

/// The keys of `[sessions]`.
pub(crate) const SESSIONS: &[Key<Sessions>] = &[
    Key {
        name: "clocked",
        about: "longest time since a full exchange after which a peer may resume its session",
        example: r#""2h""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, sessions| {
            put(
                &mut sessions.clocked,
                value.duration(60 * SECOND..=30 * DAY),
            )
        }),
        show: |sessions| text(time(sessions.clocked)),
    },
    Key {
        name: "established",
        about: "the same for the time that its tunnels were up since; default: no limit",
        example: r#""2h""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, sessions| {
            put(
                &mut sessions.established,
                value.duration(60 * SECOND..=30 * DAY).map(Some),
            )
        }),
        show: |sessions| or("no limit", sessions.established.map(time)),
    },
    Key {
        name: "data",
        about: "the same for the octets of all packets that its tunnels carried since; default: no \
            limit",
        example: r#""50MiB""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, sessions| {
            put(&mut sessions.data, value.size(1 << 20..=1 << 40).map(Some))
        }),
        show: |sessions| or("no limit", sessions.data.map(size)),
    },
    Key {
        name: "tickets_by_value",
        about: "tickets have the session in them, encrypted, and we keep only which are void; default: \
            false",
        example: "true",
        effect: Effect::Applied,
        read: Read::Optional(|value, sessions| {
            put(&mut sessions.tickets_by_value, value.boolean())
        }),
        show: |sessions| text(sessions.tickets_by_value),
    },
    Key {
        name: "file",
        about: "file that keeps sessions if stratad is killed, with a key beside it, both readable by \
            their owner only; default: they end with it",
        example: r#""/var/lib/strata/sessions.redb""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, sessions| {
            put(&mut sessions.file, value.absolute_path().map(Some))
        }),
        show: |sessions| file(sessions.file.as_deref()),
    },
    Key {
        name: "crash_tokens",
        about: "prove to peers that their tunnels are lost after stratad was killed (RFC 6290); \
            default: true",
        example: "false",
        effect: Effect::Restart,
        read: Read::Optional(|value, sessions| put(&mut sessions.crash_tokens, value.boolean())),
        show: |sessions| text(sessions.crash_tokens),
    },
];

/// The keys of `[pool.NAME]`. A peer learns all of them when its address is assigned, so a change
/// re-establishes its SA.
pub(crate) const POOL: &[Key<Pool>] = &[
    Key {
        name: "addresses",
        about: "prefixes with addresses to lease",
        example: r#"["10.9.0.0/24"]"#,
        effect: Effect::Anew,
        read: Read::Required(|value, pool| put(&mut pool.addresses, pool::prefixes(value))),
        show: |pool| list(&pool.addresses),
    },
    Key {
        name: "dns",
        about: "name servers that are sent to peers",
        example: r#"["10.8.0.53"]"#,
        effect: Effect::Anew,
        read: Read::Optional(|value, pool| put(&mut pool.dns, value.list(Value::address))),
        show: |pool| list(&pool.dns),
    },
    Key {
        name: "subnets",
        about: "networks behind this gateway, announced to peers that route only these; default: \
            their `local`",
        example: r#"["10.8.0.0/16"]"#,
        effect: Effect::Anew,
        read: Read::Optional(|value, pool| put(&mut pool.subnets, pool::subnets(value))),
        show: |pool| list(&pool.subnets),
    },
    Key {
        name: "lease",
        about: "time until an unused address is free again",
        example: r#""8h""#,
        effect: Effect::Anew,
        read: Read::Optional(|value, pool| {
            put(&mut pool.lease, value.duration(60 * SECOND..=365 * DAY))
        }),
        show: |pool| text(time(pool.lease)),
    },
];

/// The keys of `[redirect]`. A redirect is decided when a peer initiates.
pub(crate) const REDIRECT: &[Key<Option<Redirect>>] = &[
    Key {
        name: "to",
        about: "address or name of the other gateway; peers look the name up",
        example: r#""192.0.2.7""#,
        effect: Effect::Applied,
        read: Read::Required(|value, redirect| put(&mut own(redirect).to, Host::read(value))),
        show: |redirect| or("none", redirect.as_ref().map(|redirect| &redirect.to)),
    },
    Key {
        name: "when",
        about: "after the peer has authenticated; \"init\": at its first message",
        example: r#""init""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, redirect| {
            put(&mut own(redirect).when, value.choice(&When::WORDS))
        }),
        show: |redirect| {
            word(
                &When::WORDS,
                &redirect
                    .as_ref()
                    .map_or(When::Auth, |redirect| redirect.when),
            )
        },
    },
];
