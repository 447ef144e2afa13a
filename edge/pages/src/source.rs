//! The Rust source as the origin of reference pages: documentation, messages and lines of the log,
//! as they are written in the code.
//!
//! This is no parser. It knows the form that `cargo fmt` gives to the few constructs it looks for.

use crate::repository;

/// The text of a source file.
pub struct Source(String);

/// A message, and the documentation of the variant or the place that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Name of the variant.
    pub name: String,
    /// Documentation of the variant.
    pub doc: String,
    /// Text with the fields in braces.
    pub text: String,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogLine {
    /// `error`, `warn`, `info` or `debug`.
    pub level: String,
    /// Text with the values in braces.
    pub text: String,
    /// Offset of the call in the file.
    pub at: usize,
}

impl Source {
    /// Reads a file of the repository.
    ///
    /// # Panics
    ///
    /// If the file cannot be read.
    pub fn read(file: &str) -> Self {
        let text = std::fs::read_to_string(repository().join(file));
        Self(text.unwrap_or_else(|error| panic!("{file}: {error}")))
    }

    /// Returns the text between two phrases, the first of which is unique; empty if there is none.
    pub fn between(&self, start: &str, end: &str) -> &str {
        let rest = self.0.split_once(start).map(|(_, rest)| rest);
        let part = rest.and_then(|rest| rest.split_once(end));
        part.map_or("", |(part, _)| part)
    }

    /// Returns the code without its tests.
    pub fn code(&self) -> &str {
        let code = self.0.split("\n#[cfg(test)]\nmod tests").next();
        code.unwrap_or_default()
    }

    /// Returns the names of an item's variants or public fields and their documentation, in their
    /// order. `head` is the line that begins the item.
    pub fn parts(&self, head: &str) -> Vec<(String, String)> {
        let body = self.between(&format!("{head} {{"), "\n}");
        let mut parts = Vec::new();
        let mut end = 0;
        for line in body.split_inclusive('\n') {
            let name = line.strip_prefix("    ").unwrap_or_default();
            let name = identifier(name.trim_start_matches("pub "));
            if !name.is_empty() {
                parts.push((name.to_owned(), doc_above(&body[..end])));
            }
            end += line.len();
        }
        parts
    }

    /// Returns the documentation of a variant of an enum.
    pub fn doc_within(&self, name: &str, variant: &str) -> Option<String> {
        let body = self.between(&format!("pub enum {name} {{"), "\n}");
        let starts = |end: &str| body.find(&format!("\n    {variant}{end}"));
        let at = [" {", "(", ","].into_iter().find_map(starts)?;
        Some(doc_above(&body[..at]))
    }

    /// Returns the documentation of the item whose line begins with `item`.
    pub fn doc(&self, item: &str) -> Option<String> {
        let mut lines = self.0.match_indices(item);
        let at = lines.find(|(at, _)| self.0[..*at].trim_end_matches(' ').ends_with('\n'))?;
        Some(doc_above(&self.0[..at.0])).filter(|doc| !doc.is_empty())
    }

    /// Returns the variants of an enum with an `#[error]`, in their order.
    pub fn errors(&self, name: &str) -> Vec<Message> {
        let body = self.between(&format!("pub enum {name} {{"), "\n}");
        let attributes = body.match_indices("#[error(");
        let messages = attributes.filter_map(|(at, attribute)| {
            let (text, rest) = literal(&body[at + attribute.len()..])?;
            let (_, variant) = rest.split_once(")]")?;
            Some(Message {
                name: identifier(variant.trim_start()).to_owned(),
                doc: doc_above(&body[..at]),
                text,
            })
        });
        messages.collect()
    }

    /// Returns the lines that the code outside of its tests logs, in their order.
    pub fn log_lines(&self) -> Vec<LogLine> {
        let code = self.code();
        let calls = code.match_indices("tracing::");
        let lines = calls.filter_map(|(at, call)| {
            let (level, rest) = code[at + call.len()..].split_once("!(")?;
            let is_level = level.len() <= 5 && level.chars().all(|c| c.is_ascii_lowercase());
            let (text, _) = literal(rest).filter(|_| is_level)?;
            Some(LogLine {
                level: level.to_owned(),
                text,
                at,
            })
        });
        lines.collect()
    }

