//! Messages as another implementation reads them. Each was written into a capture with `text2pcap`.
//! `tshark -V` (4.0.17) named every field as the test does, found the ICMP checksum and both IP
//! header checksums correct, and nothing malformed. Python's `hmac` computed the authenticators.

use super::*;
use wire::ip_in_ip::{Egress, Outer};

const ADVERTISEMENT: &str = "0910285000020003 100a010202589100c6336402";
const REQUEST: &str = "0182012c0a420007c0000201c6336402 0123456789abcdef
    2014000010015f26beb2ff5f4a4a06ee7af8ede3c0cd 2214000010017b416e15ba144b0f98205004944f5d61";
const REPLY: &str = "0385012c0a420007c0000201 0123456789abcdef
    20140000100146eba04e2eb4536e40daaed4553dbb98";
const TUNNELLED: &str = "45b800300007400040044dd4c6336402c0000201
    45b8001c0001400040116dce0a420007c00002011194119400080000";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}

fn key() -> Association {
    Association {
        algorithm: Algorithm::HmacMd5,
        key: Secret::new((0..16).collect()),
        ..mobile_home()
    }
}

/// "Simultaneous Bindings, Reverse Tunneling", 300 s.
fn asked() -> Request {
    Request {
        flags: RequestFlags::SIMULTANEOUS | RequestFlags::REVERSE_TUNNEL,
        identification: 0x0123_4567_89ab_cdef,
        ..request(2, at(0))
    }
}

/// "Mobile IP Advertisement", code "Does not route common traffic", 3 s, number 258, "Registration
/// Required, Foreign Agent, Reverse tunneling", 600 s, care-of address 198.51.100.2.
#[test]
fn an_advertisement_is_one_to_wireshark() {
    assert_eq!(advertisement(2, 258).encode(), hex(ADVERTISEMENT));
}

/// With the extensions "Mobile-Home Authentication" and "Foreign-Home Authentication", SPI 0x1001.
#[test]
fn a_request_is_one_to_wireshark() {
    let mut octets = asked().encode();
    key().sign(&mut octets, Between::MobileHome);
    key().sign(&mut octets, Between::ForeignHome);
    assert_eq!(octets, hex(REQUEST));
}

/// "Reg Deny (HA)- Registration ID Mismatch (133)".
#[test]
fn a_reply_is_one_to_wireshark() {
    let mut octets = Reply::to(&asked(), Code::HomeIdentification).encode();
    key().sign(&mut octets, Between::MobileHome);
    assert_eq!(octets, hex(REPLY));
}

/// Protocol "IPIP (4)", "EF PHB", "Don't fragment", and UDP inside.
#[test]
fn a_tunnelled_datagram_is_one_to_wireshark() {
    let whole = hex(TUNNELLED);
    let (header, inner) = whole.split_at(20);
    let outer = Outer::around(inner, (agent(2), HOME_AGENT), Egress::PassesMarks).unwrap();
    assert_eq!(outer.octets(7), header);
}
