//! Pages below `docs/` that tests generate, so that they cannot become stale.
//!
//! A test renders a page from the events that it observed and passes it to [`check`]. The page in
//! the repository has to be identical. After an intended change, run the test once with
//! `UPDATE_DOCS=1`: it writes the page itself. Review the difference like any other.
//!
//! Pages of `docs/reference` come from the code: [`command_line`] renders the definition of a
//! program, [`Source`] finds texts in source files. [`Claims`] finds the tests that are evidence
//! for an entry of a page.
//!
//! [`check_vectors`] compares an implementation with the test vectors of the protocol.

mod blocks;
mod claims;
mod command_line;
mod machine;
#[cfg(test)]
mod operate;
#[cfg(test)]
mod reference;
mod source;
mod vectors;

pub use blocks::{Block, Entry, Table, blocks, configurations, tables};
pub use claims::{Claims, Kind};
pub use command_line::command_line;
pub use machine::{Machine, Transition};
pub use source::{Source, snake_case};
pub use vectors::{Vector, check_vectors};

use std::path::{Path, PathBuf};

/// The environment variable that makes tests write their pages.
pub const UPDATE: &str = "UPDATE_DOCS";

/// The first line of every generated page.
pub const HEAD: &str = "<!-- Written by a test: UPDATE_DOCS=1 cargo test. Change the test. -->\n";

/// The first line of every generated manual page, which is in roff.
pub const ROFF_HEAD: &str = ".\\\" Written by a test: UPDATE_DOCS=1 cargo test. Change the test.\n";

/// Compares a page with the observed content, or writes it. `page` is its path below `docs/`.
///
/// # Panics
///
/// If the page differs. The message contains the first line that differs and the command that
/// writes the page again.
#[track_caller]
pub fn check(page: &str, seen: &str) {
    // Another test may be reading a page that is up to date.
    let Some(complaint) = complaint(page, &read(page), seen) else {
        return;
    };
    assert!(std::env::var_os(UPDATE).is_some(), "{complaint}");
    let file = folder().join(page);
    std::fs::create_dir_all(file.parent().expect("a page is in a folder"))
        .and_then(|()| std::fs::write(&file, seen))
        .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
}

/// Returns the content of a page in the repository, or an empty string if there is none.
pub fn read(page: &str) -> String {
    std::fs::read_to_string(folder().join(page)).unwrap_or_default()
}

/// Returns the names of the pages in a folder below `docs/`, sorted.
pub fn list(below: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder().join(below))
        .into_iter()
        .flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Formats tests as pages below `docs/` cite them, grouped by file.
pub fn cite(tests: &[(&str, &str)]) -> String {
    let files = tests.chunk_by(|a, b| a.0 == b.0).map(|tests| {
        let file = tests[0].0;
        let names: Vec<_> = tests.iter().map(|(_, test)| format!("`{test}`")).collect();
        format!("[{file}](../{file}): {}", names.join(", "))
    });
    files.collect::<Vec<_>>().join("; ")
}

/// Returns the command that writes the pages of the running test.
pub fn command() -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    format!(
        "{UPDATE}=1 cargo test -p {package} {}",
        thread.name().unwrap_or_default()
    )
}

/// Returns the root of the repository, for tests that read its files.
pub fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize()
        .expect("this crate lies two folders deep")
}

fn folder() -> PathBuf {
    repository().join("docs")
}

/// Returns the message for a page that differs from the observed content, or `None` if they are
/// equal.
fn complaint(page: &str, written: &str, seen: &str) -> Option<String> {
    let (line, was, is) = first_difference(written, seen)?;
    Some(format!(
        "docs/{page} is out of date, first in line {line}:\n  written: {was}\n  seen:    {is}\n\
         If the change is meant, write the page anew and look at the difference:\n  {}",
        command()
    ))
}

/// Returns the number of the first line that differs, and both versions of it.
fn first_difference<'a>(was: &'a str, is: &'a str) -> Option<(usize, &'a str, &'a str)> {
    const END: &str = "(the page ends)";
    let (mut old, mut new) = (was.lines(), is.lines());
    let differ = (1..).find_map(|number| match (old.next(), new.next()) {
        (None, None) => Some(None),
        (a, b) if a == b => None,
        (a, b) => Some(Some((number, a.unwrap_or(END), b.unwrap_or(END)))),
    });
    differ
        .flatten()
        .or((was != is).then_some((0, "other line ends", "line feeds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_told() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "b", "c")));
        assert_eq!(
            first_difference("a\n", "a\nc\n"),
            Some((2, "(the page ends)", "c"))
        );
        assert_eq!(
            first_difference("a\nc\n", "a\n"),
            Some((2, "c", "(the page ends)"))
        );
        assert!(first_difference("a\r\n", "a\n").is_some());
    }

    #[test]
    fn a_page_out_of_date_says_how_to_write_it_anew() {
        assert_eq!(complaint("a.md", "text\n", "text\n"), None);
        let missing = complaint("a.md", "", "text\n").unwrap();
        assert!(
            missing.contains("docs/a.md is out of date, first in line 1"),
            "{missing}"
        );
        let command = "UPDATE_DOCS=1 cargo test -p pages tests::a_page_out_of_date";
        assert!(missing.contains(command), "{missing}");
    }
}
