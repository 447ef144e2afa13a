//! Traffic of one of several live paths (DESIGN section 6): the end that chooses the paths selects
//! the packets of one of them.
//!
//! The path gets one more child SA, for these packets alone. Both ends send what it covers on it
//! before all other child SAs, so that packets and their answers take the same path. The path
//! carries nothing else while a path without selectors of its own works. Each path keeps its child
//! SA for all traffic: an end that finds a path dead sends on the others at once.
//!
//! ```text
//! request   N(PATH_SELECTORS: number of the path), SA, Ni, [KEi,] TSi, TSr
//! response  SA, Nr, [KEr,] TSi, TSr          accepted, perhaps narrowed
//!           TS_UNACCEPTABLE                  none of it is traffic of the tunnel
//!           NO_ADDITIONAL_SAS                this end allows no path with this number, or no more
//!                                            child SAs, or the sender does not choose the paths
//!           TEMPORARY_FAILURE                the path is not verified, or has such a child SA
//! ```
//!
//! Both messages go on the path of the IKE SA. A peer that does not announce the extension gets no
//! such request (`mobikex.rs`).
//!
//! The engine treats these child SAs like those with a table of their own, under names that no
//! table can have. Of those that we request, the name says the rule of the configuration and the
//! path; of those of the peer, the path.

use super::live_path::{live_path, number};
use crate::exchange::notify;
use model::MOST_PATHS;
use wire::ike::{Message, NotifyType, Payload};

const MOST: usize = MOST_PATHS as usize;

/// Names of the child SAs that the peer requests, by path.
static THEIRS: [&str; MOST] = [
    "traffic of path 1",
    "traffic of path 2",
    "traffic of path 3",
    "traffic of path 4",
];

/// Names of the child SAs that we request, by rule and path.
static OURS: [[&str; MOST]; MOST] = [
    [
        "rule 1 on path 1",
        "rule 1 on path 2",
        "rule 1 on path 3",
        "rule 1 on path 4",
    ],
    [
        "rule 2 on path 1",
        "rule 2 on path 2",
        "rule 2 on path 3",
        "rule 2 on path 4",
    ],
    [
        "rule 3 on path 1",
        "rule 3 on path 2",
        "rule 3 on path 3",
        "rule 3 on path 4",
    ],
    [
        "rule 4 on path 1",
        "rule 4 on path 2",
        "rule 4 on path 3",
        "rule 4 on path 4",
    ],
];

/// The path that a child SA with the traffic of a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathTraffic {
    /// Index of our rule; `None` if the peer requested the child SA.
    pub rule: Option<u8>,
    /// Number of the path: 1 is that of the IKE SA.
    pub path: u8,
}

/// Returns the rule and the path of a child SA with the traffic of a path.
pub fn path_traffic(name: Option<&str>) -> Option<PathTraffic> {
    let name = name?;
    let place = |names: &[&str; MOST]| names.iter().position(|known| *known == name);
    let ours = OURS.iter().enumerate();
    let mut ours = ours.filter_map(|(rule, names)| Some((Some(rule), place(names)?)));
    let (rule, path) = ours.next().or_else(|| Some((None, place(&THEIRS)?)))?;
    Some(PathTraffic {
        rule: rule.and_then(|rule| u8::try_from(rule).ok()),
        path: u8::try_from(path + 1).ok()?,
    })
}

/// Returns the number of the path of a child SA for traffic of the first one, which has number 1.
/// `None` for all other child SAs.
pub fn path_of(name: Option<&str>) -> Option<u8> {
    match name {
        None => Some(1),
        name => live_path(name).or_else(|| Some(path_traffic(name)?.path)),
    }
}

/// Returns true for a child SA on a further path, and for one with the traffic of a path.
pub(crate) fn is_of_paths(name: Option<&str>) -> bool {
    name.is_some() && path_of(name).is_some()
}

