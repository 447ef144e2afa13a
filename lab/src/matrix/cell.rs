//! The factors of the matrix and their levels, with the corresponding configuration of either end.

use super::pairs::{cover, product};
use crate::duo::Side;
use crate::openssl::{EC, ED25519, RSA};
use serde::{Serialize, Serializer};
use std::fmt;

/// A combination of levels, one for each factor.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// strongSwan that Strata runs against.
    pub peer: Peer,
    /// Initiator of the tunnel.
    pub begins: Side,
    /// Authentication of both ends.
    pub proof: Proof,
    /// Suite of both SAs.
    pub suite: Suite,
    /// Key exchange of the SAs.
    pub exchange: Exchange,
    /// True if rekeying a child uses a new key exchange.
    pub pfs: bool,
    /// Network between the two ends.
    pub path: Path,
    /// Event that the tunnel must survive.
    pub event: Event,
}

/// Origin of the peer's strongSwan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Installed on this machine.
    Installed,
    /// From the next Debian release, unpacked into a folder.
    Newer,
    /// Installed on this machine, but with the ESP of a guest's kernel.
    Kernel,
}

/// Authentication of both ends.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    word: &'static str,
    /// Key type of their certificates, in openssl's syntax; `None` for a pre-shared key.
    pub certificate: Option<&'static str>,
    /// True if there is also a post-quantum pre-shared key.
    pub ppk: bool,
}

/// A suite.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// Name of the suite at both ends.
    pub word: &'static str,
    /// Excerpt of charon's listing of an SA with this suite.
    pub agreed: &'static str,
}

/// A key exchange.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    word: &'static str,
    /// Line in the peer's table of our configuration.
    pub ours: &'static str,
    /// Name in charon's proposals.
    pub theirs: &'static str,
    /// Excerpt of charon's listing of the IKE SA with this exchange.
    pub agreed: &'static str,
}

/// Network between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// A wire.
    Wire,
    /// A NAT in front of the initiator.
    Nat,
    /// A wire on which both ends send no IKE message in an IP datagram of more than 600 octets.
    Narrow,
}

/// Event that a tunnel must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Both SAs are rekeyed, first by one end and then by the other.
    Rekeys,
    /// Both ends rekey both SAs simultaneously, several times.
    Storm,
    /// The initiator moves to another address.
    Move,
    /// Both ends delete the IKE SA simultaneously, and it is established again.
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

/// Number of levels of each factor, in the order of [`Cell`]'s fields.
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
    /// Returns cells in which each pair of levels of two factors occurs at least once.
    pub fn pairwise() -> Vec<Self> {
        cover(&WIDTHS)
            .iter()
            .map(|row| Self::from_row(row))
            .collect()
    }

    /// Returns every possible cell.
    pub fn all() -> Vec<Self> {
        product(&WIDTHS)
            .iter()
            .map(|row| Self::from_row(row))
            .collect()
    }

    fn from_row(row: &[usize]) -> Self {
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

    /// Returns the names of its levels, in the order of the fields.
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

/// Formats the levels with bars between them.
impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

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
