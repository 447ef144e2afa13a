//! Lines that a reader could not understand.

use std::sync::Arc;

/// Most faults that are kept with their place.
const MOST_KEPT: usize = 100;

/// The reason why a line is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Why {
    /// The line is longer than any that a gateway writes.
    #[error("the line is too long")]
    TooLong,
    /// The line is not UTF-8.
    #[error("the line is not UTF-8")]
    NotText,
    /// The record has no time, or an impossible one.
    #[error("the time is missing or impossible")]
    Time,
    /// The record has fewer parts than its kind needs.
    #[error("a field is missing")]
    Missing,
    /// A number is no number, or too large.
    #[error("a number is unreadable")]
    Number,
    /// A name is longer than 256 octets.
    #[error("a name is too long")]
    Name,
    /// A quotation mark is missing.
    #[error("a quotation mark is missing")]
    Quote,
    /// The end is before the begin.
    #[error("the session ends before it begins")]
    Backwards,
}

/// A line that is not used, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Name of the file.
    pub file: Arc<str>,
    /// Number of the line, from 1.
    pub line: u64,
    /// The reason.
    pub why: Why,
}

/// All lines that are not used: their number, and the places of the first.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    count: u64,
    first: Vec<Fault>,
}

impl Faults {
    /// Returns the number of lines.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first of them.
    pub fn first(&self) -> &[Fault] {
        &self.first
    }

    pub(crate) fn add(&mut self, file: &Arc<str>, line: u64, why: Why) {
        self.count += 1;
        if self.first.len() < MOST_KEPT {
            let file = Arc::clone(file);
            self.first.push(Fault { file, line, why });
        }
    }
}
