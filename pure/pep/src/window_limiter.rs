//! Regulation of acknowledgements.
//!
//! Receivers advertise a window that a sender may fill at once, and a hop with a small queue then
//! drops packets. A licensed node lowers the window to the hop's capacity.
//!
//! [`WindowLimiter`] changes no segment: it returns the window that a segment should have, and the
//! caller applies it. Windows are only lowered, and never to zero. For a connection seen from its
//! beginning the right edge never moves back, because acknowledgements do not (RFC 9293 section
//! 3.8.6 asks receivers not to shrink a window).
//!
//! Only the SYN segments define the scale of a window (RFC 7323 section 2.3). Connections whose
//! beginning was not seen are left alone.

use crate::lines::Lines;
use crate::{Line, Segment};
use model::Instant;
use std::net::IpAddr;
use wire::tcp::{Flags, OptionValue};

/// Most connections in the table; at the limit the gateway with the most gives way.
const FLOWS: usize = 4096;
/// Largest window shift; a larger one counts as this one (RFC 7323 section 2.3).
const MAX_SHIFT: u8 = 14;

/// Regulates the connections of any number of composite SAs, in both directions.
#[derive(Debug)]
pub struct WindowLimiter {
    window: u32,
    flows: Lines<Ends, Flow>,
    unscaled: u64,
}

/// The two ends of a connection, in the same order for both directions.
type Ends = [(IpAddr, u16); 2];

/// Window shifts from the SYN segments. For each end: `None` if its SYN was not seen, `Some(None)`
/// if it does not scale.
#[derive(Clone, Copy, Debug)]
struct Flow {
    shifts: [Option<Option<u8>>; 2],
    used: Instant,
}

impl WindowLimiter {
    /// Returns a window limiter that limits windows to `window` octets.
    pub const fn new(window: u32) -> Self {
        Self {
            window,
            flows: Lines::new(),
            unscaled: 0,
        }
    }

    /// Sets the limit for windows, in octets. A lower limit moves right edges back once.
    pub const fn set_window(&mut self, window: u32) {
        self.window = window;
    }

    /// Forgets all connections of a line of composite SAs.
    pub fn forget(&mut self, line: Line) {
        self.flows.remove_line(Some(line));
    }

    /// Returns the number of segments whose window scale was unknown.
    pub const fn unscaled(&self) -> u64 {
        self.unscaled
    }

    /// Returns the lower window for a segment, in units of its header field, or `None` to leave it
    /// alone.
    pub fn handle_segment(&mut self, segment: &Segment<'_>, now: Instant) -> Option<u16> {
        let (ends, end) = ends(segment);
        let flags = segment.header.flags;
        if !segment.fresh || flags.contains(Flags::RST) {
            return None;
        }
        let shift = if flags.contains(Flags::SYN) {
            self.note(ends, end, segment, now);
            // "The window field in a segment where the SYN bit is set MUST NOT be scaled."
            0
        } else {
            let flow = self.flows.get_mut(segment.line, &ends);
            let shift = flow.and_then(|flow| flow.shift(end, now));
            self.unscaled += u64::from(shift.is_none());
            shift?
        };
        let lowered = (self.window >> shift).clamp(1, u16::MAX.into()) as u16;
        (lowered < segment.header.window).then_some(lowered)
    }

    fn note(&mut self, ends: Ends, end: usize, segment: &Segment<'_>, now: Instant) {
        let mut options = segment.header.options().map_while(Result::ok);
        let shift = options.find_map(|option| match option.value {
            OptionValue::WindowScale(shift) => Some(shift.min(MAX_SHIFT)),
            _ => None,
        });
        let line = segment.line;
        if let Some(flow) = self.flows.get_mut(line, &ends) {
            (flow.shifts[end], flow.used) = (Some(shift), now);
            return;
        }
        for (line, ends) in self.flows.crowded_out(FLOWS, |flow| flow.used) {
            self.flows.remove(line, &ends);
        }
        let mut begun = Flow {
            shifts: [None; 2],
            used: now,
        };
        begun.shifts[end] = Some(shift);
        self.flows.insert(line, ends, begun);
    }
}

