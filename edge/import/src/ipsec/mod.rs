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
use crate::sources::{File, Find, Sources};
use std::net::IpAddr;

/// Converts an `ipsec.conf` in a folder, the `ipsec.secrets` beside it, if there is one, and the
/// files that they include. `is_ours` returns true for an address of this host, which tells `left`
/// from `right`.
///
/// # Errors
/// A file is no such file.
pub fn ipsec(
    file: &File,
    secrets: Option<&File>,
    folder: &str,
    is_ours: &dyn Fn(IpAddr) -> bool,
    find: &Find<'_>,
) -> Result<Draft, Unreadable> {
    let mut sources = Sources::new(find);
    let content = read(file, secrets, is_ours, &mut sources);
    let content = content.map_err(|error| error.placed(&sources.names))?;
    Ok(Draft {
        files: sources.names,
        ..assemble(content, "ipsec.conf", folder)
    })
}

fn read(
    file: &File,
    secrets: Option<&File>,
    is_ours: &dyn Fn(IpAddr) -> bool,
    sources: &mut Sources<'_>,
) -> Result<Content, Unreadable> {
    let file = grammar::read(file, sources)?;
    let mut content = Content::default();
    for setup in &file.setups {
        apply_all(SETUP, setup, &mut content);
    }
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
    if content.connections.is_empty() && content.notes.is_empty() && sources.notes.is_empty() {
        return Err(Unreadable::new(1, "there is no `conn`"));
    }
    if let Some(secrets) = secrets {
        sources.read(secrets, &mut |sources, text, before| {
            secrets::read(text, before, &mut content, sources)
        })?;
    }
    content.notes.append(&mut sources.notes);
    Ok(content)
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
