//! The grammar of strongSwan's settings: sections `NAME { KEY = VALUE ... }`, sections that inherit
//! (`NAME : BASE, BASE { ... }`), quoted values, comments and `include`. What a file includes is
//! read in the place of that line, and closes the sections that it opens.

use crate::Unreadable;
use crate::section::{Entry, Section};
use crate::sources::{File, Sources};

/// Deepest nesting. strongSwan's own files have four levels.
const DEEPEST: usize = 16;
/// Most lines after inheritance.
const MOST_LINES: usize = 100_000;

/// The settings of a file and of those that it includes.
pub(super) struct Settings {
    pub(super) root: Section,
    bases: Vec<String>,
}

impl Settings {
    /// Returns true if another section inherits the top-level section of this name.
    pub(super) fn is_base(&self, name: &str) -> bool {
        let mut bases = self.bases.iter();
        bases.any(|base| base.split('.').next() == Some(name))
    }
}

/// Reads a file, and completes the sections that inherit.
pub(super) fn read(file: &File, sources: &mut Sources<'_>) -> Result<Settings, Unreadable> {
    let mut root = Section::default();
    sources.read(file, &mut |sources, text, before| {
        parse(text, before, &mut root, sources)
    })?;
    let mut bases = Vec::new();
    collect(&root, &mut bases);
    let original = root.clone();
    let mut budget = MOST_LINES;
    inherit(&mut root, &original, DEEPEST, &mut budget)?;
    Ok(Settings { root, bases })
}

/// Adds the content of a text to a section. `before` is the number of lines before it.
fn parse(
    text: &str,
    before: usize,
    section: &mut Section,
    sources: &mut Sources<'_>,
) -> Result<(), Unreadable> {
    let mut parser = Parser {
        tokens: Tokens {
            rest: text,
            line: before + 1,
        },
        open: vec![std::mem::take(section)],
        sources,
    };
    parser.run()?;
    *section = parser.open.pop().unwrap_or_default();
    Ok(())
}

struct Parser<'a, 'b> {
    tokens: Tokens<'a>,
    /// The sections that are open, the innermost last.
    open: Vec<Section>,
    sources: &'a mut Sources<'b>,
}

struct Tokens<'a> {
    rest: &'a str,
    line: usize,
}

impl Parser<'_, '_> {
    fn run(&mut self) -> Result<(), Unreadable> {
        loop {
            self.tokens.skip();
            let line = self.tokens.line;
            if self.tokens.takes('}') {
                self.close(line)?;
                continue;
            }
            let name = self.tokens.name();
            if name.is_empty() {
                return match self.tokens.rest.chars().next() {
                    None if self.open.len() == 1 => Ok(()),
                    None => Err(Unreadable::new(line, "a section is not closed by `}`")),
                    Some(other) => Err(Unreadable::new(line, format!("unexpected `{other}`"))),
                };
            }
            self.statement(line, name)?;
        }
    }

    fn statement(&mut self, line: usize, key: String) -> Result<(), Unreadable> {
        self.tokens.skip_spaces();
        if key == "include" && !self.tokens.rest.starts_with(['=', '{', ':']) {
            let value = self.tokens.value()?;
            let open = self.open.last_mut().expect("the root is always open");
            return self
                .sources
                .include(line, &value, &mut |sources, text, before| {
                    parse(text, before, open, sources)
                });
        }
        if self.tokens.takes('=') {
            let value = self.tokens.value()?;
            let open = self.open.last_mut().expect("the root is always open");
            open.entries.push(Entry { line, key, value });
            return Ok(());
        }
        let mut section = Section::new(line, &key);
        self.tokens.skip();
        if self.tokens.takes(':') {
            section.bases = self.tokens.names();
        }
        self.tokens.skip();
        match self.tokens.takes('{') && self.open.len() < DEEPEST {
            true => self.open.push(section),
            false => {
                return Err(Unreadable::new(
                    line,
                    "this line has neither `=` nor a section",
                ));
            }
        }
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), Unreadable> {
        let section = self.open.pop().unwrap_or_default();
        match self.open.last_mut() {
            Some(above) => {
                add(above, section);
                Ok(())
            }
            None => Err(Unreadable::new(line, "`}` closes no section")),
        }
    }
}

impl Tokens<'_> {
    fn advance(&mut self, octets: usize) {
        let (taken, rest) = self.rest.split_at(octets);
        self.line += taken.matches('\n').count();
        self.rest = rest;
    }

    /// Skips spaces, line ends and comments.
    fn skip(&mut self) {
        loop {
            let blank = self.rest.find(|c: char| !c.is_whitespace());
            self.advance(blank.unwrap_or(self.rest.len()));
            if !self.rest.starts_with('#') {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn skip_spaces(&mut self) {
        let blank = self.rest.find(|c: char| c != ' ' && c != '\t');
        self.advance(blank.unwrap_or(self.rest.len()));
    }

    fn takes(&mut self, c: char) -> bool {
        let is_next = self.rest.starts_with(c);
        if is_next {
            self.advance(c.len_utf8());
        }
        is_next
    }

    fn name(&mut self) -> String {
        let ends = |c: char| c.is_whitespace() || "#{}:,=\"".contains(c);
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let name = self.rest[..end].to_owned();
        self.advance(end);
        name
    }

    /// Reads names separated by commas.
    fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            self.skip();
            names.push(self.name());
            self.skip();
            if !self.takes(',') {
                return names;
            }
        }
    }

    /// Reads a value: words and quoted texts up to the end of the line, a comment or a brace.
    fn value(&mut self) -> Result<String, Unreadable> {
        let mut value = String::new();
        self.skip_spaces();
        loop {
            let end = self.rest.find(['\n', '#', '}', '"']);
            let (words, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            let is_quoted = rest.starts_with('"');
            value += if is_quoted { words } else { words.trim_end() };
            self.advance(words.len());
            if !is_quoted {
                return Ok(value);
            }
            self.advance(1);
            value += &self.quoted()?;
        }
    }

    /// Reads the rest of a quoted text.
    fn quoted(&mut self) -> Result<String, Unreadable> {
        let begun = self.line;
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.advance(at + 1);
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, '\n')) | None => {}
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, other)) => text.push(other),
                },
                c => text.push(c),
            }
        }
        Err(Unreadable::new(begun, "a quoted text has no end"))
    }
}

