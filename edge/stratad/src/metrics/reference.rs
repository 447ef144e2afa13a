//! `docs/reference/metrics.md`: every metric that a daemon of any role exports.

use super::{Sources, text};
use crate::sample::Folder;
use crate::setup;
use crate::sink::IoCounters;
use control::{Restart, Trouble};
use crypto::{Certificate, RevocationList, UnixTime};
use model::Instant;
use node::{Node, mobile_ip};
use pages::{Source, snake_case};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

/// Examples whose roles have all metrics together.
pub(super) const EXAMPLES: [&str; 4] = ["licensed", "mobile_node", "foreign_agent", "home_agent"];

/// Structs with the fields that counters come from, by the beginning of the metric's name.
const FIELDS: [(&str, &str, &str); 13] = [
    ("strata_system_", "edge/stratad/src/sink.rs", "IoCounters"),
    ("strata_system_", "edge/stratad/src/streams.rs", "Counts"),
    ("strata_system_", "edge/os/src/lock.rs", "Stopped"),
    ("strata_ike_", "pure/ike/src/counters.rs", "Counters"),
    ("strata_esp_", "pure/esp/src/report.rs", "Counters"),
    ("strata_esp_", "pure/esp/src/ecn.rs", "Congestion"),
    (
        "strata_esp_path_mtu",
        "pure/node/src/path_mtu/mod.rs",
        "ProbeCounts",
    ),
    (
        "strata_transit_",
        "pure/node/src/transit/mod.rs",
        "TransitCounters",
    ),
    (
        "strata_regulated_",
        "pure/node/src/transit/mod.rs",
        "TransitCounters",
    ),
    (
        "strata_stand_in_",
        "pure/node/src/transit/mod.rs",
        "TransitCounters",
    ),
    (
        "strata_key_",
        "pure/node/src/licensing/migration.rs",
        "MigrationCounters",
    ),
    (
        "strata_mobile_packets",
        "pure/mobility/src/mobile_ip/tunnel.rs",
        "TunnelCounters",
    ),
    (
        "strata_mobile_keepalives",
        "pure/mobility/src/mobile_ip/tunnel.rs",
        "Keepalives",
    ),
];

/// Files that show fields as values of labels.
const FILES: [&str; 5] = [
    "edge/stratad/src/metrics/esp.rs",
    "edge/stratad/src/metrics/ike.rs",
    "edge/stratad/src/metrics/licensed.rs",
    "edge/stratad/src/metrics/mobile_ip.rs",
    "edge/stratad/src/sink.rs",
];

/// Files with methods that counters come from.
const METHODS: [&str; 2] = ["pure/esp/src/report.rs", "pure/node/src/path_mtu/mod.rs"];

const INTRODUCTION: &str = "# Metrics\n\n\
    `strata metrics` prints them in the text format of Prometheus, and `listen` in `[metrics]` serves\n\
    them ([monitoring](../operate/monitoring.md)). Counters begin with 0 at the start of `stratad`. \
    The\nmetrics of Mobile IP exist if this host has a role in it, those of SNOOP if it is enabled.\n\
    Metrics with the label `peer` exist for the first 1000 peers and users.\n\n\
    | metric | type | label | meaning |\n|---|---|---|---|\n";

/// What the names of metrics of each peer begin with.
const OF_PEERS: [&str; 3] = ["strata_peer_", "strata_table_", "strata_tunnel_"];

/// A metric with its label and the values seen of it.
#[derive(Default)]
struct Family {
    kind: String,
    help: String,
    label: Option<String>,
    values: Vec<String>,
}

/// Metrics in the order of their registration.
#[derive(Default)]
struct Families(Vec<(String, Family)>);

#[test]
fn the_page_has_every_metric() {
    let (mut families, mut reasons) = (Families::default(), reasons());
    for node in EXAMPLES.map(example) {
        families.add(&metrics(&node));
        observed(&node, &mut reasons);
    }
    families.add_labels(&reasons);
    let mut page = format!("{}{INTRODUCTION}", pages::HEAD);
    for (
        name,
        Family {
            kind, help, label, ..
        },
    ) in &families.0
    {
        let label = label.as_ref().map(|label| format!("`{label}`"));
        let label = label.unwrap_or_default();
        let _ = writeln!(page, "| `{name}` | {kind} | {label} | {help} |");
    }
    for (name, family) in &families.0 {
        page.push_str(&family.show(name, &reasons));
    }
    pages::check("reference/metrics.md", &page);
}

