//! A page in Markdown as text for a terminal: paragraphs as wide as it is, tables in columns, and
//! blocks as they are. Comments of the source, which have steps for tests, are left out.

use super::table::Table;
use super::topics;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeSet;
use terminal::{Paint, wrapped};

/// Columns by which lists and blocks are set off.
const INDENT: usize = 2;

/// Formats a page.
pub fn show(text: &str, columns: usize, paint: Paint) -> String {
    let mut page = Page::new(columns, paint);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        page.handle(event);
    }
    page.finish()
}

/// Returns the first sentence below the title.
pub fn first_sentence(text: &str) -> String {
    let mut sentence = String::new();
    let mut is_inside = false;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Paragraph) => is_inside = true,
            Event::End(TagEnd::Paragraph) => break,
            Event::Text(text) | Event::Code(text) if is_inside => sentence.push_str(&text),
            Event::SoftBreak if is_inside => sentence.push(' '),
            _ => {}
        }
    }
    let end = sentence.find(". ").map_or(sentence.len(), |end| end + 1);
    sentence.truncate(end);
    sentence
}

struct Page {
    text: String,
    columns: usize,
    paint: Paint,
    /// The paragraph, cell or heading under way.
    inline: String,
    /// True in a block, whose lines are kept as they are.
    is_block: bool,
    /// The next number of each list, from the outermost to the innermost.
    lists: Vec<Option<u64>>,
    /// The sign in front of the next line of a list.
    bullet: Option<String>,
    table: Option<Table>,
    /// Words of the pages that this one refers to.
    others: BTreeSet<&'static str>,
}

impl Page {
    const fn new(columns: usize, paint: Paint) -> Self {
        Self {
            text: String::new(),
            columns,
            paint,
            inline: String::new(),
            is_block: false,
            lists: Vec::new(),
            bullet: None,
            table: None,
            others: BTreeSet::new(),
        }
    }

    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.begin(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_block => self.block(&text),
            Event::Text(text) => self.inline.push_str(&text),
            Event::Code(text) => self.inline.push_str(&format!("`{text}`")),
            Event::SoftBreak | Event::HardBreak => self.inline.push(' '),
            // Comments, and what the pages do not have.
            _ => {}
        }
    }

    fn begin(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::CodeBlock(_) => {
                self.paragraph();
                self.is_block = true;
            }
            Tag::List(first) => {
                self.paragraph();
                self.lists.push(first);
            }
            Tag::Item => {
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}.", *number - 1)
                    }
                    _ => "*".to_owned(),
                };
                self.bullet = Some(bullet);
            }
            Tag::Table(_) => self.table = Some(Table::default()),
            Tag::Link { dest_url, .. } => self.refer(&dest_url),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                let heading = std::mem::take(&mut self.inline);
                let heading = self.paint.bold(&heading);
                self.text.push_str(&format!("{heading}\n\n"));
            }
            TagEnd::Paragraph => {
                self.paragraph();
                self.space();
            }
            TagEnd::CodeBlock => {
                self.is_block = false;
                self.space();
            }
            TagEnd::Item => self.paragraph(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.space();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.add(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                self.table.iter_mut().for_each(Table::end_row);
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                self.text.push_str(&table.show(self.columns, self.paint));
                self.space();
            }
            _ => {}
        }
    }

    /// Notes a page that is referred to, if it is one of ours.
    fn refer(&mut self, url: &str) {
        let file = url.split('#').next().unwrap_or_default();
        let name = file
            .rsplit('/')
            .next()
            .and_then(|name| name.strip_suffix(".md"));
        let topic = name.and_then(topics::named);
        self.others.extend(topic.map(topics::Topic::word));
    }

    /// Ends a paragraph or a line of a list.
    fn paragraph(&mut self) {
        let inline = std::mem::take(&mut self.inline);
        let depth = self.lists.len() * INDENT;
        let bullet = self.bullet.take();
        if inline.trim().is_empty() {
            self.bullet = bullet;
            return;
        }
        let mut sign = bullet.unwrap_or_default();
        let room = match depth {
            0 => self.columns,
            _ => self.columns.saturating_sub(depth + 1).max(INDENT),
        };
        for line in wrapped(&inline, room) {
            let margin = " ".repeat(depth.saturating_sub(INDENT));
            let sign = std::mem::take(&mut sign);
            let line = match depth {
                0 => line,
                _ => format!("{margin}{sign:<INDENT$} {line}"),
            };
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    fn block(&mut self, text: &str) {
        let margin = " ".repeat((self.lists.len() + 1) * INDENT);
        for line in text.lines() {
            let line = format!("{margin}{line}");
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    /// Adds an empty line, except within a list.
    fn space(&mut self) {
        if self.lists.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn finish(mut self) -> String {
        let others: Vec<_> = self.others.iter().copied().collect();
        if !others.is_empty() {
            self.inline = format!("See also (`strata help TOPIC`): {}", others.join(", "));
            self.paragraph();
        }
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        self.text.push('\n');
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint::new(false);

    const SOURCE: &str = "\
<!-- Written by a test. -->
# Title

A first sentence with `code`. A [link](mtu.md#a) to
another page, [elsewhere](https://example.net).

<!-- sh alice
a step of a test
-->
```console alice
$ strata   status

up
```

## Lists

1. one item that is longer than the terminal is wide
2. two
   * inner

| command | shows |
|---|---|
| `strata status` | all, with a text that has to be broken |
| b | c |
";

    #[test]
    fn a_page_is_shown_without_markup() {
        let expected = "\
Title

A first sentence with `code`. A link to
another page, elsewhere.

  $ strata   status

  up

Lists

1. one item that is longer than the
   terminal is wide
2. two
  *  inner

command          shows
`strata status`  all, with a text that
                 has to be broken
b                c

See also (`strata help TOPIC`): mtu
";
        let shown = show(SOURCE, 40, PLAIN);
        assert_eq!(shown, expected, "{shown}");
    }

    #[test]
    fn the_first_sentence_tells_what_a_page_is_about() {
        assert_eq!(first_sentence(SOURCE), "A first sentence with code.");
        assert_eq!(first_sentence("# A\n\nAll of\nit\n"), "All of it");
    }

    #[test]
    fn every_page_is_as_wide_as_the_terminal_at_most() {
        for topic in topics::TOPICS {
            let shown = show(topic.text, 100, PLAIN);
            assert!(!shown.contains("<!--"), "{}", topic.name);
            let prose = shown.lines().filter(|line| !line.starts_with("  "));
            for line in prose {
                assert!(terminal::width(line) <= 100, "{}: {line}", topic.name);
            }
        }
    }
}
