//! A reader of the parsed tables: every key is asked for once, the rest is unknown.

use crate::fault::Context;
use crate::keys::{Key, Read};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A value with its dotted name and its place in the file.
#[derive(Clone)]
pub(crate) struct Value<'a> {
    pub inner: &'a DeValue<'a>,
    pub context: &'a Context,
    name: String,
    span: Range<usize>,
    /// The table that the value is in, if it is one of its keys.
    table: Option<&'a DeTable<'a>>,
}

/// A table with the keys that have been asked for.
pub(crate) struct Table<'a> {
    value: Value<'a>,
    entries: &'a DeTable<'a>,
    asked: Vec<&'static str>,
}

impl<'a> Value<'a> {
    /// Returns the whole file as a value.
    pub fn root(inner: &'a DeValue<'a>, context: &'a Context) -> Self {
        Self {
            inner,
            context,
            name: String::new(),
            span: 0..0,
            table: None,
        }
    }

    /// Records a fault at this value. Returns `None`, so that a reader can end with it.
    pub fn fault<T>(&self, problem: impl Into<String>, fix: impl Into<String>) -> Option<T> {
        let span = self.span.clone();
        self.context
            .fault(span, &self.name, problem.into(), fix.into());
        None
    }

    /// Notes which values the key may have, in the words of the reference page, which a test
    /// writes.
    pub fn accepts(&self, values: impl FnOnce() -> String) {
        #[cfg(test)]
        self.context
            .schema
            .borrow_mut()
            .accept(&self.name, values());
        #[cfg(not(test))]
        let _ = values;
    }

    /// Returns the full name of a key below this value.
    fn dotted(&self, key: &str) -> String {
        match self.name.as_str() {
            "" => key.to_owned(),
            parent => format!("{parent}.{key}"),
        }
    }

    /// Returns the value at a path of keys below this one, for checks that look at several tables.
    pub fn at(&self, path: &[&str]) -> Option<Self> {
        path.iter().try_fold(self.clone(), |value, key| {
            Table::new(&value)?.entry(key).map(|(_, value)| value)
        })
    }

    /// Returns true if the table of this value also has another key.
    pub fn is_beside(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    pub fn table(&self) -> Option<Table<'a>> {
        self.accepts(|| "table".to_owned());
        Table::new(self).or_else(|| self.wrong_type("a table", "write it as a [table]"))
    }

    /// Reads every element of an array. Returns `None` if any has a fault.
    pub fn list<T>(&self, read: impl Fn(&Self) -> Option<T>) -> Option<Vec<T>> {
        if self.inner.as_array().is_none() {
            return self.wrong_type("a list", "put it in [ ]");
        }
        // Collected first, so that the faults of all elements are found.
        let read: Vec<_> = self.elements().map(|element| read(&element)).collect();
        let mut read = read.into_iter().collect::<Option<Vec<_>>>()?;
        read.shrink_to_fit();
        Some(read)
    }

    /// Returns the elements of an array.
    pub fn elements(&self) -> impl Iterator<Item = Self> {
        let elements = self.inner.as_array().into_iter().flat_map(|a| a.iter());
        elements.enumerate().map(|(i, element)| Self {
            inner: element.get_ref(),
            context: self.context,
            name: format!("{}[{i}]", self.name),
            span: element.span(),
            table: None,
        })
    }

    /// Returns the content of the file that a value names, relative to the configuration's folder.
    pub fn file(&self) -> Option<Vec<u8>> {
        self.accepts(|| "PEM file".to_owned());
        let path = self.context.directory.join(self.text()?);
        let octets = std::fs::read(&path).or_else(|error| {
            let problem = format!("cannot read {}: {error}", path.display());
            self.fault(
                problem,
                "name a PEM file in the folder of the configuration",
            )
            .ok_or(())
        });
        octets.ok()
    }

    pub fn wrong_type<T>(&self, expected: &str, fix: &str) -> Option<T> {
        let found = self.inner.type_str();
        self.fault(format!("expected {expected}, found {found}"), fix)
    }
}

impl<'a> Table<'a> {
    fn new(value: &Value<'a>) -> Option<Self> {
        Some(Self {
            value: value.clone(),
            entries: value.inner.as_table()?,
            asked: Vec::new(),
        })
    }

    fn entry(&self, key: &str) -> Option<(Range<usize>, Value<'a>)> {
        let (key, value) = self.entries.get_key_value(key)?;
        let name = self.value.dotted(key.get_ref());
        let value = Value {
            inner: value.get_ref(),
            context: self.value.context,
            name,
            span: value.span(),
            table: Some(self.entries),
        };
        Some((key.span(), value))
    }

