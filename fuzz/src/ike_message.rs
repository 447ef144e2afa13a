//! Fuzzes IKE message parsing: any datagram is read without a panic, and a parsed message survives
//! encoding and parsing unchanged.

use wire::ike::{
    Datagram, Frame, GrantReply, Token, decode_level, decode_licences, decode_zone_map,
    encode_level, encode_licences, encode_zone_map,
};

/// Parses octets as a whole message.
pub fn run(octets: &[u8]) {
    match Datagram::decode(octets) {
        Ok(Datagram::Clear(message)) => {
            let encoded = message.encode();
            assert_eq!(Datagram::decode(&encoded), Ok(Datagram::Clear(message)));
        }
        // A message that a peer with the keys could send: decryption is skipped.
        Ok(Datagram::Sealed(sealed)) => {
            let _ = sealed.clear();
            let _ = sealed.open_with(Frame::AEAD, |_, _, _, _| Ok::<_, ()>(()));
            if let Some(fragment) = sealed.fragment {
                assert!(1 <= fragment.number && fragment.number <= fragment.total);
            }
        }
        Err(_) => {}
    }
    if let Ok(agreement) = decode_zone_map(octets) {
        assert_eq!(encode_zone_map(&agreement), octets);
    }
    if let Ok(grant) = decode_level(octets) {
        assert_eq!(encode_level(&grant), octets);
    }
    let _ = GrantReply::decode(octets);
    if let Ok(token) = Token::decode(octets) {
        assert_eq!(token.encode(), octets);
    }
    if let Ok(licences) = decode_licences(octets) {
        assert_eq!(encode_licences(&licences), octets);
    }
}
