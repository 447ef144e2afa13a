//! The files of a configuration: the one that is imported, and those that it includes.
//!
//! Their lines are numbered through, in the order in which the files are read. So a line has one
//! number everywhere, and [`place`] returns its file.

use crate::Unreadable;
use crate::note::{Note, Weight};
use zeroize::Zeroizing;

/// Deepest nesting of files, as in strongSwan and Libreswan.
const DEEPEST: usize = 10;
/// Most files.
const MOST: usize = 1000;

/// A file of a configuration.
pub struct File {
    /// Path, without links and dots.
    pub name: String,
    /// Content.
    pub text: Zeroizing<String>,
}

/// A file that is included and cannot be read.
pub struct Missing {
    /// Path.
    pub name: String,
    /// Reason.
    pub why: String,
}

/// Finds the files that a pattern stands for, in their order. The pattern is relative to the folder
/// of the file that contains it, whose name is the second parameter.
pub type Find<'a> = dyn Fn(&str, &str) -> Vec<Result<File, Missing>> + 'a;

/// Reader of a file. Takes its text, and the number of lines before it.
pub(crate) type Read<'a> = dyn FnMut(&mut Sources<'_>, &str, usize) -> Result<(), Unreadable> + 'a;

/// The files that are read.
pub(crate) struct Sources<'a> {
    find: &'a Find<'a>,
    /// Their names, each with the number of lines before.
    pub(crate) names: Vec<(usize, String)>,
    /// Number of lines so far.
    lines: usize,
    /// Names of the files that are being read, the innermost last.
    open: Vec<String>,
    pub(crate) notes: Vec<Note>,
}

impl<'a> Sources<'a> {
    pub(crate) const fn new(find: &'a Find<'a>) -> Self {
        Self {
            find,
            names: Vec::new(),
            lines: 0,
            open: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reads a file.
    pub(crate) fn read(&mut self, file: &File, read: &mut Read<'_>) -> Result<(), Unreadable> {
        let before = self.lines;
        self.lines += file.text.lines().count() + 1;
        self.names.push((before, file.name.clone()));
        self.open.push(file.name.clone());
        let done = read(self, &file.text, before);
        self.open.pop();
        done
    }

    /// Reads the files that a line includes. Notes those that cannot be read.
    pub(crate) fn include(
        &mut self,
        line: usize,
        pattern: &str,
        read: &mut Read<'_>,
    ) -> Result<(), Unreadable> {
        let what = format!("include {pattern}");
        let by = self.open.last().cloned().unwrap_or_default();
        let found = (self.find)(pattern, &by);
        if found.is_empty() {
            let why = "there is no such file";
            self.notes.push(Note::new(line, &what, why, Weight::Remark));
        }
        for file in found {
            match self.admit(file) {
                Ok(file) => self.read(&file, read)?,
                Err(why) => self.notes.push(Note::new(line, &what, why, Weight::Lost)),
            }
        }
        Ok(())
    }

    /// Returns a file that may be read, or the reason to leave it out.
    fn admit(&self, found: Result<File, Missing>) -> Result<File, String> {
        let file = found.map_err(|Missing { name, why }| {
            format!("cannot read {name}: {why}; its lines are left out")
        })?;
        let name = &file.name;
        if self.open.contains(name) {
            return Err(format!("{name} includes itself: remove this line"));
        }
        if self.open.len() >= DEEPEST || self.names.len() >= MOST {
            return Err(format!(
                "{name} is left out: at most {MOST} files are read, nested {DEEPEST} deep"
            ));
        }
        Ok(file)
    }
}

/// Returns the file of a line, unless it is the first one, and its number there.
pub(crate) fn place(names: &[(usize, String)], line: usize) -> (Option<&str>, usize) {
    let last = names.iter().rposition(|(before, _)| *before < line);
    match last.map(|at| (at, &names[at])) {
        None => (None, line),
        Some((0, (before, _))) => (None, line - before),
        Some((_, (before, name))) => (Some(name), line - before),
    }
}
