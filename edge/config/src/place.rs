//! The lines of the file at which keys stand.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The lines of a file's keys. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    file: PathBuf,
    lines: Arc<Lines>,
}

/// The keys in their order, without any room between them: a file with 100,000 peers has half a
/// million.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lines {
    /// All keys, one behind the other.
    keys: Box<str>,
    /// End of each key in `keys`, and its line.
    ends: Box<[(u32, u32)]>,
}

/// Keys as the reader finds them. They are not strings of their own, which would lie between what
/// the configuration keeps in memory.
#[derive(Default)]
pub(crate) struct FoundKeys {
    text: String,
    /// End of each key in `text`, and its offset in the file.
    ends: Vec<(usize, usize)>,
}

impl FoundKeys {
    /// Adds a key at an offset of the file.
    pub fn insert(&mut self, key: &str, offset: usize) {
        self.text.push_str(key);
        self.ends.push((self.text.len(), offset));
    }

    fn keys(&self) -> impl Iterator<Item = (&str, usize)> {
        let begins = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        let keys = begins.zip(&self.ends);
        keys.map(|(begin, (end, offset))| (&self.text[begin..*end], *offset))
    }
}

impl Places {
    /// Converts offsets in octets, where keys were found, to lines.
    pub(crate) fn new(file: &Path, text: &str, found: FoundKeys) -> Self {
        let breaks: Vec<_> = text.match_indices('\n').map(|(end, _)| end).collect();
        let line = |offset: usize| breaks.partition_point(|end| *end < offset) + 1;
        let mut places: Vec<_> = found.keys().collect();
        places.sort_unstable();
        places.dedup_by_key(|(key, _)| *key);
        let (mut keys, mut ends) = (String::new(), Vec::with_capacity(places.len()));
        for (key, offset) in places {
            keys.push_str(key);
            ends.push((short(keys.len()), short(line(offset))));
        }
        Self {
            file: file.to_owned(),
            lines: Arc::new(Lines {
                keys: keys.into(),
                ends: ends.into(),
            }),
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
        let line = self.lines.line(key);
        line.or_else(|| self.lines.line(table()?))
    }

    /// Returns every key and table that was found.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        (0..self.lines.ends.len()).map(|place| self.lines.key(place))
    }
}

impl Lines {
    fn line(&self, key: &str) -> Option<usize> {
        let (mut first, mut behind) = (0, self.ends.len());
        while first < behind {
            let middle = usize::midpoint(first, behind);
            match self.key(middle).cmp(key) {
                Ordering::Less => first = middle + 1,
                Ordering::Greater => behind = middle,
                Ordering::Equal => return Some(self.ends[middle].1 as usize),
            }
        }
        None
    }

    fn key(&self, place: usize) -> &str {
        let begin = place.checked_sub(1).map_or(0, |last| self.ends[last].0);
        &self.keys[begin as usize..self.ends[place].0 as usize]
    }
}

/// Returns an offset or a line of a file. Of a file of more than 4 GiB, which no machine reads, it
/// would be wrong.
fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
