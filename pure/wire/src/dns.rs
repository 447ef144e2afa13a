//! Questions to a name server, and its answers (RFC 1035): the addresses of a name.
//!
//! A reader of an answer follows aliases (CNAME) for `MOST_ALIASES` steps, so a loop of them is
//! the end of the search and not of the reader. It keeps [`MOST_ADDRESSES`] addresses. A compressed
//! name may point backwards only, and each pointer further than the last.

use crate::codec::{Malformed, Reader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Port of name servers.
pub const PORT: u16 = 53;

/// Longest answer that we ask for, in octets: no IP fragments on usual paths (RFC 9715).
pub const LONGEST: u16 = 1232;

/// Most addresses that are read from one answer.
pub const MOST_ADDRESSES: usize = 16;

/// Most aliases between the name in the question and that of the addresses.
const MOST_ALIASES: usize = 8;

/// Most records that are read from one answer.
const MOST_RECORDS: usize = 128;

/// Longest name, in octets on the wire (RFC 1035 section 2.3.4), and its longest label.
const LONGEST_NAME: usize = 255;
const LONGEST_LABEL: u8 = 63;

const HEADER_LEN: usize = 12;
const CLASS_IN: u16 = 1;
const CNAME: u16 = 5;
const OPT: u16 = 41;

/// Bits of the second word of a header.
const RESPONSE: u16 = 1 << 15;
const OPCODE: u16 = 0xf << 11;
const TRUNCATED: u16 = 1 << 9;
const RECURSION_DESIRED: u16 = 1 << 8;
const RCODE: u16 = 0xf;

/// The kinds of addresses that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// IPv6 addresses.
    Aaaa,
    /// IPv4 addresses.
    A,
}

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Aaaa, Self::A];

    const fn number(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Aaaa => 28,
        }
    }
}

/// A question for the addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Identifier, which the answer repeats.
    pub id: u16,
    /// The name, complete and without the final dot.
    pub name: String,
    /// The kind of its addresses.
    pub kind: Kind,
}

/// What a name server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The addresses of the name; empty if it has none of this kind.
    Addresses(Vec<IpAddr>),
    /// The name does not exist.
    NoSuchName,
    /// The server cannot or will not answer, with the code that it gives.
    Failed(u8),
}

impl Question {
    /// Returns the message that asks the question. A name that cannot be asked for gives `None`.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut octets = Vec::with_capacity(HEADER_LEN + LONGEST_NAME);
        for word in [self.id, RECURSION_DESIRED, 1, 0, 0, 1] {
            octets.extend(word.to_be_bytes());
        }
        let begin = octets.len();
        for label in self.name.split('.') {
            let length = u8::try_from(label.len()).ok()?;
            let fits = (1..=LONGEST_LABEL).contains(&length) && label.is_ascii();
            fits.then(|| octets.push(length))?;
            octets.extend(label.bytes());
        }
        octets.push(0);
        (octets.len() - begin <= LONGEST_NAME).then_some(())?;
        for word in [self.kind.number(), CLASS_IN] {
            octets.extend(word.to_be_bytes());
        }
        // The length that we accept (RFC 6891 section 6.1.2).
        octets.push(0);
        for word in [OPT, LONGEST, 0, 0, 0] {
            octets.extend(word.to_be_bytes());
        }
        Some(octets)
    }

    /// Reads the answer to this question. `None`: the message is the answer to another one, or to
    /// none. A truncated answer counts with the records that it has.
    pub fn read(&self, message: &[u8]) -> Result<Option<Answer>, Malformed> {
        let mut reader = Reader::new("a DNS message", message);
        let (id, flags) = (reader.u16()?, reader.u16()?);
        let (questions, records) = (reader.u16()?, reader.u16()?);
        reader.take(4)?;
        if id != self.id || flags & RESPONSE == 0 || flags & OPCODE != 0 || questions != 1 {
            return Ok(None);
        }
        let name = name(&mut reader, message)?;
        let (kind, class) = (reader.u16()?, reader.u16()?);
        if name != self.wire_name() || kind != self.kind.number() || class != CLASS_IN {
            return Ok(None);
        }
        Ok(Some(match flags & RCODE {
            0 => {
                let whole = flags & TRUNCATED == 0;
                let records = records_of(&mut reader, message, records.into(), whole)?;
                Answer::Addresses(self.addresses(&records))
            }
            3 => Answer::NoSuchName,
            code => Answer::Failed(code.to_be_bytes()[1]),
        }))
    }

    /// Returns the addresses of the name, or of the name that it is an alias of.
    fn addresses(&self, records: &[Record]) -> Vec<IpAddr> {
        let mut name = self.wire_name();
        for _ in 0..=MOST_ALIASES {
            let of_name = records.iter().filter(|record| record.owner == name);
            let addresses = of_name.clone().filter_map(|record| match record.data {
                Data::Address(address) => Some(address),
                Data::Alias(_) | Data::Other => None,
            });
            let fits = |address: &IpAddr| address.is_ipv4() == (self.kind == Kind::A);
            let addresses: Vec<_> = addresses.filter(fits).take(MOST_ADDRESSES).collect();
            let alias = of_name.clone().find_map(|record| match &record.data {
                Data::Alias(alias) => Some(alias),
                Data::Address(_) | Data::Other => None,
            });
            match alias {
                Some(alias) if addresses.is_empty() => name.clone_from(alias),
                _ => return addresses,
            }
        }
        Vec::new()
    }

    /// Returns the name as [`name`] returns it.
    fn wire_name(&self) -> Vec<u8> {
        self.name.to_ascii_lowercase().into_bytes()
    }
}

