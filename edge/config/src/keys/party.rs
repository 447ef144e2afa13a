//! The keys of `[peer.NAME]`, `[licensed.NAME]`, `[gateway.NAME]` and `[neighbour.NAME]` that a
//! party has whatever its kind, and those of the kinds without a tunnel.

use super::show::{certificates, list, or, secret, text};
use super::{DAY, Effect, HOUR, Key, Read, SECOND, put, small, time};
use crate::psk::psk;
use crate::value::NO_KEM;
use crate::{Address, Gateway, Licensed, Neighbour, Party, domain, party};
use model::Kem;

/// The keys that all parties have.
pub(crate) const PARTY: &[Key<Party>] = &[
    Key {
        name: "id",
        about: "identity that the peer has to prove. Default: `address`, if that is a name. In \
            [peer.NAME], \"*@example.net\" or \"*.example.net\" admits everyone with a certificate \
            for such a name, each as a peer of its own; a table for one identity comes first, then \
            that with the longest pattern",
        example: r#""peer.example.net""#,
        effect: Effect::Anew,
        read: Read::Together,
        show: |party| text(&party.identity),
    },
    Key {
        name: "psk",
        about: "a file in this folder, mode 0600; create it with (umask 077; head -c 32 \
            /dev/urandom | base64 > office.psk). Behind `0s` the key is decoded from base64, \
            behind `0x` from hexadecimal digits, as strongSwan does",
        example: r#""office.psk""#,
        effect: Effect::Anew,
        read: Read::Sound(|value, party| put(&mut party.psk, psk(value).map(Some))),
        show: |party| secret(party.psk.as_ref()),
    },
    Key {
        name: "pubkey",
        about: "instead of `psk`: the peer's public key. The peer needs the public key of our \
            `key` in [node]; no certificates are used",
        example: r#""office.pub""#,
        effect: Effect::Anew,
        read: Read::Sound(|value, party| {
            put(
                &mut party.pubkey,
                party::raw_key(value).map(Box::new).map(Some),
            )
        }),
        show: |party| or("none", party.pubkey.as_deref()),
    },
    Key {
        name: "ca",
        about: "only these CAs, instead of those in [node], may issue the peer's certificate. They \
            are trusted for this table alone",
        example: r#""staff-ca.pem""#,
        effect: Effect::Anew,
        read: Read::Sound(|value, party| put(&mut party.authorities, party::authorities(value))),
        show: |party| certificates(&party.authorities),
    },
    Key {
        name: "ou",
        about: "organisational unit that the subject of the peer's certificate must have, in the \
            same spelling",
        example: r#""Staff""#,
        effect: Effect::Anew,
        read: Read::Sound(|value, party| put(&mut party.unit, party::unit(value).map(Some))),
        show: |party| or("any", party.unit.as_ref()),
    },
    Key {
        name: "suite",
        about: "[\"aes128gcm16\", \"aes256gcm16\", \"chacha20poly1305\"], best first. \"strict\": \
            aes256gcm16 with p384. \"legacy\": also the groups modp3072 and modp2048, and without \
            zones AES-CBC: aes256-sha256, or another combination of aes128 and aes256 with sha256, \
            sha384 and sha512",
        example: r#""aes256gcm16""#,
        effect: Effect::Anew,
        read: Read::Optional(party::suites),
        show: |party| list(&party.suites),
    },
    Key {
        name: "groups",
        about: "of the key exchange, best first; default: those of `suite`",
        example: r#""p256""#,
        effect: Effect::Anew,
        read: Read::Optional(|value, party| put(&mut party.groups, value.groups())),
        show: |party| list(&party.groups),
    },
    Key {
        name: "kem",
        about: "an additional key exchange against quantum computers: \"mlkem768\" at both ends, \
            or \"mlkem1024\" or \"mlkem512\". [\"mlkem768\", \"none\"]: only if the peer supports \
            it. Some peers without support refuse this offer, too",
        example: r#""mlkem768""#,
        effect: Effect::Anew,
        read: Read::Optional(|value, party| put(&mut party.kems, value.kems())),
        show: |party| list(party.kems.iter().map(|kem| kem.map_or(NO_KEM, Kem::name))),
    },
    Key {
        name: "liveness",
        about: "silence after which the peer is probed",
        example: r#""20s""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, party| {
            put(&mut party.liveness, value.duration(SECOND..=HOUR))
        }),
        show: |party| text(time(party.liveness)),
    },
    Key {
        name: "ike_rekey",
        about: "lifetime of the keys of the IKE SA",
        example: r#""2h""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, party| {
            put(&mut party.ike_rekey, value.duration(SECOND..=DAY))
        }),
        show: |party| text(time(party.ike_rekey)),
    },
    Key {
        name: "reauth",
        about: "time until both ends re-authenticate, without packet loss. Default: never",
        example: r#""10h""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, party| {
            put(
                &mut party.reauth,
                value.duration(10 * SECOND..=30 * DAY).map(Some),
            )
        }),
        show: |party| or("never", party.reauth.map(time)),
    },
    Key {
        name: "window",
        about: "outstanding IKE requests, up to 64, if the peer allows as many",
        example: "8",
        effect: Effect::Applied,
        read: Read::Optional(|value, party| put(&mut party.window, small(value, 1..=64))),
        show: |party| text(party.window),
    },
];

/// The other keys of `[licensed.NAME]`.
pub(crate) const LICENSED: &[Key<Licensed>] = &[
    Key {
        name: "address",
        about: "address or name of the node, with its port if that is not the usual one; we \
            initiate",
        example: r#""node.example.net""#,
        effect: Effect::Anew,
        read: Read::Required(|value, node| put(&mut node.address, Address::read(value))),
        show: |node| text(&node.address),
    },
    Key {
        name: "at",
        about: "if the node's domain is licensed: the node reads while a care-of address or an \
            outer address of the mobile node is in the list. Default: `address`",
        example: r#"["198.51.100.0/24"]"#,
        effect: Effect::Applied,
        read: Read::Optional(|value, node| put(&mut node.at, domain::place(value))),
        show: |node| list(&node.at),
    },
];

/// The other keys of `[gateway.NAME]`.
pub(crate) const GATEWAY: &[Key<Gateway>] = &[Key {
    name: "address",
    about: "accept connections from this address only",
    example: r#""192.0.2.1""#,
    effect: Effect::Anew,
    read: Read::Optional(|value, gateway| {
        put(&mut gateway.address, Address::read_source(value).map(Some))
    }),
    show: |gateway| or("any", gateway.address.as_ref()),
}];

/// The other keys of `[neighbour.NAME]`.
pub(crate) const NEIGHBOUR: &[Key<Neighbour>] = &[Key {
    name: "address",
    about: "address or name of the neighbour, as of a licensed node; we initiate. At least one of \
        the two nodes needs this",
    example: r#""192.0.2.1""#,
    effect: Effect::Anew,
    read: Read::Optional(|value, neighbour| {
        put(&mut neighbour.address, Address::read(value).map(Some))
    }),
    show: |neighbour| or("any", neighbour.address.as_ref()),
}];
