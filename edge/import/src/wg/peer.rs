//! What becomes of the keys of `[Peer]`.

use super::key::{host_name, key};
use crate::draft::{Draft, Row, Table};
use crate::fate::{Fate, Noted, Rule, refused, remark};
use crate::note::{Note, Weight};
use crate::range;
use crate::secret::{Secret, encoded};
use std::net::SocketAddr;
use zeroize::Zeroizing;

/// A table `[Peer]`.
#[derive(Default)]
pub(super) struct Peer {
    notes: Vec<Note>,
    public: Option<Zeroizing<Vec<u8>>>,
    preshared: Option<Zeroizing<Vec<u8>>>,
    address: Option<String>,
    remote: Vec<String>,
}

impl Noted for Peer {
    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }
}

impl Peer {
    /// Returns the table of the peer, or one with notes only. Its secret and the file of its public
    /// key are added to the draft.
    pub(super) fn table(mut self, line: usize, own: &str, draft: &mut Draft) -> Table {
        for (what, is_missing) in [
            ("PublicKey", self.public.is_none()),
            ("AllowedIPs", self.remote.is_empty()),
        ] {
            if is_missing {
                let why = "[Peer] lacks this line: the peer is left out";
                self.notes.push(Note::new(line, what, why, Weight::Refused));
            }
        }
        let name = self.public.as_ref().map(|public| host_name(public));
        let is_second = |name| draft.tables.iter().any(|table| table.head == head(name));
        if name.as_deref().is_some_and(is_second) {
            let why = "there is another [Peer] with this key: this one is left out";
            self.notes
                .push(Note::new(line, "[Peer]", why, Weight::Refused));
        }
        let is_refused = self.notes.iter().any(|note| note.weight == Weight::Refused);
        let mut table = match name.filter(|_| !is_refused) {
            None => Table::default(),
            Some(name) => {
                let rows = self.rows(&name, own, draft);
                draft.awaited_keys.push(format!("{name}.pub"));
                Table::new(head(&name), rows)
            }
        };
        table.notes = self.notes;
        table
    }

    /// WireGuard restricts what the peer sends, and not what this host does. The peer's file has
    /// the restriction of the other direction, and both ends agree on what both allow.
    fn rows(&self, name: &str, own: &str, draft: &mut Draft) -> Vec<Row> {
        let mut rows = Vec::new();
        rows.extend(
            self.address
                .as_ref()
                .map(|address| Row::text("address", address)),
        );
        rows.push(Row::text("id", name));
        rows.push(Row::text("pubkey", &format!("{name}.pub")));
        let everything = ["0.0.0.0/0", "::/0"];
        let has = |family: &&str| {
            let is_v6 = family.contains(':');
            self.remote
                .iter()
                .any(|remote| remote.contains(':') == is_v6)
        };
        rows.push(Row::list("local", everything.into_iter().filter(has)));
        rows.push(Row::list("remote", self.remote.iter().map(String::as_str)));
        if let Some(preshared) = &self.preshared {
            let file = format!("{name}.ppk");
            let mut ends = [own, name];
            ends.sort_unstable();
            rows.push(Row::plain(
                "ppk",
                format!("{{ id = \"{}\", key = \"{file}\" }}", ends.join("-")),
            ));
            let text = encoded(preshared);
            draft.secrets.push(Secret { file, text });
        }
        rows
    }
}

/// Returns the head of the table of a peer.
fn head(name: &str) -> String {
    format!("[peer.{name}]")
}

pub(super) const RULES: &[Rule<Peer>] = &[
    Rule {
        keys: &["PublicKey"],
        fate: Fate::To(|entry, peer| {
            peer.public = key(&entry.value);
            match peer.public {
                Some(_) => Ok(()),
                None => refused("this is no key of 32 octets in base64"),
            }
        }),
    },
    Rule {
        keys: &["PresharedKey"],
        fate: Fate::To(|entry, peer| {
            peer.preshared = key(&entry.value);
            match peer.preshared {
                Some(_) => Ok(()),
                None => refused("this is no key of 32 octets in base64"),
            }
        }),
    },
    Rule {
        keys: &["AllowedIPs"],
        fate: Fate::To(|entry, peer| {
            for text in entry.list() {
                match range::prefixes(text) {
                    Some(prefixes) => peer.remote.extend(prefixes),
                    None => return refused(format!("`{text}` is no prefix")),
                }
            }
            Ok(())
        }),
    },
    Rule {
        keys: &["Endpoint"],
        fate: Fate::To(|entry, peer| {
            let host = match entry.value.parse::<SocketAddr>() {
                Ok(endpoint) => endpoint.ip().to_string(),
                Err(_) => match entry.value.rsplit_once(':') {
                    Some((name, _)) => name.to_owned(),
                    None => entry.value.clone(),
                },
            };
            peer.address = Some(host);
            Ok(())
        }),
    },
    Rule {
        keys: &["PersistentKeepalive"],
        fate: Fate::To(|entry, _| match entry.value.as_str() {
            "0" | "off" => Ok(()),
            _ => remark("Strata keeps bindings of NATs alive by itself"),
        }),
    },
];
