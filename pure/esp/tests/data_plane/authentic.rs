//! A peer with the keys can still send malformed packets. They are dropped after authentication,
//! each with its reason.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, segment, tcp, v4, v6};
use crypto::Secret;
use esp::DropReason;
use model::Suite;

/// The text of a plain packet.
fn text(datagram: &[u8], padding: &[u8], next_header: u8) -> Vec<u8> {
    [datagram, padding, &[padding.len() as u8, next_header]].concat()
}

fn opened_plain(text: &[u8]) -> Result<Vec<u8>, DropReason> {
    open(&mut pair(&EXPLICIT).1, &plain_packet(1, text))
}

fn keys() -> [(u8, Secret); 2] {
    [
        (1, key(TO_BOB, 1, Suite::Aes128Gcm16)),
        (2, key(TO_BOB, 2, Suite::Aes256Gcm16)),
    ]
}

fn opened_zoned(map: &[u8], texts: &[&[u8]]) -> Result<Vec<u8>, DropReason> {
    let keys = keys();
    let packet = zoned_packet(&keys[keys.len() - texts.len()..], 1, map, texts);
    open(&mut pair(&two_zones()).1, &packet)
}

#[test]
fn a_packet_written_by_the_rules_opens() {
    assert_eq!(opened_plain(&text(&segment(), &[1, 2], 4)), Ok(segment()));
    let (header, payload) = (segment(), segment());
    let header = [&header[..52], &[4]].concat();
    let opened = opened_zoned(&[0x02, 1, 0, 52], &[&header, &payload[52..]]);
    assert_eq!(opened, Ok(segment()));
    let opaque = [&segment()[..], &[4]].concat();
    assert_eq!(opened_zoned(&[0x01, 2, 0, 0], &[&opaque]), Ok(segment()));
}

// Weakness: 73
#[test]
fn a_dummy_packet_moves_the_window_and_is_no_datagram() {
    let mut bob = pair(&EXPLICIT).1;
    let dummy = plain_packet(1, &text(&[7; 40], &[], 59));
    assert_eq!(open(&mut bob, &dummy), Err(DropReason::Dummy));
    assert_eq!(open(&mut bob, &dummy), Err(DropReason::Replayed));
    let opaque = [&[7; 40][..], &[59]].concat();
    assert_eq!(
        opened_zoned(&[0x01, 2, 0, 0], &[&opaque]),
        Err(DropReason::Dummy)
    );
}

#[test]
fn padding_that_rfc_4303_does_not_prescribe_is_dropped() {
    for padding in [&[1, 3][..], &[0, 0], &[2, 1]] {
        let text = text(&segment(), padding, 4);
        assert_eq!(opened_plain(&text), Err(DropReason::BadPadding));
    }
    assert_eq!(opened_plain(&[200, 4]), Err(DropReason::BadPadding));
}

// Weakness: 71
#[test]
fn padding_of_any_prescribed_length_is_taken_off() {
    let padding: Vec<u8> = (1..=255).collect();
    assert_eq!(opened_plain(&text(&segment(), &padding, 4)), Ok(segment()));
}

#[test]
fn octets_after_the_datagram_hide_its_length_and_are_cut_off() {
    let padded = [segment(), vec![0; 300]].concat();
    assert_eq!(opened_plain(&text(&padded, &[], 4)), Ok(segment()));
}

#[test]
fn the_next_header_has_to_be_the_datagrams_version() {
    let six = v6(TCP, &tcp(&[], b"x"));
    assert_eq!(opened_plain(&text(&six, &[], 41)), Ok(six.clone()));
    for (datagram, next_header) in [(&segment(), 41), (&six, 4), (&segment(), 6)] {
        let why = DropReason::NextHeaderMismatch;
        assert_eq!(opened_plain(&text(datagram, &[], next_header)), Err(why));
        let opaque = [&datagram[..], &[next_header]].concat();
        assert_eq!(opened_zoned(&[0x01, 2, 0, 0], &[&opaque]), Err(why));
    }
}

#[test]
fn what_is_no_datagram_is_not_delivered() {
    for datagram in [&[][..], &[0x45], &segment()[..60], &[0x75; 40]] {
        let opened = opened_plain(&text(datagram, &[], 4));
        assert_eq!(opened, Err(DropReason::InnerMalformed));
    }
}

// Weakness: 79
#[test]
fn a_datagram_that_the_sa_may_not_carry_is_dropped() {
    let mut strangers = v4(ICMP, &[8, 0, 0, 0]);
    strangers[13] = 2; // from 10.2.0.1
    let mut elsewhere = v4(ICMP, &[8, 0, 0, 0]);
    elsewhere[17] = 9; // to 10.9.0.1
    for datagram in [strangers, elsewhere] {
        let opened = opened_plain(&text(&datagram, &[], 4));
        assert_eq!(opened, Err(DropReason::InnerSelectorMismatch));
    }
}

#[test]
fn a_checksum_left_out_of_a_datagram_without_one_cannot_be_restored() {
    let icmp = v4(ICMP, &[8, 0, 0, 0]);
    let header = [&icmp[..20], &[4]].concat();
    let opened = opened_zoned(&[0x42, 1, 0, 20], &[&header, &icmp[20..]]);
    assert_eq!(opened, Err(DropReason::ChecksumNotRestorable));
    let opened = opened_zoned(&[0x02, 1, 0, 20], &[&header, &icmp[20..]]);
    assert_eq!(opened, Ok(icmp));
}

#[test]
fn a_zone_of_the_payload_alone_after_the_header_may_be_empty() {
    let ack = v4(TCP, &tcp(&[], b""));
    let header = [&ack[..], &[4]].concat();
    assert_eq!(opened_zoned(&[0x02, 1, 0, 40], &[&header, &[]]), Ok(ack));
}
