//! Notes about lines that have no place in our configuration.

use crate::sources::place;
use std::collections::BTreeSet;

/// The loss if a line has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Strata does it by itself, or otherwise, or it protects nothing.
    Remark,
    /// Something that protects the traffic is left out.
    Lost,
    /// The connection is left out as a whole.
    Refused,
}

/// A note about a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// File, unless it is the imported one.
    pub file: Option<String>,
    /// Line, from 1; 0 for none.
    pub line: usize,
    /// The line in short, never a secret.
    pub what: String,
    /// Reason, and what to do.
    pub why: String,
    /// The loss.
    pub weight: Weight,
}

impl Weight {
    /// Returns the word for the weight.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Remark => "remark",
            Self::Lost => "left out",
            Self::Refused => "refused",
        }
    }
}

impl Note {
    pub(crate) fn new(line: usize, what: &str, why: impl Into<String>, weight: Weight) -> Self {
        Self {
            file: None,
            line,
            what: what.to_owned(),
            why: why.into(),
            weight,
        }
    }

    /// Sets the file of the line, whose number counts the lines of all files.
    pub(crate) fn put(&mut self, files: &[(usize, String)]) {
        let (file, line) = place(files, self.line);
        self.file = file.map(str::to_owned);
        self.line = line;
    }

    /// Returns the place of the line, if the note has one: `line 3`, or `FILE, line 3`.
    pub fn place(&self) -> Option<String> {
        let line = format!("line {}", self.line);
        (self.line > 0).then(|| match &self.file {
            None => line,
            Some(file) => format!("{file}, {line}"),
        })
    }
}

/// Formats notes as comments. Lines with the same reason share one.
pub(crate) fn comments(notes: &[Note]) -> String {
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    for note in notes {
        if !seen.insert((note.why.as_str(), note.weight)) {
            continue;
        }
        let alike = notes.iter();
        let alike = alike.filter(|other| other.why == note.why && other.weight == note.weight);
        let places: Vec<_> = alike
            .map(|other| match other.place() {
                None => one_line(&other.what),
                Some(place) => one_line(&format!("{} ({place})", other.what)),
            })
            .collect();
        let mark = match note.weight {
            Weight::Remark => "",
            Weight::Lost => "LEFT OUT: ",
            Weight::Refused => "REFUSED: ",
        };
        let why = one_line(&note.why);
        text += &format!("# {mark}{}: {why}\n", places.join(", "));
    }
    text
}

/// Returns text that cannot end its comment.
fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}