/// A resource record.
struct Record {
    owner: Vec<u8>,
    data: Data,
}

enum Data {
    Address(IpAddr),
    Alias(Vec<u8>),
    Other,
}

/// Reads the records of the answer section. Of one that is not whole, those that are complete.
fn records_of<'m>(
    reader: &mut Reader<'m>,
    message: &'m [u8],
    count: usize,
    whole: bool,
) -> Result<Vec<Record>, Malformed> {
    let mut records = Vec::new();
    for _ in 0..count.min(MOST_RECORDS) {
        match record(reader, message) {
            Ok(record) => records.push(record),
            Err(_) if !whole => break,
            Err(error) => return Err(error),
        }
    }
    Ok(records)
}

fn record<'m>(reader: &mut Reader<'m>, message: &'m [u8]) -> Result<Record, Malformed> {
    let owner = name(reader, message)?;
    let (kind, class) = (reader.u16()?, reader.u16()?);
    reader.u32()?;
    let length = reader.u16()?;
    let mut data = reader.sub("a DNS record", length.into())?;
    let data = match (class, kind) {
        (CLASS_IN, kind) if kind == Kind::A.number() => {
            Data::Address(Ipv4Addr::from(data.array()?).into())
        }
        (CLASS_IN, kind) if kind == Kind::Aaaa.number() => {
            Data::Address(Ipv6Addr::from(data.array()?).into())
        }
        (CLASS_IN, CNAME) => Data::Alias(name(&mut data, message)?),
        _ => Data::Other,
    };
    Ok(Record { owner, data })
}

