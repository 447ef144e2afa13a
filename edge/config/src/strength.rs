//! An estimate of how hard a key is to guess.
//!
//! An attacker who poses as the responder once can try keys offline without a limit. Length alone
//! does not help: `passwordpassword` has 16 octets and is among the first guesses. So words, rows
//! and repetitions count for little, and all other octets for as much as the characters in use
//! allow. The estimate is generous: a key that it refuses is weak, but a key that it accepts may be
//! weak too.

/// Fewest bits of an accepted key. 16 random hexadecimal digits have 64, minus a few for rows and
/// repetitions that occur by chance: one such key in two hundred is refused, and no longer one.
pub(crate) const LEAST: f64 = 60.0;

/// Bits of one letter of a word (Shannon, "Prediction and Entropy of Printed English", 1951).
const LETTER: f64 = 2.0;
/// Letters in a row that count as a word.
const WORD: usize = 6;
/// Octets that count as a repetition if they also occur earlier.
const REPETITION: usize = 3;
/// Bits of an octet that continues a row, such as `1234`, `9876` or `aaaa`.
const ROW: f64 = 1.0;

/// Returns the estimated bits of a key.
pub(crate) fn bits(key: &[u8]) -> f64 {
    let random = alphabet(key).log2();
    let (mut bits, mut at) = (0.0, 0);
    while at < key.len() {
        let repeated = repetition(key, at);
        bits += match repeated {
            REPETITION.. => random,
            _ if is_in_word(key, at) => LETTER,
            _ if continues(&key[..=at]) => ROW,
            _ => random,
        };
        at += if repeated >= REPETITION { repeated } else { 1 };
    }
    bits
}

/// A class of characters, and their number.
type Kind = (fn(&u8) -> bool, f64);

/// Returns the size of the alphabet: all characters of each class that occurs in a key.
fn alphabet(key: &[u8]) -> f64 {
    let kinds: [Kind; 5] = [
        (u8::is_ascii_digit, 10.0),
        (u8::is_ascii_lowercase, 26.0),
        (u8::is_ascii_uppercase, 26.0),
        (
            |octet| octet.is_ascii() && !octet.is_ascii_alphanumeric(),
            33.0,
        ),
        (|octet| !octet.is_ascii(), 128.0),
    ];
    let used = kinds.iter().filter(|(is_one, _)| key.iter().any(is_one));
    used.map(|(_, count)| count).sum::<f64>().max(1.0)
}

/// Returns the number of octets from `at` on that also occur earlier, in either case.
fn repetition(key: &[u8], at: usize) -> usize {
    let same = |from: usize| {
        let pairs = key[from..].iter().zip(&key[at..]);
        pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
    };
    (0..at).map(same).max().unwrap_or(0)
}

/// Returns true if an octet belongs to a word: a run of lower-case letters, with or without a
/// capital in front.
fn is_in_word(key: &[u8], at: usize) -> bool {
    let is_small = |octet: &&u8| octet.is_ascii_lowercase();
    let before = match key[at].is_ascii_lowercase() {
        true => key[..at].iter().rev().take_while(is_small).count(),
        false => 0,
    };
    let (front, rest) = key.split_at(at - before);
    let capital = before > 0 && front.last().is_some_and(u8::is_ascii_uppercase);
    let after = rest[before + 1..].iter().take_while(is_small).count();
    let letters = usize::from(capital) + before + 1 + after;
    key[at].is_ascii_alphabetic() && letters >= WORD
}

/// Returns true if the last three octets are a row: equal, ascending by one or descending by one.
fn continues(octets: &[u8]) -> bool {
    let &[.., a, b, c] = octets else { return false };
    let step = i16::from(c) - i16::from(b);
    step.abs() <= 1 && step == i16::from(b) - i16::from(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Weakness: 53
    #[test]
    fn words_rows_and_repetitions_are_weak_however_long() {
        for key in [
            &b"passwordpassword"[..],
            b"PasswordPASSWORDpassword",
            b"P@ssw0rdP@ssw0rd",
            b"Password12345678",
            b"Summer2026Summer2026",
            b"correcthorsebatterystaple",
            b"qwertyuiopasdfgh",
            b"0123456789abcdef",
            b"0123456789abcdef0123456789abcdef",
            b"fedcba9876543210",
            b"1234567890123456",
            b"abababababababababababababababab",
            &[b'a'; 1024],
            &[0; 32],
        ] {
            let bits = bits(key);
            assert!(bits < LEAST, "{}: {bits}", key.escape_ascii());
        }
    }

    // Weakness: 53
    #[test]
    fn what_generators_make_and_six_words_of_a_list_are_not() {
        for key in [
            // `openssl rand -hex 8`, `-base64 12` and `-hex 16`.
            &b"9f86d081884c7d65"[..],
            b"LPJNul+wow4m6Dsq",
            b"2c26b46b68ffc68ff99b453c1d304134",
            // `head -c 32 /dev/urandom | base64`.
            b"4qHg8o8xEl1a3mVYz0j9k7bDq5Tn2RcuWfPyGhSIA6M=",
            b"3f2b8c1e-9d47-4e6a-b1f0-7c5d2a98e364",
            b"cleft cam synod lacy yr wok",
            b"\x9f\x86\xd0\x81\x88\x4c\x7d\x65\x9a\x2f\xea\xa0\xc5\x5a\xd0\x15",
        ] {
            let bits = bits(key);
            assert!(bits >= LEAST, "{}: {bits}", key.escape_ascii());
        }
    }

    #[test]
    fn an_empty_key_has_nothing_to_guess() {
        assert_eq!(bits(b""), 0.0);
    }
}
