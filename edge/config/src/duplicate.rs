//! The place of the first of two equal keys, which the TOML reader does not tell.

use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Returns the line of the key that the one at `again` repeats, counted from 1. `None` if that is
/// in the middle of a value.
pub(crate) fn first(text: &str, again: &Range<usize>) -> Option<usize> {
    let before = &text[..text
        .get(..again.start)?
        .rfind('\n')
        .map_or(0, |end| end + 1)];
    let line = text[before.len()..].lines().next()?;
    // The key by its path: alone below the header of its table.
    let header = before
        .lines()
        .rev()
        .find(|line| line.trim_start().starts_with('['));
    let own = match line.trim_start().starts_with('[') {
        true => line.to_owned(),
        false => format!("{}\n{line}", header.unwrap_or_default()),
    };
    let (own, _) = DeTable::parse_recoverable(&own);
    let (earlier, _) = DeTable::parse_recoverable(before);
    let first = find(earlier.get_ref(), own.get_ref())?;
    Some(before.get(..first)?.matches('\n').count() + 1)
}

/// Returns the offset of a key in `earlier`; `path` has nothing else.
fn find(earlier: &DeTable<'_>, path: &DeTable<'_>) -> Option<usize> {
    let (key, below) = path.iter().next()?;
    let name: &str = key.get_ref();
    let (known, value) = earlier.get_key_value(name)?;
    let deeper = table(below.get_ref()).filter(|below| !below.is_empty());
    match (deeper, table(value.get_ref())) {
        (Some(below), Some(value)) => find(value, below),
        _ => Some(known.span().start),
    }
}

/// Returns a table, or the last one of an array of tables.
fn table<'v, 'i>(value: &'v DeValue<'i>) -> Option<&'v DeTable<'i>> {
    match value {
        DeValue::Table(table) => Some(table),
        DeValue::Array(array) => table(array.iter().next_back()?.get_ref()),
        _ => None,
    }
}
