//! The factors of the matrix and their levels, as either end's configuration has them.

use super::pairs::{cover, product};
use crate::duo::Side;
use crate::openssl::{EC, ED25519, RSA};
use std::fmt;

/// One combination.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Whose strongSwan it is.
    pub peer: Peer,
    /// Who begins.
    pub begins: Side,
    /// How both ends prove who they are.
    pub proof: Proof,
    /// The suite of both SAs, by the name that both ends have for it.
    pub suite: Suite,
    /// Where keys come from.
    pub exchange: Exchange,
    /// Whether a child's new keys come from a key exchange of their own.
    pub pfs: bool,
    /// What is between the two.
    pub path: Path,
    /// What happens to the tunnel.
    pub event: Event,
}

/// Whose strongSwan it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// This machine's.
    Installed,
    /// That of the Debian release after it, unpacked into a folder.
    Newer,
    /// This machine's, which leaves ESP to the kernel of a guest.
    Kernel,
}

/// How both ends prove who they are.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    word: &'static str,
    /// The key of their certificates, in openssl's words; without it they share one.
    pub certificate: Option<&'static str>,
    /// Whether there is a post-quantum pre-shared key besides.
    pub ppk: bool,
}

/// A suite.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// What both ends call it.
    pub word: &'static str,
    /// What charon's account of an SA has of it.
    pub agreed: &'static str,
}

/// Where keys come from.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    word: &'static str,
    /// A line about the peer in our configuration.
    pub ours: &'static str,
    /// What charon's proposals have of it.
    pub theirs: &'static str,
    /// What charon's account of the IKE SA has of it.
    pub agreed: &'static str,
}

/// What is between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// A wire.
    Wire,
    /// A NAT before whoever begins.
    Nat,
    /// A wire on which both ends send no IP datagram of IKE over 600 octets.
    Narrow,
}

/// What happens to the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Both SAs get new keys, by the one end and then by the other.
    Rekeys,
    /// Both ends make new keys of both kinds at once, again and again.
    Storm,
    /// Whoever began finds itself at another address.
    Move,
    /// Both ends delete the IKE SA at once, and it is made again.
    Deletes,
}

const PEERS: [Peer; 3] = [Peer::Installed, Peer::Newer, Peer::Kernel];
const SIDES: [Side; 2] = [Side::Ours, Side::Theirs];
const PFS: [bool; 2] = [true, false];
const PATHS: [Path; 3] = [Path::Wire, Path::Nat, Path::Narrow];
const EVENTS: [Event; 4] = [Event::Rekeys, Event::Storm, Event::Move, Event::Deletes];

const PROOFS: [Proof; 5] = [
    Proof::shared("psk", false),
    Proof::shared("psk+ppk", true),
    Proof::certified("ecdsa-p256", EC),
    Proof::certified("ed25519", ED25519),
    Proof::certified("rsa-2048", RSA),
];

const SUITES: [Suite; 4] = [
    Suite {
        word: "aes128gcm16",
        agreed: "encr-alg=AES_GCM_16 encr-keysize=128",
    },
    Suite {
        word: "aes256gcm16",
        agreed: "encr-alg=AES_GCM_16 encr-keysize=256",
    },
    Suite {
        word: "chacha20poly1305",
        agreed: "encr-alg=CHACHA20_POLY1305",
    },
    Suite {
        word: "aes128-sha256",
        agreed: "integ-alg=HMAC_SHA2_256_128",
    },
];

const EXCHANGES: [Exchange; 4] = [
    Exchange::group(
        "x25519",
        "groups = \"x25519\"",
        "x25519",
        "dh-group=CURVE_25519",
    ),
    Exchange::group("p256", "groups = \"p256\"", "ecp256", "dh-group=ECP_256"),
    Exchange::group("p384", "groups = \"p384\"", "ecp384", "dh-group=ECP_384"),
    Exchange::group(
        "modp2048",
        "groups = \"modp2048\"",
        "modp2048",
        "dh-group=MODP_2048",
    ),
];

/// How many levels each factor has, in the order of [`Cell`]'s fields.
const WIDTHS: [usize; 8] = [
    PEERS.len(),
    SIDES.len(),
    PROOFS.len(),
    SUITES.len(),
    EXCHANGES.len(),
    PFS.len(),
    PATHS.len(),
    EVENTS.len(),
];

impl Cell {
    /// Cells in which any two levels meet: whatever one end has, the other has as well.
    pub fn pairwise() -> Vec<Self> {
        cover(&WIDTHS).iter().map(|row| Self::of(row)).collect()
    }

    /// Every cell there is.
    pub fn all() -> Vec<Self> {
        product(&WIDTHS).iter().map(|row| Self::of(row)).collect()
    }

    fn of(row: &[usize]) -> Self {
        Self {
            peer: PEERS[row[0]],
            begins: SIDES[row[1]],
            proof: PROOFS[row[2]],
            suite: SUITES[row[3]],
            exchange: EXCHANGES[row[4]],
            pfs: PFS[row[5]],
            path: PATHS[row[6]],
            event: EVENTS[row[7]],
        }
    }

    /// Its levels, in the order of the fields.
    pub fn words(&self) -> [&'static str; 8] {
        [
            match self.peer {
                Peer::Installed => "installed",
                Peer::Newer => "newer",
                Peer::Kernel => "kernel",
            },
            match self.begins {
                Side::Ours => "we begin",
                Side::Theirs => "they begin",
            },
            self.proof.word,
            self.suite.word,
            self.exchange.word,
            if self.pfs { "pfs" } else { "no pfs" },
            match self.path {
                Path::Wire => "wire",
                Path::Nat => "nat",
                Path::Narrow => "narrow",
            },
            match self.event {
                Event::Rekeys => "rekeys",
                Event::Storm => "storm",
                Event::Move => "move",
                Event::Deletes => "deletes",
            },
        ]
    }
}

/// Its levels with bars between them.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(" | "))
    }
}

impl Proof {
    const fn shared(word: &'static str, ppk: bool) -> Self {
        let certificate = None;
        Self {
            word,
            certificate,
            ppk,
        }
    }

    const fn certified(word: &'static str, key: &'static str) -> Self {
        Self {
            word,
            certificate: Some(key),
            ppk: false,
        }
    }
}

impl Exchange {
    const fn group(
        word: &'static str,
        ours: &'static str,
        theirs: &'static str,
        agreed: &'static str,
    ) -> Self {
        Self {
            word,
            ours,
            theirs,
            agreed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_cells_are_enough() {
        let (few, all) = (Cell::pairwise().len(), Cell::all().len());
        assert!(few <= 40 && all > 1000, "{few} of {all} cells");
    }
}
