//! Generates and checks `docs/weaknesses.md`: known weaknesses of other implementations, with
//! Strata's protection.
//!
//! The list was gathered from advisories, papers and errata of other projects. Tests that fail if
//! Strata had a weakness claim it: `// Weakness: 17`, `// Weakness: S3` for an attack on zones, or
//! `// Weakness: M3` for an attack on moves.
//! A row without tests gives the reason why the weakness cannot exist here; usually the protocol
//! feature is not implemented. A claim of no row, or a missing row, fails.

mod list;
mod moves;
mod zones;

use list::{Answer, WEAKNESSES, Weakness};
use moves::MOVES;
use pages::{Claims, Kind};
use std::fmt::Write;
use zones::ZONES;

/// Numbers of known weaknesses: of other implementations, of zones, and of moves.
const KNOWN: [usize; 3] = [204, 38, 8];

#[test]
fn every_known_weakness_has_its_row() {
    for (list, known) in [WEAKNESSES, ZONES, MOVES].into_iter().zip(KNOWN) {
        let numbers: Vec<_> = list.iter().map(|weakness| weakness.number).collect();
        let all: Vec<_> = (1..=known).collect();
        assert_eq!(numbers, all);
    }
}

#[test]
fn every_row_has_a_test_that_runs_or_a_reason() {
    let claims = claims();
    for (name, weakness) in rows() {
        let shown = !claims.tests(Kind::Weakness, &name).is_empty();
        match weakness.answer {
            Answer::Tests => assert!(
                shown,
                "{name}: no test shows it. Write `// Weakness: {name}` directly above the \
                 attribute of each test that fails if Strata has the weakness"
            ),
            Answer::Nothing(why) => {
                assert!(why.len() > 20, "{name}: that is no reason");
                assert!(
                    !shown,
                    "{name} has a reason and tests: replace the reason by `Tests`"
                );
            }
        }
    }
}

#[test]
fn the_page_says_what_the_list_is() {
    let claims = claims();
    let mut page = format!("{}{INTRODUCTION}", pages::HEAD);
    for (index, (name, weakness)) in rows().enumerate() {
        if index == WEAKNESSES.len() {
            page.push_str(OF_ZONES);
        }
        if index == WEAKNESSES.len() + ZONES.len() {
            page.push_str(OF_MOVES);
        }
        let Weakness { seen, what, .. } = weakness;
        let answer = match weakness.answer {
            Answer::Tests => pages::cite(&claims.tests(Kind::Weakness, &name)),
            Answer::Nothing(why) => why.to_owned(),
        };
        let _ = writeln!(page, "| {name} | {seen} | {what} | {answer} |");
    }
    pages::check("weaknesses.md", &page);
}

const INTRODUCTION: &str = "# Known weaknesses\n\n\
    What IKE and IPsec implementations were broken by, ours included, and the tests that fail if \
    we were broken by it too. Where there is no test there is nothing that could have the weakness, \
    and the row says why.\n\n\
    | | where it was | what it was | what keeps it from us |\n|---|---|---|---|\n";

const OF_ZONES: &str = "\n# Attacks on zones\n\n\
    What an attacker could try with packets that are sealed in zones: a licence must give no more than it says. \
    The tests show how each drop is counted. An attacker that drops packets can always make a link look bad; that \
    shows what a licence shows, and only to its holder.\n\n\
    | | who | what | what keeps it from us |\n|---|---|---|---|\n";

const OF_MOVES: &str = "\n# Attacks on moves\n\n\
    What an attacker could try with moves to other addresses and with further paths, what protects \
    from it, and the tests. Random walks of moves have a third party of this kind \
    ([pure/node/src/tests/moves.rs](../pure/node/src/tests/moves.rs)), and \
    [formal](../formal/README.md) has models in which each check is left out once.\n\n\
    | | who | what, and what protects | what keeps it from us |\n|---|---|---|---|\n";

/// All rows, each with its name in claims and on the page.
fn rows() -> impl Iterator<Item = (String, &'static Weakness)> {
    let named = |series, list: &'static [Weakness]| {
        let rows = list.iter();
        rows.map(move |weakness| (format!("{series}{}", weakness.number), weakness))
    };
    let others = named("S", ZONES).chain(named("M", MOVES));
    named("", WEAKNESSES).chain(others)
}

fn claims() -> Claims {
    let names: Vec<_> = rows().map(|(name, _)| name).collect();
    let lists = "edge/strata/tests/weaknesses/{list,moves,zones}.rs";
    Claims::read(&[Kind::Weakness], lists, &names)
}
