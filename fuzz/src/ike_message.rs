//! Whatever a datagram holds, reading it as IKE neither panics nor loses anything: what was read
//! encodes to something that reads the same.

use wire::ike::{
    Datagram, Frame, GrantReply, Token, decode_level, decode_licences, decode_zone_map,
    encode_level, encode_licences, encode_zone_map,
};

/// Octets as a whole message.
pub fn run(octets: &[u8]) {
    match Datagram::decode(octets) {
        Ok(Datagram::Clear(message)) => {
            let encoded = message.encode();
            assert_eq!(Datagram::decode(&encoded), Ok(Datagram::Clear(message)));
        }
        // As if the cipher had accepted it: what a peer that holds the keys could send.
        Ok(Datagram::Sealed(sealed)) => {
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