/// Returns the name of the child SA for a rule of ours, or for selectors of the peer, on a path.
pub(crate) fn name(rule: Option<u8>, path: u8) -> Option<&'static str> {
    let names = match rule {
        Some(rule) => OURS.get(usize::from(rule))?,
        None => &THEIRS,
    };
    names.get(usize::from(path).checked_sub(1)?).copied()
}

/// Returns the names of the child SAs with the traffic of a path.
pub(crate) fn names_on(path: u8) -> impl Iterator<Item = &'static str> {
    let rules = (0..MOST_PATHS).map(Some).chain([None]);
    rules.filter_map(move |rule| name(rule, path))
}

/// Returns the names of the child SAs that the peer may request, if there may be this many paths.
pub(crate) fn names_of_peer(paths: u8) -> impl Iterator<Item = &'static str> {
    let most = if paths > 1 { usize::from(paths) } else { 0 };
    THEIRS.into_iter().take(most)
}

/// Returns the names of the child SAs for a rule of ours, by its index.
pub(crate) fn names_of_rule(rule: usize, paths: u8) -> impl Iterator<Item = &'static str> {
    let names = OURS.get(rule).into_iter().flatten().copied();
    names.take(usize::from(paths))
}

/// Returns the names of the child SAs for all rules of ours.
pub(crate) fn names_of_rules() -> impl Iterator<Item = &'static str> {
    OURS.into_iter().flatten()
}

/// Returns the notify that requests a child SA for the traffic of a path.
pub(crate) fn payload(name: Option<&str>) -> Option<Payload> {
    let PathTraffic { rule, path } = path_traffic(name)?;
    rule.map(|_| notify(NotifyType::PATH_SELECTORS, vec![path]))
}

/// Returns the number of the path whose traffic a request selects. Zero, which no path has, if the
/// number is malformed.
pub(crate) fn requested(request: &Message) -> Option<u8> {
    number(request, NotifyType::PATH_SELECTORS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::informational;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_says_the_rule_and_the_path() {
        let mut names = BTreeSet::new();
        for path in 1..=MOST_PATHS {
            for rule in (0..MOST_PATHS).map(Some).chain([None]) {
                let name = name(rule, path);
                assert_eq!(path_traffic(name), Some(PathTraffic { rule, path }));
                assert_eq!(path_of(name), Some(path));
                assert!(is_of_paths(name));
                assert!(names.insert(name));
            }
            assert_eq!(names_on(path).count(), MOST + 1);
        }
        for (rule, path) in [(Some(4), 1), (Some(0), 0), (None, 5), (None, 0)] {
            assert_eq!(name(rule, path), None);
        }
        assert_eq!([path_of(None), path_of(Some("path 2"))], [Some(1), Some(2)]);
        for other in [Some("voice"), Some("#2"), Some("rule 5 on path 1")] {
            assert_eq!((path_traffic(other), path_of(other)), (None, None));
        }
        assert!(is_of_paths(Some("path 2")) && !is_of_paths(None));
    }

    #[test]
    fn one_path_has_no_traffic_of_its_own() {
        assert_eq!(names_of_peer(1).count(), 0);
        assert_eq!(names_of_peer(3).count(), 3);
        assert_eq!(names_of_rule(1, 2).last(), Some("rule 2 on path 2"));
        assert_eq!(names_of_rule(4, 2).count(), 0);
    }

    #[test]
    fn a_request_names_the_path_and_a_malformed_number_is_that_of_none() {
        let said = |data: &[u8]| {
            requested(&informational(vec![notify(
                NotifyType::PATH_SELECTORS,
                data.to_vec(),
            )]))
        };
        assert_eq!(said(&[3]), Some(3));
        for data in [&[][..], &[1, 1], &[0; 64]] {
            assert_eq!(said(data), Some(0));
        }
        assert_eq!(requested(&informational(Vec::new())), None);
        let ours = payload(name(Some(1), 2)).unwrap();
        assert_eq!(requested(&informational(vec![ours])), Some(2));
        assert_eq!(payload(name(None, 2)), None);
    }
}
