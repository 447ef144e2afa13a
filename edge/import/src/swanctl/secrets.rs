//! The sections of `secrets`. Values are secrets, so no note has one.

use crate::connection::{Content, Shared};
use crate::note::{Note, Weight};
use crate::secret::decoded;
use crate::section::Section;

/// Reads a section such as `ike-1 { id-1 = moon.example; secret = 0s... }`.
pub(super) fn read(section: &Section, content: &mut Content) {
    let is = |kind: &str| section.name.starts_with(kind);
    if is("ike") || is("ppk") {
        let ids = section
            .entries
            .iter()
            .filter(|entry| entry.key.starts_with("id"));
        let Some(secret) = section.value("secret") else {
            return;
        };
        let shared = Shared {
            line: secret.line,
            owners: ids.map(|entry| entry.value.clone()).collect(),
            octets: decoded(&secret.value),
        };
        match is("ike") {
            true => content.psks.push(shared),
            false => content.ppks.push(shared),
        }
        return;
    }
    let why = if is("eap") || is("xauth") || is("ntlm") {
        "a password for EAP or XAuth, which Strata does not have: issue certificates"
    } else if is("token") {
        "a key in a smartcard: Strata reads private keys from PEM files"
    } else {
        "the passphrase of a key file: decrypt it with `openssl pkcs8 -in FILE` into a file of mode 0600"
    };
    let what = format!("secrets.{}", section.name);
    content
        .notes
        .push(Note::new(section.line, &what, why, Weight::Lost));
}
