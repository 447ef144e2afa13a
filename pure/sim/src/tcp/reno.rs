//! Reno's congestion window, in segments: slow start and congestion avoidance (RFC 5681 section
//! 3.1) counted by acknowledged segments (RFC 3465), and proportional rate reduction while a loss
//! is repaired (RFC 6937), all as Linux does it.

/// "Arbitrarily high" (RFC 5681 section 3.1).
const NO_THRESHOLD: u32 = u32::MAX;

/// The congestion window and the state that changes it.
#[derive(Clone, Debug)]
pub(super) struct Reno {
    pub window: u32,
    threshold: u32,
    /// Segments acknowledged towards the next increase in congestion avoidance.
    credit: u32,
    reduction: Reduction,
}

/// Proportional rate reduction since recovery began.
#[derive(Clone, Copy, Debug, Default)]
struct Reduction {
    /// Window before the reduction.
    prior: u32,
    delivered: u32,
    sent: u32,
}

impl Reno {
    pub const fn new(initial: u32) -> Self {
        Self {
            window: initial,
            threshold: NO_THRESHOLD,
            credit: 0,
            reduction: Reduction {
                prior: 0,
                delivered: 0,
                sent: 0,
            },
        }
    }

    /// Returns the slow start threshold, if there is one.
    pub fn threshold(&self) -> Option<u32> {
        (self.threshold != NO_THRESHOLD).then_some(self.threshold)
    }

    pub const fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Increases the window after an acknowledgement without loss, while the window was in use.
    pub fn grow(&mut self, acknowledged: u32) {
        let mut left = acknowledged;
        if self.in_slow_start() {
            let grown = self.window.saturating_add(left).min(self.threshold);
            left -= grown - self.window;
            self.window = grown;
        }
        if left == 0 {
            return;
        }
        if self.credit >= self.window {
            self.credit = 0;
            self.window += 1;
        }
        self.credit += left;
        if self.credit >= self.window {
            let more = self.credit / self.window;
            self.credit -= more * self.window;
            self.window += more;
        }
    }

    /// Halves the threshold after a loss (RFC 5681 equation 4; Linux halves the window instead of
    /// the flight size).
    pub fn halve(&mut self) {
        self.threshold = (self.window / 2).max(2);
    }

    /// Starts recovery: the window shrinks to the threshold while segments arrive.
    pub fn begin_reduction(&mut self) {
        self.halve();
        self.credit = 0;
        self.reduction = Reduction {
            prior: self.window.max(1),
            ..Reduction::default()
        };
    }

    /// Handles an acknowledgement in recovery of `delivered` segments. `in_flight` is the number
    /// left. `progress` is true if it acknowledged new data without showing a new loss.
    pub fn reduce(&mut self, delivered: u32, in_flight: u32, progress: bool) {
        if delivered == 0 {
            return;
        }
        let prr = &mut self.reduction;
        prr.delivered += delivered;
        let allowed = if in_flight > self.threshold {
            let share = u64::from(self.threshold) * u64::from(prr.delivered);
            let share = share.div_ceil(u64::from(prr.prior)) as u32;
            share.saturating_sub(prr.sent)
        } else {
            let owed = prr.delivered.saturating_sub(prr.sent).max(delivered);
            (owed + u32::from(progress)).min(self.threshold - in_flight)
        };
        // The first retransmission leaves immediately.
        let allowed = allowed.max(u32::from(prr.sent == 0));
        self.window = in_flight + allowed;
    }

    /// Counts a segment sent in recovery.
    pub fn note_sent(&mut self) {
        self.reduction.sent += 1;
    }

    /// Ends recovery (RFC 6582 section 3.2 step 3, full acknowledgements).
    pub fn end_reduction(&mut self) {
        self.window = self.threshold;
    }

    /// Reduces the window to one segment after the retransmission timer expired.
    pub fn collapse(&mut self) {
        self.window = 1;
        self.credit = 0;
    }

    /// Returns the state that [`Reno::undo`] restores.
    pub const fn before(&self) -> (u32, u32) {
        (self.window, self.threshold)
    }

    /// Reverts a reduction that was a mistake (RFC 4015 section 3.2).
    pub fn undo(&mut self, (window, threshold): (u32, u32)) {
        self.window = self.window.max(window);
        self.threshold = self.threshold.max(threshold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_grows_by_what_is_acknowledged_up_to_the_threshold() {
        let mut reno = Reno::new(10);
        reno.grow(10);
        assert_eq!(reno.window, 20);
        reno.threshold = 25;
        reno.grow(10);
        assert_eq!(reno.window, 25, "the rest is credit");
        reno.grow(20);
        assert_eq!(reno.window, 26);
    }

    #[test]
    fn congestion_avoidance_adds_one_segment_per_window() {
        let mut reno = Reno::new(10);
        reno.threshold = 10;
        let mut acknowledged: u32 = 0;
        while reno.window < 20 {
            reno.grow(2);
            acknowledged += 2;
        }
        let sum: u32 = (10..20).sum();
        assert!(acknowledged.abs_diff(sum) <= 20, "{acknowledged}");
    }

    #[test]
    fn recovery_sends_half_of_what_arrives_and_ends_at_half_the_window() {
        let mut reno = Reno::new(20);
        reno.begin_reduction();
        // 20 segments are in flight, 1 is lost and 3 have arrived.
        let (mut in_flight, mut sent) = (16, 0);
        reno.reduce(1, in_flight, false);
        assert_eq!(reno.window, in_flight + 1, "the retransmission");
        for _ in 0..16 {
            while in_flight < reno.window {
                in_flight += 1;
                sent += 1;
                reno.note_sent();
            }
            in_flight -= 1;
            reno.reduce(1, in_flight, false);
        }
        assert!((8..=10).contains(&sent), "{sent}");
        reno.end_reduction();
        assert_eq!((reno.window, reno.threshold), (10, 10));
    }

    #[test]
    fn the_threshold_never_falls_below_two_segments() {
        let mut reno = Reno::new(1);
        reno.halve();
        assert_eq!(reno.threshold, 2);
        reno.collapse();
        assert_eq!(reno.window, 1);
    }
}
