//! The lines of the file at which keys stand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The lines of a file's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    file: PathBuf,
    lines: BTreeMap<String, usize>,
}

impl Places {
    /// Converts offsets in octets, where keys were found, to lines.
    pub(crate) fn new(file: &Path, text: &str, found: BTreeMap<String, usize>) -> Self {
        let ends: Vec<_> = text.match_indices('\n').map(|(end, _)| end).collect();
        let line = |offset: usize| ends.partition_point(|end| *end < offset) + 1;
        let lines = found.into_iter().map(|(key, offset)| (key, line(offset)));
        Self {
            file: file.to_owned(),
            lines: lines.collect(),
        }
    }

    /// Returns the path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the line of a key in dotted form, from 1. If the key is left out, returns the line
    /// of its table, or `None` without that either.
    pub fn line(&self, key: &str) -> Option<usize> {
        let table = || key.rsplit_once('.').map(|(table, _)| table);
        let line = self.lines.get(key);
        line.or_else(|| self.lines.get(table()?)).copied()
    }

    /// Returns every key and table that was found.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.lines.keys()
    }
}
