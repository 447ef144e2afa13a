//! AES-GCM of libipsec-mb, if this machine has the library: a [`Provider`] in assembly for
//! processors with vector AES. It seals short zones in less than half the time of AWS-LC.
//!
//! The library is loaded at run time, and nothing of it is linked. Only the functions for single
//! packets are called (the "direct API" of `intel-ipsec-mb.h`), so there is no manager and no job
//! queue. Before use, the library has to produce the same output as AWS-LC for packets of many
//! lengths.

mod gcm;

use crypto::{Aead, AeadAlgorithm, ExpandedKey, NONCE_LEN, Provider};
use gcm::Gcm;
use libloading::Library;
use thiserror::Error;

/// File name of the library, with the version of its interface.
const FILE: &str = "libIPSec_MB.so.1";

/// Reasons why the library cannot be used.
#[derive(Debug, Error)]
pub enum NotLoaded {
    /// The library is missing, or the file is not a library.
    #[error("libipsec-mb cannot be loaded ({0})")]
    Missing(libloading::Error),
    /// This program is linked statically, as for musl, and has no loader of libraries.
    #[error("libipsec-mb cannot be loaded by a static program")]
    Static,
    /// The library lacks a function. The calling convention of this version is unknown.
    #[error("this libipsec-mb has no {0}")]
    Unknown(String),
    /// The processor has no vector AES.
    #[error("libipsec-mb is of use on x86-64 with AVX2 and AES, which this processor has not")]
    Processor,
    /// The library produces another result than AWS-LC.
    #[error("this libipsec-mb seals otherwise than AWS-LC does")]
    Wrong,
}

impl NotLoaded {
    /// Returns the remedy, if there is one.
    pub const fn fix(&self) -> Option<&'static str> {
        match self {
            Self::Missing(_) => Some("install the package libipsec-mb1"),
            Self::Static => Some("use the program of the Debian package strata"),
            Self::Unknown(_) | Self::Wrong => Some("install its version 1.3"),
            Self::Processor => None,
        }
    }
}

/// The loaded library.
pub struct IpsecMb {
    name: String,
    aes_128: Gcm,
    aes_256: Gcm,
}

impl IpsecMb {
    /// Loads the library for the life of the process, so its functions stay valid.
    ///
    /// # Errors See [`NotLoaded`].
    pub fn load() -> Result<Self, NotLoaded> {
        if cfg!(target_feature = "crt-static") {
            return Err(NotLoaded::Static);
        }
        let kind = gcm::kind().ok_or(NotLoaded::Processor)?;
        let library = open().map_err(NotLoaded::Missing)?;
        let loaded = Self {
            name: format!("libipsec-mb {}", gcm::version(&library)?),
            aes_128: Gcm::find(&library, 128, kind)?,
            aes_256: Gcm::find(&library, 256, kind)?,
        };
        std::mem::forget(library);
        match loaded.agrees() {
            true => Ok(loaded),
            false => Err(NotLoaded::Wrong),
        }
    }

    /// Makes the library expand all keys of this process from now on. Returns its name.
    ///
    /// # Errors Those of [`IpsecMb::load`].
    pub fn provide() -> Result<String, NotLoaded> {
        let library = Self::load()?;
        let name = library.name.clone();
        crypto::provide(Box::new(library));
        Ok(name)
    }

    /// Returns true if the library seals as AWS-LC does, and opens its own output.
    fn agrees(&self) -> bool {
        let algorithms = [AeadAlgorithm::Aes128Gcm, AeadAlgorithm::Aes256Gcm];
        let (nonce, octets) = ([7; NONCE_LEN], [0x5a; 700]);
        algorithms.into_iter().all(|algorithm| {
            let key = &octets[..algorithm.key_len()];
            let both = (Aead::new(algorithm, key), Aead::by(self, algorithm, key));
            let (Ok(ours), Ok(theirs)) = both else {
                return false;
            };
            (0..octets.len()).step_by(13).all(|len| {
                let (mut one, mut other) = (octets, octets);
                let aad = &octets[..len % 50];
                let icv = ours.seal(&nonce, aad, &mut one[..len]);
                let same = icv == theirs.seal(&nonce, aad, &mut other[..len]) && one == other;
                let opened = theirs.open(&nonce, aad, &mut other[..len], &icv);
                same && opened.is_ok() && other == octets
            })
        })
    }
}

impl Provider for IpsecMb {
    fn name(&self) -> &str {
        &self.name
    }

    fn expand(&self, algorithm: AeadAlgorithm, key: &[u8]) -> Option<Box<dyn ExpandedKey>> {
        let gcm = match algorithm {
            AeadAlgorithm::Aes128Gcm => &self.aes_128,
            AeadAlgorithm::Aes256Gcm => &self.aes_256,
            AeadAlgorithm::ChaCha20Poly1305 => return None,
        };
        Some(Box::new(gcm.expand(key)))
    }
}

fn open() -> Result<Library, libloading::Error> {
    #![allow(unsafe_code, reason = "a library may run anything when it is loaded")]
    // SAFETY: the file is the distribution's, found by the system's own search, and its
    // initialisers only fill its tables.
    unsafe { Library::new(FILE) }
}
