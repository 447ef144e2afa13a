//! `[peer.NAME.level]`: packets to and from a peer that may go without encryption.

use crate::ZonePolicy;
use crate::reader::{Table, Value};
use crate::zone::{Stance, no_zones};
use model::{Class, Dscp, LevelGrant, Pictures, Span};

/// Names of classes of service (RFC 2474, 2597 and 3246).
const CLASSES: [(&str, u8); 21] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
];

/// The policy on levels of protection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelPolicy {
    /// `integrity`: the datagrams that may go without encryption if the peer agrees, with limits on
    /// their number and on the time. Default none.
    pub integrity: Option<LevelGrant>,
    /// `every`: one in this many of them is encrypted nevertheless; 1 encrypts all, 0 none. Default
    /// 0.
    pub every: u32,
    /// `opaque_below`: loss rate of received packets, in ten-thousandths, below which all sent
    /// packets are opaque, because no node needs to repair losses. 0.01 % to 50 %. Default 0, which
    /// disables it.
    pub opaque_below: u16,
}

impl LevelPolicy {
    pub(crate) fn read(table: &mut Table<'_>, zones: &ZonePolicy) -> Self {
        let refused = zones.stance == Stance::Refuse;
        let policy = table.optional("level", |value| match refused {
            true => no_zones(value, "`level` requires zones", "`level`"),
            false => level(value),
        });
        policy.unwrap_or_default()
    }
}

fn level(value: &Value<'_>) -> Option<LevelPolicy> {
    let mut table = value.table()?;
    let example = "{ ports = \"5004-5005\", packets = 1000000, seconds = 3600 }";
    let opaque_below = table.optional("opaque_below", share);
    let integrity = match table.value("opaque_below") {
        Some(_) => table.optional("integrity", integrity),
        None => Some(table.required("integrity", example, integrity)?),
    };
    let every = table.optional("every", |value| value.number(0..=u32::MAX));
    table.finish();
    Some(LevelPolicy {
        integrity,
        every: every.unwrap_or_default(),
        opaque_below: opaque_below.unwrap_or_default(),
    })
}

/// Reads a percentage such as `1%` or `0.25%`, in ten-thousandths.
fn share(value: &Value<'_>) -> Option<u16> {
    value.accepts(|| "0.01% to 50%".to_owned());
    let text = value.text()?;
    let read = || {
        let percent = text.strip_suffix('%')?;
        let (whole, part) = percent.split_once('.').unwrap_or((percent, "0"));
        let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
        let part =
            (part.len() <= 2 && digits(part) && digits(whole)).then(|| format!("{part:0<2}"))?;
        let whole = whole.parse::<u16>().ok()?.checked_mul(100)?;
        whole.checked_add(part.parse().ok()?)
    };
    let share = read().filter(|share| (1..=5000).contains(share));
    share.or_else(|| {
        value.fault(
            format!(
                "`{}` is not a percentage from 0.01% to 50%",
                text.escape_debug()
            ),
            "write it like \"1%\"",
        )
    })
}

fn integrity(value: &Value<'_>) -> Option<LevelGrant> {
    let mut table = value.table()?;
    let mut there = |key| table.value(key).is_some();
    let inside = there("rtp") || there("mpeg");
    let named = there("ports") || !inside && (there("protocol") || there("dscp"));
    let protocols = [("tcp", 6), ("udp", 17), ("icmp", 1), ("icmpv6", 58)];
    let marker = [("marked", true), ("unmarked", false)];
    let class = Class {
        protocol: table.optional("protocol", |value| value.choice(&protocols)),
        ports: table.optional("ports", ports),
        dscp: table.optional("dscp", dscp),
        marker: table.optional("rtp", |value| value.choice(&marker)),
        pictures: table.optional("mpeg", pictures),
    };
    let most = |value: &Value<'_>| value.number(1..=u32::MAX);
    let packets = table.required("packets", "1000000", most);
    let seconds = table.required("seconds", "3600", most);
    let renewals = table.optional("renewals", |value| {
        u16::try_from(value.number(0..=u16::MAX.into())?).ok()
    });
    table.finish();
    if !named {
        return value.fault(
            "`integrity` does not select packets: it needs `ports`, `protocol` or `dscp`, and `ports` with `rtp` or `mpeg`",
            "add `ports`, like \"5004-5005\"",
        );
    }
    class.is_named().then_some(())?;
    Some(LevelGrant {
        class,
        packets: packets?,
        seconds: seconds?,
        renewals: renewals.unwrap_or_default(),
    })
}

/// Reads ports such as `5004` or `5004-5005`.
fn ports(value: &Value<'_>) -> Option<Span> {
    value.accepts(|| "port or range of ports".to_owned());
    let text = value.text()?;
    let one = || {
        let port = text.parse().ok()?;
        Span::new(port, port)
    };
    text.parse().ok().or_else(one).or_else(|| {
        value.fault(
            format!(
                "`{}` is not a port or a range of ports",
                text.escape_debug()
            ),
            "write a port like \"5004\", or a range like \"5004-5005\"",
        )
    })
}

/// Reads a DSCP: a name, or a number in range.
fn dscp(value: &Value<'_>) -> Option<u8> {
    match value.is_text() {
        true => value.choice(&CLASSES),
        false => u8::try_from(value.number(0..=Dscp::HIGHEST.into())?).ok(),
    }
}

fn pictures(value: &Value<'_>) -> Option<Pictures> {
    value.accepts(|| "letters of I, P, B and D".to_owned());
    let text = value.text()?;
    Pictures::from_letters(text).or_else(|| {
        value.fault(
            format!("`{}` is not a list of MPEG pictures", text.escape_debug()),
            "write letters of I, P, B and D, like \"PB\"",
        )
    })
}
