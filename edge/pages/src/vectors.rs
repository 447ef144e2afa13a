//! Test vectors of `docs/protocol-vectors.json`, against which each crate checks what it
//! implements of `docs/protocol.md`.

use serde_json::Value;

const FILE: &str = "protocol-vectors.json";

/// A test vector of one kind: named inputs and the output that they determine.
#[derive(Clone)]
pub struct Vector {
    name: String,
    kind: String,
    input: Value,
    output: Value,
}

/// Passes every vector of a kind to an implementation, which returns true if it yields the output.
/// As a negative control, it also gets copies with a flipped bit in each part of the output.
///
/// # Panics
///
/// If the implementation yields another output, or accepts a copy.
#[track_caller]
pub fn check_vectors(kind: &str, is_right: impl Fn(&Vector) -> bool) {
    let vectors = all(&crate::read(FILE));
    let vectors: Vec<_> = vectors
        .iter()
        .filter(|vector| vector.kind == kind)
        .collect();
    assert!(!vectors.is_empty(), "docs/{FILE} has no {kind}");
    for vector in vectors {
        let name = &vector.name;
        assert!(is_right(vector), "{kind}, {name}: another output");
        for pointer in pointers(&vector.output) {
            let place = format!("{kind}, {name}: the output{pointer}");
            assert!(
                !is_right(&vector.flipped(&pointer)),
                "{place} is not compared"
            );
        }
    }
}

impl Vector {
    /// Returns true if there is an input of this name.
    pub fn has(&self, input: &str) -> bool {
        self.input.get(input).is_some()
    }

    /// Returns an input that is a text.
    pub fn text(&self, input: &str) -> &str {
        text(&self.input[input])
    }

    /// Returns an input that is a list of texts.
    pub fn texts(&self, input: &str) -> Vec<&str> {
        list(&self.input[input]).iter().map(text).collect()
    }

    /// Returns an input that is a number.
    pub fn number(&self, input: &str) -> u64 {
        number(&self.input[input])
    }

    /// Returns an input that is a list of numbers.
    pub fn numbers(&self, input: &str) -> Vec<u64> {
        list(&self.input[input]).iter().map(number).collect()
    }

    /// Returns an input in octets.
    pub fn octets(&self, input: &str) -> Vec<u8> {
        octets(&self.input[input])
    }

    /// Returns a part of the output by its JSON pointer (RFC 6901), which is empty if the output
    /// has no parts.
    pub fn output(&self, pointer: &str) -> Vec<u8> {
        let part = self.output.pointer(pointer);
        octets(part.unwrap_or_else(|| panic!("{} has no output {pointer}", self.name)))
    }

    /// Returns a copy with a flipped bit in a part of the output.
    fn flipped(&self, pointer: &str) -> Self {
        let mut copy = self.clone();
        let part = copy.output.pointer_mut(pointer).expect("a known part");
        let (kept, last) = text(part).split_at(text(part).len() - 1);
        let digit = u8::from_str_radix(last, 16).expect("a hexadecimal digit");
        *part = format!("{kept}{:x}", digit ^ 1).into();
        copy
    }
}

fn all(file: &str) -> Vec<Vector> {
    let file: Value = serde_json::from_str(file).expect("the vectors are JSON");
    let vector = |value: &Value| Vector {
        name: text(&value["name"]).to_owned(),
        kind: text(&value["kind"]).to_owned(),
        input: value["input"].clone(),
        output: value["output"].clone(),
    };
    list(&file["vectors"]).iter().map(vector).collect()
}

/// Returns the pointers of all parts of an output.
fn pointers(output: &Value) -> Vec<String> {
    let Value::Object(parts) = output else {
        return vec![String::new()];
    };
    let below = parts.iter().flat_map(|(name, part)| {
        let rest = pointers(part).into_iter();
        rest.map(move |rest| format!("/{name}{rest}"))
    });
    below.collect()
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no list"))
}

fn octets(value: &Value) -> Vec<u8> {
    let text = text(value);
    let octet = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal octets");
    (0..text.len()).step_by(2).map(octet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const CHECKED_IN: [&str; 3] = [
        "pure/wire/tests/vectors.rs",
        "pure/ike/src/tests/vectors.rs",
        "pure/esp/tests/data_plane/vectors.rs",
    ];

    #[test]
    fn vectors_of_every_kind_are_checked_by_a_crate() {
        let read = |file: &str| std::fs::read_to_string(crate::repository().join(file)).unwrap();
        let tests = CHECKED_IN.map(read).concat();
        let vectors = all(&crate::read(FILE));
        let kinds: BTreeSet<_> = vectors.into_iter().map(|vector| vector.kind).collect();
        for kind in kinds {
            let check = format!("check_vectors(\"{kind}\"");
            assert!(tests.contains(&check), "no crate checks {kind}");
        }
    }

    fn holds(is_right: impl Fn(&Vector) -> bool + std::panic::UnwindSafe) -> bool {
        std::panic::catch_unwind(|| check_vectors("token", is_right)).is_ok()
    }

    /// Negative control: an implementation that compares too little is noticed.
    #[test]
    fn an_output_that_is_not_compared_is_noticed() {
        let vectors = all(&crate::read(FILE));
        let token = vectors.into_iter().find(|vector| vector.kind == "token");
        let token = token.unwrap();
        let parts = pointers(&token.output);
        assert_eq!(parts.len(), 4);
        let same = |vector: &Vector, parts: &[String]| {
            let same = |part: &String| vector.output(part) == token.output(part);
            parts.iter().all(same)
        };
        assert!(holds(|vector| same(vector, &parts)));
        for left_out in 0..parts.len() {
            let mut compared = parts.clone();
            compared.remove(left_out);
            assert!(!holds(|vector| same(vector, &compared)));
        }
    }
}
