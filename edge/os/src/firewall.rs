//! Chains of nftables that drop packets unless a rule accepts them.
//!
//! Their rules are not evaluated: only a packet that passes proves that one accepts it. The program
//! `iptables` makes such chains as well, except for its variant `iptables-legacy`.

use crate::Error;
use crate::nftables::{self, FILTERED, find, kind};
use nix::libc;

/// A chain that drops packets by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The chain's table, with its family, in the notation of nft(8).
    pub table: String,
    /// Name of the chain.
    pub chain: String,
    /// The packets that the chain sees.
    pub hook: Hook,
}

/// The packets that a chain sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Packets to this host.
    Input,
    /// Packets that this host forwards.
    Forward,
    /// Packets of this host.
    Output,
}

/// Returns all chains of the current network namespace that drop packets by default.
pub fn closed() -> Result<Vec<Closed>, Error> {
    let mut closed = Vec::new();
    for (family, name) in FILTERED {
        nftables::chains(family, |chain| closed.extend(read(name, chain)))?;
    }
    Ok(closed)
}

fn read(family: &str, chain: &[u8]) -> Option<Closed> {
    let place = find(chain, kind::CHAIN_HOOK)?;
    let hook = match number(place, kind::HOOK_NUMBER)? {
        1 => Hook::Input,
        2 => Hook::Forward,
        3 => Hook::Output,
        _ => return None,
    };
    let drops = number(chain, kind::CHAIN_POLICY)? == libc::NF_DROP.cast_unsigned();
    drops.then_some(Closed {
        table: format!("{family} {}", text(chain, kind::TABLE)?),
        chain: text(chain, kind::CHAIN_NAME)?,
        hook,
    })
}

fn number(attributes: &[u8], kind: u16) -> Option<u32> {
    let value = find(attributes, kind)?;
    value.first_chunk().map(|value| u32::from_be_bytes(*value))
}

fn text(attributes: &[u8], kind: u16) -> Option<String> {
    let value = find(attributes, kind)?;
    let value = value.strip_suffix(&[0]).unwrap_or(value);
    Some(String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nftables::Attributes;

    fn chain(hook: u32, policy: u32) -> Attributes {
        let place = Attributes::default()
            .number(kind::HOOK_NUMBER, hook)
            .number(kind::HOOK_PRIORITY, 0);
        Attributes::default()
            .text(kind::TABLE, "filter")
            .text(kind::CHAIN_NAME, "FORWARD")
            .nested(kind::CHAIN_HOOK, &place)
            .number(kind::CHAIN_POLICY, policy)
    }

    #[test]
    fn a_chain_that_drops_by_default_is_closed_and_one_that_accepts_is_not() {
        let read = |hook, policy| read("ip", chain(hook, policy).as_slice());
        let closed = Closed {
            table: "ip filter".to_owned(),
            chain: "FORWARD".to_owned(),
            hook: Hook::Forward,
        };
        assert_eq!(read(2, 0), Some(closed));
        assert_eq!(read(1, 0).map(|closed| closed.hook), Some(Hook::Input));
        assert_eq!(read(3, 0).map(|closed| closed.hook), Some(Hook::Output));
        assert_eq!((read(2, 1), read(0, 0), read(4, 0)), (None, None, None));
    }

    #[test]
    fn a_chain_without_a_hook_is_not_closed() {
        let chain = Attributes::default()
            .text(kind::TABLE, "filter")
            .text(kind::CHAIN_NAME, "jump");
        assert_eq!(read("inet", chain.as_slice()), None);
    }
}
