//! Counters in the text format of Prometheus. The engines count; the text is written on request, so
//! a packet costs only an addition.
//!
//! Names follow the rules of Prometheus (`promtool check metrics`): base units, and `_total` for
//! counters. Labels are names of the configuration and of admitted users, and words of the code,
//! never an address that somebody else chooses. Samples keep their order.

mod esp;
mod exposition;
mod ike;
mod licensed;
mod mobile_ip;
mod peers;
#[cfg(test)]
mod reference;
mod scrapes;
#[cfg(test)]
mod tests;

pub use scrapes::Scrapes;

use crate::sink::IoCounters;
use control::{Restart, Trouble};
use crypto::{Certificate, RevocationList, UnixTime};
use exposition::{Exposition, Kind};
use model::Instant;
use node::Node;
use std::collections::BTreeMap;
use std::time::Duration;

/// The parts of the daemon that metrics are about.
pub struct Sources<'a> {
    pub node: &'a Node,
    pub counters: &'a IoCounters,
    /// Our certificates and those of CAs.
    pub certificates: &'a [Certificate],
    pub lists: &'a [RevocationList],
    /// Failures that last.
    pub failures: &'a [Trouble],
    /// Time of the start of the daemon.
    pub began: UnixTime,
    /// The restart with which the daemon began, while it is news.
    pub restart: Option<Restart>,
}

/// Returns all metrics.
pub fn text(sources: &Sources<'_>, now: Instant) -> String {
    let Sources { node, counters, .. } = sources;
    let mut text = Exposition::default();
    daemon(&mut text, sources);
    esp::add(&mut text, node);
    ike::add(&mut text, node);
    licensed::add(&mut text, node);
    let help = "Packets that the system rejected";
    text.counters("system_refused_total", help, "doing", counters.iter());
    mobile_ip::add(&mut text, node);
    totals(&mut text, node);
    peers::add(&mut text, node, now);
    text.finish()
}

/// Adds metrics of the daemon and its files.
fn daemon(text: &mut Exposition, sources: &Sources<'_>) {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    let mut info = text.family(Kind::Gauge, "build_info", "1, with the version of stratad");
    info.sample(&version, 1);
    let help = "Time of the start of stratad";
    let began = sources.began.0;
    text.single(Kind::Gauge, "start_timestamp_seconds", help, began);
    if let Some(restart) = &sources.restart {
        let help = "Time that packets waited after a restart of stratad; absent an hour later";
        let waited = Duration::from_micros(restart.waited_micros).as_secs_f64();
        text.single(Kind::Gauge, "restart_wait_seconds", help, waited);
    }
    let mut failures = BTreeMap::new();
    for failure in sources.failures {
        *failures.entry(failure.task.as_str()).or_insert(0) += 1;
    }
    let help = "Failures that last, as `strata status` shows them in lines with `error:`";
    let mut family = text.family(Kind::Gauge, "failures", help);
    for (task, count) in failures {
        family.sample(&[("task", task)], count);
    }
    let ends = sources.certificates.iter();
    let ends = ends.map(|one| (one.subject.as_str(), one.not_after));
    let help = "End of the validity of a certificate";
    expiry(
        text,
        "certificate_expiry_timestamp_seconds",
        help,
        "subject",
        ends,
    );
    let ends = sources.lists.iter();
    let ends = ends.map(|one| (one.issuer.as_str(), one.next_update));
    let help = "Time of the next update of a revocation list";
    expiry(
        text,
        "revocation_list_expiry_timestamp_seconds",
        help,
        "issuer",
        ends,
    );
}

/// Adds times, for alarms long before the daemon's own warnings. Of several with one name, the
/// first counts.
fn expiry<'a>(
    text: &mut Exposition,
    name: &str,
    help: &str,
    label: &str,
    ends: impl Iterator<Item = (&'a str, UnixTime)>,
) {
    let mut first = BTreeMap::new();
    for (whose, end) in ends {
        let known = first.entry(whose).or_insert(end.0);
        *known = end.0.min(*known);
    }
    let mut family = text.family(Kind::Gauge, name, help);
    for (whose, end) in first {
        family.sample(&[(label, whose)], end);
    }
}

/// Adds the numbers of peers and SAs.
fn totals(text: &mut Exposition, node: &Node) {
    let totals = node.totals();
    for (name, help, count) in [
        ("peers", "Configured peers", totals.peers),
        ("peers_up", "Peers with an established IKE SA", totals.up),
        ("child_sas", "Child SAs", totals.children),
        (
            "grants_held",
            "Grants held as a licensed node",
            totals.grants,
        ),
    ] {
        text.single(Kind::Gauge, name, help, count);
    }
}
