//! Parts that the tables of hand-over share: the hosts in one process, and a move between them.

pub(super) mod parties;
pub(super) mod stage;

use anyhow::{Context, Result, ensure};
use node::Handover;
use parties::{FAR, GATEWAY, MOBILE, NEAR, Tunnel};
use stage::{Stage, Timed, Work};
use std::time::Duration;
use world::Hosts;

/// Time for immediate messages; later timers do not count.
const MOMENT: Duration = Duration::from_millis(100);

/// Time until agents are heard, and until a mobile node may register again.
const WHILE: Duration = Duration::from_secs(3);

/// Creates hosts with an established tunnel through the first agent.
pub(super) fn connected(tunnel: Tunnel, seed: u64) -> Result<Stage> {
    let mut stage = Stage::new(tunnel, seed);
    stage.run_for(WHILE);
    stage.forget();
    stage.command(MOBILE, |node, now| node.up(GATEWAY, now))?;
    stage.run_for(MOMENT);
    Ok(stage)
}

/// Work of a move.
pub(super) struct Move {
    /// All work of all hosts.
    pub work: Vec<Timed>,
    /// Amount of work until the mobile node learns that it is registered.
    pub registered: usize,
    /// Amount of work until both ends seal for the new agent.
    pub sealed: usize,
    /// Amount of work until that agent first gets keys, if it had none before.
    pub held: Option<usize>,
}

impl Move {
    /// Returns the amount of work that the hand-over has to wait for. With push, that is the
    /// registration; with PKD, the switch to keys that were distributed in advance; with DKM, the
    /// arrival of the fetched keys.
    pub fn waits(&self, handover: Handover) -> Result<usize> {
        match handover {
            Handover::Push => Ok(self.registered),
            Handover::Pkd => Ok(self.sealed),
            Handover::Dkm => self.held.context("the agent never had keys"),
        }
    }
}

/// Moves the mobile node from the first agent to the second.
pub(super) fn hand_over(handover: Handover, seed: u64) -> Result<Move> {
    let mut stage = connected(Tunnel::Zoned(handover), seed)?;
    let first = stage.sealed_for(NEAR).is_some();
    ensure!(first, "no slot for the first: {:?}", stage.events);
    stage.set_link(1, true);
    stage.run_for(WHILE);
    stage.forget();
    stage.set_link(0, false);
    stage.run_for(MOMENT);
    let sealed = stage.sealed_for(FAR);
    let sealed = sealed.with_context(|| format!("no hand-over: {:?}", stage.events))?;
    let answered = |timed: &Timed| (timed.who, timed.work) == (MOBILE, Work::Registration);
    let registered = stage.work.iter().position(answered);
    Ok(Move {
        registered: registered.context("it is not registered")?,
        sealed,
        held: stage.held_by(FAR),
        work: stage.work,
    })
}

/// Counts the IKE messages received in this work.
pub(super) fn messages(work: &[Timed]) -> usize {
    let is_message = |timed: &&Timed| matches!(timed.work, Work::Request(..) | Work::Answer(..));
    work.iter().filter(is_message).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ike::ExchangeType;

    /// Both ends change the SPI when they learn of the registration, without further messages.
    #[test]
    fn with_keys_that_are_there_a_move_takes_no_message_beside_its_registration() {
        let done = hand_over(Handover::Pkd, 1).unwrap();
        assert_eq!(
            (
                messages(&done.work[..done.sealed]),
                messages(&done.work[..done.registered])
            ),
            (0, 0)
        );
    }

    /// Meanwhile packets continue in the slot of the previous agent.
    #[test]
    fn with_dkm_the_agent_has_keys_after_one_round_trip_to_the_agent_before() {
        let done = hand_over(Handover::Dkm, 1).unwrap();
        let waits = done.waits(Handover::Dkm).unwrap();
        let asked: Vec<_> = done.work[..waits]
            .iter()
            .map(|timed| (timed.who, timed.work))
            .filter(|(_, work)| *work != Work::Registration && *work != Work::Begun)
            .collect();
        let wanted = [
            (NEAR, Work::Request(ExchangeType::KEY_REQUEST, FAR)),
            (FAR, Work::Answer(ExchangeType::KEY_REQUEST, NEAR)),
        ];
        assert_eq!(asked, wanted);
    }

    /// The messages follow the registration: a slot, its keys for the node, and the mobile node's
    /// answer.
    #[test]
    fn with_push_no_message_comes_before_the_registration_is_answered() {
        let done = hand_over(Handover::Push, 1).unwrap();
        assert_eq!(
            (
                messages(&done.work[..done.sealed]),
                messages(&done.work[..done.registered])
            ),
            (5, 0)
        );
    }
}
