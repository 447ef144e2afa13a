//! Fuzzes answers of name servers. The first octet selects the kind of the question, and the
//! message follows.

use wire::dns::{Answer, Kind, MOST_ADDRESSES, Question};

/// Reads a message as the answer to the question that it repeats. An answer to one question is no
/// answer to another.
pub fn run(octets: &[u8]) {
    let Some((&kind, message)) = octets.split_first() else {
        return;
    };
    let Some(&[high, low]) = message.first_chunk() else {
        return;
    };
    let question = Question {
        id: u16::from_be_bytes([high, low]),
        name: "gw.example.net".to_owned(),
        kind: Kind::ALL[usize::from(kind & 1)],
    };
    if let Ok(Some(Answer::Addresses(addresses))) = question.read(message) {
        assert!(addresses.len() <= MOST_ADDRESSES);
        let v4 = question.kind == Kind::A;
        assert!(addresses.iter().all(|address| address.is_ipv4() == v4));
    }
    let other = Question {
        name: "gx.example.net".to_owned(),
        ..question.clone()
    };
    let both = [question, other].map(|question| question.read(message).ok().flatten());
    assert!(both.contains(&None), "it answers one question");
}