impl Flow {
    /// Returns the window shift of one end. Scaling is in use only if both ends have announced it
    /// (RFC 7323 section 2.2).
    fn shift(&mut self, end: usize, now: Instant) -> Option<u8> {
        self.used = now;
        match (self.shifts[end], self.shifts[1 - end]) {
            (Some(None), _) | (_, Some(None)) => Some(0),
            (Some(own), Some(Some(_))) => own,
            _ => None,
        }
    }
}

/// Returns the connection of a segment and the index of its sender.
fn ends(segment: &Segment<'_>) -> (Ends, usize) {
    let flow = segment.flow;
    let (from, to) = (
        (flow.source, flow.source_port),
        (flow.destination, flow.destination_port),
    );
    ([from.min(to), from.max(to)], usize::from(from > to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Owner;
    use model::CsaId;
    use wire::tcp::Header;

    /// Returns a segment from the client or the server.
    fn segment(client: bool, flags: Flags, window: u16, options: &[u8]) -> (model::Flow, Vec<u8>) {
        let mut tcp = vec![0; 20];
        tcp[12] = (5 + options.len() as u8 / 4) << 4;
        tcp[13] = flags.0;
        tcp[14..16].copy_from_slice(&window.to_be_bytes());
        tcp.extend(options);
        let ends = [([10, 0, 0, 9].into(), PORT), ([10, 0, 0, 2].into(), 80)];
        let [from, to] = if client { ends } else { [ends[1], ends[0]] };
        let flow = model::Flow {
            source: from.0,
            destination: to.0,
            protocol: wire::tcp::PROTOCOL,
            source_port: from.1,
            destination_port: to.1,
            ports_visible: true,
        };
        (flow, tcp)
    }

    const PORT: u16 = 40_000;

    /// A window limiter and the client's port of the segments.
    struct Bench(WindowLimiter, u16);

    impl Bench {
        fn say(&mut self, client: bool, flags: Flags, window: u16, options: &[u8]) -> Option<u16> {
            self.on(line(1, 1), client, flags, (window, options))
        }

        fn on(
            &mut self,
            line: Option<Line>,
            client: bool,
            flags: Flags,
            (window, options): (u16, &[u8]),
        ) -> Option<u16> {
            let (mut flow, tcp) = segment(client, flags, window, options);
            match client {
                true => flow.source_port = self.1,
                false => flow.destination_port = self.1,
            }
            let segment = Segment {
                line,
                flow,
                header: Header::parse(&tcp).unwrap(),
                hides: false,
                payload_len: 0,
                sealed: &[],
                fresh: true,
                position: None,
            };
            self.0.handle_segment(&segment, Instant::ZERO)
        }

        fn ack(&mut self, client: bool, window: u16) -> Option<u16> {
            self.say(client, Flags::ACK, window, &[])
        }
    }

    fn line(owner: u64, csa: u64) -> Option<Line> {
        Some(Line {
            owner: Owner(owner),
            csa: CsaId(csa),
        })
    }

    const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);

    fn scale(shift: u8) -> [u8; 4] {
        [3, 3, shift, 0]
    }

    /// Returns a connection with shift 7 at the client and shift 2 at the server.
    fn begun(window: u32) -> Bench {
        let mut bench = Bench(WindowLimiter::new(window), PORT);
        assert_eq!(bench.say(true, Flags::SYN, 1000, &scale(7)), None);
        assert_eq!(bench.say(false, SYN_ACK, 1000, &scale(2)), None);
        bench
    }

    #[test]
    fn a_window_is_lowered_in_the_units_of_who_advertises_it() {
        let mut bench = begun(1 << 16);
        assert_eq!(bench.ack(true, 600), Some(512));
        assert_eq!(bench.ack(false, 20_000), Some(1 << 14));
    }

    #[test]
    fn a_window_that_is_low_enough_is_left_alone() {
        let mut bench = begun(1 << 16);
        for window in [0, 1, 512] {
            assert_eq!(bench.ack(true, window), None);
        }
    }

    /// RFC 7323 section 2.2: the window of a SYN is never scaled.
    #[test]
    fn the_window_of_a_segment_that_begins_a_connection_is_not_scaled() {
        let mut bench = Bench(WindowLimiter::new(1 << 14), PORT);
        let lowered = bench.say(true, Flags::SYN, 65_535, &scale(7));
        assert_eq!(lowered, Some(1 << 14));
    }

    #[test]
    fn nobody_scales_where_one_end_does_not() {
        for silent in [true, false] {
            let mut bench = Bench(WindowLimiter::new(1 << 14), PORT);
            let options = |client: bool| {
                if client == silent {
                    vec![]
                } else {
                    scale(7).to_vec()
                }
            };
            bench.say(true, Flags::SYN, 1000, &options(true));
            bench.say(false, SYN_ACK, 1000, &options(false));
            assert_eq!(bench.ack(true, 65_535), Some(1 << 14));
            assert_eq!(bench.ack(false, 65_535), Some(1 << 14));
        }
    }

    #[test]
    fn without_both_beginnings_a_window_means_nothing_and_is_left_alone() {
        let mut bench = Bench(WindowLimiter::new(1 << 14), PORT);
        assert_eq!(bench.ack(true, 65_535), None);
        bench.say(true, Flags::SYN, 1000, &scale(7));
        assert_eq!(bench.ack(true, 65_535), None);
        assert_eq!(bench.0.unscaled(), 2);
    }

    #[test]
    fn a_shift_beyond_fourteen_is_fourteen_and_no_window_becomes_zero() {
        let mut bench = Bench(WindowLimiter::new(1 << 13), PORT);
        bench.say(true, Flags::SYN, 1000, &scale(255));
        bench.say(false, SYN_ACK, 1000, &scale(14));
        assert_eq!(bench.ack(true, 65_535), Some(1));
    }

    #[test]
    fn a_connection_belongs_to_its_line() {
        let mut bench = begun(1 << 14);
        let other = bench.on(line(1, 2), true, Flags::ACK, (65_535, &[]));
        assert_eq!((other, bench.0.unscaled()), (None, 1));
        bench.0.forget(line(1, 1).unwrap());
        assert_eq!(bench.ack(true, 65_535), None);
    }

    // Weakness: 109
    #[test]
    fn memory_is_bounded_and_one_line_pushes_out_no_other() {
        let mut bench = begun(1 << 14);
        for port in 0..2 * FLOWS as u16 {
            bench.1 = port;
            bench.on(line(1, 2), true, Flags::SYN, (1000, &scale(7)));
        }
        assert!(bench.0.flows.iter().count() <= FLOWS);
        bench.1 = PORT;
        assert_eq!(bench.ack(true, 65_535), Some(128));
    }

    /// Negative control: with one owner, the largest line gives way.
    // Weakness: 174
    #[test]
    fn a_gateway_of_many_lines_pushes_out_no_connection_of_another_gateway() {
        for (owner, keeps) in [(1, true), (2, false)] {
            let mut bench = Bench(WindowLimiter::new(1 << 14), 0);
            let honest = line(owner, 1);
            let mut begin = |line, port| {
                bench.1 = port;
                bench.on(line, true, Flags::SYN, (1000, &scale(7)));
                bench.on(line, false, SYN_ACK, (1000, &scale(2)));
            };
            (0..32).for_each(|port| begin(honest, port));
            for port in 0..64 {
                (2..258).for_each(|csa| begin(line(2, csa), port));
            }
            assert!(bench.0.flows.iter().count() <= FLOWS);
            let of_honest = bench.0.flows.in_line(honest).count();
            assert_eq!(of_honest == 32, keeps, "{of_honest}");
        }
    }
}
