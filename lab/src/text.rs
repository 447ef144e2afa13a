//! Text for a terminal of 80 columns.

/// Columns of the terminal.
pub(crate) const WIDTH: usize = 80;

/// Returns text with a label in front, wrapped at the width of the terminal.
pub(crate) fn paragraph(label: &str, indent: usize, text: &str) -> String {
    let mut done = String::new();
    let mut line = format!("{label:indent$}");
    for word in text.split_whitespace() {
        let begins = line.chars().count() == indent.max(label.chars().count());
        if !begins && line.chars().count() + 1 + word.chars().count() > WIDTH {
            done += line.trim_end();
            done.push('\n');
            line = format!("{:indent$}{word}", "");
        } else {
            line += if begins { "" } else { " " };
            line += word;
        }
    }
    done + line.trim_end() + "\n"
}
