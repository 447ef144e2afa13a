//! The keys of `[peer.NAME]` about zones, and those of `[peer.NAME.level]`.

use super::show::{joined, list, or, text, word};
use super::{Effect, Key, Read, Shown};
use crate::{Domain, LevelPolicy, Slot, Stance, ZonePolicy};
use model::{Licence, MapKind, Run, ZoneSelector, ZoneSuite};

/// The keys of `[peer.NAME]` about zones. What each may say depends on the others.
pub(crate) const ZONES: &[Key<ZonePolicy>] = &[
    Key {
        name: "zones",
        about: "accept: if the peer agrees; require: or no tunnel; refuse: ESP",
        example: r#""require""#,
        effect: Effect::Anew,
        read: Read::Together,
        show: |zones| word(&Stance::WORDS, &zones.stance),
    },
    Key {
        name: "layout",
        about: "the zones, the same at both ends. An octet belongs to the first zone that matches. \
            \"ip\", \"transport\", or both as \"headers\"; in transport and BEET mode only \
            \"transport\"; \"octets 0-27\" of the headers; \"rtp 16384-32767\": the RTP header, if \
            both ports are in the range; last \"payload\", the rest. A zone can have its own \
            suite: { zone = \"headers\", suite = \"chacha20poly1305\" }. These suites are for \
            zones only: aes128ctr-sha256; aes128gmac, which does not encrypt; aes128-sha256_256 \
            with the whole HMAC; all also with aes256, sha384 and sha512",
        example: r#"["ip", "transport", "payload"]"#,
        effect: Effect::Anew,
        read: Read::Together,
        show: |zones| {
            list(
                zones
                    .layout
                    .iter()
                    .map(|&(selector, suite)| zone(selector, suite)),
            )
        },
    },
    Key {
        name: "map",
        about: "fixed zones: each packet with zones has this many octets of headers at its start, \
            the same at both ends, and no map of its own. This saves 4 octets and hides the length \
            of the headers. Other packets (headers with SACK, ICMP) are sealed as a whole and \
            closed to licensed nodes. Over IPv4, UDP has 28 octets, and TCP of Linux 52. Default: \
            a map in each packet",
        example: r#"["52 headers"]"#,
        effect: Effect::Anew,
        read: Read::Together,
        show: |zones| map(zones),
    },
    Key {
        name: "licences",
        about: "Nodes that may read zones, if the peer agrees. \"headers\": IP and transport \
            header. The payload is closed unless a licence names \"payload\". `right = \"write\"`: \
            also lower the TCP window, if \"headers\" is the first zone. `right = \"inject\"`: \
            repeat our last TCP headers while we are out of reach, so that connections survive an \
            outage. `at` limits a licence to places: it applies while a care-of address or an \
            outer address of the mobile node is in the list. Each such node gets its own keys, and \
            cannot read after a move. `node = \"*.sat.example.net\"` licenses every node of a \
            domain, each with its own keys and at its place, and never the payload: up to \
            `at_most` at once, default 4. The end with the keys has a [licensed.NAME] with `ca` \
            for each, the other end none. A key is sent only if both ends list the licence. \
            `strata reload` grants and revokes licences without interrupting traffic. Foreign \
            agents that are licensed nodes read only while alice visits them, if alice agrees.",
        example: r#"[{ node = "fa.example.net", zones = ["headers"], right = "read" }]"#,
        effect: Effect::Rekeyed,
        read: Read::Together,
        show: |zones| licences(zones),
    },
    Key {
        name: "handover",
        about: "how nodes get keys, the same at both ends. \"push\": from the gateway, after the \
            mobile node has arrived. \"pkd\": from the gateway, in advance, so that a move needs \
            no message; nodes list `neighbours` for that. \"dkm\": first from the previous node, \
            by a token that the next node gets with the Mobile IP registration; nodes have \
            [neighbour.NAME]. Default \"push\"",
        example: r#""pkd""#,
        effect: Effect::Applied,
        read: Read::Together,
        show: |zones| text(zones.handover.name()),
    },
    Key {
        name: "holders",
        about: "with \"pkd\": most nodes with the same rights that share keys, 2 to 32, the same \
            at both ends. A move among them needs no new keys. A previous node can read until the \
            next keys, which are made before a further node would need them, for the current node \
            and the first of its `neighbours`. Default: each node has its own keys",
        example: "2",
        effect: Effect::Applied,
        read: Read::Together,
        show: |zones| or("none", zones.holders),
    },
    Key {
        name: "shared",
        about: "several nodes may have the key of the same zone, if the peer agrees: each can \
            forge data that the other accepts, although neither endpoint does",
        example: "true",
        effect: Effect::Applied,
        read: Read::Together,
        show: |zones| text(zones.shared),
    },
];

