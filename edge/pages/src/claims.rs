//! Claims of tests: what a test is evidence of, for the pages that list evidence.
//!
//! A claim is a comment of one line, directly above the attribute of the test:
//!
//! ```text
//! // Works: split-routes
//! // Weakness: S17
//! #[lab::test]
//! fn what_is_behind_the_gateway_goes_in() -> Result<()> {
//! ```
//!
//! The word is a [`Kind`], the subject an entry in the list of a page.

use crate::repository;
use std::fmt;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// Folders with tests, in the order in which pages cite them: first tests of whole programs.
const FOLDERS: [&str; 4] = ["lab", "edge", "pure", "fuzz"];

/// The relation of a test to the subject of its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A feature works, with the real programs in network namespaces.
    Works,
    /// A user learns why a feature is refused.
    Refuses,
    /// A feature recovers after the loss of packets, processes or peers.
    Recovers,
    /// The test fails if Strata has a weakness.
    Weakness,
    /// An answer about licensed nodes is true.
    Answers,
}

use Kind::{Answers, Recovers, Refuses, Weakness, Works};

/// All claims of some kinds, in the order of the page.
pub struct Claims(Vec<Claim>);

/// A claim in a source file. `test` is `None` if no test follows.
#[derive(Debug, PartialEq, Eq)]
struct Claim {
    kind: Kind,
    subject: String,
    file: String,
    line: usize,
    test: Option<String>,
    /// The claim has the exact form, so that a search finds it.
    exact: bool,
}

impl Claims {
    /// Reads the claims of these kinds from the sources of the workspace. `list` is the file that
    /// contains all subjects.
    ///
    /// # Panics
    ///
    /// If a claim is at no test, names no subject, has another form, or is repeated.
    pub fn read(kinds: &[Kind], list: &str, subjects: &[String]) -> Self {
        let mut claims = Vec::new();
        for folder in FOLDERS {
            walk(&repository(), folder, &mut claims);
        }
        claims.retain(|claim| kinds.contains(&claim.kind));
        let faults = faults(&claims, list, subjects);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        Self(claims)
    }

    /// Returns file and name of each test with this claim.
    pub fn tests(&self, kind: Kind, subject: &str) -> Vec<(&str, &str)> {
        let claims = self.0.iter();
        let claims = claims.filter(|claim| claim.kind == kind && claim.subject == subject);
        claims
            .filter_map(|claim| Some((claim.file.as_str(), claim.test.as_deref()?)))
            .collect()
    }
}

impl Kind {
    const ALL: [Self; 5] = [Works, Refuses, Recovers, Weakness, Answers];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "// {}: {}", self.kind, self.subject)
    }
}

/// Adds the claims of all Rust files below a folder, sorted by path and line.
fn walk(root: &Path, folder: &str, claims: &mut Vec<Claim>) {
    let entries = read_dir(root.join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name != "target")
        .collect();
    names.sort();
    for name in names {
        let path = format!("{folder}/{name}");
        if root.join(&path).is_dir() {
            walk(root, &path, claims);
        } else if name.ends_with(".rs") {
            let text = read_to_string(root.join(&path));
            let text = text.unwrap_or_else(|error| panic!("{path} cannot be read: {error}"));
            claims.extend(scan(&path, &text));
        }
    }
}

/// Returns all claims of a source file.
fn scan(file: &str, text: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    // The claims from here on wait for their test.
    let mut waiting = 0;
    let mut lines = text.lines().map(str::trim).zip(1..).peekable();
    while let Some((line, number)) = lines.next() {
        if let Some(claim) = claim(file, line, number) {
            claims.push(claim);
            continue;
        }
        if is_attribute(line) {
            let test = lines.peek().and_then(|(next, _)| function(next));
            for claim in &mut claims[waiting..] {
                claim.test = test.map(str::to_owned);
            }
        }
        waiting = claims.len();
    }
    claims
}

/// Reads a line that is a claim, also in another form, such as `/// works: x`. Sentences in
/// documentation are no claims.
fn claim(file: &str, line: &str, number: usize) -> Option<Claim> {
    let comment = line.strip_prefix("//")?;
    let (word, subject) = comment.split_once(':')?;
    let (is_plain, subject) = (comment.starts_with(' '), subject.trim());
    let word = word.trim_start_matches(['/', '!']).trim();
    let mut kinds = Kind::ALL.into_iter();
    let kind = kinds.find(|kind| kind.to_string().eq_ignore_ascii_case(word))?;
    if !is_plain && subject.contains(' ') {
        return None;
    }
    let mut claim = Claim {
        kind,
        subject: subject.to_owned(),
        file: file.to_owned(),
        line: number,
        test: None,
        exact: false,
    };
    claim.exact = line == claim.to_string();
    Some(claim)
}

