//! Blocks of the pages for users: README.md, the tutorial and the pages of `docs/operate`.
//!
//! The words behind a fence say what the block is, and on which host it belongs:
//! ```` ```sh alice ````. A block may also be a comment, `<!-- sh alice`, with its lines up to
//! `-->`: readers do not see it.

use crate::repository;
use std::fs;
use std::path::{Path, PathBuf};

/// A block of a page.
#[derive(Clone, Debug)]
pub struct Block {
    /// Path of the page from the repository.
    pub page: PathBuf,
    /// Line of the page on which the block begins, from 1.
    pub line: usize,
    /// The words behind the fence.
    pub words: Vec<String>,
    /// The lines of the block.
    pub text: String,
}

/// A table of a configuration.
#[derive(Debug)]
pub struct Table<'a> {
    /// The table's line, in brackets; empty before the first table.
    pub name: &'a str,
    /// The keys.
    pub entries: Vec<Entry<'a>>,
}

/// A key with the lines of its value.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a str,
    /// The lines, with their comments.
    pub lines: Vec<&'a str>,
}

impl Block {
    /// Returns the name of the example that the block shows the essential part of, as its first
    /// line says: `# gateway.toml`.
    pub fn part_of(&self) -> Option<&str> {
        self.named("# ").filter(|name| !name.contains(' '))
    }

    /// Returns the name of the example that the block adds to, as its first line says: `# in
    /// gateway.toml`.
    pub fn addition_to(&self) -> Option<&str> {
        self.named("# in ")
    }

    fn named(&self, prefix: &str) -> Option<&str> {
        let name = self.text.lines().next()?.strip_prefix(prefix)?;
        name.strip_suffix(".toml")
    }
}

impl<'a> Entry<'a> {
    /// Returns the lines without comments.
    pub fn code(&self) -> impl Iterator<Item = &'a str> {
        self.lines.iter().map(|line| without_comment(line))
    }
}

/// Returns the configurations of all pages for users, page by page.
///
/// # Panics
///
/// If a page cannot be read.
pub fn configurations() -> Vec<Block> {
    let operate = crate::list("operate").into_iter();
    let operate = operate.map(|page| PathBuf::from("docs/operate").join(page));
    let others = ["README.md", "docs/tutorial.md"].map(PathBuf::from);
    let pages = others.into_iter().chain(operate);
    let blocks = pages.flat_map(|page| blocks(&page, &read(&page)));
    let is_toml = |block: &Block| block.words.first().is_some_and(|word| word == "toml");
    blocks.filter(is_toml).collect()
}

/// Returns the content of a page, whose path begins at the repository.
///
/// # Panics
///
/// If the page cannot be read.
fn read(page: &Path) -> String {
    let text = fs::read_to_string(repository().join(page));
    text.unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// Returns the blocks of a page with this content, in their order.
pub fn blocks(page: &Path, content: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = content.lines().zip(1..);
    while let Some((opening, line)) = lines.next() {
        let (words, end) = match (opening.strip_prefix("```"), opening.strip_prefix("<!-- ")) {
            (Some(words), _) => (words, "```"),
            (None, Some(words)) => (words, "-->"),
            (None, None) => continue,
        };
        let mut text = String::new();
        if !words.ends_with(end) {
            let body = lines.by_ref().map(|(line, _)| line);
            body.take_while(|line| *line != end)
                .for_each(|line| text += &format!("{line}\n"));
        }
        let words = words.trim_end_matches(end).split_whitespace();
        blocks.push(Block {
            page: page.to_owned(),
            line,
            words: words.map(str::to_owned).collect(),
            text,
        });
    }
    blocks
}

/// Splits a configuration into its tables. Lines that are only a comment are left out.
pub fn tables(text: &str) -> Vec<Table<'_>> {
    let mut tables = Vec::new();
    let mut table = Table {
        name: "",
        entries: Vec::new(),
    };
    // Brackets of a value that continues on the next line.
    let mut open = 0;
    for line in text.lines() {
        let code = without_comment(line);
        if open == 0 && code.starts_with('[') {
            let next = Table {
                name: code,
                entries: Vec::new(),
            };
            tables.push(std::mem::replace(&mut table, next));
            continue;
        }
        if open == 0 && (code.is_empty() || code.starts_with('#')) {
            continue;
        }
        if open > 0
            && let Some(entry) = table.entries.last_mut()
        {
            entry.lines.push(line);
        } else {
            table.entries.push(Entry {
                key: code.split('=').next().unwrap_or_default().trim(),
                lines: vec![line],
            });
        }
        open += code.matches(['[', '{']).count();
        open -= code.matches([']', '}']).count();
    }
    tables.push(table);
    tables
}

fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_continue_on_the_next_line() {
        let text = "[a]  # first\n# no key\nx = 1 # one\ny = [\n  2,\n]\n[[b]]\nz = 3\n";
        let tables = tables(text);
        let shown: Vec<_> = tables
            .iter()
            .map(|table| {
                let keys = table.entries.iter();
                let keys: Vec<_> = keys.map(|entry| (entry.key, entry.lines.len())).collect();
                (table.name, keys)
            })
            .collect();
        let expected = [
            ("", vec![]),
            ("[a]", vec![("x", 1), ("y", 3)]),
            ("[[b]]", vec![("z", 1)]),
        ];
        assert_eq!(shown, expected);
        assert_eq!(tables[1].entries[0].code().collect::<Vec<_>>(), ["x = 1"]);
    }

    #[test]
    fn a_block_is_fenced_or_in_a_comment() {
        let page = "# A\n```sh alice\na\n\nb\n```\n<!-- network road -->\ntext\n<!-- text alice\nc\n-->\n```\n```\n";
        let blocks = blocks(Path::new("a.md"), page);
        let shown: Vec<_> = blocks
            .iter()
            .map(|block| (block.line, block.words.join(" "), block.text.as_str()))
            .collect();
        let expected = [
            (2, "sh alice", "a\n\nb\n"),
            (7, "network road", ""),
            (9, "text alice", "c\n"),
            (12, "", ""),
        ];
        assert_eq!(
            shown,
            expected.map(|(line, words, text)| (line, words.to_owned(), text))
        );
    }

    #[test]
    fn the_first_line_of_a_block_names_its_example() {
        let block = |text: &str| Block {
            page: PathBuf::new(),
            line: 1,
            words: Vec::new(),
            text: text.to_owned(),
        };
        assert_eq!(block("# gateway.toml\n").part_of(), Some("gateway"));
        assert_eq!(block("# in gateway.toml\n").addition_to(), Some("gateway"));
        assert_eq!(block("[node]\n").part_of(), None);
    }
}
