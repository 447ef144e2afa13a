//! `docs/reference/configuration.md`: every key of the file.
//!
//! The reader knows the keys and their values, [`sections`] their defaults and the effect of a
//! change. The rows explain them, here and in the examples. An example explains what is no row: a
//! table, a part of a value, and a key of all parties at one kind of them.

mod explained;
mod notes;
mod schema;

pub(crate) use schema::Schema;

use super::{Folder, OFFICE, diff, mobility};
use crate::config::read;
use crate::fault::Context;
use crate::keys::{Section, Shown, sections};
use crate::{Config, Effect};
use explained::Rows;
use notes::{Notes, entry};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The examples, in the order of the page.
const EXAMPLES: [&str; 6] = [
    "mobile",
    "gateway",
    "licensed",
    "mobile_node",
    "foreign_agent",
    "home_agent",
];

/// The table whose keys have the values of the peer's, if they are left out.
const CHILD: &str = "peer.NAME.child.NAME";

/// Tables whose keys may be explained at the peer.
const LIKE_PEERS: [&str; 4] = [CHILD, "licensed.NAME", "gateway.NAME", "neighbour.NAME"];

/// Values of another form than in any other file. They need not fit together.
const FORMS: &str = r#"[node]
ca = "ca.pem"
crl = "ca.crl"
[peer.office]
suite = ["aes128gcm16"]
kem = ["mlkem768"]
groups = ["x25519"]
dscp = 46
zones = "require"
layout = [{ zone = "headers", suite = "aes128gcm16" }, "payload"]
licences = [{ node = "fa", zones = ["headers"], right = "read", at = ["10.3.0.0/16"] }, { node = "*.sat.example.net", zones = ["headers"], right = "read", at_most = 2 }]
[peer.office.level]
integrity = { ports = "5004", dscp = 34 }
opaque_below = "1%"
[[policy]]
protocol = 47
[foreign_agent]
homes = "anybody"
"#;

/// The shortest tables besides those of [`OFFICE`]. Their other keys have their defaults.
const BRIEF: &str = r#"[peer.office.child.voice]
remote = ["10.9.0.0/16"]
[pool.office]
addresses = ["10.19.0.0/24"]
[licensed.fa]
address = "10.3.0.1"
id = "fa.example.net"
psk = "fa.psk"
[gateway.gw]
id = "other.example.net"
psk = "gw.psk"
[neighbour.fb]
id = "fb.example.net"
psk = "gw.psk"
[[policy]]
action = "discard"
remote = "10.8.9.0/24"
[divert]
wired = "eth0"
wireless = "wlan0"
"#;

const BRIEF_MOBILITY: [&str; 3] = [
    r#"[mobile_node]
home_address = "10.66.0.7"
home_agent = "192.0.2.1"
interfaces = ["wlan0"]
key = { spi = 4097, secret = "home.key" }
[mobile_node.agent.cafe]
address = "198.51.100.2"
"#,
    r#"[foreign_agent]
interface = "wlan0"
address = "198.51.100.2"
[foreign_agent.home.office]
address = "192.0.2.1"
[foreign_agent.mobile.alice]
home_address = "10.66.0.7"
key = { spi = 4098, secret = "home.key" }
[foreign_agent.neighbour.bar]
address = "203.0.113.2"
key = { spi = 4100, secret = "home.key" }
"#,
    r#"[home_agent]
address = "192.0.2.1"
[home_agent.mobile.alice]
home_address = "10.66.0.7"
key = { spi = 4097, secret = "home.key" }
[home_agent.foreign.cafe]
address = "198.51.100.2"
"#,
];

const INTRODUCTION: &str = "# Configuration\n\n\
    Every key of `/etc/strata/strata.toml`. `strata check FILE` reports all faults of a file, \
    each\nwith its line and a fix; unknown keys are faults. The \
    [examples](../../edge/config/examples) show\nthe keys in use.\n\n\
    Durations have the units `ms`, `s`, `m` and `h`, sizes `B`, `KiB`, `MiB` and `GiB`. Names of \
    files\nare relative to the folder of the configuration, if they are not absolute.\n\n\
    | on reload | a changed value |\n|---|---|\n";

const NAMES: &str = "\n`strata reload --dry-run` shows what a changed file would do. A table `[peer.NAME]` exists \
    once\nfor each peer, with any name of 1 to 32 letters, digits, `.`, `_` and `-`.\n";

/// The default of a key, and the effect of a change.
struct Known {
    default: String,
    effect: Effect,
}

#[test]
fn the_page_has_every_key_of_the_configuration() {
    let folder = Folder::new();
    let schema = survey(&folder);
    let known = known(&folder, &schema);
    let mut page = format!("{}{INTRODUCTION}", pages::HEAD);
    for effect in Effect::ALL {
        let _ = writeln!(page, "| {} | {} |", effect.word(), effect.about());
    }
    page.push_str(NAMES);
    let notes = Notes::read(&examples(), &schema);
    let rows = Rows::new(&notes);
    for table in notes.tables() {
        let keys = schema.keys(table, &notes);
        assert!(!keys.is_empty(), "the reader does not know [{table}]");
        let _ = write!(page, "\n## {}\n\n{}", heading(table), notes.about(table));
        page.push_str("| key | values | default | on reload |\n|---|---|---|---|\n");
        for key in &keys {
            let is_peers = table == CHILD && !notes.has(table, key);
            page.push_str(&row(table, key, is_peers, &schema, &known));
        }
        let outer = keys.iter().filter(|key| !key.contains(['.', '[']));
        let is_own = |key: &&&str| notes.has(table, key) || rows.about(table, key).is_some();
        let (own, shared): (Vec<_>, Vec<_>) = outer.partition(is_own);
        page.push('\n');
        for key in own {
            page.push_str(&match rows.about(table, key) {
                Some(about) => entry(key, about),
                None => notes.note(table, key),
            });
        }
        if !shared.is_empty() {
            let is_like_peers = LIKE_PEERS.contains(&table);
            assert!(is_like_peers, "[{table}]: no example explains {shared:?}");
            page.push_str(&notes.explained_by("peer.NAME", &shared, table));
        }
    }
    let missing = schema.unexplained(&notes);
    assert!(missing.is_empty(), "no example has a table for {missing:?}");
    pages::check("reference/configuration.md", &page);
}

