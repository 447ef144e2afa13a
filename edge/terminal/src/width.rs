//! The columns that text takes on a terminal.

use console::{Term, measure_text_width, truncate_str};
use std::borrow::Cow;

/// Size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of lines.
    pub rows: usize,
    /// Characters in a line.
    pub columns: usize,
}

/// Returns the size of the terminal that standard output is; `None` if it is none.
pub fn size() -> Option<Size> {
    let stdout = Term::stdout();
    let (rows, columns) = stdout.size_checked().filter(|_| stdout.is_term())?;
    let is_known = rows > 0 && columns > 0;
    is_known.then_some(Size {
        rows: rows.into(),
        columns: columns.into(),
    })
}

/// Returns the number of columns that text takes. Colours take none.
pub fn width(text: &str) -> usize {
    measure_text_width(text)
}

/// Cuts a line that is longer than a terminal is wide, and marks it as cut.
pub fn cut(line: &str, columns: Option<usize>) -> Cow<'_, str> {
    match columns {
        Some(columns) => truncate_str(line, columns, "…"),
        None => Cow::Borrowed(line),
    }
}

/// Fills text up with spaces.
pub fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Breaks text at its spaces into lines of at most `columns`, except for longer words.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut taken = 0;
    for word in text.split_whitespace() {
        let len = width(word);
        let line = lines.last_mut().expect("there is one from the beginning");
        if line.is_empty() {
            line.push_str(word);
            taken = len;
        } else if taken + 1 + len <= columns {
            line.push(' ');
            line.push_str(word);
            taken += 1 + len;
        } else {
            lines.push(word.to_owned());
            taken = len;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_the_terminal_ends_but_not_in_a_file() {
        assert_eq!(cut("office  up", Some(10)), "office  up");
        assert_eq!(cut("office  up", Some(9)), "office  …");
        assert_eq!(cut("office  up", None), "office  up");
        assert_eq!(cut("東京東京", Some(6)), "東京…");
    }

    #[test]
    fn colours_take_no_columns_and_survive_the_cut() {
        let red = "\x1b[31moffice\x1b[0m";
        assert_eq!(width(red), 6);
        assert_eq!(width(&padded(red, 10)), 10);
        let cut = cut(red, Some(4));
        assert!(width(&cut) == 4 && cut.ends_with("\x1b[0m"), "{cut:?}");
    }

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(
            wrapped("incomprehensible word", 4),
            ["incomprehensible", "word"]
        );
        assert_eq!(wrapped("", 7), [""]);
    }
}
