//! Colours, and escaping of untrusted text.

use control::Failure;
use std::borrow::Cow;
use std::fmt::Write;

/// Colours, if the output is a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    colour: bool,
}

impl Paint {
    /// Creates colours, or none.
    pub const fn new(colour: bool) -> Self {
        Self { colour }
    }

    /// Formats emphasis.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Formats success.
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Formats a warning.
    pub fn doubtful(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Formats a failure.
    pub fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Formats a failure with its remedy.
pub fn failure(failure: &Failure, paint: Paint) -> String {
    let error = paint.bad("error:");
    format!(
        "{error} {}\n  fix: {}\n",
        clean(&failure.message),
        clean(&failure.fix)
    )
}

/// Escapes untrusted text: control characters, invisible characters, and characters that change the
/// direction of text.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| match is_harmful(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Escapes the same characters in a line of JSON, whose encoder leaves them as they are. They occur
/// only inside strings, which decode to the same value.
pub fn json_safe(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    for c in line.chars() {
        if is_harmful(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Returns true for control characters and for Unicode's format characters: zero-width,
/// bidirectional, tags.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_comes_with_its_fix() {
        let shown = failure(
            &Failure::new("no peer `ofice`", "did you mean `office`?"),
            Paint::new(false),
        );
        assert_eq!(
            shown,
            "error: no peer `ofice`\n  fix: did you mean `office`?\n"
        );
    }

    #[test]
    fn what_a_peer_says_cannot_move_the_cursor_or_turn_the_text() {
        assert_eq!(clean("gw.example.net"), "gw.example.net");
        assert_eq!(clean("müller@example.net"), "müller@example.net");
        assert_eq!(clean("a\x1b[2Jb\nc\u{9b}d"), "a\\u{1b}[2Jb\\nc\\u{9b}d");
        assert_eq!(clean("\u{202e}ten.live"), "\\u{202e}ten.live");
    }

    #[test]
    fn json_stays_the_same_for_who_decodes_it() {
        let text = "a\u{9b}2J\u{202e}\u{e0041}b";
        let line = serde_json::to_string(text).unwrap();
        let safe = json_safe(&line);
        assert!(safe.is_ascii(), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }

    #[test]
    fn without_colours_nothing_is_added() {
        assert_eq!(Paint::new(false).bad("no"), "no");
        assert_eq!(Paint::new(true).bad("no"), "\x1b[1;31mno\x1b[0m");
    }
}
