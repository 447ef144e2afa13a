//! The configuration of the gateway: what a device has to know of it, and the device's table in it.

use super::args::Enrol;
use crate::files::unwritable;
use crate::lines::{list, quoted};
use config::{Config, Pool, Prefix};
use control::Failure;
use crypto::Name;
use model::Identity;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The gateway that a device is added to. Its file is locked until the end.
pub(super) struct Gateway {
    pub(super) id: Identity,
    pub(super) address: IpAddr,
    pub(super) networks: Vec<Prefix>,
    pub(super) sends_dns: bool,
    pub(super) ca: PathBuf,
    pool: String,
    config: Config,
    path: PathBuf,
    file: File,
}

impl Gateway {
    /// Opens and locks the configuration.
    pub(super) fn open(order: &Enrol) -> Result<Self, Failure> {
        let path = order.file.clone();
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).open(&path);
        let locked = file.and_then(|file| file.lock().map(|()| file));
        let file = locked.map_err(|error| unusable(&path, &error))?;
        let config = load(&path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let ca = order.ca.clone().unwrap_or_else(|| folder.join("ca"));
        if !ca.join("ca.key").exists() {
            return Err(Failure::new(
                format!("there is no CA in {}", ca.display()),
                "name its folder with `--ca`; `strata init gateway` and `strata pki ca` make one",
            ));
        }
        let pool = pool(&config, order.pool.as_deref())?;
        Ok(Self {
            id: config.identity.clone(),
            address: address(&config, order.address)?,
            networks: networks(pool, &order.network)?,
            sends_dns: !pool.dns.is_empty(),
            ca,
            pool: pool.name.clone(),
            config,
            path,
            file,
        })
    }

    /// Refuses a device that has a table, or whose table would have the name of another.
    pub(super) fn refuse_known(&self, id: &Identity, table: &str) -> Result<(), Failure> {
        if self.id == *id {
            return Err(Failure::new(
                format!("`{id}` is the identity of this gateway"),
                "name the device, as in `strata enrol alice@example.net`",
            ));
        }
        let mut peers = self.config.peers.iter().map(|peer| &peer.party);
        match peers.find(|party| party.identity == *id || party.name == table) {
            Some(party) => Err(Failure::new(
                format!(
                    "[peer.{}] in {} has `{}`",
                    party.name,
                    self.path.display(),
                    party.identity
                ),
                "choose another name; `strata pki issue` renews the certificate of a device",
            )),
            None => Ok(()),
        }
    }

    /// Returns the table of a device.
    pub(super) fn lines(&self, id: &Identity, table: &str) -> String {
        format!(
            "\n[peer.{table}]\nid = {}\nlocal = {}\npool = {}\n",
            quoted(id),
            list(&self.networks),
            quoted(&self.pool),
        )
    }

    /// Returns the certificates that the device has to trust.
    pub(super) fn authority(&self) -> Result<String, Failure> {
        let file = self.ca.join("ca.pem");
        fs::read_to_string(&file).map_err(|error| unusable(&file, &error))
    }

    /// Checks the configuration with more lines, in a copy beside it.
    pub(super) fn try_lines(&self, lines: &str) -> Result<(), Failure> {
        let text = fs::read_to_string(&self.path).map_err(|error| unusable(&self.path, &error))?;
        let copy = self
            .path
            .with_extension(format!("enrol-{}", std::process::id()));
        let written = fs::write(&copy, text + "\n" + lines);
        written.map_err(|error| unwritable(&copy, &error))?;
        let loaded = load(&copy).map_err(|failure| {
            let fix = "the table of the device does not fit the file: add it by hand";
            Failure::new(failure.message, fix)
        });
        let removed = fs::remove_file(&copy).map_err(|error| unwritable(&copy, &error));
        loaded.and(removed)
    }

    /// Adds lines at the end of the configuration.
    pub(super) fn add(mut self, lines: &str) -> Result<(), Failure> {
        let text = fs::read_to_string(&self.path).map_err(|error| unusable(&self.path, &error))?;
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let added = self.file.write_all(format!("{end}{lines}").as_bytes());
        let added = added.and_then(|()| self.file.sync_all());
        added.map_err(|error| unwritable(&self.path, &error))
    }
}

fn load(path: &Path) -> Result<Config, Failure> {
    config::load(path).map_err(|error| {
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        Failure::new(message, format!("run `strata check {}`", path.display()))
    })
}

/// Returns the pool of this name, or the only one.
fn pool<'a>(config: &'a Config, name: Option<&str>) -> Result<&'a Pool, Failure> {
    let mut pools = config.pools.iter();
    let found = match name {
        Some(name) => pools.find(|pool| pool.name == name),
        None => pools.next().filter(|_| config.pools.len() == 1),
    };
    found.ok_or_else(|| {
        let names: Vec<_> = config.pools.iter().map(|pool| pool.name.as_str()).collect();
        let (message, fix) = match (name, names.is_empty()) {
            (_, true) => (
                "the gateway has no [pool.NAME] for the addresses of devices".to_owned(),
                "add [pool.devices] with `addresses = [\"10.9.0.0/24\"]`".to_owned(),
            ),
            (Some(name), false) => (
                format!("there is no [pool.{name}]"),
                format!("choose one of: {}", names.join(", ")),
            ),
            (None, false) => (
                "the gateway has several pools".to_owned(),
                format!("choose one with `--pool`: {}", names.join(", ")),
            ),
        };
        Failure::new(message, fix)
    })
}

/// Returns the address at which devices reach the gateway: the given one, or the first one of its
/// certificate.
fn address(config: &Config, given: Option<IpAddr>) -> Result<IpAddr, Failure> {
    let chain = config.credential.as_ref().map(|own| &own.chain[..]);
    let Some([own, ..]) = chain else {
        return Err(Failure::new(
            "the gateway has no certificate, and devices get certificates",
            "issue one with `strata pki issue`, and add `cert`, `key` and `ca` to [node]",
        ));
    };
    let of_certificate = || {
        own.names.iter().find_map(|name| match name {
            Name::Address(address) => Some(*address),
            Name::Dns(_) | Name::Email(_) => None,
        })
    };
    given.or_else(of_certificate).ok_or_else(|| {
        Failure::new(
            "the certificate of the gateway names no address at which devices reach it",
            "name the address with `--address 192.0.2.1`",
        )
    })
}

/// Returns the networks that the device reaches: the given ones, or those that the pool announces.
fn networks(pool: &Pool, given: &[Prefix]) -> Result<Vec<Prefix>, Failure> {
    let networks = if given.is_empty() {
        &pool.subnets
    } else {
        given
    };
    match networks.is_empty() {
        true => Err(Failure::new(
            format!("[pool.{}] has no `subnets`", pool.name),
            "name the networks behind the gateway, as in `--network 10.8.0.0/16`",
        )),
        false => Ok(networks.to_vec()),
    }
}

fn unusable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        format!("cannot open {}: {error}", file.display()),
        "name the configuration of this gateway with `--file`; `strata init gateway` writes one",
    )
}