/// Returns the metrics of a node, with a failure and with certificates.
pub(super) fn metrics(node: &Node) -> String {
    let failure = Trouble {
        task: "dns".to_owned(),
        remote: None,
        what: String::new(),
        fix: String::new(),
        seconds: None,
    };
    let sources = Sources {
        node,
        counters: &IoCounters::default(),
        certificates: &certificates(),
        lists: &lists(),
        failures: &[failure],
        began: UnixTime(0),
        restart: Some(Restart {
            seconds_ago: 60,
            waited_micros: 130_000,
        }),
    };
    text(&sources, Instant::ZERO)
}

/// Returns a node of an example.
pub(super) fn example(name: &str) -> Node {
    let folder = Folder::new(&format!("metrics-{name}"));
    for key in ["gw.psk", "home.key", "office.psk", "alice.psk"] {
        folder.write_key(key, "9f86d081884c7d659a2feaa0c55ad015\n");
    }
    let file = format!("edge/config/examples/{name}.toml");
    let file = fs::read_to_string(pages::repository().join(file)).unwrap();
    let config = folder.load(&file);
    Node::new(setup::node(&config), [1; 32], Instant::ZERO)
}

fn certificates() -> Vec<Certificate> {
    let file = pages::repository().join("edge/config/src/tests/certificates/first.pem");
    Certificate::all_from_pem(&fs::read(file).unwrap()).unwrap()
}

fn lists() -> Vec<RevocationList> {
    let file = pages::repository().join("pure/ike/src/tests/revocation/gateway.crl");
    RevocationList::all_from_pem(&fs::read(file).unwrap()).unwrap()
}

