//! Certificates for a crowd: one for each initiator, of one CA, with ECDSA over P-256.
//!
//! openssl makes the CA and one certificate. Those of the initiators are copies of it with another
//! name of the same length and a signature of their own, because openssl needs some 10 ms for each.
//! All initiators share one key.

use super::responder::{self, Terms};
use crate::host::Host;
use crate::openssl::{self, EC, GOOD};
use anyhow::{Context, Result, ensure};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use crypto::{Certificate, RawKey, TrustStore, UnixTime};
use ike::{Credential, Signer};
use std::fs;
use std::sync::Arc;
use std::time::SystemTime;

/// Name of the CA.
const CA: &str = "bench";

/// Number of the initiator whose certificate is copied.
const COPIED: u32 = 0;

/// DER tag of a bit string, of which no bit is unused.
const BIT_STRING: u8 = 3;
const SEQUENCE: u8 = 0x30;

/// The CA, and what all initiators have in common.
pub(super) struct Certificates {
    authority: Key,
    trust: TrustStore,
    /// The signed part of the copied certificate, and the identifier of the signature's algorithm.
    signed: Vec<u8>,
    algorithm: Vec<u8>,
    key: RawKey,
    signer: Arc<Key>,
}

/// A private key.
#[derive(Debug)]
struct Key(EcdsaKeyPair);

impl Signer for Key {
    fn sign(&self, octets: &[u8]) -> Option<Vec<u8>> {
        let signature = self.0.sign(&SystemRandom::new(), octets).ok()?;
        Some(signature.as_ref().to_vec())
    }
}

impl Certificates {
    /// Creates a CA in the folder of a gateway, and the gateway's own certificate and key, if the
    /// terms need them: `ca.pem`, `chain.pem`, `end.key`.
    pub fn for_terms(terms: Terms, host: &Host) -> Result<Option<Self>> {
        match terms {
            Terms::Psk | Terms::Leased => Ok(None),
            Terms::Ecdsa => Self::new(host).map(Some),
        }
    }

    fn new(host: &Host) -> Result<Self> {
        openssl::authority(host, EC, CA)?;
        openssl::order(host, &format!("DNS:{}", name(COPIED)), GOOD)?;
        let certificate = first(host, "chain.pem")?.der;
        let (certificate, _) = content(&certificate, SEQUENCE)?;
        let (_, signed) = content(certificate, SEQUENCE)?;
        let (_, algorithm) = content(&certificate[signed..], SEQUENCE)?;
        host.run("openssl pkey -in end.key -pubout -out end.pub")?;
        let certificates = Self {
            authority: key(host, "ca")?,
            trust: TrustStore::new(vec![first(host, "ca.pem")?]),
            signed: certificate[..signed].to_vec(),
            algorithm: certificate[signed..signed + algorithm].to_vec(),
            key: RawKey::from_pem(&fs::read(host.directory().join("end.pub"))?)?,
            signer: Arc::new(key(host, "end")?),
        };
        openssl::order(host, &format!("DNS:{}", responder::identity()), GOOD)?;
        Ok(certificates)
    }

    /// Makes a configuration authenticate by the certificate of an initiator.
    pub fn certify(&self, number: u32, config: &mut ike::Config) -> Result<()> {
        config.peers[0].psk = None;
        config.trust = self.trust.clone();
        config.credential = Some(Credential {
            chain: vec![self.certificate(number)?],
            key: self.key.clone(),
            algorithm: self.key.key().kind.signs_with(),
            signer: Arc::clone(&self.signer) as Arc<dyn Signer>,
        });
        Ok(())
    }

    fn certificate(&self, number: u32) -> Result<Vec<u8>> {
        let (from, to) = (name(COPIED), name(number));
        ensure!(from.len() == to.len(), "too many initiators: {number}");
        let mut signed = self.signed.clone();
        for at in 0..=signed.len() - from.len() {
            if signed[at..].starts_with(from.as_bytes()) {
                signed[at..at + to.len()].copy_from_slice(to.as_bytes());
            }
        }
        let signature = self.authority.sign(&signed);
        let signature = signature.context("the CA has no randomness")?;
        let signature = der(BIT_STRING, &[&[0], &signature]);
        Ok(der(SEQUENCE, &[&signed, &self.algorithm, &signature]))
    }
}

/// Returns the time of today, for the validity of certificates.
pub(super) fn today() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixTime(since.map_or(0, |since| since.as_secs()))
}

/// Returns the name of an initiator.
fn name(number: u32) -> String {
    responder::identity_of(number).to_string()
}

fn first(host: &Host, file: &str) -> Result<Certificate> {
    let text = fs::read(host.directory().join(file))?;
    let first = Certificate::all_from_pem(&text)?.into_iter().next();
    first.with_context(|| format!("{file} has no certificate"))
}

fn key(host: &Host, name: &str) -> Result<Key> {
    host.run(&format!(
        "openssl pkey -in {name}.key -outform DER -out {name}.der"
    ))?;
    let der = fs::read(host.directory().join(format!("{name}.der")))?;
    let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, &der);
    pair.ok().map(Key).context("openssl made no key for P-256")
}

/// Returns the content of a DER element at the start of the octets, and the length of the element.
fn content(octets: &[u8], tag: u8) -> Result<(&[u8], usize)> {
    let header = octets.split_first_chunk();
    let (&[found, short], rest) = header.context("DER ends early")?;
    ensure!(found == tag, "DER has {found:#x} in place of {tag:#x}");
    let more = usize::from(short.saturating_sub(0x80));
    let (length, rest) = rest.split_at_checked(more).context("DER ends early")?;
    let long = length
        .iter()
        .fold(0, |sum, octet| sum << 8 | usize::from(*octet));
    let length = if more == 0 { usize::from(short) } else { long };
    let content = rest.get(..length).context("DER ends early")?;
    Ok((content, 2 + more + length))
}

/// Returns a DER element of these parts.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut element = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short @ ..0x80) => element.push(short),
        _ => {
            element.push(0x82);
            element.extend((content.len() as u16).to_be_bytes());
        }
    }
    element.extend(content);
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_read_as_it_is_written() {
        for length in [0, 1, 0x7f, 0x80, 0x100, 0x1234] {
            let element = der(SEQUENCE, &[&vec![7; length]]);
            let behind = [&element[..], &[1, 2, 3]].concat();
            let (content, whole) = content(&behind, SEQUENCE).unwrap();
            assert_eq!((content.len(), whole), (length, element.len()));
        }
        assert!(content(&[SEQUENCE, 5, 1], SEQUENCE).is_err());
        assert!(content(&[BIT_STRING, 0], SEQUENCE).is_err());
    }
}
