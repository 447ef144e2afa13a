//! `strata import`: converts configurations of strongSwan, Libreswan and WireGuard. The conversion
//! itself is in the crate `import`; files are read and written here.

mod args;
mod credential;
mod includes;
mod report;

pub use args::Import;

use crate::files::{self, New};
use crate::pki::NewKey;
use args::Files;
use control::Failure;
use import::{Draft, Secret, Unreadable};
use report::Report;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use terminal::{Exit, Output};

/// Runs a subcommand of `strata import`.
pub fn run(import: &Import, output: &Output) -> Exit {
    let (files, draft) = match import {
        Import::Swanctl { files } => (files, swanctl(files)),
        Import::Wg { files } => (files, wg(files)),
        Import::Ipsec { files, secrets } => (files, ipsec(files, secrets.as_deref())),
    };
    let draft = match draft {
        Ok(draft) => draft,
        Err(failure) => return output.fail(Exit::No, &failure),
    };
    match save(draft, files) {
        Ok(report) => report.print(output),
        Err(failure) => output.fail(Exit::Usage, &failure),
    }
}

fn swanctl(files: &Files) -> Result<Draft, Failure> {
    let file = includes::read(&files.file)?;
    let folder = folder_of(&files.file)?;
    // Parts of the configuration are in a folder of their own.
    let folder = match folder.ends_with("conf.d") {
        true => folder.parent().unwrap_or(&folder).to_owned(),
        false => folder,
    };
    let draft = import::swanctl(&file, &folder.display().to_string(), &includes::find);
    draft.map_err(|error| unconvertible(&files.file, &error, "swanctl.conf"))
}

fn wg(files: &Files) -> Result<Draft, Failure> {
    let draft = import::wg(&includes::read(&files.file)?.text);
    draft.map_err(|error| unconvertible(&files.file, &error, "file of wg-quick"))
}

fn ipsec(files: &Files, secrets: Option<&Path>) -> Result<Draft, Failure> {
    let file = includes::read(&files.file)?;
    let folder = folder_of(&files.file)?;
    let beside = folder.join("ipsec.secrets");
    let secrets = match secrets {
        Some(file) => Some(includes::read(file)?),
        None if beside.exists() => Some(includes::read(&beside)?),
        None => None,
    };
    let folder = folder.display().to_string();
    let find = &includes::find;
    let draft = import::ipsec(&file, secrets.as_ref(), &folder, &is_ours, find);
    draft.map_err(|error| unconvertible(&files.file, &error, "ipsec.conf"))
}

/// Returns true for an address of this host: a socket can be bound to it.
fn is_ours(address: IpAddr) -> bool {
    !address.is_unspecified() && UdpSocket::bind((address, 0)).is_ok()
}

/// Returns the folder of a file as an absolute path.
fn folder_of(file: &Path) -> Result<PathBuf, Failure> {
    let whole = std::path::absolute(file).map_err(|error| {
        let what = format!("cannot read {}: {error}", file.display());
        Failure::new(what, "name an existing file")
    })?;
    Ok(whole.parent().unwrap_or(Path::new("/")).to_owned())
}

fn unconvertible(file: &Path, error: &Unreadable, format: &str) -> Failure {
    Failure::new(
        format!("{} is no {format}: {error}", file.display()),
        "correct the line, or choose another format: swanctl, wg or ipsec",
    )
}

/// Writes the configuration, its secrets and new keys, and checks the result.
fn save(mut draft: Draft, place: &Files) -> Result<Report, Failure> {
    let key = match &draft.new_key {
        Some(name) => Some((name.clone(), NewKey::generate()?)),
        None => None,
    };
    let awaited = draft.awaited_keys.clone();
    let found = credential::find(&mut draft);
    let import = draft.finish(&found);
    let mut new = vec![New::public("strata.toml", &import.toml)];
    new.extend(import.secrets.iter().map(secret));
    if let Some((name, key)) = &key {
        new.push(New::key(format!("{name}.key"), &key.key));
        new.push(New::public(format!("{name}.pub"), &key.public));
    }
    if !place.force {
        let names = new.iter().map(|file| file.name.as_str());
        let fix = "choose another folder with `--out`, or replace the files with `--force`";
        files::refuse_existing(&place.out, names, fix)?;
    }
    let written = files::save(&place.out, &new)?;
    let is_here = |file: &String| place.out.join(file).exists();
    let awaited: Vec<_> = awaited.into_iter().filter(|file| !is_here(file)).collect();
    let faults = match awaited.is_empty() {
        true => faults(&place.out.join("strata.toml")),
        false => Vec::new(),
    };
    Ok(Report {
        files: written,
        notes: import.notes,
        peers: import.peers,
        key: key.map(|(name, _)| name),
        awaited,
        faults,
    })
}

fn secret(secret: &Secret) -> New {
    New::secret(secret.file.as_str(), secret.text.as_bytes())
}

/// Returns what `strata check` says against a configuration.
fn faults(file: &Path) -> Vec<String> {
    match config::load(file) {
        Ok(_) => Vec::new(),
        Err(config::Error::Invalid(faults)) => {
            faults.to_string().lines().map(str::to_owned).collect()
        }
        Err(error) => vec![error.to_string()],
    }
}