/// The keys of `[peer.NAME.level]`.
pub(crate) const LEVEL: &[Key<LevelPolicy>] = &[
    Key {
        name: "level.integrity",
        about: "`integrity` selects these packets, and limits them in each direction.",
        example: r#"{ ports = "5004-5005", packets = 1000000, seconds = 3600 }"#,
        effect: Effect::Anew,
        read: Read::Part,
        show: |level| or("none", level.integrity),
    },
    Key {
        name: "level.every",
        about: "encrypt one in this many of them nevertheless; 0: none, 1: all",
        example: "5",
        effect: Effect::Applied,
        read: Read::Part,
        show: |level| text(level.every),
    },
    Key {
        name: "level.opaque_below",
        about: "below this loss rate of received packets, no node needs to repair losses, and sent \
            packets are closed to licensed nodes. Works without `integrity`",
        example: r#""1%""#,
        effect: Effect::Applied,
        read: Read::Part,
        show: |level| share(level.opaque_below),
    },
];

fn zone(selector: ZoneSelector, suite: Option<ZoneSuite>) -> String {
    match suite {
        Some(suite) => format!("{selector} with {suite}"),
        None => selector.to_string(),
    }
}

fn map(zones: &ZonePolicy) -> Shown {
    match &zones.map {
        MapKind::Changeable => text("changeable"),
        MapKind::Fixed(runs) => {
            let run = |run: &Run| format!("{} {}", run.len, zones.name(run.zone));
            list(runs.iter().map(run))
        }
    }
}

fn licences(zones: &ZonePolicy) -> Shown {
    let everywhere = zones.licences.iter().map(|one| licence(one, zones));
    let slots = zones.slots.iter();
    let slots = slots.flat_map(|slot| slot_licences(slot, zones));
    let domains = zones.domains.iter();
    let domains = domains.flat_map(|domain| domain_licences(domain, zones));
    list(everywhere.chain(slots).chain(domains))
}

/// Formats the licences of all nodes of a domain.
fn domain_licences(domain: &Domain, zones: &ZonePolicy) -> Vec<String> {
    let Domain {
        node: _,
        most,
        licences,
    } = domain;
    let licences = licences.iter();
    let each = licences.map(|one| format!("{} at most {most}", licence(one, zones)));
    each.collect()
}

fn licence(licence: &Licence, zones: &ZonePolicy) -> String {
    let Licence { node, zone, right } = licence;
    let zone = zones.name(*zone);
    format!("{node} {} {zone}", right.name())
}

/// Formats the licences that apply at the place of one node.
fn slot_licences(slot: &Slot, zones: &ZonePolicy) -> Vec<String> {
    let Slot {
        node: _,
        at,
        licences,
    } = slot;
    let at = joined(at);
    let licences = licences.iter();
    let there = licences.map(|one| format!("{} at {at}", licence(one, zones)));
    there.collect()
}

/// Formats a loss rate in ten-thousandths.
fn share(share: u16) -> Shown {
    match share {
        0 => text("never"),
        share => text(format_args!("{}.{:02}%", share / 100, share % 100)),
    }
}
