//! Conversion of foreign configurations: `swanctl.conf`, `ipsec.conf` and files of `wg-quick`.
//!
//! Each format has a folder with its grammar and the tables of its keys: `const CHILD` in
//! `swanctl/child.rs` has what becomes of each key of a child. A converter makes a [`Draft`], whose
//! caller looks for files that the draft needs, and [`Draft::finish`] writes our configuration. It
//! has a note for each line that has no place, in a comment at the table that the line belongs to.
//! Secrets are in [`Import::secrets`] alone.
//!
//! Nothing here reads files: the caller finds those that are included ([`Find`]). No input causes a
//! panic: the fuzz target `import` tries any text.

mod assemble;
mod connection;
mod draft;
mod fate;
mod identity;
mod ipsec;
mod note;
mod proposal;
mod range;
mod secret;
mod section;
mod selector;
mod sources;
mod swanctl;
#[cfg(test)]
mod tests;
mod time;
mod wg;

pub use draft::{Draft, Found, Import};
pub use ipsec::ipsec;
pub use note::{Note, Weight};
pub use secret::Secret;
pub use sources::{File, Find, Missing};
pub use swanctl::swanctl;
pub use wg::wg;

use std::fmt;

/// A text that is no file of the expected format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// File, unless it is the imported one.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong there, without secrets.
    pub what: String,
}

impl Unreadable {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        let what = what.into();
        Self {
            file: None,
            line,
            what,
        }
    }

    /// Returns the error with the place of its line.
    fn placed(self, names: &[(usize, String)]) -> Self {
        let (file, line) = sources::place(names, self.line);
        Self {
            file: file.map(str::to_owned),
            line,
            what: self.what,
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}, ")?;
        }
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Unreadable {}
