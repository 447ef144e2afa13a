//! Output of `strata pki`: the files written, and their contents.

use crate::text::{clean, plural};
use crypto::{Certificate, Name, RawKey, RevocationList};
use serde_json::{Value, json};
use std::path::PathBuf;
use terminal::{Exit, Output};

/// Result of a subcommand.
#[derive(Default)]
pub(super) struct Report {
    /// Files written.
    pub(super) files: Vec<PathBuf>,
    pub(super) certificates: Vec<Certificate>,
    pub(super) lists: Vec<RevocationList>,
    pub(super) keys: Vec<RawKey>,
    /// PEM text printed unchanged, to be redirected into a file.
    pub(super) pem: Option<String>,
}

impl Report {
    /// Prints the result.
    pub(super) fn print(&self, output: &Output) -> Exit {
        let files = self.files.iter().map(|file| file.display().to_string());
        if output.json {
            let line = json!({
                "version": control::VERSION,
                "pki": {
                    "files": files.collect::<Vec<_>>(),
                    "certificates": values(&self.certificates, certificate_in_json),
                    "lists": values(&self.lists, list_in_json),
                    "keys": values(&self.keys, key_in_json),
                    "pem": self.pem,
                },
            });
            output.print_json(&line.to_string());
        } else {
            let written: String = files
                .map(|file| format!("wrote {}\n", clean(&file)))
                .collect();
            let certificates = self.certificates.iter().map(certificate_in_text);
            let lists = self.lists.iter().map(list_in_text);
            let keys = self.keys.iter().map(|key| format!("key      {key}\n"));
            let shown: Vec<_> = certificates.chain(lists).chain(keys).collect();
            let pem = self.pem.as_deref().unwrap_or_default();
            output.print(&format!("{written}{}{pem}", shown.join("\n")));
        }
        Exit::Done
    }
}

fn values<T>(all: &[T], value: impl Fn(&T) -> Value) -> Vec<Value> {
    all.iter().map(value).collect()
}

fn certificate_in_text(certificate: &Certificate) -> String {
    let names: Vec<_> = certificate.names.iter().map(name).collect();
    let names = match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };
    let kind = if certificate.is_ca { "CA" } else { "end" };
    let usage = match certificate.is_for_servers {
        true => "usage    serverAuth\n",
        false => "",
    };
    format!(
        "subject  {} ({kind})\nissuer   {}\nnames    {}\nkey      {}\n{usage}valid    {} to {}\n",
        clean(&certificate.subject),
        clean(&certificate.issuer),
        clean(&names),
        key(certificate),
        certificate.not_before,
        certificate.not_after,
    )
}

fn certificate_in_json(certificate: &Certificate) -> Value {
    json!({
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "serial": hex(&certificate.serial),
        "names": certificate.names.iter().map(name).collect::<Vec<_>>(),
        "key": key(certificate),
        "ca": certificate.is_ca,
        "server": certificate.is_for_servers,
        "not_before_seconds": certificate.not_before.0,
        "not_after_seconds": certificate.not_after.0,
    })
}

fn list_in_text(list: &RevocationList) -> String {
    let revoked = list.revoked();
    let each = revoked
        .iter()
        .map(|one| format!("         {} on {}\n", hex(&one.serial), one.since));
    format!(
        "list of  {}\nvalid    {} to {}\nrevokes  {}\n{}",
        clean(&list.issuer),
        list.this_update,
        list.next_update,
        plural(revoked.len() as u64, "certificate"),
        each.collect::<String>(),
    )
}

fn list_in_json(list: &RevocationList) -> Value {
    let revoked = list.revoked();
    let one =
        |one: &crypto::Revoked| json!({ "serial": hex(&one.serial), "since_seconds": one.since.0 });
    json!({
        "issuer": list.issuer,
        "number": list.number,
        "this_update_seconds": list.this_update.0,
        "next_update_seconds": list.next_update.0,
        "revoked": values(&revoked, one),
    })
}

fn key_in_json(key: &RawKey) -> Value {
    json!({ "kind": key.key().kind.to_string(), "shown": key.to_string() })
}

fn name(name: &Name) -> String {
    match name {
        Name::Dns(name) | Name::Email(name) => name.clone(),
        Name::Address(address) => address.to_string(),
    }
}

fn key(certificate: &Certificate) -> String {
    let unknown = || "of an unsupported kind".to_owned();
    let key = certificate.key.as_ref();
    key.map_or_else(unknown, |key| key.kind.to_string())
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
