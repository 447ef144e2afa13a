//! The grammar of `wg-quick`: `[Interface]`, any number of `[Peer]`, and lines `Key = Value`.

use crate::Unreadable;
use crate::section::{Entry, Section};

/// A file.
pub(super) struct File {
    pub(super) interface: Section,
    pub(super) peers: Vec<Section>,
}

/// Reads a file.
pub(super) fn read(text: &str) -> Result<File, Unreadable> {
    let mut sections: Vec<Section> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let content = text.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        if content.starts_with('[') {
            sections.push(section(line, content)?);
            continue;
        }
        let none = || Unreadable::new(line, "this line belongs to no section");
        let section = sections.last_mut().ok_or_else(none)?;
        let Some((key, value)) = content.split_once('=') else {
            return Err(Unreadable::new(line, "this line is not `Key = Value`"));
        };
        section.entries.push(Entry {
            line,
            key: key.trim().to_owned(),
            value: value.trim().to_owned(),
        });
    }
    let (interfaces, peers): (Vec<_>, Vec<_>) = sections
        .into_iter()
        .partition(|section| section.name == "interface");
    let mut interfaces = interfaces.into_iter();
    match (interfaces.next(), interfaces.next()) {
        (Some(interface), None) => Ok(File { interface, peers }),
        (None, _) => Err(Unreadable::new(1, "there is no [Interface]")),
        (_, Some(second)) => Err(Unreadable::new(
            second.line,
            "there is a second [Interface]",
        )),
    }
}

fn section(line: usize, text: &str) -> Result<Section, Unreadable> {
    let name = text.to_ascii_lowercase();
    match name.as_str() {
        "[interface]" | "[peer]" => Ok(Section::new(line, name.trim_matches(['[', ']']))),
        _ => {
            let what = format!(
                "`{}` is neither [Interface] nor [Peer]",
                text.escape_debug()
            );
            Err(Unreadable::new(line, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_sections_are_read_in_any_case() {
        let text =
            "# a comment\n[interface]\nprivatekey = a= # another\n\n[PEER]\nEndpoint=b\n[Peer]\n";
        let file = read(text).unwrap();
        assert_eq!(file.interface.value("PrivateKey").unwrap().value, "a=");
        assert_eq!(file.peers.len(), 2);
        assert_eq!(file.peers[0].entries[0].line, 6);
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_its_line() {
        for (text, line, what) in [
            ("", 1, "no [Interface]"),
            ("[Peer]\n", 1, "no [Interface]"),
            ("[Interface]\n[Interface]\n", 2, "second"),
            ("a = b\n", 1, "no section"),
            ("[Interface]\na\n", 2, "not `Key = Value`"),
            ("[Interfaces]\n", 1, "neither"),
        ] {
            let error = read(text).err().expect(text);
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.to_string().contains(what), "{text}: {error}");
        }
    }
}
