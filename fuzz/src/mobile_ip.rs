//! Fuzzes Mobile IP messages: any message is read without a panic, and a parsed message survives
//! encoding and parsing unchanged. A datagram taken out of a tunnel is no longer than the tunnelled
//! one.

use wire::checksum::Sum;
use wire::ecn::Ecn;
use wire::fragments::fragments;
use wire::ip_in_ip::{Egress, HEADER_LEN, Outer, spend_hop, take_out};
use wire::mobile_ip::{
    Advertisement, Between, Enclosure, Extensions, Lifetime, Note, Notice, Reply, Request,
    Solicitation, Step, TunnelData, UdpTunnelReply, UdpTunnelRequest, echo, kind,
};

/// Parses octets as a UDP message, as an ICMP message, and as a datagram for a tunnel.
pub fn run(octets: &[u8]) {
    if let Ok((request, extensions)) = Request::parse(octets) {
        look(extensions, octets);
        assert_eq!(
            Request::parse(&request.encode()).map(|(read, _)| read),
            Ok(request)
        );
    }
    if let Ok((reply, extensions)) = Reply::parse(octets) {
        look(extensions, octets);
        assert_eq!(
            Reply::parse(&reply.encode()).map(|(read, _)| read),
            Ok(reply)
        );
    }
    if let Ok((notice, extensions)) = Notice::parse(octets) {
        look(extensions, octets);
        assert_eq!(
            Notice::parse(&notice.encode()).map(|(read, _)| read),
            Ok(notice)
        );
    }
    data(octets);
    let message = mended(octets, 2, octets.len());
    let _ = Solicitation::parse(&message);
    if let Ok(read) = Advertisement::parse(&message) {
        assert_eq!(Advertisement::parse(&read.encode()), Ok(read));
    }
    tunnel(mended(octets, 10, 20));
}

fn data(octets: &[u8]) {
    if let Ok(data) = TunnelData::parse(octets) {
        assert_eq!(TunnelData::parse(&data.octets()), Ok(data));
        let mut datagram = mended(&octets[TunnelData::LEN..], 10, 20);
        let here = [192, 0, 2, 1].into();
        if echo::answer(&mut datagram, here) {
            assert!(!echo::answer(&mut datagram, here), "an answer is answered");
        }
        let _ = echo::Echo::answered_by(&datagram);
        let pieces = fragments(&datagram, 68);
        assert!(pieces.map(|piece| piece.len() - 20).sum::<usize>() <= datagram.len());
    }
}

fn look(extensions: Extensions<'_>, octets: &[u8]) {
    assert!(extensions.iter().count() < octets.len());
    if let Some(asked) = UdpTunnelRequest::find(extensions) {
        assert!(extensions.has(kind::UDP_TUNNEL_REQUEST));
        let _ = (asked.forced, asked.encapsulation);
    }
    let _ = UdpTunnelReply::find(extensions).map(UdpTunnelReply::assents);
    for enclosed in Enclosure::all(extensions) {
        assert!(enclosed.0.len() <= Enclosure::LONGEST);
        let _ = wire::ike::Token::decode(enclosed.0);
    }
    for between in [
        Between::MobileHome,
        Between::MobileForeign,
        Between::ForeignHome,
    ] {
        if let Some(found) = extensions.only(between) {
            assert!(found.end() <= octets.len() && octets.starts_with(found.covered));
            let apart = [extensions.before(&found), extensions.after(&found)];
            let apart = apart.map(|some| some.iter().count());
            assert_eq!(apart[0] + apart[1] + 1, extensions.iter().count());
        }
    }
    if let Some(note) = Note::find(extensions) {
        let mut alone = Notice {
            step: Step::Told,
            lifetime: Lifetime::NONE,
            home: note.previous,
            identification: note.registration,
        }
        .encode();
        note.append(&mut alone);
        let read = Notice::parse(&alone).map(|(_, extensions)| Note::find(extensions));
        assert_eq!(read, Ok(Some(note)));
    }
}

fn tunnel(mut datagram: Vec<u8>) {
    let ends = ([192, 0, 2, 1].into(), [198, 51, 100, 2].into());
    if let Ok(outer) = Outer::around(&datagram, ends, Egress::PassesMarks) {
        let header = outer.octets(1);
        assert_eq!(Sum::default().with(&header).finish(), 0);
        assert!(usize::from(outer.total_len) <= datagram.len() + HEADER_LEN);
    }
    let _ = spend_hop(&mut datagram);
    for ecn in Ecn::ALL {
        let len = datagram.len();
        if let Ok(taken) = take_out(&mut datagram, ecn) {
            assert!(taken.len() <= len);
        }
    }
}

/// Returns the octets with a valid checksum over the first `len` of them, stored at `at`.
fn mended(octets: &[u8], at: usize, len: usize) -> Vec<u8> {
    let mut octets = octets.to_vec();
    if octets.len() >= len && len >= at + 2 {
        octets[at..at + 2].fill(0);
        let sum = Sum::default().with(&octets[..len]).finish();
        octets[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    octets
}
