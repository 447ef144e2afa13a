//! Packets of SAs without encryption, of which a peer's SAs may carry a number all together.

use crate::bench::*;
use crate::datagram::segment;
use esp::{DropReason, Report, Worker};
use model::{Allowance, ChildSa, EspSuite, Sha2};

const NULL: Kind = Kind::Plain {
    suite: EspSuite::Null(Sha2::Sha256),
    implicit_iv: false,
    esn: false,
};

fn allowing<K>(sa: ChildSa<K>, allowance: &Allowance) -> ChildSa<K> {
    ChildSa {
        allowance: Some(allowance.clone()),
        ..sa
    }
}

fn reports(worker: &mut Worker) -> Vec<Report> {
    std::iter::from_fn(|| worker.poll_report()).collect()
}

/// Invariant 6: an end limits what it sends, whatever the other accepts, and tells control once.
#[test]
fn what_is_left_is_sent_and_no_more() {
    let packets = Allowance::new(20);
    let mut alice = endpoint(allowing(alices_sa(&NULL), &packets));
    let mut bob = endpoint(bobs_sa(&NULL));
    for number in 1..=40 {
        let sealed = seal(&mut alice, &segment());
        let low = [Report::ClearLow(BOB)];
        let told = if number == 18 { &low[..] } else { &[] };
        assert_eq!(reports(&mut alice), told, "{number}");
        match number <= 20 {
            true => assert_eq!(open(&mut bob, &sealed.unwrap()), Ok(segment())),
            false => assert_eq!(sealed, Err(DropReason::ClearSpent)),
        }
    }
}

/// Invariant 6: an end limits what it accepts, whatever the other sends. Packets that are not
/// authentic or come twice use nothing.
// Refuses: unencrypted
#[test]
fn what_is_left_is_accepted_and_no_more() {
    let packets = Allowance::new(20);
    let mut alice = endpoint(alices_sa(&NULL));
    let mut bob = endpoint(allowing(bobs_sa(&NULL), &packets));
    for number in 1..=40 {
        let packet = seal(&mut alice, &segment()).unwrap();
        let mut forged = packet.clone();
        forged[20] ^= 1;
        assert_eq!(open(&mut bob, &forged), Err(DropReason::BadIcv));
        let opened = open(&mut bob, &packet);
        assert_eq!(open(&mut bob, &packet), Err(DropReason::Replayed));
        match number <= 20 {
            true => assert_eq!(opened, Ok(segment())),
            false => assert_eq!(opened, Err(DropReason::ClearSpent)),
        }
    }
    let low = Report::ClearLow(ALICE);
    assert_eq!(
        reports(&mut bob).iter().filter(|one| **one == low).count(),
        1
    );
}

/// A successor and the other tunnels of the peer go on counting, in both directions together.
#[test]
fn all_sas_of_a_peer_use_the_same_packets() {
    let packets = Allowance::new(20);
    let mut sender = endpoint(alices_sa(&NULL));
    for successor in 0..15 {
        let mut alice = endpoint(allowing(alices_sa(&NULL), &packets));
        let mut bob = endpoint(allowing(bobs_sa(&NULL), &packets));
        let packet = seal(&mut sender, &segment()).unwrap();
        let sealed = seal(&mut alice, &segment()).is_ok();
        let opened = open(&mut bob, &packet).is_ok();
        assert_eq!([sealed, opened], [successor < 10; 2], "{successor}");
    }
}
