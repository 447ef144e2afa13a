//! Fuzzes each kind of payload alone: a parsed payload survives encoding and parsing unchanged.

use wire::ike::Datagram;

/// Parses a payload: one octet of type, then the body.
pub fn run(octets: &[u8]) {
    let Some((kind, body)) = octets.split_first() else {
        return;
    };
    let Ok(payload_len) = u16::try_from(body.len() + 4) else {
        return;
    };
    let mut message = vec![1; 16];
    message.extend([*kind, 0x20, 37, 0x08, 0, 0, 0, 0]);
    message.extend((28 + u32::from(payload_len)).to_be_bytes());
    message.extend([0, 0]);
    message.extend(payload_len.to_be_bytes());
    message.extend(body);
    if let Ok(Datagram::Clear(read)) = Datagram::decode(&message) {
        assert_eq!(Datagram::decode(&read.encode()), Ok(Datagram::Clear(read)));
    }
}
