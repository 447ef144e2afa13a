//! The answers, with the tests that prove them.

/// A section of the page.
pub struct Section {
    pub title: &'static str,
    pub answers: &'static [Answer],
}

/// An answer to an operator who has to decide about a licensed node.
pub struct Answer {
    pub question: &'static str,
    pub text: &'static str,
    /// File and function of each test.
    pub tests: &'static [(&'static str, &'static str)],
}

const AUDIT: &str = "lab/tests/e2e/operate/audit.rs";
const ZONEMODE: &str = "lab/tests/e2e/zones/zonemode.rs";
const BARE_ESP: &str = "pure/esp/tests/data_plane/bare.rs";
const CLASSIFY: &str = "pure/wire/src/classify.rs";
const COVER: &str = "pure/node/src/tests/cover.rs";
const DATA: &str = "pure/esp/tests/data_plane/attacks.rs";
const DSCP: &str = "lab/tests/e2e/traffic/dscp.rs";
const ECN: &str = "lab/tests/e2e/traffic/ecn.rs";
const GRANT: &str = "lab/tests/e2e/zones/grant.rs";
const GRANTS: &str = "pure/node/src/tests/grants.rs";
const INJECT: &str = "lab/tests/e2e/zones/inject.rs";
const INJECTING: &str = "pure/node/src/tests/inject.rs";
const INJECTION: &str = "pure/esp/tests/data_plane/injection.rs";
const HANDOVER: &str = "lab/tests/e2e/mobility/handover.rs";
const HOLDERS: &str = "lab/tests/e2e/mobility/holders.rs";
const SHARED: &str = "pure/node/tests/roaming/shared.rs";
const IDENTITY: &str = "pure/esp/tests/data_plane/identity.rs";
const INVARIANTS: &str = "pure/node/src/tests/invariants.rs";
const LAYOUT: &str = "lab/tests/e2e/zones/layout.rs";
const MAP: &str = "lab/tests/e2e/zones/map.rs";
const LEVEL: &str = "lab/tests/e2e/zones/level.rs";
const LEVEL_ESP: &str = "pure/esp/tests/data_plane/level.rs";
const LEVEL_NODE: &str = "pure/node/src/tests/level.rs";
const LICENCE: &str = "lab/tests/e2e/zones/licence.rs";
const LICENSED: &str = "pure/esp/tests/data_plane/licensed.rs";
const OVERLAY: &str = "pure/esp/tests/data_plane/overlay.rs";
const PADDING: &str = "pure/esp/tests/data_plane/padding.rs";
const RECOVERY: &str = "pure/node/src/tests/recovery.rs";
const REVOCATION: &str = "pure/node/src/tests/revocation.rs";
const TFC: &str = "lab/tests/e2e/traffic/tfc.rs";
const SUITES: &str = "pure/esp/tests/data_plane/suites.rs";
const WRITE: &str = "lab/tests/e2e/zones/write.rs";
const WRITING: &str = "pure/node/src/tests/write.rs";

