//! Whole hosts against each other on virtual time.

mod datagram;
mod grants;
mod ledger;
mod recovery;
mod snoop;
mod world;