/// Adds a section. Sections of one name are one.
fn add(above: &mut Section, section: Section) {
    let mut others = above.sections.iter_mut();
    match others.find(|other| other.name == section.name) {
        None => above.sections.push(section),
        Some(first) => {
            first.entries.extend(section.entries);
            first.bases.extend(section.bases);
            for inner in section.sections {
                add(first, inner);
            }
        }
    }
}

fn collect(section: &Section, bases: &mut Vec<String>) {
    bases.extend(section.bases.iter().cloned());
    section
        .sections
        .iter()
        .for_each(|inner| collect(inner, bases));
}

/// Adds to each section what it inherits from others, which are named from the root on.
fn inherit(
    section: &mut Section,
    root: &Section,
    depth: usize,
    budget: &mut usize,
) -> Result<(), Unreadable> {
    let too_much = || {
        Unreadable::new(
            section_line(root),
            "sections inherit too much of each other",
        )
    };
    *budget = budget
        .checked_sub(1 + section.entries.len())
        .ok_or_else(too_much)?;
    let depth = depth.checked_sub(1).ok_or_else(too_much)?;
    for name in std::mem::take(&mut section.bases) {
        let base = name.split('.').try_fold(root, |at, part| at.section(part));
        let Some(base) = base else {
            let what = format!("there is no section `{name}` to inherit");
            return Err(Unreadable::new(section.line, what));
        };
        let mut base = base.clone();
        inherit(&mut base, root, depth, budget)?;
        complete(section, base);
    }
    for inner in &mut section.sections {
        inherit(inner, root, depth, budget)?;
    }
    Ok(())
}

fn section_line(root: &Section) -> usize {
    root.sections.first().map_or(1, |first| first.line)
}

/// Adds the content of a base that a section does not have itself.
fn complete(section: &mut Section, base: Section) {
    for entry in base.entries {
        if section.value(&entry.key).is_none() {
            section.entries.push(entry);
        }
    }
    for inner in base.sections {
        let mut own = section.sections.iter_mut();
        match own.find(|own| own.name == inner.name) {
            Some(own) => complete(own, inner),
            None => section.sections.push(inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, Unreadable> {
        let file = File {
            name: String::new(),
            text: text.to_owned().into(),
        };
        super::read(&file, &mut Sources::new(&|_, _| Vec::new()))
    }

    fn value(text: &str) -> String {
        let file = read(text).expect(text);
        file.root.entries[0].value.clone()
    }

    #[test]
    fn values_are_words_and_quoted_texts() {
        for (text, expected) in [
            ("a = b c  # d\n", "b c"),
            ("a=b", "b"),
            ("a = \"b # } c\"\n", "b # } c"),
            ("a = \"b\\\"c\\n\"", "b\"c\n"),
            ("a = \"b\\\nc\"", "bc"),
            ("a = \"b \" \"c\"", "b  c"),
            ("a =\n", ""),
            ("a = b } ", "b"),
        ] {
            let text = match expected {
                "b" if text.ends_with("} ") => format!("s {{ {text}"),
                _ => text.to_owned(),
            };
            if text.starts_with("s {") {
                let file = read(&text).expect(&text);
                assert_eq!(file.root.sections[0].entries[0].value, "b");
            } else {
                assert_eq!(value(&text), expected, "{text}");
            }
        }
    }

    #[test]
    fn sections_inherit_what_they_do_not_have() {
        let text =
            "base { a = 1\n b = 2\n in { c = 3 } }\ntop { one : base { a = 9\n in { d = 4 } } }";
        let file = read(text).unwrap();
        let one = &file.root.sections[1].sections[0];
        assert_eq!(one.value("a").unwrap().value, "9");
        assert_eq!(one.value("b").unwrap().value, "2");
        let inner = one.section("in").unwrap();
        assert_eq!(inner.value("c").unwrap().value, "3");
        assert_eq!(inner.value("d").unwrap().value, "4");
        assert!(file.is_base("base") && !file.is_base("top"));
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_its_line() {
        for (text, line, what) in [
            ("a {\n b = c\n", 3, "not closed"),
            ("\n}", 2, "closes no section"),
            ("a\nb", 1, "neither"),
            ("a = \"b\n", 1, "no end"),
            ("a : b { }", 1, "no section `b`"),
            ("a : a { }", 1, "inherit too much"),
            ("a { x : b { } }\nb { y : a { } }", 1, "inherit too much"),
            ("= a", 1, "unexpected `=`"),
        ] {
            let error = read(text).err().expect(text);
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.to_string().contains(what), "{text}: {error}");
        }
    }
}
