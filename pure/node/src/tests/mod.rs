//! Whole hosts against each other on virtual time.

mod accounts;
mod children;
mod clone;
mod cover;
mod datagram;
mod ecn;
mod encapsulation;
mod grants;
mod invariants;
mod ledger;
mod level;
mod mode;
mod operations;
mod path_mtu;
mod reauth;
mod reconfigure;
mod record;
mod recovery;
mod rekey;
mod resource;
mod revocation;
mod snoop;
mod states;
mod watch;
mod world;
mod write;
