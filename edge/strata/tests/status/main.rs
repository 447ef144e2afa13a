//! Generates and checks `docs/status.md`: all features, by configuration key and verb, with the
//! evidence that they work.
//!
//! The features and their evidence are listed in `features`. The test verifies each entry: a key
//! must be accepted by the configuration, a verb must be listed by `strata --help`, and a test must
//! run. Conversely, a key or a verb without a feature fails the test.

mod features;
mod interface;

use features::{Evidence, FEATURES, Feature};
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
fn every_named_test_runs() {
    for feature in FEATURES {
        assert!(
            !feature.keys.is_empty() || !feature.verbs.is_empty(),
            "{}: nobody can turn it on",
            feature.name
        );
        if let Evidence::Tests(tests) = feature.works {
            let folders = ["edge/", "lab/"];
            let outside = |file: &str| folders.iter().any(|folder| file.starts_with(folder));
            let between_programs = tests.iter().all(|(file, _)| outside(file));
            assert!(
                between_programs,
                "{}: works inside the engines only",
                feature.name
            );
        }
        for (file, test) in feature.tests() {
            assert!(
                pages::runs(file, test),
                "{}: {file} runs no test `{test}`. {CORRECT}",
                feature.name
            );
        }
    }
}

#[test]
fn the_page_says_what_the_features_are() {
    let mut page = format!("{}{INTRODUCTION}", pages::HEAD);
    for feature in FEATURES {
        let cells = feature.evidence().map(|(_, evidence)| summary(evidence));
        let _ = writeln!(page, "| {} | {} |", feature.name, cells.join(" | "));
    }
    for feature in FEATURES {
        let _ = write!(page, "\n## {}\n\n{}", feature.name, feature.switches());
        for (title, evidence) in feature.evidence() {
            let _ = writeln!(page, "* {title}: {}", details(evidence));
        }
    }
    pages::check("status.md", &page);
}

const ADD: &str = "Add a feature for it, or add it to one, in edge/strata/tests/status/features.rs: \
    with the namespace test that shows it, its refusal, and what becomes of it when packets or \
    processes are lost. Then write docs/status.md anew: UPDATE_DOCS=1 cargo test -p strata --test \
    status";

const CORRECT: &str = "Correct edge/strata/tests/status/features.rs, then write docs/status.md anew: \
    UPDATE_DOCS=1 cargo test -p strata --test status";

const INTRODUCTION: &str = "# Status\n\n\
    What can be turned on today, and what was seen of it. A feature works where a test drives it \
    through `strata` and `stratad` between network namespaces; it refuses where a test shows what a \
    person is told; it recovers where a test takes packets, processes or peers away. What nobody has \
    shown has no place here.\n\n\
    | feature | works | refuses | recovers |\n|---|---|---|---|\n";

/// Returns true if a claim covers a key: exactly, or by its last part for every kind of peer.
fn covers(claim: &str, key: &str) -> bool {
    let kinds = ["peer", "licensed", "gateway", "neighbour"];
    let of_any = claim.strip_prefix("*.").is_some_and(|rest| {
        key.split_once('.')
            .is_some_and(|(table, key)| kinds.contains(&table) && key == rest)
    });
    of_any || claim == key
}

fn summary(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Tests([_]) => "1 test".to_owned(),
        Evidence::Tests(tests) => format!("{} tests", tests.len()),
        Evidence::NotNeeded(_) => "–".to_owned(),
    }
}

fn details(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Tests(tests) => pages::cite(tests),
        Evidence::NotNeeded(why) => (*why).to_owned(),
    }
}

impl Feature {
    fn evidence(&self) -> [(&'static str, &Evidence); 3] {
        [
            ("works", &self.works),
            ("refuses", &self.refuses),
            ("recovers", &self.recovers),
        ]
    }

    fn tests(&self) -> impl Iterator<Item = &(&'static str, &'static str)> {
        self.evidence()
            .into_iter()
            .flat_map(|(_, evidence)| match evidence {
                Evidence::Tests(tests) => *tests,
                Evidence::NotNeeded(_) => &[],
            })
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
