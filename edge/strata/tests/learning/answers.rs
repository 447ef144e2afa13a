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

const AUDIT: &str = "edge/lab/tests/e2e/operate/audit.rs";
const ZONEMODE: &str = "edge/lab/tests/e2e/zones/zonemode.rs";
const BARE_ESP: &str = "pure/esp/tests/data_plane/bare.rs";
const CLASSIFY: &str = "pure/wire/src/classify.rs";
const COVER: &str = "pure/node/src/tests/cover.rs";
const DATA: &str = "pure/esp/tests/data_plane/attacks.rs";
const DSCP: &str = "edge/lab/tests/e2e/traffic/dscp.rs";
const ECN: &str = "edge/lab/tests/e2e/traffic/ecn.rs";
const GRANT: &str = "edge/lab/tests/e2e/zones/grant.rs";
const GRANTS: &str = "pure/node/src/tests/grants.rs";
const INJECT: &str = "edge/lab/tests/e2e/zones/inject.rs";
const INJECTING: &str = "pure/node/src/tests/inject.rs";
const INJECTION: &str = "pure/esp/tests/data_plane/injection.rs";
const HANDOVER: &str = "edge/lab/tests/e2e/mobility/handover.rs";
const HOLDERS: &str = "edge/lab/tests/e2e/mobility/holders.rs";
const SHARED: &str = "pure/node/tests/roaming/shared.rs";
const IDENTITY: &str = "pure/esp/tests/data_plane/identity.rs";
const INVARIANTS: &str = "pure/node/src/tests/invariants.rs";
const LAYOUT: &str = "edge/lab/tests/e2e/zones/layout.rs";
const MAP: &str = "edge/lab/tests/e2e/zones/map.rs";
const LEVEL: &str = "edge/lab/tests/e2e/zones/level.rs";
const LEVEL_ESP: &str = "pure/esp/tests/data_plane/level.rs";
const LEVEL_NODE: &str = "pure/node/src/tests/level.rs";
const LICENCE: &str = "edge/lab/tests/e2e/zones/licence.rs";
const LICENSED: &str = "pure/esp/tests/data_plane/licensed.rs";
const OVERLAY: &str = "pure/esp/tests/data_plane/overlay.rs";
const PADDING: &str = "pure/esp/tests/data_plane/padding.rs";
const RECOVERY: &str = "pure/node/src/tests/recovery.rs";
const REVOCATION: &str = "pure/node/src/tests/revocation.rs";
const TFC: &str = "edge/lab/tests/e2e/traffic/tfc.rs";
const SUITES: &str = "pure/esp/tests/data_plane/suites.rs";
const WRITE: &str = "edge/lab/tests/e2e/zones/write.rs";
const WRITING: &str = "pure/node/src/tests/write.rs";

