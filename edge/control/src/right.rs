//! The right that a request needs: the boundary of the socket for readers.

use crate::{Failure, Request};

/// A right of a client, which its socket decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Requests that change nothing and show no keys.
    Read,
    /// All requests.
    Change,
}

impl Request {
    /// Returns the right that the request needs. A new request needs a decision: what only reads
    /// may be sent by every member of a group.
    pub const fn right(&self) -> Right {
        match self {
            Self::Paths
            | Self::Status(_)
            | Self::Zones
            | Self::Flows
            | Self::Leases
            | Self::Sessions {
                end: None,
                end_all: false,
            }
            | Self::Explain { .. }
            | Self::Metrics
            | Self::Version => Right::Read,
            Self::Up { .. }
            | Self::Down { .. }
            | Self::Rekey { .. }
            | Self::Reauth { .. }
            | Self::Redirect { .. }
            | Self::Move { .. }
            | Self::Signal { .. }
            | Self::Level { .. }
            // Sends packets.
            | Self::Ping { .. }
            | Self::Sessions { .. }
            // Keys, in a folder of the client's choice.
            | Self::Keylog { .. }
            // A dry run shows a file that the client may not be allowed to read.
            | Self::Reload { .. } => Right::Change,
        }
    }
}

/// Returns the answer to a request without the right for it.
pub(crate) fn refusal() -> Failure {
    Failure::new(
        "members of the `group` in [control] may only read: this command changes or sends something, or shows keys",
        "run it as the user of stratad, usually root",
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Selection;
    use std::collections::BTreeSet;

    /// A request of each kind, with the right that it needs.
    pub(crate) fn all() -> Vec<(Request, Right)> {
        use Right::{Change, Read};
        let peer = || "office".to_owned();
        let sessions = |end: Option<String>, end_all| Request::Sessions { end, end_all };
        let keylog = |directory| Request::Keylog { directory };
        let (from, child) = (None, None);
        let up = Request::Up {
            peer: None,
            child: None,
            wait_seconds: Some(3600),
        };
        let moved = Request::Move {
            peer: peer(),
            from,
            to: None,
            soft: true,
        };
        let signal = Request::Signal {
            interface: "wlan0".to_owned(),
            percent: 25,
            by: None,
        };
        let level = Request::Level {
            peer: peer(),
            signal: "integrity".to_owned(),
        };
        let ping = Request::Ping {
            peer: peer(),
            count: None,
        };
        vec![
            (up, Change),
            (Request::Down { peer: None, child }, Change),
            (
                Request::Rekey {
                    peer: peer(),
                    ike: true,
                },
                Change,
            ),
            (Request::Reauth { peer: peer() }, Change),
            (
                Request::Redirect {
                    peer: peer(),
                    to: peer(),
                },
                Change,
            ),
            (moved, Change),
            (signal, Change),
            (level, Change),
            (ping, Change),
            (Request::Paths, Read),
            (Request::Status(Selection::default()), Read),
            (Request::Zones, Read),
            (Request::Flows, Read),
            (Request::Leases, Read),
            (sessions(None, false), Read),
            (sessions(Some(peer()), false), Change),
            (sessions(None, true), Change),
            (keylog(Some("/tmp".into())), Change),
            (keylog(None), Change),
            (Request::Reload { dry_run: false }, Change),
            (Request::Reload { dry_run: true }, Change),
            (Request::Explain { peer: peer() }, Read),
            (Request::Metrics, Read),
            (Request::Version, Read),
        ]
    }

    /// Returns a number for each kind of request. The compiler demands one for a new kind, and the
    /// next test an example of it.
    const fn kind(request: &Request) -> usize {
        match request {
            Request::Up { .. } => 0,
            Request::Down { .. } => 1,
            Request::Rekey { .. } => 2,
            Request::Reauth { .. } => 3,
            Request::Redirect { .. } => 4,
            Request::Move { .. } => 5,
            Request::Level { .. } => 6,
            Request::Paths => 7,
            Request::Status(_) => 8,
            Request::Zones => 9,
            Request::Flows => 10,
            Request::Leases => 11,
            Request::Sessions { .. } => 12,
            Request::Keylog { .. } => 13,
            Request::Reload { .. } => 14,
            Request::Explain { .. } => 15,
            Request::Metrics => 16,
            Request::Version => 17,
            Request::Ping { .. } => 18,
            Request::Signal { .. } => 19,
        }
    }

    #[test]
    fn the_examples_have_every_kind_of_request() {
        let kinds: BTreeSet<_> = all().iter().map(|(request, _)| kind(request)).collect();
        assert!(kinds.into_iter().eq(0..20));
    }

    #[test]
    fn each_request_needs_the_right_that_is_expected() {
        for (request, right) in all() {
            assert_eq!(request.right(), right, "{request:?}");
        }
    }
}
