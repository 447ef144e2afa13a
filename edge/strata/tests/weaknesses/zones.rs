//! Attacks on zoned packets, by attacker. They concern the design and the data plane of Strata
//! alone, so no other implementation was affected yet.

use crate::list::Answer::{Nothing, Tests};
use crate::list::Weakness;

const ACKS: &str = "pure/pep/tests/hostile.rs";
const AGREEMENT: &str = "pure/ike/src/tests/zones.rs";
const CLASSIFY: &str = "pure/wire/src/classify.rs";
const DATA: &str = "pure/esp/tests/data_plane/attacks.rs";
const INJECT: &str = "lab/tests/e2e/zones/inject.rs";
const INJECTING: &str = "pure/node/src/tests/inject.rs";
const INJECTION: &str = "pure/esp/tests/data_plane/injection.rs";
const IDENTITY: &str = "pure/esp/tests/data_plane/identity.rs";
const INVARIANTS: &str = "pure/node/src/tests/invariants.rs";
const IKE_LEVEL: &str = "pure/ike/src/tests/level.rs";
const LEVEL: &str = "pure/esp/tests/data_plane/level.rs";
const LEDGER: &str = "pure/node/src/tests/ledger.rs";
const LICENCE: &str = "lab/tests/e2e/zones/licence.rs";
const REVOCATION: &str = "pure/node/src/tests/revocation.rs";
const LICENSED: &str = "pure/esp/tests/data_plane/licensed.rs";
const FIXED: &str = "pure/esp/tests/data_plane/fixed.rs";
const OVERLAY: &str = "pure/esp/tests/data_plane/overlay.rs";
const PADDING: &str = "pure/esp/tests/data_plane/padding.rs";
const TFC: &str = "lab/tests/e2e/traffic/tfc.rs";
const HANDOVER: &str = "lab/tests/e2e/mobility/handover.rs";
const ROAMING: &str = "pure/node/tests/roaming/attacks.rs";
const HOLDERS: &str = "lab/tests/e2e/mobility/holders.rs";
const SHARED: &str = "pure/node/tests/roaming/shared.rs";
const MOVING: &str = "pure/node/tests/roaming/handover.rs";
const LAB_WALKS: &str = "lab/tests/e2e/mobility/walks.rs";
const WALKS: &str = "pure/node/tests/roaming/walks.rs";
const SLOT: &str = "pure/ike/src/tests/slot.rs";
const MIGRATION: &str = "pure/node/src/tests/migration.rs";
const WINDOW: &str = "pure/ike/src/tests/window.rs";
const WRITE: &str = "lab/tests/e2e/zones/write.rs";
const WRITING: &str = "pure/node/src/tests/write.rs";

