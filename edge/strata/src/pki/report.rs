//! Output of `strata pki`: the files written, and their contents.

use super::inventory::{Entry, Inventory, State};
use crate::text::{clean, hex, plural};
use crypto::{Certificate, CertificateRequest, Name, RawKey, RevocationList, UnixTime};
use serde_json::{Value, json};
use std::path::PathBuf;
use terminal::{Exit, Output};
use zeroize::Zeroizing;

/// Result of a subcommand.
#[derive(Default)]
pub(super) struct Report {
    /// Files written.
    pub(super) files: Vec<PathBuf>,
    pub(super) certificates: Vec<Certificate>,
    pub(super) lists: Vec<RevocationList>,
    pub(super) requests: Vec<CertificateRequest>,
    pub(super) keys: Vec<RawKey>,
    pub(super) inventory: Option<Inventory>,
    /// A new password, which is printed once and kept nowhere.
    pub(super) password: Option<Zeroizing<String>>,
    /// PEM text printed unchanged, to be redirected into a file.
    pub(super) pem: Option<String>,
}

impl Report {
    /// Prints the result.
    pub(super) fn print(&self, output: &Output) -> Exit {
        let (entries, warnings) = match &self.inventory {
            Some(Inventory { entries, warnings }) => (&entries[..], &warnings[..]),
            None => (&[][..], &[][..]),
        };
        let files = self.files.iter().map(|file| file.display().to_string());
        if output.json {
            let line = json!({
                "version": control::VERSION,
                "pki": {
                    "files": files.collect::<Vec<_>>(),
                    "certificates": values(&self.certificates, certificate_in_json),
                    "lists": values(&self.lists, list_in_json),
                    "requests": values(&self.requests, request_in_json),
                    "keys": values(&self.keys, key_in_json),
                    "password": self.password.as_deref(),
                    "pem": self.pem,
                    "issued": values(entries, entry_in_json),
                    "warnings": warnings,
                },
            });
            output.print_json(&line.to_string());
        } else {
            let written: String = files
                .map(|file| format!("wrote {}\n", clean(&file)))
                .collect();
            let password = self.password.as_ref().map(|password| {
                let password = password.as_str();
                format!("password {password}\n")
            });
            let written = written + &password.unwrap_or_default();
            let certificates = self.certificates.iter().map(certificate_in_text);
            let lists = self.lists.iter().map(list_in_text);
            let keys = self.keys.iter().map(|key| format!("key      {key}\n"));
            let requests = self.requests.iter().map(request_in_text);
            let shown: Vec<_> = certificates
                .chain(lists)
                .chain(requests)
                .chain(keys)
                .collect();
            let pem = self.pem.as_deref().unwrap_or_default();
            for warning in warnings {
                output.complain(&format!("warning: {}\n", clean(warning)));
            }
            let table = self.inventory.as_ref().map(|_| table(entries));
            let table = table.unwrap_or_default();
            output.print(&format!("{written}{}{pem}{table}", shown.join("\n")));
        }
        Exit::Done
    }
}

fn values<T>(all: &[T], value: impl Fn(&T) -> Value) -> Vec<Value> {
    all.iter().map(value).collect()
}

fn certificate_in_text(certificate: &Certificate) -> String {
    let names = names(&certificate.names);
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

/// Formats a line for each issued certificate, with its columns aligned.
fn table(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "no certificates\n".to_owned();
    }
    let rows: Vec<_> = entries.iter().map(columns).collect();
    let width = |column: fn(&[String; 4]) -> &String| {
        let widths = rows.iter().map(|row| column(row).chars().count());
        widths.max().unwrap_or_default()
    };
    let (names, state) = (width(|row| &row[0]), width(|row| &row[2]));
    let line = |row: &[String; 4]| {
        let [name, validity, is, serial] = row;
        format!("{name:names$}  {validity}  {is:state$}  {serial}\n")
    };
    rows.iter().map(line).collect()
}

/// Returns names, validity, state and serial number.
fn columns(entry: &Entry) -> [String; 4] {
    let Entry { certificate, state } = entry;
    let state = match state {
        State::Valid(days) => format!("{} left", plural(*days, "day")),
        State::Future => "not yet valid".to_owned(),
        State::Expired => "expired".to_owned(),
        State::Revoked(since) => format!("revoked {}", day(*since)),
    };
    let names = match certificate.names.is_empty() {
        true => certificate.subject.clone(),
        false => names(&certificate.names),
    };
    let validity = format!(
        "{} to {}",
        day(certificate.not_before),
        day(certificate.not_after)
    );
    [
        clean(&names).into_owned(),
        validity,
        state,
        hex(&certificate.serial),
    ]
}

fn entry_in_json(entry: &Entry) -> Value {
    let mut value = certificate_in_json(&entry.certificate);
    let (state, days, since) = match entry.state {
        State::Valid(days) => ("valid", Some(days), None),
        State::Future => ("future", None, None),
        State::Expired => ("expired", None, None),
        State::Revoked(since) => ("revoked", None, Some(since.0)),
    };
    value["state"] = json!(state);
    value["days_left"] = json!(days);
    value["revoked_since_seconds"] = json!(since);
    value
}

/// Returns the date of a time.
fn day(time: UnixTime) -> String {
    let text = time.rfc3339();
    text.split_once('T')
        .map_or_else(String::new, |(day, _)| day.to_owned())
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

fn request_in_text(request: &CertificateRequest) -> String {
    format!(
        "request  {}\nnames    {}\nkey      {}, which has signed the request\n",
        clean(&request.subject),
        clean(&names(&request.names)),
        request.key.kind,
    )
}

fn request_in_json(request: &CertificateRequest) -> Value {
    json!({
        "subject": request.subject,
        "names": request.names.iter().map(name).collect::<Vec<_>>(),
        "key": request.key.kind.to_string(),
    })
}

fn key_in_json(key: &RawKey) -> Value {
    json!({ "kind": key.key().kind.to_string(), "shown": key.to_string() })
}

/// Returns all names once. An address of a gateway is also a domain name.
fn names(all: &[Name]) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in all.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
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
