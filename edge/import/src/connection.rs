//! A connection of strongSwan or Libreswan, before it becomes a table of ours.

use crate::draft::Row;
use crate::fate::{Noted, Verdict, lost, refused, remark};
use crate::note::{Note, Weight};
use crate::proposal::Algorithms;
use crate::selector::Selector;
use crate::time;
use std::net::IpAddr;
use zeroize::Zeroizing;

/// A connection, and the notes about its lines.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) notes: Vec<Note>,
    /// Where the peer listens: addresses and names; none if the peer connects.
    pub(crate) remote: Vec<String>,
    /// Our outer addresses.
    pub(crate) local: Vec<IpAddr>,
    pub(crate) ours: Side,
    pub(crate) theirs: Side,
    pub(crate) algorithms: Algorithms,
    /// True if the peer assigns our inner address.
    pub(crate) asks_for_address: bool,
    /// The pool that the peer's inner address is leased from.
    pub(crate) pool: Option<String>,
    /// Name of the post-quantum pre-shared key.
    pub(crate) ppk: Option<String>,
    pub(crate) is_ppk_required: bool,
    /// Keys of the peer's table.
    pub(crate) rows: Vec<Row>,
    pub(crate) children: Vec<Child>,
}

/// The identity and the proof of one end.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub(crate) proof: Proof,
    pub(crate) id: Option<String>,
    pub(crate) certificates: Vec<String>,
    pub(crate) public_keys: Vec<String>,
    pub(crate) authorities: Vec<String>,
    /// Number of authentication rounds.
    pub(crate) rounds: usize,
}

/// A method of authentication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Proof {
    #[default]
    Signature,
    Psk,
}

/// A child of a connection.
#[derive(Debug, Default)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) notes: Vec<Note>,
    pub(crate) local: Vec<Selector>,
    pub(crate) remote: Vec<Selector>,
    pub(crate) algorithms: Algorithms,
    /// True if the tunnel comes up by itself.
    pub(crate) starts: bool,
    pub(crate) action: Action,
    pub(crate) rows: Vec<Row>,
}

/// The treatment of a child's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Action {
    #[default]
    Protect,
    Bypass,
    Discard,
}

/// A pool of inner addresses.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) notes: Vec<Note>,
    pub(crate) addresses: Vec<String>,
    pub(crate) dns: Vec<String>,
    pub(crate) subnets: Vec<String>,
}

/// A shared secret and the identities that it is for; none if for all.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) line: usize,
    pub(crate) owners: Vec<String>,
    /// `None` if the secret cannot be decoded.
    pub(crate) octets: Option<Zeroizing<Vec<u8>>>,
}

/// Everything that a file of strongSwan or Libreswan has for us.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) notes: Vec<Note>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) psks: Vec<Shared>,
    pub(crate) ppks: Vec<Shared>,
    /// Keys of the table `node`.
    pub(crate) node: Vec<Row>,
}

impl Noted for Connection {
    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }
}

impl Noted for Child {
    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }
}

impl Noted for Pool {
    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }
}

impl Noted for Content {
    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }
}

impl Connection {
    /// Returns the first reason to leave the connection out.
    pub(crate) fn refusal(&self) -> Option<&Note> {
        let mut notes = self.notes.iter();
        notes.find(|note| note.weight == Weight::Refused)
    }

    /// Adds addresses of the peer. Those that stand for any host are none.
    pub(crate) fn add_remote(&mut self, address: &str) -> Verdict {
        let is_any = [
            "%any",
            "%any4",
            "%any6",
            "0.0.0.0",
            "::",
            "0.0.0.0/0",
            "::/0",
            "%opportunistic",
        ];
        match address {
            address if is_any.contains(&address) => Ok(()),
            address if address.contains(['/', '-']) && is_range(address) => lost(
                "Strata accepts the peer from any address: limit the addresses in the firewall",
            ),
            address if address.starts_with('%') => refused(format!(
                "`{address}` depends on the host: write the address of the peer"
            )),
            address => {
                self.remote.push(address.to_owned());
                Ok(())
            }
        }
    }

    /// Adds addresses of this host. Others than IP addresses are left to the routes.
    pub(crate) fn add_local(&mut self, address: &str) -> Verdict {
        let without_link = address.split('%').next().unwrap_or(address);
        if let Ok(address) = without_link.parse() {
            self.local.push(address);
        }
        Ok(())
    }
}

/// Returns true for a prefix or a range of addresses.
fn is_range(text: &str) -> bool {
    crate::range::prefixes(text).is_some()
}

impl Side {
    /// Reads the method of authentication.
    pub(crate) fn authenticate(&mut self, method: &str) -> Verdict {
        let method = method.trim();
        let is = |starts: &[&str]| starts.iter().any(|start| method.starts_with(start));
        self.proof = match method {
            "psk" | "secret" | "ppk" => Proof::Psk,
            _ if is(&["pubkey", "rsa", "ecdsa", "ed25519", "ike:", "any"]) => Proof::Signature,
            _ if is(&["eap"]) => {
                return refused("Strata has no EAP: use certificates or a pre-shared key");
            }
            _ => {
                return refused(format!(
                    "Strata does not authenticate by `{method}`: use certificates or a pre-shared key"
                ));
            }
        };
        Ok(())
    }
}

/// Reads a time into a row, within the limits of our configuration in seconds. Zero is no limit
/// there; here it is the default.
pub(crate) fn timed(
    value: &str,
    key: &'static str,
    limits: std::ops::RangeInclusive<u64>,
    rows: &mut Vec<Row>,
) -> Verdict {
    match time::seconds(value) {
        Some(0) if key == "reauth" => Ok(()),
        Some(0) => remark("Strata always has such a limit; the default applies"),
        Some(seconds) if limits.contains(&seconds) => {
            rows.push(Row::text(key, &time::written(seconds)));
            Ok(())
        }
        Some(seconds) => {
            let nearest = seconds.clamp(*limits.start(), *limits.end());
            rows.push(Row::text(key, &time::written(nearest)));
            remark(format!(
                "`{key}` is at least {} and at most {} in Strata",
                time::written(*limits.start()),
                time::written(*limits.end())
            ))
        }
        None => remark("this is not a time; the default applies"),
    }
}

const DAY: u64 = 86_400;

/// Limits of the times of a peer's table, in seconds.
pub(crate) const LIVENESS: std::ops::RangeInclusive<u64> = 1..=3600;
pub(crate) const REKEY: std::ops::RangeInclusive<u64> = 1..=DAY;
pub(crate) const REAUTH: std::ops::RangeInclusive<u64> = 10..=30 * DAY;
