//! A host that connects to a gateway.

use super::args::Client;
use super::paired::Paired;
use super::report::Report;
use crate::lines::{list, quoted};
use control::Failure;

pub(super) fn init(order: &Client) -> Result<Report, Failure> {
    let paired = Paired::new(&order.id, &order.gateway);
    let lines = format!(
        "[peer.{}]\nid = {}\npubkey = {}\nlocal = {}\npool = \"devices\"\n",
        paired.own,
        quoted(&order.id),
        quoted(paired.public()),
        list(&order.network),
    );
    let config = config(order, &paired);
    let then = format!("strata up {} --wait", paired.other);
    paired.save(&order.folder.out, &config, lines, then)
}

fn config(order: &Client, Paired { own, other, .. }: &Paired<'_>) -> String {
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
