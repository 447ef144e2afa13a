//! The daemon's control API: requests, responses and their transport.
//!
//! A Unix socket carries one JSON object per line. A request is `{"version":1,"request":"status"}`
//! plus the fields of that request. The answer is `{"version":1,"status":{...}}`, or
//! `{"version":1,"error":{"message":...,"fix":...}}`. Field names do not change within a version,
//! and clients must ignore fields they do not know. A connection carries any number of requests,
//! one after the other. An answer may take time (`up` with a wait); closing the connection cancels
//! the request.
//!
//! [`Server`] fits a single-threaded loop: it never blocks, exposes one descriptor to poll, and
//! returns requests that the caller answers now or later. [`Client`] is for commands: it blocks,
//! but not beyond its deadline. The socket has mode 0600 because the right to open it is the right
//! to do everything. A second one ([`for_readers`]) is for a group whose members may send the
//! requests that only read ([`Right`]).

mod audit;
mod client;
mod envelope;
mod explain;
mod flows;
mod leases;
mod line;
mod link;
mod lookup;
mod mobile_ip;
mod paths;
mod ping;
mod reload;
mod request;
mod response;
mod right;
mod selection;
mod server;
mod sessions;
mod socket;
mod status;
#[cfg(test)]
mod tests;
mod zones;

pub use audit::{AuditEvent, Permit, Record, Why};
pub use client::{Client, NoAnswer, for_readers};
pub use envelope::VERSION;
pub use explain::{Account, Explain, Fix, Outcome, RefusedGrant, Row, Verdict};
pub use flows::{Flow, Flows, SnoopCounters};
pub use leases::{Fill, Lease, Leases, Pool};
pub use line::LONGEST_REQUEST;
pub use link::{host_on, place_on};
pub use lookup::Lookup;
pub use mobile_ip::{
    MobileBinding, MobileHome, MobileIp, MobilePart, MobileRegistration, MobileVisitor,
};
pub use paths::{
    Candidate, Carrier, Chosen, LivePath, Moved, Paths, Signal, SignalTunnel, Standing,
};
pub use paths::{Strength, TunnelPaths, Who};
pub use ping::{Loss, LossPlace, Ping, RoundTrip};
pub use reload::{Change, ChangeKind, Effect, Fault, Reload};
pub use request::Request;
pub use response::{Changed, Daemon, Failure, Keylog, PeerChanged, Response};
pub use right::Right;
pub use selection::{Selection, StateFilter};
pub use server::{ClientId, Server};
pub use sessions::{Session, Sessions};
pub use socket::{Access, CannotListen, Socket};
pub use status::{
    Child, ChildKind, ChildMode, ClearClaim, Congestion, MtuOrigin, PathMtu, Peer, PeerKind,
    PeerState, Refusal, Restart, Role, Routes, RoutesReason, Status, Traffic, Trouble, Users,
    Window,
};
pub use zones::{Composite, GrantState, Held, Holder, LevelGrant, Link, Zone, Zones};
