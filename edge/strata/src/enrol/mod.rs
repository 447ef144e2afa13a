//! `strata enrol`: issues what a new device needs, as one file to carry there, and adds the
//! device's table to the configuration of this gateway.

mod archive;
mod args;
mod code;
mod gateway;

pub use args::Enrol;

use crate::files::{self, New};
use crate::lines::{list, name, quoted};
use crate::pki::Credential;
use code::Code;
use control::Failure;
use gateway::Gateway;
use serde_json::json;
use std::path::{Path, PathBuf};
use terminal::{Exit, Output};
use zeroize::Zeroizing;

/// Runs `strata enrol`.
pub fn run(order: &Enrol, output: &Output) -> Exit {
    match enrol(order, output.json) {
        Ok(done) => done.print(order, output),
        Err(failure) => output.fail(Exit::Usage, &failure),
    }
}

/// A new device.
struct Done {
    archive: PathBuf,
    /// Name of the device's table.
    table: String,
    /// The lines that were added to the gateway's configuration.
    lines: String,
    /// End of the validity of the certificate.
    valid_until: crypto::UnixTime,
    /// The files as a QR code, if ordered.
    shown: Option<Shown>,
}

/// A QR code for the device.
enum Shown {
    /// Printed on the terminal.
    Printed { text: Zeroizing<String> },
    /// Written into a file.
    Written { file: PathBuf, why: Option<String> },
    /// There is none, as the files are too long: their length in octets.
    TooLong(usize),
}

fn enrol(order: &Enrol, is_json: bool) -> Result<Done, Failure> {
    Credential::check(&order.name)?;
    let gateway = Gateway::open(order)?;
    let table = name(&order.name);
    gateway.refuse_known(&order.name, &table)?;
    let archive = format!("{table}.tar");
    let fix = "remove the file, or choose another folder with `--out`";
    files::refuse_existing(&order.out, [archive.as_str()], fix)?;
    let ordered = order.qr.as_ref();
    let picture = ordered.map(|file| picture(file.as_deref(), order, &table));
    if let Some(picture) = &picture {
        let fix = "remove the file, or choose another one with `--qr FILE`";
        files::refuse_existing(Path::new(""), picture.to_str(), fix)?;
    }
    let lines = gateway.lines(&order.name, &table);
    gateway.try_lines(&lines)?;
    let issued = Credential::issue(&gateway.ca, &order.name, &[], false)?;
    let content = archive::pack(&[
        New::public("strata.toml", &config(order, &gateway, &table)),
        New::key(format!("{table}.key"), &issued.key),
        New::public(format!("{table}.pem"), &issued.chain),
        New::public("ca.pem", &gateway.authority()?),
    ])?;
    let written = files::save(&order.out, &[New::secret(archive, &content)])?;
    let shown = picture.map(|picture| show(&content, &picture, order, is_json));
    let shown = shown.transpose()?;
    gateway.add(&lines)?;
    Ok(Done {
        archive: written.into_iter().next().unwrap_or_default(),
        table,
        lines,
        valid_until: issued.certificate.not_after,
        shown,
    })
}

/// Returns the file of the QR code, if there has to be one.
fn picture(file: Option<&Path>, order: &Enrol, table: &str) -> PathBuf {
    let default = || order.out.join(format!("{table}.svg"));
    file.map_or_else(default, Path::to_owned)
}

