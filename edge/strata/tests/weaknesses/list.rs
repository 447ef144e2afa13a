//! Known weaknesses of other implementations, grouped by subject.

/// A weakness that affected another implementation, or a possible attack.
#[derive(Clone, Copy)]
pub struct Weakness {
    /// Number in the list, from 1.
    pub number: usize,
    /// Source of the weakness, or position of the attacker.
    pub seen: &'static str,
    /// Description of the weakness.
    pub what: &'static str,
    /// Protection of Strata.
    pub answer: Answer,
}

/// Reason why Strata is not affected.
#[derive(Clone, Copy)]
pub enum Answer {
    /// Test functions: file and name.
    Tests(&'static [(&'static str, &'static str)]),
    /// An explanation: the weakness cannot exist here.
    Nothing(&'static str),
}

use Answer::{Nothing, Tests};

const AGREEMENT: &str = "pure/crypto/src/agreement.rs";
const AGREED: &str = "pure/ike/src/tests/agreement.rs";
const HOSTILE: &str = "pure/crypto/tests/hostile.rs";
const IKE_SIGNATURE: &str = "pure/ike/src/signature.rs";
const IKE_SUITES: &str = "pure/ike/src/tests/suites.rs";
const UNPROVED: &str = "edge/stratad/src/unproved.rs";
const UNPROVED_QUEUE: &str = "edge/stratad/src/unproved/queue.rs";
const JOIN: &str = "edge/os/src/join.rs";
const ACKNOWLEDGEMENTS: &str = "pure/pep/tests/acknowledgements.rs";
const HOLDINGS: &str = "pure/node/src/tests/holdings.rs";
const NEGOTIATION: &str = "pure/ike/src/tests/negotiation.rs";
const STRANGERS: &str = "pure/ike/src/tests/strangers.rs";
const GUARD: &str = "lab/tests/e2e/operate/clear.rs";
const RESTORE: &str = "lab/tests/e2e/operate/restore.rs";
const ATTACK: &str = "pure/ike/src/tests/attack.rs";
const CERTIFICATES: &str = "pure/ike/src/tests/certificates.rs";
const COOKIE: &str = "pure/ike/src/tests/cookie.rs";
const DATA: &str = "pure/esp/tests/data_plane/attacks.rs";
const AUTHENTIC: &str = "pure/esp/tests/data_plane/authentic.rs";
const FAULTS: &str = "edge/config/src/tests/faults.rs";
const FRAGMENT: &str = "pure/ike/src/tests/fragment.rs";
const FLOOD: &str = "lab/tests/e2e/operate/flood.rs";
const GROUPS: &str = "pure/ike/src/tests/groups.rs";
const FORGERIES: &str = "pure/mobility/src/mobile_ip/tests/mobile_node/forgeries.rs";
const LINK: &str = "pure/mobility/src/mobile_ip/tests/foreign_agent/link.rs";
const HANDOVER: &str = "pure/mobility/src/mobile_ip/tests/handover.rs";
const INSIDER: &str = "pure/node/tests/insider/main.rs";
const INVARIANTS: &str = "pure/node/src/tests/invariants.rs";
const LEAK: &str = "lab/tests/e2e/operate/leak.rs";
const LOSS: &str = "pure/ike/src/tests/loss.rs";
const MOBIKE: &str = "pure/ike/src/tests/mobike.rs";
const ADDRESSES: &str = "pure/ike/src/extension/mobike.rs";
const NAT: &str = "pure/ike/src/tests/nat.rs";
const OURS: &str = "pure/ike/src/tests/weaknesses.rs";
const PMTU: &str = "lab/tests/e2e/traffic/pmtu.rs";
const PROBES: &str = "lab/tests/e2e/traffic/probes.rs";
const SEARCH: &str = "pure/node/src/path_mtu/search/tests.rs";
const NODE_PMTU: &str = "pure/node/src/tests/path_mtu.rs";
const ROOM: &str = "pure/esp/tests/data_plane/room.rs";
const PLAIN: &str = "pure/esp/src/plain.rs";
const PROPOSAL: &str = "pure/ike/src/tests/proposal.rs";
const REFUSAL: &str = "pure/ike/src/tests/refusal.rs";
const RAW_KEY: &str = "pure/crypto/src/raw_key.rs";
const REPLAY: &str = "pure/esp/src/replay.rs";
const SELECTORS: &str = "pure/ike/src/selectors.rs";
const SINGLE: &str = "lab/tests/e2e/operate/single.rs";
const SIGNATURE: &str = "pure/crypto/src/signature.rs";
const STATES: &str = "pure/node/tests/flood.rs";
const SUITES: &str = "lab/tests/e2e/interop/suites.rs";
const TUNNELS_IN_UDP: &str = "pure/mobility/src/mobile_ip/tests/nat.rs";
const TRUST: &str = "pure/crypto/src/trust.rs";
const WINDOW: &str = "pure/ike/src/tests/window.rs";
const RESPONSES: &str = "pure/ike/src/window/responses.rs";
const WIRE: &str = "pure/wire/src/ike/tests.rs";

const NO_EAP: &str = "EAP and RADIUS are not spoken: an IKE_AUTH request without AUTH is refused";

/// All weaknesses.
pub const WEAKNESSES: &[Weakness] = &[
    // Parsing, memory, assertions.
    Weakness {
        number: 1,
        seen: "CVE-2014-9221, strongSwan",
        what: "a key exchange method on the wire meant something inside only",
        answer: Tests(&[
            (PROPOSAL, "every_other_group_is_just_not_ours"),
            (
                PROPOSAL,
                "an_unknown_type_or_attribute_makes_a_proposal_unacceptable",
            ),
        ]),
    },
    Weakness {
        number: 2,
        seen: "CVE-2015-3991, strongSwan",
        what: "payloads of IKEv1 in messages of IKEv2",
        answer: Tests(&[(OURS, "a_payload_of_any_type_in_any_message_is_harmless")]),
    },
    Weakness {
        number: 3,
        seen: "CVE-2026-12413, Libreswan",
        what: "one payload more than the limit, beside a fragment, failed an assertion",
        answer: Tests(&[(WIRE, "the_number_of_payloads_is_bounded")]),
    },
    Weakness {
        number: 4,
        seen: "CVE-2013-6076, strongSwan",
        what: "a crafted fragment dereferenced a null pointer",
        answer: Tests(&[
            (WIRE, "a_fragment_too_short_for_its_numbers_is_an_error"),
            (
                WIRE,
                "a_fragment_number_of_zero_or_beyond_the_total_is_an_error",
            ),
            (
                FRAGMENT,
                "nonsense_in_fragments_ends_the_sa_as_it_does_whole",
            ),
        ]),
    },
    Weakness {
        number: 5,
        seen: "CVE-2016-1287, Cisco ASA",
        what: "arithmetic over lengths of fragments overflowed a buffer",
        answer: Tests(&[
            (
                FRAGMENT,
                "more_octets_than_any_message_has_are_not_gathered",
            ),
            (WIRE, "a_fragment_too_short_for_its_numbers_is_an_error"),
        ]),
    },
    Weakness {
        number: 6,
        seen: "Cisco IOS, 2016",
        what: "fragments of messages that never become whole filled the memory",
        answer: Tests(&[
            (FRAGMENT, "a_forged_fragment_is_not_stored"),
            (
                FRAGMENT,
                "fragments_that_stay_incomplete_are_thrown_away_in_time",
            ),
            (
                FRAGMENT,
                "more_octets_than_any_message_has_are_not_gathered",
            ),
            (FRAGMENT, "a_stranger_is_gone_with_its_fragments"),
        ]),
    },
    Weakness {
        number: 7,
        seen: "CVE-2015-3204, Libreswan",
        what: "names of many unassigned values overflowed the buffer of a log line",
        answer: Tests(&[
            (
                OURS,
                "an_identity_of_any_length_is_refused_like_a_short_one",
            ),
            (
                "pure/model/src/identity.rs",
                "what_a_peer_makes_long_or_wild_is_shown_short_and_tame",
            ),
            (REFUSAL, "reasons_fit_one_line_and_say_what_to_do"),
        ]),
    },
    Weakness {
        number: 8,
        seen: "CVE-2022-23094, Libreswan",
        what: "logging a packet that belongs to no SA dereferenced a null pointer",
        answer: Tests(&[
            (ATTACK, "ike_auth_without_a_beginning_belongs_to_no_sa"),
            (ATTACK, "every_exchange_type_in_every_state_changes_nothing"),
        ]),
    },
    Weakness {
        number: 9,
        seen: "CVE-2020-1763, Libreswan",
        what: "the same, by an unauthenticated INFORMATIONAL",
        answer: Tests(&[(ATTACK, "unprotected_notifies_and_deletes_end_nothing")]),
    },
    Weakness {
        number: 10,
        seen: "CVE-2023-23009, Libreswan",
        what: "a malformed traffic selector payload was freed twice",
        answer: Tests(&[
            (WIRE, "a_length_field_that_lies_is_an_error"),
            (OURS, "a_payload_of_any_type_in_any_message_is_harmless"),
        ]),
    },
    Weakness {
        number: 11,
        seen: "VPP ab63c83",
        what: "the length and count of traffic selectors were believed",
        answer: Tests(&[
            (WIRE, "a_selector_of_an_unknown_type_is_left_out"),
            (WIRE, "a_selector_that_ends_before_it_starts_is_an_error"),
            (SELECTORS, "the_answer_is_bounded"),
        ]),
    },
    Weakness {
        number: 12,
        seen: "VPP 58e3a98, c3f677c",
        what: "notifies with too little data, or an SPI of another size, were read beyond their end",
        answer: Tests(&[(OURS, "a_notify_of_any_kind_and_length_is_harmless")]),
    },
    Weakness {
        number: 13,
        seen: "CVE-2016-5391, Libreswan",
        what: "an IKE proposal without a key exchange",
        answer: Tests(&[
            (
                PROPOSAL,
                "an_answer_that_leaves_a_choice_or_was_not_offered_is_refused",
            ),
            (INSIDER, "a_peer_that_speaks_at_random_confuses_nobody"),
        ]),
    },
    Weakness {
        number: 14,
        seen: "CVE-2013-6467, Libreswan",
        what: "payloads that have to be there were missing",
        answer: Tests(&[
            (
                ATTACK,
                "each_missing_or_doubled_payload_of_the_first_message_is_noticed",
            ),
            (
                "pure/ike/src/exchange/rules.rs",
                "a_payload_that_is_missing_or_doubled_is_noticed",
            ),
        ]),
    },
    Weakness {
        number: 15,
        seen: "CVE-2016-3071, Libreswan",
        what: "a transform that was advertised and not there was chosen",
        answer: Tests(&[
            (
                PROPOSAL,
                "every_transform_that_is_offered_can_be_chosen_alone",
            ),
            (
                IKE_SUITES,
                "every_suite_protects_both_sas_and_their_successors_over_a_bad_hop",
            ),
            (GROUPS, "every_group_works"),
            (
                "pure/ike/src/tests/kem.rs",
                "every_method_connects_and_the_responders_order_decides",
            ),
        ]),
    },
    Weakness {
        number: 16,
        seen: "CVE-2024-3652, Libreswan",
        what: "a proposal whose keys have no octets failed an assertion",
        answer: Tests(&[
            (
                PROPOSAL,
                "of_all_combinations_of_ciphers_and_integrity_those_of_our_suites_alone_are_chosen",
            ),
            (PROPOSAL, "none_may_stand_for_integrity_beside_an_aead"),
            (
                IKE_SUITES,
                "every_suite_protects_both_sas_and_their_successors_over_a_bad_hop",
            ),
        ]),
    },
    Weakness {
        number: 17,
        seen: "CVE-2013-6075, strongSwan",
        what: "an identity was compared as far as the shorter one goes",
        answer: Tests(&[(
            OURS,
            "an_identity_that_only_resembles_a_known_one_is_nobodys",
        )]),
    },
    Weakness {
        number: 18,
        seen: "CVE-2013-5018, strongSwan",
        what: "an odd identity was taken for ASN.1",
        answer: Tests(&[
            (
                OURS,
                "an_identity_that_only_resembles_a_known_one_is_nobodys",
            ),
            (OURS, "a_payload_of_any_type_in_any_message_is_harmless"),
        ]),
    },
    Weakness {
        number: 19,
        seen: "CVE-2017-9023, strongSwan",
        what: "a choice in ASN.1 sent the reader into an endless loop",
        answer: Tests(&[
            (
                HOSTILE,
                "hostile_der_in_the_place_of_any_value_of_a_chain_is_refused_within_bounds",
            ),
            (
                HOSTILE,
                "hostile_der_in_every_extension_that_has_choices_is_refused_within_bounds",
            ),
            (
                HOSTILE,
                "hostile_der_in_the_place_of_any_value_of_a_key_is_read_within_bounds",
            ),
            (TRUST, "no_damage_to_a_certificate_leaves_it_believed"),
        ]),
    },
    Weakness {
        number: 20,
        seen: "CVE-2025-62291, strongSwan",
        what: "an EAP-MSCHAPv2 failure overflowed the heap",
        answer: Nothing(NO_EAP),
    },
    Weakness {
        number: 21,
        seen: "CVE-2026-35330, strongSwan",
        what: "an EAP-SIM attribute of no length",
        answer: Nothing(NO_EAP),
    },
    Weakness {
        number: 22,
        seen: "CVE-2026-25075, strongSwan",
        what: "the length of an AVP in EAP-TTLS",
        answer: Nothing(NO_EAP),
    },
    Weakness {
        number: 23,
        seen: "CVE-2026-35333, strongSwan",
        what: "a RADIUS attribute shorter than its head",
        answer: Nothing(NO_EAP),
    },
    Weakness {
        number: 24,
        seen: "CVE-2025-14733, WatchGuard",
        what: "a write beyond a buffer before anything was proved, used in the wild",
        answer: Tests(&[
            (
                OURS,
                "an_identity_of_any_length_is_refused_like_a_short_one",
            ),
            (WIRE, "a_message_longer_than_the_limit_is_not_read"),
        ]),
    },
    Weakness {
        number: 25,
        seen: "CVE-2025-9242, WatchGuard",
        what: "the same, by an identity",
        answer: Tests(&[(
            OURS,
            "an_identity_of_any_length_is_refused_like_a_short_one",
        )]),
    },
    Weakness {
        number: 26,
        seen: "CVE-2023-28771, Zyxel",
        what: "the text of an error notify reached a shell",
        answer: Tests(&[
            (
                "edge/os/src/program.rs",
                "arguments_and_input_reach_a_program_as_they_are",
            ),
            (
                "edge/os/src/program.rs",
                "the_lock_and_the_list_of_resolvers_alone_run_programs",
            ),
            (
                "lab/tests/e2e/operate/words.rs",
                "no_program_is_run_by_the_name_of_a_peer",
            ),
            (
                "pure/ike/src/tests/addresses.rs",
                "of_all_attributes_that_a_gateway_sends_nothing_but_numbers_is_kept",
            ),
            (
                "edge/strata/src/show/status.rs",
                "nothing_a_peer_says_reaches_the_terminal_raw",
            ),
            (
                "edge/strata/src/show/explain.rs",
                "nothing_a_peer_says_reaches_the_terminal_raw",
            ),
        ]),
    },
    Weakness {
        number: 27,
        seen: "CVE-2022-34721, Windows",
        what: "packets of IKEv1",
        answer: Tests(&[(ATTACK, "ikev1_is_not_answered_and_later_versions_rarely")]),
    },
    Weakness {
        number: 28,
        seen: "CVE-2023-21758, Windows",
        what: "the same, by many of them",
        answer: Tests(&[
            (
                FLOOD,
                "malformed_datagrams_are_counted_and_cost_no_memory_and_no_tunnel",
            ),
            (
                UNPROVED,
                "packets_get_eleven_parts_of_twelve_of_the_time_whatever_a_message_costs",
            ),
            (
                "lab/src/bench/flood/report.rs",
                "a_tunnel_that_collapses_beside_a_flood_misses_the_goal",
            ),
            (
                "lab/src/bench/flood/report.rs",
                "one_set_up_that_is_not_served_is_a_failure",
            ),
            (
                "lab/tests/e2e/measure/bench.rs",
                "a_flood_has_a_control_and_the_json_has_stable_keys",
            ),
        ]),
    },
    Weakness {
        number: 29,
        seen: "CVE-2020-3230, CVE-2025-20182, Cisco",
        what: "after a crafted packet no SA could be set up any more",
        answer: Tests(&[
            (
                FLOOD,
                "malformed_datagrams_are_counted_and_cost_no_memory_and_no_tunnel",
            ),
            (
                STRANGERS,
                "bad_public_values_make_no_key_and_are_asked_for_cookies",
            ),
            (
                STRANGERS,
                "strangers_of_a_few_networks_cannot_keep_others_out",
            ),
            (
                UNPROVED_QUEUE,
                "a_network_that_fills_the_queue_keeps_no_other_out_and_memory_is_bounded",
            ),
            (STATES, "a_responder_with_somebody_half_open"),
            (STATES, "a_responder_that_is_up"),
        ]),
    },
    Weakness {
        number: 30,
        seen: "CVE-2025-20224, CVE-2025-20225, CVE-2025-20239, Cisco",
        what: "each malformed packet leaked memory",
        answer: Tests(&[
            (
                FLOOD,
                "malformed_datagrams_are_counted_and_cost_no_memory_and_no_tunnel",
            ),
            (
                STRANGERS,
                "bad_public_values_make_no_key_and_are_asked_for_cookies",
            ),
            (
                UNPROVED_QUEUE,
                "a_network_that_fills_the_queue_keeps_no_other_out_and_memory_is_bounded",
            ),
        ]),
    },
    Weakness {
        number: 31,
        seen: "CVE-2023-41913, strongSwan",
        what: "a public value longer than its buffer",
        answer: Tests(&[
            (
                ATTACK,
                "public_values_of_small_order_or_wrong_length_are_refused_by_both_ends",
            ),
            (AGREEMENT, "a_value_of_another_length_is_refused"),
        ]),
    },
    Weakness {
        number: 32,
        seen: "CVE-2015-3240, Libreswan; CVE-2026-35332, strongSwan",
        what: "public values of zero, of small order, beside the curve",
        answer: Tests(&[
            (
                ATTACK,
                "public_values_of_small_order_or_wrong_length_are_refused_by_both_ends",
            ),
            (AGREEMENT, "a_value_of_small_order_is_refused"),
            (
                AGREEMENT,
                "wycheproofs_values_are_refused_by_the_check_if_their_secret_is_zero",
            ),
            (AGREEMENT, "a_value_beside_the_curve_is_refused"),
            (
                STRANGERS,
                "bad_public_values_make_no_key_and_are_asked_for_cookies",
            ),
        ]),
    },
    Weakness {
        number: 33,
        seen: "OpenBSD iked, erratum 027 of 2026",
        what: "reads beyond the end, null pointers, states that contradict each other",
        answer: Tests(&[
            (WIRE, "every_truncation_is_an_error"),
            (INSIDER, "a_peer_that_says_anything_confuses_nobody"),
        ]),
    },
    Weakness {
        number: 34,
        seen: "GotaTun before 0.7.2",
        what: "a datagram too large, or put together by GRO, panicked the task that receives",
        answer: Tests(&[
            (ATTACK, "datagrams_of_any_length_and_content_are_survived"),
            (ATTACK, "noise_of_any_length_leaves_an_sa_up"),
            (
                "edge/os/tests/network/udp.rs",
                "coalesced_datagrams_are_split_again",
            ),
            (
                "edge/os/tests/network/udp.rs",
                "runs_of_any_length_and_content_are_split_and_no_datagram_reaches_into_another",
            ),
            (JOIN, "no_packets_of_a_peer_become_others_by_joining"),
        ]),
    },
    // States, and ways around authentication.
    Weakness {
        number: 35,
        seen: "CVE-2014-2338, strongSwan",
        what: "a rekey of an IKE SA that was not established made it one that is",
        answer: Tests(&[
            (ATTACK, "every_exchange_type_in_every_state_changes_nothing"),
            (
                "pure/ike/src/tests/states.rs",
                "the_page_tells_every_change_of_state_and_what_comes_of_every_message",
            ),
        ]),
    },
    Weakness {
        number: 36,
        seen: "CVE-2019-12312, Libreswan",
        what: "INFORMATIONAL before IKE_AUTH",
        answer: Tests(&[(ATTACK, "every_exchange_type_in_every_state_changes_nothing")]),
    },
    Weakness {
        number: 37,
        seen: "CVE-2023-30570, Libreswan",
        what: "the responder's SPI of a failed attempt was used again",
        answer: Tests(&[(OURS, "the_spi_of_a_refused_attempt_names_nothing_any_more")]),
    },
    Weakness {
        number: 38,
        seen: "CVE-2023-38710, Libreswan",
        what: "REKEY_SA for another protocol than ESP",
        answer: Tests(&[(
            OURS,
            "a_rekey_of_an_sa_of_another_protocol_replaces_nothing",
        )]),
    },
    Weakness {
        number: 39,
        seen: "CVE-2023-38712, Libreswan",
        what: "two Deletes in one message",
        answer: Tests(&[(ATTACK, "deletes_of_the_same_or_of_nothing_are_taken_calmly")]),
    },
    Weakness {
        number: 40,
        seen: "CVE-2024-2357, Libreswan",
        what: "a retransmission after the pre-shared key was not found",
        answer: Tests(&[
            (
                REFUSAL,
                "an_unknown_identity_gives_the_initiator_the_same_answer",
            ),
            (OURS, "the_spi_of_a_refused_attempt_names_nothing_any_more"),
        ]),
    },
    Weakness {
        number: 41,
        seen: "CVE-2009-0790, Openswan and strongSwan",
        what: "a liveness check for an SA that does not exist",
        answer: Tests(&[(ATTACK, "every_exchange_type_in_every_state_changes_nothing")]),
    },
    Weakness {
        number: 42,
        seen: "CVE-2021-45079, strongSwan",
        what: "EAP-Success before anything was proved",
        answer: Nothing(NO_EAP),
    },
    Weakness {
        number: 43,
        seen: "CVE-2015-8023, strongSwan",
        what: "a success of EAP-MSCHAPv2 in the wrong state",
        answer: Nothing(NO_EAP),
    },
    Weakness {
        number: 44,
        seen: "CVE-2023-26463, strongSwan",
        what: "the certificate of an EAP-TLS server was not verified",
        answer: Nothing(NO_EAP),
    },
    Weakness {
        number: 45,
        seen: "CVE-2015-4171, strongSwan",
        what: "a client gave its secret to a server before that had proved itself",
        answer: Tests(&[
            (
                CERTIFICATES,
                "a_responder_that_proves_nothing_is_left_and_told_why",
            ),
            (
                INVARIANTS,
                "invariant_4_a_node_learns_only_keys_that_both_ends_license",
            ),
        ]),
    },
    Weakness {
        number: 46,
        seen: "CVE-2012-2388, CVE-2013-2944, strongSwan",
        what: "an error while a signature was verified counted as success",
        answer: Tests(&[
            (
                "pure/ike/src/auth.rs",
                "nothing_but_the_right_octets_proves",
            ),
            (CERTIFICATES, "a_signature_over_other_octets_proves_nothing"),
            (SIGNATURE, "wycheproof_ecdsa_over_p256_and_p384"),
            (SIGNATURE, "wycheproof_ed25519"),
        ]),
    },
    Weakness {
        number: 47,
        seen: "CVE-2018-16151, CVE-2018-16152, strongSwan",
        what: "RSA signatures of PKCS #1 v1.5 were read leniently",
        answer: Tests(&[(SIGNATURE, "wycheproof_rsa_with_pkcs1")]),
    },
    Weakness {
        number: 48,
        seen: "CVE-2026-50721, CVE-2026-50722",
        what: "the same, and hashes cut short",
        answer: Tests(&[(SIGNATURE, "wycheproof_rsa_with_pkcs1")]),
    },
    Weakness {
        number: 49,
        seen: "CVE-2020-16088, OpenIKED",
        what: "a peer proved itself with another key than that of its identity",
        answer: Tests(&[
            (
                ATTACK,
                "a_peer_cannot_take_anothers_identity_with_its_own_key",
            ),
            (CERTIFICATES, "somebody_elses_certificate_proves_nothing"),
        ]),
    },
    Weakness {
        number: 50,
        seen: "unknown key share",
        what: "an identity was exchanged for another one with a certificate that is good",
        answer: Tests(&[
            (CERTIFICATES, "somebody_elses_certificate_proves_nothing"),
            (ATTACK, "every_flipped_octet_of_ike_auth_is_noticed"),
            (
                REFUSAL,
                "an_initiator_that_looks_for_somebody_else_is_told_apart",
            ),
        ]),
    },
    Weakness {
        number: 51,
        seen: "Cremers, 2011",
        what: "a responder that has sent IKE_AUTH took that for mutual agreement",
        answer: Tests(&[
            (
                AGREED,
                "a_proof_that_is_relayed_to_another_responder_makes_no_ike_sa",
            ),
            (
                AGREED,
                "an_initiator_that_refuses_the_answer_ends_the_responders_sa_at_once",
            ),
            (
                "pure/ike/src/tests/liveness.rs",
                "a_peer_that_is_gone_is_given_up_with_its_children",
            ),
        ]),
    },
    Weakness {
        number: 52,
        seen: "Cremers, 2011",
        what: "our own messages, nonces and public values sent back to us",
        answer: Tests(&[
            (ATTACK, "our_own_messages_sent_back_to_us_are_recognised"),
            (
                ATTACK,
                "our_own_nonce_or_public_value_from_the_peer_is_a_reflection",
            ),
        ]),
    },
    Weakness {
        number: 53,
        seen: "CVE-2018-5389; Felsch and others, 2018",
        what: "who poses as the responder can try out a pre-shared key at leisure",
        answer: Tests(&[
            (
                FAULTS,
                "a_key_file_must_exist_be_private_be_long_and_be_hard_to_guess",
            ),
            (
                "edge/config/src/strength.rs",
                "words_rows_and_repetitions_are_weak_however_long",
            ),
            (
                "edge/config/src/strength.rs",
                "what_generators_make_and_six_words_of_a_list_are_not",
            ),
        ]),
    },
    Weakness {
        number: 54,
        seen: "CVE-2018-0131, CVE-2017-17305, CVE-2018-9129, CVE-2018-8753",
        what: "RSA encrypted nonces of IKEv1 told who asked often enough what they hid",
        answer: Tests(&[
            (ATTACK, "ikev1_is_not_answered_and_later_versions_rarely"),
            (
                REFUSAL,
                "an_unknown_identity_gives_the_initiator_the_same_answer",
            ),
        ]),
    },
    Weakness {
        number: 55,
        seen: "CVE-2019-10155, Libreswan",
        what: "the integrity of INFORMATIONAL messages was not checked",
        answer: Tests(&[(
            ATTACK,
            "every_flipped_bit_of_a_protected_message_is_noticed",
        )]),
    },
    // Certificates.
    Weakness {
        number: 56,
        seen: "CVE-2026-35331, strongSwan",
        what: "names that a CA may not vouch for",
        answer: Tests(&[(
            TRUST,
            "an_intermediate_vouches_only_for_names_that_its_constraints_leave_it",
        )]),
    },
    Weakness {
        number: 57,
        seen: "CVE-2022-40617, strongSwan",
        what: "addresses in a certificate were fetched before it was believed",
        answer: Nothing("nothing that a certificate names is ever fetched"),
    },
    Weakness {
        number: 58,
        seen: "CVE-2021-41991, strongSwan",
        what: "endless variants of one certificate filled a cache",
        answer: Nothing(
            "a peer's certificates are kept with the SA that they proved, and go with it",
        ),
    },
    Weakness {
        number: 59,
        seen: "CVE-2021-41990, CVE-2018-6459, strongSwan",
        what: "parameters of RSA-PSS",
        answer: Tests(&[
            (
                IKE_SIGNATURE,
                "every_algorithm_is_found_by_any_form_of_it_and_by_nothing_else",
            ),
            (
                IKE_SIGNATURE,
                "parameters_of_pss_other_than_a_hash_its_mask_and_its_length_name_nothing",
            ),
            (
                "pure/crypto/tests/pss.rs",
                "a_certificate_is_believed_with_no_other_parameters_of_pss_than_ours",
            ),
            (
                "pure/crypto/tests/pss.rs",
                "parameters_beside_a_certificate_are_those_in_it",
            ),
            (SIGNATURE, "wycheproof_rsa_with_pss"),
        ]),
    },
    Weakness {
        number: 60,
        seen: "CVE-2017-9022, CVE-2017-11185, CVE-2018-17540, strongSwan",
        what: "an RSA modulus that is tiny or even",
        answer: Tests(&[
            (
                HOSTILE,
                "no_rsa_key_of_a_kind_that_nobody_makes_verifies_anything_within_bounds",
            ),
            (RAW_KEY, "the_rsa_key_of_rfc_7670_appendix_a_2_is_too_short"),
            (SUITES, "an_rsa_key_of_1024_bits_is_refused_with_a_reason"),
        ]),
    },
    Weakness {
        number: 61,
        seen: "CVE-2026-14957",
        what: "chains without end, certificates of a megabyte, ten CAs of one name in every order",
        answer: Tests(&[
            (TRUST, "a_chain_too_long_to_be_meant_is_not_followed"),
            (
                TRUST,
                "certificates_that_could_stand_in_any_order_cost_a_bounded_number_of_signatures",
            ),
            (WIRE, "a_message_longer_than_the_limit_is_not_read"),
            (WIRE, "the_number_of_payloads_is_bounded"),
        ]),
    },
    // Floods and amplification.
    Weakness {
        number: 62,
        seen: "RFC 8019",
        what: "first messages in masses, from forged addresses and from real ones",
        answer: Tests(&[
            (
                ATTACK,
                "a_flood_of_first_messages_is_bounded_in_number_and_time",
            ),
            (
                COOKIE,
                "addresses_that_nobody_receives_at_cannot_keep_an_honest_initiator_out",
            ),
            (
                STRANGERS,
                "strangers_of_a_few_networks_cannot_keep_others_out",
            ),
            (STRANGERS, "half_open_sas_live_shorter_while_there_are_many"),
        ]),
    },
    Weakness {
        number: 63,
        seen: "GotaTun before 0.6.0",
        what: "one limit for everybody, and a cookie that did not bind the port",
        answer: Tests(&[
            (ATTACK, "one_address_cannot_use_up_everybodys_room"),
            (COOKIE, "who_forges_an_address_cannot_keep_its_owner_out"),
            (
                COOKIE,
                "a_cookie_is_good_for_its_address_its_port_its_spi_and_its_nonce_only",
            ),
            (COOKIE, "a_cookie_ends_with_its_time"),
        ]),
    },
    Weakness {
        number: 64,
        seen: "CVE-2016-5361, Libreswan",
        what: "a responder repeated its answer to a forged address",
        answer: Tests(&[
            (LOSS, "the_responder_never_repeats_anything_on_its_own"),
            (COOKIE, "asking_for_a_cookie_sends_less_than_came"),
            (
                COOKIE,
                "before_an_address_is_proved_it_is_never_sent_more_than_came_from_it",
            ),
        ]),
    },
    Weakness {
        number: 65,
        seen: "Ninet and others, 2018",
        what: "IKE_AUTH led to another responder leaves half-open SAs there",
        answer: Tests(&[
            (
                "pure/ike/src/tests/liveness.rs",
                "an_initiator_that_does_not_go_on_is_forgotten",
            ),
            (ATTACK, "refused_initiators_still_count_as_half_open"),
            (ATTACK, "ike_auth_without_a_beginning_belongs_to_no_sa"),
        ]),
    },
    Weakness {
        number: 66,
        seen: "storms of repeated requests",
        what: "each brought the kept answer again; or so many were answered that none was left for the peer",
        answer: Tests(&[
            (
                ATTACK,
                "a_storm_of_repeated_requests_is_answered_a_bounded_number_of_times",
            ),
            (
                ATTACK,
                "copies_of_a_request_do_not_keep_its_answer_from_the_peer",
            ),
            (
                RESPONSES,
                "a_repeated_request_gets_the_same_answer_at_a_bounded_rate",
            ),
            (
                RESPONSES,
                "no_number_of_copies_keeps_the_peer_from_its_answer",
            ),
            (
                WINDOW,
                "whatever_was_said_under_a_wide_window_is_of_no_use_to_who_says_it_again",
            ),
        ]),
    },
    Weakness {
        number: 67,
        seen: "RFC 6311",
        what: "message IDs of the past and the far future",
        answer: Tests(&[
            (
                ATTACK,
                "message_ids_from_the_past_and_the_future_are_dropped",
            ),
            (WINDOW, "what_is_below_or_above_the_window_changes_nothing"),
            (RESPONSES, "as_many_answers_are_kept_as_the_window_is_wide"),
        ]),
    },
    Weakness {
        number: 68,
        seen: "RFC 7296 sections 2.6 and 2.7",
        what: "cookies and corrections of the group without end, and as a downgrade",
        answer: Tests(&[
            (
                ATTACK,
                "a_cookie_is_put_in_front_and_a_loop_of_cookies_ends",
            ),
            (GROUPS, "endless_corrections_are_followed_three_times"),
            (GROUPS, "a_forged_correction_does_not_choose_the_group"),
        ]),
    },
    Weakness {
        number: 69,
        seen: "RFC 7296 section 2.21.2",
        what: "a forged refusal ended an attempt",
        answer: Tests(&[
            (
                REFUSAL,
                "an_unprotected_refusal_is_told_but_the_genuine_answer_still_counts",
            ),
            (
                GROUPS,
                "the_genuine_answer_to_the_first_guess_counts_after_a_forged_correction",
            ),
        ]),
    },
    Weakness {
        number: 70,
        seen: "CVE-2018-10811, CVE-2026-35328, strongSwan",
        what: "algorithms that do not go together, loops that do not end",
        answer: Tests(&[
            (
                PROPOSAL,
                "of_all_combinations_of_ciphers_and_integrity_those_of_our_suites_alone_are_chosen",
            ),
            (
                IKE_SUITES,
                "every_suite_protects_both_sas_and_their_successors_over_a_bad_hop",
            ),
            (INSIDER, "a_peer_that_speaks_at_random_confuses_nobody"),
        ]),
    },
    // The data plane.
    Weakness {
        number: 71,
        seen: "CVE-2022-27666, Linux",
        what: "a trailer longer than its page overflowed the heap",
        answer: Tests(&[
            (
                "pure/esp/src/packet.rs",
                "it_never_grows_beyond_its_buffer_nor_takes_more_than_it_has_space_for",
            ),
            (AUTHENTIC, "padding_of_any_prescribed_length_is_taken_off"),
        ]),
    },
    Weakness {
        number: 72,
        seen: "CVE-2026-43284, Linux",
        what: "octets were decrypted in place where others read them",
        answer: Tests(&[
            (
                "pure/esp/tests/data_plane/licensed.rs",
                "a_packet_is_opened_in_a_copy_whatever_comes_of_it",
            ),
            (
                "edge/os/tests/network/udp.rs",
                "runs_of_any_length_and_content_are_split_and_no_datagram_reaches_into_another",
            ),
            (
                "pure/crypto/src/aead.rs",
                "one_flipped_bit_is_refused_and_nothing_is_released",
            ),
        ]),
    },
    Weakness {
        number: 73,
        seen: "CVE-2022-34718, Windows",
        what: "fragments, padding longer than the payload, next header 59",
        answer: Tests(&[
            (PLAIN, "a_pad_length_beyond_the_text_is_bad_padding"),
            (
                AUTHENTIC,
                "a_dummy_packet_moves_the_window_and_is_no_datagram",
            ),
            (DATA, "a_plain_packet_shorter_than_its_overhead_is_a_runt"),
            (INSIDER, "packets_with_any_content_are_delivered_or_dropped"),
        ]),
    },
    Weakness {
        number: 74,
        seen: "CVE-2017-7184, CVE-2017-16939, CVE-2025-39965, CVE-2026-31663, Linux",
        what: "reserved SPIs, widths of the window, SAs that go while packets are under way",
        answer: Tests(&[
            (
                "pure/esp/tests/data_plane/policy.rs",
                "an_inbound_spi_that_is_taken_or_reserved_is_refused",
            ),
            (REPLAY, "a_window_is_never_narrower_nor_wider_than_designed"),
            (
                PROPOSAL,
                "extended_sequence_numbers_that_nobody_wants_and_reserved_spis_are_refused",
            ),
        ]),
    },
    Weakness {
        number: 75,
        seen: "GotaTun, VPP; CVE-2022-46397, VPP",
        what: "a counter that wraps, or begins again under an old key",
        answer: Tests(&[
            (
                "pure/esp/src/outbound.rs",
                "after_the_last_number_nothing_is_sealed",
            ),
            (
                "pure/node/src/tests/ledger.rs",
                "no_key_and_nonce_pair_is_used_twice_over_a_day_of_losses_and_restarts",
            ),
            (INVARIANTS, "invariant_1_no_key_and_nonce_pair_twice"),
        ]),
    },
    Weakness {
        number: 76,
        seen: "VPP 3b9374f",
        what: "the same packet twice in one batch passed the replay check twice",
        answer: Tests(&[(
            DATA,
            "a_replayed_packet_is_delivered_once_also_within_one_batch",
        )]),
    },
    Weakness {
        number: 77,
        seen: "replay windows",
        what: "the window moved before the ICV was verified, or wrongly",
        answer: Tests(&[
            (REPLAY, "it_does_what_the_naive_model_does"),
            (DATA, "a_forged_packet_moves_no_window"),
            (
                INVARIANTS,
                "invariant_2_replay_then_authentication_then_the_window_then_release",
            ),
        ]),
    },
    Weakness {
        number: 78,
        seen: "CVE-2006-4436, isakmpd",
        what: "a responder checked no replay",
        answer: Tests(&[(
            INVARIANTS,
            "invariant_2_replay_then_authentication_then_the_window_then_release",
        )]),
    },
    Weakness {
        number: 79,
        seen: "TunnelVision, TunnelCrack, CVE-2019-14899",
        what: "packets that were led around the tunnel, and sources that belong inside it",
        answer: Tests(&[
            (LEAK, "a_more_specific_route_attracts_nothing"),
            (
                LEAK,
                "a_local_network_of_the_attackers_attracts_nothing_that_is_locked",
            ),
            (LEAK, "the_peers_own_address_is_no_hole"),
            (
                LEAK,
                "what_comes_from_outside_for_an_address_inside_is_dropped_and_counted",
            ),
            (AUTHENTIC, "a_datagram_that_the_sa_may_not_carry_is_dropped"),
        ]),
    },
    Weakness {
        number: 80,
        seen: "traffic selectors",
        what: "an answer that is wider than the question, or of another family, also to a rekey",
        answer: Tests(&[
            (SELECTORS, "a_wider_answer_is_not_narrowed"),
            (OURS, "an_answer_to_a_rekey_never_widens_the_selectors"),
        ]),
    },
    Weakness {
        number: 81,
        seen: "RFC 4555 section 5",
        what: "a forged source address in the IP header moved a tunnel, also when the forged packet arrived first",
        answer: Tests(&[
            (MOBIKE, "a_third_party_is_not_bombed_by_a_forged_header"),
            (
                MOBIKE,
                "nothing_of_a_child_goes_to_an_address_before_it_is_proved",
            ),
            (
                MOBIKE,
                "a_check_that_is_answered_with_another_cookie_ends_the_ike_sa",
            ),
            (
                ADDRESSES,
                "a_list_of_addresses_is_the_whole_list_and_bounded",
            ),
            (
                MOBIKE,
                "an_update_that_is_replayed_from_elsewhere_moves_nobody",
            ),
            (NAT, "a_replayed_or_forged_message_moves_nobody"),
            (NAT, "who_is_behind_a_nat_does_not_follow"),
            (
                NAT,
                "one_rewritten_header_moves_nothing_and_sends_its_address_three_times_the_octets_at_most",
            ),
            (
                NAT,
                "every_third_header_rewritten_moves_nothing_and_multiplies_no_octets",
            ),
            (
                NAT,
                "an_address_that_answers_gets_nothing_while_the_old_one_answers",
            ),
            (NAT, "a_peer_with_mobike_is_followed_by_its_update_alone"),
            (
                "pure/node/src/tests/following.rs",
                "a_rewritten_request_takes_no_packet_of_a_child_to_another_address",
            ),
        ]),
    },
    Weakness {
        number: 82,
        seen: "RFC 4301 section 8.2.1",
        what: "a message in a router's name that the way takes next to nothing",
        answer: Tests(&[
            (PMTU, "a_forged_router_makes_nothing_stand_still"),
            (NODE_PMTU, "what_cannot_be_is_not_believed_and_told"),
            (ROOM, "datagrams_of_1280_octets_always_fit"),
        ]),
    },
    Weakness {
        number: 83,
        seen: "draft-ietf-mobileip-optim",
        what: "a message that has a foreign agent send somebody's packets elsewhere: forged, replayed, or in a circle",
        answer: Tests(&[
            (
                HANDOVER,
                "a_notice_has_to_be_proved_by_a_neighbour_and_its_note_by_the_mobile_node",
            ),
            (
                HANDOVER,
                "a_notice_that_is_replayed_when_its_mobile_node_is_back_moves_nothing",
            ),
            (HANDOVER, "the_note_of_a_registration_is_taken_once"),
            (
                HANDOVER,
                "an_answer_that_is_replayed_or_was_not_asked_for_lets_nothing_in",
            ),
            (
                HANDOVER,
                "two_agents_that_send_after_it_to_each_other_make_no_circle",
            ),
            (
                HANDOVER,
                "a_stranger_on_the_link_does_not_stand_between_a_mobile_node_and_what_is_sent_after_it",
            ),
            (HANDOVER, "a_flood_of_notes_is_bounded"),
        ]),
    },
    Weakness {
        number: 84,
        seen: "RFC 3519 section 6",
        what: "an address that nobody authenticates, to which somebody's packets are sent: by a registration or a keepalive that is repeated",
        answer: Tests(&[
            (
                TUNNELS_IN_UDP,
                "a_request_that_is_repeated_from_elsewhere_moves_no_tunnel",
            ),
            (
                TUNNELS_IN_UDP,
                "a_keepalive_from_elsewhere_moves_no_tunnel_and_is_not_answered",
            ),
            (TUNNELS_IN_UDP, "a_registration_through_a_nat_is_short"),
            (
                TUNNELS_IN_UDP,
                "what_is_added_behind_the_authentication_of_agents_is_not_looked_at",
            ),
        ]),
    },
    Weakness {
        number: 85,
        seen: "RFC 5944 section 5.1",
        what: "a forged agent advertisement made a mobile node deregister, ignore all other agents, or leave the agent in use",
        answer: Tests(&[
            (
                FORGERIES,
                "an_advertised_registration_lifetime_of_zero_deregisters_nobody",
            ),
            (
                FORGERIES,
                "a_grant_of_nothing_ends_a_registration_and_not_the_mobile_node",
            ),
            (
                FORGERIES,
                "a_limit_that_nobody_has_proved_ends_with_the_registration_that_it_made_short",
            ),
            (
                FORGERIES,
                "a_flood_of_advertisements_locks_no_genuine_agent_out",
            ),
            (
                FORGERIES,
                "an_agent_in_use_cannot_be_advertised_away_with_a_short_lifetime",
            ),
            (
                FORGERIES,
                "an_agent_in_use_cannot_be_advertised_to_be_there_when_it_is_left",
            ),
            (FORGERIES, "no_advertisement_moves_where_an_agent_in_use_is"),
        ]),
    },
    Weakness {
        number: 86,
        seen: "RFC 5944 section 3.7",
        what: "a station on the link of a foreign agent that answers for a home agent, takes another one's packets over, or is at home where it is not",
        answer: Tests(&[
            (LINK, "a_reply_from_the_link_of_visitors_grants_nothing"),
            (
                LINK,
                "what_agents_say_is_not_believed_from_the_link_of_visitors",
            ),
            (LINK, "a_visit_ends_with_a_reply_that_grants_no_time"),
            (LINK, "nobody_is_at_home_where_the_host_or_an_agent_is"),
            (LINK, "nobody_is_at_home_where_the_home_agent_of_another_is"),
            (
                LINK,
                "what_comes_in_a_visitors_name_while_it_is_asked_for_does_not_move_it",
            ),
            (
                LINK,
                "a_request_that_looks_like_one_that_waits_does_not_take_its_place",
            ),
            (
                LINK,
                "nobody_is_at_home_where_visitors_may_not_be_or_the_host_has_a_network",
            ),
            (
                "edge/os/tests/network/mobile.rs",
                "only_what_comes_by_the_tunnel_or_from_a_visitor_goes_to_one",
            ),
        ]),
    },
    // Several programs that change one routing table.
    Weakness {
        number: 87,
        seen: "Strata before 0.1.0",
        what: "a second daemon removed the routes of the first as leftovers; its traffic left in clear, and `status` showed the tunnel up",
        answer: Tests(&[
            (SINGLE, "a_second_daemon_is_refused_and_the_first_goes_on"),
            (SINGLE, "a_licensed_node_at_work_keeps_its_rules"),
        ]),
    },
    Weakness {
        number: 88,
        seen: "any local user",
        what: "a lock that every user may take keeps a daemon from starting",
        answer: Tests(&[(
            SINGLE,
            "a_user_without_rights_cannot_keep_a_daemon_from_starting",
        )]),
    },
    Weakness {
        number: 89,
        seen: "Strata before 0.1.0",
        what: "a first message with a bad public value cost a key pair, was not counted and never asked for a cookie",
        answer: Tests(&[
            (
                STRANGERS,
                "bad_public_values_make_no_key_and_are_asked_for_cookies",
            ),
            (
                STRANGERS,
                "what_is_charged_for_a_bad_public_value_ends_with_its_time",
            ),
        ]),
    },
    Weakness {
        number: 90,
        seen: "Strata before 0.1.0",
        what: "one IPv6 /64 with real addresses took every half-open place, and all others were refused",
        answer: Tests(&[
            (
                STRANGERS,
                "strangers_of_a_few_networks_cannot_keep_others_out",
            ),
            (
                STRANGERS,
                "a_network_of_strangers_does_not_keep_its_own_honest_initiators_out_for_long",
            ),
            (
                STRANGERS,
                "a_configured_address_has_places_that_no_stranger_takes",
            ),
        ]),
    },
    Weakness {
        number: 91,
        seen: "Strata before 0.1.0",
        what: "64 idle TCP connections of one network, or half-open IKE SAs in as many, kept all other TCP peers out",
        answer: Tests(&[
            (
                "edge/stratad/src/streams.rs",
                "idle_connections_of_a_few_networks_keep_no_other_out",
            ),
            (
                "edge/stratad/src/streams.rs",
                "a_configured_address_has_places_that_no_stranger_takes",
            ),
            (
                "pure/ike/src/tests/tcp.rs",
                "a_connection_of_an_initiator_that_proves_nothing_is_not_in_use",
            ),
        ]),
    },
    Weakness {
        number: 92,
        seen: "Strata before 0.1.0",
        what: "ESP waited for the key agreements of strangers",
        answer: Tests(&[
            (
                UNPROVED,
                "packets_get_eleven_parts_of_twelve_of_the_time_whatever_a_message_costs",
            ),
            (
                UNPROVED_QUEUE,
                "a_network_that_fills_the_queue_keeps_no_other_out_and_memory_is_bounded",
            ),
        ]),
    },
    Weakness {
        number: 93,
        seen: "Strata before 0.1.0",
        what: "an error in an answer to IKE_AUTH that was otherwise right was ignored, and the tunnel came up",
        answer: Tests(&[
            (
                "pure/ike/src/tests/errors.rs",
                "an_error_beside_a_child_in_ike_auth_is_believed",
            ),
            (
                "pure/ike/src/tests/errors.rs",
                "an_error_beside_a_wrong_proof_is_no_reason",
            ),
        ]),
    },
    Weakness {
        number: 94,
        seen: "Strata before 0.1.0",
        what: "AUTH was computed over a re-encoded identification: an ID payload with modified reserved octets was accepted",
        answer: Tests(&[(
            "pure/ike/src/tests/auth.rs",
            "reserved_octets_of_an_identification_are_covered_as_they_came",
        )]),
    },
    Weakness {
        number: 95,
        seen: "RFC 5280 section 7.2",
        what: "one name in other letters was another identity, with a table, an address and an SA of its own",
        answer: Tests(&[
            (
                "pure/model/src/identity.rs",
                "domains_are_compared_without_regard_to_case_and_nothing_else_is",
            ),
            (
                "pure/ike/src/tests/names.rs",
                "initial_contact_acts_on_the_same_name_in_other_letters",
            ),
        ]),
    },
    Weakness {
        number: 96,
        seen: "RFC 6023",
        what: "what a responder announced in IKE_SA_INIT it refused in IKE_AUTH",
        answer: Tests(&[
            (
                "pure/ike/src/tests/childless.rs",
                "a_vpn_peer_may_begin_without_a_child_and_ask_for_it_later",
            ),
            (
                "pure/ike/src/tests/childless.rs",
                "a_part_of_a_child_is_a_syntax_error",
            ),
        ]),
    },
    Weakness {
        number: 97,
        seen: "RFC 4754",
        what: "a signature in one form taken for one in another, or for one by another curve",
        answer: Tests(&[
            (
                "pure/ike/src/tests/methods.rs",
                "a_signature_of_the_curve_is_verified_by_its_own_method_only",
            ),
            (
                "pure/ike/src/tests/methods.rs",
                "a_flipped_bit_of_a_signature_of_the_curve_proves_nothing",
            ),
        ]),
    },
    Weakness {
        number: 98,
        seen: "Strata before 0.1.0",
        what: "a tunnel is agreed on for types of ICMP, for ports of a protocol without ports, or for ends of which none may reach the other, and carries nothing",
        answer: Tests(&[
            (NEGOTIATION, "types_of_icmp_are_agreed_and_shown_as_such"),
            (
                NEGOTIATION,
                "a_child_that_could_carry_nothing_is_not_agreed",
            ),
            (
                "pure/esp/src/policy.rs",
                "echo_requests_go_one_way_and_their_replies_the_other",
            ),
        ]),
    },
    Weakness {
        number: 99,
        seen: "Strata before 0.1.0",
        what: "a refused request for new keys is repeated unchanged every three seconds until the lifetime ends, with a warning each time",
        answer: Tests(&[
            (
                NEGOTIATION,
                "refused_new_keys_are_asked_for_once_in_the_wanted_group_and_once_without_a_group",
            ),
            (
                NEGOTIATION,
                "refused_new_keys_are_asked_for_ever_more_rarely_and_told_once",
            ),
        ]),
    },
    Weakness {
        number: 100,
        seen: "Strata before 0.1.0",
        what: "INVALID_KE_PAYLOAD names a group that was not offered",
        answer: Tests(&[
            (NEGOTIATION, "a_group_is_asked_for_only_if_it_was_offered"),
            (
                NEGOTIATION,
                "for_an_ike_sa_as_well_a_group_is_asked_for_only_if_it_was_offered",
            ),
        ]),
    },
    Weakness {
        number: 101,
        seen: "Strata before 0.1.0",
        what: "private-use numbers of another vendor were read as those of Strata: a critical payload was not refused, a malformed one ended the IKE SA",
        answer: Tests(&[
            (
                NEGOTIATION,
                "without_the_vendor_id_our_private_notifies_are_ignored",
            ),
            (
                NEGOTIATION,
                "without_the_vendor_id_our_private_payloads_are_unknown",
            ),
            (
                NEGOTIATION,
                "without_the_vendor_id_our_private_exchanges_are_unknown",
            ),
            (
                NEGOTIATION,
                "without_the_vendor_id_our_private_errors_are_those_of_somebody_else",
            ),
            (
                NEGOTIATION,
                "a_peer_without_the_vendor_id_is_sent_none_of_our_private_numbers",
            ),
            (
                NEGOTIATION,
                "ike_auth_has_none_of_our_private_numbers_for_a_peer_without_the_vendor_id",
            ),
            (
                NEGOTIATION,
                "a_neighbour_without_the_vendor_id_is_asked_for_no_keys",
            ),
            (
                NEGOTIATION,
                "a_licensed_node_without_the_vendor_id_is_told_nothing_of_nodes_onward",
            ),
            (
                NEGOTIATION,
                "a_slot_is_not_offered_to_a_peer_without_the_vendor_id",
            ),
            (
                NEGOTIATION,
                "beet_mode_is_neither_asked_for_nor_given_without_the_vendor_id",
            ),
            (
                NEGOTIATION,
                "every_private_notify_is_tried_on_peers_without_the_vendor_id",
            ),
        ]),
    },
    Weakness {
        number: 102,
        seen: "Strata before 0.1.0",
        what: "a child whose rekey met a hand-over that turned back is not rekeyed before its lifetime ends",
        answer: Tests(&[(
            "pure/ike/src/tests/clone.rs",
            "a_child_whose_new_keys_met_a_hand_over_that_turned_back_gets_others",
        )]),
    },
    Weakness {
        number: 103,
        seen: "RFC 7296 section 2.23, Strata before 0.1.0",
        what: "a header rewritten while a tunnel is set up, or in the other of UDP and TCP, took it to a third party",
        answer: Tests(&[
            (
                NAT,
                "ike_auth_with_a_rewritten_header_brings_no_child_to_its_address",
            ),
            (
                NAT,
                "a_first_answer_from_elsewhere_does_not_redirect_ike_auth",
            ),
            (
                "pure/ike/src/tests/tcp.rs",
                "without_mobike_no_ike_sa_changes_between_datagrams_and_streams",
            ),
        ]),
    },
    Weakness {
        number: 104,
        seen: "Strata before 0.1.0",
        what: "a second gateway of a licensed node replaced, revoked or crowded out the first one's grants by using its names and SPIs",
        answer: Tests(&[
            (
                HOLDINGS,
                "a_gateway_that_names_anothers_composite_sa_neither_replaces_nor_revokes_it",
            ),
            (
                HOLDINGS,
                "a_gateway_that_fills_its_slots_of_an_spi_keeps_no_other_out",
            ),
            (
                HOLDINGS,
                "a_gateway_that_names_anothers_line_has_a_line_of_its_own",
            ),
            (
                HOLDINGS,
                "a_gateway_that_is_lost_takes_nothing_of_anothers_with_it",
            ),
        ]),
    },
    Weakness {
        number: 105,
        seen: "Strata before 0.1.0",
        what: "a renewal of keys that could not be used cost a licensed node those that it had",
        answer: Tests(&[
            (
                HOLDINGS,
                "a_renewal_that_is_of_no_use_leaves_what_it_was_to_renew",
            ),
            (
                "pure/ike/src/tests/distribute.rs",
                "a_renewal_that_is_refused_leaves_the_grant_that_it_renews",
            ),
            (
                "pure/node/src/tests/grants.rs",
                "a_node_that_refuses_a_renewal_still_counts_as_one_that_has_keys",
            ),
        ]),
    },
    Weakness {
        number: 106,
        seen: "Strata before 0.1.0",
        what: "a grant with a replay window of 0 or 2^32-1, or with reserved SPIs, was taken",
        answer: Tests(&[
            (
                "pure/ike/src/tests/distribute.rs",
                "an_unsound_grant_is_refused",
            ),
            (HOLDINGS, "no_grant_has_an_spi_or_a_window_that_cannot_be"),
        ]),
    },
    Weakness {
        number: 107,
        seen: "Strata before 0.1.0",
        what: "the checksum of MPTCP's DSS option told a licensed node 16 bits of the hidden payload",
        answer: Tests(&[
            (
                "pure/wire/src/classify.rs",
                "the_checksum_of_a_data_sequence_signal_is_secret_and_its_numbers_are_not",
            ),
            (
                "pure/wire/src/classify.rs",
                "every_option_of_another_kind_or_length_than_these_is_secret",
            ),
        ]),
    },
    Weakness {
        number: 108,
        seen: "Strata before 0.1.0",
        what: "SNOOP kept congestion marks, windows and DATA_ACKs from a sender",
        answer: Tests(&[
            (
                ACKNOWLEDGEMENTS,
                "an_acknowledgement_with_other_congestion_marks_than_the_last_reaches_the_sender",
            ),
            (
                ACKNOWLEDGEMENTS,
                "an_acknowledgement_with_another_option_reaches_the_sender",
            ),
            (ACKNOWLEDGEMENTS, "a_window_update_is_no_duplicate"),
        ]),
    },
    Weakness {
        number: 109,
        seen: "Strata before 0.1.0",
        what: "one mobile node's connections pushed those of all others out of SNOOP, the window limiter and what stands in",
        answer: Tests(&[
            (
                "pure/pep/tests/data.rs",
                "one_lines_connections_push_out_none_of_another_line",
            ),
            (
                "pure/pep/tests/data.rs",
                "one_lines_octets_leave_room_for_those_of_another_line",
            ),
            (
                "pure/pep/src/regulator.rs",
                "memory_is_bounded_and_one_line_pushes_out_no_other",
            ),
            (
                "pure/pep/src/lines.rs",
                "the_line_with_the_most_gives_way_by_what_it_used_the_longest_time_ago",
            ),
        ]),
    },
    Weakness {
        number: 110,
        seen: "Strata before 0.1.0",
        what: "acknowledgements that SNOOP held were lost with the SA, at a reload, and when the replay window had passed them",
        answer: Tests(&[
            (
                ACKNOWLEDGEMENTS,
                "what_is_held_leaves_before_its_sa_is_forgotten",
            ),
            (
                ACKNOWLEDGEMENTS,
                "what_is_held_leaves_while_the_replay_window_still_takes_it",
            ),
        ]),
    },
    Weakness {
        number: 111,
        seen: "Strata before 0.1.0",
        what: "each outer address of a mobile node left two rules of the kernel for ever; after 256 addresses none was diverted any more",
        answer: Tests(&[
            (
                "pure/node/src/pairs.rs",
                "of_three_hundred_addresses_of_one_direction_one_pair_is_left",
            ),
            (
                "pure/node/src/pairs.rs",
                "a_header_that_is_rewritten_in_each_packet_changes_the_pair_once_a_second",
            ),
        ]),
    },
    Weakness {
        number: 112,
        seen: "Strata before 0.1.0",
        what: "a station on the link of visitors that is at home at any address of the Internet, by a home agent of its own: the router, the hosts behind it and other visitors send to it what is for that address",
        answer: Tests(&[
            (
                "edge/os/tests/network/mobile.rs",
                "only_what_comes_by_the_tunnel_or_from_a_visitor_goes_to_one",
            ),
            (
                "edge/os/tests/network/mobile.rs",
                "without_listed_home_agents_no_visitor_gets_what_another_one_sends",
            ),
            (
                LINK,
                "nobody_is_at_home_where_visitors_may_not_be_or_the_host_has_a_network",
            ),
            (
                "pure/node/src/tests/mobile_ip.rs",
                "nobody_visits_who_has_the_address_of_a_peer_or_one_that_the_host_needs",
            ),
            (
                "edge/config/src/tests/mobility.rs",
                "whose_mobile_nodes_are_taken_is_written_out",
            ),
        ]),
    },
    Weakness {
        number: 113,
        seen: "Strata before 0.1.0",
        what: "a station, or a home agent of its own, that has all places of a foreign agent: for visitors, for requests that wait, for tokens; or pushes out the request of another station",
        answer: Tests(&[
            (LINK, "requests_of_a_station_push_out_none_of_another"),
            (
                LINK,
                "a_station_has_a_share_of_what_waits_and_a_newcomer_finds_room",
            ),
            (
                LINK,
                "a_station_has_a_few_visitors_and_the_others_find_room",
            ),
            (
                LINK,
                "a_home_agent_that_is_not_listed_has_a_share_of_the_visitors",
            ),
            (
                "pure/node/src/tests/migration.rs",
                "a_station_has_a_neighbour_asked_for_a_few_tokens_and_no_more",
            ),
            (
                "pure/node/src/tests/migration.rs",
                "tokens_that_were_refused_make_room_for_those_of_mobile_nodes",
            ),
        ]),
    },
    Weakness {
        number: 114,
        seen: "Strata before 0.1.0",
        what: "an advertisement from another station in the name of an agent in use, by which a mobile node sends there: requests, and then everything",
        answer: Tests(&[
            (FORGERIES, "no_advertisement_moves_where_an_agent_in_use_is"),
            (FORGERIES, "what_is_no_agents_advertisement_moves_nobody"),
            (
                FORGERIES,
                "a_reply_from_another_station_than_was_asked_is_not_taken",
            ),
            (
                FORGERIES,
                "an_agent_that_leaves_three_requests_unanswered_is_asked_where_it_is_heard",
            ),
        ]),
    },
    Weakness {
        number: 115,
        seen: "RFC 3519 section 6",
        what: "a registration that is heard on the air and sent from elsewhere first, with a wish for a tunnel in UDP or without: the packets go there, and the genuine one is accepted or is old",
        answer: Tests(&[
            (
                TUNNELS_IN_UDP,
                "a_copy_that_asks_for_udp_without_a_key_is_denied_and_makes_the_agents_own_not_old",
            ),
            (
                TUNNELS_IN_UDP,
                "a_registration_from_two_places_is_denied_at_the_second_and_told_once",
            ),
            (
                "pure/mobility/src/mobile_ip/tests/attacks.rs",
                "a_copy_from_elsewhere_makes_no_request_old",
            ),
        ]),
    },
    Weakness {
        number: 116,
        seen: "RFC 4301 section 8.2.1",
        what: "a forged ICMP message that has a tunnel of Mobile IP carry next to nothing for ten minutes",
        answer: Tests(&[
            (
                "pure/mobility/src/mobile_ip/tests/tunnel.rs",
                "no_source_is_told_of_less_than_every_link_takes",
            ),
            (
                NODE_PMTU,
                "what_is_not_believed_of_a_tunnel_of_mobile_ip_is_told_once_in_ten_minutes",
            ),
        ]),
    },
    Weakness {
        number: 117,
        seen: "RFC 5944 section 3.8",
        what: "a registration that was heard once and is sent again and again, in the name of any host: the home agent answers that host each time",
        answer: Tests(&[(
            "pure/mobility/src/mobile_ip/tests/attacks.rs",
            "old_requests_are_answered_so_often_in_a_second_and_new_ones_always",
        )]),
    },
    Weakness {
        number: 118,
        seen: "Strata before 0.1.0",
        what: "a packet in clear that claimed to come from a peer's address inside was forwarded into the protected network, and its answer went into the tunnel",
        answer: Tests(&[
            (
                GUARD,
                "what_claims_to_be_a_peer_is_dropped_and_told_with_its_source",
            ),
            (GUARD, "what_is_forwarded_to_hosts_behind_is_judged_as_well"),
            (
                GUARD,
                "in_transport_mode_the_peers_own_address_is_not_believed_in_clear",
            ),
            (
                GUARD,
                "the_guard_outlives_a_killed_daemon_and_ends_with_an_orderly_stop",
            ),
            (GUARD, "the_guard_does_not_need_the_program_nft"),
            (
                "edge/os/tests/network/clear.rs",
                "the_longest_prefix_decides_and_of_equal_ones_the_protected",
            ),
            (
                GUARD,
                "in_beet_mode_the_peers_address_inside_is_not_believed_in_clear",
            ),
            (
                GUARD,
                "a_licensed_node_with_peers_of_its_own_passes_tunnels_and_no_claims",
            ),
            (
                GUARD,
                "mobile_ip_passes_in_clear_and_what_claims_to_be_its_tunnel_does_not",
            ),
        ]),
    },
    Weakness {
        number: 119,
        seen: "any firewall's reload",
        what: "a program that flushes all rules of the kernel takes a guard along in silence; one that flushes or changes a single table leaves it there without its rules",
        answer: Tests(&[
            (
                GUARD,
                "a_guard_that_another_program_removes_is_told_and_comes_back",
            ),
            (
                "edge/os/tests/network/clear.rs",
                "what_others_change_of_it_looks_different_is_told_and_is_put_back_with_what_was_counted",
            ),
        ]),
    },
    Weakness {
        number: 120,
        seen: "Strata before 0.1.0",
        what: "a firewall or a network manager that removes what it did not install took a tunnel's routes, rules or table of nftables along; its traffic left in clear, and `status` showed the tunnel up",
        answer: Tests(&[
            (RESTORE, "a_flushed_table_is_filled_again"),
            (RESTORE, "a_deleted_rule_is_added_again"),
            (
                RESTORE,
                "a_device_that_was_taken_down_is_brought_up_with_its_addresses_and_routes",
            ),
            (RESTORE, "flushed_addresses_are_given_again"),
            (
                RESTORE,
                "the_fourth_time_within_a_minute_is_warned_of_until_a_reload",
            ),
            (
                RESTORE,
                "nothing_leaks_while_a_part_of_what_is_locked_is_missing",
            ),
            (RESTORE, "rules_of_a_licensed_node_are_added_again"),
            (
                "edge/os/tests/network/divert.rs",
                "what_another_program_removes_is_missing_and_put_back",
            ),
            (
                "edge/os/tests/network/changes.rs",
                "a_removal_of_what_is_ours_is_told_and_what_is_missing_is_put_back",
            ),
            (
                "edge/os/tests/network/changes.rs",
                "a_lock_that_others_change_is_told_and_looks_different",
            ),
        ]),
    },
    Weakness {
        number: 121,
        seen: "Strata before 0.1.0",
        what: "packets joined for the device and cut again had identifications that routers' fragments of other packets may have, and overtook fragments of their flow",
        answer: Tests(&[
            (JOIN, "what_a_router_may_fragment_keeps_its_identification"),
            (
                JOIN,
                "a_fragment_is_overtaken_by_no_datagram_between_its_addresses",
            ),
            (JOIN, "what_is_cut_again_is_what_came_among_fragments_too"),
        ]),
    },
    Weakness {
        number: 122,
        seen: "Strata before 0.1.0",
        what: "under load one copy of a first message is asked for a cookie and another is answered; the initiator was refused, for each end had another one in its proof",
        answer: Tests(&[(
            COOKIE,
            "a_cookie_that_is_wanted_of_one_copy_only_spoils_no_proof",
        )]),
    },
    Weakness {
        number: 123,
        seen: "Strata before 0.1.0",
        what: "a peer that makes new keys of its IKE SA as fast as it can: what is left of each one answered repeated requests for half a minute, and their number had no bound",
        answer: Tests(&[
            (
                "pure/ike/src/tests/bounds.rs",
                "what_is_left_of_ike_sas_that_a_peer_rekeys_without_end_is_bounded",
            ),
            (
                "pure/ike/src/tests/bounds.rs",
                "a_peer_that_begins_without_end_has_no_more_ike_sas_than_one_that_does_not",
            ),
        ]),
    },
    Weakness {
        number: 124,
        seen: "Strata before 0.1.0",
        what: "a peer that sends from ever new ports used up the checks of new addresses of its network, or of all networks: no other peer was followed when its NAT changed its mapping",
        answer: Tests(&[(
            "pure/ike/src/sa/following.rs",
            "a_peer_that_seems_to_be_everywhere_leaves_others_their_checks",
        )]),
    },
    Weakness {
        number: 125,
        seen: "Strata before 0.1.0",
        what: "tokens of one mobile node, shown by a neighbour of bad will, fill what a licensed node remembers of used ones: tokens of all others are refused as `Busy`",
        answer: Tests(&[(
            "pure/node/src/tests/migration.rs",
            "tokens_of_one_slot_without_end_leave_another_slot_its_places",
        )]),
    },
    Weakness {
        number: 126,
        seen: "Strata before 0.1.0",
        what: "a peer, a licensed node or a mobile node that is refused, moves or has new keys without end writes a line of the log each time, and an audit record of each refused grant: it fills the disk, and what is said of others drowns",
        answer: Tests(&[
            (
                "edge/stratad/src/journal.rs",
                "a_peer_that_is_refused_without_end_has_a_few_lines_and_others_have_theirs",
            ),
            (
                "edge/stratad/src/journal.rs",
                "a_mobile_node_that_registers_without_end_has_a_few_lines",
            ),
            (
                "edge/stratad/src/audit.rs",
                "refusals_that_a_gateway_causes_without_end_leave_room_for_what_is_given",
            ),
        ]),
    },
    Weakness {
        number: 127,
        seen: "Strata before 0.1.0",
        what: "the name of a PPK, which an initiator chooses, was written into the log as it came: with a line of its own in it that looks like one of ours, or with what moves the cursor",
        answer: Tests(&[
            (
                "pure/ike/src/extension/ppk.rs",
                "what_a_stranger_calls_its_ppk_writes_no_line_of_its_own",
            ),
            (
                "edge/stratad/src/journal.rs",
                "a_text_with_a_line_of_its_own_is_one_line",
            ),
            (
                "edge/stratad/src/audit.rs",
                "a_reason_with_a_line_of_its_own_is_one_record",
            ),
        ]),
    },
    Weakness {
        number: 128,
        seen: "Strata before 0.1.0",
        what: "a home agent that a foreign agent lists, and that accepts whatever it is asked, has all places for visitors: those of other home agents find none",
        answer: Tests(&[(
            LINK,
            "a_home_agent_that_fills_the_list_of_visitors_leaves_another_its_places",
        )]),
    },
    Weakness {
        number: 129,
        seen: "Strata before 0.1.0",
        what: "first messages with a cookie, and what half-open SAs send, waited in one queue with forged first messages and gave way to them",
        answer: Tests(&[
            (
                UNPROVED,
                "a_sender_that_receives_at_its_address_does_not_wait_behind_those_that_may_not",
            ),
            (
                UNPROVED,
                "senders_that_receive_at_their_addresses_leave_a_turn_to_others",
            ),
            (
                STRANGERS,
                "a_sender_is_known_to_receive_at_its_address_by_a_cookie_an_spi_or_a_stream",
            ),
        ]),
    },
    Weakness {
        number: 130,
        seen: "Strata before 0.1.0",
        what: "answers that ask forged addresses for cookies took time from packets that nothing bounded",
        answer: Tests(&[
            (
                UNPROVED,
                "answers_that_ask_for_cookies_get_one_part_of_twenty_four_and_keep_nothing",
            ),
            (
                UNPROVED,
                "no_turn_has_more_messages_to_ask_for_cookies_than_it_may",
            ),
            (UNPROVED, "what_has_to_wait_says_until_when"),
            (
                STRANGERS,
                "a_cookie_is_asked_for_in_the_same_way_whether_the_message_is_read_or_not",
            ),
            ("edge/stratad/src/streams.rs", "what_gives_way_is_reset"),
        ]),
    },
    Weakness {
        number: 131,
        seen: "Strata before 0.1.0",
        what: "a guard against packets in clear that the kernel refused to set up or to change was a line of the log, and neither `status` nor `doctor` showed it",
        answer: Tests(&[(
            GUARD,
            "a_guard_that_cannot_be_set_up_is_a_fault_that_stays_until_it_can",
        )]),
    },
    Weakness {
        number: 132,
        seen: "any network manager's restart",
        what: "rules and routes of Mobile IPv4 that another program removed stayed away until the next registration, and those of a home agent for hosts that were bound nowhere for good",
        answer: Tests(&[
            (
                "edge/os/tests/network/mobile.rs",
                "what_others_take_away_is_told_and_missing_and_put_back",
            ),
            (
                "edge/os/tests/network/mobile.rs",
                "what_goes_with_an_interface_that_is_down_is_not_missing",
            ),
        ]),
    },
    Weakness {
        number: 133,
        seen: "RFC 7296 section 2.4",
        what: "an unauthenticated INVALID_IKE_SPI, which anybody can forge, makes an implementation end a tunnel or start one after the other",
        answer: Tests(&[
            (
                "pure/ike/src/tests/liveness.rs",
                "an_unproved_refusal_of_a_question_begins_one_other_sa_and_ends_nothing",
            ),
            (
                "pure/ike/src/tests/liveness.rs",
                "a_question_on_an_unknown_sa_is_told_so_in_fewer_octets_and_64_times_a_second",
            ),
        ]),
    },
    Weakness {
        number: 134,
        seen: "RFC 7296 section 2.23",
        what: "the source of an authentic packet, which anybody on the path can rewrite, leads a tunnel's packets to a third party",
        answer: Tests(&[(
            "pure/node/src/tests/following.rs",
            "rewritten_packets_send_a_third_party_rare_questions_and_nothing_else",
        )]),
    },
    Weakness {
        number: 135,
        seen: "Strata before 0.1.0",
        what: "an authenticated peer whose configuration overlaps with that of another took over the other's packets by its next SA, or by negotiating less, and sent packets in the name of its hosts",
        answer: Tests(&[
            (
                "pure/esp/tests/data_plane/claims.rs",
                "a_peer_takes_over_no_packets_of_a_tunnel_whose_peer_is_configured_more_narrowly",
            ),
            (
                "pure/esp/tests/data_plane/claims.rs",
                "of_equal_claims_that_of_the_established_tunnel_counts_until_it_is_gone",
            ),
            (
                "pure/esp/tests/data_plane/claims.rs",
                "a_peer_sends_nothing_in_the_name_of_hosts_that_another_claims_more_narrowly",
            ),
            (
                "pure/esp/tests/data_plane/claims.rs",
                "claims_of_another_configuration_count_for_established_tunnels",
            ),
            (
                "pure/esp/src/claims.rs",
                "the_narrowest_claim_of_all_is_found",
            ),
            (
                "pure/esp/src/order.rs",
                "the_peer_that_was_there_first_keeps_its_place_through_rekeys_until_it_is_gone",
            ),
            (
                "edge/config/src/tests/faults.rs",
                "what_is_probably_not_meant_is_a_warning",
            ),
        ]),
    },
    Weakness {
        number: 136,
        seen: "Strata before 0.1.0",
        what: "one of several home agents accepted registrations of another one's mobile nodes at a foreign agent, and so had their packets or kept them away",
        answer: Tests(&[
            (
                LINK,
                "a_listed_home_agent_does_not_vouch_for_mobile_nodes_of_another",
            ),
            (
                "edge/config/src/tests/mobility.rs",
                "home_agents_that_share_home_networks_are_told",
            ),
        ]),
    },
    Weakness {
        number: 137,
        seen: "Strata before 0.1.0",
        what: "each list of addresses from a peer had the kernel asked for the routes to all peers",
        answer: Tests(&[
            (
                "pure/node/src/tests/ways.rs",
                "a_peer_that_lists_other_addresses_without_end_has_its_own_looked_up_once_a_second",
            ),
            (
                "pure/node/src/tests/ways.rs",
                "a_list_that_is_repeated_asks_for_nothing",
            ),
        ]),
    },
    Weakness {
        number: 138,
        seen: "Strata before 0.1.0",
        what: "a peer with an address of a pool that set up and deleted IKE SAs as fast as it could had the daemon wait for the disk each time",
        answer: Tests(&[
            (
                "pure/ike/src/pool.rs",
                "new_addresses_alone_are_kept_before_the_answer",
            ),
            (
                "edge/stratad/src/leases.rs",
                "a_peer_that_comes_and_goes_without_end_costs_one_write_a_second",
            ),
            (
                "edge/stratad/src/leases.rs",
                "a_slow_disk_has_a_twentieth_of_the_time",
            ),
            (
                "edge/stratad/src/leases.rs",
                "what_an_answer_depends_on_is_written_at_once_with_all_that_waits",
            ),
        ]),
    },
    Weakness {
        number: 139,
        seen: "Strata before 0.1.0",
        what: "a mapping of a NAT that changes again while the last change is checked is found only after a pause of 3 s",
        answer: Tests(&[
            (
                "pure/node/src/tests/following.rs",
                "a_mapping_that_changes_again_while_it_is_checked_is_found_within_a_second",
            ),
            (
                "pure/node/src/tests/following.rs",
                "packets_from_a_newer_mapping_are_not_kept_waiting_by_the_check_of_a_message",
            ),
            (
                "pure/node/src/tests/following.rs",
                "packets_from_ever_new_addresses_lead_to_few_questions",
            ),
            (
                "pure/ike/src/sa/pace.rs",
                "a_few_checks_replace_each_other_and_the_last_one_ends",
            ),
        ]),
    },
    Weakness {
        number: 140,
        seen: "Strata before 0.1.0",
        what: "a third party that relays packets and checks gets a tunnel, or keeps it from the peer whose packets arrive again",
        answer: Tests(&[
            (
                "pure/node/src/tests/following.rs",
                "packets_and_checks_that_a_third_party_relays_leave_the_sa_with_its_host",
            ),
            (
                "pure/node/src/tests/following.rs",
                "the_host_is_back_as_soon_as_its_own_packets_arrive_however_long_a_third_party_relayed_them",
            ),
            (
                "pure/ike/src/tests/nat.rs",
                "an_update_brings_back_packets_that_a_third_party_took",
            ),
        ]),
    },
    Weakness {
        number: 141,
        seen: "Strata before 0.1.0",
        what: "an update of the addresses from the path of the IKE SA leaves ESP where a check led it",
        answer: Tests(&[(
            "pure/ike/src/tests/nat.rs",
            "an_update_brings_back_packets_that_were_mapped_apart",
        )]),
    },
    Weakness {
        number: 142,
        seen: "Strata before 0.1.0",
        what: "a peer that was given up as silent and comes back hears nothing on its IKE SA, and sends into a void until its own liveness check fails",
        answer: Tests(&[
            (
                "pure/ike/src/tests/liveness.rs",
                "a_peer_that_was_given_up_is_back_within_a_second_of_its_question",
            ),
            (
                "pure/ike/src/tests/liveness.rs",
                "a_question_on_an_sa_that_was_ended_gets_no_answer",
            ),
            (
                "pure/ike/src/ike_spi.rs",
                "the_newest_of_the_sas_that_ended_without_a_delete_are_known",
            ),
        ]),
    },
    Weakness {
        number: 143,
        seen: "strongSwan (table 220, `install_routes`)",
        what: "packets of a site's router itself get the address of another interface, which no tunnel carries, and vanish",
        answer: Tests(&[
            (
                "lab/tests/e2e/operate/sources.rs",
                "a_router_of_a_site_reaches_the_other_site_itself",
            ),
            (
                "lab/tests/e2e/operate/sources.rs",
                "an_address_may_come_later_go_and_come_back",
            ),
            (
                "edge/stratad/src/plan.rs",
                "a_route_prefers_an_address_of_this_host_that_the_tunnel_carries",
            ),
        ]),
    },
    Weakness {
        number: 144,
        seen: "users of VPN daemons started at boot",
        what: "the daemon is faster than the network and ends, because an interface or an address is not there yet",
        answer: Tests(&[
            (
                "lab/tests/e2e/operate/awaited.rs",
                "a_licensed_node_diverts_as_soon_as_its_interfaces_exist",
            ),
            (
                "lab/tests/e2e/operate/awaited.rs",
                "a_tunnel_comes_up_once_the_address_to_listen_on_exists",
            ),
            (
                "lab/tests/e2e/operate/awaited.rs",
                "a_foreign_agent_serves_visitors_as_soon_as_its_interface_exists",
            ),
        ]),
    },
    Weakness {
        number: 145,
        seen: "Strata before 0.1.0",
        what: "a station that claims the address of a home agent, where none is listed, keeps the mobile nodes of that home agent out",
        answer: Tests(&[(
            "pure/mobility/src/mobile_ip/tests/foreign_agent/link.rs",
            "a_station_with_the_address_of_a_home_agent_keeps_none_of_its_mobile_nodes_out",
        )]),
    },
    Weakness {
        number: 146,
        seen: "Strata before 0.1.0",
        what: "copies and forgeries of a peer's messages, in masses, cost as much as new messages, and slow down the traffic of others; or use up a limit, so that an authentic message is dropped",
        answer: Tests(&[
            (
                "pure/ike/src/tests/screen.rs",
                "no_state_runs_for_a_message_that_was_received_before",
            ),
            (
                "pure/ike/src/tests/screen.rs",
                "no_state_runs_for_a_message_that_is_damaged_or_outside_the_window",
            ),
            (
                "pure/ike/src/tests/screen.rs",
                "no_state_runs_for_a_fragment_that_is_forged_or_was_received_before",
            ),
            (
                "pure/ike/src/tests/screen.rs",
                "no_state_runs_for_the_fragments_of_a_request_that_was_answered",
            ),
            (
                "pure/ike/src/tests/screen.rs",
                "forgeries_keep_no_authentic_message_out",
            ),
        ]),
    },
    Weakness {
        number: 147,
        seen: "Strata before 0.1.0",
        what: "first messages of a host whose half-open SAs occupy all of its places are asked for cookies, queued and verified, before they are refused",
        answer: Tests(&[(
            "pure/ike/src/tests/strangers.rs",
            "a_message_from_a_host_without_a_free_place_is_dropped_unread",
        )]),
    },
    Weakness {
        number: 148,
        seen: "Strata before 0.1.0, with `rp_filter` 1 or 2 at the mobile node",
        what: "the kernel drops the gateway's request that follows the reply to a registration, as there is no route through the new agent yet, and keys come a retransmission timeout late",
        answer: Tests(&[
            (
                "lab/tests/e2e/mobility/reverse_paths.rs",
                "a_request_that_comes_before_the_reply_is_read_is_answered",
            ),
            (
                "lab/tests/e2e/mobility/reverse_paths.rs",
                "pushed_keys_come_with_the_move_whatever_the_reverse_path_check",
            ),
            (
                "lab/tests/e2e/mobility/reverse_paths.rs",
                "with_dkm_the_own_keys_come_with_the_move_whatever_the_reverse_path_check",
            ),
            (
                "edge/os/tests/network/mobile.rs",
                "packets_of_a_tunnel_arrive_on_each_interface_whichever_one_packets_leave_by",
            ),
        ]),
    },
    Weakness {
        number: 149,
        seen: "Strata before 0.1.0",
        what: "a mobile node disappears and its binding expires, and the node that it was at keeps its keys",
        answer: Tests(&[(
            "pure/node/tests/roaming/handover.rs",
            "a_binding_that_expires_takes_its_keys_back_and_who_is_bound_again_has_others",
        )]),
    },
    Weakness {
        number: 150,
        seen: "hostile.md, load beside strongSwan (10,000 SAs)",
        what: "a set-up, a rekey or the end of a tunnel costs the more, the more tunnels are up",
        answer: Tests(&[
            (
                "pure/node/src/tests/scale.rs",
                "a_tunnel_is_set_up_renewed_moved_and_taken_down_without_a_visit_of_all",
            ),
            (
                "pure/node/tests/scale.rs",
                "a_set_up_and_an_end_take_as_many_octets_with_a_thousand_tunnels_as_with_sixteen",
            ),
            (
                "pure/ike/src/pool.rs",
                "a_large_pool_is_lent_completely_and_reclaimed_without_visiting_each_lease",
            ),
        ]),
    },
    Weakness {
        number: 151,
        seen: "read in the source",
        what: "a pool that shrinks gives the address of a lease that it cannot replace to a second peer",
        answer: Tests(&[(
            "pure/ike/src/pool.rs",
            "an_address_that_cannot_be_replaced_stays_that_of_its_identity",
        )]),
    },
    Weakness {
        number: 152,
        seen: "two laptops with one configuration",
        what: "two machines with one identity and key replaced each other's IKE SA without end, and every end said that the tunnel was up",
        answer: Tests(&[
            (
                "pure/ike/src/tests/handshake.rs",
                "a_peer_that_connects_from_elsewhere_while_it_is_up_is_told_with_both_addresses",
            ),
            (
                "pure/node/src/rivals.rs",
                "two_or_three_machines_that_take_turns_are_told",
            ),
            (
                "lab/tests/e2e/operate/explain.rs",
                "two_machines_with_one_key_are_told_as_that",
            ),
        ]),
    },
    Weakness {
        number: 153,
        seen: "Strata before 0.1.0",
        what: "the refusal of an unknown host did not name its address, so that operators could neither find nor block it",
        answer: Tests(&[
            (
                "pure/ike/src/tests/refusal.rs",
                "the_refusal_of_an_initiator_that_proves_nothing_names_its_address",
            ),
            (
                "edge/stratad/src/journal.rs",
                "a_refused_host_is_named_by_its_address",
            ),
        ]),
    },
    Weakness {
        number: 154,
        seen: "any daemon with a log of packets",
        what: "a flood of messages or packets fills the disk with lines of the level `trace`",
        answer: Tests(&[(
            "edge/stratad/src/trace.rs",
            "a_flood_of_drops_has_few_lines_and_the_next_line_counts_the_rest",
        )]),
    },
    Weakness {
        number: 155,
        seen: "Strata before 0.1.0",
        what: "a failure that lasts (name servers, leases, the audit log, no route, a firewall of this host) was a line of the log, and `status` and `doctor` said that all was well",
        answer: Tests(&[
            (
                "edge/stratad/src/troubles.rs",
                "a_failure_is_shown_until_the_task_succeeds",
            ),
            (
                "edge/stratad/src/unsent.rs",
                "a_request_without_a_route_is_told_once_until_one_is_sent",
            ),
            (
                "edge/stratad/src/unsent.rs",
                "answers_to_addresses_that_do_not_exist_leave_nothing",
            ),
            (
                "lab/tests/e2e/operate/explain.rs",
                "a_firewall_of_this_host_is_named_until_it_lets_messages_pass",
            ),
            (
                "lab/tests/e2e/operate/awaited.rs",
                "a_host_that_no_longer_forwards_is_shown_until_it_does",
            ),
        ]),
    },
    Weakness {
        number: 156,
        seen: "Strata before 0.1.0",
        what: "a path that drops fragments swallowed every packet as long as the default allowed, while `status` said that the tunnel was up",
        answer: Tests(&[
            (PROBES, "without_a_word_of_the_router_everything_arrives"),
            (
                PROBES,
                "without_probes_nothing_arrives_over_a_wire_without_fragments",
            ),
        ]),
    },
    Weakness {
        number: 157,
        seen: "RFC 8899 section 4.6",
        what: "a forged ICMP message that shortens all packets of a tunnel for ten minutes, or a flood of them that keeps a search from its end",
        answer: Tests(&[
            (PROBES, "a_forged_report_shortens_nothing"),
            (SEARCH, "a_forged_report_shortens_nothing"),
            (SEARCH, "forged_reports_do_not_keep_a_search_from_its_end"),
        ]),
    },
    Weakness {
        number: 158,
        seen: "RFC 8899 section 9",
        what: "a peer that echoes what it did not receive, repeats echoes, or has probes answered without end",
        answer: Tests(&[
            (
                "pure/node/src/tests/probes.rs",
                "a_peer_that_echoes_wrongly_gains_nothing",
            ),
            (SEARCH, "echoes_that_nobody_waits_for_change_nothing"),
        ]),
    },
    Weakness {
        number: 159,
        seen: "Strata before 0.1.0",
        what: "a third party that hands over one packet in four before the network does keeps a tunnel without MOBIKE from a new mapping of the peer's NAT, or gets it",
        answer: Tests(&[
            (
                "pure/node/src/tests/following.rs",
                "a_third_party_that_relays_some_packets_does_not_keep_a_new_mapping_from_being_found",
            ),
            (
                "pure/esp/src/source.rs",
                "a_third_party_that_hands_over_some_packets_early_loses_to_the_path_of_the_others",
            ),
            (
                "pure/esp/src/source.rs",
                "late_packets_from_before_do_not_keep_the_peer_where_it_was",
            ),
        ]),
    },
    Weakness {
        number: 160,
        seen: "Strata before 0.1.0",
        what: "a flood of first messages is dropped without a line in the log, and the audit log is silent about nodes that had keys before it was switched on",
        answer: Tests(&[
            (
                "edge/stratad/src/unproved.rs",
                "each_message_is_handled_answered_or_counted_as_lost_exactly_once",
            ),
            (
                "edge/stratad/src/unproved/lost.rs",
                "a_flood_has_a_line_each_ten_seconds_and_the_lines_count_each_message_once",
            ),
            (
                "lab/tests/e2e/operate/audit.rs",
                "a_configuration_without_a_log_is_told_how_to_have_one",
            ),
        ]),
    },
    Weakness {
        number: 161,
        seen: "Strata before 0.1.0",
        what: "each genuine message of an IKE SA is decrypted twice, so that an authenticated peer's flood costs twice as much",
        answer: Tests(&[(
            "pure/ike/src/tests/screen.rs",
            "each_genuine_message_is_decrypted_once_and_each_forgery_too",
        )]),
    },
    Weakness {
        number: 162,
        seen: "Strata before 0.1.0",
        what: "most commands and outputs on the pages for operators had no test, so a changed command or message made a page wrong, and nothing failed",
        answer: Tests(&[
            (
                "lab/tests/e2e/pages/operate.rs",
                "every_page_is_followed_and_every_place_elsewhere_is_used",
            ),
            (
                "lab/tests/e2e/pages/operate.rs",
                "a_page_with_a_wrong_line_fails",
            ),
        ]),
    },
    Weakness {
        number: 163,
        seen: "Strata before 0.1.0",
        what: "an operator who looked for firewall ports, a backup or the way to uninstall found no page",
        answer: Tests(&[
            (
                "edge/pages/src/operate.rs",
                "the_words_of_an_operator_lead_to_the_page",
            ),
            ("lab/tests/e2e/pages/operate.rs", "network_managers"),
            ("lab/tests/e2e/pages/operate.rs", "upgrade"),
        ]),
    },
];
