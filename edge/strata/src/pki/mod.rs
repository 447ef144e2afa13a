//! `strata pki`: runs a small CA in a folder, creates keys, and shows certificates and revocation
//! lists.

mod args;
mod authority;
mod folder;
mod inventory;
mod key;
mod names;
mod report;
mod revocation;

pub use args::Pki;
use args::{Host, Made};
use authority::{Authority, Issued};
use control::Failure;
use crypto::KeyKind;
use inventory::Inventory;
use model::Identity;
use report::Report;
use std::path::Path;
use terminal::{Exit, Output};

/// Runs a subcommand of `strata pki`.
pub fn run(pki: &Pki, output: &Output) -> Exit {
    let done = match pki {
        Pki::Ca {
            name,
            by,
            made,
            days,
        } => root_or_middle(name, by.as_deref(), made, *days),
        Pki::Issue {
            ca,
            id,
            host,
            made,
            days,
        } => issue(ca, id, host, made, *days),
        Pki::Revoke { ca, which, days } => revoke(ca, which, *days),
        Pki::List { ca } => Inventory::read(ca, config::today()).map(|inventory| Report {
            inventory: Some(inventory),
            ..Report::default()
        }),
        Pki::Crl { ca, days } => revoke(ca, &[], *days),
        Pki::Key { name, made } => lone_key(name, made),
        Pki::Pubkey { file } => folder::key(file).map(|key| Report {
            pem: Some(folder::public(&key)),
            ..Report::default()
        }),
        Pki::Show { file } => show(file),
    };
    match done {
        Ok(told) => told.print(output),
        Err(failure) => output.fail(Exit::Usage, &failure),
    }
}

fn root_or_middle(
    name: &str,
    by: Option<&Path>,
    made: &Made,
    days: u64,
) -> Result<Report, Failure> {
    let above = by.map(Authority::open).transpose()?;
    folder::pair(&made.out, "ca", "pem", made.force)?;
    let issued = authority::new_authority(name, above.as_ref(), kind(made), days)?;
    if let Some(by) = by {
        inventory::record(by, &issued.chain[0])?;
    }
    save(issued, "ca", made)
}

fn issue(ca: &Path, id: &Identity, host: &Host, made: &Made, days: u64) -> Result<Report, Failure> {
    let host = authority::Host {
        names: names::of_host(id, &host.also)?,
        is_gateway: host.server,
        kind: kind(made),
    };
    if host.is_gateway && !host.names.iter().any(names::is_reachable) {
        return Err(Failure::new(
            format!("clients cannot connect to `{id}`: it is a mail address"),
            "add the name or address that they connect to, as in `--also gw.example.net`",
        ));
    }
    let name = id.to_string();
    folder::pair(&made.out, &name, "pem", made.force)?;
    let issued = Authority::open(ca)?.issue(&host, days)?;
    inventory::record(ca, &issued.chain[0])?;
    save(issued, &name, made)
}

fn revoke(ca: &Path, which: &[String], days: u64) -> Result<Report, Failure> {
    let renewed = revocation::renew(ca, which, days)?;
    Ok(Report {
        files: vec![renewed.file],
        certificates: renewed.certificates,
        lists: vec![renewed.list],
        ..Report::default()
    })
}

fn lone_key(name: &str, made: &Made) -> Result<Report, Failure> {
    if !is_file_name(name) {
        return Err(Failure::new(
            format!("`{name}` is not a valid file name"),
            "write `--name gw`: the files are gw.key and gw.pub",
        ));
    }
    let (key, der) = key::new_key(kind(made))?;
    let files = folder::save_key(&key, &der, &made.out, name, made.force)?;
    Ok(Report {
        files,
        keys: vec![key.raw().clone()],
        ..Report::default()
    })
}

fn show(file: &Path) -> Result<Report, Failure> {
    let certificates = folder::certificates(file);
    match (certificates, folder::lists(file)) {
        (Err(failure), Err(_)) => Err(failure),
        (certificates, lists) => Ok(Report {
            certificates: certificates.unwrap_or_default(),
            lists: lists.unwrap_or_default(),
            ..Report::default()
        }),
    }
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name.is_ascii()
}

fn save(issued: Issued, name: &str, made: &Made) -> Result<Report, Failure> {
    Ok(Report {
        files: folder::save(&issued, &made.out, name, made.force)?,
        certificates: issued.chain,
        ..Report::default()
    })
}

const fn kind(made: &Made) -> KeyKind {
    match (made.ed25519, made.p384) {
        (true, _) => KeyKind::Ed25519,
        (false, true) => KeyKind::P384,
        (false, false) => KeyKind::P256,
    }
}
