//! One row for each key of the file.
//!
//! A table of the file is a list of rows. [`Table::read`](crate::reader::Table::read) reads a table
//! by its rows, so the rows are the keys that a table may have, and every other key is unknown.
//! [`sections`] shows a whole configuration by the rows, which [`Config::diff`] compares. The
//! reference page and the examples have their explanations from the rows.
//!
//! The default of a key is the value of its field before its table is read.

mod forward;
mod host;
mod mobility;
mod party;
mod peer;
mod show;
mod zones;

pub(crate) use forward::{DIVERT, HANDOVER, REGULATE, SNOOP, STAND_IN};
pub(crate) use host::{
    AUDIT, CONTROL, LISTEN, LOG, METRICS, NODE, POOL, REDIRECT, SESSIONS, STORE, TUNNEL,
};
pub(crate) use mobility::{
    FOREIGN_AGENT, FOREIGN_NEIGHBOUR, HOME_AGENT, HOME_AGENT_FOREIGN, HOME_AGENT_MOBILE, LISTED,
    LISTED_AGENT, MOBILE, MOBILE_NODE, MOBILE_NODE_AGENT, RESIDENT,
};
pub(crate) use party::{GATEWAY, LICENSED, NEIGHBOUR, PARTY};
pub(crate) use peer::{CHILD, PEER};
pub(crate) use show::{size, time};

use crate::reader::Value;
use crate::{Action, Config, Party, Policy, Psk};
use crypto::PublicKey;
use show::text;
use std::ops::RangeInclusive;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// A key of a table, whose values are in a `T`.
pub(crate) struct Key<T> {
    /// The name of the key below its table.
    pub name: &'static str,
    /// Purpose of the key; empty for a part of another key.
    pub about: &'static str,
    /// A value in the syntax of the file, other than the default.
    pub example: &'static str,
    /// The action that makes a new value effective.
    pub effect: Effect,
    /// Reader of the value.
    pub read: Read<T>,
    /// Returns the value, to compare and to show it.
    pub show: fn(&T) -> Shown,
}

/// Reads a value into its field. Returns `None` after a fault, and the field keeps its default.
type Reader<T> = fn(&Value<'_>, &mut T) -> Option<()>;

/// The kinds of readers of a value.
pub(crate) enum Read<T> {
    /// The key may be left out.
    Optional(Reader<T>),
    /// The key may be left out, but the table is useless if the value is faulty: other checks would
    /// complain about a value that is missing.
    Sound(Reader<T>),
    /// The table is useless without the key.
    Required(Reader<T>),
    /// As `Required`, unless the table has the key of this name.
    Unless(&'static str, Reader<T>),
    /// The value, or the default, depends on other keys: see
    /// [`Table::read_late`](crate::reader::Table::read_late).
    Late(fn(Option<&Value<'_>>, &mut T) -> Option<()>),
    /// The value depends on other keys, and the reader of the table reads it after the rows.
    Together,
    /// The key is a part of the value of another key, which has its own effect.
    Part,
}

/// The action that makes a new value effective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None: the value applies at once.
    Applied,
    /// The affected SAs are rekeyed without interruption.
    Rekeyed,
    /// The affected SAs are closed and established again.
    Anew,
    /// The daemon must be restarted.
    Restart,
}

impl Effect {
    /// Every effect, the smallest first.
    pub const ALL: [Self; 4] = [Self::Applied, Self::Rekeyed, Self::Anew, Self::Restart];

    /// Returns the word for the effect.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Rekeyed => "rekeys",
            Self::Anew => "reconnects",
            Self::Restart => "restart",
        }
    }

    /// Returns what a changed value does, as a predicate.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Applied => "applies at once",
            Self::Rekeyed => {
                "applies after a rekey of the affected SAs, which starts at once; no traffic is interrupted"
            }
            Self::Anew => "closes the affected SAs and establishes them again",
            Self::Restart => "applies after a restart of `stratad`",
        }
    }
}

/// The value of a key, as it is compared and shown.
#[derive(PartialEq, Eq)]
pub(crate) enum Shown {
    Text(String),
    /// A pre-shared key. Never displayed.
    Psk(Option<Psk>),
    /// A private key, compared by its public key. Never displayed.
    Key(Option<PublicKey>),
}

/// A table of the file, or the defaults of a table that was left out.
pub(crate) struct Section {
    /// Dotted name of the table.
    pub name: String,
    /// The effect of adding or removing the table, if it is added or removed as a whole.
    pub whole: Option<Effect>,
    pub settings: Vec<Setting>,
}

/// The value of one key.
pub(crate) struct Setting {
    /// Name of the key below its table; empty if the table itself is the setting.
    pub key: &'static str,
    pub value: Shown,
    pub effect: Effect,
}

/// A key in words, without a value.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// The table, with `NAME` in place of names.
    pub table: &'static str,
    /// The name of the key below its table.
    pub key: &'static str,
    /// Purpose of the key.
    pub about: &'static str,
    /// A value in the syntax of the file, other than the default.
    pub example: &'static str,
    /// The action that makes a new value effective.
    pub effect: Effect,
}

