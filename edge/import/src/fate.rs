//! The tables of the conversion: for each key of a section, what becomes of it.

use crate::note::{Note, Weight};
use crate::section::{Entry, Section};

/// The conversion of a key.
pub(crate) enum Fate<T> {
    /// A function converts the value.
    To(fn(&Entry, &mut T) -> Verdict),
    /// Another line needs it, or nothing is to do.
    Settled,
    /// It has no place, for this reason.
    No(Weight, &'static str),
}

/// Keys with the same fate. A name that ends with `*` stands for all that begin like it.
pub(crate) struct Rule<T> {
    pub(crate) keys: &'static [&'static str],
    pub(crate) fate: Fate<T>,
}

/// The reason that a value has no place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Objection {
    pub(crate) weight: Weight,
    pub(crate) why: String,
}

pub(crate) type Verdict = Result<(), Objection>;

/// Returns a remark about a value.
pub(crate) fn remark(why: impl Into<String>) -> Verdict {
    object(Weight::Remark, why)
}

/// Returns the objection to a value that protects traffic and has no place.
pub(crate) fn lost(why: impl Into<String>) -> Verdict {
    object(Weight::Lost, why)
}

/// Returns the objection to a connection.
pub(crate) fn refused(why: impl Into<String>) -> Verdict {
    object(Weight::Refused, why)
}

fn object(weight: Weight, why: impl Into<String>) -> Verdict {
    Err(Objection {
        weight,
        why: why.into(),
    })
}

/// A conversion in progress, and its notes.
pub(crate) trait Noted {
    fn notes(&mut self) -> &mut Vec<Note>;
}

impl Noted for Vec<Note> {
    fn notes(&mut self) -> &mut Vec<Note> {
        self
    }
}

/// Converts all lines of a section.
pub(crate) fn apply_all<T: Noted>(rules: &[Rule<T>], section: &Section, to: &mut T) {
    for entry in &section.entries {
        apply(rules, entry, to);
    }
}

/// Keys whose values are secrets.
const SECRETS: [&str; 3] = ["PrivateKey", "PresharedKey", "secret"];

/// Converts a line by the rule for its key, and notes why it has no place. A note has no value that
/// may be a secret: none of a key that is not known.
pub(crate) fn apply<T: Noted>(rules: &[Rule<T>], entry: &Entry, to: &mut T) {
    let rule = rules.iter().find(|rule| rule.has(&entry.key));
    let verdict = match rule.map(|rule| &rule.fate) {
        Some(Fate::To(convert)) => convert(entry, to),
        Some(Fate::Settled) => Ok(()),
        Some(Fate::No(weight, why)) => object(*weight, *why),
        None => lost("this key is not known here: look up what it protects"),
    };
    let is_secret = SECRETS
        .iter()
        .any(|key| entry.key.eq_ignore_ascii_case(key));
    let what = match rule.is_some() && !is_secret {
        true => format!("{} = {}", entry.key, entry.value),
        false => entry.key.clone(),
    };
    if let Err(Objection { weight, why }) = verdict {
        to.notes().push(Note::new(entry.line, &what, why, weight));
    }
}

impl<T> Rule<T> {
    fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|known| match known.strip_suffix('*') {
            Some(start) => key
                .get(..start.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(start)),
            None => key.eq_ignore_ascii_case(known),
        })
    }
}
