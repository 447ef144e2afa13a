//! The parties that we speak IKE with, and the three kinds among them that carry no traffic of
//! ours.

use crate::Psk;
use crate::address::Address;
use crate::credential;
use crate::keys::{GATEWAY, LICENSED, NEIGHBOUR, PARTY};
use crate::pubkey::pubkey;
use crate::reader::{Table, Value};
use crate::set::MODERN;
use crypto::{Certificate, RawKey};
use model::{Group, Identity, Kem, Shared, Suite, TrafficSelector};
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// The common part of `[peer.NAME]`, `[licensed.NAME]`, `[gateway.NAME]` and `[neighbour.NAME]`.
#[derive(Clone, Debug)]
pub struct Party {
    /// The table's name, unique among all four kinds.
    pub name: String,
    /// `id`: the identity that the party must prove, compared octet by octet; of a peer also a
    /// pattern of identities. Default: `address`, if we connect to it and it is a name.
    pub identity: Identity,
    /// `psk`: name of a file in the configuration's folder, mode 0600, with the pre-shared key.
    /// Without one, both ends authenticate by certificate or raw public key.
    pub psk: Option<Psk>,
    /// `pubkey`: name of a file in the configuration's folder with the party's public key. Both
    /// ends then authenticate by their raw public keys and send no certificates (RFC 7670).
    pub pubkey: Option<Box<RawKey>>,
    /// All other keys. A gateway may have 100,000 parties, and most have these in common.
    pub terms: Shared<Terms>,
}

/// The keys of a party that others may have in common with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// `suite`: one suite or a list, best first; or `modern`, `strict` or `legacy`, which name sets
    /// of suites and groups (`config::set`). Default `modern`.
    pub suites: Vec<Suite>,
    /// `groups`: one group for the key exchange or a list, best first. Default the groups of
    /// `suite` if `suite` is a set, else `["x25519", "p256", "p384"]`.
    pub groups: Vec<Group>,
    /// `kem`: an additional key exchange that no quantum computer is known to break (RFC 9370), or
    /// a list, best first: `mlkem768`, `mlkem1024`, `mlkem512`; with `none` in the list the
    /// exchange is optional. Default `none`. The setting applies to the IKE SA, to its rekeys, and
    /// to every rekey of a tunnel with a key exchange of its own (see `pfs`). There is no separate
    /// setting for tunnels: an attacker who records traffic now can later read everything that the
    /// weakest exchange protects.
    pub kems: Vec<Option<Kem>>,
    /// `liveness`: silence after which the party is probed, 1 s to 1 h. Default 30 s. A party that
    /// leaves the probe, or an earlier request, unanswered for 15.5 s more is considered dead.
    pub liveness: Duration,
    /// `ike_rekey`: lifetime of the keys of the IKE SA, 1 s to 24 h. Default 4 h.
    pub ike_rekey: Duration,
    /// `reauth`: time for which the authentication of both ends is valid, 10 s to 720 h. Both ends
    /// then re-authenticate in a new IKE SA that replaces the old one. Default unlimited.
    pub reauth: Option<Duration>,
    /// `ca`: a PEM file with the only CAs whose certificates prove the party's identity, or a list
    /// of files. They are trusted for this party alone. Default `ca` of `[node]`.
    pub authorities: Vec<Certificate>,
    /// `ou`: organisational unit that the subject of the party's certificate must have. Default
    /// any.
    pub unit: Option<String>,
    /// `window`: number of IKE requests that may be outstanding at once in each direction, provided
    /// that the other end agrees, 1 to 64. Default 1.
    pub window: u8,
}

/// `[licensed.NAME]`: a node that receives keys from us if a tunnel's licences name it.
#[derive(Clone, Debug)]
pub struct Licensed {
    /// The node's identity and its IKE settings.
    pub party: Party,
    /// `address`: the place at which the node listens; we connect to it.
    pub address: Address,
    /// `at`: addresses of mobile nodes at the node's place, if the node's domain is licensed.
    /// Default: `address`.
    pub at: Vec<TrafficSelector>,
}

/// `[gateway.NAME]`: on a licensed node, a gateway whose grants we accept.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// The gateway's identity and its IKE settings.
    pub party: Party,
    /// `address`: the only address from which the gateway's connections are accepted. Default any.
    pub address: Option<Address>,
}

/// `[neighbour.NAME]`: on a licensed node, another one that mobile nodes come from or move to.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// The neighbour's identity and its IKE settings.
    pub party: Party,
    /// `address`: the place at which the neighbour listens; we connect to it. Default: the
    /// neighbour connects to us, from any address.
    pub address: Option<Address>,
}

impl Deref for Party {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        &self.terms
    }
}

/// A change concerns this party only.
impl DerefMut for Party {
    fn deref_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }
}