/// All sections, in the order of the page.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Without a licence",
        answers: &[
            Answer {
                question: "What does a router without a licence see?",
                text: "Outer addresses and ports, SPI and sequence number; the ECN field of the inner datagram, and \
                       its class of service with `dscp = \"copy\"`; and the map, which shows the zone of each octet \
                       and so the lengths of headers and payload. Plain ESP (`zones = \"refuse\"`) shows the total \
                       length instead. With `tfc` the lengths of payload and packet are hidden, while the map still \
                       shows how long headers are, and which packets are in the payload zone as a whole. A fixed \
                       `map` is not sent: a router then sees which of two SAs each packet uses, and so if its \
                       headers have the agreed length",
                tests: &[
                    (LAYOUT, "headers_are_cut_apart_and_each_zone_has_its_suite"),
                    (
                        MAP,
                        "packets_that_the_map_fits_are_four_octets_shorter_and_all_others_go_beside",
                    ),
                    (ECN, "the_field_outside_is_that_inside"),
                    (TFC, "in_zones_they_are_too"),
                    (
                        DSCP,
                        "each_packet_has_the_class_that_its_peer_is_configured_with",
                    ),
                    (
                        GRANTS,
                        "a_licence_for_another_identity_gives_this_node_nothing",
                    ),
                ],
            },
            Answer {
                question: "What does it see of a zone with AES-GMAC?",
                text: "All of it: GMAC prevents changes to a zone, not reading. `strata check` warns of it, and \
                       refuses it for a payload zone",
                tests: &[(
                    LAYOUT,
                    "a_zone_with_gmac_is_read_by_whoever_stands_on_the_way",
                )],
            },
            Answer {
                question: "What does it see if `level` allows unencrypted packets?",
                text: "The content of those packets, and that they are unencrypted. A router reads what both ends \
                       named in `integrity`, and cannot change it. The limits are a number of packets in each \
                       direction, and a number of seconds from the first one on, for each set of keys. A rekey \
                       renews both limits as often as `renewals` says, by default never; a new tunnel or a new child \
                       SA starts again. All other packets are as without `level`. Licensed nodes do not learn of \
                       this SA, and know no more of it than any router",
                tests: &[
                    (
                        LEVEL,
                        "what_is_named_can_be_read_on_the_way_and_nothing_else",
                    ),
                    (LEVEL, "without_a_grant_nothing_can_be_read_on_the_way"),
                    (
                        LEVEL_ESP,
                        "who_reads_a_packet_without_encryption_can_change_none_of_its_octets",
                    ),
                    (
                        LEVEL_NODE,
                        "what_was_granted_is_everybodys_to_read_and_the_rest_the_licensed_nodes",
                    ),
                    (LEVEL_NODE, "new_keys_renew_it_as_often_as_was_agreed"),
                ],
            },
        ],
    },
    Section {
        title: "With a licence to read",
        answers: &[
            Answer {
                question: "What does a licence for `headers` show?",
                text: "IP header and TCP or UDP header of each packet: addresses, ports, sequence and \
                       acknowledgement numbers, windows, timestamps. So the node learns which hosts communicate, \
                       when and how much, and not the content. With a fixed `map`, this holds for packets whose \
                       headers have the agreed length; the node sees nothing of all others",
                tests: &[
                    (LICENCE, "the_licensed_node_sees_the_flow_inside"),
                    (LICENSED, "the_headers_are_seen_and_the_payload_is_a_length"),
                    (MAP, "a_node_reads_what_the_map_fits_and_nothing_else"),
                ],
            },
            Answer {
                question: "What does a smaller licence show?",
                text: "With `layout = [\"ip\", \"transport\", \"payload\"]` and a licence for `ip`: addresses and \
                       lengths, no ports and no connection. `octets 0-23` are the IPv4 header and the ports, without \
                       sequence numbers",
                tests: &[
                    (LAYOUT, "a_node_reads_the_zones_of_its_licence_and_no_other"),
                    (LICENSED, "the_ip_header_alone_shows_no_ports"),
                ],
            },
            Answer {
                question: "What does it show in transport and BEET mode?",
                text: "The TCP or UDP header only: ports, sequence numbers and windows. These packets contain no IP \
                       header, and the node receives no inner address. In transport mode the inner addresses are the \
                       outer ones, which every router sees; in BEET mode the node does not learn them. With a \
                       licence, `strata check` requires a payload suite without blocks, because otherwise only a \
                       reader of the payload knows where a TCP segment ends",
                tests: &[
                    (ZONEMODE, "a_licensed_node_sees_ports_and_no_address"),
                    (BARE_ESP, "a_node_sees_the_transport_header_and_no_address"),
                    (
                        BARE_ESP,
                        "of_a_payload_in_blocks_a_node_knows_the_length_if_udp_says_it",
                    ),
                ],
            },
            Answer {
                question: "Which part of a header does a node never see?",
                text: "TCP options with secrets (MPTCP keys and tokens, Fast Open cookies, TCP-AO, MD5) or a sum of \
                       the payload (MPTCP's checksum), and options of a kind unknown to Strata. Also the transport \
                       checksum, which would reveal 16 bits of the payload",
                tests: &[
                    (CLASSIFY, "secret_options_are_cut_out_and_public_ones_stay"),
                    (
                        CLASSIFY,
                        "the_checksum_of_a_data_sequence_signal_is_secret_and_its_numbers_are_not",
                    ),
                    (LICENSED, "a_secret_option_looks_like_no_operation"),
                ],
            },
            Answer {
                question: "Which packets does it not see into at all?",
                text: "Fragments, packets with IP options or unknown extension headers, malformed ones, and all that \
                       are neither TCP nor UDP: these are in the payload zone as a whole",
                tests: &[
                    (CLASSIFY, "whatever_is_in_doubt_is_opaque"),
                    (LICENSED, "an_opaque_packet_is_not_opened"),
                ],
            },
            Answer {
                question: "Can it ever see payload?",
                text: "Only with a licence that names `payload` at both ends; `strata check` warns of it. No octet \
                       behind the headers is in another zone, for any packet and any layout",
                tests: &[
                    (IDENTITY, "no_octet_beyond_the_headers_is_ever_licensed"),
                    (LICENCE, "a_payload_licensed_by_name_is_opened"),
                    (GRANTS, "the_payload_zone_is_licensed_only_by_its_own_name"),
                ],
            },
            Answer {
                question: "How does it know the length of a padded payload?",
                text: "From the IP header, if the octets with the length are licensed, even if `tfc` hides the \
                       length from all others. Without them, the node knows as much as any router: the length to 16 \
                       octets, or none with `tfc`",
                tests: &[
                    (
                        SUITES,
                        "a_node_is_told_by_the_ip_header_how_long_a_padded_payload_is",
                    ),
                    (
                        PADDING,
                        "a_node_that_reads_the_ip_header_knows_how_long_a_datagram_is",
                    ),
                    (
                        PADDING,
                        "a_node_that_does_not_read_the_length_does_not_know_it",
                    ),
                ],
            },
            Answer {
                question: "Can it distinguish a dummy (`cover`) from a datagram?",
                text: "Yes, if it may read the first zone, which identifies dummies. Without that licence, a dummy \
                       looks like every other packet",
                tests: &[
                    (PADDING, "a_dummy_is_no_segment_to_a_licensed_node"),
                    (COVER, "a_dummy_looks_like_a_datagram_from_outside"),
                ],
            },
            Answer {
                question: "Can it change packets that it reads, or create packets?",
                text: "It can seal a header that another reader believes, and none that an endpoint accepts, because \
                       the payload's ICV covers everything. Like any router, it can drop, delay and repeat packets; \
                       endpoints drop repeated ones",
                tests: &[
                    (
                        DATA,
                        "a_node_that_seals_a_changed_header_zone_with_its_key_is_found_out_by_the_payloads_icv",
                    ),
                    (
                        INVARIANTS,
                        "invariant_3_no_zone_is_lifted_and_only_headers_are_in_a_licensed_one",
                    ),
                ],
            },
        ],
    },
    Section {
        title: "With a licence to write",
        answers: &[
            Answer {
                question: "What may it change?",
                text: "The window in TCP's header, and only to a lower value, which limits the data that a sender \
                       has in flight. It never modifies the packet. It appends a request, sealed with its own key, \
                       and the endpoint applies it. It sees as much as with a licence to read",
                tests: &[
                    (
                        WRITE,
                        "a_kernels_sender_keeps_to_the_window_that_a_writer_lowers",
                    ),
                    (OVERLAY, "a_writer_outside_its_mask_is_dropped"),
                    (OVERLAY, "what_has_no_window_cannot_be_written"),
                ],
            },
            Answer {
                question: "Can a node write without it, or after its end?",
                text: "No. The endpoint drops whatever a reader or another router writes, and counts it under a \
                       reason of its own. After a revocation, requests of a former writer have no effect",
                tests: &[
                    (OVERLAY, "a_reader_that_writes_is_dropped"),
                    (WRITE, "a_node_that_may_only_read_lowers_no_window"),
                    (
                        WRITING,
                        "a_licence_to_write_that_either_end_takes_back_ends_at_once",
                    ),
                ],
            },
        ],
    },
    Section {
        title: "With a licence to inject",
        answers: &[
            Answer {
                question: "What may it inject?",
                text: "A repetition of the last acknowledgement of one end of a TCP connection to the other end, \
                       with the same window or a smaller one: a bare acknowledgement, sealed with the node's own \
                       key. So it can keep a connection while a mobile node is out of reach, or make a sender wait. \
                       It cannot confirm data, deliver any, or end a connection",
                tests: &[
                    (
                        INJECT,
                        "a_connection_outlives_an_outage_that_its_keepalives_would_have_ended",
                    ),
                    (
                        INJECTION,
                        "a_node_that_says_more_than_the_peer_has_said_is_dropped",
                    ),
                    (
                        INJECTION,
                        "nothing_is_ever_believed_that_the_peer_has_not_said",
                    ),
                ],
            },
            Answer {
                question: "Can it hide that the mobile node is gone?",
                text: "From a connection, for as long as `limit` in its `[stand_in]`. Not from the gateway, where \
                       only packets of the peer itself prove that the peer is alive",
                tests: &[
                    (INJECT, "nobody_is_stood_in_for_longer_than_the_limit"),
                    (
                        INJECTING,
                        "a_dead_peer_is_found_dead_though_it_is_stood_in_for",
                    ),
                ],
            },
            Answer {
                question: "Can a node inject without it, or after its end?",
                text: "No. The endpoint drops the packet, and counts it under a reason of its own",
                tests: &[
                    (INJECTION, "a_reader_and_a_writer_inject_nothing"),
                    (INJECT, "a_node_that_may_only_read_saves_no_connection"),
                    (
                        INJECT,
                        "a_licence_to_inject_that_is_taken_back_ends_during_an_outage",
                    ),
                ],
            },
        ],
    },
    Section {
        title: "Consent and records",
        answers: &[
            Answer {
                question: "Which end decides?",
                text: "Both ends, each by its own configuration, for an identity that the node proves by \
                       certificate, raw public key or secret. A licence that only one end allows is not given, and \
                       both ends report it",
                tests: &[
                    (LICENCE, "no_key_leaves_if_the_mobile_node_does_not_agree"),
                    (LICENCE, "no_key_leaves_if_the_gateway_does_not_agree"),
                    (LICENCE, "no_key_leaves_to_a_node_of_another_identity"),
                    (
                        INVARIANTS,
                        "invariant_4_a_node_learns_only_keys_that_both_ends_license",
                    ),
                ],
            },
            Answer {
                question: "Can several nodes on one path have licences?",
                text: "Yes, each for zones of its own in addition to the first, by which all of them recognise \
                       packets. `strata check` refuses two nodes that would share the key of another zone, unless \
                       both ends allow it by `shared = true`. Each of the two can then make packets that the other \
                       believes, and no endpoint does",
                tests: &[
                    (
                        GRANT,
                        "each_of_several_nodes_on_one_path_opens_what_it_may_and_no_more",
                    ),
                    (
                        GRANT,
                        "two_nodes_that_would_share_a_key_are_refused_with_what_to_do",
                    ),
                    (GRANT, "two_nodes_share_a_key_where_both_ends_say_so"),
                ],
            },
            Answer {
                question: "Is it recorded?",
                text: "With `[audit]`: each licence, each key that leaves and each key that ends, at both ends and \
                       at the node. With `required = true`, no key leaves before its line is on disk",
                tests: &[
                    (
                        AUDIT,
                        "what_is_agreed_given_and_taken_is_recorded_at_all_three",
                    ),
                    (
                        AUDIT,
                        "no_key_leaves_without_its_line_where_that_is_required",
                    ),
                ],
            },
        ],
    },
    Section {
        title: "For how long",
        answers: &[
            Answer {
                question: "Which packets does a key open?",
                text: "Those of one tunnel between two rekeys, in both directions. The keys of other zones, and \
                       those before and after the rekeys, cannot be derived from it",
                tests: &[
                    (
                        INVARIANTS,
                        "invariant_5_revocation_needs_no_help_of_the_node",
                    ),
                    (
                        AUDIT,
                        "new_keys_are_given_and_the_old_ones_end_and_no_packet_is_lost",
                    ),
                ],
            },
            Answer {
                question: "How long may the node keep a key?",
                text: "Eight hours; while the tunnel is up, it receives the key again at half of that. A node that \
                       has lost its gateway deletes keys by itself",
                tests: &[
                    (GRANTS, "a_grant_expires_by_itself"),
                    (GRANTS, "a_grant_is_renewed_for_as_long_as_the_tunnel_is_up"),
                ],
            },
            Answer {
                question: "Does a key survive a restart of the node?",
                text: "No: keys are in memory only. The gateway distributes them again",
                tests: &[(
                    RECOVERY,
                    "the_tunnel_and_the_licence_come_back_after_each_host_restarts",
                )],
            },
            Answer {
                question: "Can a key open recorded packets?",
                text: "Yes: the key of a zone opens this zone of every packet that was sealed with it, recorded ones \
                       included, and no other zone. A shorter `rekey` limits the number of such packets",
                tests: &[
                    (LICENSED, "a_duplicate_is_seen_but_is_not_fresh"),
                    (
                        INVARIANTS,
                        "control_5_a_tunnel_that_is_not_made_anew_is_seen",
                    ),
                ],
            },
        ],
    },
    Section {
        title: "How it ends",
        answers: &[
            Answer {
                question: "How do you revoke a licence?",
                text: "Remove it from `licences` at either end and run `strata reload`. From then on, this end seals \
                       packets as a whole, so the node opens none. Both ends rekey without the node, and no packet \
                       is lost. The node is asked to delete the old keys, and neither end waits for it",
                tests: &[
                    (
                        GRANT,
                        "licences_are_given_changed_and_taken_back_and_no_datagram_is_lost",
                    ),
                    (
                        GRANT,
                        "a_licence_that_one_end_takes_back_is_gone_and_both_say_so",
                    ),
                    (
                        REVOCATION,
                        "from_that_moment_on_the_end_that_took_it_back_seals_nothing_the_node_opens",
                    ),
                ],
            },
            Answer {
                question: "And if the other end does not answer?",
                text: "The packets it sends stay readable until it has received the revocation: for a minute at \
                       most, when the tunnel is closed and established again",
                tests: &[
                    (
                        GRANT,
                        "a_node_opens_nothing_while_the_other_end_does_not_answer",
                    ),
                    (
                        REVOCATION,
                        "a_tunnel_whose_peer_makes_no_new_keys_within_a_minute_ends_and_is_made_anew",
                    ),
                ],
            },
            Answer {
                question: "And if the mobile node moves to another node?",
                text: "With `at` in its licence, the node has no key for packets sealed after the move; with \
                       `handover = \"dkm\"`, after two seconds. Without `at`, it reads packets that pass it until \
                       the rekey",
                tests: &[
                    (
                        HANDOVER,
                        "pushed_keys_come_after_the_mobile_node_and_nobody_reads_behind_it",
                    ),
                    (
                        HANDOVER,
                        "an_agent_that_heard_of_no_revocation_has_keys_of_nothing",
                    ),
                    (HANDOVER, "with_dkm_nobody_reads_behind_the_mobile_node"),
                ],
            },
            Answer {
                question: "And if nodes share keys (`holders`)?",
                text: "Every holder of the keys can read whatever both ends seal with them until the rekey, wherever \
                       the mobile node is: the price of moves without a rekey. A rekey takes place before more nodes \
                       than `holders` would have the keys, counting all that ever received them; after an hour \
                       (`rekey`); and on `strata rekey`. If a mobile node moves back and forth among that many \
                       nodes, each of them can read all packets, and make headers that the others believe. A node \
                       that never had the keys reads nothing",
                tests: &[
                    (
                        HOLDERS,
                        "a_move_among_nodes_that_share_keys_is_no_other_spi_and_loses_nothing",
                    ),
                    (
                        HOLDERS,
                        "keys_are_made_anew_before_a_third_node_has_them_and_who_was_left_opens_nothing",
                    ),
                    (
                        SHARED,
                        "who_was_left_holds_the_keys_until_there_are_new_ones_and_who_never_had_them_does_not",
                    ),
                ],
            },
            Answer {
                question: "When does a licence end by itself?",
                text: "With the tunnel: after `strata down`, after the loss of an end, or after a rekey without this \
                       licence",
                tests: &[
                    (LICENCE, "down_takes_the_keys_away"),
                    (GRANTS, "when_the_tunnel_ends_the_node_forgets_its_keys"),
                ],
            },
            Answer {
                question: "What remains at a node that does not delete keys?",
                text: "Everything it has read, and the keys of packets that were sealed before. No revocation \
                       affects the past",
                tests: &[(
                    INVARIANTS,
                    "invariant_5_revocation_needs_no_help_of_the_node",
                )],
            },
        ],
    },
];
