//! A table of a page, in columns.

use terminal::{Paint, padded, width, wrapped};

/// Spaces between two columns.
const GAP: usize = 2;

/// The least width of a column whose cells are broken into lines.
const LEAST: usize = 8;

/// A table, row by row. The first one has the headings.
#[derive(Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
}

impl Table {
    /// Adds a cell to the row under way.
    pub fn add(&mut self, cell: String) {
        self.row.push(cell);
    }

    /// Ends the row under way.
    pub fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Formats the table. Cells are broken into lines where it is wider than the terminal.
    pub fn show(&self, columns: usize, paint: Paint) -> String {
        let widths = self.widths(columns);
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            for line in lines(row, &widths) {
                let line = line.trim_end();
                text += &match at {
                    0 => paint.bold(line),
                    _ => line.to_owned(),
                };
                text.push('\n');
            }
        }
        text
    }

    /// Shares the columns of the terminal: narrow columns get what they need, those with a long
    /// word get room for it, and the others the rest in equal parts.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let longest: Vec<_> = (0..count).map(|at| self.longest_word(at)).collect();
        let mut widths: Vec<_> = (0..count).map(|at| self.widest(at)).collect();
        let mut left = columns.saturating_sub(GAP * count.saturating_sub(1));
        let mut open: Vec<usize> = (0..count).collect();
        while !open.is_empty() {
            let share = left / open.len();
            let (narrow, others): (Vec<_>, Vec<_>) =
                open.iter().copied().partition(|&at| widths[at] <= share);
            let (settled, wide) = match narrow.is_empty() {
                true => others.into_iter().partition(|&at| longest[at] > share),
                false => (narrow, others),
            };
            if settled.is_empty() {
                wide.iter().for_each(|&at| widths[at] = share.max(LEAST));
                break;
            }
            for &at in &settled {
                widths[at] = widths[at].min(share.max(longest[at]));
                left = left.saturating_sub(widths[at]);
            }
            open = wide;
        }
        widths
    }

    fn column(&self, at: usize) -> impl Iterator<Item = &String> {
        self.rows.iter().filter_map(move |row| row.get(at))
    }

    fn widest(&self, at: usize) -> usize {
        self.column(at).map(|cell| width(cell)).max().unwrap_or(0)
    }

    fn longest_word(&self, at: usize) -> usize {
        let words = self.column(at).flat_map(|cell| cell.split_whitespace());
        words.map(width).max().unwrap_or(0)
    }
}

/// Returns the lines of a row.
fn lines(row: &[String], widths: &[usize]) -> Vec<String> {
    let cells: Vec<_> = row
        .iter()
        .zip(widths)
        .map(|(cell, to)| wrapped(cell, *to))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| {
        let parts = cells.iter().zip(widths).map(|(cell, to)| {
            let part = cell.get(at).map_or("", String::as_str);
            padded(part, *to)
        });
        parts.collect::<Vec<_>>().join(&" ".repeat(GAP))
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_is_not_broken_and_the_other_columns_share_the_rest() {
        let mut table = Table::default();
        for row in [
            ["name", "kind", "meaning"],
            ["a_word_of_23_characters", "one", "a text of some words"],
        ] {
            for cell in row {
                table.add(cell.to_owned());
            }
            table.end_row();
        }
        let expected = "\
name                     kind  meaning
a_word_of_23_characters  one   a text of
                               some
                               words
";
        assert_eq!(table.show(40, Paint::new(false)), expected);
    }
}