/// Returns true for the attribute that makes a function a test.
fn is_attribute(line: &str) -> bool {
    line == "#[test]" || (line.starts_with("#[lab::test") && line.ends_with(']'))
}

/// Returns the name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("fn ")?.split_once('(')?;
    Some(name)
}

/// Returns all that has to be corrected, each with its place.
fn faults(claims: &[Claim], list: &str, subjects: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, claim) in claims.iter().enumerate() {
        let same = |other: &&Claim| {
            (&other.test, &other.file, other.kind, &other.subject)
                == (&claim.test, &claim.file, claim.kind, &claim.subject)
        };
        let fault = if !claim.exact {
            format!("has another form: write `{claim}`, alone in its line")
        } else if !subjects.contains(&claim.subject) {
            format!("names no entry of {list}: correct the name, or add the entry")
        } else if claim.test.is_none() {
            "is at no test: move the line directly above `#[test]` or `#[lab::test]`".to_owned()
        } else if claims[..index].iter().any(|other| same(&other)) {
            "is repeated: delete one of the two lines".to_owned()
        } else {
            continue;
        };
        faults.push(format!("{}:{}: `{claim}` {fault}", claim.file, claim.line));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "list.rs";

    fn check(text: &str) -> Vec<String> {
        let subjects = ["tunnel", "S3"].map(str::to_owned);
        faults(&scan("a.rs", text), LIST, &subjects)
    }

    #[test]
    fn a_claim_belongs_to_the_test_below_it() {
        let text = "/// Text.\n// Works: tunnel\n// Weakness: S3\n#[lab::test(alone)]\n\
                    fn it_works() -> Result<()> {}\n\n    // Refuses: tunnel\n    #[test]\n    \
                    fn it_fails() {";
        assert!(check(text).is_empty(), "{:?}", check(text));
        let claims = Claims(scan("a.rs", text));
        assert_eq!(claims.tests(Works, "tunnel"), [("a.rs", "it_works")]);
        assert_eq!(claims.tests(Weakness, "S3"), [("a.rs", "it_works")]);
        assert_eq!(claims.tests(Refuses, "tunnel"), [("a.rs", "it_fails")]);
        assert!(claims.tests(Recovers, "tunnel").is_empty());
        assert!(claims.tests(Works, "S3").is_empty());
    }

    /// Negative control: functions that no runner calls are not tests.
    #[test]
    fn a_claim_away_from_a_test_is_a_fault() {
        for text in [
            "// Works: tunnel\nfn it_works() {",
            "// Works: tunnel\n",
            "// Works: tunnel\n\n#[test]\nfn it_works() {",
            "// Works: tunnel\n/// Text.\n#[test]\nfn it_works() {",
            "// Works: tunnel\n// #[test]\n// fn it_works() {",
            "// Works: tunnel\n#[test]\n#[ignore]\nfn it_works() {",
            "// Works: tunnel\n#[ignore]\n#[test]\nfn it_works() {",
            "#[test]\n// Works: tunnel\nfn it_works() {",
            "#[test]\nfn it_works() {\n// Works: tunnel\n}",
        ] {
            let [fault] = &check(text)[..] else {
                panic!("{text}: {:?}", check(text));
            };
            assert!(fault.contains("is at no test"), "{text}: {fault}");
        }
    }

    #[test]
    fn every_other_fault_says_what_to_change() {
        let test = "#[test]\nfn it_works() {";
        for (claim, fault) in [
            (
                "// Works: funnel",
                "a.rs:1: `// Works: funnel` names no entry of list.rs: correct the name",
            ),
            ("// Works:", "another form: write `// Works: `"),
            ("/// works: tunnel", "write `// Works: tunnel`"),
            ("//Works: tunnel", "write `// Works: tunnel`"),
            ("// Works: tunnel, S3", "names no entry of list.rs"),
            (
                "// Works: tunnel\n// Works: tunnel",
                "a.rs:2: `// Works: tunnel` is repeated",
            ),
        ] {
            let faults = check(&format!("{claim}\n{test}"));
            let [seen] = &faults[..] else {
                panic!("{claim}: {faults:?}");
            };
            assert!(seen.contains(fault), "{claim}: {seen}");
        }
        for prose in [
            "// What works: tunnel",
            "/// Answers: sent by a home agent.",
        ] {
            assert!(check(&format!("{prose}\n{test}")).is_empty(), "{prose}");
        }
    }

    #[test]
    fn sources_are_read_in_the_order_of_the_page() {
        let mut claims = Vec::new();
        for folder in FOLDERS {
            walk(&repository(), folder, &mut claims);
        }
        let folder = |claim: &Claim| {
            let folder = claim.file.split('/').next();
            FOLDERS.iter().position(|known| Some(*known) == folder)
        };
        assert!(claims.is_sorted_by_key(folder));
        assert!(claims.len() > 1000, "{}", claims.len());
    }
}
