//! Mobility: MOBIKE, Mobile IPv4, hand-over of keys, random walks.

mod claims;
mod domain;
mod handover;
mod holders;
mod live_paths;
mod mobike;
mod mobile;
mod mobile_nat;
mod path_licences;
mod path_traffic;
mod reverse_paths;
mod transport;
mod walks;
