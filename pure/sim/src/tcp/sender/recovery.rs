//! Reactions of the sender to acknowledgements and timeouts: detection and repair of losses, and
//! reversal of spurious reductions.

use super::super::flight::{self, PROOF};
use super::{Sender, State, Trial};
use model::Instant;

impl Sender {
    /// Changes the state after an acknowledgement. Returns the number of additional segments that
    /// it proved to have arrived, which duplicates stand for.
    pub(super) fn judge(&mut self, advanced: bool, duplicate: bool, echo: Option<Instant>) -> u32 {
        if self.state == State::Open {
            self.first_again = None;
        } else if self.state == State::Recovery && self.acknowledged >= self.high {
            if !self.sack {
                self.flight.forget_duplicates();
            }
            self.try_undo(echo, false);
            if self.must_hold() {
                return 0;
            }
            self.state = State::Open;
            if self.undo.take().is_some() {
                self.reno.end_reduction();
            }
        }
        match self.state {
            State::Recovery => {
                // While a retransmitted segment is in transit, it is too early to decide.
                if advanced && self.was_early(echo) {
                    if !self.flight.has_again() && self.try_undo(echo, true) {
                        self.reopen();
                    }
                    return 0;
                }
                let arrived = if duplicate { self.count_duplicate() } else { 0 };
                self.find_losses(advanced);
                arrived
            }
            State::Loss(trial) => self.judge_timeout(trial, advanced, duplicate, echo),
            State::Open | State::Disorder => self.look_for_losses(advanced, duplicate),
        }
    }

    fn look_for_losses(&mut self, advanced: bool, duplicate: bool) -> u32 {
        if advanced && !self.sack {
            self.flight.forget_duplicates();
        }
        let arrived = if duplicate { self.count_duplicate() } else { 0 };
        self.find_losses(false);
        if self.flight.has_lost() {
            self.enter_recovery();
        } else {
            self.reopen();
        }
        arrived
    }

    /// Handles an acknowledgement in the loss state.
    fn judge_timeout(
        &mut self,
        trial: Trial,
        advanced: bool,
        duplicate: bool,
        echo: Option<Instant>,
    ) -> u32 {
        if advanced && self.try_undo(echo, true) {
            self.reopen();
            return 0;
        }
        let recovered = self.acknowledged >= self.high;
        match trial {
            Trial::Waiting if advanced && !recovered => {
                self.high = self.next;
                if self.written > self.next && self.right >= self.next + self.mss {
                    self.state = State::Loss(Trial::NewFirst);
                    return 0;
                }
                self.state = State::Loss(Trial::Over);
            }
            Trial::NewFirst if duplicate => self.state = State::Loss(Trial::Over),
            Trial::Over | Trial::Waiting | Trial::NewFirst => {}
        }
        if recovered && !self.must_hold() {
            self.undo = None;
            self.state = State::Open;
            return self.look_for_losses(advanced, duplicate);
        }
        if self.sack {
            self.flight.lose_overtaken();
        } else if advanced {
            self.flight.forget_duplicates();
        } else if self.next > self.high && duplicate {
            return self.count_duplicate();
        }
        0
    }

    /// Returns true while later acknowledgements are awaited. Without SACK, an acknowledgement of
    /// exactly all sent data may be followed by meaningless duplicates (RFC 6582 section 4.1).
    fn must_hold(&self) -> bool {
        !self.sack && self.acknowledged == self.high && !self.flight.is_empty()
    }

    fn count_duplicate(&mut self) -> u32 {
        match self.sack {
            true => 0,
            false => u32::from(self.flight.note_duplicate()),
        }
    }

    fn find_losses(&mut self, advanced: bool) {
        let recovering = self.state == State::Recovery;
        let proved = self.flight.arrived() >= PROOF;
        if self.sack && (recovering || proved) {
            self.flight.lose_overtaken();
        } else if !self.sack && (if recovering { advanced } else { proved }) {
            self.flight.lose_first();
        }
    }

    fn enter_recovery(&mut self) {
        self.counters.recoveries += 1;
        self.remember();
        self.reno.begin_reduction();
        self.high = self.next;
        self.state = State::Recovery;
    }

    pub(super) fn enter_loss(&mut self) {
        self.counters.timeouts += 1;
        let calm = matches!(self.state, State::Open | State::Disorder);
        let progressed = matches!(self.state, State::Loss(_)) && self.in_row == 0;
        // The threshold is halved once for each window of losses.
        if calm || progressed || self.acknowledged >= self.high {
            self.remember();
            self.reno.halve();
        }
        self.flight.lose_all();
        self.reno.collapse();
        let trial = match calm || self.in_row > 0 {
            true => Trial::Waiting,
            false => Trial::Over,
        };
        self.in_row += 1;
        self.state = State::Loss(trial);
        self.high = self.next;
    }

    fn remember(&mut self) {
        self.undo = Some(self.reno.before());
    }

    /// Returns true if an acknowledgement answers a segment from before the first retransmission.
    fn was_early(&self, echo: Option<Instant>) -> bool {
        let early = match (echo, self.first_again) {
            (Some(echo), Some(again)) => flight::is_before(echo, again),
            (_, None) => true,
            (None, Some(_)) => false,
        };
        early && self.undo.is_some()
    }

    /// Reverts a reduction that was made too early. `find` reverts the losses of segments as well.
    fn try_undo(&mut self, echo: Option<Instant>, find: bool) -> bool {
        let Some(undo) = self.undo.filter(|_| self.was_early(echo)) else {
            return false;
        };
        self.undo = None;
        self.reno.undo(undo);
        self.counters.undone += 1;
        if find {
            self.flight.find_all();
        }
        true
    }

    fn reopen(&mut self) {
        let calm = self.flight.arrived() == 0 && !self.flight.has_again();
        let state = if calm { State::Open } else { State::Disorder };
        if self.state != state {
            self.state = state;
            self.high = self.next;
        }
    }
}
