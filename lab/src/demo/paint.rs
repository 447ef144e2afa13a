//! Colours, bars and numbers of the pictures that demos draw.

/// Terminal colours, if they are enabled.
#[derive(Clone, Copy)]
pub(super) struct Paint {
    pub colour: bool,
}

impl Paint {
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub fn doubtful(self, text: &str) -> String {
        self.with("33", text)
    }

    pub fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub fn with(self, code: &str, text: &str) -> String {
        match self.colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// Draws a fraction as a bar of at most `width` characters, to an eighth of a character.
pub(super) fn bar(part: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// Draws a fraction as one character.
pub(super) fn spark(part: f64) -> char {
    const PARTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    PARTS[(part.clamp(0.0, 1.0) * 8.0).round() as usize]
}

/// Formats a number with commas: `1,234,567`.
pub(super) fn count(number: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_part() {
        assert_eq!(bar(0.0, 16), "");
        assert_eq!(bar(0.5, 10), "█████");
        assert_eq!(bar(1.0 / 128.0, 16), "▏");
        assert_eq!(bar(9.0, 10).chars().count(), 10);
        assert_eq!((spark(0.0), spark(0.5), spark(2.0)), (' ', '▄', '█'));
    }

    #[test]
    fn a_long_number_has_commas() {
        assert_eq!([7, 999, 1_234_567].map(count), ["7", "999", "1,234,567"]);
    }
}
