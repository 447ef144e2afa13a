//! Attacks on moves to other addresses and on further paths (MOBIKE and MOBIKE-X), by attacker.
//! `formal` has models of the same exchanges.

use crate::list::Answer::Tests;
use crate::list::Weakness;

/// All attacks.
pub const MOVES: &[Weakness] = &[
    Weakness {
        number: 1,
        seen: "a peer with keys; anybody who rewrites sources",
        what: "third-party bombing: has packets go to an address whose host asked for none. A \
               COOKIE2 has to come back from an address before it gets a packet, and questions to \
               new addresses are few",
        answer: Tests,
    },
    Weakness {
        number: 2,
        seen: "anybody on the path",
        what: "sends an update, an addition or a removal again, later or in another order. The \
               newest update counts, by its message ID, and the answer to an earlier one does not",
        answer: Tests,
    },
    Weakness {
        number: 3,
        seen: "anybody, also beside the path",
        what: "rebinds a tunnel by packets from another address. Only an authentic packet that is \
               the newest is a reason to ask there, and in transport mode none is",
        answer: Tests,
    },
    Weakness {
        number: 4,
        seen: "anybody on the path; a peer behind a NAT",
        what: "hides a NAT from the ends. AUTH covers the hashes of IKE_SA_INIT, and a request \
               names its addresses where NATs are not allowed",
        answer: Tests,
    },
    Weakness {
        number: 5,
        seen: "a peer with keys",
        what: "lists ten thousand addresses. Eight are kept, and few are asked; a configured list \
               may be as long",
        answer: Tests,
    },
    Weakness {
        number: 6,
        seen: "a peer with keys",
        what: "takes the address of another host, and its traffic. The configuration lists the \
               addresses of a peer; in transport mode, no bypass and no other peer may have one, \
               neither before nor after the check",
        answer: Tests,
    },
    Weakness {
        number: 7,
        seen: "a relay that is faster than the network",
        what: "hands packets and checks over from an address of its own, to take a tunnel there. A \
               path stays while its old address answers or packets arrive on it",
        answer: Tests,
    },
    Weakness {
        number: 8,
        seen: "a peer behind the same NAT",
        what: "appears by the address of its neighbour, to get what is for that one. The first of \
               both has the address in transport mode; in tunnel mode each has a port",
        answer: Tests,
    },
];