/// Draws the QR code of an archive for the terminal, or writes it to a file.
fn show(archive: &[u8], file: &Path, order: &Enrol, is_json: bool) -> Result<Shown, Failure> {
    let code = match Code::new(archive)? {
        Ok(code) => code,
        Err(octets) => return Ok(Shown::TooLong(octets)),
    };
    let (needed, size) = (code.size(), terminal::size());
    let is_small = size.filter(|size| size.columns < needed.columns || size.rows < needed.rows);
    let is_for_file = is_json || matches!(order.qr, Some(Some(_)));
    if !is_for_file && is_small.is_none() {
        let text = code.text(size.is_some());
        return Ok(Shown::Printed { text });
    }
    let why = is_small.filter(|_| !is_for_file).map(|size| {
        format!(
            "The code takes {} columns and {} lines, and this terminal has {} and {}.\n",
            needed.columns, needed.rows, size.columns, size.rows
        )
    });
    let written = files::write(file, code.picture().as_bytes(), 0o600);
    written.map_err(|error| files::unwritable(file, &error))?;
    Ok(Shown::Written {
        file: file.to_owned(),
        why,
    })
}

/// Returns the configuration of the device.
fn config(order: &Enrol, gateway: &Gateway, table: &str) -> String {
    let dns = match gateway.sends_dns {
        true => "dns = \"from-peer\"\n",
        false => "",
    };
    let other = name(&gateway.id);
    format!(
        "# Issued by `strata enrol` at {}. Belongs into /etc/strata with the files that it names.\n\
         [node]\n\
         id = {}\n\
         cert = \"{table}.pem\"\n\
         key = \"{table}.key\"\n\
         ca = [\"ca.pem\"]\n\
         \n\
         [peer.{other}]\n\
         address = {}\n\
         id = {}\n\
         local = [\"dynamic\"]               # the gateway assigns our inner address\n\
         remote = {}\n\
         {dns}",
        gateway.id,
        quoted(&order.name),
        quoted(gateway.address),
        quoted(&gateway.id),
        list(&gateway.networks),
    )
}

impl Done {
    fn print(&self, order: &Enrol, output: &Output) -> Exit {
        let archive = self.archive.display().to_string();
        let Self {
            table,
            lines,
            valid_until,
            shown,
            ..
        } = self;
        let file = order.file.display();
        if output.json {
            let line = json!({
                "version": control::VERSION,
                "enrol": {
                    "name": order.name.to_string(),
                    "archive": archive,
                    "table": table,
                    "lines": lines,
                    "file": file.to_string(),
                    "not_after_seconds": valid_until.0,
                    "qr": match shown {
                        Some(Shown::Written { file, .. }) => Some(file.display().to_string()),
                        Some(Shown::Printed { .. } | Shown::TooLong(_)) | None => None,
                    },
                },
            });
            output.print_json(&line.to_string());
            return Exit::Done;
        }
        output.print(&format!(
            "wrote {archive}\nadded [peer.{table}] to {file}\n\n\
             The archive has the private key of {}: carry it on a safe way, and remove it here.\n\
             The certificate is valid to {valid_until}.\n\n\
             Next, here:\n  strata reload\n\
             On the device:\n  mkdir -p /etc/strata && tar -xf {table}.tar -C /etc/strata\n  stratad\n",
            order.name
        ));
        if let Some(shown) = shown {
            shown.print(order, output);
        }
        Exit::Done
    }
}

impl Shown {
    fn print(&self, order: &Enrol, output: &Output) {
        let name = &order.name;
        let text = match self {
            Self::TooLong(octets) => {
                let most = code::MOST;
                output.print(&format!(
                    "\nThere is no QR code: the files take {octets} octets, and a code holds {most}.\n\
                     Carry the archive. A CA without intermediates makes shorter files.\n"
                ));
                return;
            }
            Self::Written { file, why } => {
                let why = why.as_deref().unwrap_or_default();
                format!("\n{why}wrote {}\n", file.display())
            }
            Self::Printed { text } => format!("\n{}", **text),
        };
        let text = Zeroizing::new(text);
        output.print(&text);
        output.print(&format!(
            "This code has the private key of {name}: no other camera may see it, and the terminal or \
             the\nfile keeps it until you clear it.\n\
             On the device, with a picture of the code:\n  \
             zbarimg -q --raw -1 -Sbinary code.png | tar -xz -C /etc/strata\n"
        ));
    }
}