impl Party {
    /// Creates a party with the default of each key, and without an identity.
    pub(crate) fn new(name: &str) -> Self {
        let second = Duration::from_secs(1);
        Self {
            name: name.to_owned(),
            identity: Identity::Fqdn(String::new()),
            psk: None,
            pubkey: None,
            terms: Shared::from(Terms {
                suites: MODERN.suites.to_vec(),
                groups: MODERN.groups.to_vec(),
                kems: vec![None],
                liveness: second * 30,
                ike_rekey: second * 4 * 3600,
                reauth: None,
                authorities: Vec::new(),
                unit: None,
                window: 1,
            }),
        }
    }

    /// Reads `id`, after the rows. Returns false without one, after a fault. `default` is the name
    /// at which the party listens. The host that answers there has to prove it.
    pub(crate) fn read_identity(&mut self, table: &mut Table<'_>, default: Option<&str>) -> bool {
        const EXAMPLE: &str = "\"peer.example.net\"";
        let identity = match (table.value("id"), default) {
            (None, Some(name)) => name.parse().ok(),
            _ => table.required("id", EXAMPLE, Value::identity_or_pattern),
        };
        let is_read = identity.is_some();
        self.identity = identity.unwrap_or_else(|| Identity::Fqdn(String::new()));
        is_read
    }

    /// Returns true if an additional key exchange is proposed, required or not.
    pub(crate) fn wants_kem(&self) -> bool {
        self.kems.iter().any(Option::is_some)
    }
}

/// Reads the key of a party without a `psk`.
pub(crate) fn raw_key(value: &Value<'_>) -> Option<RawKey> {
    match value.is_beside("psk") {
        true => value.fault(
            "`psk` and `pubkey` are both set, and only one of them can authenticate a peer",
            "remove `psk` or `pubkey`, the same one at both ends",
        ),
        false => pubkey(value),
    }
}

/// Reads `ca` of a party.
pub(crate) fn authorities(value: &Value<'_>) -> Option<Vec<Certificate>> {
    of_certificate(value, "ca")?;
    credential::authorities(value)
}

/// Reads `ou` of a party.
pub(crate) fn unit(value: &Value<'_>) -> Option<String> {
    of_certificate(value, "ou")?;
    let unit = value.text()?;
    // "ub-organizational-unit-name INTEGER ::= 64" (RFC 5280 appendix A.1). A certificate is
    // compared without its control characters.
    let is_odd = |c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER;
    match unit.chars().count() > 64 || unit.contains(is_odd) {
        true => value.fault(
            "an organisational unit has at most 64 characters, and no control characters",
            "write one unit as the certificate has it; `strata pki show` prints its subject",
        ),
        false => Some(unit.to_owned()),
    }
}

/// Refuses a key about certificates of a party that proves its identity in another way.
fn of_certificate(value: &Value<'_>, key: &str) -> Option<()> {
    let mut others = ["psk", "pubkey"].into_iter();
    match others.find(|other| value.is_beside(other)) {
        Some(other) => value.fault(
            format!("`{key}` is about certificates, and this peer authenticates by `{other}`"),
            format!("remove `{key}`, or `{other}`"),
        ),
        None => Some(()),
    }
}

/// Reads suites. A set of suites also has groups, which `groups` replaces.
pub(crate) fn suites(value: &Value<'_>, party: &mut Party) -> Option<()> {
    let (suites, of_set) = value.suites()?;
    party.suites = suites;
    if let Some(groups) = of_set {
        party.groups = groups;
    }
    Some(())
}

impl Licensed {
    /// Returns the addresses that identify the node's place, none if it is not known.
    pub fn place(&self) -> Vec<TrafficSelector> {
        let own = self.address.ip().and_then(|address| {
            let length = if address.is_ipv4() { 32 } else { 128 };
            TrafficSelector::from_prefix(address, length)
        });
        match self.at.is_empty() {
            true => own.into_iter().collect(),
            false => self.at.clone(),
        }
    }

    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let mut licensed = Self {
            party: Party::new(name),
            address: IpAddr::from([0; 4]).into(),
            at: Vec::new(),
        };
        let mut is_whole = table.read(PARTY, &mut licensed.party);
        is_whole &= table.read(LICENSED, &mut licensed);
        let name = licensed.address.name();
        is_whole &= licensed.party.read_identity(&mut table, name);
        table.finish();
        is_whole.then_some(licensed)
    }
}

impl Neighbour {
    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let mut neighbour = Self {
            party: Party::new(name),
            address: None,
        };
        let mut is_whole = table.read(PARTY, &mut neighbour.party);
        is_whole &= table.read(NEIGHBOUR, &mut neighbour);
        let name = neighbour.address.as_ref().and_then(Address::name);
        is_whole &= neighbour.party.read_identity(&mut table, name);
        table.finish();
        is_whole.then_some(neighbour)
    }
}

impl Gateway {
    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let mut gateway = Self {
            party: Party::new(name),
            address: None,
        };
        let mut is_whole = table.read(PARTY, &mut gateway.party);
        is_whole &= gateway.party.read_identity(&mut table, None);
        is_whole &= table.read(GATEWAY, &mut gateway);
        table.finish();
        is_whole.then_some(gateway)
    }
}
