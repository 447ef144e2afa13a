//! Connections grouped by the line of composite SAs that carries them, with a fair share of the
//! room for each line.
//!
//! A line is a composite SA with its successors by rekey. When the table is full, the line with the
//! most connections gives up its least recently used ones, so no line displaces another that has
//! fewer. Among lines of equal size the oldest gives way.

use model::{CsaId, Instant};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// At least one part in `AT_ONCE` of the room is freed at a time, because the search costs the same
/// for one connection as for many.
const AT_ONCE: usize = 64;

/// A line, or `None` for TCP in clear.
pub(crate) type Line = Option<CsaId>;

/// Connections `C` by line, and by name `F` within a line. No line is empty.
#[derive(Debug)]
pub(crate) struct Lines<F, C> {
    lines: BTreeMap<Line, BTreeMap<F, C>>,
    count: usize,
}

impl<F: Copy + Ord, C> Lines<F, C> {
    pub(crate) const fn new() -> Self {
        Self {
            lines: BTreeMap::new(),
            count: 0,
        }
    }

    pub(crate) fn get_mut(&mut self, line: Line, name: &F) -> Option<&mut C> {
        self.lines.get_mut(&line)?.get_mut(name)
    }

    pub(crate) fn get(&self, line: Line, name: &F) -> Option<&C> {
        self.lines.get(&line)?.get(name)
    }

    pub(crate) fn insert(&mut self, line: Line, name: F, connection: C) {
        let old = self.lines.entry(line).or_default().insert(name, connection);
        self.count += usize::from(old.is_none());
    }

    pub(crate) fn remove(&mut self, line: Line, name: &F) -> Option<C> {
        let of_line = self.lines.get_mut(&line)?;
        let connection = of_line.remove(name)?;
        self.count -= 1;
        if of_line.is_empty() {
            self.lines.remove(&line);
        }
        Some(connection)
    }

    pub(crate) fn remove_line(&mut self, line: Line) -> BTreeMap<F, C> {
        let gone = self.lines.remove(&line).unwrap_or_default();
        self.count -= gone.len();
        gone
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Line, &F, &C)> {
        self.lines.iter().flat_map(|(line, of_line)| {
            let of_line = of_line.iter();
            of_line.map(move |(name, one)| (*line, name, one))
        })
    }

    /// Returns the connections of one line.
    pub(crate) fn in_line(&self, line: Line) -> impl Iterator<Item = (&F, &C)> {
        self.lines.get(&line).into_iter().flatten()
    }

    /// Returns the connections to evict so that there is room for one more, with at most `most` in
    /// total.
    pub(crate) fn crowded_out(
        &self,
        most: usize,
        last_used: impl Fn(&C) -> Instant,
    ) -> Vec<(Line, F)> {
        if self.count < most.max(1) {
            return Vec::new();
        }
        let size = |(line, of_line): &(&Line, &BTreeMap<F, C>)| (of_line.len(), Reverse(**line));
        let largest = self.lines.iter().max_by_key(size);
        let Some((line, of_line)) = largest else {
            return Vec::new();
        };
        let used = of_line.iter().map(|(name, one)| (last_used(one), *name));
        let mut used: Vec<_> = used.collect();
        used.sort_unstable();
        let enough = (self.count + 1 - most.max(1)).max(most / AT_ONCE);
        let gone = used.into_iter().take(enough);
        gone.map(|(_, name)| (*line, name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn lines(counts: &[(u64, u64)]) -> Lines<u64, Instant> {
        let mut lines = Lines::new();
        for (line, count) in counts {
            for name in 0..*count {
                let used = Instant::ZERO + Duration::from_secs(count - name);
                lines.insert(Some(CsaId(*line)), name, used);
            }
        }
        lines
    }

    // Weakness: 109
    #[test]
    fn the_line_with_the_most_gives_way_by_what_it_used_the_longest_time_ago() {
        let lines = lines(&[(1, 2), (2, 5), (3, 3)]);
        assert_eq!(lines.crowded_out(11, |used| *used), []);
        let gone = lines.crowded_out(10, |used| *used);
        assert_eq!(gone, [(Some(CsaId(2)), 4)]);
    }

    #[test]
    fn where_there_is_room_for_many_it_is_made_for_several_at_once() {
        let lines = lines(&[(1, 1), (2, 255)]);
        let gone = lines.crowded_out(256, |used| *used);
        assert_eq!(gone.len(), 4);
        assert!(gone.iter().all(|(line, _)| *line == Some(CsaId(2))));
    }

    #[test]
    fn what_is_removed_is_counted_no_more() {
        let mut lines = lines(&[(1, 4), (2, 4)]);
        assert_eq!(lines.remove_line(Some(CsaId(1))).len(), 4);
        assert_eq!(
            lines.remove(Some(CsaId(2)), &0).map(|_| lines.count),
            Some(3)
        );
        assert_eq!(lines.remove(Some(CsaId(2)), &0), None);
        assert_eq!((lines.iter().count(), lines.count), (3, 3));
    }
}
