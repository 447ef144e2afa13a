//! Tools for the readers and writers of control messages.
//!
//! A [`Reader`] walks over received octets and never past their end. It knows the name of the part
//! it reads, so its errors contain the name. A [`LengthPrefixed`] guard reserves a length field,
//! and fills it in when it goes out of scope. [`registry!`] turns an IANA table into a type that
//! also keeps unnamed values.
//!
//! [`registry!`]: crate::registry

use std::ops::{Deref, DerefMut};

/// Octets that cannot be parsed. The text names the part that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// A length field contradicts the data around it.
    #[error("{0} has an invalid length")]
    Length(&'static str),
    /// There are more elements than we accept from any peer.
    #[error("{0} has too many elements")]
    TooMany(&'static str),
    /// Octets follow the end.
    #[error("{0} is followed by unexpected octets")]
    Trailing(&'static str),
    /// The octets end too early.
    #[error("{0} is truncated")]
    Truncated(&'static str),
    /// A field has a value that is not allowed there.
    #[error("{0} has a value that is not allowed")]
    Value(&'static str),
}

/// A type with one wire form: `read` returns the value that `encode` wrote.
pub trait Codec: Sized {
    /// Appends the wire form.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads one value and leaves the reader at its end.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// A cursor over received octets.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    what: &'static str,
    octets: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader of `octets`; `what` is their name in errors.
    pub const fn new(what: &'static str, octets: &'a [u8]) -> Self {
        Self { what, octets }
    }

    /// Returns true if no octets are left.
    pub const fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Returns the number of octets left.
    pub const fn left(&self) -> usize {
        self.octets.len()
    }

    /// Reads the next `n` octets.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self
            .octets
            .split_at_checked(n)
            .ok_or(Malformed::Truncated(self.what))?;
        self.octets = tail;
        Ok(head)
    }

    /// Reads all octets that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.octets)
    }

    /// Returns a reader over the next `n` octets.
    pub fn sub(&mut self, what: &'static str, n: usize) -> Result<Reader<'a>, Malformed> {
        Ok(Reader::new(what, self.take(n)?))
    }

    /// Reads the next `N` octets into an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self
            .octets
            .split_first_chunk()
            .ok_or(Malformed::Truncated(self.what))?;
        self.octets = tail;
        Ok(*head)
    }

    /// Reads one octet.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads two octets, big-endian.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four octets, big-endian.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads eight octets, big-endian.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Ends reading, with an error if octets are left.
    pub const fn finish(self) -> Result<(), Malformed> {
        match self.octets {
            [] => Ok(()),
            [..] => Err(Malformed::Trailing(self.what)),
        }
    }
}

/// Writes a structure with a two-octet length field. The length counts from the octet at which the
/// guard was created (IKE payloads, proposals and selectors count their own headers). The guard
/// fills it in when it is dropped.
#[derive(Debug)]
pub struct LengthPrefixed<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    field: usize,
}

impl<'a> LengthPrefixed<'a> {
    /// Writes `head`, the octets before the length field, and reserves the field itself.
    pub fn after(head: &[u8], out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(head);
        let field = out.len();
        out.extend_from_slice(&[0, 0]);
        Self { out, start, field }
    }
}

impl Deref for LengthPrefixed<'_> {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        self.out
    }
}

impl DerefMut for LengthPrefixed<'_> {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        self.out
    }
}

impl Drop for LengthPrefixed<'_> {
    fn drop(&mut self) {
        // Our messages are far shorter than 64 KiB, because they have to fit in a datagram.
        let length = u16::try_from(self.out.len() - self.start).unwrap_or(u16::MAX);
        self.out[self.field..self.field + 2].copy_from_slice(&length.to_be_bytes());
    }
}

/// Turns an IANA table into a newtype with a constant for each known value. Unknown values survive
/// a round trip and are displayed as numbers.
#[macro_export]
macro_rules! registry {
    ($(#[$meta:meta])* $vis:vis struct $name:ident($int:ty) { $($entry:ident = $value:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis struct $name(pub $int);

        impl $name {
            $(
                #[doc = concat!("`", stringify!($entry), "`, number ", stringify!($value), ".")]
                pub const $entry: Self = Self($value);
            )+

            /// Returns the registered name, if the value has one here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($entry)),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl $crate::codec::Codec for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.0.to_be_bytes());
            }

            fn read(reader: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::codec::Malformed> {
                reader.array().map(<$int>::from_be_bytes).map(Self)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    registry! {
        /// Two fruits.
        struct Fruit(u16) { APPLE = 1, PEAR = 258 }
    }

    #[test]
    fn a_reader_never_passes_the_end() {
        let mut reader = Reader::new("fruit", &[1, 2, 3]);
        assert_eq!(reader.u16(), Ok(258));
        assert_eq!(reader.u16(), Err(Malformed::Truncated("fruit")));
        assert_eq!(reader.u8(), Ok(3));
        assert_eq!(reader.take(1), Err(Malformed::Truncated("fruit")));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn octets_left_over_are_an_error() {
        let reader = Reader::new("fruit", &[1]);
        assert_eq!(reader.finish(), Err(Malformed::Trailing("fruit")));
    }

    #[test]
    fn lengths_count_from_where_the_guard_was_made() {
        let mut out = vec![0xff];
        {
            let mut outer = LengthPrefixed::after(&[7, 0], &mut out);
            outer.push(1);
            LengthPrefixed::after(&[], &mut outer).push(2);
        }
        assert_eq!(out, [0xff, 7, 0, 0, 8, 1, 0, 3, 2]);
    }

    #[test]
    fn unknown_registry_values_survive() {
        let mut out = Vec::new();
        Fruit(999).encode(&mut out);
        Fruit::PEAR.encode(&mut out);
        let mut reader = Reader::new("fruit", &out);
        let unknown = Fruit::read(&mut reader).unwrap();
        assert_eq!((unknown, unknown.to_string()), (Fruit(999), "999".into()));
        assert_eq!(Fruit::read(&mut reader).unwrap().to_string(), "PEAR");
        assert_eq!(Fruit::APPLE.name(), Some("APPLE"));
    }
}
