//! `strata pki`: a small CA of one's own, in a folder, and what certificates say.

mod authority;
mod folder;

use crate::args::{Made, Pki};
use crate::output::{Exit, Output};
use crate::text::clean;
use authority::{Authority, Issued};
use control::Failure;
use crypto::{Certificate, KeyKind, Name};
use model::Identity;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Does what was asked.
pub fn run(pki: &Pki, output: &Output) -> Exit {
    let done = match pki {
        Pki::Ca {
            name,
            by,
            made,
            days,
        } => root_or_middle(name, by.as_deref(), made, *days),
        Pki::Issue { ca, id, made, days } => issue(ca, id, made, *days),
        Pki::Show { file } => folder::certificates(file).map(|chain| (Vec::new(), chain)),
    };
    match done {
        Ok((files, chain)) => tell(&files, &chain, output),
        Err(failure) => output.fail(Exit::Usage, &failure),
    }
}

/// What was written, and what it says.
type Done = Result<(Vec<PathBuf>, Vec<Certificate>), Failure>;

fn root_or_middle(name: &str, by: Option<&Path>, made: &Made, days: u64) -> Done {
    let above = by.map(Authority::open).transpose()?;
    let issued = authority::new_authority(name, above.as_ref(), kind(made), days)?;
    save(&issued, "ca", made)
}

fn issue(ca: &Path, id: &Identity, made: &Made, days: u64) -> Done {
    let name = id.to_string();
    if name.is_empty() || name.contains('/') || !name.is_ascii() {
        return Err(Failure::new(
            format!("`{name}` is not a name that a certificate can be issued for"),
            "write `--id gw.example.net`, `--id alice@example.net` or `--id 192.0.2.1`",
        ));
    }
    let issued = Authority::open(ca)?.issue(id, kind(made), days)?;
    save(&issued, &name, made)
}

fn save(issued: &Issued, name: &str, made: &Made) -> Done {
    let files = folder::save(issued, &made.out, name, made.force)?;
    Ok((files, issued.chain.clone()))
}

const fn kind(made: &Made) -> KeyKind {
    match (made.ed25519, made.p384) {
        (true, _) => KeyKind::Ed25519,
        (false, true) => KeyKind::P384,
        (false, false) => KeyKind::P256,
    }
}

fn tell(files: &[PathBuf], chain: &[Certificate], output: &Output) -> Exit {
    let files = files.iter().map(|file| file.display().to_string());
    if output.json {
        let files: Vec<_> = files.collect();
        let certificates: Vec<_> = chain.iter().map(in_json).collect();
        let line = json!({
            "version": control::VERSION,
            "pki": { "files": files, "certificates": certificates },
        });
        output.print_json(&line.to_string());
    } else {
        let written: String = files
            .map(|file| format!("wrote {}\n", clean(&file)))
            .collect();
        let shown: Vec<_> = chain.iter().map(in_text).collect();
        output.print(&format!("{written}{}", shown.join("\n")));
    }
    Exit::Done
}

fn in_text(certificate: &Certificate) -> String {
    let names: Vec<_> = certificate.names.iter().map(name).collect();
    let names = match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };
    let kind = if certificate.is_ca { "CA" } else { "end" };
    format!(
        "subject  {} ({kind})\nissuer   {}\nnames    {}\nkey      {}\nvalid    {} to {}\n",
        clean(&certificate.subject),
        clean(&certificate.issuer),
        clean(&names),
        key(certificate),
        certificate.not_before,
        certificate.not_after,
    )
}

fn in_json(certificate: &Certificate) -> Value {
    json!({
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "names": certificate.names.iter().map(name).collect::<Vec<_>>(),
        "key": key(certificate),
        "ca": certificate.is_ca,
        "not_before_seconds": certificate.not_before.0,
        "not_after_seconds": certificate.not_after.0,
    })
}

fn name(name: &Name) -> String {
    match name {
        Name::Dns(name) | Name::Email(name) => name.clone(),
        Name::Address(address) => address.to_string(),
    }
}

fn key(certificate: &Certificate) -> &'static str {
    match certificate.key.as_ref().map(|key| key.kind) {
        Some(KeyKind::P256) => "ECDSA P-256",
        Some(KeyKind::P384) => "ECDSA P-384",
        Some(KeyKind::Ed25519) => "Ed25519",
        Some(KeyKind::Rsa) => "RSA",
        None => "of a kind that Strata does not verify with",
    }
}
