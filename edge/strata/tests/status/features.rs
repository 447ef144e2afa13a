//! The features of Strata. A new key or verb needs a feature here, or belongs to an existing one.

/// A feature that a user can enable.
pub struct Feature {
    /// Name of the feature for users.
    pub name: &'static str,
    /// Configuration keys; `*.psk` is that key in every kind of peer table.
    pub keys: &'static [&'static str],
    /// Verbs of `strata`; those of `strata-lab` with the name of the program.
    pub verbs: &'static [&'static str],
    /// Evidence that it works, with the real programs in network namespaces.
    pub works: Evidence,
    /// Evidence of the message to the user where the feature is refused.
    pub refuses: Evidence,
    /// Evidence of its recovery after the loss of packets, processes or peers.
    pub recovers: Evidence,
}

/// Evidence for a claim.
pub enum Evidence {
    /// Test functions: file and name.
    Tests(&'static [(&'static str, &'static str)]),
    /// Not applicable, with the reason.
    NotNeeded(&'static str),
}

use Evidence::{NotNeeded, Tests};

const CLEAR: &str = "lab/tests/e2e/operate/clear.rs";
const OS_CLEAR: &str = "edge/os/tests/network/clear.rs";
const RESTORE: &str = "lab/tests/e2e/operate/restore.rs";
const SIGHT: &str = "lab/tests/e2e/operate/sight.rs";
const AWAITED: &str = "lab/tests/e2e/operate/awaited.rs";
const ADDRESSES: &str = "lab/tests/e2e/session/addresses.rs";
const ADDRESSES_FILE: &str = "edge/config/src/tests/addresses.rs";
const AUDIT: &str = "lab/tests/e2e/operate/audit.rs";
const AUDIT_LINE: &str = "edge/stratad/src/audit.rs";
const AUDIT_NODE: &str = "pure/node/src/tests/record.rs";
const BENCH: &str = "lab/tests/e2e/measure/bench.rs";
const CHILDREN: &str = "lab/tests/e2e/session/children.rs";
const CHILDREN_FILE: &str = "edge/config/src/tests/children.rs";
const CHILDREN_SWAN: &str = "lab/tests/e2e/interop/children.rs";
const IKE_CHILDREN: &str = "pure/ike/src/tests/children.rs";
const CERTIFICATES: &str = "pure/ike/src/tests/certificates.rs";
const CLAMP: &str = "lab/tests/e2e/traffic/clamp.rs";
const MSS: &str = "pure/wire/src/mss.rs";
const OFFLOAD: &str = "lab/tests/e2e/traffic/offload.rs";
const BULK: &str = "edge/os/tests/network/bulk.rs";
const AEAD: &str = "lab/tests/e2e/traffic/aead.rs";
const SAME: &str = "edge/ipsec-mb/tests/same.rs";
const PASSAGE: &str = "edge/os/tests/network/passage.rs";
const PMTU: &str = "lab/tests/e2e/traffic/pmtu.rs";
const PROBES: &str = "lab/tests/e2e/traffic/probes.rs";
const NODE_PROBES: &str = "pure/node/src/tests/probes.rs";
const SEARCH: &str = "pure/node/src/path_mtu/search/tests.rs";
const NODE_PMTU: &str = "pure/node/src/tests/path_mtu.rs";
const ROOM: &str = "pure/esp/tests/data_plane/room.rs";
const TOO_BIG: &str = "pure/wire/src/too_big.rs";
const CLONE: &str = "lab/tests/e2e/session/clone.rs";
const CLONE_TSHARK: &str = "lab/tests/e2e/interop/clone.rs";
const IKE_CLONE: &str = "pure/ike/src/tests/clone.rs";
const NODE_CLONE: &str = "pure/node/src/tests/clone.rs";
const COMMANDS: &str = "edge/strata/tests/commands.rs";
const CRASH: &str = "lab/tests/e2e/operate/crash.rs";
const DEMO: &str = "lab/tests/e2e/measure/demo.rs";
const DEMO_ROAM: &str = "lab/tests/e2e/measure/demo_roam.rs";
const DSCP: &str = "lab/tests/e2e/traffic/dscp.rs";
const ECN: &str = "lab/tests/e2e/traffic/ecn.rs";
const ECN_ESP: &str = "pure/esp/tests/data_plane/ecn.rs";
const ECN_NODE: &str = "pure/node/src/tests/ecn.rs";
const ENCAPSULATION: &str = "lab/tests/e2e/traffic/encapsulation.rs";
const IKE_ENCAPSULATION: &str = "pure/ike/src/tests/encapsulation.rs";
const ESP_SOCKET: &str = "edge/os/tests/network/esp.rs";
const ESN: &str = "lab/tests/e2e/traffic/esn.rs";
const ESN_ESP: &str = "pure/esp/tests/data_plane/esn.rs";
const ESN_FILE: &str = "edge/config/src/tests/esn.rs";
const IKE_ESN: &str = "pure/ike/src/tests/esn.rs";
const EXPLAIN: &str = "lab/tests/e2e/operate/explain.rs";
const FAULTS: &str = "edge/config/src/tests/faults.rs";
const FRAGMENT: &str = "lab/tests/e2e/traffic/fragment.rs";
const GUEST: &str = "lab/tests/e2e/interop/guest.rs";
const FIGURES: &str = "lab/tests/e2e/measure/figures.rs";
const GROUPS: &str = "pure/ike/src/tests/groups.rs";
const LAYOUT: &str = "lab/tests/e2e/zones/layout.rs";
const LEVEL: &str = "lab/tests/e2e/zones/level.rs";
const LEVEL_FILE: &str = "edge/config/src/tests/level.rs";
const LEVEL_ESP: &str = "pure/esp/tests/data_plane/level.rs";
const LEVEL_NODE: &str = "pure/node/src/tests/level.rs";
const IKE_LEVEL: &str = "pure/ike/src/tests/level.rs";
const MATRIX: &str = "lab/tests/e2e/interop/matrix.rs";
const MAP: &str = "lab/tests/e2e/zones/map.rs";
const CONFIG_ZONES: &str = "edge/config/src/tests/zones.rs";
const LEAK: &str = "lab/tests/e2e/operate/leak.rs";
const WORKERS: &str = "lab/tests/e2e/traffic/workers.rs";
const ESP_WORKERS: &str = "pure/esp/src/workers.rs";
const RESOURCE: &str = "lab/tests/e2e/session/resource.rs";
const RESOURCE_NODE: &str = "pure/node/src/tests/resource.rs";
const IKE_RESOURCE: &str = "pure/ike/src/tests/resource.rs";
const ZONEMODE: &str = "lab/tests/e2e/zones/zonemode.rs";
const BARE_ESP: &str = "pure/esp/tests/data_plane/bare.rs";
const LEDGER: &str = "pure/node/src/tests/ledger.rs";
const MODE: &str = "lab/tests/e2e/traffic/mode.rs";
const MODE_FILE: &str = "edge/config/src/tests/mode.rs";
const MODE_ESP: &str = "pure/esp/tests/data_plane/mode.rs";
const MODE_NODE: &str = "pure/node/src/tests/mode.rs";
const IKE_MODE: &str = "pure/ike/src/tests/mode.rs";
const MOBIKE: &str = "lab/tests/e2e/mobility/mobike.rs";
const MOBILE: &str = "lab/tests/e2e/mobility/mobile.rs";
const MOBILE_FLOW: &str = "pure/mobility/src/mobile_ip/tests/flow.rs";
const MOBILE_HANDOVER: &str = "pure/mobility/src/mobile_ip/tests/handover.rs";
const MOBILE_NAT: &str = "lab/tests/e2e/mobility/mobile_nat.rs";
const MOBILE_NODE: &str = "pure/node/src/tests/mobile_ip.rs";
const MOBILE_TRIO: &str = "pure/mobility/src/mobile_ip/tests/trio.rs";
const IKE_MOBIKE: &str = "pure/ike/src/tests/mobike.rs";
const GRANT: &str = "lab/tests/e2e/zones/grant.rs";
const REVOKED_NODE: &str = "pure/node/src/tests/revocation.rs";
const WRITE: &str = "lab/tests/e2e/zones/write.rs";
const HANDOVER: &str = "lab/tests/e2e/mobility/handover.rs";
const HOLDERS: &str = "lab/tests/e2e/mobility/holders.rs";
const LAB_WALKS: &str = "lab/tests/e2e/mobility/walks.rs";
const NODE_SHARED: &str = "pure/node/tests/roaming/shared.rs";
const NODE_HANDOVER: &str = "pure/node/tests/roaming/handover.rs";
const NODE_ATTACKS: &str = "pure/node/tests/roaming/attacks.rs";
const NODE_WALKS: &str = "pure/node/tests/roaming/walks.rs";
const IKE_SLOT: &str = "pure/ike/src/tests/slot.rs";
const CONFIG_HANDOVER: &str = "edge/config/src/tests/handover.rs";
const MIGRATION: &str = "pure/node/src/tests/migration.rs";
const IKE_LIVENESS: &str = "pure/ike/src/tests/liveness.rs";
const IKE_MIGRATION: &str = "pure/ike/src/tests/migration.rs";
const INJECT: &str = "lab/tests/e2e/zones/inject.rs";
const INJECT_NODE: &str = "pure/node/src/tests/inject.rs";
const INJECT_ESP: &str = "pure/esp/tests/data_plane/injection.rs";
const IKE_LICENCES: &str = "pure/ike/src/tests/licences.rs";
const LICENCE: &str = "lab/tests/e2e/zones/licence.rs";
const PKI: &str = "lab/tests/e2e/session/pki.rs";
const POOL: &str = "pure/ike/src/pool.rs";
const SERVICE: &str = "lab/tests/e2e/operate/service.rs";
const SINGLE: &str = "lab/tests/e2e/operate/single.rs";
const POLICY: &str = "lab/tests/e2e/session/policy.rs";
const PPK: &str = "lab/tests/e2e/session/ppk.rs";
const KEM: &str = "lab/tests/e2e/session/kem.rs";
const IKE_KEM: &str = "pure/ike/src/tests/kem.rs";
const FOLLOWUP: &str = "pure/ike/src/tests/followup.rs";
const IKE_PPK: &str = "pure/ike/src/tests/ppk.rs";
const PPK_SWAN: &str = "lab/tests/e2e/interop/ppk.rs";
const PUBKEY: &str = "lab/tests/e2e/session/pubkey.rs";
const PUBKEY_SWAN: &str = "lab/tests/e2e/interop/pubkey.rs";
const IKE_PUBKEY: &str = "pure/ike/src/tests/raw_keys.rs";
const REAUTH: &str = "lab/tests/e2e/session/reauth.rs";
const IKE_REAUTH: &str = "pure/ike/src/tests/reauth.rs";
const NODE_REAUTH: &str = "pure/node/src/tests/reauth.rs";
const COVER_NODE: &str = "pure/node/src/tests/cover.rs";
const TFC: &str = "lab/tests/e2e/traffic/tfc.rs";
const TFC_ESP: &str = "pure/esp/tests/data_plane/padding.rs";
const TFC_SWAN: &str = "lab/tests/e2e/interop/tfc.rs";
const REAUTH_SWAN: &str = "lab/tests/e2e/interop/reauth.rs";
const WINDOW: &str = "lab/tests/e2e/session/window.rs";
const IKE_WINDOW: &str = "pure/ike/src/tests/window.rs";
const REDIRECT: &str = "lab/tests/e2e/session/redirect.rs";
const IKE_REDIRECT: &str = "pure/ike/src/tests/redirect.rs";
const BACK: &str = "lab/tests/e2e/session/back.rs";
const RECOVERY: &str = "lab/tests/e2e/session/recovery.rs";
const REKEY: &str = "lab/tests/e2e/session/rekey.rs";
const NODE_REKEY: &str = "pure/node/src/tests/rekey.rs";
const REFUSAL: &str = "lab/tests/e2e/session/refusal.rs";
const RELOAD: &str = "lab/tests/e2e/operate/reload.rs";
const RELOCK: &str = "lab/tests/e2e/operate/relock.rs";
const SPLIT: &str = "lab/tests/e2e/zones/split.rs";
const SELECTORS: &str = "lab/tests/e2e/traffic/selectors.rs";
const RENEWAL: &str = "lab/tests/e2e/session/renewal.rs";
const REVOCATION: &str = "lab/tests/e2e/session/revocation.rs";
const IKE_REVOCATION: &str = "pure/ike/src/tests/revocation.rs";
const IKE_ADDRESSES: &str = "pure/ike/src/tests/addresses.rs";
const STORE: &str = "edge/store/src/tests.rs";
const STRONGSWAN: &str = "lab/tests/e2e/interop/strongswan.rs";
const SUITES: &str = "lab/tests/e2e/interop/suites.rs";
const IKE_SUITES: &str = "pure/ike/src/tests/suites.rs";
const TCP: &str = "lab/tests/e2e/traffic/tcp.rs";
const IKE_TCP: &str = "pure/ike/src/tests/tcp.rs";
const TCP_TSHARK: &str = "lab/tests/e2e/interop/tcp.rs";
const STREAM: &str = "pure/wire/src/stream.rs";
const TUNNELS_IN_UDP: &str = "pure/mobility/src/mobile_ip/tests/nat.rs";
const TRUST: &str = "pure/crypto/src/trust.rs";
const TRANSFER: &str = "lab/tests/e2e/traffic/transfer.rs";
const TSHARK: &str = "lab/tests/e2e/interop/tshark.rs";
const DNS: &str = "lab/tests/e2e/operate/dns.rs";
const DOCTOR: &str = "lab/tests/e2e/operate/doctor.rs";
const DOWNLOAD: &str = "pure/pep/tests/download.rs";
const NODE_RECOVERY: &str = "pure/node/src/tests/recovery.rs";

/// All features, in the order of the page.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "A tunnel",
        keys: &[
            "node.id",
            "tunnel.name",
            "tunnel.mtu",
            "tunnel.addresses",
            "*.id",
            "*.address",
            "peer.local",
            "peer.remote",
            "peer.start",
            "listen.ike",
            "listen.nat",
        ],
        verbs: &["up", "down"],
        works: Tests(&[
            (TRANSFER, "two_hundred_mb_pass_a_plain_tunnel"),
            (TRANSFER, "ipv6_passes_over_ipv4"),
            (TRANSFER, "wires_of_mtu_1280_are_passed"),
            (STRONGSWAN, "strongswan_connects_and_20_mb_pass_each_way"),
            (STRONGSWAN, "strata_connects_and_20_mb_pass_each_way"),
        ]),
        refuses: Tests(&[
            (
                SELECTORS,
                "a_source_outside_the_selectors_does_not_enter_the_tunnel",
            ),
            (
                SELECTORS,
                "a_source_outside_the_selectors_does_not_leave_the_tunnel",
            ),
            (STRONGSWAN, "an_unknown_identity_is_refused_with_a_reason"),
            (
                STRONGSWAN,
                "selectors_outside_ours_are_refused_with_a_reason",
            ),
            (
                REFUSAL,
                "a_peer_that_begins_is_refused_while_its_tunnel_is_down_here",
            ),
            (REFUSAL, "a_port_that_is_taken_is_told_with_the_fix"),
            (
                REFUSAL,
                "a_peer_that_does_not_exist_is_told_with_those_that_do",
            ),
            (REFUSAL, "missing_rights_are_told_with_the_fix"),
            (REFUSAL, "a_missing_tun_device_is_told_with_the_fix"),
        ]),
        recovers: Tests(&[
            (
                NODE_RECOVERY,
                "the_tunnel_comes_up_over_hops_that_lose_repeat_and_delay",
            ),
            (RECOVERY, "a_killed_mobile_node_comes_back_with_its_tunnel"),
            (
                BACK,
                "a_gateway_that_was_killed_is_back_within_five_seconds",
            ),
            (
                BACK,
                "a_nat_that_gives_other_ports_costs_less_than_a_second",
            ),
            (
                BACK,
                "a_nat_that_maps_esp_apart_from_ike_is_followed_as_fast",
            ),
            (
                RECOVERY,
                "a_key_that_both_ends_change_is_used_within_five_seconds",
            ),
            (
                RECOVERY,
                "sigterm_of_the_gateway_takes_the_mobile_nodes_end_down",
            ),
            (
                RECOVERY,
                "whoever_is_suspended_while_he_waits_gets_his_answer",
            ),
        ]),
    },
    Feature {
        name: "Addresses out of a pool",
        keys: &[
            "peer.pool",
            "peer.dns",
            "pool.addresses",
            "pool.dns",
            "pool.lease",
            "store.file",
        ],
        verbs: &["leases"],
        works: Tests(&[
            (
                ADDRESSES,
                "lent_addresses_of_both_families_carry_octets_and_go_with_the_tunnel",
            ),
            (
                ADDRESSES,
                "another_pool_gives_another_address_without_a_restart",
            ),
            (
                ADDRESSES,
                "name_servers_come_from_the_peer_where_that_is_wanted",
            ),
            (STRONGSWAN, "strongswan_gets_addresses_out_of_our_pool"),
            (STRONGSWAN, "strongswan_lends_us_addresses_out_of_its_pools"),
        ]),
        refuses: Tests(&[
            (ADDRESSES, "an_exhausted_pool_is_told_at_both_ends"),
            (
                ADDRESSES,
                "who_does_not_ask_for_an_address_is_told_at_both_ends",
            ),
            (
                ADDRESSES,
                "two_peers_have_two_addresses_and_neither_passes_with_the_others",
            ),
            (
                STRONGSWAN,
                "strongswan_claiming_anothers_address_gets_no_tunnel",
            ),
            (
                SELECTORS,
                "an_address_that_was_lent_to_another_is_no_source",
            ),
            (
                ADDRESSES,
                "a_store_that_cannot_be_used_is_told_with_the_fix",
            ),
        ]),
        recovers: Tests(&[
            (
                ADDRESSES,
                "the_same_address_comes_back_after_kill_9_of_either_end",
            ),
            (ADDRESSES, "addresses_are_lent_over_a_lossy_hop"),
            (POOL, "whatever_happens_no_address_has_two_owners"),
            (STORE, "a_damaged_file_is_repaired_or_refused"),
            (CRASH, "a_crash_anywhere_leaves_nothing_after_the_next_stop"),
        ]),
    },
    Feature {
        name: "Split routes",
        keys: &["peer.routes", "pool.subnets"],
        verbs: &[],
        works: Tests(&[
            (
                SPLIT,
                "what_is_behind_the_gateway_goes_in_and_all_else_goes_beside",
            ),
            (SPLIT, "another_list_makes_other_routes_without_a_restart"),
            (SPLIT, "a_gateway_without_a_list_has_everything"),
            (SPLIT, "a_name_server_beside_the_tunnel_is_not_asked"),
            (STRONGSWAN, "strongswan_says_what_is_behind_it_or_does_not"),
        ]),
        refuses: Tests(&[
            (SPLIT, "what_the_tunnel_does_not_carry_is_never_led_into_it"),
            (SPLIT, "what_cannot_be_split_is_told_with_the_fix"),
            (
                ADDRESSES_FILE,
                "a_list_of_subnets_is_neither_empty_nor_without_end",
            ),
            (IKE_ADDRESSES, "nonsense_of_a_gateway_is_not_taken"),
        ]),
        recovers: Tests(&[
            (SPLIT, "a_lost_tunnel_keeps_its_routes_until_it_is_back"),
            (
                SPLIT,
                "kill_9_leaves_nothing_open_and_the_next_stop_nothing_at_all",
            ),
            (SPLIT, "routes_come_over_a_lossy_hop"),
        ]),
    },
    Feature {
        name: "Pre-shared keys",
        keys: &["*.psk"],
        verbs: &[],
        works: Tests(&[(STRONGSWAN, "strata_connects_and_20_mb_pass_each_way")]),
        refuses: Tests(&[
            (
                STRONGSWAN,
                "a_wrong_key_of_strongswan_is_refused_with_a_reason",
            ),
            (STRONGSWAN, "strongswans_refusal_of_a_wrong_key_is_told"),
            (REFUSAL, "a_key_file_that_others_can_read_is_refused"),
        ]),
        recovers: NotNeeded("a key is a file"),
    },
    Feature {
        name: "Post-quantum pre-shared keys (RFC 8784)",
        keys: &["peer.ppk.id", "peer.ppk.key", "peer.ppk.required"],
        verbs: &[],
        works: Tests(&[
            (
                PPK,
                "a_ppk_is_in_the_keys_of_a_tunnel_and_stays_there_through_rekeys",
            ),
            (PPK, "a_ppk_beside_certificates_is_in_the_keys_too"),
            (
                PPK,
                "an_optional_ppk_that_the_gateway_lacks_is_told_and_the_tunnel_is_up",
            ),
            (
                PPK,
                "an_optional_ppk_of_another_name_is_told_and_the_tunnel_is_up",
            ),
            (PPK, "a_ppk_that_comes_with_a_reload_makes_the_tunnel_anew"),
            (
                PPK_SWAN,
                "a_ppk_that_both_require_is_in_the_keys_whoever_begins",
            ),
            (
                PPK_SWAN,
                "a_ppk_that_nobody_requires_is_in_the_keys_whoever_begins",
            ),
        ]),
        refuses: Tests(&[
            (PPK, "a_ppk_that_is_too_short_is_a_fault_of_the_file"),
            (
                PPK,
                "another_key_of_that_name_is_refused_and_both_ends_say_so",
            ),
            (PPK, "a_ppk_of_another_name_is_refused_and_both_ends_say_so"),
            (
                PPK,
                "a_ppk_that_only_the_mobile_node_requires_makes_no_tunnel",
            ),
            (PPK, "a_ppk_that_only_the_gateway_requires_makes_no_tunnel"),
            (
                PPK_SWAN,
                "strongswan_with_another_key_of_that_name_is_refused",
            ),
            (PPK_SWAN, "strongswans_refusal_of_another_key_is_told"),
            (
                IKE_PPK,
                "a_wrong_ppk_an_unknown_one_and_an_unknown_identity_are_told_apart_here_and_not_there",
            ),
        ]),
        recovers: Tests(&[
            (PPK, "a_ppk_comes_through_a_lossy_hop_again_and_again"),
            (
                IKE_PPK,
                "a_ppk_comes_through_a_network_that_loses_doubles_and_reorders",
            ),
            (IKE_PPK, "a_forged_answer_without_use_ppk_is_outwaited"),
        ]),
    },
    Feature {
        name: "ML-KEM beside the group (RFC 9242, 9370)",
        keys: &["*.kem"],
        verbs: &[],
        works: Tests(&[
            (
                KEM,
                "a_kem_is_in_the_keys_of_a_tunnel_and_stays_there_through_rekeys",
            ),
            (
                KEM,
                "the_largest_kem_beside_certificates_comes_in_fragments",
            ),
            (
                KEM,
                "a_kem_that_nobody_requires_and_the_gateway_lacks_is_told_and_the_tunnel_is_up",
            ),
            (KEM, "a_kem_that_comes_with_a_reload_makes_the_tunnel_anew"),
        ]),
        refuses: Tests(&[
            (KEM, "a_kem_that_nobody_knows_is_a_fault_of_the_file"),
            (
                KEM,
                "a_kem_that_only_the_mobile_node_requires_makes_no_tunnel",
            ),
            (KEM, "a_kem_that_only_the_gateway_requires_makes_no_tunnel"),
            (
                KEM,
                "another_kem_than_the_gateway_requires_makes_no_tunnel_and_both_say_so",
            ),
            (IKE_KEM, "a_value_that_is_none_ends_it_with_a_reason"),
            (
                IKE_KEM,
                "what_is_changed_in_the_exchange_is_found_out_before_anything_is_up",
            ),
            (
                IKE_KEM,
                "the_exchange_taken_out_of_the_request_is_found_out_before_anything_is_up",
            ),
        ]),
        recovers: Tests(&[
            (KEM, "a_kem_comes_through_a_lossy_hop_again_and_again"),
            (KEM, "a_kem_that_is_too_long_for_the_path_is_cut_smaller"),
            (
                IKE_KEM,
                "a_successor_that_the_peer_does_not_know_is_asked_for_anew",
            ),
            (
                IKE_KEM,
                "a_kem_comes_through_a_network_that_loses_doubles_and_reorders",
            ),
        ]),
    },
    Feature {
        name: "ML-KEM in new keys of tunnels (RFC 9370 section 2.2.4)",
        keys: &["*.kem", "peer.pfs", "peer.child.pfs"],
        verbs: &["rekey"],
        works: Tests(&[
            (
                KEM,
                "new_keys_of_a_tunnel_have_a_kem_of_their_own_and_no_packet_is_lost",
            ),
            (
                KEM,
                "both_ends_ask_at_once_for_new_keys_with_a_kem_and_no_packet_is_lost",
            ),
            (
                KEM,
                "new_keys_of_a_tunnel_do_without_a_kem_that_the_gateway_lacks",
            ),
            (
                KEM,
                "new_keys_of_a_tunnel_without_pfs_have_no_kem_of_their_own",
            ),
            (KEM, "tshark_sees_the_key_exchange_that_follows"),
        ]),
        refuses: Tests(&[
            (
                FOLLOWUP,
                "what_both_ends_want_decides_what_a_childs_keys_are_made_of",
            ),
            (
                FOLLOWUP,
                "an_answer_without_the_exchange_that_was_asked_for_ends_the_sa",
            ),
            (
                FOLLOWUP,
                "a_value_that_is_none_makes_no_child_and_is_told_at_both_ends",
            ),
            (
                FOLLOWUP,
                "a_name_that_we_did_not_give_is_answered_state_not_found_and_begun_anew",
            ),
        ]),
        recovers: Tests(&[
            (
                KEM,
                "new_keys_of_a_tunnel_with_a_kem_come_through_a_lossy_hop",
            ),
            (
                FOLLOWUP,
                "a_child_that_the_responder_forgot_is_asked_for_anew",
            ),
            (
                FOLLOWUP,
                "rekeys_of_children_survive_a_network_that_loses_doubles_and_reorders",
            ),
            (FOLLOWUP, "a_responder_that_always_forgets_is_left"),
        ]),
    },
    Feature {
        name: "IKE messages in fragments (RFC 7383)",
        keys: &["listen.fragment"],
        verbs: &[],
        works: Tests(&[
            (FRAGMENT, "certificates_pass_where_ip_fragments_are_dropped"),
            (STRONGSWAN, "fragments_of_ike_messages_pass_each_way"),
            (TSHARK, "tshark_puts_our_fragments_together"),
        ]),
        refuses: Tests(&[
            (FAULTS, "fragments_too_small_for_anything_are_a_fault"),
            (
                FRAGMENT,
                "without_fragments_they_do_not_and_a_person_is_told_what_to_write",
            ),
            (
                FRAGMENT,
                "a_peer_that_does_not_fragment_is_what_a_person_is_told",
            ),
        ]),
        recovers: Tests(&[
            (
                FRAGMENT,
                "messages_that_are_too_long_for_the_path_are_cut_smaller",
            ),
            (
                FRAGMENT,
                "fragments_come_through_a_lossy_hop_again_and_again",
            ),
        ]),
    },
    Feature {
        name: "Certificates",
        keys: &["node.cert", "node.key", "node.ca"],
        verbs: &[],
        works: Tests(&[
            (PKI, "ecdsa_certificates_carry_a_tunnel"),
            (
                PKI,
                "ed25519_certificates_with_an_intermediate_carry_a_tunnel",
            ),
            (PKI, "p384_certificates_with_an_intermediate_carry_a_tunnel"),
            (PKI, "rsa_certificates_with_an_intermediate_carry_a_tunnel"),
            (SUITES, "rsa_certificates_prove_both_ends"),
            (
                STRONGSWAN,
                "p384_certificates_with_intermediates_convince_strongswan",
            ),
            (PKI, "a_certificate_that_ends_soon_is_warned_of"),
            (PKI, "a_licensed_node_with_a_certificate_gets_its_grant"),
            (
                RENEWAL,
                "a_renewed_certificate_loses_no_packet_and_proves_what_comes_afterwards",
            ),
            (
                STRONGSWAN,
                "ecdsa_certificates_with_intermediates_convince_strongswan",
            ),
            (
                STRONGSWAN,
                "ed25519_certificates_with_intermediates_convince_strongswan",
            ),
        ]),
        refuses: Tests(&[
            (SUITES, "an_rsa_key_of_1024_bits_is_refused_with_a_reason"),
            (
                PKI,
                "an_expired_certificate_is_refused_and_both_ends_say_so",
            ),
            (
                PKI,
                "a_certificate_of_an_unknown_ca_is_refused_and_both_ends_say_so",
            ),
            (PKI, "a_ca_of_the_same_name_with_another_key_is_refused"),
            (
                PKI,
                "an_id_that_is_not_in_the_certificate_is_a_fault_of_the_file",
            ),
            (
                RENEWAL,
                "a_certificate_that_is_not_good_changes_nothing_and_says_what_to_do",
            ),
            (
                RENEWAL,
                "a_ca_that_is_taken_out_refuses_what_comes_and_leaves_what_is_up",
            ),
        ]),
        recovers: Tests(&[(
            CERTIFICATES,
            "certificates_survive_a_network_that_loses_doubles_and_reorders",
        )]),
    },
    Feature {
        name: "Revocation lists",
        keys: &["node.crl", "node.revocation"],
        verbs: &["pki revoke", "pki crl"],
        works: Tests(&[
            (REVOCATION, "a_list_that_comes_by_reload_ends_the_tunnel"),
            (
                REVOCATION,
                "a_list_that_revokes_somebody_else_leaves_the_tunnel_alone",
            ),
            (REVOCATION, "lists_of_strata_pki_are_what_openssl_believes"),
        ]),
        refuses: Tests(&[
            (
                REVOCATION,
                "a_revoked_certificate_is_refused_and_both_ends_say_so",
            ),
            (
                REVOCATION,
                "strict_refuses_where_no_list_holds_and_relaxed_warns",
            ),
            (
                REVOCATION,
                "a_list_that_is_not_good_changes_nothing_and_says_what_to_do",
            ),
            (REVOCATION, "strict_without_a_list_is_a_fault_of_the_file"),
            (REVOCATION, "a_certificate_of_another_ca_cannot_be_revoked"),
            (
                TRUST,
                "a_list_that_somebody_else_has_signed_refuses_what_it_should_have_spoken_for",
            ),
        ]),
        recovers: Tests(&[
            (
                REVOCATION,
                "a_revocation_takes_both_ends_down_over_a_lossy_hop",
            ),
            (
                IKE_REVOCATION,
                "both_ends_agree_that_it_is_over_on_a_network_that_loses_doubles_and_reorders",
            ),
        ]),
    },
    Feature {
        name: "Raw public keys (RFC 7670)",
        keys: &["*.pubkey"],
        verbs: &["pki key", "pki pubkey"],
        works: Tests(&[
            (PUBKEY, "ecdsa_keys_carry_a_tunnel"),
            (PUBKEY, "p384_keys_carry_a_tunnel"),
            (PUBKEY, "ed25519_keys_carry_a_tunnel"),
            (PUBKEY, "rsa_keys_carry_a_tunnel"),
            (
                PUBKEY,
                "a_licensed_node_that_is_known_by_its_key_gets_its_grant",
            ),
            (
                PUBKEY,
                "a_key_that_changes_with_a_reload_makes_the_tunnel_anew",
            ),
            (
                PUBKEY,
                "strata_pki_prints_the_public_key_that_openssl_prints",
            ),
            (PUBKEY_SWAN, "ed25519_keys_prove_both_ends_whoever_begins"),
            (PUBKEY_SWAN, "ecdsa_keys_prove_both_ends_whoever_begins"),
            (PUBKEY_SWAN, "rsa_keys_prove_both_ends_whoever_begins"),
        ]),
        refuses: Tests(&[
            (PUBKEY, "another_key_is_refused_and_both_ends_say_so"),
            (PUBKEY, "a_certificate_where_a_key_is_expected_is_refused"),
            (PUBKEY, "what_is_no_public_key_is_a_fault_of_the_file"),
            (
                PUBKEY_SWAN,
                "strongswan_with_another_key_is_refused_with_a_reason",
            ),
            (PUBKEY_SWAN, "strongswans_refusal_of_another_key_is_told"),
            (
                IKE_PUBKEY,
                "an_unknown_identity_and_a_wrong_key_get_the_same_answer",
            ),
        ]),
        recovers: Tests(&[
            (PUBKEY, "keys_come_through_a_lossy_hop_again_and_again"),
            (
                IKE_PUBKEY,
                "keys_survive_a_network_that_loses_doubles_and_reorders",
            ),
        ]),
    },
    Feature {
        name: "A CA of one's own",
        keys: &[],
        verbs: &["pki ca", "pki issue", "pki show"],
        works: Tests(&[(
            PKI,
            "certificates_of_strata_pki_carry_a_tunnel_and_openssl_believes_them",
        )]),
        refuses: Tests(&[(PKI, "strata_pki_replaces_nothing_unless_told_to")]),
        recovers: NotNeeded("a certificate is a file"),
    },
    Feature {
        name: "Choice of suites and groups",
        keys: &["*.suite", "*.groups"],
        verbs: &[],
        works: Tests(&[
            (STRONGSWAN, "aes_256_is_agreed_where_both_ends_ask_for_it"),
            (
                STRONGSWAN,
                "strongswan_guessing_another_group_is_led_to_ours",
            ),
            (STRONGSWAN, "chacha20_poly1305_is_agreed_for_both_sas"),
            (STRONGSWAN, "our_guess_of_a_group_is_led_to_strongswans"),
            (SUITES, "aes_128_cbc_with_sha_256_carries_both_sas"),
            (SUITES, "aes_256_cbc_with_sha_384_carries_both_sas"),
            (SUITES, "aes_256_cbc_with_sha_512_carries_both_sas"),
            (TSHARK, "tshark_opens_aes_cbc_and_finds_its_hmac_right"),
            (SUITES, "the_strict_set_makes_both_sas_and_their_successors"),
            (SUITES, "the_legacy_set_reaches_a_strongswan_without_aeads"),
            (SUITES, "the_legacy_set_reaches_a_strongswan_without_curves"),
            (SUITES, "modp_3072_makes_the_keys_of_both_sas"),
            (SUITES, "modp_2048_makes_the_keys_of_both_sas"),
        ]),
        refuses: Tests(&[
            (FAULTS, "limits_are_kept_and_told"),
            (FAULTS, "a_set_of_suites_stands_alone"),
            (SUITES, "the_modern_set_does_not"),
            (EXPLAIN, "suites_without_a_common_hmac"),
            (GROUPS, "no_common_group_is_a_readable_refusal"),
        ]),
        recovers: Tests(&[
            (GROUPS, "a_forged_correction_does_not_choose_the_group"),
            (
                IKE_SUITES,
                "a_stripped_offer_is_found_out_before_anything_is_up",
            ),
            (
                IKE_SUITES,
                "every_suite_protects_both_sas_and_their_successors_over_a_bad_hop",
            ),
        ]),
    },
    Feature {
        name: "Several tunnels for the same traffic",
        keys: &["peer.resources"],
        verbs: &[],
        works: Tests(&[(RESOURCE, "flows_go_by_several_tunnels_at_once")]),
        refuses: Tests(&[
            (
                RESOURCE,
                "a_peer_that_does_not_say_so_has_one_tunnel_and_is_told_why",
            ),
            (
                RESOURCE,
                "the_end_that_wants_fewer_decides_and_the_other_says_so",
            ),
            (
                IKE_RESOURCE,
                "who_asks_without_end_gets_no_more_than_is_configured",
            ),
        ]),
        recovers: Tests(&[
            (
                RESOURCE,
                "no_flow_loses_a_packet_through_new_keys_and_proofs",
            ),
            (RESOURCE, "a_killed_end_comes_back_with_all_of_them"),
            (RESOURCE, "all_of_them_come_up_and_carry_over_a_lossy_hop"),
            (
                RESOURCE_NODE,
                "what_one_carried_goes_by_the_others_when_it_is_deleted",
            ),
        ]),
    },
    Feature {
        name: "Extended sequence numbers",
        keys: &["peer.esn"],
        verbs: &[],
        works: Tests(&[
            (
                ESN,
                "a_tunnel_goes_on_beyond_the_last_number_that_is_on_the_wire",
            ),
            (
                GUEST,
                "extended_numbers_of_every_suite_go_beyond_32_bits_both_ways",
            ),
        ]),
        refuses: Tests(&[
            (ESN, "beside_zones_they_are_refused_with_the_fix"),
            (ESN_FILE, "beside_zones_they_are_refused_with_the_fix"),
            (ESN, "one_end_alone_has_numbers_of_32_bits"),
            (
                GUEST,
                "a_kernel_that_is_to_have_no_others_is_refused_with_the_fix",
            ),
            (
                IKE_ESN,
                "who_insists_on_them_is_refused_by_who_has_none_with_a_reason",
            ),
        ]),
        recovers: Tests(&[
            (ESN, "new_keys_and_both_cycles_lose_nothing_under_volleys"),
            (ESN, "they_carry_over_a_lossy_hop"),
            (
                ESN_ESP,
                "packets_of_every_suite_cross_the_end_of_a_cycle_however_they_come",
            ),
            (ESN_ESP, "who_lost_a_whole_cycle_counts_all_that_comes_then"),
        ]),
    },
    Feature {
        name: "Transport and BEET mode",
        keys: &["peer.mode", "peer.child.mode"],
        verbs: &[],
        works: Tests(&[
            (
                MODE,
                "transport_mode_carries_what_goes_between_the_hosts_over_ipv4",
            ),
            (
                MODE,
                "transport_mode_carries_what_goes_between_the_hosts_over_ipv6",
            ),
            (
                MODE,
                "beet_mode_carries_what_goes_between_the_addresses_inside",
            ),
            (
                MODE,
                "tshark_sees_a_segment_inside_and_in_a_tunnel_a_packet",
            ),
            (MODE, "beet_mode_comes_up_through_a_nat"),
            (
                MODE,
                "a_mode_that_comes_with_a_reload_makes_the_tunnel_anew",
            ),
            (MODE, "a_tunnel_and_transport_mode_with_the_same_peer"),
        ]),
        refuses: Tests(&[
            (MODE, "a_peer_that_makes_a_tunnel_instead_is_left"),
            (MODE, "a_peer_that_asks_for_a_tunnel_is_refused"),
            (MODE, "transport_mode_does_not_come_up_through_a_nat"),
            (MODE, "transport_mode_does_not_move_and_beet_mode_does"),
            (MODE, "fragments_are_dropped_and_counted"),
            (MODE, "a_strict_reverse_path_is_refused_at_the_start"),
            (MODE_FILE, "lent_addresses_are_for_tunnels"),
            (
                IKE_MODE,
                "an_initiator_that_hides_its_nat_gets_no_transport_mode",
            ),
            (MODE_ESP, "no_authentic_text_makes_a_packet_of_anybody_else"),
        ]),
        recovers: Tests(&[
            (MODE, "new_keys_keep_the_mode_and_lose_no_octet"),
            (MODE, "both_modes_come_up_over_a_lossy_hop"),
            (
                MODE,
                "nothing_goes_between_the_hosts_in_clear_before_it_is_up_and_after_it_is_down",
            ),
            (MODE, "with_leak_never_a_stop_opens_nothing"),
            (
                MODE_NODE,
                "over_hops_that_lose_and_repeat_nothing_comes_out_that_did_not_go_in",
            ),
        ]),
    },
    Feature {
        name: "Zones in transport and BEET mode",
        keys: &["peer.mode", "peer.zones", "peer.layout"],
        verbs: &[],
        works: Tests(&[
            (ZONEMODE, "transport_mode_is_in_zones_over_ipv4"),
            (ZONEMODE, "transport_mode_is_in_zones_over_ipv6"),
            (ZONEMODE, "beet_mode_is_in_zones_with_ipv4_inside"),
            (ZONEMODE, "beet_mode_is_in_zones_with_ipv6_inside"),
            (
                ZONEMODE,
                "a_licensed_node_repairs_a_download_in_transport_mode",
            ),
            (ZONEMODE, "a_licensed_node_repairs_a_download_in_beet_mode"),
            (ZONEMODE, "a_licensed_node_sees_ports_and_no_address"),
            (ZONEMODE, "a_writer_lowers_the_window_in_beet_mode"),
            (ZONEMODE, "a_fixed_map_is_of_the_transport_header_alone"),
        ]),
        refuses: Tests(&[
            (ZONEMODE, "without_a_licence_nothing_is_repaired"),
            (ZONEMODE, "zones_that_begin_elsewhere_are_told_with_the_fix"),
            (
                ZONEMODE,
                "layouts_that_differ_make_nothing_where_zones_are_required",
            ),
            (
                IKE_MODE,
                "zones_that_do_not_begin_where_the_mode_does_are_neither_asked_for_nor_accepted",
            ),
            (
                BARE_ESP,
                "zones_of_a_tunnel_and_of_another_mode_are_none_of_each_other",
            ),
            (
                BARE_ESP,
                "a_node_that_seals_another_protocol_with_its_key_is_found_out_by_the_payloads_icv",
            ),
            (BARE_ESP, "no_octet_beyond_the_headers_is_ever_licensed"),
        ]),
        recovers: Tests(&[
            (ZONEMODE, "no_datagram_is_lost_while_there_are_new_keys"),
            (ZONEMODE, "a_licence_taken_back_leaves_nothing_to_read"),
            (ZONEMODE, "zones_that_come_with_a_reload_make_it_anew"),
            (
                LEDGER,
                "no_pair_is_used_twice_where_the_ip_header_is_left_behind",
            ),
        ]),
    },
    Feature {
        name: "Signs of congestion through a tunnel (RFC 6040)",
        keys: &[],
        verbs: &["status"],
        works: Tests(&[
            (ECN, "the_field_outside_is_that_inside"),
            (
                ECN,
                "a_mark_on_the_way_gets_to_the_receiver_in_a_plain_tunnel",
            ),
            (ECN, "a_mark_on_the_way_gets_to_the_receiver_in_zones"),
            (ECN, "a_mark_on_the_way_gets_to_the_receiver_over_ipv6"),
            (
                ECN,
                "tcp_of_both_kernels_slows_down_by_marks_and_loses_nothing",
            ),
            (ECN, "a_licensed_node_passes_every_field"),
        ]),
        refuses: Tests(&[
            (
                ECN,
                "a_router_that_marks_who_cannot_understand_is_counted_and_told",
            ),
            (ECN_ESP, "the_field_that_leaves_is_that_of_figure_4"),
            (ECN_ESP, "the_field_of_a_forged_packet_says_nothing"),
            (
                ECN_ESP,
                "no_field_outside_takes_a_mark_off_or_makes_a_transport_capable",
            ),
        ]),
        recovers: Tests(&[
            (ECN, "in_a_stream_every_field_stays_as_it_was"),
            (
                ECN_NODE,
                "an_operator_hears_of_a_field_that_cannot_be_once_with_each_keys",
            ),
        ]),
    },
    Feature {
        name: "ESP without UDP where there is no NAT (protocol 50)",
        keys: &["listen.encapsulation"],
        verbs: &["status"],
        works: Tests(&[
            (
                ENCAPSULATION,
                "where_there_is_no_nat_a_tap_sees_esp_without_udp",
            ),
            (
                ENCAPSULATION,
                "a_licensed_node_reads_esp_without_udp_as_well",
            ),
            (ENCAPSULATION, "packets_fit_the_path_with_eight_octets_more"),
            (
                ENCAPSULATION,
                "a_lock_of_everything_lets_esp_without_udp_in",
            ),
            (
                GUEST,
                "every_suite_is_carried_by_a_kernel_with_udp_and_without",
            ),
            (GUEST, "a_kernels_esp_without_udp_carries_octets_each_way"),
            (
                ESP_SOCKET,
                "a_packet_comes_as_it_was_sent_without_an_ip_header_and_the_answer_finds_back",
            ),
        ]),
        refuses: Tests(&[
            (ENCAPSULATION, "behind_a_nat_it_sees_udp"),
            (ENCAPSULATION, "either_end_gets_udp_that_wants_it_always"),
            (
                ENCAPSULATION,
                "a_word_that_is_none_is_told_with_those_that_are",
            ),
            (
                IKE_ENCAPSULATION,
                "a_hash_that_is_changed_on_the_way_is_found_out_by_auth",
            ),
        ]),
        recovers: Tests(&[
            (
                ENCAPSULATION,
                "a_move_behind_a_nat_and_back_changes_it_and_goes_on",
            ),
            (
                IKE_ENCAPSULATION,
                "a_nat_that_is_new_is_noticed_by_a_sign_of_life_and_esp_gets_udp",
            ),
            (ENCAPSULATION, "no_datagram_is_lost_while_it_gets_new_keys"),
            (ENCAPSULATION, "a_download_comes_through_a_lossy_hop"),
        ]),
    },
    Feature {
        name: "Classes of service outside (RFC 2983)",
        keys: &["peer.dscp"],
        verbs: &[],
        works: Tests(&[
            (
                DSCP,
                "each_packet_has_the_class_that_its_peer_is_configured_with",
            ),
            (DSCP, "over_ipv6_it_is_the_same"),
            (DSCP, "a_reload_gives_packets_another_class"),
        ]),
        refuses: Tests(&[(DSCP, "a_class_that_there_is_not_is_refused_with_the_fix")]),
        recovers: Tests(&[(DSCP, "new_keys_keep_the_class")]),
    },
    Feature {
        name: "Lengths and silence that nobody on the way sees (traffic flow confidentiality)",
        keys: &["peer.tfc", "peer.cover"],
        verbs: &[],
        works: Tests(&[
            (TFC, "all_packets_of_a_tunnel_are_of_one_length"),
            (TFC, "in_zones_they_are_too"),
            (TFC, "buckets_leave_five_lengths_at_most"),
            (TFC, "a_reload_turns_it_on_and_off"),
            (TFC, "silence_is_covered_by_packets_of_the_same_length"),
            (TFC, "a_reload_covers_silence_and_octets_pass"),
            (TFC_SWAN, "a_kernel_takes_our_padding_off"),
            (TFC_SWAN, "what_a_kernel_pads_is_accepted"),
            (TFC_SWAN, "strongswans_own_esp_takes_our_padding_off"),
            (TFC_SWAN, "tshark_opens_padded_packets_with_our_keys"),
        ]),
        refuses: Tests(&[
            (
                TFC,
                "transport_mode_and_misspelt_words_are_refused_with_the_fix",
            ),
            (MODE_FILE, "padding_is_for_tunnels"),
            (TFC, "dummies_without_padding_are_refused_with_the_fix"),
            (
                IKE_MODE,
                "a_peer_that_takes_no_padding_in_a_tunnel_speaks_for_itself_alone",
            ),
            (
                TFC_ESP,
                "a_peer_that_takes_no_padding_gets_none_and_that_is_told",
            ),
            (TFC_ESP, "nobody_on_the_way_changes_padding"),
        ]),
        recovers: Tests(&[
            (TFC, "new_keys_keep_the_length"),
            (
                TFC,
                "a_transfer_passes_a_lossy_hop_where_a_licensed_node_repairs",
            ),
            (TFC, "wires_that_take_less_are_passed"),
            (COVER_NODE, "silence_is_covered_over_new_keys_and_losses"),
            (
                COVER_NODE,
                "it_ends_with_the_tunnel_and_begins_with_the_next",
            ),
            (
                COVER_NODE,
                "an_interval_that_was_slept_through_is_not_made_up_for",
            ),
        ]),
    },
    Feature {
        name: "TCP segments that fit the tunnel (MSS clamping)",
        keys: &["tunnel.clamp"],
        verbs: &[],
        works: Tests(&[
            (
                CLAMP,
                "a_transfer_from_behind_passes_where_nobody_is_told_the_mtu",
            ),
            (CLAMP, "a_transfer_from_behind_passes_in_zones"),
            (CLAMP, "a_reload_turns_it_on_for_the_next_connection"),
        ]),
        refuses: Tests(&[
            (CLAMP, "without_clamping_it_stands_still"),
            (CLAMP, "what_turns_it_on_is_a_truth_value"),
            (MSS, "a_signed_syn_stays"),
            (MSS, "options_that_cannot_be_read_stay"),
        ]),
        recovers: NotNeeded("every SYN is looked at by itself, also one that is sent again"),
    },
    Feature {
        name: "Several threads that seal and open, each with SAs of its own (RFC 9611)",
        keys: &["tunnel.workers"],
        verbs: &[],
        works: Tests(&[
            (WORKERS, "each_thread_carries_flows_on_a_tunnel_of_its_own"),
            (WORKERS, "with_one_tunnel_all_threads_carry_it"),
            (
                CHILDREN_SWAN,
                "two_threads_share_the_one_tunnel_that_strongswan_has",
            ),
            (
                WORKERS,
                "a_licensed_node_reads_what_every_thread_has_sealed",
            ),
            (
                WORKERS,
                "packets_that_come_and_go_one_by_one_are_shared_out_as_well",
            ),
        ]),
        refuses: Tests(&[
            (WORKERS, "where_nobody_wants_several_there_is_one_thread"),
            (
                WORKERS,
                "how_many_there_are_is_a_number_and_takes_a_restart",
            ),
            (WORKERS, "faults_are_refused_beside_them"),
            (
                ESP_WORKERS,
                "a_packet_that_comes_on_two_threads_is_delivered_once",
            ),
            (
                ESP_WORKERS,
                "threads_that_seal_on_one_sa_give_no_number_twice",
            ),
        ]),
        recovers: Tests(&[
            (
                WORKERS,
                "no_datagram_is_lost_while_all_of_them_get_new_keys",
            ),
            (WORKERS, "a_killed_end_comes_back_with_its_threads"),
            (WORKERS, "they_carry_over_a_lossy_hop"),
            (ESP_WORKERS, "while_there_are_new_keys_no_datagram_is_lost"),
        ]),
    },
    Feature {
        name: "Many packets in one call of the system (offload)",
        keys: &["tunnel.offload"],
        verbs: &[],
        works: Tests(&[
            (OFFLOAD, "taps_see_packets_that_are_not_cut_yet_inside"),
            (
                OFFLOAD,
                "taps_see_packets_that_are_not_cut_yet_inside_in_zones",
            ),
            (OFFLOAD, "what_leaves_together_is_not_cut_before_the_wire"),
            (OFFLOAD, "on_the_wire_nothing_is_longer_than_it_takes"),
            (OFFLOAD, "classes_of_service_do_not_mix"),
            (OFFLOAD, "one_end_may_have_it_and_the_other_not"),
            (OFFLOAD, "a_licensed_node_hands_on_what_is_not_cut_yet"),
            (
                "edge/os/tests/network/esp.rs",
                "many_packets_leave_with_one_call_with_their_class_and_source",
            ),
            (BULK, "a_kernel_s_tcp_passes_in_bulk"),
            (
                BULK,
                "datagrams_that_are_sent_in_one_call_are_cut_and_put_together",
            ),
            (
                BULK,
                "a_run_arrives_as_datagrams_of_its_length_with_its_class",
            ),
        ]),
        refuses: Tests(&[
            (OFFLOAD, "off_taps_see_none"),
            (OFFLOAD, "a_licensed_node_cuts_where_offload_is_off"),
            (OFFLOAD, "what_turns_it_off_is_one_of_two_words"),
            (BULK, "what_is_no_packet_of_anything_harms_no_other"),
            (
                "edge/os/src/join.rs",
                "no_packets_of_a_peer_become_others_by_joining",
            ),
        ]),
        recovers: Tests(&[
            (OFFLOAD, "what_the_kernel_does_not_cut_leaves_one_by_one"),
            (
                OFFLOAD,
                "a_lossy_hop_is_passed_where_a_licensed_node_repairs",
            ),
            (OFFLOAD, "keys_change_under_volleys_and_nothing_is_lost"),
            (
                BULK,
                "a_run_that_would_have_to_be_cut_further_is_refused_and_nothing_of_it_arrives",
            ),
            (
                BULK,
                "a_device_that_is_down_takes_nothing_and_that_is_counted",
            ),
            (
                PASSAGE,
                "what_a_device_that_is_down_does_not_take_is_counted",
            ),
        ]),
    },
    Feature {
        name: "A second AES-GCM, that of libipsec-mb",
        keys: &["node.aead"],
        verbs: &[],
        works: Tests(&[
            (AEAD, "every_suite_is_carried_between_the_two"),
            (
                AEAD,
                "zones_are_carried_between_the_two_and_a_licensed_node_has_either",
            ),
            (AEAD, "auto_is_the_library_where_it_is_installed"),
            (
                SUITES,
                "the_aes_gcm_of_libipsec_mb_makes_both_sas_and_their_successors",
            ),
            (
                SAME,
                "packets_of_any_length_and_place_are_sealed_and_opened_the_same",
            ),
            (SAME, "the_vectors_of_wycheproof_hold"),
            (BENCH, "packets_are_timed_with_either_aes_gcm"),
        ]),
        refuses: Tests(&[
            (
                AEAD,
                "where_it_is_missing_the_daemon_names_the_package_and_auto_does_without",
            ),
            (AEAD, "a_word_for_nobody_is_refused_with_the_words"),
            (AEAD, "another_word_needs_a_restart"),
            (AEAD, "without_a_word_nobody_loads_it"),
        ]),
        recovers: NotNeeded("it changes how long a packet takes, and nothing else"),
    },
    Feature {
        name: "Packets as long as their path takes (path MTU discovery)",
        keys: &["tunnel.path_mtu"],
        verbs: &[],
        works: Tests(&[
            (PROBES, "over_a_wire_without_fragments_everything_arrives"),
            (
                PROBES,
                "over_a_wire_without_fragments_everything_arrives_in_zones",
            ),
            (PROBES, "without_a_word_of_the_router_everything_arrives"),
            (
                PROBES,
                "without_a_word_of_the_router_everything_arrives_in_zones",
            ),
            (
                PROBES,
                "without_a_word_of_the_router_everything_arrives_over_ipv6",
            ),
            (
                PROBES,
                "in_transport_mode_everything_arrives_over_a_wire_without_fragments",
            ),
            (
                PROBES,
                "the_mtu_of_the_machines_own_interface_counts_at_once",
            ),
            (PROBES, "a_datagram_that_may_be_cut_is_cut_inside"),
            (PMTU, "packets_go_whole_through_a_narrow_hop"),
            (PMTU, "packets_go_whole_through_a_narrow_hop_in_zones"),
            (PMTU, "packets_go_whole_through_a_narrow_hop_over_ipv6"),
            (
                PMTU,
                "a_licensed_node_passes_on_what_is_whole_and_says_what_is_too_long",
            ),
            (PMTU, "sources_hear_how_long_datagrams_may_be"),
            (PMTU, "a_datagram_that_may_be_cut_passes"),
            (
                PMTU,
                "connections_that_begin_later_fit_from_their_beginning",
            ),
            (PMTU, "a_reload_turns_it_on_and_off"),
        ]),
        refuses: Tests(&[
            (
                PROBES,
                "without_probes_nothing_arrives_over_a_wire_without_fragments",
            ),
            (
                PROBES,
                "in_transport_mode_without_probes_nothing_arrives_over_a_wire_without_fragments",
            ),
            (PROBES, "a_forged_report_shortens_nothing"),
            (NODE_PROBES, "a_peer_that_echoes_wrongly_gains_nothing"),
            (PMTU, "without_it_packets_are_cut_on_their_way"),
            (PMTU, "a_forged_router_makes_nothing_stand_still"),
            (
                PMTU,
                "a_forged_router_that_could_be_one_costs_some_octets_of_each_packet",
            ),
            (
                PMTU,
                "where_routers_are_silent_what_is_too_long_is_lost_until_a_reload",
            ),
            (PMTU, "what_turns_it_on_is_one_of_three_words"),
            (NODE_PMTU, "what_cannot_be_is_not_believed_and_told"),
            (NODE_PMTU, "a_path_that_nobody_takes_is_not_remembered"),
            (TOO_BIG, "nobody_is_told_of_an_error_about_an_error"),
            (TOO_BIG, "only_a_single_host_is_told"),
        ]),
        recovers: Tests(&[
            (PROBES, "a_wire_that_becomes_narrow_is_noticed"),
            (NODE_PROBES, "a_lossy_path_that_reorders_is_found_too"),
            (SEARCH, "lost_probes_are_repeated"),
            (PMTU, "a_narrow_hop_that_loses_packets_is_passed"),
            (
                PMTU,
                "below_the_least_of_ipv6_packets_are_cut_and_all_arrives",
            ),
            (
                PMTU,
                "what_is_known_of_a_path_stays_there_when_the_tunnel_moves",
            ),
            (ROOM, "datagrams_of_1280_octets_always_fit"),
            (NODE_PMTU, "it_is_forgotten_after_ten_minutes"),
            (NODE_PMTU, "it_does_not_follow_a_tunnel_that_moves"),
        ]),
    },
    Feature {
        name: "Moving to other addresses (MOBIKE)",
        keys: &["peer.mobike", "peer.nat"],
        verbs: &["move", "paths"],
        works: Tests(&[
            (
                MOBIKE,
                "a_download_goes_on_when_its_interface_is_taken_down",
            ),
            (MOBIKE, "a_zoned_download_goes_on_past_the_licensed_node"),
            (
                MOBIKE,
                "strata_move_takes_a_tunnel_to_another_address_and_back",
            ),
            (MOBIKE, "a_tunnel_behind_a_nat_moves"),
            (STRONGSWAN, "strongswan_follows_where_strata_moves"),
            (STRONGSWAN, "strata_follows_where_strongswan_moves"),
        ]),
        refuses: Tests(&[
            (
                MOBIKE,
                "an_address_from_which_nothing_leaves_is_refused_with_those_that_work",
            ),
            (MOBIKE, "the_end_that_was_called_cannot_move_the_tunnel"),
            (MOBIKE, "without_mobike_a_tunnel_is_made_anew"),
            (MOBIKE, "a_nat_is_refused_where_it_is_forbidden"),
            (
                IKE_MOBIKE,
                "a_peer_that_must_be_at_an_address_is_not_followed_elsewhere",
            ),
            (IKE_MOBIKE, "a_third_party_is_not_bombed_by_a_forged_header"),
        ]),
        recovers: Tests(&[
            (
                MOBIKE,
                "a_gateway_whose_wire_is_cut_is_found_at_its_other_address",
            ),
            (MOBIKE, "a_tunnel_moves_over_hops_that_lose_packets"),
            (
                IKE_MOBIKE,
                "moves_cross_with_everything_and_both_ends_agree_in_the_end",
            ),
        ]),
    },
    Feature {
        name: "Keeping an address wherever one is, with agents in the network (Mobile IPv4, RFC 5944)",
        keys: &[
            "mobile_node.home_address",
            "mobile_node.home_agent",
            "mobile_node.interfaces",
            "mobile_node.key.spi",
            "mobile_node.key.secret",
            "mobile_node.key.algorithm",
            "mobile_node.replay",
            "mobile_node.lifetime",
            "mobile_node.simultaneous",
            "mobile_node.agent.address",
            "mobile_node.agent.key.spi",
            "mobile_node.agent.key.secret",
            "mobile_node.agent.key.algorithm",
            "foreign_agent.interface",
            "foreign_agent.address",
            "foreign_agent.advertise",
            "foreign_agent.lifetime",
            "foreign_agent.homes",
            "foreign_agent.visitors",
            "foreign_agent.home.address",
            "foreign_agent.home.homes",
            "foreign_agent.home.key.spi",
            "foreign_agent.home.key.secret",
            "foreign_agent.home.key.algorithm",
            "foreign_agent.mobile.home_address",
            "foreign_agent.mobile.key.spi",
            "foreign_agent.mobile.key.secret",
            "foreign_agent.mobile.key.algorithm",
            "home_agent.address",
            "home_agent.lifetime",
            "home_agent.bindings",
            "home_agent.mobile.home_address",
            "home_agent.mobile.key.spi",
            "home_agent.mobile.key.secret",
            "home_agent.mobile.key.algorithm",
            "home_agent.mobile.replay",
            "home_agent.foreign.address",
            "home_agent.foreign.key.spi",
            "home_agent.foreign.key.secret",
            "home_agent.foreign.key.algorithm",
        ],
        verbs: &["status"],
        works: Tests(&[
            (MOBILE, "a_tunnel_stays_while_its_mobile_node_moves"),
            (MOBILE, "with_simultaneous_bindings_a_move_loses_nothing"),
            (
                MOBILE,
                "a_foreign_agent_that_is_licensed_sees_the_headers_of_its_visitors",
            ),
            (
                MOBILE,
                "who_sends_what_has_no_room_on_the_way_of_the_tunnel_is_told",
            ),
            (MOBILE, "tshark_reads_what_is_said_of_a_registration"),
        ]),
        refuses: Tests(&[
            (MOBILE, "another_key_is_not_registered"),
            (
                MOBILE,
                "two_ways_at_once_are_refused_where_reverse_paths_are_strict",
            ),
            (MOBILE, "without_an_agent_nothing_leaves_in_clear"),
            (
                MOBILE_NODE,
                "who_has_another_key_is_denied_and_each_end_can_say_why",
            ),
        ]),
        recovers: Tests(&[
            (MOBILE, "a_foreign_agent_that_dies_is_left_for_another"),
            (
                MOBILE,
                "a_registration_comes_through_a_network_that_loses_much",
            ),
            (
                MOBILE,
                "agents_that_were_killed_and_are_back_know_their_mobile_node_again",
            ),
            (MOBILE, "home_is_told_when_the_daemon_stops"),
            (MOBILE_TRIO, "a_lost_interface_is_left_at_once"),
            (
                MOBILE_FLOW,
                "with_simultaneous_bindings_no_move_loses_a_packet",
            ),
        ]),
    },
    Feature {
        name: "Mobile IPv4 through a NAT: tunnels in UDP (RFC 3519)",
        keys: &[
            "foreign_agent.nat",
            "foreign_agent.keepalive",
            "home_agent.nat",
            "home_agent.nat_lifetime",
            "home_agent.keepalive",
        ],
        verbs: &["status", "metrics"],
        works: Tests(&[
            (
                MOBILE_NAT,
                "a_tunnel_stays_while_its_mobile_node_moves_out_of_a_nat_and_back",
            ),
            (
                MOBILE_NAT,
                "udp_may_be_demanded_where_the_home_agent_allows_it",
            ),
            (
                MOBILE_NAT,
                "what_has_no_room_behind_a_nat_is_cut_before_it_is_in_udp",
            ),
            (MOBILE_NAT, "tshark_reads_what_goes_through_a_nat"),
        ]),
        refuses: Tests(&[
            (
                MOBILE_NAT,
                "without_udp_at_home_nobody_is_registered_through_a_nat",
            ),
            (
                TUNNELS_IN_UDP,
                "another_encapsulation_in_udp_is_refused_with_its_own_code",
            ),
            (
                TUNNELS_IN_UDP,
                "a_request_that_is_repeated_from_elsewhere_moves_no_tunnel",
            ),
            (
                TUNNELS_IN_UDP,
                "a_keepalive_from_elsewhere_moves_no_tunnel_and_is_not_answered",
            ),
            (
                TUNNELS_IN_UDP,
                "what_comes_from_another_port_or_in_ip_is_dropped",
            ),
        ]),
        recovers: Tests(&[
            (MOBILE_NAT, "a_nat_that_forgets_is_noticed_by_keepalives"),
            (TUNNELS_IN_UDP, "a_keepalive_that_is_lost_is_repeated"),
            (
                TUNNELS_IN_UDP,
                "a_nat_that_forgets_is_mended_by_the_next_registration_in_any_case",
            ),
            (
                TUNNELS_IN_UDP,
                "all_agree_in_the_end_whatever_nats_and_links_do",
            ),
        ]),
    },
    Feature {
        name: "Packets under way to a mobile node that moves are sent after it, from one foreign agent to the other",
        keys: &[
            "foreign_agent.neighbour.address",
            "foreign_agent.neighbour.key.spi",
            "foreign_agent.neighbour.key.secret",
            "foreign_agent.neighbour.key.algorithm",
        ],
        verbs: &["status"],
        works: Tests(&[(
            MOBILE,
            "what_is_under_way_when_a_mobile_node_moves_is_sent_after_it",
        )]),
        refuses: Tests(&[
            (
                MOBILE,
                "agents_that_do_not_believe_each_other_send_nothing_on",
            ),
            (
                MOBILE_HANDOVER,
                "a_notice_has_to_be_proved_by_a_neighbour_and_its_note_by_the_mobile_node",
            ),
            (
                MOBILE_HANDOVER,
                "a_notice_that_is_replayed_when_its_mobile_node_is_back_moves_nothing",
            ),
            (MOBILE_HANDOVER, "the_note_of_a_registration_is_taken_once"),
            (
                MOBILE_HANDOVER,
                "two_agents_that_send_after_it_to_each_other_make_no_circle",
            ),
        ]),
        recovers: Tests(&[
            (MOBILE, "a_notice_that_is_lost_is_said_again"),
            (
                MOBILE_HANDOVER,
                "a_neighbour_that_is_silent_is_told_a_few_times_and_counted",
            ),
            (
                MOBILE_HANDOVER,
                "nothing_is_sent_after_anybody_for_longer_than_some_seconds",
            ),
        ]),
    },
    Feature {
        name: "Moving to other addresses without a pause, by a clone of the IKE SA (RFC 7791)",
        keys: &["peer.clone"],
        verbs: &["move"],
        works: Tests(&[
            (CLONE, "a_stream_loses_no_packet_through_four_hand_overs"),
            (
                CLONE,
                "a_path_that_dies_after_a_hand_over_takes_nothing_with_it",
            ),
            (CLONE_TSHARK, "tshark_finds_what_a_hand_over_says"),
        ]),
        refuses: Tests(&[
            (CLONE, "what_cannot_be_handed_over_is_refused_with_the_fix"),
            (CLONE, "where_one_end_does_not_allow_it_the_tunnel_stays"),
            (
                CLONE_TSHARK,
                "tshark_finds_that_an_end_which_does_not_allow_it_says_nothing",
            ),
            (
                IKE_CLONE,
                "a_peer_that_clones_for_ever_has_a_bounded_number_of_ike_sas",
            ),
            (IKE_CLONE, "in_any_other_message_the_notify_is_ignored"),
        ]),
        recovers: Tests(&[
            (
                CLONE,
                "a_hand_over_to_where_nobody_answers_leaves_all_as_it_was",
            ),
            (
                CLONE,
                "a_hand_over_that_is_asked_for_during_another_is_done_after_it",
            ),
            (CLONE, "a_tunnel_is_handed_over_over_hops_that_lose_packets"),
            (
                NODE_CLONE,
                "a_stream_loses_nothing_if_a_third_of_the_ike_messages_is_lost",
            ),
            (
                IKE_CLONE,
                "a_peer_that_keeps_both_has_a_path_for_each_and_one_may_die",
            ),
            (
                IKE_CLONE,
                "a_hand_over_meets_new_keys_moves_and_children_and_both_ends_agree",
            ),
        ]),
    },
    Feature {
        name: "IKE and ESP in TCP where no UDP comes through (RFC 9329)",
        keys: &["peer.tcp", "peer.tcp_port", "listen.tcp"],
        verbs: &[],
        works: Tests(&[
            (TCP, "where_no_udp_comes_through_a_tunnel_comes_up_by_tcp"),
            (TCP, "where_udp_comes_through_nothing_goes_by_tcp"),
            (TCP, "always_sends_no_datagram_at_all"),
            (TCP, "a_tunnel_moves_from_udp_to_tcp_and_back"),
            (TCP, "a_lock_of_everything_lets_a_stream_pass"),
            (TCP_TSHARK, "tshark_opens_what_is_in_a_stream"),
        ]),
        refuses: Tests(&[
            (TCP, "a_listener_that_is_not_there_is_told_with_the_fix"),
            (TCP, "silence_is_explained_with_tcp_as_a_way_out"),
            (
                TCP,
                "strangers_that_say_nothing_or_nonsense_are_few_and_counted",
            ),
            (FAULTS, "who_waits_does_not_choose_tcp"),
            (STREAM, "a_length_of_zero_or_one_is_fatal"),
            (STREAM, "a_stream_of_another_protocol_is_not_read"),
        ]),
        recovers: Tests(&[
            (TCP, "a_tunnel_outlives_its_connection"),
            (
                IKE_TCP,
                "connections_that_break_all_the_time_lose_no_tunnel",
            ),
            (
                IKE_TCP,
                "what_was_under_way_in_a_lost_connection_is_sent_again_in_the_new_one",
            ),
            (
                IKE_TCP,
                "a_listener_that_stays_away_is_tried_with_growing_pauses_and_then_given_up",
            ),
        ]),
    },
    Feature {
        name: "New keys without loss",
        keys: &["peer.rekey", "peer.pfs", "*.ike_rekey"],
        verbs: &["rekey"],
        works: Tests(&[
            (REKEY, "a_stream_loses_no_packet_through_twenty_rekeys"),
            (
                REKEY,
                "downloads_go_on_through_twenty_rekeys_with_a_licensed_node",
            ),
            (
                STRONGSWAN,
                "strongswan_rekeys_child_and_ike_sa_while_octets_flow",
            ),
            (
                STRONGSWAN,
                "strata_rekeys_child_and_ike_sa_while_octets_flow",
            ),
            (
                STRONGSWAN,
                "new_keys_come_from_a_key_exchange_where_strongswan_wants_one",
            ),
        ]),
        refuses: Tests(&[
            (REKEY, "rekeys_that_cannot_be_are_refused_with_the_fix"),
            (FAULTS, "limits_are_kept_and_told"),
        ]),
        recovers: Tests(&[
            (REKEY, "downloads_go_on_through_rekeys_over_a_lossy_hop"),
            (
                NODE_REKEY,
                "a_stream_loses_nothing_if_a_third_of_the_ike_messages_is_lost",
            ),
            (CRASH, "after_a_crash_inside_a_rekey_the_tunnel_comes_back"),
        ]),
    },
    Feature {
        name: "Several requests under way at once",
        keys: &["*.window"],
        verbs: &[],
        works: Tests(&[
            (WINDOW, "both_ends_say_how_many_requests_they_take_at_once"),
            (
                WINDOW,
                "grants_are_under_way_together_over_a_wire_that_is_late",
            ),
            (
                WINDOW,
                "strongswan_takes_one_request_at_a_time_and_minds_nothing",
            ),
        ]),
        refuses: Tests(&[
            (WINDOW, "a_window_that_is_too_wide_is_told_with_the_limits"),
            (FAULTS, "limits_are_kept_and_told"),
        ]),
        recovers: Tests(&[
            (
                WINDOW,
                "keys_are_replaced_under_wide_windows_over_a_lossy_hop",
            ),
            (
                IKE_WINDOW,
                "a_window_is_never_exceeded_whatever_the_network_does",
            ),
            (
                IKE_WINDOW,
                "every_request_under_way_takes_the_new_path_before_the_update",
            ),
        ]),
    },
    Feature {
        name: "Authentication anew without loss",
        keys: &["*.reauth"],
        verbs: &["reauth"],
        works: Tests(&[
            (
                REAUTH,
                "a_stream_loses_no_packet_through_four_authentications",
            ),
            (
                REAUTH,
                "an_authentication_is_repeated_before_its_time_is_over",
            ),
            (REAUTH, "a_lent_address_stays_the_same"),
            (REAUTH_SWAN, "strata_authenticates_anew_while_octets_flow"),
            (
                REAUTH_SWAN,
                "strongswan_authenticates_anew_while_octets_flow",
            ),
            (
                REAUTH_SWAN,
                "strata_obeys_the_limit_that_strongswan_announces",
            ),
        ]),
        refuses: Tests(&[
            (
                REAUTH,
                "a_peer_that_is_not_believed_any_more_is_told_and_the_tunnel_goes_on",
            ),
            (REAUTH, "what_cannot_be_repeated_is_refused_with_the_fix"),
            (
                IKE_REAUTH,
                "an_authentication_that_cannot_be_repeated_ends_the_ike_sa",
            ),
            (FAULTS, "limits_are_kept_and_told"),
        ]),
        recovers: Tests(&[
            (
                NODE_REAUTH,
                "a_stream_loses_nothing_if_a_third_of_the_ike_messages_is_lost",
            ),
            (
                NODE_REAUTH,
                "a_new_ike_sa_whose_answer_never_came_leaves_the_old_one_in_use",
            ),
            (
                IKE_REAUTH,
                "an_authentication_crosses_with_new_keys_and_both_ends_agree",
            ),
        ]),
    },
    Feature {
        name: "Several tunnels with one peer",
        keys: &[
            "peer.child.local",
            "peer.child.remote",
            "peer.child.start",
            "peer.child.rekey",
            "peer.child.pfs",
        ],
        verbs: &["up", "down"],
        works: Tests(&[
            (CHILDREN, "two_tunnels_carry_octets_at_the_same_time"),
            (
                CHILDREN,
                "neither_loses_a_packet_through_new_keys_and_proofs",
            ),
            (CHILDREN, "one_is_taken_down_and_let_in_again_by_either_end"),
            (CHILDREN, "tunnels_come_and_go_with_the_file_one_by_one"),
            (CHILDREN_SWAN, "strata_asks_strongswan_for_two_tunnels"),
            (
                CHILDREN_SWAN,
                "strongswan_asks_for_two_tunnels_in_any_order",
            ),
        ]),
        refuses: Tests(&[
            (CHILDREN, "one_is_refused_with_a_reason_and_the_other_stays"),
            (CHILDREN, "what_is_not_configured_is_refused_with_the_fix"),
            (CHILDREN_FILE, "two_tunnels_that_carry_the_same_are_a_fault"),
            (CHILDREN_FILE, "a_child_says_what_it_carries"),
            (
                IKE_CHILDREN,
                "requests_for_children_without_end_are_bounded",
            ),
        ]),
        recovers: Tests(&[
            (CHILDREN, "a_killed_end_comes_back_with_both_tunnels"),
            (CHILDREN, "two_tunnels_come_up_and_carry_over_a_lossy_hop"),
            (
                IKE_CHILDREN,
                "a_child_that_is_refused_is_tried_again_after_growing_pauses_and_all_else_stays",
            ),
            (IKE_CHILDREN, "of_two_children_asked_for_at_once_one_stays"),
            (
                IKE_CHILDREN,
                "a_child_that_is_deleted_before_its_answer_arrives_does_not_come_up",
            ),
        ]),
    },
    Feature {
        name: "Being sent to another gateway",
        keys: &["peer.redirect", "redirect.to", "redirect.when"],
        verbs: &["redirect"],
        works: Tests(&[
            (REDIRECT, "a_peer_is_sent_away_at_its_first_message"),
            (REDIRECT, "a_peer_is_sent_away_when_it_has_proved_who_it_is"),
            (REDIRECT, "strata_redirect_empties_a_gateway"),
            (REDIRECT, "strongswan_goes_where_it_is_sent"),
        ]),
        refuses: Tests(&[
            (
                REDIRECT,
                "an_address_that_is_not_listed_is_told_with_the_fix",
            ),
            (REDIRECT, "what_cannot_be_sent_away_is_refused_with_the_fix"),
            (
                IKE_REDIRECT,
                "who_is_sent_to_and_fro_stays_after_five_times",
            ),
            (FAULTS, "who_is_called_is_not_sent_elsewhere"),
        ]),
        recovers: Tests(&[
            (IKE_REDIRECT, "losses_change_nothing"),
            (IKE_REDIRECT, "an_answer_with_another_nonce_is_forged"),
        ]),
    },
    Feature {
        name: "Liveness",
        keys: &["*.liveness"],
        verbs: &[],
        works: Tests(&[(
            RECOVERY,
            "a_killed_gateway_comes_back_with_its_tunnel_and_its_licence",
        )]),
        refuses: NotNeeded("nothing is asked of anybody who could refuse"),
        recovers: Tests(&[
            (LEAK, "nothing_leaks_while_the_peer_is_dead"),
            (IKE_LIVENESS, "a_request_under_way_is_a_question_as_well"),
        ]),
    },
    Feature {
        name: "Nothing in clear",
        keys: &["peer.leak"],
        verbs: &[],
        works: Tests(&[
            (LEAK, "nothing_leaks_before_the_tunnel_comes_up"),
            (LEAK, "a_lock_outlives_every_end_of_the_daemon"),
            (
                LEAK,
                "a_rule_of_somebody_else_attracts_nothing_that_is_locked",
            ),
            (
                LEAK,
                "a_local_network_of_the_attackers_attracts_nothing_that_is_locked",
            ),
            (LEAK, "the_peers_own_address_is_no_hole"),
            (RELOCK, "what_both_files_lock_is_never_seen"),
            (RELOCK, "the_lock_is_what_the_file_says"),
        ]),
        refuses: Tests(&[
            (
                LEAK,
                "unlocking_is_refused_while_a_daemon_runs_and_opens_after_it",
            ),
            (
                LEAK,
                "without_nft_a_lock_is_refused_before_anything_is_set_up",
            ),
            (RELOCK, "a_refused_reload_leaves_the_lock_as_it_was"),
            (SINGLE, "a_second_daemon_is_refused_and_the_first_goes_on"),
            (SINGLE, "a_licensed_node_at_work_keeps_its_rules"),
            (
                SINGLE,
                "without_tun_devices_a_lock_can_be_opened_unless_a_daemon_runs",
            ),
        ]),
        recovers: Tests(&[
            (LEAK, "nothing_leaks_after_the_daemon_was_killed"),
            (SINGLE, "after_kill_9_another_daemon_starts"),
            (LEAK, "nothing_leaks_while_a_killed_daemon_starts_again"),
            (LEAK, "a_start_without_the_key_opens_what_was_locked"),
            (RELOCK, "a_lock_that_came_by_reload_outlives_the_daemon"),
        ]),
    },
    Feature {
        name: "Nothing believed in clear",
        keys: &[],
        verbs: &["status", "doctor"],
        works: Tests(&[
            (
                CLEAR,
                "what_claims_to_be_a_peer_is_dropped_and_told_with_its_source",
            ),
            (CLEAR, "what_is_forwarded_to_hosts_behind_is_judged_as_well"),
            (
                CLEAR,
                "in_transport_mode_the_peers_own_address_is_not_believed_in_clear",
            ),
            (
                CLEAR,
                "in_beet_mode_the_peers_address_inside_is_not_believed_in_clear",
            ),
            (
                CLEAR,
                "a_licensed_node_with_peers_of_its_own_passes_tunnels_and_no_claims",
            ),
            (
                CLEAR,
                "mobile_ip_passes_in_clear_and_what_claims_to_be_its_tunnel_does_not",
            ),
            (
                CLEAR,
                "a_reload_changes_what_is_believed_and_loses_no_count",
            ),
            (OS_CLEAR, "any_number_of_peers_is_one_lookup_and_holds"),
        ]),
        refuses: Tests(&[
            (
                CLEAR,
                "what_no_tunnel_carries_and_what_is_bypassed_arrives_in_clear",
            ),
            (CLEAR, "the_guard_does_not_need_the_program_nft"),
        ]),
        recovers: Tests(&[
            (
                CLEAR,
                "the_guard_outlives_a_killed_daemon_and_ends_with_an_orderly_stop",
            ),
            (
                CLEAR,
                "a_guard_that_another_program_removes_is_told_and_comes_back",
            ),
            (
                CLEAR,
                "a_guard_that_cannot_be_set_up_is_a_fault_that_stays_until_it_can",
            ),
            (
                OS_CLEAR,
                "what_others_change_of_it_looks_different_is_told_and_is_put_back_with_what_was_counted",
            ),
        ]),
    },
    Feature {
        name: "Restoring what other programs remove",
        keys: &[],
        verbs: &["status", "doctor"],
        works: Tests(&[
            (RESTORE, "a_flushed_table_is_filled_again"),
            (RESTORE, "a_deleted_rule_is_added_again"),
            (
                RESTORE,
                "a_device_that_was_taken_down_is_brought_up_with_its_addresses_and_routes",
            ),
            (RESTORE, "flushed_addresses_are_given_again"),
            (RESTORE, "rules_of_a_licensed_node_are_added_again"),
            (
                RESTORE,
                "nothing_leaks_while_a_part_of_what_is_locked_is_missing",
            ),
        ]),
        refuses: Tests(&[
            (
                RESTORE,
                "the_fourth_time_within_a_minute_is_warned_of_until_a_reload",
            ),
            (
                RESTORE,
                "what_the_daemon_removes_itself_is_not_put_back_and_counts_for_nothing",
            ),
        ]),
        recovers: Tests(&[(RESTORE, "while_the_daemon_stands_still_nothing_is_put_back")]),
    },
    Feature {
        name: "Name servers behind the tunnel",
        keys: &["tunnel.dns", "tunnel.resolver"],
        verbs: &[],
        works: Tests(&[
            (DNS, "names_are_asked_for_behind_the_tunnel_while_it_is_up"),
            (DNS, "a_reload_changes_whom_programs_ask"),
            (DNS, "resolved_is_told_where_it_runs"),
            (DNS, "resolvconf_is_told_where_it_is_installed"),
        ]),
        refuses: Tests(&[
            (FAULTS, "the_list_of_name_servers_is_named_from_the_root"),
            (
                DNS,
                "a_file_that_cannot_be_written_does_not_cost_the_tunnel",
            ),
        ]),
        recovers: Tests(&[
            (DNS, "the_start_after_a_crash_gives_the_former_servers_back"),
            (CRASH, "a_crash_anywhere_leaves_nothing_after_the_next_stop"),
        ]),
    },
    Feature {
        name: "Examining a machine",
        keys: &[],
        verbs: &["doctor"],
        works: Tests(&[
            (
                DOCTOR,
                "a_healthy_host_has_no_finding_with_a_daemon_or_without",
            ),
            (
                DOCTOR,
                "a_healthy_licensed_node_has_no_finding_with_a_daemon_or_without",
            ),
            (DOCTOR, "a_strict_reverse_path_is_found_where_it_matters"),
            (DOCTOR, "a_clock_that_went_back_is_found"),
            (DOCTOR, "forbidden_user_namespaces_are_found"),
        ]),
        refuses: Tests(&[
            (DOCTOR, "without_a_configuration_the_machine_is_examined"),
            (DOCTOR, "missing_rights_are_told"),
        ]),
        recovers: Tests(&[(DOCTOR, "what_a_killed_daemon_left_is_found")]),
    },
    Feature {
        name: "Zones",
        keys: &["peer.zones", "peer.layout"],
        verbs: &[],
        works: Tests(&[
            (TRANSFER, "two_hundred_mb_pass_a_zoned_tunnel"),
            (LAYOUT, "headers_are_cut_apart_and_each_zone_has_its_suite"),
            (LAYOUT, "rtp_is_a_zone_of_its_own_between_the_media_ports"),
            (
                LAYOUT,
                "suites_of_every_kind_are_mixed_and_a_node_reads_its_own",
            ),
            (
                LAYOUT,
                "a_zone_with_gmac_is_read_by_whoever_stands_on_the_way",
            ),
            (LAYOUT, "a_node_reads_the_zones_of_its_licence_and_no_other"),
        ]),
        refuses: Tests(&[
            (
                LAYOUT,
                "layouts_that_differ_make_no_tunnel_where_zones_are_required",
            ),
            (LAYOUT, "a_suite_that_differs_makes_no_tunnel"),
            (CONFIG_ZONES, "a_payload_that_everybody_reads_is_refused"),
            (LICENCE, "required_zones_that_the_gateway_refuses_are_told"),
            (
                LICENCE,
                "required_zones_that_the_mobile_node_refuses_are_told",
            ),
        ]),
        recovers: Tests(&[
            (
                LICENCE,
                "accepted_zones_that_the_peer_refuses_make_a_plain_tunnel",
            ),
            (
                LAYOUT,
                "layouts_that_differ_make_a_plain_tunnel_where_that_is_accepted",
            ),
            (LAYOUT, "eight_zones_carry_a_download_over_a_lossy_hop"),
            (LAYOUT, "blocks_carry_a_download_over_a_lossy_hop"),
        ]),
    },
    Feature {
        name: "Maps that are fixed, with an opaque SA beside",
        keys: &["peer.map"],
        verbs: &["zones"],
        works: Tests(&[
            (
                MAP,
                "packets_that_the_map_fits_are_four_octets_shorter_and_all_others_go_beside",
            ),
            (MAP, "a_node_reads_what_the_map_fits_and_nothing_else"),
            (MAP, "a_licence_taken_back_leaves_nothing_to_read"),
        ]),
        refuses: Tests(&[
            (
                MAP,
                "maps_that_differ_make_no_tunnel_where_zones_are_required",
            ),
            (MAP, "a_map_that_no_packet_could_carry_is_told_with_the_fix"),
            (
                CONFIG_ZONES,
                "a_map_that_no_packet_could_carry_is_refused_with_what_to_write",
            ),
        ]),
        recovers: Tests(&[
            (MAP, "no_datagram_is_lost_while_both_get_new_keys"),
            (MAP, "a_download_comes_through_a_lossy_hop"),
            (
                MAP,
                "a_fixed_map_and_a_changeable_one_make_a_plain_tunnel_where_that_is_accepted",
            ),
        ]),
    },
    Feature {
        name: "Dynamic levels: what is named goes without encryption, within a grant",
        keys: &["peer.level"],
        verbs: &["level", "zones"],
        works: Tests(&[
            (
                LEVEL,
                "what_is_named_can_be_read_on_the_way_and_nothing_else",
            ),
            (LEVEL, "every_third_packet_is_encrypted_all_the_same"),
            (LEVEL, "of_rtp_and_of_mpeg_what_matters_most_is_encrypted"),
            (
                LEVEL,
                "an_operator_switches_levels_under_volleys_and_nothing_is_lost",
            ),
        ]),
        refuses: Tests(&[
            (LEVEL, "without_a_grant_nothing_can_be_read_on_the_way"),
            (
                LEVEL,
                "ends_that_name_different_datagrams_encrypt_all_and_are_told_with_the_fix",
            ),
            (
                LEVEL,
                "a_level_that_was_not_agreed_on_is_refused_with_the_fix",
            ),
            (LEVEL, "a_class_that_is_not_bounded_is_told_with_the_fix"),
            (
                LEVEL_FILE,
                "what_is_not_named_or_not_bounded_is_refused_with_the_fix",
            ),
            (
                LEVEL_ESP,
                "who_reads_a_packet_without_encryption_can_change_none_of_its_octets",
            ),
            (
                LEVEL_ESP,
                "a_peer_that_sends_more_than_was_granted_is_not_heard_and_that_is_told_once",
            ),
            (
                LEVEL_ESP,
                "a_peer_that_sends_what_was_not_granted_is_not_heard",
            ),
        ]),
        recovers: Tests(&[
            (
                LEVEL,
                "a_grant_that_is_used_up_loses_nothing_and_the_rest_is_encrypted",
            ),
            (
                LEVEL,
                "new_keys_renew_a_grant_as_often_as_was_agreed_and_nothing_is_lost",
            ),
            (
                LEVEL,
                "a_download_comes_through_a_lossy_hop_every_second_packet_without_encryption",
            ),
            (LEVEL, "a_reload_takes_a_grant_back"),
            (
                LEVEL_NODE,
                "a_grant_whose_time_is_over_is_of_no_use_and_nothing_is_lost",
            ),
            (
                IKE_LEVEL,
                "new_keys_renew_a_grant_as_often_as_both_ends_said_and_then_there_is_none",
            ),
        ]),
    },
    Feature {
        name: "Levels by how good the link is",
        keys: &["peer.level"],
        verbs: &["zones", "level"],
        works: Tests(&[(
            LEVEL,
            "on_a_good_link_nobody_reads_anything_and_on_a_bad_one_what_repairs_it",
        )]),
        refuses: Tests(&[
            (
                LEVEL_FILE,
                "how_good_a_link_has_to_be_is_a_share_of_its_packets",
            ),
            (LEVEL_ESP, "forged_and_repeated_packets_make_no_link_bad"),
        ]),
        recovers: Tests(&[(
            LEVEL,
            "on_a_good_link_nobody_reads_anything_and_on_a_bad_one_what_repairs_it",
        )]),
    },
    Feature {
        name: "Licences",
        keys: &[
            "peer.licences.node",
            "peer.licences.zones",
            "peer.licences.right",
        ],
        verbs: &["zones"],
        works: Tests(&[
            (LICENCE, "a_licensed_node_opens_the_headers_and_no_payload"),
            (LICENCE, "a_payload_licensed_by_name_is_opened"),
            (LICENCE, "down_takes_the_keys_away"),
        ]),
        refuses: Tests(&[
            (LICENCE, "no_key_leaves_if_the_mobile_node_does_not_agree"),
            (LICENCE, "no_key_leaves_if_the_gateway_does_not_agree"),
            (LICENCE, "no_key_leaves_for_more_zones_than_both_agree_on"),
            (LICENCE, "no_key_leaves_to_a_node_of_another_identity"),
        ]),
        recovers: Tests(&[
            (
                RECOVERY,
                "a_killed_licensed_node_comes_back_with_its_licence",
            ),
            (
                RECOVERY,
                "a_killed_gateway_comes_back_with_its_tunnel_and_its_licence",
            ),
        ]),
    },
    Feature {
        name: "Several licensed nodes on one path",
        keys: &["peer.licences.node", "peer.licences.zones"],
        verbs: &[],
        works: Tests(&[
            (
                GRANT,
                "each_of_several_nodes_on_one_path_opens_what_it_may_and_no_more",
            ),
            (
                GRANT,
                "the_second_of_two_nodes_repairs_losses_and_the_first_forwards_them",
            ),
        ]),
        refuses: Tests(&[
            (
                GRANT,
                "two_nodes_that_would_share_a_key_are_refused_with_what_to_do",
            ),
            (
                "edge/config/src/tests/zones.rs",
                "two_nodes_that_would_share_a_key_are_refused",
            ),
        ]),
        recovers: Tests(&[(
            REVOKED_NODE,
            "another_node_keeps_its_licence_when_one_is_gone",
        )]),
    },
    Feature {
        name: "Several licensed nodes with one key",
        keys: &["peer.shared"],
        verbs: &["check"],
        works: Tests(&[(GRANT, "two_nodes_share_a_key_where_both_ends_say_so")]),
        refuses: Tests(&[
            (
                GRANT,
                "two_nodes_that_would_share_a_key_are_refused_with_what_to_do",
            ),
            (CONFIG_ZONES, "two_nodes_that_would_share_a_key_are_refused"),
        ]),
        recovers: Tests(&[(GRANT, "two_nodes_share_a_key_where_both_ends_say_so")]),
    },
    Feature {
        name: "Hand-over: keys that follow a mobile node from one licensed node to the next (push, PKD)",
        keys: &["peer.licences.at", "peer.handover", "handover.neighbours"],
        verbs: &["status", "zones", "reload"],
        works: Tests(&[
            (
                HANDOVER,
                "pushed_keys_come_after_the_mobile_node_and_nobody_reads_behind_it",
            ),
            (
                HANDOVER,
                "with_pkd_a_neighbour_has_keys_before_and_a_move_is_another_spi",
            ),
            (HANDOVER, "a_slot_that_is_come_back_to_has_other_keys"),
            (
                HANDOVER,
                "with_simultaneous_bindings_a_hand_over_loses_nothing",
            ),
            (
                HANDOVER,
                "a_fixed_accelerator_reads_what_passes_it_and_nothing_else",
            ),
            (
                HANDOVER,
                "a_licence_that_comes_by_reload_is_one_in_its_place",
            ),
        ]),
        refuses: Tests(&[
            (
                HANDOVER,
                "a_node_that_the_mobile_node_does_not_license_gets_no_key",
            ),
            (
                HANDOVER,
                "an_agent_that_heard_of_no_revocation_has_keys_of_nothing",
            ),
            (HANDOVER, "what_cannot_be_handed_over_is_told_with_the_fix"),
            (
                CONFIG_HANDOVER,
                "what_makes_no_sense_of_places_is_told_with_the_fix",
            ),
            (
                NODE_HANDOVER,
                "a_node_that_one_end_does_not_license_gets_no_key_by_any_way",
            ),
            (NODE_ATTACKS, "a_registration_that_is_replayed_moves_no_key"),
            (
                NODE_ATTACKS,
                "an_advertisement_that_is_spoofed_moves_no_key",
            ),
            (
                NODE_ATTACKS,
                "a_neighbour_that_is_never_visited_has_the_key_of_nothing",
            ),
            (
                IKE_SLOT,
                "an_offer_of_a_node_that_the_other_end_does_not_license_is_refused_and_told",
            ),
        ]),
        recovers: Tests(&[
            (HANDOVER, "an_agent_that_was_killed_gets_its_keys_again"),
            (HANDOVER, "keys_come_over_a_way_that_loses_much"),
            (
                NODE_HANDOVER,
                "whoever_restarts_is_read_again_where_the_mobile_node_is",
            ),
            (NODE_WALKS, "walks_end_with_ends_that_agree"),
            (LAB_WALKS, "walks_by_push_end_with_ends_that_agree"),
            (LAB_WALKS, "walks_by_pkd_end_with_ends_that_agree"),
            (
                IKE_SLOT,
                "slots_come_and_go_on_a_network_that_loses_doubles_and_reorders",
            ),
        ]),
    },
    Feature {
        name: "Hand-over by shared PKD: few licensed nodes at a time have the same keys",
        keys: &["peer.holders", "peer.handover", "handover.neighbours"],
        verbs: &["status", "zones", "reload"],
        works: Tests(&[
            (
                HOLDERS,
                "a_move_among_nodes_that_share_keys_is_no_other_spi_and_loses_nothing",
            ),
            (
                HOLDERS,
                "keys_are_made_anew_before_a_third_node_has_them_and_who_was_left_opens_nothing",
            ),
        ]),
        refuses: Tests(&[
            (HOLDERS, "ends_that_do_not_agree_on_holders_give_no_key"),
            (HOLDERS, "what_holders_cannot_mean_is_told_with_the_fix"),
            (HOLDERS, "more_neighbours_than_may_hold_keys_are_told"),
            (
                HOLDERS,
                "a_node_that_is_taken_out_of_the_file_reads_nothing_more",
            ),
            (
                CONFIG_HANDOVER,
                "how_many_share_keys_makes_sense_or_is_told_with_the_fix",
            ),
            (
                NODE_SHARED,
                "an_agent_that_names_ever_other_neighbours_has_keys_made_anew_every_two_seconds_at_most",
            ),
            (
                NODE_SHARED,
                "for_an_agent_that_may_not_have_the_keys_home_seals_nothing_in_them",
            ),
            (
                IKE_SLOT,
                "an_offer_of_nodes_that_the_other_end_does_not_have_share_a_slot_is_refused_and_told",
            ),
        ]),
        recovers: Tests(&[
            (
                HOLDERS,
                "a_neighbour_that_does_not_answer_delays_no_keys_and_gets_them_later",
            ),
            (HOLDERS, "shared_keys_come_over_a_way_that_loses_much"),
            (
                HOLDERS,
                "a_gateway_that_was_killed_gives_few_nodes_other_keys",
            ),
            (
                NODE_SHARED,
                "new_keys_that_cross_a_move_are_for_where_the_mobile_node_is",
            ),
            (
                NODE_SHARED,
                "keys_that_are_lost_on_the_way_come_later_and_delay_nothing",
            ),
            (
                NODE_WALKS,
                "walks_among_agents_that_share_keys_end_with_ends_that_agree",
            ),
            (
                LAB_WALKS,
                "walks_among_agents_that_share_keys_end_with_ends_that_agree",
            ),
        ]),
    },
    Feature {
        name: "Hand-over by DKM: the first keys of the next licensed node are those of the one before",
        keys: &["peer.handover", "neighbour.id", "neighbour.address"],
        verbs: &["status", "zones"],
        works: Tests(&[
            (
                HANDOVER,
                "with_dkm_the_next_agent_reads_what_runs_by_the_keys_of_the_one_before",
            ),
            (HANDOVER, "with_dkm_nobody_reads_behind_the_mobile_node"),
        ]),
        refuses: Tests(&[
            (
                HANDOVER,
                "an_agent_that_does_not_know_its_neighbour_gives_it_nothing",
            ),
            (
                CONFIG_HANDOVER,
                "a_neighbour_is_one_of_a_node_that_packets_pass",
            ),
            (MIGRATION, "a_token_is_good_once"),
            (
                MIGRATION,
                "a_token_that_the_mobile_node_has_not_made_is_good_for_nothing",
            ),
            (
                MIGRATION,
                "a_token_for_another_node_is_of_no_use_to_who_has_it",
            ),
            (
                MIGRATION,
                "a_token_is_good_for_some_seconds_by_clocks_that_differ_by_some",
            ),
            (MIGRATION, "a_token_of_before_is_of_no_use_for_new_keys"),
            (MIGRATION, "a_node_gives_nothing_that_it_does_not_hold"),
            (
                MIGRATION,
                "a_node_that_one_end_does_not_license_gets_no_keys_from_another",
            ),
            (IKE_MIGRATION, "nobody_but_a_neighbour_is_asked_or_answered"),
        ]),
        recovers: Tests(&[
            (
                HANDOVER,
                "an_agent_that_is_gone_hands_on_nothing_and_delays_nothing",
            ),
            (HANDOVER, "with_dkm_keys_come_over_a_way_that_loses_much"),
            (LAB_WALKS, "walks_by_dkm_end_with_ends_that_agree"),
            (
                MIGRATION,
                "two_seconds_after_the_move_neither_node_reads_if_there_are_no_new_keys",
            ),
            (
                MIGRATION,
                "if_nothing_comes_of_a_move_there_are_new_keys_all_the_same",
            ),
        ]),
    },
    Feature {
        name: "Licences that change while packets flow",
        keys: &["peer.licences.node", "peer.licences.zones"],
        verbs: &["reload"],
        works: Tests(&[
            (
                GRANT,
                "licences_are_given_changed_and_taken_back_and_no_datagram_is_lost",
            ),
            (RELOAD, "after_a_licence_is_removed_the_node_opens_nothing"),
        ]),
        refuses: Tests(&[
            (
                GRANT,
                "a_licence_that_one_end_takes_back_is_gone_and_both_say_so",
            ),
            (
                REVOKED_NODE,
                "a_node_that_comes_back_gets_no_keys_by_a_licence_that_is_gone",
            ),
            (
                REVOKED_NODE,
                "keys_that_were_being_made_are_not_given_to_who_has_no_licence_any_more",
            ),
        ]),
        recovers: Tests(&[
            (
                GRANT,
                "a_node_opens_nothing_while_the_other_end_does_not_answer",
            ),
            (
                REVOKED_NODE,
                "a_licence_that_either_end_takes_back_costs_no_packet_and_no_tunnel",
            ),
            (
                IKE_LICENCES,
                "both_ends_may_change_their_licences_at_once_over_any_network",
            ),
            (
                IKE_LICENCES,
                "a_peer_that_makes_no_new_keys_is_left_within_a_minute",
            ),
        ]),
    },
    Feature {
        name: "An audit log of licences and keys",
        keys: &["audit.file", "audit.required"],
        verbs: &["audit"],
        works: Tests(&[
            (
                AUDIT,
                "what_is_agreed_given_and_taken_is_recorded_at_all_three",
            ),
            (
                AUDIT,
                "new_keys_are_given_and_the_old_ones_end_and_no_packet_is_lost",
            ),
            (
                AUDIT,
                "a_licence_that_is_taken_out_is_revoked_at_both_while_a_connection_goes_on",
            ),
            (
                AUDIT,
                "after_logrotate_lines_go_to_the_new_file_and_none_is_lost",
            ),
        ]),
        refuses: Tests(&[
            (
                AUDIT,
                "a_licence_that_one_end_alone_wants_is_recorded_and_nothing_is_given",
            ),
            (
                AUDIT,
                "no_key_leaves_without_its_line_where_that_is_required",
            ),
            (
                AUDIT,
                "a_configuration_without_a_log_is_told_how_to_have_one",
            ),
            (
                AUDIT_NODE,
                "a_key_of_a_tunnel_that_has_ended_does_not_leave_any_more",
            ),
            (
                FAULTS,
                "an_audit_log_has_a_place_that_does_not_depend_on_where_the_daemon_runs",
            ),
        ]),
        recovers: Tests(&[
            (
                AUDIT,
                "a_file_that_cannot_be_written_is_told_and_keys_are_given_all_the_same",
            ),
            (AUDIT, "a_killed_gateway_goes_on_in_the_same_file"),
            (
                AUDIT_LINE,
                "a_file_that_cannot_be_opened_is_tried_again_for_each_line",
            ),
            (
                AUDIT_NODE,
                "a_node_that_goes_is_told_and_given_keys_when_it_comes_back",
            ),
        ]),
    },
    Feature {
        name: "A licensed node on the way",
        keys: &[
            "divert.wired",
            "divert.wireless",
            "divert.clear_tcp",
            "divert.offload",
        ],
        verbs: &[],
        works: Tests(&[
            (LICENCE, "a_licensed_node_opens_the_headers_and_no_payload"),
            (LICENCE, "a_plain_tunnel_passes_a_licensed_node"),
            (LICENCE, "fragments_pass_a_licensed_node"),
            (PASSAGE, "what_passes_as_a_whole_arrives_as_a_whole"),
            (PASSAGE, "what_does_not_pass_is_missing_and_nothing_else"),
            (PASSAGE, "what_is_sent_in_between_arrives_in_between"),
            (
                DEMO,
                "snoop_makes_a_zoned_download_at_least_three_times_as_fast",
            ),
        ]),
        refuses: Tests(&[
            (
                "edge/os/tests/network/divert.rs",
                "a_machine_that_does_not_forward_is_told_how",
            ),
            (DOCTOR, "a_missing_interface_and_missing_rules_are_found"),
        ]),
        recovers: Tests(&[
            (
                RECOVERY,
                "what_a_killed_daemon_left_is_gone_after_the_next_start_and_stop",
            ),
            (
                AWAITED,
                "a_licensed_node_diverts_as_soon_as_its_interfaces_exist",
            ),
            (
                "edge/os/tests/network/divert.rs",
                "an_interface_may_come_later_and_come_back",
            ),
        ]),
    },
    Feature {
        name: "Writing: a licensed node lowers TCP's windows",
        keys: &["peer.licences.right", "regulate.window"],
        verbs: &["zones"],
        works: Tests(&[(
            WRITE,
            "a_kernels_sender_keeps_to_the_window_that_a_writer_lowers",
        )]),
        refuses: Tests(&[
            (WRITE, "a_node_that_may_only_read_lowers_no_window"),
            (
                WRITE,
                "a_licence_to_write_that_is_taken_back_ends_while_packets_flow",
            ),
            (
                "pure/esp/tests/data_plane/overlay.rs",
                "a_writer_outside_its_mask_is_dropped",
            ),
        ]),
        recovers: Tests(&[(
            WRITE,
            "no_number_comes_twice_over_a_crash_of_the_writer_and_a_lossy_hop",
        )]),
    },
    Feature {
        name: "Injection: a licensed node stands in for a mobile node that is out of reach",
        keys: &["peer.licences.right", "stand_in.after", "stand_in.limit"],
        verbs: &["zones"],
        works: Tests(&[
            (
                INJECT,
                "a_connection_outlives_an_outage_that_its_keepalives_would_have_ended",
            ),
            (INJECT, "data_under_way_waits_for_the_end_of_an_outage"),
        ]),
        refuses: Tests(&[
            (INJECT, "a_node_that_may_only_read_saves_no_connection"),
            (INJECT, "without_a_stand_in_data_under_way_gives_up"),
            (INJECT, "nobody_is_stood_in_for_longer_than_the_limit"),
            (
                INJECT,
                "a_licence_to_inject_that_is_taken_back_ends_during_an_outage",
            ),
            (
                INJECT_ESP,
                "a_node_that_says_more_than_the_peer_has_said_is_dropped",
            ),
            (
                INJECT_NODE,
                "a_right_that_only_one_end_gives_is_given_by_nobody",
            ),
            (
                FAULTS,
                "nothing_may_be_written_or_injected_but_where_the_first_zone_has_the_headers",
            ),
        ]),
        recovers: Tests(&[
            (
                INJECT,
                "no_number_comes_twice_over_a_crash_of_the_node_and_a_lossy_hop",
            ),
            (
                INJECT_NODE,
                "no_number_comes_twice_over_restarts_of_the_node_renewals_and_rekeys",
            ),
            (
                INJECT_NODE,
                "a_dead_peer_is_found_dead_though_it_is_stood_in_for",
            ),
        ]),
    },
    Feature {
        name: "SNOOP",
        keys: &[
            "snoop.enabled",
            "snoop.flows",
            "snoop.packets",
            "snoop.octets",
        ],
        verbs: &["flows"],
        works: Tests(&[
            (
                DEMO,
                "snoop_makes_a_zoned_download_at_least_three_times_as_fast",
            ),
            (LICENCE, "the_licensed_node_sees_the_flow_inside"),
        ]),
        refuses: Tests(&[(DEMO, "with_snoop_off_the_verdict_fails")]),
        recovers: Tests(&[
            (
                DOWNLOAD,
                "a_retransmission_that_is_lost_too_is_repaired_too",
            ),
            (DOWNLOAD, "an_outage_of_three_seconds_is_survived"),
        ]),
    },
    Feature {
        name: "Services: a protocol and ports of what a tunnel carries",
        keys: &["peer.local", "peer.remote"],
        verbs: &["status"],
        works: Tests(&[
            (
                SERVICE,
                "each_service_goes_by_its_own_tunnel_and_all_others_go_nowhere",
            ),
            (
                SERVICE,
                "ends_that_mean_different_services_carry_what_both_mean",
            ),
            (
                CHILDREN_SWAN,
                "a_service_of_strongswan_is_carried_and_nothing_beside_it",
            ),
        ]),
        refuses: Tests(&[
            (
                SERVICE,
                "each_service_goes_by_its_own_tunnel_and_all_others_go_nowhere",
            ),
            (SERVICE, "what_is_no_service_is_told_with_the_fix"),
        ]),
        recovers: NotNeeded("they are selectors, of which nothing is remembered"),
    },
    Feature {
        name: "Exceptions from protection",
        keys: &[
            "policy.action",
            "policy.remote",
            "policy.protocol",
            "policy.ports",
        ],
        verbs: &[],
        works: Tests(&[
            (POLICY, "what_is_bypassed_goes_in_clear_and_comes_back"),
            (POLICY, "what_is_discarded_goes_nowhere_and_is_counted"),
            (POLICY, "the_first_match_wins"),
            (POLICY, "a_service_is_bypassed_and_what_is_beside_it_is_not"),
        ]),
        refuses: Tests(&[
            (
                POLICY,
                "a_bypass_of_what_was_discarded_is_refused_with_the_fix",
            ),
            (FAULTS, "ports_are_those_of_a_protocol_that_has_them"),
        ]),
        recovers: Tests(&[(
            POLICY,
            "exceptions_hold_while_a_daemon_is_dead_and_after_it",
        )]),
    },
    Feature {
        name: "Listening on some addresses only",
        keys: &["listen.addresses"],
        verbs: &[],
        works: Tests(&[(POLICY, "a_daemon_answers_on_the_addresses_of_its_list_only")]),
        refuses: Tests(&[(REFUSAL, "an_address_that_is_not_there_is_told_with_the_fix")]),
        recovers: Tests(&[(
            AWAITED,
            "a_tunnel_comes_up_once_the_address_to_listen_on_exists",
        )]),
    },
    Feature {
        name: "Looking into the daemon",
        keys: &["control.socket", "log.level"],
        verbs: &["status", "metrics", "version"],
        works: Tests(&[(RECOVERY, "a_killed_mobile_node_comes_back_with_its_tunnel")]),
        refuses: Tests(&[
            (REFUSAL, "a_cli_without_a_daemon_says_how_to_start_one"),
            (
                SINGLE,
                "two_namespaces_have_a_daemon_each_with_a_socket_of_its_own",
            ),
            (
                SINGLE,
                "status_and_doctor_name_a_daemon_that_has_another_socket",
            ),
            (COMMANDS, "what_the_daemon_refuses_ends_with_1"),
        ]),
        recovers: Tests(&[(COMMANDS, "a_closed_pipe_is_no_panic")]),
    },
    Feature {
        name: "Changing a running daemon",
        keys: &[],
        verbs: &["reload"],
        works: Tests(&[
            (
                RELOAD,
                "a_tunnel_that_did_not_change_loses_no_packet_and_keeps_its_spis",
            ),
            (RELOAD, "sighup_does_the_same_and_tells_the_journal"),
            (RELOAD, "a_removed_peer_goes_with_its_routes"),
            (RELOAD, "an_added_peer_comes_up"),
            (RELOAD, "after_a_licence_is_removed_the_node_opens_nothing"),
        ]),
        refuses: Tests(&[
            (
                RELOAD,
                "a_file_with_faults_changes_nothing_and_names_them_all",
            ),
            (RELOAD, "what_needs_a_restart_is_told_until_it_is_done"),
        ]),
        recovers: Tests(&[(RELOAD, "a_file_that_is_gone_changes_nothing")]),
    },
    Feature {
        name: "Explaining a failure",
        keys: &[],
        verbs: &["explain"],
        works: Tests(&[
            (EXPLAIN, "suites_without_a_common_one"),
            (EXPLAIN, "another_key"),
            (EXPLAIN, "an_expired_certificate"),
            (EXPLAIN, "a_certificate_of_an_unknown_ca"),
            (EXPLAIN, "an_identity_that_nobody_has"),
            (EXPLAIN, "selectors_without_a_common_packet"),
            (EXPLAIN, "zones_that_only_one_end_requires"),
            (EXPLAIN, "a_licence_that_only_one_end_gives"),
            (EXPLAIN, "a_tunnel_that_is_up"),
        ]),
        refuses: Tests(&[(EXPLAIN, "a_peer_that_nobody_knows_is_told_with_those_known")]),
        recovers: Tests(&[(EXPLAIN, "no_answer_at_all")]),
    },
    Feature {
        name: "Keys for Wireshark",
        keys: &[],
        verbs: &["keylog"],
        works: Tests(&[
            (TSHARK, "tshark_opens_ike_and_esp_with_our_keys"),
            (TSHARK, "keys_are_written_only_while_asked_for"),
        ]),
        refuses: Tests(&[(COMMANDS, "keylog_is_loud_and_its_folder_absolute")]),
        recovers: NotNeeded("keys that were not written are those of SAs from before"),
    },
    Feature {
        name: "Checking a configuration",
        keys: &[],
        verbs: &["check"],
        works: Tests(&[
            (
                COMMANDS,
                "check_says_that_a_good_file_is_good_and_what_it_does",
            ),
            (PKI, "a_certificate_that_has_ended_is_warned_of_by_check"),
        ]),
        refuses: Tests(&[
            (
                COMMANDS,
                "check_names_every_error_on_standard_error_and_ends_with_2",
            ),
            (
                REFUSAL,
                "an_unknown_key_is_told_with_its_place_and_the_key_that_was_meant",
            ),
        ]),
        recovers: Tests(&[(
            FAULTS,
            "no_damage_to_a_file_makes_it_panic_or_lose_its_faults",
        )]),
    },
    Feature {
        name: "Keys of the configuration, explained",
        keys: &[],
        verbs: &["key"],
        works: Tests(&[(
            COMMANDS,
            "a_key_is_explained_with_an_example_and_the_effect_of_a_change",
        )]),
        refuses: Tests(&[(
            COMMANDS,
            "a_key_that_does_not_exist_is_told_with_those_that_do",
        )]),
        recovers: NotNeeded("it reads nothing and changes nothing"),
    },
    Feature {
        name: "The demo",
        keys: &[],
        verbs: &["strata-lab demo"],
        works: Tests(&[
            (
                DEMO,
                "snoop_makes_a_zoned_download_at_least_three_times_as_fast",
            ),
            (DEMO, "an_ordinary_user_sees_the_same"),
        ]),
        refuses: Tests(&[
            (DEMO, "without_nginx_it_says_how_to_get_it"),
            (
                DEMO,
                "where_users_may_not_make_namespaces_it_says_how_to_allow_it",
            ),
        ]),
        recovers: Tests(&[(DEMO, "an_interrupted_run_leaves_no_process_and_no_file")]),
    },
    Feature {
        name: "The demo of keys that arrive with a mobile node",
        keys: &[],
        verbs: &["strata-lab demo roam"],
        works: Tests(&[
            (
                DEMO_ROAM,
                "keys_arrive_with_the_mobile_node_and_who_was_left_reads_nothing",
            ),
            (
                DEMO_ROAM,
                "neighbours_have_keys_before_the_mobile_node_comes",
            ),
            (DEMO_ROAM, "keys_are_fetched_from_the_agent_before"),
            (
                DEMO_ROAM,
                "agents_that_are_licensed_everywhere_read_on_and_the_verdict_fails",
            ),
        ]),
        refuses: Tests(&[
            (
                DEMO_ROAM,
                "what_is_no_handover_is_refused_with_those_there_are",
            ),
            (
                DEMO_ROAM,
                "where_users_may_not_make_namespaces_it_says_how_to_allow_it",
            ),
        ]),
        recovers: Tests(&[
            (DEMO_ROAM, "a_walk_goes_on_past_an_agent_that_was_killed"),
            (
                DEMO_ROAM,
                "an_interrupted_walk_leaves_no_process_and_no_file",
            ),
        ]),
    },
    Feature {
        name: "The figures of the papers",
        keys: &[],
        verbs: &[
            "strata-lab figures list",
            "strata-lab figures run",
            "strata-lab figures report",
            "strata-lab figures bundle",
            "strata-lab figures verify",
        ],
        works: Tests(&[
            (
                FIGURES,
                "every_figure_writes_its_files_and_a_page_and_is_not_measured_twice",
            ),
            (
                FIGURES,
                "snoop_carries_the_figures_of_the_paper_and_without_it_none_of_them_holds",
            ),
            (
                FIGURES,
                "a_bundle_is_checked_without_measuring_and_a_changed_number_is_found",
            ),
            (
                FIGURES,
                "the_list_has_every_figure_and_says_what_cannot_run",
            ),
            (
                FIGURES,
                "zones_add_to_a_packet_what_is_computed_and_without_them_the_verdict_fails",
            ),
            (
                FIGURES,
                "ends_and_nodes_keep_up_with_their_links_and_without_zones_the_verdict_fails",
            ),
            (
                FIGURES,
                "packets_of_the_papers_algorithms_cost_what_follows_from_them_and_without_zones_the_verdict_fails",
            ),
            (
                FIGURES,
                "moves_with_simultaneous_bindings_lose_nothing_and_without_them_the_verdict_fails",
            ),
            (
                FIGURES,
                "messages_of_key_management_take_their_time_and_without_zones_the_verdict_fails",
            ),
            (
                FIGURES,
                "a_hand_over_waits_for_no_key_and_without_zones_the_verdict_fails",
            ),
        ]),
        refuses: Tests(&[
            (FIGURES, "an_unknown_figure_is_refused_with_where_to_look"),
            (
                FIGURES,
                "what_an_exhibit_does_not_rest_on_cannot_be_left_off",
            ),
            (FIGURES, "a_folder_that_cannot_be_written_is_refused"),
            (FIGURES, "a_page_over_nothing_is_refused"),
        ]),
        recovers: Tests(&[(
            FIGURES,
            "a_run_that_is_broken_off_leaves_nothing_behind_and_goes_on",
        )]),
    },
    Feature {
        name: "Tunnels with each strongSwan at hand, any two choices together",
        keys: &[],
        verbs: &["strata-lab interop"],
        works: Tests(&[
            (MATRIX, "each_pair_of_choices_meets_in_some_cell"),
            (MATRIX, "the_program_plays_a_cell_and_prints_its_witness"),
        ]),
        refuses: Tests(&[
            (
                MATRIX,
                "a_cell_that_does_not_exist_is_refused_with_those_there_are",
            ),
            (MATRIX, "without_a_strongswan_it_says_how_to_get_it"),
        ]),
        recovers: NotNeeded(
            "a cell that fails is played once more, and what it starts ends with it",
        ),
    },
    Feature {
        name: "What a set-up costs",
        keys: &[],
        verbs: &["strata-lab bench ike"],
        works: Tests(&[
            (BENCH, "everybody_comes_up_and_the_json_has_stable_keys"),
            (BENCH, "those_who_begin_at_once_come_up"),
            (
                BENCH,
                "honest_initiators_come_up_under_a_flood_and_nobody_is_answered_twice",
            ),
            (
                BENCH,
                "set_ups_while_tunnels_are_up_are_measured_at_stratad_and_at_charon",
            ),
        ]),
        refuses: Tests(&[
            (BENCH, "with_the_wrong_key_it_fails"),
            (BENCH, "without_the_key_no_tunnel_is_up_to_measure_beside"),
            (BENCH, "loads_that_exclude_each_other_are_refused"),
        ]),
        recovers: NotNeeded("what it starts ends with it"),
    },
    Feature {
        name: "What a packet costs",
        keys: &[],
        verbs: &["strata-lab bench esp"],
        works: Tests(&[
            (
                BENCH,
                "packets_of_every_shape_get_through_and_the_json_has_stable_keys",
            ),
            (BENCH, "the_cost_of_packets_is_told_as_text"),
        ]),
        refuses: Tests(&[
            (BENCH, "packets_of_another_key_get_nowhere"),
            (BENCH, "an_sa_alone_is_not_many"),
        ]),
        recovers: NotNeeded("nothing of it leaves the process"),
    },
    Feature {
        name: "What a tunnel carries, beside others",
        keys: &[],
        verbs: &["strata-lab bench peers"],
        works: Tests(&[
            (
                BENCH,
                "everybody_carries_between_two_hosts_and_the_json_has_stable_keys",
            ),
            (BENCH, "what_is_carried_is_told_as_text_and_drawn"),
        ]),
        refuses: Tests(&[
            (BENCH, "between_ends_with_different_keys_nothing_is_carried"),
            (
                BENCH,
                "a_plot_that_cannot_be_written_is_refused_before_anything_is_measured",
            ),
        ]),
        recovers: NotNeeded("what it starts ends with it"),
    },
    Feature {
        name: "A long time under load, with new keys all the while",
        keys: &[],
        verbs: &["strata-lab bench soak"],
        works: Tests(&[(
            BENCH,
            "a_minute_of_load_with_new_keys_loses_nothing_and_nobody_grows",
        )]),
        refuses: Tests(&[
            (BENCH, "a_datagram_that_is_lost_in_a_minute_makes_it_fail"),
            (BENCH, "a_soak_of_less_than_a_minute_is_refused"),
            ("lab/src/bench/soak/report.rs", "whoever_grows_fails"),
        ]),
        recovers: NotNeeded("what it starts ends with it"),
    },
    Feature {
        name: "What a gateway carries for very many at once",
        keys: &[],
        verbs: &["strata-lab bench sas"],
        works: Tests(&[
            (
                BENCH,
                "echoes_come_back_through_one_few_and_all_tunnels_and_the_json_has_stable_keys",
            ),
            (BENCH, "a_crowd_is_told_as_text"),
        ]),
        refuses: Tests(&[
            (BENCH, "a_crowd_with_another_key_carries_nothing"),
            (BENCH, "fewer_than_a_few_are_no_crowd"),
        ]),
        recovers: NotNeeded("what it starts ends with it"),
    },
    Feature {
        name: "What floods take from a tunnel that is up and from honest set-ups",
        keys: &[],
        verbs: &["strata-lab bench flood"],
        works: Tests(&[(BENCH, "a_flood_has_a_control_and_the_json_has_stable_keys")]),
        refuses: Tests(&[
            (
                BENCH,
                "no_set_up_beside_a_flood_is_served_with_the_wrong_key",
            ),
            (
                "lab/src/bench/flood/report.rs",
                "one_set_up_that_is_not_served_is_a_failure",
            ),
        ]),
        recovers: NotNeeded("what it starts ends with it"),
    },
    Feature {
        name: "Failures that last, silent peers and causes on this host are shown",
        keys: &[],
        verbs: &["status", "doctor", "explain"],
        works: Tests(&[
            (
                "lab/tests/e2e/operate/explain.rs",
                "a_cause_on_this_host_comes_before_any_at_the_peer",
            ),
            (
                "lab/tests/e2e/operate/explain.rs",
                "a_firewall_of_this_host_is_named_until_it_lets_messages_pass",
            ),
            (
                "lab/tests/e2e/operate/explain.rs",
                "two_machines_with_one_key_are_told_as_that",
            ),
            ("lab/tests/e2e/operate/explain.rs", "no_answer_at_all"),
            (
                "lab/tests/e2e/operate/dns.rs",
                "a_file_that_cannot_be_written_does_not_cost_the_tunnel",
            ),
            (
                "lab/tests/e2e/operate/doctor.rs",
                "a_firewall_that_drops_by_default_is_found",
            ),
            (SIGHT, "at_debug_each_ike_message_is_one_line_at_both_ends"),
            (SIGHT, "at_trace_the_drops_of_a_peer_are_found_by_its_name"),
            (
                SIGHT,
                "metrics_and_status_tell_when_a_peer_was_heard_and_that_it_is_silent",
            ),
        ]),
        refuses: NotNeeded("it only shows"),
        recovers: Tests(&[
            (
                "pure/node/src/tests/sight.rs",
                "the_time_at_which_a_peer_was_last_heard_is_known_by_messages_and_by_packets",
            ),
            (
                "lab/tests/e2e/operate/awaited.rs",
                "a_host_that_no_longer_forwards_is_shown_until_it_does",
            ),
            (
                "edge/stratad/src/troubles.rs",
                "a_failure_is_shown_until_the_task_succeeds",
            ),
            (
                "pure/node/src/tests/sight.rs",
                "a_peer_that_does_not_answer_is_silent_until_it_is_heard_again",
            ),
        ]),
    },
];
