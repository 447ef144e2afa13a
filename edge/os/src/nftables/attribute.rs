//! Attributes of netlink messages: a length, a kind, and a value that may itself have attributes.

/// Kinds of nftables attributes, grouped by the objects that have them
/// (`linux/netfilter/nf_tables.h` of the kernel).
pub(crate) mod kind {
    /// The table's name, in messages about a table, a chain, a rule, a set or an object.
    pub(crate) const TABLE: u16 = 1;
    /// The name, in messages about a set, an object or the rules of a chain.
    pub(crate) const NAME: u16 = 2;

    pub(crate) const TABLE_FLAGS: u16 = 2;

    pub(crate) const CHAIN_NAME: u16 = 3;
    pub(crate) const CHAIN_HOOK: u16 = 4;
    pub(crate) const CHAIN_POLICY: u16 = 5;
    pub(crate) const CHAIN_TYPE: u16 = 7;
    pub(crate) const HOOK_NUMBER: u16 = 1;
    pub(crate) const HOOK_PRIORITY: u16 = 2;

    pub(crate) const RULE_EXPRESSIONS: u16 = 4;
    pub(crate) const EXPRESSION_NAME: u16 = 1;
    pub(crate) const EXPRESSION_DATA: u16 = 2;

    pub(crate) const OBJECT_TYPE: u16 = 3;
    pub(crate) const OBJECT_DATA: u16 = 4;
    pub(crate) const COUNTER_PACKETS: u16 = 2;

    pub(crate) const SET_FLAGS: u16 = 3;
    pub(crate) const SET_KEY_TYPE: u16 = 4;
    pub(crate) const SET_KEY_LENGTH: u16 = 5;
    pub(crate) const SET_DATA_TYPE: u16 = 6;
    pub(crate) const SET_DATA_LENGTH: u16 = 7;
    pub(crate) const SET_DESCRIPTION: u16 = 9;
    pub(crate) const SET_NUMBER: u16 = 10;
    pub(crate) const SET_TIMEOUT: u16 = 11;
    pub(crate) const DESCRIPTION_SIZE: u16 = 1;

    pub(crate) const ELEMENTS: u16 = 3;
    pub(crate) const ELEMENTS_SET_NUMBER: u16 = 4;
    pub(crate) const ELEMENT_KEY: u16 = 1;
    pub(crate) const ELEMENT_DATA: u16 = 2;
    /// Milliseconds until the element expires.
    pub(crate) const ELEMENT_EXPIRATION: u16 = 5;
    pub(crate) const ELEMENT_EXPRESSION: u16 = 7;
    pub(crate) const ELEMENT_EXPRESSIONS: u16 = 11;

    /// A member of a list.
    pub(crate) const MEMBER: u16 = 1;

    pub(crate) const VALUE: u16 = 1;
    pub(crate) const VERDICT: u16 = 2;
    pub(crate) const VERDICT_CODE: u16 = 1;
    pub(crate) const VERDICT_CHAIN: u16 = 2;
}

/// Octets of a length and a kind.
const HEADER: usize = 4;

/// Flag of a kind whose value has attributes.
const NESTED: u16 = 0x8000;

/// Attributes to be sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    /// Appends octets.
    pub(crate) fn octets(mut self, kind: u16, value: &[u8]) -> Self {
        let length = (HEADER + value.len()) as u16;
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends a number in network byte order.
    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.octets(kind, &value.to_be_bytes())
    }

    /// Appends a text.
    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        self.octets(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// Appends attributes as a value.
    pub(crate) fn nested(self, kind: u16, value: &Self) -> Self {
        self.octets(kind | NESTED, &value.0)
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

/// Returns the kinds and values of attributes, as far as they are complete.
pub(crate) fn read(mut octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (header, _) = octets.split_first_chunk::<HEADER>()?;
        let [l0, l1, k0, k1] = *header;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = octets.get(HEADER..length)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([k0, k1]) & !NESTED, value))
    })
}

/// Returns the value of the first attribute of a kind.
pub(crate) fn find(octets: &[u8], kind: u16) -> Option<&[u8]> {
    read(octets)
        .find(|(found, _)| *found == kind)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_ends_the_list() {
        let inner = Attributes::default().number(1, 7);
        let all = Attributes::default()
            .text(1, "abc")
            .nested(2, &inner)
            .octets(3, &[9]);
        let octets = all.as_slice();
        assert_eq!(find(octets, 1), Some(&b"abc\0"[..]));
        assert_eq!(
            find(octets, 2).and_then(|inner| find(inner, 1)),
            Some(&[0, 0, 0, 7][..])
        );
        assert_eq!(find(octets, 3), Some(&[9][..]));
        assert_eq!(read(&octets[..octets.len() - 8]).count(), 2);
        // A length below that of the attribute's own header.
        assert_eq!(read(&[0; 8]).count(), 0);
    }
}
