//! A gateway: a CA, a certificate of its own, and a pool for the devices that are enrolled.

use super::args::Gateway;
use super::folder::{CONFIG, check, save};
use super::report::Report;
use crate::files::New;
use crate::lines::{list, quoted};
use crate::pki::Credential;
use control::Failure;
use model::Identity;

/// Name of the pool.
const POOL: &str = "devices";

pub(super) fn init(order: &Gateway) -> Result<Report, Failure> {
    let Gateway {
        id,
        address,
        folder,
        ..
    } = order;
    let (cert, key) = (format!("{id}.pem"), format!("{id}.key"));
    let folder = folder.out.as_path();
    check(
        &[id],
        folder,
        &[CONFIG, &cert, &key, "ca/ca.key", "ca/ca.pem"],
    )?;
    let also: Vec<_> = address.iter().copied().map(Identity::Address).collect();
    let ca = folder.join("ca");
    let mut files = Credential::found(&ca, &format!("CA of {id}"))?;
    let own = Credential::issue(&ca, id, &also, true)?;
    let new = vec![New::key(key, &own.key), New::public(cert, &own.chain)];
    files.extend(save(folder, new, &config(order))?);
    let config = folder.join(CONFIG).display().to_string();
    Ok(Report {
        files,
        lines: String::new(),
        carry: None,
        next: vec![
            format!("strata check {config}"),
            "sysctl -w net.ipv4.ip_forward=1".to_owned(),
            format!("stratad --config {config}"),
            format!("strata enrol alice@example.net --file {config}"),
        ],
    })
}

fn config(order: &Gateway) -> String {
    let Gateway {
        id,
        network,
        pool,
        dns,
        ..
    } = order;
    let dns = match dns.is_empty() {
        true => String::new(),
        false => format!("dns = {}\n", list(dns)),
    };
    format!(
        "# A gateway. `strata enrol NAME` adds a device, `strata key NAME` explains a key.\n\
         [node]\n\
         id = {}\n\
         cert = {}\n\
         key = {}\n\
         ca = [\"ca/ca.pem\"]\n\
         \n\
         # Addresses of the devices, and the networks that they reach.\n\
         [pool.{POOL}]\n\
         addresses = {}\n\
         subnets = {}\n\
         {dns}",
        quoted(id),
        quoted(format!("{id}.pem")),
        quoted(format!("{id}.key")),
        list(pool),
        list(network),
    )
}
