//! Deviations from an honest peer when a message becomes datagrams.

use crate::insider::Chain;
use crate::scenario::Step;

/// Returns a fragment of a chain by its numbers: an even part of it, or an invalid one.
pub fn piece(text: &str, chain: &Chain) -> Result<([u16; 2], Chain), String> {
    let numbers = text.split_once('/');
    let numbers = numbers.and_then(|(n, of)| Some([n.parse().ok()?, of.parse().ok()?]));
    let [number, total]: [u16; 2] = numbers.ok_or_else(|| format!("`{text}` is no fragment"))?;
    let len = chain.octets.len();
    let until = |pieces: u16| len * usize::from(pieces.min(total)) / usize::from(total.max(1));
    let part = chain.octets[until(number.saturating_sub(1))..until(number)].to_vec();
    let part = Chain {
        first: if number == 1 { chain.first } else { 0 },
        octets: part,
    };
    Ok(([number, total], part))
}

/// Applies the changes of a step to a finished datagram.
pub fn damage(datagram: &mut Vec<u8>, step: &Step) -> Result<(), String> {
    let len = datagram.len();
    for &at in &step.flips {
        let from_end = len.checked_sub(at.unsigned_abs());
        let at = if at < 0 { from_end } else { Some(at as usize) };
        let octet = at.and_then(|at| datagram.get_mut(at));
        *octet.ok_or("it has no such octet to flip")? ^= 1;
    }
    datagram.truncate(len.saturating_sub(step.cut));
    Ok(())
}
