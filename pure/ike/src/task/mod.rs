//! Tasks of an IKE SA that is up, one file for each concern: requests of ours, what their answers
//! lead to, and answers to the same requests of the peer.

pub(crate) mod child;
mod child_terms;
pub(crate) mod clone;
pub(crate) mod confirm;
pub(crate) mod crash;
pub(crate) mod delete;
pub(crate) mod follow;
pub(crate) mod follow_up;
pub(crate) mod grant;
pub(crate) mod leave;
pub(crate) mod licences;
pub(crate) mod live_path;
pub(crate) mod liveness;
pub(crate) mod measure;
pub(crate) mod mobike;
pub(crate) mod opening;
pub(crate) mod path_traffic;
pub(crate) mod ping;
pub(crate) mod reauth;
pub(crate) mod redirect;
pub(crate) mod rekey_child;
pub(crate) mod rekey_ike;
pub(crate) mod renew;
pub(crate) mod stream;
pub(crate) mod ticket;
pub(crate) mod token;
pub(crate) mod transport;
pub(crate) mod upkeep;
pub(crate) mod window;