/// Returns every key of the file, in the order of the tables.
pub fn described() -> Vec<Described> {
    let mut all = Vec::new();
    describe("node", NODE, &mut all);
    describe("tunnel", TUNNEL, &mut all);
    describe("listen", LISTEN, &mut all);
    describe("control", CONTROL, &mut all);
    describe("metrics", METRICS, &mut all);
    describe("log", LOG, &mut all);
    describe("audit", AUDIT, &mut all);
    describe("store", STORE, &mut all);
    describe("sessions", SESSIONS, &mut all);
    describe("peer.NAME", PARTY, &mut all);
    describe("peer.NAME", PEER, &mut all);
    describe("peer.NAME", zones::ZONES, &mut all);
    describe("peer.NAME", zones::LEVEL, &mut all);
    describe("peer.NAME.child.NAME", CHILD, &mut all);
    describe("pool.NAME", POOL, &mut all);
    describe("licensed.NAME", PARTY, &mut all);
    describe("licensed.NAME", LICENSED, &mut all);
    describe("gateway.NAME", PARTY, &mut all);
    describe("gateway.NAME", GATEWAY, &mut all);
    describe("neighbour.NAME", PARTY, &mut all);
    describe("neighbour.NAME", NEIGHBOUR, &mut all);
    describe("redirect", REDIRECT, &mut all);
    describe("divert", DIVERT, &mut all);
    describe("snoop", SNOOP, &mut all);
    describe("regulate", REGULATE, &mut all);
    describe("stand_in", STAND_IN, &mut all);
    describe("handover", HANDOVER, &mut all);
    mobility::describe_all(&mut all);
    all.retain(|key| !key.about.is_empty());
    all
}

fn describe<T>(table: &'static str, keys: &[Key<T>], all: &mut Vec<Described>) {
    all.extend(keys.iter().map(|key| Described {
        table,
        key: key.name,
        about: key.about,
        example: key.example,
        effect: key.effect,
    }));
}

/// Returns every setting of a configuration, including defaults.
pub(crate) fn sections(config: &Config) -> Vec<Section> {
    let mut sections = vec![
        fixed("node", NODE, config),
        fixed("tunnel", TUNNEL, &config.tunnel),
        fixed("listen", LISTEN, &config.listen),
        fixed("control", CONTROL, config),
        fixed("metrics", METRICS, config),
        fixed("log", LOG, config),
        fixed("audit", AUDIT, &config.audit),
        fixed("store", STORE, config),
        fixed("sessions", SESSIONS, &config.sessions),
    ];
    for peer in &config.peers {
        let mut section = party("peer", &peer.party, PEER, peer);
        section.settings.extend(settings(zones::ZONES, &peer.zones));
        section
            .settings
            .extend(settings(zones::LEVEL, &peer.levels));
        sections.push(section);
        sections.extend(peer.children.iter().map(|child| Section {
            name: format!("peer.{}.child.{}", peer.party.name, child.name),
            whole: Some(Effect::Applied),
            settings: settings(CHILD, child),
        }));
    }
    sections.extend(config.pools.iter().map(|pool| Section {
        name: format!("pool.{}", pool.name),
        whole: Some(Effect::Applied),
        settings: settings(POOL, pool),
    }));
    let licensed = config.licensed.iter();
    sections.extend(licensed.map(|node| party("licensed", &node.party, LICENSED, node)));
    let gateways = config.gateways.iter();
    sections.extend(gateways.map(|gateway| party("gateway", &gateway.party, GATEWAY, gateway)));
    let adjacent = config.adjacent.iter();
    sections.extend(adjacent.map(|one| party("neighbour", &one.party, NEIGHBOUR, one)));
    sections.extend(
        (0..)
            .zip(&config.policies)
            .map(|(index, policy)| self::policy(index, policy)),
    );
    sections.push(fixed("redirect", REDIRECT, &config.redirect));
    sections.extend(config.divert.iter().map(|divert| Section {
        name: "divert".to_owned(),
        whole: Some(Effect::Restart),
        settings: settings(DIVERT, divert),
    }));
    sections.push(fixed("snoop", SNOOP, &config.snoop));
    sections.push(fixed("regulate", REGULATE, config));
    sections.push(fixed("stand_in", STAND_IN, &config.stand_in));
    sections.push(fixed("handover", HANDOVER, config));
    sections.extend(config.mobility.iter().flat_map(mobility::sections));
    sections
}

/// Returns the values of a table's keys.
fn settings<T>(keys: &[Key<T>], of: &T) -> Vec<Setting> {
    let settings = keys.iter().map(|key| Setting {
        key: key.name,
        value: (key.show)(of),
        effect: key.effect,
    });
    settings.collect()
}

/// Returns a section that always exists, possibly with its defaults.
fn fixed<T>(name: &str, keys: &[Key<T>], of: &T) -> Section {
    Section {
        name: name.to_owned(),
        whole: None,
        settings: settings(keys, of),
    }
}

/// Returns the section of a party: the keys that all parties have, then those of its kind.
fn party<T>(kind: &str, party: &Party, keys: &[Key<T>], of: &T) -> Section {
    let mut all = settings(PARTY, party);
    all.extend(settings(keys, of));
    Section {
        name: format!("{kind}.{}", party.name),
        whole: Some(Effect::Applied),
        settings: all,
    }
}

/// Returns the section of a policy, which is one value: an entry of the list has no other name.
fn policy(index: usize, policy: &Policy) -> Section {
    let Policy { action, remote } = policy;
    let action = match action {
        Action::Bypass => "bypass",
        Action::Discard => "discard",
    };
    Section {
        name: format!("policy[{index}]"),
        whole: Some(Effect::Applied),
        settings: vec![Setting {
            key: "",
            value: text(format_args!("{action} {remote}")),
            effect: Effect::Applied,
        }],
    }
}

/// Puts a value that was read into its field.
fn put<V>(field: &mut V, value: Option<V>) -> Option<()> {
    *field = value?;
    Some(())
}

/// Returns the fields of a table that may be left out.
fn own<T: Default>(table: &mut Option<T>) -> &mut T {
    table.get_or_insert_default()
}

/// Reads a number within limits that fits an octet.
fn small(value: &Value<'_>, limits: RangeInclusive<u8>) -> Option<u8> {
    let (least, most) = (u32::from(*limits.start()), u32::from(*limits.end()));
    u8::try_from(value.number(least..=most)?).ok()
}
