//! Faults of a configuration, and their places.

use crate::place::FoundKeys;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The reason that no [`crate::Config`] could be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read at all.
    #[error("cannot read {}: {source}\n  fix: {}", file.display(), self.fix())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file could be read, but its content is invalid.
    #[error(transparent)]
    Invalid(#[from] Faults),
}

impl Error {
    /// Returns the remedy. Each fault of a readable file has its own.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "correct the lines named above",
            Self::Unreadable { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check the path, or copy one of the examples to it",
                io::ErrorKind::PermissionDenied => "run as the user that owns the file",
                io::ErrorKind::InvalidData => "save the file as UTF-8 text",
                _ => "check the file and its file system",
            },
        }
    }
}

/// All faults of one file, in the order of its lines; never empty.
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

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The key in dotted form; empty if the file is not TOML.
    pub key: String,
    /// Description of the fault.
    pub problem: String,
    /// The change that corrects it.
    pub fix: String,
    /// The line itself. `None` if it is empty, and for a key whose value should name a secret's
    /// file, because the value may be the secret.
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

/// State that all parts of a reader share: the folder of the file, the keys that were found,
/// and the faults so far.
pub(crate) struct Context {
    pub directory: PathBuf,
    /// Every key that was asked for and found, with its offset in octets.
    pub keys: RefCell<FoundKeys>,
    /// Every key that was asked for.
    #[cfg(test)]
    pub asked: RefCell<std::collections::BTreeSet<String>>,
    #[cfg(test)]
    pub schema: RefCell<crate::tests::Schema>,
    found: RefCell<Vec<Found>>,
}

/// A fault with an octet offset instead of a line.
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
            keys: RefCell::default(),
            #[cfg(test)]
            asked: RefCell::default(),
            #[cfg(test)]
            schema: RefCell::default(),
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

    /// Returns the faults with their lines and columns in `text`.
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

/// Returns a character of one column, so that the caret stands at the right place.
fn visible(c: char) -> char {
    if c == '\t' {
        ' '
    } else if c.is_control() {
        '?'
    } else {
        c
    }
}
