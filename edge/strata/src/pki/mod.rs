//! `strata pki`: runs a small CA in a folder, creates keys and requests, and shows certificates and
//! revocation lists.

mod args;
mod authority;
mod bundle;
mod credential;
mod folder;
mod inventory;
mod key;
mod names;
mod place;
mod report;
mod request;
mod revocation;

use crate::files::New;
pub use args::Pki;
use args::{Export, Files, Issue, Made};
use authority::{Authority, Host, HostKey, Issued};
use control::Failure;
pub use credential::{Credential, NewKey};
use crypto::KeyKind;
use inventory::Inventory;
use model::Identity;
use place::Place;
use report::Report;
use std::ffi::OsStr;
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
        Pki::Issue(order) => issue(order),
        Pki::Request { id, also, made } => request(id, also, made),
        Pki::Export(order) => export(order),
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
    let place = place(&made.files, "ca");
    place.check(&["key", "pem"])?;
    let above = by.map(Authority::open).transpose()?;
    let issued = authority::new_authority(name, above.as_ref(), kind(made), days)?;
    if let Some(by) = by {
        inventory::record(by, &issued.chain[0])?;
    }
    save(issued, &place)
}

fn issue(order: &Issue) -> Result<Report, Failure> {
    let request = order.request.as_deref().map(request::open).transpose()?;
    let (key, requested) = match request {
        Some((key, names)) => (key, names),
        None => (HostKey::New(kind(&order.made)), Vec::new()),
    };
    let names = match (&order.id, &requested[..]) {
        (Some(id), _) => names::of_host(id, &order.also)?,
        (None, [id, also @ ..]) => names::of_host(id, also)?,
        (None, []) => {
            return Err(Failure::new(
                "the request has no domain name, mail address or IP address",
                "write the name that the certificate is for, as in `--id alice@example.net`",
            ));
        }
    };
    let host = Host {
        names,
        unit: order.ou.clone(),
        is_gateway: order.server,
        key,
    };
    host.check()?;
    let name = host.names[0].to_string();
    let place = place(&order.made.files, &name);
    place.check(match host.key {
        HostKey::New(_) => &["key", "pem"],
        HostKey::Requested(_) => &["pem"],
    })?;
    let issued = Authority::open(&order.ca)?.issue(&host, order.days)?;
    inventory::record(&order.ca, &issued.chain[0])?;
    save(issued, &place)
}

fn request(id: &Identity, also: &[Identity], made: &Made) -> Result<Report, Failure> {
    let names = names::of_host(id, also)?;
    let name = id.to_string();
    let new = request::new(&names, kind(made))?;
    let place = place(&made.files, &name);
    let files = [
        New::key(place.name("key"), &new.key),
        New::public(place.name("csr"), &new.pem),
    ];
    Ok(Report {
        files: place.save(&files)?,
        requests: vec![new.content],
        ..Report::default()
    })
}

fn export(order: &Export) -> Result<Report, Failure> {
    let stem = order.cert.file_stem().and_then(OsStr::to_str);
    let place = place(&order.files, stem.unwrap_or("certificate"));
    place.check(&["p12"])?;
    let bundle = bundle::new(order)?;
    Ok(Report {
        files: place.save(&[New::secret(place.name("p12"), &bundle.der)])?,
        certificates: bundle.chain,
        password: bundle.password,
        ..Report::default()
    })
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
    let public = folder::public(&key);
    let place = place(&made.files, name);
    let files = [
        New::key(place.name("key"), &der),
        New::public(place.name("pub"), &public),
    ];
    Ok(Report {
        files: place.save(&files)?,
        keys: vec![key.raw().clone()],
        ..Report::default()
    })
}

fn show(file: &Path) -> Result<Report, Failure> {
    let (certificates, lists) = (folder::certificates(file), folder::lists(file));
    let request = match folder::is_request(file) {
        true => Some(folder::request(file)?),
        false => None,
    };
    let is_empty = lists.is_err() && request.is_none();
    match certificates {
        Err(failure) if is_empty => Err(failure),
        certificates => Ok(Report {
            certificates: certificates.unwrap_or_default(),
            lists: lists.unwrap_or_default(),
            requests: request.into_iter().collect(),
            ..Report::default()
        }),
    }
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name.is_ascii()
}

fn save(issued: Issued, place: &Place<'_>) -> Result<Report, Failure> {
    let chain: String = issued.chain.iter().map(folder::encoded).collect();
    let key = issued.key.as_ref();
    let key = key.map(|der| New::key(place.name("key"), der));
    let files: Vec<_> = key
        .into_iter()
        .chain([New::public(place.name("pem"), &chain)])
        .collect();
    Ok(Report {
        files: place.save(&files)?,
        certificates: issued.chain,
        ..Report::default()
    })
}

fn place<'a>(files: &'a Files, name: &'a str) -> Place<'a> {
    Place {
        folder: &files.out,
        name,
        force: files.force,
    }
}

const fn kind(made: &Made) -> KeyKind {
    match (made.ed25519, made.p384) {
        (true, _) => KeyKind::Ed25519,
        (false, true) => KeyKind::P384,
        (false, false) => KeyKind::P256,
    }
}
