//! `ppk`: a post-quantum pre-shared key (RFC 8784), in addition to the authentication of the peer.

use crate::Psk;
use crate::psk::{key, plainness};
use crate::reader::Value;

/// Fewest bits of entropy of the key (RFC 8784 section 6). Against a quantum computer it is worth
/// half of them.
const LEAST: usize = 256;

/// Most characters of a name.
const LONGEST_NAME: usize = 64;

/// `ppk = { id = "office2026", key = "office.ppk" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ppk {
    /// `id`: name of the key, the same at both ends. Other implementations may accept only letters,
    /// digits, `+` and `/`.
    pub id: String,
    /// `key`: name of a file in the configuration's folder, mode 0600, with the key.
    pub key: Psk,
    /// `required`: true if there is no tunnel without the key; otherwise it is used if the peer has
    /// it too. Default true.
    pub required: bool,
}

impl Ppk {
    /// Formats the table without its key.
    pub(crate) fn shown(&self) -> String {
        let required = if self.required {
            "required"
        } else {
            "optional"
        };
        format!("{} {required}", self.id)
    }
}

/// Reads the table.
pub(crate) fn ppk(value: &Value<'_>) -> Option<Ppk> {
    let mut table = value.table()?;
    let id = table.required("id", "\"office2026\"", name);
    let key = table.required("key", "\"office.ppk\"", |value| key(value, weakness));
    let required = table.optional("required", Value::boolean);
    table.finish();
    Some(Ppk {
        id: id?,
        key: key?,
        required: required.unwrap_or(true),
    })
}

fn name(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    if text.len() > LONGEST_NAME || !text.bytes().all(|octet| octet.is_ascii_graphic()) {
        return value.fault(
            "this cannot be the name of a PPK",
            format!("use 1 to {LONGEST_NAME} letters and digits, the same at both ends"),
        );
    }
    Some(text.to_owned())
}

/// Returns the reason to refuse a key that is too short for its entropy, or easy to guess.
fn weakness(octets: &[u8]) -> Option<String> {
    let all = |kind: fn(&u8) -> bool| octets.iter().all(kind);
    let (each, what) = match (all(u8::is_ascii_hexdigit), all(u8::is_ascii)) {
        (true, _) => (4, "hexadecimal digits"),
        (_, true) => (6, "characters"),
        (_, false) => (8, "octets"),
    };
    let (length, least) = (octets.len(), LEAST.div_ceil(each));
    let short = (length < least).then(|| {
        format!(
            "the key has {length} {what}, fewer than {least}: {LEAST} bits of entropy are needed against quantum computers"
        )
    });
    short.or_else(|| plainness(octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::varied;

    #[test]
    fn what_cannot_have_256_bits_of_entropy_is_too_weak() {
        for (alphabet, least) in [
            (&b"0123456789abcdEF"[..], 64),
            (b"AbCdEfGhZz+/0123", 43),
            (b"\xff\xfd\xf0\x00\x17\x80\x91", 32),
        ] {
            let long = varied(alphabet, least);
            assert_eq!(weakness(&long), None);
            let told = weakness(&long[1..]).unwrap();
            assert!(told.contains(&format!("fewer than {least}")), "{told}");
        }
    }

    #[test]
    fn a_key_that_is_long_and_easy_to_guess_is_too_weak() {
        let told = weakness(&b"passwordpassword".repeat(4)).unwrap();
        assert!(told.contains("could be guessed"), "{told}");
    }
}
