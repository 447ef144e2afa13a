//! Files of `wg-quick`.
//!
//! The keys of WireGuard are for key exchange and cannot sign, so each host gets a new key, and the
//! other hosts its public key. A host is called by the first octets of its WireGuard key, so that
//! two files which are imported on two hosts fit each other.

mod grammar;
mod interface;
pub(crate) mod key;
mod peer;

use crate::Unreadable;
use crate::draft::{Draft, Row};
use crate::fate::apply_all;
use crate::note::Weight;
use interface::Interface;
use key::{host_name, public};
use peer::Peer;

/// Converts the text of a file of `wg-quick`.
///
/// # Errors
/// The text is no such file.
pub fn wg(text: &str) -> Result<Draft, Unreadable> {
    let file = grammar::read(text)?;
    let mut interface = Interface::default();
    apply_all(interface::RULES, &file.interface, &mut interface);
    let Some(own) = interface.private.as_ref().and_then(public) else {
        let why = "[Interface] has no usable `PrivateKey`";
        return Err(Unreadable::new(file.interface.line, why));
    };
    let own = host_name(&own);
    let mut draft = Draft {
        source: "a file of wg-quick",
        node: vec![Row::text("id", &own)],
        new_key: Some(own.clone()),
        notes: std::mem::take(&mut interface.notes),
        ..Draft::default()
    };
    draft.tables.extend(interface.table());
    for section in &file.peers {
        let mut peer = Peer::default();
        apply_all(peer::RULES, section, &mut peer);
        let table = peer.table(section.line, &own, &mut draft);
        draft.tables.push(table);
    }
    if file.peers.is_empty() {
        let why =
            "there is no [Peer]: import the files of the other hosts there, and add their tables";
        draft.note(0, "[Peer]", why, Weight::Refused);
    }
    Ok(draft)
}
