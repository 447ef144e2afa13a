//! Fuzzes each kind of payload alone: a parsed payload survives encoding and parsing unchanged, and
//! an identity that a pattern of the configuration admits is one word with the domain at its end.

use model::{Identity, Wildcard};
use wire::ike::{Datagram, Payload};

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
        for payload in &read.payloads {
            if let Payload::IdInitiator(id) | Payload::IdResponder(id) = payload {
                check_name(&id.identity);
            }
        }
        assert_eq!(Datagram::decode(&read.encode()), Ok(Datagram::Clear(read)));
    }
}

/// Checks the name that a user with an identity would have.
fn check_name(identity: &Identity) {
    let name = identity.canonical().to_string();
    let is_word = !name.is_empty() && !name.contains(|c: char| c == '*' || c.is_whitespace());
    let domain = || "example.net".to_owned();
    assert!(is_word || !Wildcard::Any.matches(identity), "{name:?}");
    for (pattern, end) in [
        (Wildcard::Mailboxes(domain()), "@example.net"),
        (Wildcard::Below(domain()), ".example.net"),
    ] {
        let has_end = is_word && name.len() > end.len() && name.ends_with(end);
        assert!(has_end || !pattern.matches(identity), "{name:?}");
    }
}
