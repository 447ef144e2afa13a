//! Generates and checks `docs/licensed.md`, which tells operators the exact knowledge of a licensed
//! node, its duration and its end. Each answer names tests that fail if the answer is wrong.

mod answers;

use answers::{Answer, SECTIONS};
use std::fmt::Write;

#[test]
fn every_answer_has_a_test_that_runs() {
    for answer in SECTIONS.iter().flat_map(|section| section.answers) {
        let Answer {
            question, tests, ..
        } = answer;
        assert!(!tests.is_empty(), "{question}: nothing shows it");
        for (file, test) in *tests {
            assert!(
                pages::runs(file, test),
                "{question}: {file} runs no test `{test}`. Correct \
                 edge/strata/tests/learning/answers.rs, then write the page anew: \
                 UPDATE_DOCS=1 cargo test -p strata --test learning"
            );
        }
    }
}

#[test]
fn the_page_says_what_the_answers_are() {
    let mut page = format!("{}{INTRODUCTION}", pages::HEAD);
    for section in SECTIONS {
        let _ = writeln!(page, "\n## {}\n", section.title);
        page.push_str("| | | shown by |\n|---|---|---|\n");
        for answer in section.answers {
            let Answer {
                question,
                text,
                tests,
            } = answer;
            let _ = writeln!(page, "| {question} | {text} | {} |", pages::cite(tests));
        }
    }
    pages::check("licensed.md", &page);
}

const INTRODUCTION: &str = "# What a licensed node learns\n\n\
    Read this before you let a router on the path read a part of each packet, or run such a router. A *licence* names \
    a node, zones and a right; both ends of a tunnel give it, or it is not given. At an end, `strata zones` shows which \
    node can read which zones now, and at the node, which zones it can open. `strata audit` shows the past.\n";
