//! Everybody we speak IKE with, and the three kinds of them that carry no traffic of ours.

use crate::Psk;
use crate::psk::psk;
use crate::pubkey::pubkey;
use crate::reader::{Table, Value};
use crate::set::MODERN;
use crypto::RawKey;
use model::{Group, Identity, Kem, Suite};
use std::net::IpAddr;
use std::time::Duration;

/// What `[peer.NAME]`, `[licensed.NAME]`, `[gateway.NAME]` and `[neighbour.NAME]` have in common.
#[derive(Clone, Debug)]
pub struct Party {
    /// The table's name, unique among all four kinds.
    pub name: String,
    /// `id`: who it has to prove to be, octet by octet.
    pub identity: Identity,
    /// `psk`: name of a file beside this one, mode 0600, with the pre-shared key. Without one, either
    /// end proves who it is by certificate, or by its key.
    pub psk: Option<Psk>,
    /// `pubkey`: name of a file beside this one with its public key. Then either end proves itself by
    /// its key, which the other one has, and by no certificate (RFC 7670).
    pub pubkey: Option<RawKey>,
    /// `suite`: one suite or a list, best first; or `modern`, `strict` or `legacy`, which stand for
    /// suites and groups (`config::set`). Default `modern`.
    pub suites: Vec<Suite>,
    /// `groups`: one group for the key exchange or a list, best first. Default those of `suite` if
    /// that is a set, else `["x25519", "p256", "p384"]`.
    pub groups: Vec<Group>,
    /// `kem`: a key exchange besides that no quantum computer is known to break (RFC 9370), or a list,
    /// best first: `mlkem768`, `mlkem1024`, `mlkem512`; with `none` in the list it may be without.
    /// Default `none`. It holds for the IKE SA, for its new keys, and for every key exchange of a tunnel
    /// of its own: whether there is one is said by `pfs`. There is no key of its own for that: who
    /// records now reads later what the weakest exchange protects.
    pub kems: Vec<Option<Kem>>,
    /// `liveness`: silence after which it is asked for a sign of life, 1 s to 1 h. Default 30 s. Who answers neither that nor what
    /// it was asked before, five more times, is gone.
    pub liveness: Duration,
    /// `ike_rekey`: how long keys of the IKE SA are used, 1 s to 24 h. Default 4 h.
    pub ike_rekey: Duration,
    /// `reauth`: how long it counts that both ends proved who they are, 10 s to 720 h. Then it is done
    /// again, in another IKE SA that takes the place of the one there is. Default for ever.
    pub reauth: Option<Duration>,
    /// `window`: how many requests of IKE may be under way at once, in each direction, if the other end
    /// says the same, 1 to 64. Default 1.
    pub window: u8,
}

/// `[licensed.NAME]`: a node that gets keys from us when a tunnel's licences name it.
#[derive(Clone, Debug)]
pub struct Licensed {
    /// Who it is.
    pub party: Party,
    /// `address`: where it listens; we connect to it.
    pub address: IpAddr,
}

/// `[gateway.NAME]`: on a licensed node, a gateway whose grants we take.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Who it is.
    pub party: Party,
    /// `address`: take its connections from here only. Default from anywhere.
    pub address: Option<IpAddr>,
}

/// `[neighbour.NAME]`: on a licensed node, another one, from which mobile nodes come or to which they go.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Who it is.
    pub party: Party,
    /// `address`: where it is; we connect to it. Default it connects to us, from anywhere.
    pub address: Option<IpAddr>,
}

impl Party {
    pub(crate) fn read(name: &str, table: &mut Table<'_>) -> Option<Self> {
        let identity = table.required("id", "\"gw.example.net\"", Value::identity);
        let named = ["psk", "pubkey"].map(|key| table.value(key).is_some());
        let psk = table.optional("psk", psk);
        let pubkey = table.optional("pubkey", |value| match named {
            [true, _] => value.fault(
                "`psk` is there as well, and one of the two proves who it is",
                "remove `psk` or `pubkey`, here and there",
            ),
            [false, _] => pubkey(value),
        });
        let faulty = named != [psk.is_some(), pubkey.is_some()];
        let (suites, of_set) = table.optional("suite", Value::suites).unzip();
        let groups = table.optional("groups", Value::groups);
        let kems = table.optional("kem", Value::kems);
        let second = Duration::from_secs(1);
        let liveness = table.optional("liveness", |value| value.duration(second..=second * 3600));
        let (hour, day) = (second * 3600, second * 86_400);
        let ike_rekey = table.optional("ike_rekey", |value| value.duration(second..=day));
        let often = second * 10..=day * 30;
        let reauth = table.optional("reauth", |value| value.duration(often));
        let window = table.optional("window", |value| value.number(1..=64));
        if faulty {
            return None;
        }
        Some(Self {
            name: name.to_owned(),
            identity: identity?,
            psk,
            pubkey,
            suites: suites.unwrap_or_else(|| MODERN.suites.to_vec()),
            groups: groups
                .or(of_set.flatten())
                .unwrap_or_else(|| MODERN.groups.to_vec()),
            kems: kems.unwrap_or_else(|| vec![None]),
            liveness: liveness.unwrap_or(second * 30),
            ike_rekey: ike_rekey.unwrap_or(hour * 4),
            reauth,
            window: window.map_or(1, |window| window as u8),
        })
    }

    /// Whether an additional key exchange is asked for, required or not.
    pub(crate) fn wants_kem(&self) -> bool {
        self.kems.iter().any(Option::is_some)
    }
}

impl Licensed {
    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let party = Party::read(name, &mut table);
        let address = table.required("address", "\"192.0.2.1\"", Value::address);
        table.finish();
        Some(Self {
            party: party?,
            address: address?,
        })
    }
}

impl Neighbour {
    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let party = Party::read(name, &mut table);
        let address = table.optional("address", Value::address);
        table.finish();
        Some(Self {
            party: party?,
            address,
        })
    }
}

impl Gateway {
    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let party = Party::read(name, &mut table);
        let address = table.optional("address", Value::address);
        table.finish();
        Some(Self {
            party: party?,
            address,
        })
    }
}
