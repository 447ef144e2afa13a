//! Generates and checks `docs/status.md`: all features, by configuration key and verb, with the
//! evidence that they work.
//!
//! The features are listed in `features`, their evidence is claimed at the tests, as in
//! `// Works: split-routes`. The test verifies each entry: a key must be accepted by the
//! configuration, a verb must be listed by `strata --help`, and each kind of evidence needs a test
//! or a reason why it does not apply. Conversely, a key or a verb without a feature, and a claim
//! without one, fail the test.

mod features;
mod interface;

use features::{FEATURES, Feature};
use pages::{Claims, Kind};
use std::collections::BTreeSet;
use std::fmt::Write;

#[test]
fn every_key_of_the_configuration_belongs_to_a_feature() {
    let claimed: Vec<_> = FEATURES.iter().flat_map(|feature| feature.keys).collect();
    let keys = interface::keys();
    assert!(keys.contains("peer.licences.right"), "{keys:?}");
    let claims = |key: &str| claimed.iter().any(|claim| covers(claim, key));
    let orphans: Vec<_> = keys.iter().filter(|key| !claims(key)).collect();
    assert!(orphans.is_empty(), "no feature claims {orphans:?}. {ADD}");
    let exists = |claim: &&&&str| keys.iter().any(|key| covers(claim, key));
    let gone: Vec<_> = claimed.iter().filter(|claim| !exists(claim)).collect();
    assert!(
        gone.is_empty(),
        "no configuration may have {gone:?}. {CORRECT}"
    );
}

#[test]
fn every_verb_belongs_to_a_feature() {
    let features = FEATURES.iter();
    let claimed: BTreeSet<_> = features
        .flat_map(|feature| feature.verbs.iter().copied())
        .collect();
    let mut verbs = interface::verbs(&[]);
    verbs.extend(interface::lab_verbs());
    let orphans: Vec<_> = verbs
        .iter()
        .filter(|verb| !claimed.contains(verb.as_str()))
        .collect();
    assert!(orphans.is_empty(), "no feature claims {orphans:?}. {ADD}");
    let gone: Vec<_> = claimed
        .iter()
        .filter(|verb| !verbs.contains(**verb))
        .collect();
    assert!(gone.is_empty(), "no `--help` lists {gone:?}. {CORRECT}");
}

#[test]
fn every_feature_has_its_evidence() {
    let claims = claims();
    for feature in FEATURES {
        let Feature { id, .. } = feature;
        assert!(
            !feature.keys.is_empty() || !feature.verbs.is_empty(),
            "{id}: nobody can turn it on. {CORRECT}"
        );
        let folders = ["edge/", "lab/"];
        let outside = |file: &str| folders.iter().any(|folder| file.starts_with(folder));
        for (file, test) in claims.tests(Kind::Works, id) {
            assert!(
                outside(file),
                "{id}: works inside the engines only: {file} has `// Works: {id}` at `{test}`. \
                 Claim it at a test of the programs"
            );
        }
        for kind in EVIDENCE {
            let shown = !claims.tests(kind, id).is_empty();
            match feature.not_needed(kind) {
                None => assert!(
                    shown,
                    "{id}: no test shows it. Write `// {kind}: {id}` directly above the attribute \
                     of each test that does, or the reason why none is needed into `not_needed`. \
                     {CORRECT}"
                ),
                Some(_) => assert!(
                    !shown,
                    "{id}: `not_needed` has {kind}, and so have tests. {CORRECT}"
                ),
            }
        }
    }
}

#[test]
fn names_of_features_are_unique() {
    let ids: BTreeSet<_> = FEATURES.iter().map(|feature| feature.id).collect();
    assert_eq!(ids.len(), FEATURES.len());
}

#[test]
fn the_page_says_what_the_features_are() {
    let claims = claims();
    let mut page = format!("{}{INTRODUCTION}", pages::HEAD);
    for feature in FEATURES {
        let cells = EVIDENCE.map(|kind| match claims.tests(kind, feature.id).len() {
            0 => "–".to_owned(),
            1 => "1 test".to_owned(),
            count => format!("{count} tests"),
        });
        let _ = writeln!(page, "| {} | {} |", feature.name, cells.join(" | "));
    }
    for feature in FEATURES {
        let _ = write!(page, "\n## {}\n\n{}", feature.name, feature.switches());
        for kind in EVIDENCE {
            let title = kind.to_string().to_lowercase();
            let details = match feature.not_needed(kind) {
                Some(why) => why.to_owned(),
                None => pages::cite(&claims.tests(kind, feature.id)),
            };
            let _ = writeln!(page, "* {title}: {details}");
        }
    }
    pages::check("status.md", &page);
}

const ADD: &str = "Add a feature for it, or add it to one, in edge/strata/tests/status/features.rs, \
    and claim it at the namespace test that shows it, at that of its refusal, and at that of the \
    loss of packets or processes. Then write docs/status.md anew: UPDATE_DOCS=1 cargo test -p \
    strata --test status";

const CORRECT: &str = "Correct edge/strata/tests/status/features.rs, then write docs/status.md anew: \
    UPDATE_DOCS=1 cargo test -p strata --test status";

const INTRODUCTION: &str = "# Status\n\n\
    What can be turned on today, and what was seen of it. A feature works where a test drives it \
    through `strata` and `stratad` between network namespaces; it refuses where a test shows what a \
    person is told; it recovers where a test takes packets, processes or peers away. What nobody has \
    shown has no place here.\n\n\
    | feature | works | refuses | recovers |\n|---|---|---|---|\n";

/// The kinds of evidence for a feature, in the order of the page.
const EVIDENCE: [Kind; 3] = [Kind::Works, Kind::Refuses, Kind::Recovers];

fn claims() -> Claims {
    let ids: Vec<_> = FEATURES.iter().map(|feature| feature.id.into()).collect();
    Claims::read(&EVIDENCE, "edge/strata/tests/status/features.rs", &ids)
}

/// Returns true if a claim covers a key: exactly, or by its last part for every kind of peer.
fn covers(claim: &str, key: &str) -> bool {
    let kinds = ["peer", "licensed", "gateway", "neighbour"];
    let of_any = claim.strip_prefix("*.").is_some_and(|rest| {
        key.split_once('.')
            .is_some_and(|(table, key)| kinds.contains(&table) && key == rest)
    });
    of_any || claim == key
}

impl Feature {
    fn not_needed(&self, kind: Kind) -> Option<&'static str> {
        let mut reasons = self.not_needed.iter();
        reasons.find_map(|(of, why)| (*of == kind).then_some(*why))
    }

    fn switches(&self) -> String {
        let quote = |words: &[String]| {
            let quoted = words.iter().map(|word| format!("`{word}`"));
            quoted.collect::<Vec<_>>().join(", ")
        };
        let whole = |verb: &&str| match verb.starts_with("strata-lab ") {
            true => (*verb).to_owned(),
            false => format!("strata {verb}"),
        };
        let keys: Vec<_> = self.keys.iter().map(|&key| key.to_owned()).collect();
        let verbs: Vec<_> = self.verbs.iter().map(whole).collect();
        let [keys, verbs] = [keys, verbs].map(|words| quote(&words));
        let both = [keys, verbs];
        let lines = both.iter().filter(|line| !line.is_empty());
        lines.map(|line| format!("* {line}\n")).collect()
    }
}
