//! Tables for many users: `id = "*@example.net"` in `[peer.NAME]`, and the tunnels of one identity.
//!
//! Everyone with a certificate for one of the identities is a user of the table. A secret or a key
//! that many share proves none of their identities. Two tables with one pattern differ in the
//! certificates of their users. Each user needs an inner address of its own:
//! otherwise one user could receive the packets of another.

use crate::reader::Value;
use crate::{Addressing, Party, Peer, Resume};
use crypto::Certificate;
use model::{Unique, Wildcard};

/// Most users of a table at once, unless configured otherwise.
pub(crate) const USERS: u32 = 1000;

/// Most users that a table may have.
pub(crate) const MOST_USERS: u32 = 100_000;

impl Party {
    /// Returns the pattern that `id` is, if it stands for many identities.
    pub fn wildcard(&self) -> Option<Wildcard> {
        Wildcard::read(&self.identity)
    }
}

impl Peer {
    /// Returns the identities that are users of this table, or `None` if it is for one peer.
    pub fn user_identities(&self) -> Option<Wildcard> {
        let one = || Wildcard::One(self.party.identity.clone());
        let each = (self.unique == Unique::Never).then(one);
        self.party.wildcard().or(each)
    }
}

/// Returns true if the certificates of users tell two tables with one pattern apart: no certificate
/// of one unit and one CA is for both.
pub(crate) fn are_told_apart(one: &Party, other: &Party) -> bool {
    let by_unit = matches!((&one.unit, &other.unit), (Some(one), Some(other)) if one != other);
    let is_other = |ca: &Certificate| {
        let mut others = other.authorities.iter();
        others.all(|other| !ca.has_subject_of(other))
    };
    let both = !one.authorities.is_empty() && !other.authorities.is_empty();
    let by_authority = both && one.authorities.iter().all(is_other);
    one.wildcard().is_some() && (by_unit || by_authority)
}

/// Refuses a pattern in a table of another kind.
pub(crate) fn check_other(kind: &str, party: &Party, root: &Value<'_>) {
    if let (Some(_), Some(id)) = (party.wildcard(), root.at(&[kind, &party.name, "id"])) {
        id.fault::<()>(
            format!("only a [peer.NAME] can be for many users, and [{kind}.NAME] is for one host"),
            "write one name, mail address or IP address",
        );
    }
}

/// Checks the keys of a table for many users, and those that only such a table has.
pub(crate) fn check(peer: &Peer, root: &Value<'_>) {
    let at = |key: &str| root.at(&["peer", &peer.party.name, key]);
    let (is_pattern, is_never) = (
        peer.party.wildcard().is_some(),
        peer.unique == Unique::Never,
    );
    if is_pattern {
        check_proof(&at);
        check_address(&at);
    }
    let is_lent = matches!(peer.addressing, Addressing::Lent(_));
    if is_pattern
        && !is_lent
        && let Some(id) = at("id")
    {
        id.fault::<()>(
            "each of many users needs an inner address of its own",
            "write `pool = \"office\"` instead of `remote`, with a [pool.office]",
        );
    }
    if let (true, false, false, Some(unique)) = (is_never, is_pattern, is_lent, at("unique")) {
        unique.fault::<()>(
            "each of several tunnels needs an inner address of its own",
            "write `pool = \"office\"` instead of `remote`, with a [pool.office]",
        );
    }
    if let (true, true, Some(resume)) = (is_never, peer.resume != Resume::Off, at("resume")) {
        resume.fault::<()>(
            "with `unique = \"never\"`, a session does not tell which of several tunnels was lost",
            "remove `resume`, or write `unique = \"replace\"`",
        );
    }
    if let (None, Some(users)) = (peer.user_identities(), at("users")) {
        users.fault::<()>(
            "this table is for one peer, as `id` is one identity",
            "remove `users`, or write a pattern as `id`: \"*@example.net\" or \"*.example.net\"",
        );
    }
}

/// Refuses other proofs than certificates.
fn check_proof<'a>(at: &impl Fn(&str) -> Option<Value<'a>>) {
    for key in ["psk", "pubkey"] {
        if let Some(value) = at(key) {
            value.fault::<()>(
                format!("`{key}` is the same for all users of this table, so it proves none of their identities"),
                format!("remove `{key}`: each user needs a certificate (`cert`, `key` and `ca` in [node]), or a table with its own `id`"),
            );
        }
    }
}

/// Refuses an address: many users have many.
fn check_address<'a>(at: &impl Fn(&str) -> Option<Value<'a>>) {
    if let Some(address) = at("address") {
        address.fault::<()>(
            "this table is for many users, who come from any address",
            "remove `address`, or write the identity of one peer as `id`",
        );
    }
}
