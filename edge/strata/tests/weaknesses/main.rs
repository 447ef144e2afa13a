//! Generates and checks `docs/weaknesses.md`: known weaknesses of other implementations, with
//! Strata's protection.
//!
//! The list was gathered from advisories, papers and errata of other projects. Each row names tests
//! that fail if Strata had the weakness, or gives the reason why it cannot exist here; usually the
//! protocol feature is not implemented. A test that does not run, or a missing row, fails.

mod list;
mod zones;

use list::{Answer, WEAKNESSES, Weakness};
use std::fmt::Write;
use zones::ZONES;

/// Numbers of known weaknesses: of other implementations, and of zones.
const KNOWN: [usize; 2] = [163, 37];

#[test]
fn every_known_weakness_has_its_row() {
    for (list, known) in [WEAKNESSES, ZONES].into_iter().zip(KNOWN) {
        let numbers: Vec<_> = list.iter().map(|weakness| weakness.number).collect();
        let all: Vec<_> = (1..=known).collect();
        assert_eq!(numbers, all);
    }
}

#[test]
fn every_row_has_a_test_that_runs_or_a_reason() {
    for weakness in [WEAKNESSES, ZONES].concat() {
        match weakness.answer {
            Answer::Tests(tests) => {
                assert!(!tests.is_empty(), "{}: nothing shows it", weakness.number);
                for (file, test) in tests {
                    assert!(
                        pages::runs(file, test),
                        "{}: {file} runs no test `{test}`. Correct \
                         edge/strata/tests/weaknesses/list.rs, then write the page anew: \
                         UPDATE_DOCS=1 cargo test -p strata --test weaknesses",
                        weakness.number
                    );
                }
            }
            Answer::Nothing(why) => {
                assert!(why.len() > 20, "{}: that is no reason", weakness.number);
            }
        }
    }
}

#[test]
fn the_page_says_what_the_list_is() {
    let mut page = format!("{}{INTRODUCTION}", pages::HEAD);
    for weakness in WEAKNESSES {
        let _ = writeln!(page, "{}", row("", weakness));
    }
    page.push_str(OF_ZONES);
    for weakness in ZONES {
        let _ = writeln!(page, "{}", row("S", weakness));
    }
    pages::check("weaknesses.md", &page);
}

const INTRODUCTION: &str = "# Known weaknesses\n\n\
    What IKE and IPsec implementations were broken by, ours included, and the tests that fail if \
    we were broken by it too. Where there is no test there is nothing that could have the weakness, \
    and the row says why.\n\n\
    | | where it was | what it was | what keeps it from us |\n|---|---|---|---|\n";

const OF_ZONES: &str = "\n# Attacks on zones\n\n\
    What somebody could try with packets that are sealed in zones: a licence must give no more than it says. What \
    each drop is counted as is in the tests. Who drops packets can always have a link look bad; that shows what a \
    licence shows, and to nobody else.\n\n\
    | | who | what | what keeps it from us |\n|---|---|---|---|\n";

fn row(series: &str, weakness: &Weakness) -> String {
    let Weakness {
        number,
        seen,
        what,
        answer,
    } = weakness;
    let answer = match answer {
        Answer::Tests(tests) => pages::cite(tests),
        Answer::Nothing(why) => (*why).to_owned(),
    };
    format!("| {series}{number} | {seen} | {what} | {answer} |")
}
