//! The grammar of `ipsec.conf`: sections `conn NAME`, `ca NAME` and `config setup`, whose lines
//! `key=value` are indented, and `include`.

use crate::Unreadable;
use crate::section::{Entry, Section};
use crate::sources::{self, Sources};

/// Deepest nesting of `also`.
const DEEPEST: usize = 8;
/// Most lines after all `also`.
const MOST_LINES: usize = 100_000;

/// A file, whose connections have the lines of `%default` and `also`.
#[derive(Default)]
pub(super) struct File {
    pub(super) setups: Vec<Section>,
    pub(super) connections: Vec<Section>,
    pub(super) authorities: Vec<Section>,
}

/// Reads a file.
pub(super) fn read(file: &sources::File, sources: &mut Sources<'_>) -> Result<File, Unreadable> {
    let mut sections = Vec::new();
    sources.read(file, &mut |sources, text, before| {
        parse(text, before, &mut sections, sources)
    })?;
    let mut file = File::default();
    for mut section in sections {
        let (kind, name) = section.name.split_once(' ').unwrap_or_default();
        let (kind, name) = (kind.to_owned(), name.to_owned());
        section.name = name;
        match kind.as_str() {
            "conn" => file.connections.push(section),
            "ca" => file.authorities.push(section),
            _ => file.setups.push(section),
        }
    }
    complete(&mut file)?;
    Ok(file)
}

/// Adds the sections of a text. `before` is the number of lines before it.
fn parse(
    text: &str,
    before: usize,
    sections: &mut Vec<Section>,
    sources: &mut Sources<'_>,
) -> Result<(), Unreadable> {
    for (line, text) in (before + 1..).zip(text.lines()) {
        let content = without_comment(text).trim_end();
        let words: Vec<_> = content.split_whitespace().collect();
        match &words[..] {
            [] | ["version", ..] => {}
            _ if content.starts_with([' ', '\t']) => {
                let entry = entry(line, content.trim())?;
                let none = || Unreadable::new(line, "this line belongs to no section");
                sections.last_mut().ok_or_else(none)?.entries.push(entry);
            }
            ["include", value, ..] => {
                let pattern = value.trim_matches('"');
                sources.include(line, pattern, &mut |sources, text, before| {
                    parse(text, before, sections, sources)
                })?;
            }
            ["conn" | "ca" | "config", _, ..] => {
                sections.push(Section::new(line, &words.join(" ")))
            }
            [_, ..] => return Err(Unreadable::new(line, "this line begins no section")),
        }
    }
    Ok(())
}

/// Removes a comment: from a number sign at the start of a line or after a space, outside quotes.
fn without_comment(line: &str) -> &str {
    let (mut quoted, mut before) = (false, ' ');
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted && before.is_whitespace() => return &line[..at],
            _ => {}
        }
        before = c;
    }
    line
}

fn entry(line: usize, text: &str) -> Result<Entry, Unreadable> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(Unreadable::new(line, "this line is not `key=value`"));
    };
    let value = value.trim();
    let inner = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    Ok(Entry {
        line,
        key: key.trim().to_owned(),
        value: inner.unwrap_or(value).to_owned(),
    })
}

/// Adds the lines of `%default` and `also` to each connection, and removes the connections that
/// only others use.
fn complete(file: &mut File) -> Result<(), Unreadable> {
    let all = std::mem::take(&mut file.connections);
    let mut budget = MOST_LINES;
    for section in &all {
        if section.name == "%default" {
            continue;
        }
        let mut whole = Section::new(section.line, &section.name);
        gather(&mut whole, section, &all, DEEPEST, &mut budget)?;
        let defaults = all.iter().filter(|section| section.name == "%default");
        for default in defaults {
            gather(&mut whole, default, &all, DEEPEST, &mut budget)?;
        }
        file.connections.push(whole);
    }
    let used: Vec<_> = all
        .iter()
        .flat_map(|section| section.entries.iter().filter(|entry| entry.key == "also"))
        .map(|entry| entry.value.clone())
        .collect();
    let is_alone =
        |section: &Section| section.value("auto").is_some() || !used.contains(&section.name);
    file.connections.retain(is_alone);
    Ok(())
}

/// Adds the lines of a section, and then of those that it names in `also`. The first line of a key
/// counts.
fn gather(
    whole: &mut Section,
    from: &Section,
    all: &[Section],
    depth: usize,
    budget: &mut usize,
) -> Result<(), Unreadable> {
    let too_much = || Unreadable::new(from.line, "the `also` of this section include too much");
    let depth = depth.checked_sub(1).ok_or_else(too_much)?;
    *budget = budget
        .checked_sub(1 + from.entries.len())
        .ok_or_else(too_much)?;
    for entry in from.entries.iter().filter(|entry| entry.key != "also") {
        let is_new = whole.value(&entry.key).is_none();
        if is_new {
            whole.entries.push(entry.clone());
        }
    }
    for also in from.entries.iter().filter(|entry| entry.key == "also") {
        let Some(base) = all.iter().find(|section| section.name == also.value) else {
            let what = format!("there is no `conn {}`", also.value.escape_debug());
            return Err(Unreadable::new(also.line, what));
        };
        gather(whole, base, all, depth, budget)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<File, Unreadable> {
        let file = sources::File {
            name: String::new(),
            text: text.to_owned().into(),
        };
        super::read(&file, &mut Sources::new(&|_, _| Vec::new()))
    }

    #[test]
    fn a_connection_has_the_lines_of_others_and_of_the_defaults() {
        let text = "conn %default\n\tikelifetime=60m\n\tkeyexchange=ikev2\n\n\
                    conn home\n\tleft=%any # us\n\talso=base\n\tauto=add\n\n\
                    conn base\n\tright=192.168.0.1\n\tikelifetime=10m\n";
        let file = read(text).unwrap();
        let [home] = &file.connections[..] else {
            panic!("`base` is used by another one only");
        };
        let value = |key| home.value(key).map(|entry| entry.value.as_str());
        assert_eq!(value("left"), Some("%any"));
        assert_eq!(value("right"), Some("192.168.0.1"));
        assert_eq!(value("ikelifetime"), Some("10m"));
        assert_eq!(value("keyexchange"), Some("ikev2"));
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_its_line() {
        for (text, line, what) in [
            ("\tleft=1\n", 1, "no section"),
            ("connections {\n", 1, "begins no section"),
            ("conn a\n\tleft\n", 2, "not `key=value`"),
            ("conn a\n\talso=b\n", 2, "no `conn b`"),
            ("conn a\n\talso=a\n", 1, "include too much"),
        ] {
            let error = read(text).err().expect(text);
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.to_string().contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn comments_begin_after_a_space() {
        assert_eq!(without_comment("a=b # c"), "a=b ");
        assert_eq!(without_comment("a=b#c"), "a=b#c");
        assert_eq!(without_comment("a=\"b # c\""), "a=\"b # c\"");
        assert_eq!(without_comment("# c"), "");
    }
}
