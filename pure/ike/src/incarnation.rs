//! An incarnation of a node: from a start to the end or crash of that process.
//!
//! ```text
//! token = first 16 octets of HMAC-SHA-256(secret, "token" | number | SPIi | SPIr)
//! ```
//!
//! The secret outlives crashes, and the number counts the starts. With both, an SPI shows the
//! incarnation that drew it (`ike_spi.rs`), and a later incarnation proves that this one is over
//! (`extension/crash.rs`).

use crypto::{Prf, Secret};

/// Number of earlier incarnations whose SPIs are known.
const MOST_EARLIER: u32 = 8;

/// Length of a token, the least that RFC 6290 section 4.1 allows. The answer that has one is then
/// no longer than a liveness check with NAT detection.
const TOKEN_LEN: usize = 16;

/// The secret of a node, which outlives crashes, and the number of its starts.
#[derive(Clone)]
pub struct Incarnation {
    secret: Secret,
    number: u32,
}

impl Incarnation {
    /// `number` must be another one at each start with the same secret.
    pub const fn new(secret: Secret, number: u32) -> Self {
        Self { secret, number }
    }

    /// Returns the secret of the SPIs that this incarnation draws.
    pub(crate) fn spi_secret(&self) -> Secret {
        self.mac(b"SPIs of IKE SAs", &[])
    }

    /// Returns the token of an IKE SA of this incarnation.
    pub(crate) fn token(&self, spi_i: u64, spi_r: u64) -> Vec<u8> {
        let mac = self.mac(b"token", &[spi_i.to_be_bytes(), spi_r.to_be_bytes()]);
        mac.expose().iter().copied().take(TOKEN_LEN).collect()
    }

    /// Returns the incarnations before this one, the last one first.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = Self> + '_ {
        let numbers = (self.number.saturating_sub(MOST_EARLIER)..self.number).rev();
        numbers.map(|number| Self::new(self.secret.clone(), number))
    }

    fn mac(&self, label: &[u8], spis: &[[u8; 8]]) -> Secret {
        let number = self.number.to_be_bytes();
        let spis = spis.as_flattened();
        Prf::HmacSha256.mac(self.secret.expose(), &[label, &number, spis])
    }
}
