//! An entry: what is cached of an IKE SA.
//!
//! ```text
//! version (1) = 2 | kind of proof (1) | suite (1) | PRF (1) | group (1)
//! | additional key exchanges, PPK and way (1) | last full authentication (4) | end (4)
//! | seconds established (4) | octets carried (8) | credential (8) | secret (length of the PRF's output)
//! ```
//!
//! Times are seconds since 1970. The identity, and the certificates that proved it, are beside:
//! their length is the peer's choice. All together:
//!
//! ```text
//! length (1) | entry | length (2) | identity (RFC 7296 section 3.5)
//! | for each certificate: length (2) | certificate
//! ```

use crate::Usage;
use crypto::{Prf, Secret, UnixTime};
use model::{Group, Identity, Kem, Suite};
use std::time::Duration;
use wire::codec::{Codec, Reader};
use wire::ike::Identification;

/// Most octets of a stored entry, without identity and certificates. The paper (004, section V)
/// computes 5 MB for 50,000 records of 100 octets.
pub const MOST_OCTETS: usize = 100;

const VERSION: u8 = 2;

/// Octets before the secret.
const FIXED: usize = 34;

/// Most certificates of a chain.
const MOST_CERTIFICATES: usize = 10;

/// Bit of the additional key exchanges that stands for a PPK.
const PPK: u8 = 0x80;

/// Bits of the additional key exchanges that stand for [`Way::Skid3`], and, together, for
/// [`Way::Skid3Pfs`].
const SKID3: u8 = 0x40;
const PFS: u8 = 0x20;

/// Fingerprint of the credentials by which both ends can prove their identities, keyed with the
/// secret of the entry: without the entry it says nothing.
pub type Fingerprint = [u8; 8];

/// Kind of the peer's last full proof of identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A pre-shared key.
    Psk,
    /// A certificate.
    Certificate,
    /// A raw public key.
    RawKey,
}

impl Proof {
    const ALL: [Self; 3] = [Self::Psk, Self::Certificate, Self::RawKey];
}

/// What is cached of an IKE SA. All else is made anew when a session is resumed, and nothing
/// licensed comes from an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Identity of the peer.
    pub identity: Identity,
    /// Kind of its last full proof.
    pub proof: Proof,
    /// The certificates of this proof, which may be revoked since.
    pub chain: Vec<Vec<u8>>,
    /// Group of the IKE SA's key exchange.
    pub group: Group,
    /// The credentials that were configured. With other ones, the session cannot be resumed.
    pub credential: Fingerprint,
    /// The secret, and what it is for.
    pub keys: Keys,
    /// Use of the authentication so far.
    pub usage: Usage,
    /// Time from which the entry is void.
    pub ends: UnixTime,
}

/// Exchange by which a session is resumed. An entry is good for one of them only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A ticket (RFC 5723). The secret is SK_d.
    Ticket,
    /// SKID3 (paper 004, section V). The secret is derived from SK_d, and SK_d cannot be had from
    /// it.
    Skid3,
    /// The same with a key exchange: whoever has the entry cannot read what was captured of the
    /// session that it resumed.
    Skid3Pfs,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::Ticket, Self::Skid3, Self::Skid3Pfs];

    /// Returns true for SKID3, with or without a key exchange.
    pub const fn is_skid3(self) -> bool {
        match self {
            Self::Ticket => false,
            Self::Skid3 | Self::Skid3Pfs => true,
        }
    }
}

/// The keys that both ends keep of an IKE SA, to derive those of the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The exchange that they are for.
    pub way: Way,
    /// Cipher suite of both IKE SAs.
    pub suite: Suite,
    /// PRF of both.
    pub prf: Prf,
    /// The additional key exchanges that the secret includes.
    pub kems: Vec<Kem>,
    /// True if the secret includes a PPK. It is not mixed in again (RFC 8784 section 3).
    pub ppk: bool,
    /// The secret from which the keys of the next IKE SA are derived.
    pub secret: Secret,
}

/// The octets are no entry of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry is unreadable, or of another version")]
pub struct Unreadable;

