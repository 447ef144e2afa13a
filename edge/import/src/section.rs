//! What the three grammars have in common: sections with lines `key = value`.

/// A line of the imported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) line: usize,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// A section of the imported file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) sections: Vec<Section>,
    /// Names of the sections whose content this one inherits.
    pub(crate) bases: Vec<String>,
}

impl Entry {
    /// Returns the elements of a value that is a list.
    pub(crate) fn list(&self) -> impl Iterator<Item = &str> {
        let elements = self.value.split(',').map(str::trim);
        elements.filter(|element| !element.is_empty())
    }

    /// Returns the elements of a list of files, which are in a folder unless they are absolute
    /// paths.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let files = self.list().map(|file| match file.starts_with('/') {
            true => file.to_owned(),
            false => format!("{folder}/{file}"),
        });
        files.collect()
    }

    /// Returns the value of a switch.
    pub(crate) fn is_on(&self) -> bool {
        let words = ["yes", "true", "1", "on", "enabled", "force", "insist"];
        words
            .iter()
            .any(|word| self.value.eq_ignore_ascii_case(word))
    }
}

impl Section {
    pub(crate) fn new(line: usize, name: &str) -> Self {
        Self {
            line,
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the value of a key, or `None` if it is absent.
    pub(crate) fn value(&self, key: &str) -> Option<&Entry> {
        let mut entries = self.entries.iter().rev();
        entries.find(|entry| entry.key.eq_ignore_ascii_case(key))
    }

    /// Returns a section below this one.
    pub(crate) fn section(&self, name: &str) -> Option<&Self> {
        self.sections.iter().find(|section| section.name == name)
    }
}