/// Reads a name, in lower case with dots between labels. The name may continue at an earlier place
/// of the message (RFC 1035 section 4.1.4).
fn name<'m>(reader: &mut Reader<'m>, message: &'m [u8]) -> Result<Vec<u8>, Malformed> {
    const WHAT: &str = "a DNS name";
    let mut name = Vec::new();
    let mut begin = message.len() - reader.left();
    // The name is read from here; the reader stays behind its part before the first pointer.
    let mut at = reader.clone();
    let mut has_jumped = false;
    loop {
        match at.u8()? {
            0 => break,
            length @ 1..=LONGEST_LABEL => {
                if !name.is_empty() {
                    name.push(b'.');
                }
                let label = at.take(length.into())?;
                if label.contains(&b'.') || name.len() + label.len() > LONGEST_NAME {
                    return Err(Malformed::Value(WHAT));
                }
                name.extend(label.to_ascii_lowercase());
            }
            high @ 0xc0..=0xff => {
                let to = usize::from(u16::from_be_bytes([high & 0x3f, at.u8()?]));
                if to >= begin {
                    return Err(Malformed::Value(WHAT));
                }
                if !has_jumped {
                    *reader = at;
                    has_jumped = true;
                }
                begin = to;
                at = Reader::new(WHAT, &message[to..]);
            }
            _ => return Err(Malformed::Value(WHAT)),
        }
    }
    if !has_jumped {
        *reader = at;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(kind: Kind) -> Question {
        Question {
            id: 0x1234,
            name: "GW.example.net".to_owned(),
            kind,
        }
    }

    /// Returns the answer to a question with records, in which the name is a pointer.
    fn answer(question: &Question, flags: u16, records: &[(&[u8], u16, &[u8])]) -> Vec<u8> {
        let asked = question.encode().unwrap();
        let mut octets = asked[..asked.len() - 11].to_vec();
        octets[2..4].copy_from_slice(&(RESPONSE | flags).to_be_bytes());
        octets[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
        octets[10..12].copy_from_slice(&[0, 0]);
        for (owner, kind, data) in records {
            octets.extend(*owner);
            octets.extend(kind.to_be_bytes());
            octets.extend([0, 1, 0, 0, 0, 60]);
            octets.extend((data.len() as u16).to_be_bytes());
            octets.extend(*data);
        }
        octets
    }

    /// A pointer to the name in the question.
    const ASKED: &[u8] = &[0xc0, 12];

    const V4: [u8; 4] = [192, 0, 2, 1];

    fn addresses(question: &Question, message: &[u8]) -> Vec<IpAddr> {
        match question.read(message) {
            Ok(Some(Answer::Addresses(addresses))) => addresses,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn addresses_of_the_asked_kind_are_read() {
        let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let a = question(Kind::A);
        let records = [(ASKED, 1, &V4[..]), (ASKED, 28, &v6.octets())];
        let expected = [IpAddr::from(V4)];
        assert_eq!(addresses(&a, &answer(&a, 0, &records)), expected);
        let aaaa = question(Kind::Aaaa);
        let message = answer(&aaaa, 0, &records);
        assert_eq!(addresses(&aaaa, &message), [IpAddr::from(v6)]);
        assert!(addresses(&a, &answer(&a, 0, &[])).is_empty());
    }

    // Weakness: 196
    #[test]
    fn aliases_are_followed_and_a_loop_of_them_ends() {
        let a = question(Kind::A);
        let to = |name: &str| {
            let labels = name.split('.');
            let mut octets: Vec<_> = labels
                .flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat())
                .collect();
            octets.push(0);
            octets
        };
        let (b, c) = (to("b.example.org"), to("C.example.org"));
        let chain = [(ASKED, 5, &b[..]), (&c, 1, &V4), (&b, 5, &c)];
        assert_eq!(addresses(&a, &answer(&a, 0, &chain)), [IpAddr::from(V4)]);
        let circle = [(ASKED, 5, &b[..]), (&b, 5, &c), (&c, 5, &b)];
        assert!(addresses(&a, &answer(&a, 0, &circle)).is_empty());
        let others = [(&b[..], 1, &V4[..])];
        assert!(addresses(&a, &answer(&a, 0, &others)).is_empty());
    }

    // Weakness: 196
    #[test]
    fn a_flood_of_addresses_is_cut_off() {
        let a = question(Kind::A);
        let records = vec![(ASKED, 1, &V4[..]); 1000];
        let read = addresses(&a, &answer(&a, 0, &records));
        assert_eq!(read.len(), MOST_ADDRESSES);
    }

    #[test]
    fn failures_and_answers_to_others_are_told_apart() {
        let a = question(Kind::A);
        let read = |message: &[u8]| a.read(message).unwrap();
        assert_eq!(read(&answer(&a, 3, &[])), Some(Answer::NoSuchName));
        assert_eq!(read(&answer(&a, 2, &[])), Some(Answer::Failed(2)));
        for other in [
            Question { id: 1, ..a.clone() },
            question(Kind::Aaaa),
            Question {
                name: "gx.example.net".to_owned(),
                ..a.clone()
            },
        ] {
            assert_eq!(read(&answer(&other, 0, &[])), None);
        }
        assert_eq!(read(&a.encode().unwrap()), None, "a question is no answer");
    }

    // Weakness: 196
    #[test]
    fn names_point_backwards_only() {
        let a = question(Kind::A);
        let end = answer(&a, 0, &[]).len() as u8;
        for pointer in [[0xc0, end], [0xc0, 0xff], [0x80, 12]] {
            let message = answer(&a, 0, &[(&pointer, 1, &V4)]);
            assert!(a.read(&message).is_err(), "{pointer:?}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_off_is_an_error_unless_its_server_says_so() {
        let a = question(Kind::A);
        for (flags, expected) in [(0, None), (TRUNCATED, Some(1))] {
            let message = answer(&a, flags, &[(ASKED, 1, &V4), (ASKED, 1, &V4)]);
            let read = a.read(&message[..message.len() - 1]);
            let read = read.ok().flatten().map(|read| match read {
                Answer::Addresses(addresses) => addresses.len(),
                _ => 0,
            });
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn names_that_cannot_be_asked_for_are_refused() {
        let asked = |name: &str| {
            let name = name.to_owned();
            Question {
                name,
                ..question(Kind::A)
            }
            .encode()
            .is_some()
        };
        assert!(asked("gw.example.net"));
        let long = ["a"; 127].join(".");
        assert!(asked(&long));
        let (label, name) = ("a".repeat(64), format!("{long}.a"));
        for name in ["", "gw..net", "gw.net.", "gw.ex\u{e4}mple", &label, &name] {
            assert!(!asked(name), "{name}");
        }
    }
}