/// All attacks.
pub const ZONES: &[Weakness] = &[
    Weakness {
        number: 1,
        seen: "anybody on the path",
        what: "puts the header zone of one packet before the payload zone of another",
        answer: Tests(&[
            (DATA, "a_zone_spliced_from_another_packet_is_dropped"),
            (FIXED, "a_packet_of_one_is_none_of_the_other"),
            (
                INVARIANTS,
                "invariant_3_no_zone_is_lifted_and_only_headers_are_in_a_licensed_one",
            ),
        ]),
    },
    Weakness {
        number: 2,
        seen: "a licensed node",
        what: "the same with the key of the header zone, and headers of its own making",
        answer: Tests(&[(
            DATA,
            "a_node_that_seals_a_changed_header_zone_with_its_key_is_found_out_by_the_payloads_icv",
        )]),
    },
    Weakness {
        number: 3,
        seen: "whoever sees two packets with one nonce",
        what: "takes the difference of their texts, and makes packets of its own",
        answer: Tests(&[
            (
                LEDGER,
                "no_key_and_nonce_pair_is_used_twice_over_a_day_of_losses_and_restarts",
            ),
            (INVARIANTS, "invariant_1_no_key_and_nonce_pair_twice"),
        ]),
    },
    Weakness {
        number: 4,
        seen: "a node that may read",
        what: "changes what it may read",
        answer: Tests(&[
            (
                DATA,
                "a_node_that_seals_a_changed_header_zone_with_its_key_is_found_out_by_the_payloads_icv",
            ),
            (DATA, "every_single_bit_flip_is_dropped"),
        ]),
    },
    Weakness {
        number: 5,
        seen: "anybody on the path",
        what: "moves a boundary between zones, so that payload is where a node reads",
        answer: Tests(&[
            (DATA, "a_changed_map_is_dropped"),
            (DATA, "maps_with_words_against_the_rules_are_dropped"),
            (FIXED, "a_map_added_or_taken_away_is_noticed"),
            (
                FIXED,
                "ends_with_different_fixed_maps_open_nothing_of_each_other",
            ),
            (IDENTITY, "no_octet_beyond_the_headers_is_ever_licensed"),
        ]),
    },
    Weakness {
        number: 6,
        seen: "anybody on the path",
        what: "takes the zones out of what the ends agree on, or gives a node more of them",
        answer: Tests(&[
            (
                INVARIANTS,
                "invariant_6_nobody_between_the_ends_can_talk_them_out_of_zones",
            ),
            (
                AGREEMENT,
                "an_initiator_that_requires_zones_takes_a_plain_tunnel_down",
            ),
            (AGREEMENT, "zone_keys_bind_the_agreement_and_both_spis"),
        ]),
    },
    Weakness {
        number: 7,
        seen: "another node",
        what: "gets the keys that were meant for a licensed one, or those of another tunnel",
        answer: Tests(&[
            (LICENCE, "no_key_leaves_to_a_node_of_another_identity"),
            (
                INVARIANTS,
                "invariant_4_a_node_learns_only_keys_that_both_ends_license",
            ),
            (
                LICENSED,
                "gateways_that_chose_the_same_spi_are_told_apart_by_the_icv",
            ),
        ]),
    },
    Weakness {
        number: 8,
        seen: "anybody on the path",
        what: "sends a packet back to where it came from",
        answer: Tests(&[
            (DATA, "a_packet_reflected_to_its_sender_is_dropped"),
            (LICENSED, "the_other_direction_is_told_apart"),
        ]),
    },
    Weakness {
        number: 9,
        seen: "anybody on the path, a licensed node",
        what: "sends packets again, or acknowledgements out of turn, to either end or to SNOOP",
        answer: Tests(&[
            (
                DATA,
                "a_replayed_packet_is_delivered_once_also_within_one_batch",
            ),
            (LICENSED, "a_duplicate_is_seen_but_is_not_fresh"),
            (LICENSED, "a_renewed_grant_makes_no_old_packet_fresh_again"),
            (
                ACKS,
                "forged_acknowledgements_cost_a_bounded_number_of_packets",
            ),
        ]),
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
        answer: Tests(&[
            (
                DATA,
                "a_packet_moved_to_another_sa_is_dropped_even_if_that_has_the_same_keys",
            ),
            (
                DATA,
                "packets_of_one_kind_never_open_under_an_sa_of_the_other",
            ),
            (AGREEMENT, "zone_keys_bind_the_agreement_and_both_spis"),
        ]),
    },
    Weakness {
        number: 12,
        seen: "anybody on the path",
        what: "cuts the last zone off, or the first, so that what is left counts as a whole packet",
        answer: Tests(&[
            (DATA, "a_changed_length_is_dropped"),
            (DATA, "stripping_the_header_zone_makes_no_opaque_packet"),
            (DATA, "bodies_in_another_order_are_dropped"),
        ]),
    },
    Weakness {
        number: 13,
        seen: "a program inside",
        what: "shapes packets (tiny fragments, options, extension headers, a header that lies) so that \
               payload counts as header, or a secret as something public",
        answer: Tests(&[
            (CLASSIFY, "whatever_is_in_doubt_is_opaque"),
            (CLASSIFY, "no_octet_beyond_the_headers_is_ever_in_an_extent"),
            (CLASSIFY, "secret_options_are_cut_out_and_public_ones_stay"),
            (
                CLASSIFY,
                "the_checksum_of_a_data_sequence_signal_is_secret_and_its_numbers_are_not",
            ),
            (
                CLASSIFY,
                "every_option_of_another_kind_or_length_than_these_is_secret",
            ),
            (
                CLASSIFY,
                "octets_hidden_behind_the_end_of_the_options_make_it_opaque",
            ),
            (IDENTITY, "no_octet_beyond_the_headers_is_ever_licensed"),
            (
                "pure/wire/src/rtp.rs",
                "on_a_port_that_was_not_agreed_nothing_is_header",
            ),
        ]),
    },
    Weakness {
        number: 14,
        seen: "a node whose licence is gone",
        what: "goes on with the keys it has, and keeps the ends from making new ones, or one of them from \
               knowing that",
        answer: Tests(&[
            (
                REVOCATION,
                "from_that_moment_on_the_end_that_took_it_back_seals_nothing_the_node_opens",
            ),
            (
                REVOCATION,
                "the_other_end_obeys_as_soon_as_it_is_asked_for_new_keys",
            ),
            (
                REVOCATION,
                "where_the_payload_was_licensed_nothing_is_sealed_until_there_are_new_keys",
            ),
            (
                REVOCATION,
                "a_tunnel_whose_peer_makes_no_new_keys_within_a_minute_ends_and_is_made_anew",
            ),
        ]),
    },
    Weakness {
        number: 15,
        seen: "anybody on the path",
        what: "learns from the length of each packet, and from silence, what is said: a key pressed, a page, a voice that speaks",
        answer: Tests(&[
            (PADDING, "all_packets_of_an_sa_are_of_one_length"),
            (PADDING, "buckets_leave_five_lengths_at_most"),
            (
                PADDING,
                "a_datagram_whose_map_would_make_it_longer_than_all_others_is_opaque",
            ),
            (TFC, "in_zones_they_are_too"),
            (TFC, "silence_is_covered_by_packets_of_the_same_length"),
        ]),
    },
    Weakness {
        number: 16,
        seen: "an endpoint's peer, a buffer's last user",
        what: "has padding tell what it should not: octets of another tunnel, a datagram that ends elsewhere, a segment that is none",
        answer: Tests(&[
            (PADDING, "padding_is_zeros_whatever_was_in_the_buffer"),
            (PADDING, "a_padded_acknowledgement_has_no_payload"),
            (PADDING, "a_dummy_is_no_segment_to_a_licensed_node"),
            (PADDING, "nobody_on_the_way_changes_padding"),
        ]),
    },
    Weakness {
        number: 17,
        seen: "a node that may read, or anybody on the path",
        what: "writes: an overlay without the right, of another packet, of another direction, or one that was stripped",
        answer: Tests(&[
            (OVERLAY, "a_reader_that_writes_is_dropped"),
            (OVERLAY, "where_nobody_may_write_an_overlay_is_dropped"),
            (OVERLAY, "a_moved_overlay_is_dropped"),
            (
                OVERLAY,
                "an_overlay_of_the_other_direction_or_of_another_grant_is_dropped",
            ),
            (OVERLAY, "a_stripped_overlay_leaves_what_was_sealed"),
        ]),
    },
    Weakness {
        number: 18,
        seen: "a node that may write",
        what: "writes beyond its right: another field, a window that is raised, a text that is none",
        answer: Tests(&[
            (OVERLAY, "a_writer_outside_its_mask_is_dropped"),
            (OVERLAY, "a_text_that_is_none_is_dropped"),
        ]),
    },
    Weakness {
        number: 19,
        seen: "a node that may write, and was ended in the middle of it",
        what: "counts anew under a key that it had, and so uses a nonce twice",
        answer: Tests(&[
            (
                OVERLAY,
                "no_number_seals_twice_over_grants_that_come_again_or_anew",
            ),
            (
                WRITING,
                "no_number_comes_twice_over_restarts_of_the_node_renewals_and_rekeys",
            ),
            (
                WRITE,
                "no_number_comes_twice_over_a_crash_of_the_writer_and_a_lossy_hop",
            ),
        ]),
    },
    Weakness {
        number: 20,
        seen: "anybody on the path",
        what: "makes or changes packets that are not encrypted, or has everything be so: the paper switches to plaintext",
        answer: Tests(&[
            (
                LEVEL,
                "who_reads_a_packet_without_encryption_can_change_none_of_its_octets",
            ),
            (LEVEL, "a_packet_of_one_level_is_none_of_another"),
            (
                LEVEL,
                "without_a_grant_nothing_goes_without_encryption_whatever_an_operator_wants",
            ),
            (
                IKE_LEVEL,
                "nothing_goes_without_encryption_unless_both_ends_grant_it_for_the_same_datagrams",
            ),
            (IKE_LEVEL, "keys_bind_what_may_go_without_encryption"),
        ]),
    },
    Weakness {
        number: 21,
        seen: "a peer, or whoever has taken its place",
        what: "sends without encryption what was not granted, more, for longer, or again and again by new keys",
        answer: Tests(&[
            (
                LEVEL,
                "a_peer_that_sends_more_than_was_granted_is_not_heard_and_that_is_told_once",
            ),
            (
                LEVEL,
                "a_peer_that_goes_on_for_longer_than_was_granted_is_not_heard",
            ),
            (LEVEL, "a_peer_that_sends_what_was_not_granted_is_not_heard"),
            (
                IKE_LEVEL,
                "new_keys_renew_a_grant_as_often_as_both_ends_said_and_then_there_is_none",
            ),
        ]),
    },
    Weakness {
        number: 22,
        seen: "a node that may read, or anybody on the path",
        what: "injects: without the right, what came before, in the other direction, or under a grant that is over",
        answer: Tests(&[
            (INJECTION, "a_reader_and_a_writer_inject_nothing"),
            (INJECTION, "without_a_licence_nothing_is_heard"),
            (INJECTION, "what_was_injected_comes_once"),
            (INJECTION, "what_is_sealed_with_another_key_is_dropped"),
            (INJECTION, "a_grant_whose_window_is_forgotten_is_over"),
            (
                INJECTION,
                "every_octet_of_what_was_injected_is_authenticated",
            ),
        ]),
    },
    Weakness {
        number: 23,
        seen: "a node that may inject",
        what: "makes a sender believe that something arrived, ends a connection (RST), begins one, delivers data, or has what comes \
               later refused by a timestamp from the future",
        answer: Tests(&[
            (
                INJECTION,
                "a_node_that_says_more_than_the_peer_has_said_is_dropped",
            ),
            (
                INJECTION,
                "nothing_is_ever_believed_that_the_peer_has_not_said",
            ),
            (INJECTION, "what_is_no_segment_of_tcp_is_dropped"),
            (
                INJECTION,
                "on_a_connection_on_which_the_peer_has_not_spoken_nothing_is_believed",
            ),
        ]),
    },
    Weakness {
        number: 24,
        seen: "a node that may inject",
        what: "makes a dead peer look alive, or an SA confirmed that its peer does not have",
        answer: Tests(&[
            (INJECTION, "what_is_injected_says_nothing_about_the_peer"),
            (
                INJECTING,
                "a_dead_peer_is_found_dead_though_it_is_stood_in_for",
            ),
        ]),
    },
    Weakness {
        number: 25,
        seen: "a node that may inject, and was ended in the middle of it or whose licence is over",
        what: "counts anew under a key that it had, or goes on",
        answer: Tests(&[
            (
                INJECTING,
                "no_number_comes_twice_over_restarts_of_the_node_renewals_and_rekeys",
            ),
            (
                INJECT,
                "no_number_comes_twice_over_a_crash_of_the_node_and_a_lossy_hop",
            ),
            (
                INJECTION,
                "where_a_licence_was_taken_back_nothing_is_believed",
            ),
            (
                INJECT,
                "a_licence_to_inject_that_is_taken_back_ends_during_an_outage",
            ),
        ]),
    },
    Weakness {
        number: 26,
        seen: "anybody on the path",
        what: "has a link look bad, so that packets show their headers to who is licensed",
        answer: Tests(&[
            (LEVEL, "forged_and_repeated_packets_make_no_link_bad"),
            (LEVEL, "on_a_good_link_packets_are_opaque_until_it_is_bad"),
        ]),
    },
    Weakness {
        number: 27,
        seen: "a node that a mobile node has left, keeps all that it was given, and hears of nothing",
        what: "reads what is sealed later, there or when the mobile node comes back",
        answer: Tests(&[
            (
                HANDOVER,
                "an_agent_that_heard_of_no_revocation_has_keys_of_nothing",
            ),
            (
                ROAMING,
                "an_agent_that_ignores_revoke_has_the_key_of_nothing_that_comes_later",
            ),
            (MOVING, "who_comes_back_finds_other_keys"),
            (WALKS, "walks_end_with_ends_that_agree"),
            (LAB_WALKS, "walks_by_push_end_with_ends_that_agree"),
        ]),
    },
    Weakness {
        number: 28,
        seen: "a node that is given keys before a mobile node comes",
        what: "reads what is sealed for the node where it is",
        answer: Tests(&[
            (
                ROAMING,
                "a_neighbour_that_is_never_visited_has_the_key_of_nothing",
            ),
            (
                SLOT,
                "each_slot_licenses_its_own_node_and_has_keys_of_its_own",
            ),
        ]),
    },
    Weakness {
        number: 29,
        seen: "anybody on the path",
        what: "has keys given to a node where the mobile node is not, by a registration or an advertisement",
        answer: Tests(&[
            (ROAMING, "a_registration_that_is_replayed_moves_no_key"),
            (ROAMING, "an_advertisement_that_is_spoofed_moves_no_key"),
        ]),
    },
    Weakness {
        number: 30,
        seen: "a gateway that gives keys to whom it likes",
        what: "has a node read that the mobile node does not license",
        answer: Tests(&[
            (
                SLOT,
                "an_offer_of_a_node_that_the_other_end_does_not_license_is_refused_and_told",
            ),
            (
                MOVING,
                "a_node_that_one_end_does_not_license_gets_no_key_by_any_way",
            ),
            (SLOT, "two_nodes_in_one_offer_or_none_are_refused"),
            (
                SLOT,
                "an_offer_of_nodes_that_the_other_end_does_not_have_share_a_slot_is_refused_and_told",
            ),
        ]),
    },
    Weakness {
        number: 31,
        seen: "a node that shares keys with others, and that a mobile node has left",
        what: "reads on by the keys that it has (the paper rekeys when more nodes have them than may)",
        answer: Tests(&[
            (
                HOLDERS,
                "keys_are_made_anew_before_a_third_node_has_them_and_who_was_left_opens_nothing",
            ),
            (
                SHARED,
                "who_was_left_holds_the_keys_until_there_are_new_ones_and_who_never_had_them_does_not",
            ),
            (
                SHARED,
                "an_agent_that_was_left_and_started_anew_is_given_nothing_and_counts",
            ),
            (
                WALKS,
                "walks_among_agents_that_share_keys_end_with_ends_that_agree",
            ),
        ]),
    },
    Weakness {
        number: 32,
        seen: "a node that shares keys with others",
        what: "has keys made anew without end, or given to many, by naming ever other neighbours",
        answer: Tests(&[
            (
                SHARED,
                "an_agent_that_names_ever_other_neighbours_has_keys_made_anew_every_two_seconds_at_most",
            ),
            (
                SHARED,
                "more_neighbours_than_may_hold_keys_get_none_and_that_is_told",
            ),
        ]),
    },
    Weakness {
        number: 33,
        seen: "a node with a token, or anybody who has seen one",
        what: "asks for keys with it again, when it is old, in another node's place, after new keys, or with more zones in it; or makes one",
        answer: Tests(&[
            (MIGRATION, "a_token_is_good_once"),
            (
                MIGRATION,
                "a_token_is_good_for_some_seconds_by_clocks_that_differ_by_some",
            ),
            (
                MIGRATION,
                "a_token_for_another_node_is_of_no_use_to_who_has_it",
            ),
            (MIGRATION, "a_token_of_before_is_of_no_use_for_new_keys"),
            (
                MIGRATION,
                "a_token_that_the_mobile_node_has_not_made_is_good_for_nothing",
            ),
            (MIGRATION, "a_node_gives_nothing_that_it_does_not_hold"),
            (
                MIGRATION,
                "what_visitors_give_an_agent_that_is_no_token_of_a_neighbours_is_counted_and_no_more",
            ),
        ]),
    },
    Weakness {
        number: 34,
        seen: "a node that had keys of another one by a token, and one that gave them",
        what: "reads on when the two seconds are over, though new keys do not come, nothing comes of the move, or the mobile node goes to and fro",
        answer: Tests(&[
            (
                MIGRATION,
                "two_seconds_after_the_move_neither_node_reads_if_there_are_no_new_keys",
            ),
            (
                MIGRATION,
                "if_nothing_comes_of_a_move_the_new_keys_are_there_in_time",
            ),
            (
                MIGRATION,
                "what_goes_to_and_fro_is_not_sealed_for_the_node_before_for_longer",
            ),
            (
                MIGRATION,
                "a_move_that_is_late_is_not_sealed_for_the_node_before_for_longer",
            ),
            (
                MIGRATION,
                "who_comes_back_in_time_leaves_the_slot_all_the_same",
            ),
            (
                HANDOVER,
                "with_dkm_the_next_agent_reads_what_runs_by_the_keys_of_the_one_before",
            ),
            (WALKS, "walks_end_with_ends_that_agree"),
        ]),
    },
    Weakness {
        number: 35,
        seen: "a mobile node or a gateway that gives tokens to whom it likes",
        what: "has a node get keys of another one that the other end does not license, or in another zone",
        answer: Tests(&[
            (
                MIGRATION,
                "a_node_that_one_end_does_not_license_gets_no_keys_from_another",
            ),
            (
                MIGRATION,
                "a_node_that_both_ends_license_for_another_zone_gets_none_of_these",
            ),
        ]),
    },
    Weakness {
        number: 36,
        seen: "somebody on the link of an agent",
        what: "fills what it remembers of tokens, so that it asks for no keys by those of mobile nodes",
        answer: Tests(&[
            (
                MIGRATION,
                "tokens_of_strangers_leave_room_for_those_of_mobile_nodes",
            ),
            (
                MIGRATION,
                "what_visitors_give_an_agent_that_is_no_token_of_a_neighbours_is_counted_and_no_more",
            ),
        ]),
    },
    Weakness {
        number: 37,
        seen: "a node whose licence is gone",
        what: "reads what is sealed with keys that it had before, or gets some that waited for it",
        answer: Tests(&[
            (
                MOVING,
                "a_slot_whose_payload_is_not_licensed_any_more_is_sealed_in_no_more",
            ),
            (
                REVOCATION,
                "where_the_payload_was_licensed_nothing_is_sealed_until_there_are_new_keys",
            ),
            (
                WINDOW,
                "a_grant_that_is_taken_back_while_it_waits_does_not_leave",
            ),
        ]),
    },
];
