//! The daemon's API: what can be asked, what is answered, and how it travels.
//!
//! A unix socket carries one JSON object per line. A request is `{"version":1,"request":"status"}`
//! with the request's own fields beside; the answer is `{"version":1,"status":{...}}`, or
//! `{"version":1,"error":{"message":...,"fix":...}}`. Names of fields do not change within a
//! version, and a client has to ignore those it does not know. A connection takes any number of
//! requests, one after the other; an answer may take its time (`up` that waits), and closing the
//! connection takes the question back.
//!
//! [`Server`] fits a single-threaded loop: it never blocks, shows one descriptor to wait for, and
//! hands out requests to be answered now or later. [`Client`] is for commands: it blocks, but not
//! beyond its deadline. Who may open the socket may do everything, so it has mode 0600.

mod audit;
mod client;
mod envelope;
mod explain;
mod flows;
mod leases;
mod line;
mod mobile_ip;
mod paths;
mod reload;
mod request;
mod response;
mod server;
mod status;
#[cfg(test)]
mod tests;
mod zones;

pub use audit::{Deed, Permit, Record, Why};
pub use client::{Client, NoAnswer};
pub use envelope::VERSION;
pub use explain::{Account, Explain, Fix, Outcome, RefusedGrant, Row, Verdict};
pub use flows::{Flow, Flows, SnoopCounters};
pub use leases::{Fill, Lease, Leases, Pool};
pub use line::LONGEST_REQUEST;
pub use mobile_ip::{
    MobileBinding, MobileHome, MobileIp, MobilePart, MobileRegistration, MobileVisitor,
};
pub use paths::{Candidate, Carrier, Moved, Paths, Standing, TunnelPaths, Who};
pub use reload::{Change, ChangeKind, Effect, Fault, Reload};
pub use request::Request;
pub use response::{Changed, Daemon, Failure, Keylog, PeerChanged, Response};
pub use server::{CannotListen, ClientId, Server};
pub use status::{
    Child, ChildKind, ChildMode, ClearClaim, Congestion, PathMtu, Peer, PeerKind, PeerState,
    Refusal, Role, Routes, RoutesReason, Status, Traffic, Window,
};
pub use zones::{Composite, GrantState, Held, Holder, LevelGrant, Link, Zone, Zones};
