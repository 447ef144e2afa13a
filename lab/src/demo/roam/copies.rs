//! Copies later packets to the agents that the mobile node has left.
//!
//! A tap at home captures each packet in a tunnel to an agent. A copy goes to each agent that the
//! mobile node has visited and left, in a tunnel that ends there: to that agent it is another
//! packet for its visitor. The copy is sent [`HOLD`] after the packet. Packets that were sealed
//! before the move and were under way to the old agent have arrived by then, so an agent counts
//! only copies from [`SETTLED`] after the move on.

use super::{Handover, LOOK, PLACES};
use crate::walk::{CARE_OF, HOME_AGENT, Walk};
use crate::wiretap::{Seen, Wiretap};
use anyhow::Result;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wire::ip_in_ip;

/// Delay of a copy after its packet, longer than a packet is under way.
const HOLD: Duration = Duration::from_millis(400);

/// Time after a move at which no packet is under way to the old agent any more, and no copy has
/// been sent yet.
pub(super) const SETTLED: Duration = Duration::from_millis(200);

/// Octets of the destination in an IPv4 header.
const DESTINATION: std::ops::Range<usize> = 16..20;

/// Copies packets until `over` is set.
pub(super) fn copy(walk: &Walk, handover: Handover, over: &AtomicBool) -> Result<()> {
    let tap = Wiretap::open(&walk.home)?;
    // Copies leave from the host between, which is not tapped, so that no copy is copied again.
    let flags = SockFlag::SOCK_CLOEXEC;
    let out = walk.between.inside(|| {
        let (family, kind) = (AddressFamily::Inet, SockType::Raw);
        Ok(socket(family, kind, flags, SockProtocol::Raw)?)
    })?;
    let mut copies = Copies::new(handover.allowance());
    while !over.load(Ordering::Relaxed) {
        while let Some(seen) = tap.next()? {
            copies.note(&seen, Instant::now());
        }
        while let Some((agent, packet)) = copies.due(Instant::now()) {
            send(&out, agent, &packet)?;
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Sends a packet to another agent. The kernel fills in the header checksum.
fn send(out: &OwnedFd, agent: usize, packet: &[u8]) -> Result<()> {
    let mut packet = packet.to_vec();
    let agent: Ipv4Addr = CARE_OF[agent].parse()?;
    packet[DESTINATION].copy_from_slice(&agent.octets());
    let address = SockaddrIn::from(SocketAddrV4::new(agent, 0));
    // A full queue drops the packet.
    let _ = sendto(out.as_raw_fd(), &packet, &address, MsgFlags::empty());
    Ok(())
}

/// Packets that wait for their delay.
struct Copies {
    /// Time after a move during which nothing is copied.
    allowance: Duration,
    /// Agent of the mobile node, and the time of its arrival.
    place: Option<(usize, Instant)>,
    /// Agents that the mobile node has visited.
    visited: [bool; PLACES],
    /// Waiting copies, in the order in which they are due.
    waiting: VecDeque<Waiting>,
}

/// A copy for an agent.
struct Waiting {
    due: Instant,
    agent: usize,
    packet: Rc<[u8]>,
}

impl Copies {
    fn new(allowance: Duration) -> Self {
        Self {
            allowance,
            place: None,
            visited: [false; PLACES],
            waiting: VecDeque::new(),
        }
    }

    /// Records a packet that left home. If it is for an agent, it reveals the place of the mobile
    /// node.
    fn note(&mut self, seen: &Seen, now: Instant) {
        let Some(place) = tunnelled_to(seen) else {
            return;
        };
        let since = match self.place {
            Some((last, since)) if last == place => since,
            _ => now,
        };
        self.place = Some((place, since));
        self.visited[place] = true;
        if now < since + self.allowance {
            return;
        }
        let (due, packet) = (now + HOLD, Rc::from(&seen.octets[..]));
        let left = (0..PLACES).filter(|&agent| self.visited[agent] && agent != place);
        self.waiting.extend(left.map(|agent| Waiting {
            due,
            agent,
            packet: Rc::clone(&packet),
        }));
    }

    /// Returns the next copy that is due. An agent that the mobile node has returned to gets none.
    fn due(&mut self, now: Instant) -> Option<(usize, Rc<[u8]>)> {
        loop {
            let copy = self.waiting.pop_front_if(|copy| copy.due <= now)?;
            if self.place.is_none_or(|(place, _)| place != copy.agent) {
                return Some((copy.agent, copy.packet));
            }
        }
    }
}

/// Returns the agent at which the tunnel of a packet from the home agent ends.
fn tunnelled_to(seen: &Seen) -> Option<usize> {
    let is = |address: IpAddr, text: &str| address.to_string() == text;
    let in_tunnel = seen.octets.get(9) == Some(&ip_in_ip::PROTOCOL);
    if !in_tunnel || !is(seen.source, HOME_AGENT) {
        return None;
    }
    CARE_OF
        .iter()
        .position(|care_of| is(seen.destination, care_of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(agent: usize, mark: u8) -> Seen {
        let mut octets = vec![0; 21];
        octets[9] = ip_in_ip::PROTOCOL;
        octets[20] = mark;
        Seen {
            source: HOME_AGENT.parse().unwrap(),
            destination: CARE_OF[agent].parse().unwrap(),
            octets,
            at: Duration::ZERO,
        }
    }

    fn due(copies: &mut Copies, now: Instant) -> Vec<(usize, u8)> {
        std::iter::from_fn(|| copies.due(now))
            .map(|(agent, packet)| (agent, packet[20]))
            .collect()
    }

    #[test]
    fn what_passes_after_a_move_is_shown_to_who_was_left_and_to_nobody_else() {
        let start = Instant::now();
        let mut copies = Copies::new(Duration::ZERO);
        copies.note(&packet(0, 1), start);
        assert_eq!(due(&mut copies, start + HOLD), []);
        copies.note(&packet(1, 2), start + HOLD);
        assert_eq!(due(&mut copies, start + HOLD), []);
        assert_eq!(due(&mut copies, start + 2 * HOLD), [(0, 2)]);
        copies.note(&packet(2, 3), start + 2 * HOLD);
        assert_eq!(due(&mut copies, start + 3 * HOLD), [(0, 3), (1, 3)]);
    }

    #[test]
    fn what_passes_while_the_old_keys_may_be_used_is_not() {
        let start = Instant::now();
        let allowance = Duration::from_secs(2);
        let mut copies = Copies::new(allowance);
        copies.note(&packet(0, 1), start);
        copies.note(&packet(1, 2), start);
        copies.note(&packet(1, 3), start + allowance);
        assert_eq!(due(&mut copies, start + allowance + HOLD), [(0, 3)]);
    }

    #[test]
    fn what_is_in_no_tunnel_says_nothing() {
        let mut other = packet(0, 1);
        other.octets[9] = 17;
        assert_eq!(tunnelled_to(&other), None);
        assert_eq!(tunnelled_to(&packet(2, 1)), Some(2));
    }
}
