//! Several SAs for the same traffic (RFC 9611), or one for each of several paths: selection of one
//! per flow.
//!
//! All packets of a flow use one SA, which preserves their order, and the flow alone selects it:
//! every SA has a weight derived from SA and flow, and the smallest weight wins. A new or removed
//! SA therefore moves only the flows that it wins. If there is only "the fallback SA", all flows
//! use it. Both directions of a flow have the same weights, so that they take the same path. An SA
//! for a part of the traffic comes before all others.

use model::{ChildSa, Flow, MOST_RESOURCES, PeerId};
use std::net::IpAddr;

/// An SA's identity among those for the same traffic. A successor inherits it on rekey.
#[derive(Clone, Copy)]
pub(crate) struct Lane {
    peer: PeerId,
    number: u8,
    /// True for an SA that carries a part of the traffic, before all others.
    pub narrowed: bool,
}

impl Lane {
    pub fn from_sa<K>(sa: &ChildSa<K>) -> Option<Self> {
        Some(Self {
            number: sa.resource?,
            peer: sa.peer,
            narrowed: sa.narrowed,
        })
    }

    /// Returns true if both SAs belong to the same peer; given that both cover a packet, they are
    /// for the same traffic.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.peer == other.peer
    }

    /// Returns the bit of this lane. A peer has no more than 64.
    pub const fn bit(&self) -> u64 {
        1 << (self.number % MOST_RESOURCES)
    }

    pub fn weight(&self, flow: &Flow) -> u64 {
        let mut ends = [
            (folded(flow.source), flow.source_port),
            (folded(flow.destination), flow.destination_port),
        ];
        ends.sort_unstable();
        let [(one, one_port), (other, other_port)] = ends;
        let ports = u32::from(one_port) << 16 | u32::from(other_port);
        let rest = u64::from(flow.protocol) << 32 | u64::from(ports);
        let parts = [other, rest, u64::from(self.number)];
        parts
            .into_iter()
            .fold(mixed(one), |before, part| mixed(before ^ part))
    }
}

fn folded(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            (bits >> 64) as u64 ^ mixed(bits as u64)
        }
    }
}

/// Spreads differences over all bits (the finalizer of SplitMix64).
const fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(number: u8) -> Lane {
        let peer = PeerId(0);
        Lane {
            peer,
            number,
            narrowed: false,
        }
    }

    fn flow(port: u16, v6: bool) -> Flow {
        let [source, destination] = match v6 {
            false => ["10.1.0.2", "10.8.0.9"],
            true => ["fd00:1::2", "fd00:8::9"],
        };
        Flow {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol: 6,
            source_port: port,
            destination_port: 443,
            ports_visible: true,
        }
    }

    fn winner(of: &[u8], flow: &Flow) -> u8 {
        let lightest = of.iter().min_by_key(|number| lane(**number).weight(flow));
        *lightest.unwrap()
    }

    #[test]
    fn flows_are_spread_over_all_lanes() {
        for v6 in [false, true] {
            let mut won = [0; 4];
            for port in 0..4000 {
                won[usize::from(winner(&[0, 1, 2, 3], &flow(port, v6)))] += 1;
            }
            assert!(won.iter().all(|won| (850..1150).contains(won)), "{won:?}");
        }
    }

    #[test]
    fn both_directions_of_a_flow_use_the_same_lane() {
        for v6 in [false, true] {
            for port in 0..4000 {
                let flow = flow(port, v6);
                let lanes = [0, 1, 2, 3];
                assert_eq!(winner(&lanes, &flow), winner(&lanes, &flow.reversed()));
            }
        }
    }

    #[test]
    fn a_lane_that_goes_moves_its_own_flows_and_no_others() {
        for port in 0..4000 {
            let flow = flow(port, false);
            let before = winner(&[0, 1, 2, 3], &flow);
            let after = winner(&[0, 1, 3], &flow);
            assert!(before == 2 || before == after);
        }
    }
}
