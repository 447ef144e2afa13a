//! Generates and checks `docs/licensed.md`, which tells operators the exact knowledge of a licensed
//! node, its duration and its end. Tests that fail if an answer is wrong claim the answer.

mod answers;

use answers::{Answer, SECTIONS};
use pages::{Claims, Kind};
use std::fmt::Write;

#[test]
fn every_answer_has_a_test() {
    let claims = claims();
    for Answer { id, question, .. } in answers() {
        assert!(
            !claims.tests(Kind::Answers, id).is_empty(),
            "{question}: no test shows it. Write `// Answers: {id}` directly above the attribute \
             of each test that does"
        );
    }
}

#[test]
fn the_page_says_what_the_answers_are() {
    let claims = claims();
    let mut page = format!("{}{INTRODUCTION}", pages::HEAD);
    for section in SECTIONS {
        let _ = writeln!(page, "\n## {}\n", section.title);
        page.push_str("| | | shown by |\n|---|---|---|\n");
        for answer in section.answers {
            let Answer { id, question, text } = answer;
            let tests = pages::cite(&claims.tests(Kind::Answers, id));
            let _ = writeln!(page, "| {question} | {text} | {tests} |");
        }
    }
    pages::check("licensed.md", &page);
}

fn answers() -> impl Iterator<Item = &'static Answer> {
    SECTIONS.iter().flat_map(|section| section.answers)
}

fn claims() -> Claims {
    let ids: Vec<_> = answers().map(|answer| answer.id.to_owned()).collect();
    let list = "edge/strata/tests/learning/answers.rs";
    Claims::read(&[Kind::Answers], list, &ids)
}

const INTRODUCTION: &str = "# What a licensed node learns\n\n\
    Read this before you let a router on the path read a part of each packet, or run such a router. A *licence* names \
    a node, zones and a right; both ends of a tunnel give it, or it is not given. At an end, `strata zones` shows which \
    node can read which zones now, and at the node, which zones it can open. `strata audit` shows the past.\n";
