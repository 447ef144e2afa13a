//! Secrets, as the imported files write them and as ours do.

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use std::fmt;
use zeroize::Zeroizing;

/// A file with a secret. Never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Name of the file.
    pub file: String,
    /// Content of the file.
    pub text: Zeroizing<String>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.file)
    }
}

/// Decodes a secret as strongSwan does: base64 behind `0s`, hexadecimal digits behind `0x`, and
/// otherwise the text. Returns `None` if that is impossible.
pub(crate) fn decoded(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let after = |mark: &str| {
        let is_marked = text
            .get(..2)
            .is_some_and(|two| two.eq_ignore_ascii_case(mark));
        is_marked.then(|| &text.as_bytes()[2..])
    };
    let octets = match (after("0s"), after("0x")) {
        (Some(base64), _) => BASE64.decode(base64).ok()?,
        (_, Some(digits)) => HEXLOWER_PERMISSIVE.decode(digits).ok()?,
        _ => text.as_bytes().to_vec(),
    };
    Some(Zeroizing::new(octets))
}

/// Returns the text of a file from which our configuration reads the secret: plain text where that
/// is possible, otherwise base64.
pub(crate) fn encoded(octets: &[u8]) -> Zeroizing<String> {
    let is_marked = octets
        .get(..2)
        .is_some_and(|two| two.eq_ignore_ascii_case(b"0s") || two.eq_ignore_ascii_case(b"0x"));
    let is_plain = octets.iter().all(|octet| (b' '..=b'~').contains(octet)) && !is_marked;
    let text = match std::str::from_utf8(octets) {
        Ok(text) if is_plain => format!("{text}\n"),
        _ => format!("0s{}\n", BASE64.encode(octets)),
    };
    Zeroizing::new(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_the_same_after_decoding_and_encoding() {
        for (text, file) in [
            (
                "a key of more than sixteen octets",
                "a key of more than sixteen octets\n",
            ),
            ("0sZm9vYmFy", "foobar\n"),
            ("0x666f6fff", "0sZm9v/w==\n"),
            ("0s//4=", "0s//4=\n"),
            ("caf\u{e9}", "0sY2Fmw6k=\n"),
        ] {
            let octets = decoded(text).expect(text);
            assert_eq!(encoded(&octets).as_str(), file, "{text}");
        }
        // A text that looks encoded, from a file in which it is not.
        assert_eq!(encoded(b"0sfoo").as_str(), "0sMHNmb28=\n");
    }

    #[test]
    fn what_cannot_be_decoded_is_none() {
        for text in ["0sZm9", "0xabc", "0x..", "0s\u{e9}"] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}
