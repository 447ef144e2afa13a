//! A licensed node. It and the gateway know each other's public keys.

use super::args::Node;
use super::folder::{CONFIG, check, save};
use super::report::{Carry, Report};
use crate::files::New;
use crate::lines::{name, quoted};
use crate::pki::NewKey;
use control::Failure;

pub(super) fn init(order: &Node) -> Result<Report, Failure> {
    let Node {
        id,
        address,
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
            "[licensed.{own}]\naddress = {}\nid = {}\npubkey = {}\n",
            quoted(address),
            quoted(id),
            quoted(&public),
        ),
        carry: Some(Carry {
            there: public,
            here: format!("{other}.pub"),
            how: "strata pki pubkey KEY-OF-THE-GATEWAY".to_owned(),
        }),
        next: vec![
            format!("stratad --config {}", folder.join(CONFIG).display()),
            "strata zones".to_owned(),
        ],
    })
}

fn config(order: &Node, own: &str, other: &str) -> String {
    let Node {
        id,
        gateway,
        wired,
        wireless,
        ..
    } = order;
    format!(
        "# A licensed node. It reads what `licences` at both ends of a tunnel name.\n\
         [node]\n\
         id = {}\n\
         key = \"{own}.key\"\n\
         \n\
         [gateway.{other}]\n\
         id = {}\n\
         pubkey = \"{other}.pub\"\n\
         \n\
         [divert]\n\
         wired = {}\n\
         wireless = {}\n\
         \n\
         [snoop]\n\
         enabled = true\n",
        quoted(id),
        quoted(gateway),
        quoted(wired),
        quoted(wireless),
    )
}