impl Entry {
    /// Returns the octets to store, without identity and certificates.
    pub fn encode(&self) -> Secret {
        let keys = &self.keys;
        let number = |place: Option<usize>| u8::try_from(place.unwrap_or(255)).unwrap_or(255);
        let suite = Suite::ALL.iter().position(|suite| *suite == keys.suite);
        let group = Group::ALL.iter().position(|group| *group == self.group);
        let proof = Proof::ALL.iter().position(|proof| *proof == self.proof);
        let kems = Kem::ALL.iter().enumerate();
        let kems = kems.filter(|(_, kem)| keys.kems.contains(kem));
        let further = kems.fold(0, |bits, (bit, _)| bits | 1_u8 << bit);
        let mut octets = Vec::with_capacity(MOST_OCTETS);
        octets.extend([
            VERSION,
            number(proof),
            number(suite),
            match keys.prf {
                Prf::HmacSha256 => 0,
            },
            number(group),
            further
                | if keys.ppk { PPK } else { 0 }
                | match keys.way {
                    Way::Ticket => 0,
                    Way::Skid3 => SKID3,
                    Way::Skid3Pfs => SKID3 | PFS,
                },
        ]);
        octets.extend(seconds(self.usage.since.0).to_be_bytes());
        octets.extend(seconds(self.ends.0).to_be_bytes());
        octets.extend(seconds(self.usage.established.as_secs()).to_be_bytes());
        octets.extend(self.usage.data.to_be_bytes());
        octets.extend(self.credential);
        octets.extend(keys.secret.expose());
        Secret::new(octets)
    }

    /// Reads stored octets.
    pub fn decode(
        octets: &[u8],
        identity: Identity,
        chain: Vec<Vec<u8>>,
    ) -> Result<Self, Unreadable> {
        let (fixed, secret) = octets.split_at_checked(FIXED).ok_or(Unreadable)?;
        let (fixed, credential) = fixed.split_last_chunk().ok_or(Unreadable)?;
        let (fixed, data) = fixed.split_last_chunk().ok_or(Unreadable)?;
        let [VERSION, proof, suite, prf, group, further, numbers @ ..] = fixed else {
            return Err(Unreadable);
        };
        let word = |at: usize| {
            let octets = numbers
                .get(at..at + 4)
                .and_then(|octets| octets.try_into().ok());
            octets.map(u32::from_be_bytes).ok_or(Unreadable)
        };
        let prf = match prf {
            0 => Prf::HmacSha256,
            _ => return Err(Unreadable),
        };
        let way = match further & (SKID3 | PFS) {
            0 => Way::Ticket,
            SKID3 => Way::Skid3,
            PFS => return Err(Unreadable),
            _ => Way::Skid3Pfs,
        };
        if secret.len() != prf.len() || (further & !PPK & !SKID3 & !PFS) >> Kem::ALL.len() != 0 {
            return Err(Unreadable);
        }
        let kems = Kem::ALL.iter().enumerate();
        let kems = kems.filter(|(bit, _)| further & 1 << bit != 0);
        Ok(Self {
            identity,
            proof: *Proof::ALL.get(usize::from(*proof)).ok_or(Unreadable)?,
            chain,
            group: *Group::ALL.get(usize::from(*group)).ok_or(Unreadable)?,
            credential: *credential,
            keys: Keys {
                way,
                suite: *Suite::ALL.get(usize::from(*suite)).ok_or(Unreadable)?,
                prf,
                kems: kems.map(|(_, kem)| *kem).collect(),
                ppk: further & PPK != 0,
                secret: Secret::new(secret.to_vec()),
            },
            usage: Usage {
                since: UnixTime(word(0)?.into()),
                established: Duration::from_secs(word(8)?.into()),
                data: u64::from_be_bytes(*data),
            },
            ends: UnixTime(word(4)?.into()),
        })
    }
}

impl Entry {
    /// Returns the entry with identity and certificates.
    pub fn encode_whole(&self) -> Secret {
        let entry = self.encode();
        let identity = Identification::from(self.identity.clone()).octets();
        let chain = self.chain.iter().take(MOST_CERTIFICATES);
        let parts = std::iter::once(&identity).chain(chain);
        let length: usize = parts.clone().map(|part| 2 + part.len()).sum();
        // A vector that grows leaves copies of the secret behind.
        let mut octets = Vec::with_capacity(1 + entry.len() + length);
        octets.push(u8::try_from(entry.len()).unwrap_or(u8::MAX));
        octets.extend(entry.expose());
        for part in parts {
            let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
            octets.extend(length.to_be_bytes());
            octets.extend(&part[..usize::from(length)]);
        }
        Secret::new(octets)
    }

    /// Reads an entry with identity and certificates.
    pub fn decode_whole(octets: &[u8]) -> Result<Self, Unreadable> {
        let mut reader = Reader::new("an entry", octets);
        let length = reader.u8().map_err(|_| Unreadable)?;
        let entry = reader.take(length.into()).map_err(|_| Unreadable)?;
        let mut identity = Reader::new("an identity", part(&mut reader)?);
        let identity = Identification::read(&mut identity).map_err(|_| Unreadable)?;
        let mut chain = Vec::new();
        while !reader.is_empty() {
            if chain.len() == MOST_CERTIFICATES {
                return Err(Unreadable);
            }
            chain.push(part(&mut reader)?.to_vec());
        }
        Self::decode(entry, identity.identity, chain)
    }
}

