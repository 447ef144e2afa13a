//! Secrets in base64 behind `0s`, or in hexadecimal digits behind `0x`, as strongSwan and Libreswan
//! read them. Without such a mark the text itself is the secret.
//!
//! A marked text that cannot be decoded is refused. Others would decode a part of it, or use the
//! text, and the two ends would have different secrets that look the same.

use data_encoding::{BASE64, Encoding, HEXLOWER_PERMISSIVE};
use zeroize::Zeroizing;

/// The marks, what follows them, and how it is decoded.
const MARKS: [(&[u8; 2], &str, &Encoding); 2] = [
    (b"0s", "base64", &BASE64),
    (b"0x", "hexadecimal digits", &HEXLOWER_PERMISSIVE),
];

/// A secret as it is used.
#[derive(Debug)]
pub(crate) struct Secret {
    pub(crate) octets: Zeroizing<Vec<u8>>,
    /// True if the text was decoded.
    pub(crate) is_decoded: bool,
}

/// Decodes a text behind a mark, in either case. Returns the problem of a text that has a mark and
/// cannot be decoded.
pub(crate) fn decode(text: Zeroizing<Vec<u8>>) -> Result<Secret, String> {
    let mark = |mark: &[u8; 2]| {
        text.get(..2)
            .is_some_and(|two| two.eq_ignore_ascii_case(mark))
    };
    let Some((mark, what, encoding)) = MARKS.iter().find(|(known, ..)| mark(known)) else {
        return Ok(Secret {
            octets: text,
            is_decoded: false,
        });
    };
    match encoding.decode(&text[2..]) {
        Ok(octets) => Ok(Secret {
            octets: Zeroizing::new(octets),
            is_decoded: true,
        }),
        Err(_) => Err(format!(
            "the key begins with `{}`, but its other characters are no {what}",
            mark.escape_ascii()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &[u8]) -> Result<Secret, String> {
        decode(Zeroizing::new(text.to_vec()))
    }

    /// A secret of strongSwan's examples, and tests of RFC 4648 section 10.
    #[test]
    fn base64_and_hexadecimal_digits_are_decoded() {
        for (text, octets) in [
            (
                &b"0sFpZAZqEN6Ti9sqt4ZP5EWcqx"[..],
                &b"\x16\x96\x40\x66\xa1\x0d\xe9\x38\xbd\
                  \xb2\xab\x78\x64\xfe\x44\x59\xca\xb1"[..],
            ),
            (b"0sZm9vYmE=", b"fooba"),
            (b"0SZm9vYg==", b"foob"),
            (b"0x666f6F62", b"foob"),
            (b"0X666F6f62", b"foob"),
        ] {
            let secret = decoded(text).unwrap();
            assert_eq!(*secret.octets, octets, "{}", text.escape_ascii());
            assert!(secret.is_decoded);
        }
    }

    #[test]
    fn a_text_without_a_mark_is_used_as_it_is() {
        for text in [
            &b"FpZAZqEN6Ti9sqt4ZP5EWcqx"[..],
            b"",
            b"0",
            b"s0",
            b"\xff\xfe",
        ] {
            let secret = decoded(text).unwrap();
            assert_eq!(*secret.octets, text);
            assert!(!secret.is_decoded);
        }
    }

    /// Without its padding, strongSwan drops the last octets, and others refuse it.
    #[test]
    fn a_marked_text_that_cannot_be_decoded_is_refused() {
        for text in [
            &b"0sZm9vYmE"[..],
            b"0sfoo bar=",
            b"0xabc",
            b"0xgg",
            b"0xfo\n",
            b"0s\xff",
        ] {
            let problem = decoded(text).unwrap_err();
            assert!(problem.contains("begins with `0"), "{problem}");
        }
    }
}