#[test]
fn the_examples_explain_their_keys_as_the_rows_do() {
    let schema = survey(&Folder::new());
    let examples = examples();
    let notes = Notes::read(&examples, &schema);
    let rows = Rows::new(&notes);
    let explained = rows.explain(&examples, &notes, &schema);
    for (name, text) in EXAMPLES.iter().zip(&explained) {
        pages::check(&format!("../edge/config/examples/{name}.toml"), text);
    }
    // A comment above a key is not written again, so it has to be the same already.
    let notes = Notes::read(&explained, &schema);
    for ((table, key), row) in rows.iter() {
        let Some(text) = notes.text(table, key) else {
            continue;
        };
        assert_eq!(text, row.about, "[{table}] {key}");
    }
}

#[test]
fn an_example_with_another_explanation_is_written_again() {
    let schema = survey(&Folder::new());
    let examples = examples();
    let right = "# clone = false                     # true at both ends: the tunnel moves";
    let damaged = examples.clone().map(|example| {
        let without = example.replace("# dscp = \"zero\"  ", "# dscq = \"zero\"  ");
        without.replace(
            right,
            "# clone = false                     # a lie about it",
        )
    });
    assert_ne!(damaged, examples);
    let notes = Notes::read(&damaged, &schema);
    let explained = Rows::new(&notes).explain(&damaged, &notes, &schema);
    let lines: Vec<_> = explained[0].lines().collect();
    assert!(lines.iter().any(|line| line.starts_with(right)));
    let added = lines
        .iter()
        .position(|line| line.starts_with("# dscp = \"copy\" "));
    let before = lines
        .iter()
        .position(|line| line.starts_with("# tcp_port = "));
    assert_eq!(added, before.map(|line| line + 1));
}

fn examples() -> [String; 6] {
    EXAMPLES.map(|name| {
        let file = format!("edge/config/examples/{name}.toml");
        std::fs::read_to_string(pages::repository().join(file)).unwrap()
    })
}

/// Returns what the reader asked for and accepts, in all files of the tests together.
fn survey(folder: &Folder) -> Schema {
    let mut schema = Schema::default();
    let mut note = |text: &str| {
        let context = Context::new(folder.path());
        let _ = read(text, &context);
        let asked = context.asked.into_inner();
        assert!(asked.len() > 1, "not TOML: {text}");
        schema.add(context.schema.into_inner(), asked);
    };
    note(diff::FULL);
    for text in mobility::FULL.into_iter().chain(BRIEF_MOBILITY) {
        note(&format!("{}{text}", mobility::NODE));
    }
    note(FORMS);
    schema
}

/// Returns the defaults and the effects of all keys.
fn known(folder: &Folder, schema: &Schema) -> BTreeMap<String, Known> {
    let mobility = BRIEF_MOBILITY.map(|text| format!("{}{text}", mobility::NODE));
    let office = format!("{OFFICE}{BRIEF}");
    let brief = mobility.iter().map(String::as_str).chain([office.as_str()]);
    let configs = brief.map(|text| folder.load(text).unwrap());
    let mut known = BTreeMap::new();
    for (config, section) in configs.flat_map(with_sections) {
        for setting in &section.settings {
            let key = section.dotted(setting);
            // The value of the file is no default.
            let is_written = config.places.keys().any(|written| written == key);
            let default = match &setting.value {
                Shown::Text(value) if value != "[]" && !is_written => value.clone(),
                _ => "none".to_owned(),
            };
            let effect = setting.effect;
            known.insert(schema.general(&key), Known { default, effect });
        }
    }
    known
}

fn with_sections(config: Config) -> Vec<(Config, Section)> {
    let sections = sections(&config).into_iter();
    sections.map(|section| (config.clone(), section)).collect()
}

/// Formats the row of one key. A part of a key changes with the whole.
fn row(
    table: &str,
    key: &str,
    is_peers: bool,
    schema: &Schema,
    known: &BTreeMap<String, Known>,
) -> String {
    let name = format!("{table}.{key}");
    let ends = name.match_indices(['.', '[']).map(|(at, _)| at);
    let ends = ends
        .chain([name.len()])
        .collect::<Vec<_>>()
        .into_iter()
        .rev();
    let effect = ends.filter_map(|end| known.get(&name[..end])).next();
    let list = format!("{}[]", name.split('[').next().unwrap_or_default());
    let effect = effect.or_else(|| known.get(&list));
    let effect = effect.unwrap_or_else(|| panic!("{name} has no effect"));
    let values = schema.values(&name);
    let default = match known.get(&name) {
        _ if schema.is_required(&name) => "required",
        _ if is_peers => "as the peer",
        Some(known) => &known.default,
        None => "",
    };
    let effect = effect.effect.word();
    format!("| `{key}` | {values} | {default} | {effect} |\n")
}

fn heading(table: &str) -> String {
    match table.strip_suffix("[]") {
        Some(list) => format!("[[{list}]]"),
        None => format!("[{table}]"),
    }
}