/// All sections, in the order of the page.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Without a licence",
        answers: &[
            Answer {
                question: "What does a router see that has no licence?",
                text: "Outer addresses and ports, SPI, sequence number; the ECN field of the datagram inside, and its class of service \
                       where `dscp = \"copy\"`; and the map: which octets are in which zone, so the lengths of headers and \
                       payload. Plain ESP (`zones = \"refuse\"`) shows the length of the whole instead. With `tfc` nobody sees \
                       how long the payload or the whole is, and the map still says how long headers are, and of which \
                       packets everything is in the payload zone. A `map` that is fixed is on no packet: what is seen then is \
                       which of two SAs each packet is on, so whether its headers are as long as agreed",
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
                question: "And of a zone whose suite is AES-GMAC?",
                text: "All of it: GMAC keeps a zone from being changed, not from being read. `strata check` warns of it, and a \
                       payload zone cannot have it",
                tests: &[(
                    LAYOUT,
                    "a_zone_with_gmac_is_read_by_whoever_stands_on_the_way",
                )],
            },
            Answer {
                question: "And where `level` lets some go without encryption?",
                text: "All of those packets, and that they are such: whoever is on the way reads what both ends named in \
                       `integrity`, and changes nothing of it. It is so many packets in each direction and so many seconds \
                       from the first one on for each pair of keys, and as much again by new keys as often as `renewals` says, by default \
                       never; a new tunnel, or a new child, begins anew. All other packets are as without it. Licensed \
                       nodes are not told of that SA: they know no more of it than any router",
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
                text: "IP header and TCP or UDP header of each packet: who talks with whom, ports, sequence and acknowledgement \
                       numbers, windows, timestamps. So who visits what, when, and how much; not what is said. With a fixed \
                       `map` that is of packets whose headers are as long as that says, and nothing of all others",
                tests: &[
                    (LICENCE, "the_licensed_node_sees_the_flow_inside"),
                    (LICENSED, "the_headers_are_seen_and_the_payload_is_a_length"),
                    (MAP, "a_node_reads_what_the_map_fits_and_nothing_else"),
                ],
            },
            Answer {
                question: "And one for less?",
                text: "With `layout = [\"ip\", \"transport\", \"payload\"]` and a licence for `ip`: addresses and lengths, no ports \
                       and no connection. `octets 0-23` are IPv4's header and the ports without sequence numbers",
                tests: &[
                    (LAYOUT, "a_node_reads_the_zones_of_its_licence_and_no_other"),
                    (LICENSED, "the_ip_header_alone_shows_no_ports"),
                ],
            },
            Answer {
                question: "And in transport and BEET mode?",
                text: "TCP's or UDP's header alone, so ports, sequence numbers and windows; no IP header is in these packets, and \
                       no address inside is told to the node. In transport mode they are those outside, which everybody sees; in \
                       BEET mode it does not learn them. With a licence `strata check` wants a payload whose suite has no \
                       blocks: else nobody but its reader knows where a segment of TCP ends",
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
                question: "Which part of a header does it never see?",
                text: "TCP options that carry secrets (MPTCP keys and tokens, Fast Open cookies, TCP-AO, MD5) or a sum of the payload \
                       (MPTCP's checksum), and options of a kind that Strata does not know; and the transport checksum, which would tell 16 bits of the payload",
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
                text: "Fragments, packets with IP options or extension headers that are not known, malformed ones, and what is \
                       neither TCP nor UDP: they are in the payload zone as a whole",
                tests: &[
                    (CLASSIFY, "whatever_is_in_doubt_is_opaque"),
                    (LICENSED, "an_opaque_packet_is_not_opened"),
                ],
            },
            Answer {
                question: "Can it come to see payload?",
                text: "Only by a licence that names `payload` at both ends; `strata check` warns of it. No octet behind the \
                       headers is in another zone, whatever the packet and the layout",
                tests: &[
                    (IDENTITY, "no_octet_beyond_the_headers_is_ever_licensed"),
                    (LICENCE, "a_payload_licensed_by_name_is_opened"),
                    (GRANTS, "the_payload_zone_is_licensed_only_by_its_own_name"),
                ],
            },
            Answer {
                question: "How does it know the length of a payload that is padded?",
                text: "From the IP header, if the octets of it that say so are licensed: also where `tfc` hides it from everybody \
                       else. Without them it knows what everybody sees: the length to 16 octets, with `tfc` none at all",
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
                question: "Does it tell a dummy (`cover`) from a datagram?",
                text: "Yes, if it may read the first zone: that says so. Who may not sees one packet like all others",
                tests: &[
                    (PADDING, "a_dummy_is_no_segment_to_a_licensed_node"),
                    (COVER, "a_dummy_looks_like_a_datagram_from_outside"),
                ],
            },
            Answer {
                question: "Can it change what it reads, or make packets?",
                text: "It can seal a header that another reader believes, and none that an end accepts: the payload's ICV covers \
                       everything. It can drop, delay and repeat packets, as any router; repeated ones are dropped",
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
                text: "The window of TCP's header, and that it may lower alone: how much a sender has under way. It changes no \
                       octet of a packet: what it wants is behind it, sealed with a key of its own, and the endpoint does that. \
                       It sees what a licence to read shows",
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
                question: "Can a node do that without it, or after it is gone?",
                text: "No: what a reader or another router writes is dropped, and counted under a reason of its own. Where a \
                       licence was taken back nothing that is written counts from then on",
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
                question: "What may it say?",
                text: "To one end of a TCP connection what the other one has said last, once more, with the same window or a smaller \
                       one: a bare acknowledgement, sealed with a key of its own. So it can keep a connection while a mobile node \
                       is out of reach, or have a sender wait. It can have nobody believe that anything arrived, deliver \
                       nothing, and end nothing",
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
                text: "From a connection, for as long as `limit` of its `[stand_in]` says. Not from the gateway: whether a peer \
                       is there is said by its own packets alone",
                tests: &[
                    (INJECT, "nobody_is_stood_in_for_longer_than_the_limit"),
                    (
                        INJECTING,
                        "a_dead_peer_is_found_dead_though_it_is_stood_in_for",
                    ),
                ],
            },
            Answer {
                question: "Can a node do that without it, or after it is gone?",
                text: "No: it is dropped, and counted under a reason of its own",
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
        title: "Who gives it",
        answers: &[
            Answer {
                question: "Who decides?",
                text: "Both ends, each by its own configuration, for an identity that the node proves by certificate, raw public \
                       key or secret. What one end alone allows is not given, and both say so",
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
                question: "What of several nodes on one path?",
                text: "Each has zones of its own beside the first, by which all of them find the others. Two that would share the key \
                       of another zone are refused by `strata check`, unless `shared = true` says at both ends that they may: then \
                       each can make what the other believes, and what no end does",
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
                question: "Is it written down?",
                text: "With `[audit]`: each licence, each key that leaves and each that ends, at both ends and at the node. With \
                       `required = true` no key leaves before its line is on the disk",
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
                text: "Those of one tunnel between two rekeys, in both directions. The keys of other zones, of the tunnel before \
                       and of the one after do not follow from it",
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
                question: "How long may the node keep it?",
                text: "Eight hours, and while the tunnel is up it is given anew at half of that. A node that hears no more of \
                       its gateway forgets by itself",
                tests: &[
                    (GRANTS, "a_grant_expires_by_itself"),
                    (GRANTS, "a_grant_is_renewed_for_as_long_as_the_tunnel_is_up"),
                ],
            },
            Answer {
                question: "Does it survive a restart of the node?",
                text: "No: keys are in memory alone. The gateway gives them again",
                tests: &[(
                    RECOVERY,
                    "the_tunnel_and_the_licence_come_back_after_each_host_restarts",
                )],
            },
            Answer {
                question: "What of packets that somebody recorded?",
                text: "Whoever has the key of a zone opens that zone of every packet sealed with it, recorded ones too, and no \
                       other zone. A shorter `rekey` leaves less to it",
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
                question: "How is a licence taken away?",
                text: "Take it out of `licences` at either end and `strata reload`. From that moment this end seals packets as a whole, so \
                       that the node opens none; both make new keys that it does not get, and no packet is lost. The node is \
                       told to forget the old ones, and nobody waits for it",
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
                text: "What it sends stays readable until it has heard: a minute at most, then it is left and the tunnel made anew",
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
                question: "And when the mobile node leaves it for another one?",
                text: "With `at` in its licence: it has keys of nothing that is sealed later, by `handover = \"dkm\"` after two seconds. \
                       Without `at` it reads what passes it until there are new keys",
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
                question: "And where nodes share keys (`holders`)?",
                text: "Whoever has them, there or not, can read what both ends seal in them until there are new ones: that is the price of moves \
                       that need none. There are new ones before more nodes would have had them than `holders` says, each that was \
                       ever given them counting; after an hour (`rekey`); and when `strata rekey` says so. So where a mobile node goes to and fro \
                       among so many nodes, each of them can read all of it, and make headers that the others believe. \
                       A node that never had them reads nothing",
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
                question: "When does it end by itself?",
                text: "With the tunnel: `strata down`, an end that is gone, new keys that it is not licensed for",
                tests: &[
                    (LICENCE, "down_takes_the_keys_away"),
                    (GRANTS, "when_the_tunnel_ends_the_node_forgets_its_keys"),
                ],
            },
            Answer {
                question: "What does a node keep that does not forget?",
                text: "What it read, and the keys of packets that were sealed before: as after every revocation, the past is told",
                tests: &[(
                    INVARIANTS,
                    "invariant_5_revocation_needs_no_help_of_the_node",
                )],
            },
        ],
    },
];
