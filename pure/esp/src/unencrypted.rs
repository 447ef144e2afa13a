//! Plain ESP without encryption: NULL with an HMAC (RFC 2410, RFC 4868), and AES-GMAC (RFC 4543).
//!
//! ```text
//! SPI | Seq | datagram, padding 1 2 3 …, pad length, next header | ICV(16, 24 or 32)        NULL
//! SPI | Seq | IV(8) | the same | ICV(16)                                                    GMAC
//! ```
//!
//! The ICV covers all octets before it. The upper half of an extended number is covered behind them
//! by an HMAC (RFC 4303 section 2.2.1), and between SPI and lower half by GMAC (RFC 4543 section
//! 3.3). RFC 4543 contradicts itself about the IV: section 3.5 covers "the ESP Payload", which
//! begins with the IV (section 3.1), and section 7 excludes the IV. The vectors of its authors
//! (draft-mcgrew-gcm-test-01) and Linux cover the IV.

use crate::key::{Key, Unusable, hmac};
use crate::plain::IV_LEN;
use crypto::{BadIcv, Hmac, Secret};
use model::{Sha2, Suite};
use wire::esp::{HEADER_LEN, ICV_LEN};

/// Octets of an SPI, and of half an extended number.
const SPI_LEN: usize = 4;

/// NULL with an HMAC.
pub(crate) struct Null(Hmac);

impl Null {
    pub fn new(hash: Sha2, key: &Secret) -> Result<Self, Unusable> {
        Ok(Self(hmac(hash, key.expose())?))
    }

    pub fn sign(&self, covered: &[u8], upper: &[u8], icv: &mut [u8]) {
        self.0.sign([covered, upper], icv);
    }

    pub fn verify(&self, covered: &[u8], upper: &[u8], icv: &[u8]) -> Result<(), BadIcv> {
        self.0.verify([covered, upper], icv)
    }
}

/// AES-GMAC: AES-GCM with everything as additional data, and without plaintext.
pub(crate) struct Gmac(Key);

impl Gmac {
    /// Expands the key of the GCM suite with the same cipher.
    pub fn new(suite: Suite, key_and_salt: &Secret) -> Result<Self, Unusable> {
        Key::new(suite, key_and_salt).map(Self)
    }

    pub fn prefetch(&self) {
        self.0.prefetch();
    }

    /// Writes IV and ICV of a packet. `upper` is the upper half of an extended number, or empty.
    pub fn seal(&self, iv: u64, upper: &[u8], octets: &mut [u8]) {
        octets[HEADER_LEN..HEADER_LEN + IV_LEN].copy_from_slice(&iv.to_be_bytes());
        let icv = with_upper(upper, octets, |covered| self.0.seal(iv, covered, &mut []));
        let end = octets.len() - ICV_LEN;
        octets[end..].copy_from_slice(&icv);
    }

    /// Checks the ICV of a packet, and leaves the packet as it was.
    pub fn open(&self, upper: &[u8], octets: &mut [u8]) -> Result<(), BadIcv> {
        let end = octets.len() - ICV_LEN;
        let icv: [u8; ICV_LEN] = octets[end..].try_into().map_err(|_| BadIcv)?;
        let iv = octets[HEADER_LEN..HEADER_LEN + IV_LEN].try_into();
        let iv = u64::from_be_bytes(iv.map_err(|_| BadIcv)?);
        let opened = with_upper(upper, octets, |covered| {
            self.0.open(iv, covered, &mut [], &icv)
        });
        octets[end..].copy_from_slice(&icv);
        opened
    }
}

/// Computes on the data that an ICV covers. An upper half is inserted for that time, so that the
/// data is contiguous without a copy: the octets behind the SPI move into the room of the ICV.
fn with_upper<T>(upper: &[u8], octets: &mut [u8], compute: impl FnOnce(&[u8]) -> T) -> T {
    let (end, moved) = (octets.len() - ICV_LEN, SPI_LEN + upper.len());
    octets.copy_within(SPI_LEN..end, moved);
    octets[SPI_LEN..moved].copy_from_slice(upper);
    let computed = compute(&octets[..end + upper.len()]);
    octets.copy_within(moved..end + upper.len(), SPI_LEN);
    computed
}
