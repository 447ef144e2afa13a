//! What a stage is to have: programs, protection and distance.

use super::contender::Contender;
use super::protection::Protection;
use std::time::Duration;

/// Programs and network of a stage.
#[derive(Clone, Copy, Debug)]
pub(in crate::figures) struct Terms {
    pub contender: Contender,
    pub protection: Protection,
    /// Round trip between mobile node and gateway.
    pub round_trip: Duration,
    /// Lines in Strata's tables of both peers.
    pub more: &'static str,
    /// Time after a change that is recorded at least.
    pub recorded: Duration,
}