    /// Returns the table as a value, to report a fault of the whole.
    pub fn whole(&self) -> &Value<'a> {
        &self.value
    }

    /// Returns the unread value of a key.
    pub fn value(&mut self, key: &'static str) -> Option<Value<'a>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        #[cfg(test)]
        {
            let mut asked = self.value.context.asked.borrow_mut();
            asked.insert(self.value.dotted(key));
        }
        let found = self.entry(key);
        found.map(|(span, value)| {
            let mut keys = self.value.context.keys.borrow_mut();
            keys.insert(&value.name, span.start);
            value
        })
    }

    /// Reads an optional key. Returns `None` also if its value is wrong, after a fault.
    pub fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value<'a>) -> Option<T>,
    ) -> Option<T> {
        self.value(key).and_then(|value| read(&value))
    }

    /// Reads a required key. Returns `None` only after a fault.
    pub fn required<T>(
        &mut self,
        key: &'static str,
        example: &str,
        read: impl FnOnce(&Value<'a>) -> Option<T>,
    ) -> Option<T> {
        #[cfg(test)]
        let schema = &self.value.context.schema;
        #[cfg(test)]
        schema.borrow_mut().require(self.value.dotted(key));
        match self.value(key) {
            Some(value) => read(&value),
            None => self.value.fault(
                format!("`{key}` is missing"),
                format!("add `{key} = {example}`"),
            ),
        }
    }

    /// Reads the keys of the table by their rows. Returns false if the table is useless without the
    /// value of a key, after a fault.
    pub fn read<T>(&mut self, keys: &[Key<T>], into: &mut T) -> bool {
        let mut is_whole = true;
        for key in keys {
            // Every key is read, so that all faults are found.
            is_whole &= self.read_key(key, into);
        }
        is_whole
    }

    fn read_key<T>(&mut self, key: &Key<T>, into: &mut T) -> bool {
        let (name, example) = (key.name, key.example);
        match key.read {
            Read::Optional(read) => {
                self.optional(name, |value| read(value, into));
                true
            }
            Read::Sound(read) => match self.value(name) {
                Some(value) => read(&value, into).is_some(),
                None => true,
            },
            Read::Required(read) => {
                let read = self.required(name, example, |value| read(value, into));
                read.is_some()
            }
            Read::Unless(other, read) => match (self.value(other), self.value(name)) {
                (Some(_), None) => true,
                _ => {
                    let read = self.required(name, example, |value| read(value, into));
                    read.is_some()
                }
            },
            Read::Together | Read::Late(_) => {
                self.value(name);
                true
            }
            Read::Part => true,
        }
    }

    /// Reads the keys whose values depend on others, after these.
    pub fn read_late<T>(&mut self, keys: &[Key<T>], into: &mut T) {
        for key in keys {
            if let Read::Late(read) = key.read {
                read(self.value(key.name).as_ref(), into);
            }
        }
    }

    /// Reads the keys of a table that may be left out. Returns false if the table is useless, after
    /// a fault.
    pub fn section<T>(&mut self, name: &'static str, keys: &[Key<T>], into: &mut T) -> bool {
        let Some(value) = self.value(name) else {
            return true;
        };
        let Some(mut table) = value.table() else {
            return false;
        };
        let is_whole = table.read(keys, into);
        table.finish();
        is_whole
    }

    /// Reads a table that may be left out. Returns `None` also if it is useless, after a fault.
    pub fn added<T: Default>(&mut self, name: &'static str, keys: &[Key<Option<T>>]) -> Option<T> {
        let mut into = self.value(name).map(|_| T::default());
        let is_whole = self.section(name, keys, &mut into);
        into.filter(|_| is_whole)
    }

    /// Reads a table of tables, `[key.NAME]`, in the order of their names.
    pub fn named<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str, Table<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(value) = self.value(key) else {
            return Some(Vec::new());
        };
        let tables = value.table()?;
        let read: Vec<_> = tables
            .entries
            .keys()
            .map(|name| tables.read_named(key, name.get_ref(), &read))
            .collect();
        read.into_iter().collect()
    }

    fn read_named<T>(
        &self,
        key: &str,
        name: &str,
        read: impl Fn(&str, Table<'a>) -> Option<T>,
    ) -> Option<T> {
        let (span, value) = self.entry(name)?;
        let mut keys = self.value.context.keys.borrow_mut();
        keys.insert(&value.name, span.start);
        drop(keys);
        #[cfg(test)]
        value.context.asked.borrow_mut().insert(value.name.clone());
        #[cfg(test)]
        value.context.schema.borrow_mut().name(&value.name);
        let Some(table) = Table::new(&value) else {
            return value.wrong_type("a table", &format!("write it as [{key}.NAME]"));
        };
        let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > 32 || !name.chars().all(good) {
            return value.fault(
                "commands cannot use this name",
                "use 1 to 32 letters, digits, `.`, `_` and `-`",
            );
        }
        read(name, table)
    }

    /// Records a fault for each key that was not asked for.
    pub fn finish(self) {
        for key in self.entries.keys() {
            let key = key.get_ref().as_ref();
            if self.asked.contains(&key) {
                continue;
            }
            let Some((span, value)) = self.entry(key) else {
                continue;
            };
            let fix = suggestion(key, self.asked.iter().copied());
            let problem = "unknown key".to_owned();
            self.value.context.fault(span, &value.name, problem, fix);
        }
    }
}

/// Returns "did you mean", or the list of choices.
pub(crate) fn suggestion<'c>(word: &str, known: impl Iterator<Item = &'c str> + Clone) -> String {
    let likeness = |candidate: &str| strsim::jaro_winkler(word, candidate);
    let best = known
        .clone()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match best.filter(|best| likeness(best) > 0.78) {
        Some(best) => format!("did you mean `{best}`?"),
        None => {
            let all: Vec<_> = known.map(|known| format!("`{known}`")).collect();
            format!("possible here: {}", all.join(", "))
        }
    }
}
