//! Attacks on zoned packets, by attacker. They concern the design and the data plane of Strata
//! alone, so no other implementation was affected yet.

use crate::list::Answer::{Nothing, Tests};
use crate::list::Weakness;

/// All attacks.
pub const ZONES: &[Weakness] = &[
    Weakness {
        number: 1,
        seen: "anybody on the path",
        what: "puts the header zone of one packet before the payload zone of another",
        answer: Tests,
    },
    Weakness {
        number: 2,
        seen: "a licensed node",
        what: "the same with the key of the header zone, and headers of its own making",
        answer: Tests,
    },
    Weakness {
        number: 3,
        seen: "an observer of two packets with one nonce",
        what: "takes the difference of their texts, and makes packets of its own",
        answer: Tests,
    },
    Weakness {
        number: 4,
        seen: "a node that may read",
        what: "changes what it may read",
        answer: Tests,
    },
    Weakness {
        number: 5,
        seen: "anybody on the path",
        what: "moves a boundary between zones, so that payload is where a node reads",
        answer: Tests,
    },
    Weakness {
        number: 6,
        seen: "anybody on the path",
        what: "takes the zones out of what the ends agree on, or gives a node more of them",
        answer: Tests,
    },
    Weakness {
        number: 7,
        seen: "another node",
        what: "gets the keys that were meant for a licensed one, or those of another tunnel",
        answer: Tests,
    },
    Weakness {
        number: 8,
        seen: "anybody on the path",
        what: "sends a packet back to where it came from",
        answer: Tests,
    },
    Weakness {
        number: 9,
        seen: "anybody on the path, a licensed node",
        what: "sends packets again, or acknowledgements out of turn, to either end or to SNOOP",
        answer: Tests,
    },
    Weakness {
        number: 10,
        seen: "anybody on the path",
        what: "drops or delays packets, of one connection alone if it has a licence for its headers",
        answer: Nothing(
            "every router can, and a reader of headers can choose: a licence is for whom one trusts to forward",
        ),
    },
    Weakness {
        number: 11,
        seen: "anybody on the path",
        what: "puts a packet, or a zone of it, into another SA: of a rekey, or with the same SPI later",
        answer: Tests,
    },
    Weakness {
        number: 12,
        seen: "anybody on the path",
        what: "cuts the last zone off, or the first, so that what is left counts as a whole packet",
        answer: Tests,
    },
    Weakness {
        number: 13,
        seen: "a program inside",
        what: "shapes packets (tiny fragments, options, extension headers, a header that lies) so that \
               payload counts as header, or a secret as something public",
        answer: Tests,
    },
    Weakness {
        number: 14,
        seen: "a node whose licence is gone",
        what: "goes on with the keys it has, and keeps the ends from making new ones, or one of them from \
               knowing that",
        answer: Tests,
    },
    Weakness {
        number: 15,
        seen: "anybody on the path",
        what: "learns from the length of each packet, and from silence, what is said: a key pressed, a page, a voice that speaks",
        answer: Tests,
    },
    Weakness {
        number: 16,
        seen: "an endpoint's peer, a buffer's last user",
        what: "has padding tell what it should not: octets of another tunnel, a datagram that ends elsewhere, a segment that is none",
        answer: Tests,
    },
    Weakness {
        number: 17,
        seen: "a node that may read, or anybody on the path",
        what: "writes: an overlay without the right, of another packet, of another direction, or one that was stripped",
        answer: Tests,
    },
    Weakness {
        number: 18,
        seen: "a node that may write",
        what: "writes beyond its right: another field, a window that is raised, a text that is none",
        answer: Tests,
    },
    Weakness {
        number: 19,
        seen: "a node that may write, and restarts while it writes",
        what: "starts its counter again under the same key, and so uses a nonce twice",
        answer: Tests,
    },
    Weakness {
        number: 20,
        seen: "anybody on the path",
        what: "makes or changes packets that are not encrypted, or has everything be so: the paper switches to plaintext",
        answer: Tests,
    },
    Weakness {
        number: 21,
        seen: "a peer, or whoever has taken its place",
        what: "sends without encryption what was not granted, more, for longer, or again and again by new keys",
        answer: Tests,
    },
    Weakness {
        number: 22,
        seen: "a node that may read, or anybody on the path",
        what: "injects: without the right, what came before, in the other direction, or under a grant that is over",
        answer: Tests,
    },
    Weakness {
        number: 23,
        seen: "a node that may inject",
        what: "makes a sender believe that something arrived, ends a connection (RST), begins one, delivers data, or has what comes \
               later refused by a timestamp from the future",
        answer: Tests,
    },
    Weakness {
        number: 24,
        seen: "a node that may inject",
        what: "makes a dead peer look alive, or an SA confirmed that its peer does not have",
        answer: Tests,
    },
    Weakness {
        number: 25,
        seen: "a node that may inject, and restarts while it injects, or whose licence has expired",
        what: "starts its counter again under the same key, or continues to inject",
        answer: Tests,
    },
    Weakness {
        number: 26,
        seen: "anybody on the path",
        what: "has a link look bad, so that packets show their headers to who is licensed",
        answer: Tests,
    },
    Weakness {
        number: 27,
        seen: "a node that a mobile node has left, keeps all that it was given, and hears of nothing",
        what: "reads what is sealed later, there or when the mobile node comes back",
        answer: Tests,
    },
    Weakness {
        number: 28,
        seen: "a node that is given keys before a mobile node comes",
        what: "reads what is sealed for the node where it is",
        answer: Tests,
    },
    Weakness {
        number: 29,
        seen: "anybody on the path",
        what: "has keys given to a node where the mobile node is not, by a registration or an advertisement",
        answer: Tests,
    },
    Weakness {
        number: 30,
        seen: "a gateway that gives keys to whom it likes",
        what: "has a node read that the mobile node does not license",
        answer: Tests,
    },
    Weakness {
        number: 31,
        seen: "a node that shares keys with others, and that a mobile node has left",
        what: "reads on by the keys that it has (the paper rekeys when more nodes have them than may)",
        answer: Tests,
    },
    Weakness {
        number: 32,
        seen: "a node that shares keys with others",
        what: "causes endless new keys, or keys for many nodes, by naming other neighbours again and again",
        answer: Tests,
    },
    Weakness {
        number: 33,
        seen: "a node with a token, or anybody who has seen one",
        what: "asks for keys with it again, when it is old, in another node's place, after new keys, or with more zones in it; or makes one",
        answer: Tests,
    },
    Weakness {
        number: 34,
        seen: "a node that had keys of another one by a token, and one that gave them",
        what: "reads on when the two seconds are over, though new keys do not come, nothing comes of the move, or the mobile node goes to and fro",
        answer: Tests,
    },
    Weakness {
        number: 35,
        seen: "a mobile node or a gateway that gives tokens to whom it likes",
        what: "has a node get keys of another one that the other end does not license, or in another zone",
        answer: Tests,
    },
    Weakness {
        number: 36,
        seen: "a station on the link of an agent",
        what: "fills the agent's memory for tokens, so that the agent requests no keys with the tokens of mobile nodes",
        answer: Tests,
    },
    Weakness {
        number: 37,
        seen: "a node whose licence is gone",
        what: "reads what is sealed with keys that it had before, or gets some that waited for it",
        answer: Tests,
    },
    Weakness {
        number: 38,
        seen: "a node whose certificate was revoked",
        what: "reads on with the keys that it has until the next rekey",
        answer: Tests,
    },
];
