//! `ipsec.secrets`: lines `OWNER... : KIND SECRET`, continued by indented lines, and `include`.

use crate::Unreadable;
use crate::connection::{Content, Shared};
use crate::note::{Note, Weight};
use crate::secret::decoded;
use crate::sources::Sources;
use zeroize::Zeroizing;

/// Reads the secrets of a text. `before` is the number of lines before it.
pub(super) fn read(
    text: &str,
    before: usize,
    content: &mut Content,
    sources: &mut Sources<'_>,
) -> Result<(), Unreadable> {
    for Statement { line, text } in statements(text) {
        let line = before + line;
        let words = words(&text);
        if let [include, pattern] = &words[..]
            && include.text == "include"
        {
            sources.include(line, &pattern.text, &mut |sources, text, before| {
                read(text, before, content, sources)
            })?;
            continue;
        }
        let Some(colon) = words
            .iter()
            .position(|word| word.text == ":" && !word.is_quoted)
        else {
            return Err(Unreadable::new(
                line,
                "ipsec.secrets: there is no `:` before the secret",
            ));
        };
        let (owners, rest) = words.split_at(colon);
        let owners = owners.iter().map(|owner| owner.text.clone()).collect();
        statement(line, owners, &rest[1..], content);
    }
    Ok(())
}

fn statement(line: usize, owners: Vec<String>, rest: &[Word], content: &mut Content) {
    let kind = rest.first().map(|word| word.text.to_ascii_uppercase());
    let shared = |owners| Shared {
        line,
        owners,
        octets: rest.get(1).and_then(Word::secret),
    };
    match kind.as_deref() {
        Some("PSK") => content.psks.push(shared(owners)),
        Some("PPK" | "PPKS") => content.ppks.push(shared(owners)),
        Some("RSA" | "ECDSA" | "PKCS8" | "BLISS") if rest.len() <= 2 => {}
        Some("RSA" | "ECDSA" | "PKCS8" | "P12") => {
            let why = "the passphrase of a key file: decrypt it with `openssl pkcs8 -in FILE` into a file of mode 0600";
            content
                .notes
                .push(Note::new(line, "a key in ipsec.secrets", why, Weight::Lost));
        }
        _ => {
            let why = "a password or a smartcard, which Strata does not use: issue certificates";
            content.notes.push(Note::new(
                line,
                "a secret in ipsec.secrets",
                why,
                Weight::Lost,
            ));
        }
    }
}

/// A statement without comments and line ends.
struct Statement {
    line: usize,
    text: Zeroizing<String>,
}

fn statements(text: &str) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        let last = statements
            .last_mut()
            .filter(|_| text.starts_with([' ', '\t']));
        match last {
            Some(last) => {
                last.text.push(' ');
                last.text.push_str(text.trim());
            }
            None => statements.push(Statement {
                line,
                text: Zeroizing::new(text.trim().to_owned()),
            }),
        }
    }
    statements
}

/// A word of a statement.
struct Word {
    text: String,
    is_quoted: bool,
}

impl Word {
    /// Returns the octets of a secret. In quotes, nothing is decoded.
    fn secret(&self) -> Option<Zeroizing<Vec<u8>>> {
        match self.is_quoted {
            true => Some(Zeroizing::new(self.text.as_bytes().to_vec())),
            false => decoded(self.text.strip_prefix("0t").unwrap_or(&self.text)),
        }
    }
}

/// Splits a statement into words, texts in quotes, and the colon before the kind.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after, is_quoted) = match first {
            '#' => break,
            '"' | '\'' => {
                let inner = &rest[1..];
                let (word, after) = inner.split_once(first).unwrap_or((inner, ""));
                (word, after, true)
            }
            ':' => (&rest[..1], &rest[1..], false),
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let end = owner_end(&rest[..end]);
                (&rest[..end], &rest[end..], false)
            }
        };
        words.push(Word {
            text: word.to_owned(),
            is_quoted,
        });
        rest = after.trim_start();
    }
    words
}

/// Returns the length of a word without a colon behind it, as in `@moon:` and `@moon:PSK`. Colons
/// of an IPv6 address belong to the word.
fn owner_end(word: &str) -> usize {
    let kinds = [":PSK", ":RSA", ":ECDSA", ":EAP", ":XAUTH"];
    let ends = |word: &str| word.len() > 1 && word.ends_with(':') && !word.ends_with("::");
    match kinds.iter().find_map(|kind| word.find(kind)) {
        Some(end) if end > 0 => end,
        _ if ends(word) => word.len() - 1,
        _ => word.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, content: &mut Content) -> Result<(), Unreadable> {
        super::read(text, 0, content, &mut Sources::new(&|_, _| Vec::new()))
    }

    fn psks(text: &str) -> Vec<Shared> {
        let mut content = Content::default();
        read(text, &mut content).expect(text);
        content.psks
    }

    #[test]
    fn secrets_are_quoted_or_decoded() {
        for (text, owners, secret) in [
            (
                "@moon @sun : PSK \"a b c\"",
                &["@moon", "@sun"][..],
                &b"a b c"[..],
            ),
            (": PSK 0sZm9vYmFy", &[], b"foobar"),
            (": PSK \"0sZm9vYmFy\"", &[], b"0sZm9vYmFy"),
            (
                "192.0.2.1 2001:db8::1 : PSK 0x666f6f",
                &["192.0.2.1", "2001:db8::1"],
                b"foo",
            ),
            ("@moon:PSK 'x'", &["@moon"], b"x"),
            ("@moon @sun: PSK z", &["@moon", "@sun"], b"z"),
            (
                "@moon\n\t@sun :\n\tPSK \"y\" # why",
                &["@moon", "@sun"],
                b"y",
            ),
            ("%any : PSK word", &["%any"], b"word"),
        ] {
            let all = psks(text);
            assert_eq!(all.len(), 1, "{text}");
            assert_eq!(all[0].owners, owners, "{text}");
            assert_eq!(
                all[0].octets.as_ref().expect(text).as_slice(),
                secret,
                "{text}"
            );
        }
        assert!(psks(": PSK 0sx")[0].octets.is_none());
        assert!(psks(": PSK")[0].octets.is_none());
    }

    #[test]
    fn a_line_without_a_colon_is_refused() {
        let mut content = Content::default();
        let error = read("\n@moon PSK \"x\"\n", &mut content).unwrap_err();
        assert_eq!(error.line, 2);
        assert!(!error.to_string().contains('x'), "{error}");
    }

    #[test]
    fn keys_are_no_secrets_and_passwords_have_no_place() {
        let mut content = Content::default();
        let text =
            ": RSA moonKey.pem\n: RSA moonKey.pem \"nutsAndBolts\"\ncarol : EAP \"Ar3etTnp\"\n";
        read(text, &mut content).unwrap();
        let lines: Vec<_> = content.notes.iter().map(|note| note.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