/// Meanings by metric and value of its label.
type Reasons = BTreeMap<(&'static str, String), String>;

/// Returns the reasons that a node counts only once they occur.
fn reasons() -> Reasons {
    let mut reasons = Reasons::new();
    for why in mobile_ip::Dropped::ALL {
        let key = ("strata_mobile_dropped_total", why.label().to_owned());
        reasons.insert(key, why.to_string());
    }
    for (metric, file, name) in [
        (
            "strata_key_requests_refused_total",
            "pure/node/src/cause.rs",
            "NoKeys",
        ),
        (
            "strata_mobile_dropped_total",
            "pure/wire/src/ip_in_ip.rs",
            "Refusal",
        ),
    ] {
        for message in Source::read(file).errors(name) {
            let key = (metric, snake_case(&message.name));
            reasons.entry(key).or_insert(message.text);
        }
    }
    let tunnel = Source::read("pure/mobility/src/mobile_ip/tunnel.rs");
    for variant in ["NoTunnel", "Spoofed", "OtherEncapsulation"] {
        let doc = tunnel.doc_within("TunnelDrop", variant).unwrap();
        reasons.insert(("strata_mobile_dropped_total", snake_case(variant)), doc);
    }
    reasons
}

/// Adds the reasons that a node counts from its start.
fn observed(node: &Node, reasons: &mut Reasons) {
    for (why, _) in node.esp_counters().drops() {
        let key = ("strata_esp_dropped_total", why.label().to_owned());
        reasons.insert(key, why.to_string());
    }
    for (why, _) in node.ike_counters().drops() {
        let key = ("strata_ike_dropped_total", why.label().to_owned());
        reasons.insert(key, why.to_string());
    }
    let snoop = node.snoop_counters().into_iter();
    for (name, doc, _) in snoop.flat_map(|counters| counters.iter()) {
        let key = ("strata_snoop_segments_total", name.to_owned());
        reasons.insert(key, doc.trim().to_owned());
    }
}

impl Families {
    /// Adds the families of a text.
    fn add(&mut self, text: &str) {
        for line in text.lines() {
            let words: Vec<_> = line.splitn(4, ' ').collect();
            match words[..] {
                ["#", "HELP", name, help] => {
                    self.family(name).help = help.trim_end_matches('.').to_owned()
                }
                ["#", "TYPE", name, kind] => self.family(name).kind = kind.to_owned(),
                ["#", ..] => {}
                _ => self.add_sample(line),
            }
        }
    }

    /// Adds the label of metrics without a sample so far.
    fn add_labels(&mut self, reasons: &Reasons) {
        for (metric, _) in reasons.keys() {
            let label = &mut self.family(metric).label;
            label.get_or_insert_with(|| "reason".to_owned());
        }
        for (name, family) in &mut self.0 {
            if OF_PEERS.iter().any(|start| name.starts_with(start)) {
                family.label = Some("peer".to_owned());
            }
        }
    }

    fn add_sample(&mut self, line: &str) {
        let Some((name, labels)) = line.split_once('{') else {
            return;
        };
        if name.ends_with("_bucket") {
            return;
        }
        let family = self.family(name);
        if let Some((label, value)) = labels.split_once("=\"") {
            family.label = Some(label.to_owned());
            let value = value.rsplit_once('"').map_or(value, |(value, _)| value);
            if !family.values.iter().any(|known| known == value) {
                family.values.push(value.to_owned());
            }
        }
    }

    fn family(&mut self, name: &str) -> &mut Family {
        let place = self.0.iter().position(|(known, _)| known == name);
        let place = place.unwrap_or_else(|| {
            self.0.push((name.to_owned(), Family::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }
}

impl Family {
    /// Formats the values of the label. Names of certificates and lists are free.
    fn show(&self, name: &str, reasons: &Reasons) -> String {
        let known = reasons.keys().filter(|(metric, _)| *metric == name);
        let unseen = known.map(|(_, value)| value);
        let mut values: Vec<_> = self.values.iter().chain(unseen).collect();
        values.sort();
        values.dedup();
        let explained = values.into_iter().filter_map(|value| {
            let mut known = reasons.iter().filter(|((metric, _), _)| *metric == name);
            let known = known.find(|((_, known), _)| known == value);
            let meaning = known.map(|(_, meaning)| meaning.clone());
            Some((value, meaning.or_else(|| of_field(name, value))?))
        });
        let explained: Vec<_> = explained.collect();
        if explained.is_empty() || name.ends_with("_seconds") {
            return String::new();
        }
        let label = self.label.as_deref().unwrap_or_default();
        let mut text = format!("\n## {name}\n\n| `{label}` | meaning |\n|---|---|\n");
        for (value, meaning) in explained {
            let _ = writeln!(text, "| `{value}` | {} |", meaning.trim_end_matches('.'));
        }
        text
    }
}

/// Returns the documentation of the field that a value of a metric's label shows.
fn of_field(metric: &str, value: &str) -> Option<String> {
    let field = FILES
        .iter()
        .find_map(|file| shown_by(file, metric, value))?;
    let structs = FIELDS.iter().filter(|(name, ..)| metric.starts_with(name));
    let docs = structs.flat_map(|(_, file, name)| {
        let parts = Source::read(file).parts(&format!("pub struct {name}"));
        parts.into_iter().filter(|(name, _)| *name == field)
    });
    let methods = METHODS.into_iter().filter_map(|file| {
        let mut heads = ["pub fn", "pub const fn"].into_iter();
        let doc = heads.find_map(|head| Source::read(file).doc(&format!("{head} {field}(")))?;
        let what = doc.strip_prefix("Returns the ")?;
        Some(what[..1].to_uppercase() + &what[1..])
    });
    docs.map(|(_, doc)| doc).chain(methods).next()
}

/// Returns the name of the field that a file shows by a value, as near as possible to the name of
/// the metric.
fn shown_by(file: &str, metric: &str, value: &str) -> Option<String> {
    let source = Source::read(file);
    let code = source.code();
    let name = metric.trim_start_matches("strata_");
    let is_fixed = file.ends_with("/sink.rs");
    let near = code
        .find(&format!("\"{name}\""))
        .or(is_fixed.then_some(0))?;
    let shown = format!("(\"{value}\", ");
    let places = code.match_indices(&shown).map(|(at, _)| at);
    let at = places.min_by_key(|at| at.abs_diff(near))?;
    let (expression, _) = code[at + shown.len()..].split_once(')')?;
    let path: Vec<_> = expression.trim_end_matches('(').split('.').collect();
    // A count of packets and octets is explained as a whole.
    let field = if path.len() > 2 && path[0] == "counters" {
        1
    } else {
        path.len() - 1
    };
    Some(path[field].to_owned())
}
