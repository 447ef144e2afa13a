//! `strata enrol`: issues what a new device needs, as one file to carry there, and adds the
//! device's table to the configuration of this gateway.

mod archive;
mod args;
mod gateway;

pub use args::Enrol;

use crate::files::{self, New};
use crate::lines::{list, name, quoted};
use crate::pki::Credential;
use control::Failure;
use gateway::Gateway;
use serde_json::json;
use std::path::PathBuf;
use terminal::{Exit, Output};

/// Runs `strata enrol`.
pub fn run(order: &Enrol, output: &Output) -> Exit {
    match enrol(order) {
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
}

fn enrol(order: &Enrol) -> Result<Done, Failure> {
    Credential::check(&order.name)?;
    let gateway = Gateway::open(order)?;
    let table = name(&order.name);
    gateway.refuse_known(&order.name, &table)?;
    let archive = format!("{table}.tar");
    let fix = "remove the file, or choose another folder with `--out`";
    files::refuse_existing(&order.out, [archive.as_str()], fix)?;
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
    gateway.add(&lines)?;
    Ok(Done {
        archive: written.into_iter().next().unwrap_or_default(),
        table,
        lines,
        valid_until: issued.certificate.not_after,
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
        Exit::Done
    }
}
