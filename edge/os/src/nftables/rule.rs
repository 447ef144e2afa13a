//! A rule of nftables: expressions, each of which goes on or ends the rule for the packet.

use super::Attributes;
use super::attribute::{find, kind};
use nix::libc;

/// The kernel's number of counters among objects.
pub(super) const COUNTER: u32 = 1;

/// A name that the kernel completes.
pub(super) const ANONYMOUS: &str = "__set%d";

/// The first register of four octets. What is compared is there.
pub(crate) const R0: u32 = libc::NFT_REG32_00 as u32;

/// Octets of an interface's name in a register.
const NAME: usize = 16;

/// Properties of a packet outside its octets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meta {
    /// The name of the interface it came by.
    Interface = 6,
    /// The type of that interface.
    InterfaceType = 8,
    /// 2 for IPv4, 10 for IPv6.
    Family = 15,
    /// The protocol behind all IP headers.
    Protocol = 16,
    /// The name of the interface it came by before the VRF of that one (Linux 5.6).
    EnslavedInterface = 34,
}

/// Where offsets begin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    Link = 0,
    Network = 1,
    Transport = 2,
}

/// How a rule ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict<'a> {
    Accept,
    Drop,
    Jump(&'a str),
    /// A jump without a way back.
    Goto(&'a str),
}

impl Verdict<'_> {
    fn attributes(self) -> Attributes {
        let (code, chain) = match self {
            Self::Drop => (libc::NF_DROP, None),
            Self::Accept => (libc::NF_ACCEPT, None),
            Self::Jump(chain) => (libc::NFT_JUMP, Some(chain)),
            Self::Goto(chain) => (libc::NFT_GOTO, Some(chain)),
        };
        let attributes = Attributes::default().number(kind::VERDICT_CODE, code as u32);
        let attributes = match chain {
            Some(chain) => attributes.text(kind::VERDICT_CHAIN, chain),
            None => attributes,
        };
        Attributes::default().nested(kind::VERDICT, &attributes)
    }
}

/// Expressions in order. Each has kinds of attributes of its own, in the order of the kernel's `nf_tables.h`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule(Attributes);

impl Rule {
    pub(super) fn expressions(&self) -> &Attributes {
        &self.0
    }

    fn then(self, name: &str, data: &Attributes) -> Self {
        Self(self.0.nested(kind::MEMBER, &expression(name, data)))
    }

    /// Loads a property.
    pub(crate) fn meta(self, key: Meta, register: u32) -> Self {
        let data = Attributes::default()
            .number(1, register)
            .number(2, key as u32);
        self.then("meta", &data)
    }

    /// Loads octets of the packet. A packet that does not have them ends the rule.
    pub(crate) fn load(self, base: Base, offset: u32, length: u32, register: u32) -> Self {
        let data = Attributes::default()
            .number(1, register)
            .number(2, base as u32)
            .number(3, offset)
            .number(4, length);
        self.then("payload", &data)
    }

    /// Loads the offset and flags of an IPv6 fragment header.
    pub(crate) fn load_fragment(self) -> Self {
        let data = Attributes::default()
            .number(1, R0)
            .octets(2, &[44])
            .number(3, 2)
            .number(4, 2);
        self.then("exthdr", &data)
    }

    /// Loads a constant.
    pub(crate) fn constant(self, value: &[u8], register: u32) -> Self {
        let data = Attributes::default().number(1, register);
        self.then("immediate", &data.nested(2, &value_of(value)))
    }

    /// Keeps the bits of a mask in what was loaded.
    pub(crate) fn masked(self, mask: &[u8]) -> Self {
        let data = Attributes::default()
            .number(1, R0)
            .number(2, R0)
            .number(3, mask.len() as u32)
            .nested(4, &value_of(mask))
            .nested(5, &value_of(&vec![0; mask.len()]));
        self.then("bitwise", &data)
    }

    /// Goes on if what was loaded is this.
    pub(crate) fn is(self, value: &[u8]) -> Self {
        self.compare(libc::NFT_CMP_EQ, value)
    }

    /// Goes on if what was loaded is not this.
    pub(crate) fn differs_from(self, value: &[u8]) -> Self {
        self.compare(libc::NFT_CMP_NEQ, value)
    }

