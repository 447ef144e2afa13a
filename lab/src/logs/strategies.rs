//! The strategies that are compared: each kind of the paper (004, section IV-B) over its lifetimes,
//! and two kinds together.

use resumption::Strategy;
use std::time::Duration;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const MEBI: u64 = 1 << 20;

/// Lifetimes of the kinds. With an established or a data lifetime alone, the clock ends an entry
/// after [`Strategy::LONGEST`].
const CLOCKED: [u64; 9] = [
    HOUR,
    2 * HOUR,
    4 * HOUR,
    8 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    30 * DAY,
];
const ESTABLISHED: [u64; 6] = [HOUR / 2, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, DAY];
const DATA: [u64; 6] = [10, 20, 50, 100, 200, 500];

/// Lifetimes that a day or a week limits as well.
const BOTH: [u64; 2] = [DAY, 7 * DAY];
const ESTABLISHED_BOTH: [u64; 3] = [2 * HOUR, 4 * HOUR, 8 * HOUR];
const DATA_BOTH: [u64; 3] = [50, 200, 500];

/// Kind of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Clocked,
    Established,
    Data,
    Both,
}

/// Returns all strategies, those of one kind together, the shortest lifetime first.
pub(super) fn all() -> Vec<Strategy> {
    let alone = CLOCKED.into_iter().map(clocked);
    let alone = alone.chain(ESTABLISHED.map(|seconds| established(seconds, Strategy::LONGEST)));
    let alone = alone.chain(DATA.map(|mebi| data(mebi, Strategy::LONGEST)));
    let both = BOTH.into_iter().map(Duration::from_secs).flat_map(|most| {
        let times = ESTABLISHED_BOTH.map(|seconds| established(seconds, most));
        times
            .into_iter()
            .chain(DATA_BOTH.map(|mebi| data(mebi, most)))
    });
    alone.chain(both).collect()
}

fn clocked(seconds: u64) -> Strategy {
    Strategy {
        clocked: Duration::from_secs(seconds),
        established: None,
        data: None,
        by_value: false,
    }
}

fn established(seconds: u64, clocked: Duration) -> Strategy {
    Strategy {
        clocked,
        established: Some(Duration::from_secs(seconds)),
        data: None,
        by_value: false,
    }
}

fn data(mebi: u64, clocked: Duration) -> Strategy {
    Strategy {
        clocked,
        established: None,
        data: Some(mebi * MEBI),
        by_value: false,
    }
}

/// Returns the kind of a strategy.
pub(super) fn kind(strategy: &Strategy) -> Kind {
    match (strategy.established, strategy.data) {
        (None, None) => Kind::Clocked,
        _ if strategy.clocked < Strategy::LONGEST => Kind::Both,
        (Some(_), _) => Kind::Established,
        (None, Some(_)) => Kind::Data,
    }
}

/// Returns the name of a strategy in tables.
pub(super) fn name(strategy: &Strategy) -> String {
    let established = strategy.established.map(|time| ("established", span(time)));
    let data = strategy.data.map(|octets| ("data", size(octets)));
    let limited = established.is_some() || data.is_some();
    let is_long = limited && strategy.clocked == Strategy::LONGEST;
    let clocked = (!is_long).then(|| ("clocked", span(strategy.clocked)));
    let limits = [established, data, clocked].into_iter().flatten();
    let limits: Vec<_> = limits
        .map(|(word, most)| format!("{word} {most}"))
        .collect();
    limits.join(", ")
}

/// Returns the lines of the configuration that a gateway needs.
pub(super) fn lines(strategy: &Strategy) -> Vec<String> {
    let clocked = ("clocked", Some(value(strategy.clocked)));
    let established = ("established", strategy.established.map(value));
    let data = strategy.data.map(|octets| size(octets).replace(' ', ""));
    let keys = [clocked, established, ("data", data)].into_iter();
    let keys = keys.filter_map(|(key, value)| Some(format!("{key} = \"{}\"", value?)));
    ["[sessions]".to_owned()].into_iter().chain(keys).collect()
}

/// Returns a time as in the configuration, which has no days.
fn value(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds.is_multiple_of(HOUR) => format!("{}h", seconds / HOUR),
        seconds => format!("{}m", seconds / 60),
    }
}

/// Returns a time as in `8 h`.
pub(crate) fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds % DAY == 0 && seconds > DAY => format!("{} d", seconds / DAY),
        seconds if seconds % HOUR == 0 => format!("{} h", seconds / HOUR),
        seconds => format!("{} min", seconds / 60),
    }
}

/// Returns octets as in `50 MiB`.
pub(super) fn size(octets: u64) -> String {
    format!("{} MiB", octets / MEBI)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_lines_have_every_limit() {
        let all = all();
        let names: Vec<_> = all.iter().map(name).collect();
        for name in [
            "clocked 8 h",
            "clocked 30 d",
            "established 30 min",
            "data 50 MiB",
            "established 2 h, clocked 24 h",
        ] {
            assert!(names.iter().any(|other| other == name), "{name}: {names:?}");
        }
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), all.len());
        let both = data(200, Duration::from_secs(7 * DAY));
        assert_eq!(kind(&both), Kind::Both);
        let lines = lines(&both);
        assert_eq!(
            lines,
            ["[sessions]", "clocked = \"168h\"", "data = \"200MiB\""]
        );
    }
}
