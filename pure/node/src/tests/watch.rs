//! The states of peers and grants, observed while a world runs. Every test with a world is checked
//! against the pages that `states` writes.

use crate::Node;
use model::{CsaId, PeerId};
use pages::Machine;
use std::collections::BTreeMap;

pub const PEER: (&str, &str) = (
    "states/peer.md",
    "# A peer\n\n\
     What `strata status` shows of each configured peer: whether there is an IKE SA with it. A peer \
     that is wanted and has an address is tried again after each failure or refusal, with pauses of \
     one second to one minute.\n\n\
     | state | meaning |\n|---|---|\n\
     | Down | there is no IKE SA |\n\
     | Connecting | we began one |\n\
     | Up | both ends proved who they are |\n\n",
);

pub const GRANT: (&str, &str) = (
    "states/grant.md",
    "# A grant\n\n\
     What a gateway knows of each licensed node and composite SA that it owes keys. A grant that \
     was lost with the node's IKE SA is owed again, under a fresh number.\n\n\
     | state | meaning |\n|---|---|\n\
     | Pending | it waits for the IKE SA with the node |\n\
     | Sent | it left, or waits to be recorded, and is not answered |\n\
     | Held | the node acknowledged the keys |\n\
     | Refused | the node refused, there is nothing it could be given, or it could not be recorded |\n\n",
);

/// The last observed state of each host, and every change since the start.
#[derive(Default)]
pub struct Watch {
    pub peers: Machine,
    pub grants: Machine,
    /// True to stop observing, because a test manipulates hosts directly.
    pub over: bool,
    seen: [Seen; 3],
}

#[derive(Default)]
struct Seen {
    peers: BTreeMap<String, String>,
    grants: BTreeMap<(CsaId, PeerId), String>,
}

impl Watch {
    /// Observes a host after an operation.
    pub fn look(&mut self, who: usize, node: &Node, cause: &str) {
        if self.over {
            return;
        }
        let peers = node.peers().into_iter();
        let peers = peers
            .map(|peer| (peer.name, format!("{:?}", peer.state)))
            .collect();
        let csas = node.composite_sas().into_iter();
        let grants = csas.flat_map(|csa| {
            let grants = csa.grants.into_iter();
            grants.map(move |grant| ((csa.csa, grant.peer), format!("{:?}", grant.state)))
        });
        let now = Seen {
            peers,
            grants: grants.collect(),
        };
        let before = std::mem::replace(&mut self.seen[who], now);
        note(&mut self.peers, &before.peers, &self.seen[who].peers, cause);
        note(
            &mut self.grants,
            &before.grants,
            &self.seen[who].grants,
            cause,
        );
    }

    /// Discards the state of a process that was killed.
    pub fn forget(&mut self, who: usize) {
        self.seen[who] = Seen::default();
    }

    /// Fails if a page lacks an observed transition.
    pub fn assert_documented(&self) {
        if std::env::var_os(pages::UPDATE).is_some() {
            return;
        }
        for ((page, _), machine) in [(PEER, &self.peers), (GRANT, &self.grants)] {
            let documented = Machine::read(page);
            let unknown: Vec<_> = machine.without(&documented).collect();
            assert!(
                unknown.is_empty(),
                "docs/{page} does not know {unknown:#?}\nIf the change is right, add a story to \
                 tests/states.rs, then write the page anew:\n  {}=1 cargo test -p node \
                 tests::states",
                pages::UPDATE
            );
        }
    }
}

fn note<K: Ord>(
    machine: &mut Machine,
    before: &BTreeMap<K, String>,
    now: &BTreeMap<K, String>,
    cause: &str,
) {
    for (key, state) in now {
        machine.note(before.get(key).map(String::as_str), Some(state), cause);
    }
    for (_, state) in before.iter().filter(|(key, _)| !now.contains_key(key)) {
        machine.note(Some(state), None, cause);
    }
}
