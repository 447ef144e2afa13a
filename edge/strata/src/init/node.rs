//! A licensed node.

use super::args::Node;
use super::paired::Paired;
use super::report::Report;
use crate::lines::quoted;
use control::Failure;

pub(super) fn init(order: &Node) -> Result<Report, Failure> {
    let paired = Paired::new(&order.id, &order.gateway);
    let lines = format!(
        "[licensed.{}]\naddress = {}\nid = {}\npubkey = {}\n",
        paired.own,
        quoted(order.address),
        quoted(&order.id),
        quoted(paired.public()),
    );
    let config = config(order, &paired);
    paired.save(&order.folder.out, &config, lines, "strata zones".to_owned())
}

fn config(order: &Node, Paired { own, other, .. }: &Paired<'_>) -> String {
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