    /// Returns the last variant of one of some types that is named before an offset in the same
    /// function.
    pub fn variant_before(&self, at: usize, types: &[&str]) -> Option<(&str, &str)> {
        let before = &self.0[..at];
        let found = types.iter().filter_map(|name| {
            let place = before.rfind(&format!("{name}::"))?;
            let whole = !before[..place].ends_with(|c: char| c.is_ascii_alphanumeric());
            whole.then_some((place, *name))
        });
        let (place, name) = found.max()?;
        if before[place..].contains("\n    fn ") || before[place..].contains("\nfn ") {
            return None;
        }
        Some((
            &self.0[place..place + name.len()],
            identifier(&self.0[place + name.len() + 2..]),
        ))
    }
}

/// Reads the first string literal of a text, and returns what follows it.
pub fn literal(text: &str) -> Option<(String, &str)> {
    let start = text.find('"')?;
    let mut value = String::new();
    let mut chars = text[start + 1..].char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[start + 1 + at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push(' '),
                '\n' => {
                    let blank = |c: &(usize, char)| c.1.is_whitespace();
                    while chars.clone().next().as_ref().is_some_and(blank) {
                        chars.next();
                    }
                }
                other => value.push(other),
            },
            c => value.push(c),
        }
    }
    None
}

/// Returns the documentation that ends a text. Attributes after it are skipped.
fn doc_above(text: &str) -> String {
    let lines = text.trim_end().lines().rev().map(str::trim);
    let lines = lines.skip_while(|line| line.starts_with("#["));
    let lines = lines.map_while(|line| line.strip_prefix("///"));
    let mut lines: Vec<_> = lines.map(str::trim).collect();
    lines.reverse();
    plain(&lines.join(" "))
}

/// Writes links to items as code, and leaves out sentences about the code itself.
fn plain(doc: &str) -> String {
    let sentences = doc.split_inclusive(". ");
    let sentences = sentences.filter(|sentence| !sentence.contains("crate::"));
    let doc: String = sentences.collect();
    doc.trim_end().replace("[`", "`").replace("`]", "`")
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Converts the name of a variant to the form that it has in labels and JSON.
pub fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = r#"
/// Reason.
pub enum Why {
    /// The peer
    /// is gone.
    #[error("the peer did not answer {attempts} times; it is {0}")]
    Gone {
        attempts: u32,
    },
    #[error(
        "a \"quoted\" word, {}",
        other(.0)
    )]
    Quoted(u8),
}

fn tell() {
    match event {
        Event::Up { peer } => tracing::info!(
            "peer {peer}: \
             up"
        ),
    }
}

#[cfg(test)]
mod tests {
    fn tell() {
        tracing::warn!("a test");
    }
}
"#;

    #[test]
    fn errors_are_found_with_their_documentation() {
        let errors = Source(CODE.to_owned()).errors("Why");
        let shown: Vec<_> = errors
            .iter()
            .map(|Message { name, doc, text }| (name.as_str(), doc.as_str(), text.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                (
                    "Gone",
                    "The peer is gone.",
                    "the peer did not answer {attempts} times; it is {0}"
                ),
                ("Quoted", "", "a \"quoted\" word, {}"),
            ]
        );
    }

    #[test]
    fn lines_of_the_log_are_those_outside_of_tests() {
        let source = Source(CODE.to_owned());
        let [line] = &source.log_lines()[..] else {
            panic!("{:?}", source.log_lines());
        };
        assert_eq!(
            (line.level.as_str(), line.text.as_str()),
            ("info", "peer {peer}: up")
        );
        assert_eq!(
            source.variant_before(line.at, &["Event"]),
            Some(("Event", "Up"))
        );
        assert_eq!(source.doc("pub enum Why"), Some("Reason.".to_owned()));
        let gone = ("Gone".to_owned(), "The peer is gone.".to_owned());
        assert_eq!(source.parts("pub enum Why")[0], gone);
    }
}
