//! Values in the syntax of the file.

use super::Shown;
use crate::Psk;
use crypto::{Certificate, RevocationList, sha256};
use model::TrafficSelector;
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

pub(super) fn text(value: impl Display) -> Shown {
    Shown::Text(value.to_string())
}

pub(super) fn secret(psk: Option<&Psk>) -> Shown {
    Shown::Psk(psk.cloned())
}

/// Shows one of a few words.
pub(super) fn word<T: PartialEq>(words: &[(&str, T)], value: &T) -> Shown {
    let mut words = words.iter();
    text(
        words
            .find(|(_, one)| one == value)
            .map_or("", |(word, _)| word),
    )
}

/// Shows a value that may be absent, or the word for its absence.
pub(super) fn or(absent: &str, value: Option<impl Display>) -> Shown {
    value.map_or_else(|| text(absent), text)
}

pub(super) fn list<T: Display>(items: impl IntoIterator<Item = T>) -> Shown {
    text(joined(items))
}

pub(super) fn joined<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

/// Shows selectors, or `["dynamic"]` if an end gets its address from the other.
pub(super) fn selectors(selectors: &[TrafficSelector], is_dynamic: bool) -> Shown {
    match is_dynamic {
        true => text("[dynamic]"),
        false => list(selectors),
    }
}

pub(super) fn file(path: Option<&Path>) -> Shown {
    or("none", path.map(Path::display))
}

pub(super) fn certificates(certificates: &[Certificate]) -> Shown {
    list(certificates.iter().map(certificate))
}

/// Formats a certificate. The start of the fingerprint distinguishes a renewed certificate in any
/// case.
fn certificate(certificate: &Certificate) -> String {
    let Certificate {
        subject, not_after, ..
    } = certificate;
    let fingerprint = fingerprint(&certificate.der);
    format!("{subject} until {not_after} ({fingerprint})")
}

/// Formats a revocation list: its issuer, and the period in which it is the newest.
pub(super) fn revocation_list(list: &RevocationList) -> String {
    let RevocationList {
        der,
        issuer,
        this_update,
        next_update,
        ..
    } = list;
    let fingerprint = fingerprint(der);
    format!("{issuer} of {this_update} until {next_update} ({fingerprint})")
}

fn fingerprint(der: &[u8]) -> String {
    let [a, b, c, d, ..] = sha256(&[der]);
    format!("{a:02x}{b:02x}{c:02x}{d:02x}")
}

/// Formats a duration in the syntax of the file, in the largest unit of which it is a multiple.
pub(crate) fn time(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let unit = units
        .iter()
        .find(|(unit, _)| millis > 0 && millis.is_multiple_of(*unit));
    match unit {
        Some((unit, name)) => format!("{}{name}", millis / unit),
        None if millis == 0 => "0s".to_owned(),
        None => format!("{millis}ms"),
    }
}

/// Formats a number of octets in the syntax of the file.
pub(crate) fn size(octets: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(unit, _)| octets.is_multiple_of(*unit));
    unit.map_or_else(
        || format!("{octets}B"),
        |(unit, name)| format!("{}{name}", octets / unit),
    )
}
