//! Rules of nftables: expressions, each of which continues or ends the rule for the packet.

use super::Attributes;
use super::attribute::{find, kind};
use nix::libc;

/// The kernel's number of the counter object type.
pub(super) const COUNTER: u32 = 1;

/// A name that the kernel completes.
pub(super) const ANONYMOUS: &str = "__set%d";

/// The first register of four octets, which comparisons use.
pub(crate) const R0: u32 = libc::NFT_REG32_00 as u32;

/// Octets of an interface's name in a register.
const NAME: usize = 16;

/// Properties of a packet outside its octets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meta {
    /// Name of the interface that the packet arrived on.
    Interface = 6,
    /// Type of that interface.
    InterfaceType = 8,
    /// 2 for IPv4, 10 for IPv6.
    Family = 15,
    /// The protocol behind all IP headers.
    Protocol = 16,
    /// Name of the interface that the packet arrived on, if a VRF has replaced that by its own
    /// (Linux 5.6).
    EnslavedInterface = 34,
}

/// The origin of offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    Link = 0,
    Network = 1,
    Transport = 2,
}

/// The end of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict<'a> {
    Accept,
    Drop,
    Jump(&'a str),
    /// A jump without a return.
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

/// Expressions in order. Each expression numbers its attributes in its own way, in the order of the
/// kernel's `nf_tables.h`.
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

    /// Loads octets of the packet. The rule ends for a packet without them.
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

    /// Masks the loaded value.
    pub(crate) fn masked(self, mask: &[u8]) -> Self {
        let data = Attributes::default()
            .number(1, R0)
            .number(2, R0)
            .number(3, mask.len() as u32)
            .nested(4, &value_of(mask))
            .nested(5, &value_of(&vec![0; mask.len()]));
        self.then("bitwise", &data)
    }

    /// Continues if the loaded value equals this.
    pub(crate) fn is(self, value: &[u8]) -> Self {
        self.compare(libc::NFT_CMP_EQ, value)
    }

    /// Continues if the loaded value differs from this.
    pub(crate) fn differs_from(self, value: &[u8]) -> Self {
        self.compare(libc::NFT_CMP_NEQ, value)
    }

    /// Continues if the loaded value is in a range, both ends included.
    pub(crate) fn within(self, first: &[u8], last: &[u8]) -> Self {
        self.compare(libc::NFT_CMP_GTE, first)
            .compare(libc::NFT_CMP_LTE, last)
    }

    fn compare(self, how: i32, value: &[u8]) -> Self {
        let data = Attributes::default().number(1, R0).number(2, how as u32);
        self.then("cmp", &data.nested(3, &value_of(value)))
    }

    /// Continues if the loaded value is in a set of the same batch.
    pub(crate) fn member(self, set: u32) -> Self {
        self.then("lookup", &lookup(set))
    }

    /// Ends with the verdict of a map of the same batch for the loaded value.
    pub(crate) fn chosen(self, map: u32) -> Self {
        self.then("lookup", &lookup(map).number(3, 0))
    }

    /// Counts with a counter of the table.
    pub(crate) fn count(self, counter: &str) -> Self {
        let data = Attributes::default().number(1, COUNTER).text(2, counter);
        self.then("objref", &data)
    }

    /// Counts the value of the registers from the first in a set, and restarts its timeout.
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

    /// Continues for packets of one interface.
    pub(crate) fn by(self, interface: &str) -> Self {
        self.named(Meta::Interface, interface)
    }

    /// Continues for packets whose property is the name of this interface.
    pub(crate) fn named(self, key: Meta, interface: &str) -> Self {
        let mut name = [0; NAME];
        let length = interface.len().min(NAME - 1);
        name[..length].copy_from_slice(&interface.as_bytes()[..length]);
        self.meta(key, R0).is(&name)
    }

    /// Continues for packets of one protocol.
    pub(crate) fn protocol(self, protocol: u8) -> Self {
        self.meta(Meta::Protocol, R0).is(&[protocol])
    }

    /// Continues if octets of the transport header, or after it, equal these.
    pub(crate) fn transport(self, offset: u32, value: &[u8]) -> Self {
        self.load(Base::Transport, offset, value.len() as u32, R0)
            .is(value)
    }
}

/// Returns an element of a set, or of a map to verdicts.
pub(super) fn element(key: &[u8], verdict: Option<Verdict<'_>>) -> Attributes {
    let element = Attributes::default().nested(kind::ELEMENT_KEY, &value_of(key));
    match verdict {
        Some(verdict) => element.nested(kind::ELEMENT_DATA, &verdict.attributes()),
        None => element,
    }
}

/// Returns the packets that a counter has seen, from its attributes.
pub(super) fn packets(counter: &[u8]) -> Option<u64> {
    let packets = find(counter, kind::COUNTER_PACKETS)?.first_chunk().copied();
    packets.map(u64::from_be_bytes)
}

/// Returns the packets that an element has seen.
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
