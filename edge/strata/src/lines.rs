//! Lines of configurations that verbs write.

use std::fmt::Display;

/// Returns a string of TOML. Identities, addresses and names of files have no control characters.
pub fn quoted(text: impl Display) -> String {
    let text = text.to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// Returns a list of strings of TOML.
pub fn list<T: Display>(texts: &[T]) -> String {
    let texts: Vec<_> = texts.iter().map(quoted).collect();
    format!("[{}]", texts.join(", "))
}

/// Returns the name of a table or a file for an identity: the local part of a mail address, or the
/// first label of a name, in letters, digits and hyphens.
pub fn name(id: impl Display) -> String {
    let text = id.to_string();
    let is_address = text.parse::<std::net::IpAddr>().is_ok();
    let short = match text.split_once('@') {
        Some((local, _)) => local,
        None if is_address => &text,
        None => text.split('.').next().unwrap_or(&text),
    };
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    short.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_are_short() {
        let names = [
            "alice@example.net",
            "gw.example.net",
            "192.0.2.1",
            "fd00::1",
            "a+b@c",
            "bob",
        ];
        let short = names.map(name);
        assert_eq!(short, ["alice", "gw", "192-0-2-1", "fd00--1", "a-b", "bob"]);
    }

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quoted("a\"b\\c"), "\"a\\\"b\\\\c\"");
        assert_eq!(list(&["a", "b"]), "[\"a\", \"b\"]");
    }
}
