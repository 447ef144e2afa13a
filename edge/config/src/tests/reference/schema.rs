//! The keys that the reader asks for, and the values that it accepts.

use super::notes::Notes;
use std::collections::{BTreeMap, BTreeSet};

/// What the reader has noted. Keys are in dotted form, elements of lists in brackets.
#[derive(Default)]
pub(crate) struct Schema {
    accepted: BTreeMap<String, BTreeSet<String>>,
    required: BTreeSet<String>,
    /// Tables of tables that have names.
    parents: BTreeSet<String>,
    /// Keys in the order of their discovery.
    keys: Vec<String>,
}

impl Schema {
    /// Notes values that a key may have.
    pub fn accept(&mut self, key: &str, values: String) {
        self.accepted
            .entry(key.to_owned())
            .or_default()
            .insert(values);
    }

    /// Notes that a key is required.
    pub fn require(&mut self, key: String) {
        self.required.insert(key);
    }

    /// Notes a table that has a name.
    pub fn name(&mut self, table: &str) {
        if let Some((parent, _)) = table.rsplit_once('.') {
            self.parents.insert(self.general(parent));
        }
    }

    /// Adds what the reader has noted of a file.
    pub(super) fn add(&mut self, other: Self, asked: BTreeSet<String>) {
        self.parents.extend(other.parents);
        for (key, values) in other.accepted {
            let key = self.general(&key);
            self.accepted.entry(key).or_default().extend(values);
        }
        for key in other.required {
            let key = self.general(&key);
            self.required.insert(key);
        }
        for key in asked {
            let key = self.general(&key);
            if !self.keys.contains(&key) {
                self.keys.push(key);
            }
        }
    }

    /// Replaces the names of tables by `NAME`, and numbers of elements by nothing.
    pub(super) fn general(&self, key: &str) -> String {
        let mut general = String::new();
        for part in key.split('.') {
            let is_named = self.parents.contains(&general);
            let element = part.split_once('[').map(|(list, _)| format!("{list}[]"));
            if !general.is_empty() {
                general.push('.');
            }
            general.push_str(match is_named {
                true => "NAME",
                false => element.as_deref().unwrap_or(part),
            });
        }
        general
    }

    /// Returns the keys of a table in the order of the examples, and the parts of those that are
    /// tables themselves.
    pub(super) fn keys<'a>(&'a self, table: &'a str, notes: &'a Notes) -> Vec<&'a str> {
        let is_there = move |key: &&String| {
            notes.table_of(key) == Some(table) && !notes.is_a_table(key) && !key.ends_with("[]")
        };
        let keys = self.keys.iter().filter(is_there);
        let mut keys: Vec<_> = keys.map(|key| &key[table.len() + 1..]).collect();
        keys.sort_by_key(|key| (notes.place(table, key).unwrap_or(usize::MAX), *key));
        keys
    }

    /// Returns the keys that belong to no table of the examples.
    pub(super) fn unexplained(&self, notes: &Notes) -> Vec<&String> {
        let lost = |key: &&String| notes.table_of(key).is_none() && !notes.is_a_table(key);
        self.keys.iter().filter(lost).collect()
    }

    pub(super) fn is_required(&self, key: &str) -> bool {
        self.required.contains(key)
    }

    /// Returns the values of a key in words. Text without a form of its own is a string.
    pub(super) fn values(&self, key: &str) -> String {
        let mut forms: Vec<_> = self
            .accepted
            .get(key)
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let elements = self.accepted.get(&format!("{key}[]"));
        let elements: Vec<_> = elements.into_iter().flatten().cloned().collect();
        if !elements.is_empty() && elements == forms {
            forms.push("list of these".to_owned());
        } else if !elements.is_empty() && !forms.iter().any(|form| form.starts_with("list")) {
            forms.push(format!("list of: {}", elements.join("; ")));
        }
        match forms.is_empty() {
            true => "string".to_owned(),
            false => forms.join("; "),
        }
    }
}
