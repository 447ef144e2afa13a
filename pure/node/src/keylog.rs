//! Keys in the formats of Wireshark's preference tables, for analysis only.
//!
//! Wireshark matches ESP SAs by addresses and SPI. The addresses are wildcards here, so that a line
//! survives a move. Wireshark supports neither implicit IVs (RFC 8750) nor zones nor
//! ChaCha20-Poly1305 nor AES-GMAC: such SAs have no line. Version 4.0 does not support extended
//! sequence numbers either. It decrypts their packets all the same, but reports the ICV as wrong if
//! told to check it.

use crypto::Secret;
use model::{ChildSa, EspSuite, Half, Keys, Sha2, Suite};
use std::fmt::Write;

/// Keys for analysis with Wireshark.
#[derive(Clone, PartialEq, Eq)]
pub enum KeyLog {
    /// A line of `ikev2_decryption_table`.
    Ike(String),
    /// A line of `esp_sa`.
    Esp(String),
}

impl std::fmt::Debug for KeyLog {
    /// Keys never reach a log through `{:?}` (invariant 9).
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ike(_) => "Ike(secret)",
            Self::Esp(_) => "Esp(secret)",
        })
    }
}

/// Returns the line of an IKE SA, if Wireshark supports its cipher.
pub(crate) fn ike_line(keys: &ike::KeyLog) -> Option<String> {
    let cipher = match keys.suite {
        Suite::Aes128Gcm16 => "AES-GCM-128 with 16 octet ICV [RFC5282]",
        Suite::Aes256Gcm16 => "AES-GCM-256 with 16 octet ICV [RFC5282]",
        Suite::Aes128Cbc(_) => "AES-CBC-128 [RFC3602]",
        Suite::Aes256Cbc(_) => "AES-CBC-256 [RFC3602]",
        Suite::ChaCha20Poly1305 => return None,
    };
    let hmac = match keys.suite.hash() {
        None => "NONE [RFC4306]",
        Some(Sha2::Sha256) => "HMAC_SHA2_256_128 [RFC4868]",
        Some(Sha2::Sha384) => "HMAC_SHA2_384_192 [RFC4868]",
        Some(Sha2::Sha512) => "HMAC_SHA2_512_256 [RFC4868]",
    };
    let (spi_i, spi_r) = (keys.spi_i, keys.spi_r);
    let (ei, er) = (hex(keys.sk_ei.expose()), hex(keys.sk_er.expose()));
    let (ai, ar) = (hex(keys.sk_ai.expose()), hex(keys.sk_ar.expose()));
    let algorithms = format!(r#""{cipher}",{ai},{ar},"{hmac}""#);
    Some(format!("{spi_i:016x},{spi_r:016x},{ei},{er},{algorithms}"))
}

/// Returns the lines of a child SA: both directions, each for both address families.
pub(crate) fn esp_lines(child: &ChildSa<Secret>) -> Vec<String> {
    let halves = [&child.inbound, &child.outbound];
    halves
        .into_iter()
        .flat_map(|half| {
            ["IPv4", "IPv6"]
                .into_iter()
                .filter_map(|family| esp_line(half, family))
        })
        .collect()
}

fn esp_line(half: &Half<Secret>, family: &str) -> Option<String> {
    let Keys::Plain {
        key,
        implicit_iv: false,
        esn: _,
        suite,
    } = &half.keys
    else {
        return None;
    };
    let cipher = match suite {
        EspSuite::Encrypted(Suite::Aes128Gcm16 | Suite::Aes256Gcm16) => {
            "AES-GCM with 16 octet ICV [RFC4106]"
        }
        EspSuite::Encrypted(Suite::Aes128Cbc(_) | Suite::Aes256Cbc(_)) => "AES-CBC [RFC3602]",
        EspSuite::Null(_) => "NULL",
        EspSuite::Encrypted(Suite::ChaCha20Poly1305)
        | EspSuite::Aes128Gmac
        | EspSuite::Aes256Gmac => return None,
    };
    let hmac = match suite.hash() {
        None => "NULL",
        Some(Sha2::Sha256) => "HMAC-SHA-256-128 [RFC4868]",
        Some(Sha2::Sha384) => "HMAC-SHA-384-192 [RFC4868]",
        Some(Sha2::Sha512) => "HMAC-SHA-512-256 [RFC4868]",
    };
    let (key, mac_key) = key.expose().split_at(suite.key_len() + suite.salt_len());
    let field = |key: &[u8]| match key {
        [] => String::new(),
        some => format!("0x{}", hex(some)),
    };
    let (spi, key, mac_key) = (half.spi, field(key), field(mac_key));
    Some(format!(
        r#""{family}","*","*","0x{spi}","{cipher}","{key}","{hmac}","{mac_key}""#
    ))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(
        String::with_capacity(octets.len() * 2),
        |mut text, octet| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{octet:02x}");
            text
        },
    )
}
