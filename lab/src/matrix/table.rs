//! The cells with their witnesses, as a page of Markdown.

use super::Played;

/// Text above the table.
const HEAD: &str = "# Interoperability\n\n\
    Written by `./x interop`. In each cell both ends connect, 1 MB passes each way by the kernel's TCP, \
    something happens to the tunnel, 1 MB passes each way again, and then charon's own account \
    (`swanctl --list-sas`) has one IKE SA with one child, both of what the cell asks for. Any two \
    levels of any two columns meet in some cell; `./x interop --full` plays all combinations.\n\n\
    The peer `installed` is this machine's strongSwan and `newer` that of the next Debian release, both with \
    ESP in user space; `kernel` is this machine's with the ESP of a Linux kernel (user-mode Linux). The witness \
    is the peer whose account it is. Where a kernel is named besides, its own count for each SA \
    (`ip -s xfrm state`) has grown by 1 MB each way. libreswan 5.2 on that kernel has tests of its own \
    (`lab/tests/e2e/interop/libreswan.rs`).\n\n\
    No public peer was found for:\n\n\
    * zones and licences, which are ours;\n\
    * BEET mode: strongSwan says and answers it to its own kind only;\n\
    * ML-KEM: strongSwan as Debian 13 builds it (6.0.1) has none, nor has libreswan 5.2;\n\
    * cloned IKE SAs (RFC 7791): neither of the two has them;\n\
    * children for each resource (RFC 9611): strongSwan has them from 6.0.2 on, which is not in Debian 13;\n\
    * session resumption (RFC 5723): strongSwan has none; libreswan 5.2 and Strata take each other's tickets, \
    but libreswan resumes without NAT detection, so that a full exchange follows within a round trip;\n\
    * TCP encapsulation (RFC 9329): strongSwan has none, and libreswan leaves it to the kernel, of which \
    Debian's user-mode Linux is built without it (`CONFIG_INET_ESPINTCP`); tshark is its witness \
    (`lab/tests/e2e/interop/tcp.rs`).\n\n\
    | | peer | who begins | proof | suite | key exchange | child's keys | path | event | witness |\n\
    |---|---|---|---|---|---|---|---|---|---|\n";

/// Formats the page. A cell without a witness has failed.
pub fn page(played: &[Played]) -> String {
    let row = |(number, played): (usize, &Played)| {
        let witness = played.witness.as_deref().unwrap_or("**failed**");
        format!("| {number} | {} | {witness} |\n", played.cell)
    };
    let rows = (1..).zip(played).map(row);
    rows.fold(HEAD.to_owned(), |page, row| page + &row)
}

/// Returns the cells of a page, without their witnesses: `installed | we begin | psk ...`.
pub fn cells(page: &str) -> Vec<String> {
    let rows = page.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let (number, rest) = line.split_once(" | ")?;
        number.parse::<usize>().ok()?;
        Some(rest.rsplit_once(" | ")?.0.to_owned())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::super::Cell;
    use super::*;

    #[test]
    fn a_page_has_every_cell_and_says_which_failed() {
        let all = Cell::pairwise();
        let outcomes = all.iter().zip([Some("6.0.1"), None].into_iter().cycle());
        let played = outcomes.map(|(cell, witness)| Played {
            cell: *cell,
            witness: witness.map(str::to_owned),
            seconds: 1.0,
            errors: Vec::new(),
        });
        let page = page(&played.collect::<Vec<_>>());
        let named: Vec<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(cells(&page), named);
        assert_eq!(page.matches("**failed**").count(), all.len() / 2);
    }
}
