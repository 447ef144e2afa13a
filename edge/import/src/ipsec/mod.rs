//! `ipsec.conf` and `ipsec.secrets` of strongSwan and Libreswan.

mod connection;
mod grammar;
mod secrets;

use crate::Unreadable;
use crate::assemble::assemble;
use crate::connection::Content;
use crate::draft::{Draft, Row};
use crate::fate::{Fate, Rule, apply_all};
use crate::note::{Note, Weight};
use std::net::IpAddr;

/// Converts the texts of an `ipsec.conf` in a folder and, if there is one, of the `ipsec.secrets`
/// beside it. `is_ours` returns true for an address of this host, which tells `left` from `right`.
///
/// # Errors
/// A text is no such file.
pub fn ipsec(
    text: &str,
    secrets: Option<&str>,
    folder: &str,
    is_ours: &dyn Fn(IpAddr) -> bool,
) -> Result<Draft, Unreadable> {
    let file = grammar::read(text)?;
    let mut content = Content::default();
    for setup in &file.setups {
        apply_all(SETUP, setup, &mut content);
    }
    content.note_includes(&file.includes);
    for authority in &file.authorities {
        let what = format!("ca {}", authority.name);
        let why = "name CAs in `ca` and revocation lists in `crl` of [node]";
        content
            .notes
            .push(Note::new(authority.line, &what, why, Weight::Lost));
    }
    for section in &file.connections {
        connection::read(section, is_ours, &mut content);
    }
    if content.connections.is_empty() && content.notes.is_empty() {
        return Err(Unreadable::new(1, "there is no `conn`"));
    }
    secrets::read(secrets.unwrap_or_default(), &mut content)?;
    Ok(assemble(content, "ipsec.conf", folder))
}

/// What becomes of the keys of `config setup`.
const SETUP: &[Rule<Content>] = &[
    Rule {
        keys: &["strictcrlpolicy", "crl-strict"],
        fate: Fate::To(|entry, content| {
            if entry.is_on() {
                content.node.push(Row::text("revocation", "strict"));
            }
            Ok(())
        }),
    },
    Rule {
        keys: &[
            "uniqueids",
            "charondebug",
            "plutodebug",
            "logfile",
            "logtime",
            "logappend",
            "charonstart",
            "plutostart",
            "nat_traversal",
            "protostack",
            "interfaces",
            "virtual-private",
            "virtual_private",
            "dumpdir",
            "oe",
            "listen",
            "cachecrls",
            "ikev1-policy",
            "nhelpers",
            "statsbin",
            "nssdir",
            "secretsfile",
        ],
        fate: Fate::No(Weight::Remark, "a setting of that daemon alone"),
    },
    Rule {
        keys: &["ocsp-*", "crlcheckinterval", "seccomp"],
        fate: Fate::No(
            Weight::Lost,
            "Strata fetches no revocation status: name the list in `crl` of [node]",
        ),
    },
];