    /// Goes on if what was loaded is in a range, both ends included.
    pub(crate) fn within(self, first: &[u8], last: &[u8]) -> Self {
        self.compare(libc::NFT_CMP_GTE, first)
            .compare(libc::NFT_CMP_LTE, last)
    }

    fn compare(self, how: i32, value: &[u8]) -> Self {
        let data = Attributes::default().number(1, R0).number(2, how as u32);
        self.then("cmp", &data.nested(3, &value_of(value)))
    }

    /// Goes on if what was loaded is in a set of the same batch.
    pub(crate) fn member(self, set: u32) -> Self {
        self.then("lookup", &lookup(set))
    }

    /// Ends with the verdict of a map of the same batch for what was loaded.
    pub(crate) fn chosen(self, map: u32) -> Self {
        self.then("lookup", &lookup(map).number(3, 0))
    }

    /// Counts by a counter of the table.
    pub(crate) fn count(self, counter: &str) -> Self {
        let data = Attributes::default().number(1, COUNTER).text(2, counter);
        self.then("objref", &data)
    }

    /// Counts what is in the registers from the first in a set, where it stays for another time.
    pub(crate) fn record(self, set: &str) -> Self {
        let counter = expression("counter", &Attributes::default());
        let data = Attributes::default()
            .text(1, set)
            .number(3, libc::NFT_DYNSET_OP_UPDATE as u32)
            .number(4, R0)
            .nested(7, &counter);
        self.then("dynset", &data)
    }

    pub(crate) fn verdict(self, verdict: Verdict<'_>) -> Self {
        let data = Attributes::default().number(1, libc::NFT_REG_VERDICT as u32);
        self.then("immediate", &data.nested(2, &verdict.attributes()))
    }

    /// Goes on for packets of one interface.
    pub(crate) fn by(self, interface: &str) -> Self {
        self.named(Meta::Interface, interface)
    }

    /// Goes on for packets of which a property is the name of this interface.
    pub(crate) fn named(self, key: Meta, interface: &str) -> Self {
        let mut name = [0; NAME];
        let length = interface.len().min(NAME - 1);
        name[..length].copy_from_slice(&interface.as_bytes()[..length]);
        self.meta(key, R0).is(&name)
    }

    /// Goes on for packets of one protocol.
    pub(crate) fn protocol(self, protocol: u8) -> Self {
        self.meta(Meta::Protocol, R0).is(&[protocol])
    }

    /// Goes on if octets of the transport header, or behind it, are these.
    pub(crate) fn transport(self, offset: u32, value: &[u8]) -> Self {
        self.load(Base::Transport, offset, value.len() as u32, R0)
            .is(value)
    }
}

/// An element of a set, or of a map to verdicts.
pub(super) fn element(key: &[u8], verdict: Option<Verdict<'_>>) -> Attributes {
    let element = Attributes::default().nested(kind::ELEMENT_KEY, &value_of(key));
    match verdict {
        Some(verdict) => element.nested(kind::ELEMENT_DATA, &verdict.attributes()),
        None => element,
    }
}

/// Packets that a counter has seen, by its attributes.
pub(super) fn packets(counter: &[u8]) -> Option<u64> {
    let packets = find(counter, kind::COUNTER_PACKETS)?.first_chunk().copied();
    packets.map(u64::from_be_bytes)
}

/// Packets that an element has seen.
pub(crate) fn seen(element: &[u8]) -> Option<u64> {
    let expression = find(element, kind::ELEMENT_EXPRESSION).or_else(|| {
        let all = find(element, kind::ELEMENT_EXPRESSIONS)?;
        find(all, kind::MEMBER)
    });
    packets(find(expression?, kind::EXPRESSION_DATA)?)
}

fn expression(name: &str, data: &Attributes) -> Attributes {
    Attributes::default()
        .text(kind::EXPRESSION_NAME, name)
        .nested(kind::EXPRESSION_DATA, data)
}

fn lookup(set: u32) -> Attributes {
    Attributes::default()
        .text(1, ANONYMOUS)
        .number(2, R0)
        .number(4, set)
}

fn value_of(octets: &[u8]) -> Attributes {
    Attributes::default().octets(kind::VALUE, octets)
}
