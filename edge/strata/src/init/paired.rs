//! A host and its gateway, which know each other's public keys (RFC 7670). So the private key stays
//! here, and no CA is needed.

use super::folder::{CONFIG, check, save};
use super::report::{Carry, Report};
use crate::files::New;
use crate::lines::name;
use crate::pki::NewKey;
use control::Failure;
use model::Identity;
use std::path::Path;

/// The names of both ends in tables and files.
pub(super) struct Paired<'a> {
    ids: [&'a Identity; 2],
    pub(super) own: String,
    pub(super) other: String,
}

impl<'a> Paired<'a> {
    pub(super) fn new(id: &'a Identity, gateway: &'a Identity) -> Self {
        Self {
            ids: [id, gateway],
            own: name(id),
            other: name(gateway),
        }
    }

    /// Returns the file of our public key.
    pub(super) fn public(&self) -> String {
        format!("{}.pub", self.own)
    }

    /// Writes the configuration and a new key. `lines` are for the gateway, and `then` is the
    /// command after the start of the daemon.
    pub(super) fn save(
        self,
        folder: &Path,
        config: &str,
        lines: String,
        then: String,
    ) -> Result<Report, Failure> {
        let (key, public) = (format!("{}.key", self.own), self.public());
        check(&self.ids, folder, &[CONFIG, &key, &public])?;
        let new = NewKey::generate()?;
        let files = vec![New::key(key, &new.key), New::public(&*public, &new.public)];
        Ok(Report {
            files: save(folder, files, config)?,
            lines,
            carry: Some(Carry {
                there: public,
                here: format!("{}.pub", self.other),
                how: "strata pki pubkey KEY-OF-THE-GATEWAY".to_owned(),
            }),
            next: vec![
                format!("stratad --config {}", folder.join(CONFIG).display()),
                then,
            ],
        })
    }
}
