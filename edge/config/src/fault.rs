//! What is wrong with a configuration, and where.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why there is no [`crate::Config`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read at all.
    #[error("cannot read {}: {source}\n  fix: {}", file.display(), self.fix())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could be read but says something impossible.
    #[error(transparent)]
    Invalid(#[from] Faults),
}

impl Error {
    /// What to do. The faults of a readable file have a fix each.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "correct the lines named above",
            Self::Unreadable { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check the name, or copy one of the examples there",
                io::ErrorKind::PermissionDenied => "run as the user that owns it",
                io::ErrorKind::InvalidData => "save it as UTF-8 text",
                _ => "check the file",
            },
        }
    }
}

/// Everything that is wrong with one file, in the order of its lines; never empty.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Faults {
    /// The file.
    pub file: PathBuf,
    /// The faults.
    pub faults: Vec<Fault>,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.faults.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}{}:{fault}", self.file.display())?;
        }
        Ok(())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The key in dotted form; empty if the file is not TOML.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What to change.
    pub fix: String,
    /// The line itself. `None` if it is empty, and beside a key that ought to be a secret's file name, because it may
    /// be the secret.
    pub excerpt: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, .. } = self;
        write!(f, "{line}:{column}: ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}", self.problem)?;
        if let Some(excerpt) = &self.excerpt {
            let gutter = line.to_string().len();
            write!(f, "\n  {line} | {excerpt}")?;
            write!(f, "\n  {:gutter$} | {:2$}^", "", "", column - 1)?;
        }
        write!(f, "\n  fix: {}", self.fix)
    }
}

/// What a reader of the file shares with all its parts: where files beside it are, the keys that
/// were asked for, and the faults so far.
pub(crate) struct Context {
    pub directory: PathBuf,
    /// Every key that was asked for, and where in octets it was found.
    pub asked: RefCell<BTreeMap<String, Option<usize>>>,
    found: RefCell<Vec<Found>>,
}

/// A fault before its octet offset became a line.
struct Found {
    span: Range<usize>,
    key: String,
    problem: String,
    fix: String,
}

impl Context {
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            asked: RefCell::default(),
            found: RefCell::default(),
        }
    }

    /// Records a fault.
    pub fn fault(&self, span: Range<usize>, key: &str, problem: String, fix: String) {
        self.found.borrow_mut().push(Found {
            span,
            key: key.to_owned(),
            problem,
            fix,
        });
    }

    /// The faults with their places in `text`.
    pub fn into_faults(self, file: &Path, text: &str) -> Result<(), Faults> {
        let mut found = self.found.into_inner();
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|found| found.span.start);
        let faults = found.into_iter().map(|found| found.place(text)).collect();
        Err(Faults {
            file: file.to_owned(),
            faults,
        })
    }
}

impl Found {
    fn place(self, text: &str) -> Fault {
        let before = text.get(..self.span.start).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[start..].lines().next().unwrap_or_default();
        let named = ["psk", "ppk", "secret"]
            .iter()
            .any(|key| line.contains(key));
        let secret = named || line.trim_start().starts_with("key");
        let hidden = line.is_empty() || secret;
        Fault {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            key: self.key,
            problem: self.problem,
            fix: self.fix,
            excerpt: (!hidden).then(|| line.chars().map(visible).collect()),
        }
    }
}

/// One column for one character, so that the caret stands where it should.
fn visible(c: char) -> char {
    if c == '\t' {
        ' '
    } else if c.is_control() {
        '?'
    } else {
        c
    }
}
