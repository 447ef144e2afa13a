//! SAs that end while a request is outstanding.

use super::pair::{Pair, Side};
use super::*;
use crate::DownReason;
use std::time::Duration;

/// The left host's liveness check is lost, and the right host deletes the SA at that moment.
#[test]
fn a_question_under_way_ends_with_the_sa_that_the_peer_deletes() {
    let (mut left, right) = (mobile(), gateway());
    left.peers[0].liveness = Duration::from_secs(30);
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair.run_for(Duration::from_secs(30));
    assert_eq!(pair.intercept().len(), 1, "the question");
    pair.with(Side::Right, |engine, now| engine.shutdown(now));
    pair.settle();
    assert_eq!(pair.left.down_reasons(), [&DownReason::ClosedByPeer]);
    assert_eq!(pair.right.engine.sas().count(), 0);
    let sent = pair.sent.len();
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.sent.len(), sent, "a dead SA asks nothing");
    assert_eq!(pair.left.engine.poll_timeout(), None);
}
