//! The explanations of the rows in the examples.

use super::notes::{Line, Notes};
use super::schema::Schema;
use crate::keys::{Described, described};
use std::collections::{BTreeMap, BTreeSet};

/// The column at which comments of an example begin.
const COLUMN: usize = 36;

/// Longest line of an example, in characters.
const WIDTH: usize = 100;

/// The rows that explain their keys, with the tables of the page.
pub(super) struct Rows {
    /// Rows in their order, by table and key.
    all: Vec<((String, String), Described)>,
}

impl Rows {
    /// Finds the tables in the examples. A key of a table without a heading of its own has a dot:
    /// `level.every` of `[peer.NAME]` is `every` of `[peer.NAME.level]`.
    pub fn new(notes: &Notes) -> Self {
        let placed = |row: Described| {
            let name = format!("{}.{}", row.table, row.key);
            let table = notes.table_of(&name).unwrap_or(row.table).to_owned();
            let key = name[table.len() + 1..].to_owned();
            ((table, key), row)
        };
        let rows = described();
        // A key of all parties is explained at the peer.
        let peers: BTreeSet<_> = rows
            .iter()
            .filter(|row| row.table == "peer.NAME")
            .map(|row| (row.key, row.about))
            .collect();
        let is_own =
            |row: &Described| row.table == "peer.NAME" || !peers.contains(&(row.key, row.about));
        Self {
            all: rows.into_iter().filter(is_own).map(placed).collect(),
        }
    }

    /// Returns every row with its table and its key on the page.
    pub fn iter(&self) -> impl Iterator<Item = &((String, String), Described)> {
        self.all.iter()
    }

    /// Returns the explanation of a key.
    pub fn about(&self, table: &str, key: &str) -> Option<&'static str> {
        let mut all = self.all.iter();
        let found = all.find(|((home, name), _)| home == table && name == key);
        found.map(|(_, row)| row.about)
    }

    /// Returns the examples with the explanations of the rows. A key that no example has is added
    /// below the one whose row is before it.
    pub fn explain(&self, examples: &[String], notes: &Notes, schema: &Schema) -> Vec<String> {
        let mut missing: BTreeMap<&(String, String), Vec<&(_, Described)>> = BTreeMap::new();
        let mut before = None;
        for row in &self.all {
            let (table, key) = &row.0;
            match notes.place(table, key).is_some() {
                true => before = Some(&row.0),
                false => missing.entry(before.expect("a key")).or_default().push(row),
            }
        }
        let mut seen = BTreeSet::new();
        let explained = examples.iter().map(|example| {
            let mut out = Vec::new();
            let mut table = String::new();
            let mut is_commented = false;
            let mut lines = example.lines().peekable();
            let mut is_body = false;
            while let Some(line) = lines.next() {
                is_body |= line.is_empty();
                let mut block = vec![line.to_owned()];
                match Line::read(line) {
                    _ if !is_body => {}
                    Line::Table(name, _) => {
                        let list = if name.starts_with("[[") { "[]" } else { "" };
                        table = schema.general(name.trim_matches(['[', ']'])) + list;
                        is_commented = line.starts_with('#');
                    }
                    Line::Key(key, comment) => {
                        let mut text = comment.map(|text| text.trim().to_owned());
                        while let Some(Line::More(more)) = lines.peek().map(|next| Line::read(next))
                        {
                            let text = text.get_or_insert_default();
                            text.push(' ');
                            text.push_str(more.trim());
                            block.extend(lines.next().map(str::to_owned));
                        }
                        let place = (table.clone(), key.to_owned());
                        let about = self.about(&place.0, &place.1);
                        let is_first = seen.insert(place.clone());
                        let is_wide = block.iter().any(|line| line.chars().count() > WIDTH);
                        if let (Some(about), Some(text), true) = (about, text, is_first)
                            && (text != about || is_wide)
                        {
                            let (front, bare) = match line.strip_prefix("# ") {
                                Some(bare) => ("# ", bare),
                                None => ("", line),
                            };
                            let code = bare.split(" #").next().unwrap_or_default().trim_end();
                            let code = format!("{front}{code}");
                            block = commented(&code, about, is_commented);
                        }
                        if is_first {
                            for (_, row) in missing.get(&place).into_iter().flatten() {
                                let code = format!("# {} = {}", row.key, row.example);
                                block.extend(commented(&code, row.about, is_commented));
                            }
                        }
                    }
                    Line::More(_) | Line::Prose(_) | Line::Gap | Line::End => {}
                }
                out.extend(block);
            }
            out.join("\n") + "\n"
        });
        explained.collect()
    }
}

/// Formats a line of an example with its explanation, which may continue on further lines.
fn commented(code: &str, about: &str, is_commented: bool) -> Vec<String> {
    let mut lines = vec![format!("{code:COLUMN$}#")];
    if code.len() >= COLUMN {
        lines = vec![format!("{code}  #")];
    }
    let more = match is_commented {
        true => format!("{:COLUMN$}#  ", "#"),
        false => format!("{:COLUMN$}#  ", ""),
    };
    for word in about.split(' ') {
        let last = lines.last_mut().expect("one is there");
        match last.chars().count() + 1 + word.chars().count() <= WIDTH {
            true => *last = format!("{last} {word}"),
            false => lines.push(format!("{more} {word}")),
        }
    }
    lines
}

#[test]
fn an_example_has_no_wide_lines() {
    for example in super::examples() {
        let wide = example.lines().find(|line| line.chars().count() > WIDTH);
        assert_eq!(wide, None);
    }
}

#[test]
fn an_explanation_is_written_beside_its_key() {
    let text = "one two three four five six seven eight nine ten eleven twelve thirteen";
    assert_eq!(
        commented("# key = true", text, false),
        [
            "# key = true                        # one two three four five six seven eight nine ten eleven twelve",
            "                                    #   thirteen",
        ]
    );
}
