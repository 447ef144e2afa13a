//! The configuration that is written.

use crate::note::{Note, Weight, comments};
use crate::secret::Secret;

/// A line `key = value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: &'static str,
    /// The value in TOML.
    pub(crate) value: String,
}

/// A table, and the notes that belong to it. A table without a head is a group of notes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) head: String,
    pub(crate) notes: Vec<Note>,
    pub(crate) rows: Vec<Row>,
}

/// A configuration that is not written yet.
#[derive(Debug, Default)]
pub struct Draft {
    /// File of our certificate.
    pub certificate: Option<String>,
    /// File of our raw public key.
    pub public_key: Option<String>,
    /// True if a peer authenticates by certificate.
    pub needs_certificate: bool,
    /// True if the imported file does not name the CAs of such a peer.
    pub needs_authorities: bool,
    /// Name of the key that has to be created for this host, without extension.
    pub new_key: Option<String>,
    /// Public keys that other hosts have to bring: file names.
    pub awaited_keys: Vec<String>,
    pub(crate) source: &'static str,
    /// The files that were read, each with the number of lines before it.
    pub(crate) files: Vec<(usize, String)>,
    pub(crate) notes: Vec<Note>,
    pub(crate) node: Vec<Row>,
    pub(crate) tables: Vec<Table>,
    pub(crate) secrets: Vec<Secret>,
}

/// Files that the caller has found for a [`Draft`].
#[derive(Debug, Default)]
pub struct Found {
    /// `key` of the table `node`.
    pub key: Option<String>,
    /// `ca` of the table `node`.
    pub ca: Vec<String>,
}

/// A finished import.
#[derive(Debug)]
pub struct Import {
    /// The configuration.
    pub toml: String,
    /// Files with secrets, which belong beside it.
    pub secrets: Vec<Secret>,
    /// Lines without a place.
    pub notes: Vec<Note>,
    /// Number of tunnels.
    pub peers: usize,
}

impl Row {
    pub(crate) fn text(key: &'static str, value: &str) -> Self {
        let value = quoted(value);
        Self { key, value }
    }

    pub(crate) fn list<'a>(key: &'static str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values: Vec<_> = values.into_iter().map(quoted).collect();
        let value = format!("[{}]", values.join(", "));
        Self { key, value }
    }

    pub(crate) fn plain(key: &'static str, value: impl ToString) -> Self {
        let value = value.to_string();
        Self { key, value }
    }
}

impl Table {
    pub(crate) fn new(head: String, rows: Vec<Row>) -> Self {
        Self {
            head,
            rows,
            notes: Vec::new(),
        }
    }

    fn text(&self) -> String {
        // The last value of a key counts, as in the imported files.
        let is_last = |at: usize| {
            !self.rows[at + 1..]
                .iter()
                .any(|row| row.key == self.rows[at].key)
        };
        let rows = self.rows.iter().enumerate();
        let rows = rows.filter(|(at, _)| is_last(*at)).map(|(_, row)| row);
        let rows: String = rows
            .map(|row| format!("{} = {}\n", row.key, row.value))
            .collect();
        let head = match self.head.is_empty() {
            true => String::new(),
            false => format!("{}\n", self.head),
        };
        format!("\n{}{head}{rows}", comments(&self.notes))
    }
}

impl Draft {
    /// Writes the configuration with the files that were found.
    pub fn finish(mut self, found: &Found) -> Import {
        let key = self.new_key.as_ref().map(|name| format!("{name}.key"));
        let key = found.key.clone().or(key);
        for (row, value) in [("cert", &self.certificate), ("key", &key)] {
            let value = value.as_ref().map(|value| Row::text(row, value));
            self.node.extend(value);
        }
        if !found.ca.is_empty() {
            self.node
                .push(Row::list("ca", found.ca.iter().map(String::as_str)));
        }
        let node = Table {
            head: "[node]".to_owned(),
            notes: self.notes,
            rows: self.node,
        };
        let mut tables = vec![node];
        tables.append(&mut self.tables);
        let notes = tables.iter_mut().flat_map(|table| &mut table.notes);
        notes.for_each(|note| note.put(&self.files));
        let text: String = tables.iter().map(Table::text).collect();
        let source = self.source;
        let head = format!("# Imported from {source} by `strata import`.\n");
        let is_peer =
            |table: &&Table| table.head.starts_with("[peer.") && !table.head.contains(".child.");
        Import {
            toml: head + &text,
            peers: tables.iter().filter(is_peer).count(),
            notes: tables.into_iter().flat_map(|table| table.notes).collect(),
            secrets: self.secrets,
        }
    }

    /// Notes that a file was not found.
    pub fn note_missing(&mut self, what: &str, why: &str) {
        self.note(0, what, why, Weight::Lost);
    }

    pub(crate) fn note(&mut self, line: usize, what: &str, why: &str, weight: Weight) {
        self.notes.push(Note::new(line, what, why, weight));
    }
}

/// Returns a string of TOML.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a name for a table or a file: letters, digits, hyphens and underscores.
pub(crate) fn name(text: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => c,
        _ => '-',
    };
    let name: String = text.chars().take(64).map(plain).collect();
    match name.is_empty() {
        true => "peer".to_owned(),
        false => name,
    }
}

/// Returns a name that no other has, by a number behind it.
pub(crate) fn unique(name: String, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let free = names.find(|name| !taken.contains(name));
    free.unwrap_or(name)
}
