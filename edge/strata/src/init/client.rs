//! A host that connects to a gateway. Both ends know each other's public keys (RFC 7670), so the
//! private key stays here and no CA is needed.

use super::args::Client;
use super::folder::{CONFIG, check, save};
use super::report::{Carry, Report};
use crate::files::New;
use crate::lines::{list, name, quoted};
use crate::pki::NewKey;
use control::Failure;

pub(super) fn init(order: &Client) -> Result<Report, Failure> {
    let Client {
        id,
        gateway,
        folder,
        ..
    } = order;
    let (own, other) = (name(id), name(gateway));
    let (key, public) = (format!("{own}.key"), format!("{own}.pub"));
    let folder = folder.out.as_path();
    check(&[id, gateway], folder, &[CONFIG, &key, &public])?;
    let new = NewKey::generate()?;
    let files = vec![New::key(key, &new.key), New::public(&*public, &new.public)];
    let files = save(folder, files, &config(order, &own, &other))?;
    Ok(Report {
        files,
        lines: format!(
            "[peer.{own}]\nid = {}\npubkey = {}\nlocal = {}\npool = \"devices\"\n",
            quoted(id),
            quoted(&public),
            list(&order.network),
        ),
        carry: Some(Carry {
            there: public,
            here: format!("{other}.pub"),
            how: "strata pki pubkey KEY-OF-THE-GATEWAY".to_owned(),
        }),
        next: vec![
            format!("stratad --config {}", folder.join(CONFIG).display()),
            format!("strata up {other} --wait"),
        ],
    })
}

fn config(order: &Client, own: &str, other: &str) -> String {
    let Client {
        id,
        gateway,
        address,
        network,
        ..
    } = order;
    format!(
        "# A host that connects to a gateway. `strata key NAME` explains a key.\n\
         [node]\n\
         id = {}\n\
         key = \"{own}.key\"\n\
         \n\
         [peer.{other}]\n\
         address = {}\n\
         id = {}\n\
         pubkey = \"{other}.pub\"\n\
         local = [\"dynamic\"]               # the gateway assigns our inner address\n\
         remote = {}\n",
        quoted(id),
        quoted(address),
        quoted(gateway),
        list(network),
    )
}
