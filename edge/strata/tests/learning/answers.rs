//! The answers. Each test that proves one claims it: `// Answers: ID`.

/// A section of the page.
pub struct Section {
    pub title: &'static str,
    pub answers: &'static [Answer],
}

/// An answer to an operator who has to decide about a licensed node.
pub struct Answer {
    /// Name of the answer in claims.
    pub id: &'static str,
    pub question: &'static str,
    pub text: &'static str,
}

/// All sections, in the order of the page.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Without a licence",
        answers: &[
            Answer {
                id: "sight-none",
                question: "What does a router without a licence see?",
                text: "Outer addresses and ports, SPI and sequence number; the ECN field of the inner datagram, and \
                       its class of service with `dscp = \"copy\"`; and the map, which shows the zone of each octet \
                       and so the lengths of headers and payload. Plain ESP (`zones = \"refuse\"`) shows the total \
                       length instead. With `tfc` the lengths of payload and packet are hidden, while the map still \
                       shows how long headers are, and which packets are in the payload zone as a whole. A fixed \
                       `map` is not sent: a router then sees which of two SAs each packet uses, and so if its \
                       headers have the agreed length",
            },
            Answer {
                id: "sight-gmac",
                question: "What does it see of a zone with AES-GMAC?",
                text: "All of it: GMAC prevents changes to a zone, not reading. `strata check` warns of it, and \
                       refuses it for a payload zone",
            },
            Answer {
                id: "sight-level",
                question: "What does it see if `level` allows unencrypted packets?",
                text: "The content of those packets, and that they are unencrypted. A router reads what both ends \
                       named in `integrity`, and cannot change it. The limits are a number of packets in each \
                       direction, and a number of seconds from the first one on, for each set of keys. A rekey \
                       renews both limits as often as `renewals` says, by default never; a new tunnel or a new child \
                       SA starts again. All other packets are as without `level`. Licensed nodes do not learn of \
                       this SA, and know no more of it than any router",
            },
        ],
    },
    Section {
        title: "With a licence to read",
        answers: &[
            Answer {
                id: "licence-headers",
                question: "What does a licence for `headers` show?",
                text: "IP header and TCP or UDP header of each packet: addresses, ports, sequence and \
                       acknowledgement numbers, windows, timestamps. So the node learns which hosts communicate, \
                       when and how much, and not the content. With a fixed `map`, this holds for packets whose \
                       headers have the agreed length; the node sees nothing of all others",
            },
            Answer {
                id: "licence-smaller",
                question: "What does a smaller licence show?",
                text: "With `layout = [\"ip\", \"transport\", \"payload\"]` and a licence for `ip`: addresses and \
                       lengths, no ports and no connection. `octets 0-23` are the IPv4 header and the ports, without \
                       sequence numbers",
            },
            Answer {
                id: "licence-modes",
                question: "What does it show in transport and BEET mode?",
                text: "The TCP or UDP header only: ports, sequence numbers and windows. These packets contain no IP \
                       header, and the node receives no inner address. In transport mode the inner addresses are the \
                       outer ones, which every router sees; in BEET mode the node does not learn them. With a \
                       licence, `strata check` requires a payload suite without blocks, because otherwise only a \
                       reader of the payload knows where a TCP segment ends",
            },
            Answer {
                id: "licence-hidden-header",
                question: "Which part of a header does a node never see?",
                text: "TCP options with secrets (MPTCP keys and tokens, Fast Open cookies, TCP-AO, MD5) or a sum of \
                       the payload (MPTCP's checksum), and options of a kind unknown to Strata. Also the transport \
                       checksum, which would reveal 16 bits of the payload",
            },
            Answer {
                id: "licence-opaque",
                question: "Which packets does it not see into at all?",
                text: "Fragments, packets with IP options or unknown extension headers, malformed ones, and all that \
                       are neither TCP nor UDP: these are in the payload zone as a whole",
            },
            Answer {
                id: "licence-payload",
                question: "Can it ever see payload?",
                text: "Only with a licence that names `payload` at both ends; `strata check` warns of it. No octet \
                       behind the headers is in another zone, for any packet and any layout",
            },
            Answer {
                id: "licence-domain",
                question: "Who reads by a licence for a domain (`node = \"*.sat.example.net\"`)?",
                text: "One node after the other, each with keys of its own and while the mobile node is at its \
                       place. The gateway has a table for each, whose CA must have issued the node's certificate. \
                       It offers each by its name, and both ends know that name before the node gets a key. Nodes \
                       outside the domain, of another CA, or beyond `at_most` get no keys. The payload is never \
                       licensed in this way",
            },
            Answer {
                id: "licence-padding",
                question: "How does it know the length of a padded payload?",
                text: "From the IP header, if the octets with the length are licensed, even if `tfc` hides the \
                       length from all others. Without them, the node knows as much as any router: the length to 16 \
                       octets, or none with `tfc`",
            },
            Answer {
                id: "licence-cover",
                question: "Can it distinguish a dummy (`cover`) from a datagram?",
                text: "Yes, if it may read the first zone, which identifies dummies. Without that licence, a dummy \
                       looks like every other packet",
            },
            Answer {
                id: "licence-forging",
                question: "Can it change packets that it reads, or create packets?",
                text: "It can seal a header that another reader believes, and none that an endpoint accepts, because \
                       the payload's ICV covers everything. Like any router, it can drop, delay and repeat packets; \
                       endpoints drop repeated ones",
            },
        ],
    },
    Section {
        title: "With a licence to write",
        answers: &[
            Answer {
                id: "write-what",
                question: "What may it change?",
                text: "The window in TCP's header, and only to a lower value, which limits the data that a sender \
                       has in flight. It never modifies the packet. It appends a request, sealed with its own key, \
                       and the endpoint applies it. It sees as much as with a licence to read",
            },
            Answer {
                id: "write-without",
                question: "Can a node write without it, or after its end?",
                text: "No. The endpoint drops whatever a reader or another router writes, and counts it under a \
                       reason of its own. After a revocation, requests of a former writer have no effect",
            },
        ],
    },
    Section {
        title: "With a licence to inject",
        answers: &[
            Answer {
                id: "inject-what",
                question: "What may it inject?",
                text: "A repetition of the last acknowledgement of one end of a TCP connection to the other end, \
                       with the same window or a smaller one: a bare acknowledgement, sealed with the node's own \
                       key. So it can keep a connection while a mobile node is out of reach, or make a sender wait. \
                       It cannot confirm data, deliver any, or end a connection",
            },
            Answer {
                id: "inject-hiding",
                question: "Can it hide that the mobile node is gone?",
                text: "From a connection, for as long as `limit` in its `[stand_in]`. Not from the gateway, where \
                       only packets of the peer itself prove that the peer is alive",
            },
            Answer {
                id: "inject-without",
                question: "Can a node inject without it, or after its end?",
                text: "No. The endpoint drops the packet, and counts it under a reason of its own",
            },
        ],
    },
    Section {
        title: "Consent and records",
        answers: &[
            Answer {
                id: "consent-end",
                question: "Which end decides?",
                text: "Both ends, each by its own configuration, for an identity that the node proves by \
                       certificate, raw public key or secret. A licence that only one end allows is not given, and \
                       both ends report it",
            },
            Answer {
                id: "consent-several",
                question: "Can several nodes on one path have licences?",
                text: "Yes, each for zones of its own in addition to the first, by which all of them recognise \
                       packets. `strata check` refuses two nodes that would share the key of another zone, unless \
                       both ends allow it by `shared = true`. Each of the two can then make packets that the other \
                       believes, and no endpoint does",
            },
            Answer {
                id: "consent-record",
                question: "Is it recorded?",
                text: "With `[audit]`: each licence, each key that leaves and each key that ends, at both ends and \
                       at the node. With `required = true`, no key leaves before its line is on disk",
            },
        ],
    },
    Section {
        title: "For how long",
        answers: &[
            Answer {
                id: "duration-key",
                question: "Which packets does a key open?",
                text: "Those of one tunnel between two rekeys, in both directions. The keys of other zones, and \
                       those before and after the rekeys, cannot be derived from it",
            },
            Answer {
                id: "duration-keeping",
                question: "How long may the node keep a key?",
                text: "Eight hours; while the tunnel is up, it receives the key again at half of that. A node that \
                       has lost its gateway deletes keys by itself",
            },
            Answer {
                id: "duration-restart",
                question: "Does a key survive a restart of the node?",
                text: "No: keys are in memory only. The gateway distributes them again",
            },
            Answer {
                id: "duration-recorded",
                question: "Can a key open recorded packets?",
                text: "Yes: the key of a zone opens this zone of every packet that was sealed with it, recorded ones \
                       included, and no other zone. A shorter `rekey` limits the number of such packets",
            },
        ],
    },
    Section {
        title: "How it ends",
        answers: &[
            Answer {
                id: "end-revocation",
                question: "How do you revoke a licence?",
                text: "Remove it from `licences` at either end and run `strata reload`. From then on, this end seals \
                       packets as a whole, so the node opens none. Both ends rekey without the node, and no packet \
                       is lost. The node is asked to delete the old keys, and neither end waits for it",
            },
            Answer {
                id: "end-silence",
                question: "And if the other end does not answer?",
                text: "The packets it sends stay readable until it has received the revocation: for a minute at \
                       most, when the tunnel is closed and established again",
            },
            Answer {
                id: "end-move",
                question: "And if the mobile node moves to another node?",
                text: "With `at` in its licence, the node has no key for packets sealed after the move; with \
                       `handover = \"dkm\"`, after two seconds. Without `at`, it reads packets that pass it until \
                       the rekey",
            },
            Answer {
                id: "end-holders",
                question: "And if nodes share keys (`holders`)?",
                text: "Every holder of the keys can read whatever both ends seal with them until the rekey, wherever \
                       the mobile node is: the price of moves without a rekey. A rekey takes place before more nodes \
                       than `holders` would have the keys, counting all that ever received them; after an hour \
                       (`rekey`); and on `strata rekey`. If a mobile node moves back and forth among that many \
                       nodes, each of them can read all packets, and make headers that the others believe. A node \
                       that never had the keys reads nothing",
            },
            Answer {
                id: "end-itself",
                question: "When does a licence end by itself?",
                text: "With the tunnel: after `strata down`, after the loss of an end, or after a rekey without this \
                       licence",
            },
            Answer {
                id: "end-kept",
                question: "What remains at a node that does not delete keys?",
                text: "Everything it has read, and the keys of packets that were sealed before. No revocation \
                       affects the past",
            },
        ],
    },
];
