//! The explanations of keys in the examples.

use super::schema::Schema;
use std::collections::BTreeMap;

/// Longest line of the page, in characters.
const WIDTH: usize = 100;

/// The tables of the examples, in their order, and the explanations of tables and keys.
pub(crate) struct Notes {
    tables: Vec<String>,
    /// Keys in their order, with their tables.
    keys: Vec<(String, String)>,
    /// Paragraphs by table, and by table and key.
    texts: BTreeMap<(String, String), Vec<String>>,
}

/// A line of an example.
pub(super) enum Line<'a> {
    Table(&'a str, Option<&'a str>),
    Key(&'a str, Option<&'a str>),
    /// A comment that continues the one above.
    More(&'a str),
    /// A line that is only a comment.
    Prose(&'a str),
    /// An empty line of a comment.
    Gap,
    /// Any other line.
    End,
}

impl<'a> Line<'a> {
    pub(super) fn read(line: &'a str) -> Self {
        let bare = line.strip_prefix("# ").unwrap_or(line);
        let (code, comment) = match bare.split_once(" #") {
            Some((code, comment)) => (code.trim_end(), Some(comment)),
            None => (bare, None),
        };
        let more = comment.and_then(|comment| comment.strip_prefix("   "));
        let is_key = |key: &str| key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let key = code.split_once(" = ").map(|(key, _)| key);
        match (more, key) {
            (Some(more), _) => Self::More(more),
            (None, Some(key)) if is_key(key) => Self::Key(key, comment),
            _ if code.starts_with('[') && code.ends_with(']') => Self::Table(code, comment),
            // A value may continue on the next line.
            _ if line.trim_end() == "#" || line.starts_with("#  ") => Self::Gap,
            _ if line.starts_with("# ") => Self::Prose(bare),
            _ => Self::End,
        }
    }
}

impl Notes {
    /// Reads the examples. The first explanation of a key counts, and all of a table.
    pub fn read(examples: &[String], schema: &Schema) -> Self {
        let mut notes = Self {
            tables: Vec::new(),
            keys: Vec::new(),
            texts: BTreeMap::new(),
        };
        for example in examples {
            notes.add(example, schema);
        }
        notes
    }

    fn add(&mut self, example: &str, schema: &Schema) {
        let mut table = String::new();
        // The explanation that a comment may continue.
        let mut last = None;
        let mut prose: Vec<&str> = Vec::new();
        // The head of a file is about the whole.
        let body = example.split_once("\n\n").map_or(example, |(_, body)| body);
        for line in body.lines() {
            let above = prose.join(" ");
            let line = Line::read(line);
            if let Line::Key(key, _) = &line {
                self.keys.push((table.clone(), (*key).to_owned()));
            }
            match line {
                Line::Prose(text) => {
                    prose.push(text);
                    continue;
                }
                Line::More(text) => {
                    self.extend(last.as_ref(), text);
                    continue;
                }
                Line::Gap => continue,
                Line::End => self.explain(&table, "", &above),
                Line::Table(name, comment) => {
                    let list = if name.starts_with("[[") { "[]" } else { "" };
                    table = schema.general(name.trim_matches(['[', ']'])) + list;
                    self.explain(&table, "", &above);
                    let is_new = !self.tables.contains(&table);
                    if is_new {
                        self.tables.push(table.clone());
                        self.explain(&table, "", comment.unwrap_or_default());
                    }
                    last = is_new.then(|| (table.clone(), String::new()));
                }
                Line::Key(key, Some(comment)) => {
                    self.explain(&table, "", &above);
                    let is_new = !self.has(&table, key);
                    if is_new {
                        self.explain(&table, key, comment);
                    }
                    last = is_new.then(|| (table.clone(), key.to_owned()));
                }
                Line::Key(key, None) => {
                    self.explain(&table, key, &above);
                    last = None;
                }
            }
            prose.clear();
        }
    }

    fn explain(&mut self, table: &str, key: &str, text: &str) {
        if !text.is_empty() && !table.is_empty() {
            let place = (table.to_owned(), key.to_owned());
            self.texts
                .entry(place)
                .or_default()
                .push(text.trim().to_owned());
        }
    }

    /// Continues the last explanation of a key or a table.
    fn extend(&mut self, place: Option<&(String, String)>, text: &str) {
        let texts = place.and_then(|place| self.texts.get_mut(place));
        if let Some(last) = texts.and_then(|texts| texts.last_mut()) {
            last.push(' ');
            last.push_str(text.trim());
        }
    }

    /// Returns the tables in the order of the examples.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(String::as_str)
    }

    /// Returns true if an example explains a key.
    pub fn has(&self, table: &str, key: &str) -> bool {
        self.texts.contains_key(&(table.to_owned(), key.to_owned()))
    }

    /// Returns the table of a key.
    pub fn table_of(&self, key: &str) -> Option<&str> {
        let is_in = |table: &&String| {
            let rest = key.strip_prefix(table.as_str());
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        let tables = self.tables.iter().filter(is_in);
        tables.max_by_key(|table| table.len()).map(String::as_str)
    }

    /// Returns true if a key is a table with a part of its own on the page, or contains some.
    pub fn is_a_table(&self, key: &str) -> bool {
        let mut tables = self.tables.iter();
        tables.any(|table| {
            let rest = table.strip_prefix(key);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    /// Returns the place of a key of a table, or of the key that it is a part of.
    pub fn place(&self, table: &str, key: &str) -> Option<usize> {
        let key = key.split(['.', '[']).next().unwrap_or_default();
        let mut keys = self.keys.iter();
        keys.position(|(home, known)| home == table && known == key)
    }

    /// Returns the paragraphs about a table.
    pub fn about(&self, table: &str) -> String {
        let texts = self.texts.get(&(table.to_owned(), String::new()));
        let texts = texts.into_iter().flatten();
        texts.map(|text| wrap(&sentence(text), "") + "\n").collect()
    }

    /// Returns the entry of a key that an example explains.
    pub fn note(&self, table: &str, key: &str) -> String {
        entry(key, &self.text(table, key).unwrap_or_default())
    }

    /// Returns the explanation of a key in the examples.
    pub fn text(&self, table: &str, key: &str) -> Option<String> {
        let texts = self.texts.get(&(table.to_owned(), key.to_owned()))?;
        let sentences: Vec<_> = texts.iter().map(|text| sentence(text)).collect();
        Some(match &texts[..] {
            [one] => one.clone(),
            _ => sentences.join(" "),
        })
    }

    /// Returns the entry of keys that the examples explain in another table.
    pub fn explained_by(&self, other: &str, keys: &[&str], table: &str) -> String {
        let lost: Vec<_> = keys.iter().filter(|key| !self.has(other, key)).collect();
        assert!(lost.is_empty(), "no example explains {lost:?} of [{table}]");
        let keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
        wrap(&format!("* {}: as in `[{other}]`", keys.join(", ")), "  ")
    }
}

/// Returns the entry of a key with its explanation.
pub(super) fn entry(key: &str, about: &str) -> String {
    wrap(&format!("* `{key}`: {about}"), "  ")
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    let end = if text.ends_with('.') { "" } else { "." };
    first
        .into_iter()
        .flatten()
        .chain(letters)
        .collect::<String>()
        + end
}

/// Breaks a text into lines; all but the first are indented.
fn wrap(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let is_full = |line: &String| line.chars().count() + 1 + word.chars().count() > WIDTH;
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if !is_full(line) => *line = format!("{line} {word}"),
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines.join("\n") + "\n"
}