/// Reads octets behind their length.
fn part<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Unreadable> {
    let length = reader.u16().map_err(|_| Unreadable)?;
    reader.take(length.into()).map_err(|_| Unreadable)
}

/// Times after 2106 are those of the last second that fits.
fn seconds(time: u64) -> u32 {
    u32::try_from(time).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> Entry {
        Entry {
            identity: "alice@example.net".parse().unwrap(),
            proof: Proof::Certificate,
            chain: vec![vec![0x30; 500]],
            group: Group::P256,
            credential: [3; 8],
            keys: Keys {
                way: Way::Skid3,
                suite: Suite::Aes256Gcm16,
                prf: Prf::HmacSha256,
                kems: vec![Kem::MlKem768],
                ppk: true,
                secret: Secret::new(vec![9; 32]),
            },
            usage: Usage::new(UnixTime(1_796_000_000)).and(Duration::from_secs(7200), 20_000_000),
            ends: UnixTime(1_796_028_800),
        }
    }

    fn decode(octets: &[u8]) -> Result<Entry, Unreadable> {
        let Entry {
            identity, chain, ..
        } = entry();
        Entry::decode(octets, identity, chain)
    }

    #[test]
    fn an_entry_is_read_as_it_was_written_and_as_short_as_the_paper_says() {
        let octets = entry().encode();
        assert_eq!(octets.len(), 66);
        assert!(octets.len() <= MOST_OCTETS);
        assert_eq!(decode(octets.expose()), Ok(entry()));
    }

    #[test]
    fn every_algorithm_has_a_number_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for suite in Suite::ALL {
            for group in Group::ALL {
                for way in Way::ALL {
                    let mut entry = Entry { group, ..entry() };
                    (entry.keys.suite, entry.keys.way) = (suite, way);
                    assert!(seen.insert(entry.encode().expose().to_vec()));
                    assert_eq!(decode(entry.encode().expose()), Ok(entry));
                }
            }
        }
    }

    /// A number that is given to another algorithm would change the meaning of stored entries.
    #[test]
    fn the_numbers_of_this_version_stay_as_they_are() {
        let suites = Suite::ALL.map(|suite| suite.to_string()).join(" ");
        assert_eq!(
            suites,
            "aes128gcm16 aes256gcm16 chacha20poly1305 aes128-sha256 aes256-sha256 aes128-sha384 \
             aes256-sha384 aes128-sha512 aes256-sha512"
        );
        let groups = Group::ALL.map(|group| group.to_string()).join(" ");
        assert_eq!(groups, "x25519 p256 p384 modp3072 modp2048");
        let kems = Kem::ALL.map(|kem| kem.to_string()).join(" ");
        assert_eq!(kems, "mlkem768 mlkem1024 mlkem512");
    }

    #[test]
    fn what_is_cut_or_of_another_version_is_unreadable() {
        let octets = entry().encode();
        let octets = octets.expose();
        for len in 0..octets.len() {
            assert_eq!(decode(&octets[..len]), Err(Unreadable), "{len} octets");
        }
        for (place, value) in [
            (0, 1),
            (1, 3),
            (2, 200),
            (3, 1),
            (4, 5),
            (5, 0x08),
            (5, 0x20),
        ] {
            let mut changed = octets.to_vec();
            changed[place] = value;
            assert_eq!(decode(&changed), Err(Unreadable), "octet {place}");
        }
    }

    #[test]
    fn an_entry_is_whole_with_identity_and_certificates_and_not_without() {
        let whole = entry().encode_whole();
        let whole = whole.expose();
        assert_eq!(Entry::decode_whole(whole), Ok(entry()));
        let without = whole.len() - 500 - 2;
        for len in (0..whole.len()).filter(|len| *len != without) {
            assert_eq!(Entry::decode_whole(&whole[..len]), Err(Unreadable), "{len}");
        }
        let chain = vec![vec![0x30]; MOST_CERTIFICATES + 5];
        let long = Entry { chain, ..entry() };
        let kept = Entry::decode_whole(long.encode_whole().expose()).unwrap();
        assert_eq!(kept.chain.len(), MOST_CERTIFICATES);
    }

    proptest! {
        #[test]
        fn any_octets_are_an_entry_that_is_written_the_same_or_unreadable(
            octets in proptest::collection::vec(any::<u8>(), 0..80)
        ) {
            if let Ok(entry) = decode(&octets) {
                let written = entry.encode();
                prop_assert_eq!(written.expose(), octets.as_slice());
            }
        }
    }
}
