//! Packets that are sent together, with one system call.

use crate::MOST_AT_ONCE;
use model::{Df, Path};

/// Most octets of UDP over IPv4, and so of a run.
const LONGEST: usize = 65_507;

/// The path of packets, the traffic class of their outer header, and their treatment of
/// fragmentation.
pub type Destination = (Path, (u8, Df));

/// Packets of one length for one destination; the last may be shorter.
#[derive(Debug, Default)]
pub struct Run {
    destination: Option<Destination>,
    length: usize,
    octets: Vec<u8>,
}

impl Run {
    /// Adds a packet, unless it cannot be sent with the present ones.
    pub fn take(&mut self, destination: Destination, packet: &[u8]) -> bool {
        match self.destination {
            None => {
                self.destination = Some(destination);
                self.length = packet.len();
            }
            Some(_) if !self.has_room(destination, packet.len()) => return false,
            Some(_) => {}
        }
        self.octets.extend_from_slice(packet);
        true
    }

    fn has_room(&self, destination: Destination, length: usize) -> bool {
        let is_open = self.octets.len().is_multiple_of(self.length.max(1));
        is_open
            && self.destination == Some(destination)
            && (1..=self.length).contains(&length)
            && self.octets.len() + length <= LONGEST
            && self.octets.len() < MOST_AT_ONCE * self.length
    }

    /// Returns the destination of the packets, if there are any.
    pub const fn destination(&self) -> Option<Destination> {
        self.destination
    }

    /// Returns all octets, one packet after the other, and the length of each but the last; `None`
    /// if there are fewer than two packets.
    pub fn together(&self) -> Option<(u16, &[u8])> {
        let length = u16::try_from(self.length).ok()?;
        (self.octets.len() > self.length).then_some((length, &self.octets))
    }

    /// Returns each packet by itself.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        self.octets.chunks(self.length.max(1))
    }

    /// Removes all packets, and keeps their buffer.
    pub fn clear(&mut self) {
        self.destination = None;
        self.octets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn to(last: u8, class: u8) -> Destination {
        let end = |last| SocketAddr::from(([192, 0, 2, last], 4500));
        (Path::udp(end(1), end(last)), (class, Df::Clear))
    }

    fn lengths(run: &Run) -> Vec<usize> {
        run.packets().map(<[u8]>::len).collect()
    }

    #[test]
    fn packets_of_one_length_leave_together_and_a_shorter_one_is_the_last() {
        let mut run = Run::default();
        assert!(run.together().is_none());
        assert!(run.take(to(2, 0), &[1; 100]));
        assert!(run.together().is_none(), "one needs no company");
        assert!(run.take(to(2, 0), &[2; 100]));
        assert!(!run.take(to(2, 0), &[3; 101]));
        assert!(run.take(to(2, 0), &[3; 99]));
        assert!(!run.take(to(2, 0), &[4; 99]));
        assert!(!run.take(to(2, 0), &[4; 100]));
        assert_eq!(lengths(&run), [100, 100, 99]);
        assert_eq!(run.together().unwrap(), (100, &run.octets[..]));
        run.clear();
        assert!(lengths(&run).is_empty());
        assert!(run.take(to(2, 0), &[4; 300]));
    }

    #[test]
    fn what_goes_elsewhere_or_in_another_class_does_not_leave_with_them() {
        let mut run = Run::default();
        assert!(run.take(to(2, 0), &[1; 100]));
        assert!(!run.take(to(3, 0), &[2; 100]));
        assert!(!run.take(to(2, 1), &[2; 100]));
        let whole = (to(2, 0).0, (0, Df::Set));
        assert!(!run.take(whole, &[2; 100]));
    }

    #[test]
    fn a_run_is_no_longer_than_the_kernel_takes() {
        for length in [1, 70, 1400, 30_000, 65_507] {
            let mut run = Run::default();
            while run.take(to(2, 0), &vec![0; length]) {}
            let expected = (LONGEST / length).min(MOST_AT_ONCE);
            assert_eq!(lengths(&run), vec![length; expected]);
        }
    }
}
