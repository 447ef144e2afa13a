//! Where in the file each key stands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The lines of a file's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    file: PathBuf,
    lines: BTreeMap<String, usize>,
}

impl Places {
    /// From the places where keys were found, as offsets in octets.
    pub(crate) fn new(file: &Path, text: &str, found: &BTreeMap<String, Option<usize>>) -> Self {
        let ends: Vec<_> = text.match_indices('\n').map(|(end, _)| end).collect();
        let line = |offset: usize| ends.partition_point(|end| *end < offset) + 1;
        let found = found
            .iter()
            .filter_map(|(key, offset)| Some((key.clone(), line((*offset)?))));
        Self {
            file: file.to_owned(),
            lines: found.collect(),
        }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The line of a key in dotted form, from 1. Of its table if the key is left out; `None` if
    /// that is left out too.
    pub fn line(&self, key: &str) -> Option<usize> {
        let table = || key.rsplit_once('.').map(|(table, _)| table);
        let line = self.lines.get(key);
        line.or_else(|| self.lines.get(table()?)).copied()
    }

    /// Every key and table that was found.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.lines.keys()
    }
}
