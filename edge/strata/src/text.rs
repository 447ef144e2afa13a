//! Formatting of text and numbers for a terminal: colours, amounts, and escaping of untrusted text.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;

/// Colours, if the output is a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    colour: bool,
}

impl Paint {
    pub const fn new(colour: bool) -> Self {
        Self { colour }
    }

    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub fn doubtful(self, text: &str) -> String {
        self.with("33", text)
    }

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

/// Formats a time span with its two largest units: `2 h 3 min`.
pub fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = UNITS.iter().position(|&(size, _)| seconds >= size);
    let Some(first) = first else {
        return "0 s".to_owned();
    };
    let (size, name) = UNITS[first];
    let head = format!("{} {name}", seconds / size);
    match UNITS.get(first + 1) {
        Some((smaller, name)) if seconds % size / smaller > 0 => {
            format!("{head} {} {name}", seconds % size / smaller)
        }
        _ => head,
    }
}

/// Formats a short time: `12.3 ms`.
pub fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Formats an amount of octets: `1.2 MiB`.
pub fn octets(octets: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if octets < 1024 {
        return format!("{octets} B");
    }
    let mut amount = octets as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while amount >= 1023.95 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// Formats a number with commas: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of things: `1 packet`, `2 packets`.
pub fn plural(number: u64, thing: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {thing}{s}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_at_most_two_units() {
        let texts = [0, 59, 60, 61, 3599, 3600, 7380, 86_400, 90_061].map(span);
        let expected = [
            "0 s",
            "59 s",
            "1 min",
            "1 min 1 s",
            "59 min 59 s",
            "1 h",
            "2 h 3 min",
            "1 d",
            "1 d 1 h",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn amounts_have_three_or_four_digits() {
        let texts = [
            0,
            1023,
            1024,
            1536,
            (1 << 20) - 1,
            1 << 20,
            5 << 30,
            u64::MAX,
        ]
        .map(octets);
        let expected = [
            "0 B",
            "1023 B",
            "1.0 KiB",
            "1.5 KiB",
            "1.0 MiB",
            "1.0 MiB",
            "5.0 GiB",
            "16384.0 PiB",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(plural(1, "packet"), "1 packet");
        assert_eq!(plural(2000, "packet"), "2,000 packets");
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
