//! Comments have at most 100 columns. rustfmt does not wrap them.

use std::fs::{read_dir, read_to_string};
use std::path::Path;

const MOST: usize = 100;

/// Adds the places of comment lines that are too long, below a folder.
fn look(folder: &Path, found: &mut Vec<String>) {
    for entry in read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            look(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = read_to_string(&path).expect("a source file is text");
            let place = |line| format!("{}:{line}", path.display());
            found.extend(too_long(&text).into_iter().map(place));
        }
    }
}

/// Returns the numbers of comment lines that are too long. Drawings, tables, and a sample that is a
/// line by itself cannot be wrapped.
fn too_long(text: &str) -> Vec<usize> {
    let mut is_drawing = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_drawing = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!', ' ']);
        is_drawing ^= comment.starts_with("```");
        let is_sample =
            comment.matches('`').count() == 2 && comment.starts_with('`') && comment.ends_with('`');
        let is_whole = is_sample || comment.starts_with('|');
        if line.chars().count() > MOST && !is_drawing && !is_whole {
            found.push(number);
        }
    }
    found
}

#[test]
fn comments_have_at_most_100_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["pure", "edge", "lab", "fuzz"] {
        look(&root.join(folder), &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_long_comment_is_found_and_a_drawing_is_not() {
    let long = "word ".repeat(25);
    let text = format!(
        "//! {long}\nlet a = 1; // short\n/// ```text\n/// {long}\n/// ```\n    // {long}\n\
         /// | {long}|\n/// `{long}`\n/// `{long}` and `{long}`\nlet text = \"{long}\";\n"
    );
    assert_eq!(too_long(&text), [1, 6, 9]);
}
