//! The keys of the tables about packets that a licensed node forwards.

use super::show::{list, or, size, text, word};
use super::{DAY, Effect, Key, Read, SECOND, own, put, time};
use crate::tunnel::Offload;
use crate::{Config, Divert, Snoop, StandIn, divert, handover};

/// The keys of `[divert]`.
pub(crate) const DIVERT: &[Key<Divert>] = &[
    Key {
        name: "wired",
        about: "towards the gateway",
        example: r#""eth0""#,
        effect: Effect::Restart,
        read: Read::Required(|value, divert| put(&mut divert.wired, value.interface())),
        show: |divert| text(&divert.wired),
    },
    Key {
        name: "wireless",
        about: "towards the mobile nodes",
        example: r#""wlan0""#,
        effect: Effect::Restart,
        read: Read::Required(|value, divert| put(&mut divert.wireless, value.interface())),
        show: |divert| text(&divert.wireless),
    },
    Key {
        name: "clear_tcp",
        about: "true: also examine TCP outside of tunnels",
        example: "true",
        effect: Effect::Restart,
        read: Read::Optional(|value, divert| put(&mut divert.clear_tcp, value.boolean())),
        show: |divert| text(divert.clear_tcp),
    },
    Key {
        name: "offload",
        about: "\"off\": forward packets one by one, for kernels and drivers whose segmentation \
            offload is faulty",
        example: r#""off""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, divert| {
            put(&mut divert.offload, value.choice(&Offload::WORDS))
        }),
        show: |divert| word(&Offload::WORDS, &divert.offload),
    },
];

/// The keys of `[snoop]`.
pub(crate) const SNOOP: &[Key<Option<Snoop>>] = &[
    Key {
        name: "enabled",
        about: "repair losses; false: only read",
        example: "false",
        effect: Effect::Applied,
        read: Read::Optional(|value, snoop| put(&mut own(snoop).enabled, value.boolean())),
        show: |snoop| text(limits(snoop).enabled),
    },
    Key {
        name: "flows",
        about: "TCP connections at the same time, at least 64",
        example: "100",
        effect: Effect::Applied,
        read: Read::Optional(|value, snoop| put(&mut own(snoop).flows, value.number(64..=65_536))),
        show: |snoop| text(limits(snoop).flows),
    },
    Key {
        name: "packets",
        about: "cached packets of one flow",
        example: "100",
        effect: Effect::Applied,
        read: Read::Optional(|value, snoop| put(&mut own(snoop).packets, value.number(16..=4096))),
        show: |snoop| text(limits(snoop).packets),
    },
    Key {
        name: "octets",
        about: "cached octets of all flows",
        example: r#""1MiB""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, snoop| {
            put(&mut own(snoop).octets, value.size(64 << 10..=4 << 30))
        }),
        show: |snoop| text(size(limits(snoop).octets)),
    },
];

/// The key of `[regulate]`.
pub(crate) const REGULATE: &[Key<Config>] = &[Key {
    name: "window",
    about: "largest TCP window, so that senders do not overload the link",
    example: r#""64KiB""#,
    effect: Effect::Applied,
    read: Read::Required(|value, config| {
        put(&mut config.regulate, divert::window(value).map(Some))
    }),
    show: |config| or("none", config.regulate.map(|window| size(window.into()))),
}];

/// The keys of `[stand_in]`.
pub(crate) const STAND_IN: &[Key<Option<StandIn>>] = &[
    Key {
        name: "after",
        about: "time without an expected answer after which this node answers for the mobile node",
        example: r#""1500ms""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, stand_in| {
            put(
                &mut own(stand_in).after,
                value.duration(SECOND / 10..=60 * SECOND),
            )
        }),
        show: |stand_in| or("never", stand_in.map(|stand_in| time(stand_in.after))),
    },
    Key {
        name: "limit",
        about: "longest outage that connections survive",
        example: r#""7m""#,
        effect: Effect::Applied,
        read: Read::Optional(|value, stand_in| {
            put(&mut own(stand_in).limit, value.duration(SECOND..=DAY))
        }),
        show: |stand_in| or("never", stand_in.map(|stand_in| time(stand_in.limit))),
    },
];

/// The key of `[handover]`.
pub(crate) const HANDOVER: &[Key<Config>] = &[Key {
    name: "neighbours",
    about: "nodes to which mobile nodes move from here, the most likely first; they get keys \
            in advance",
    example: r#"["fb.example.net"]"#,
    effect: Effect::Applied,
    read: Read::Required(|value, config| put(&mut config.neighbours, handover::neighbours(value))),
    show: |config| list(&config.neighbours),
}];

/// Returns the limits that apply, also without the table.
fn limits(snoop: &Option<Snoop>) -> Snoop {
    snoop.clone().unwrap_or_default()
}
