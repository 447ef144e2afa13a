//! Mobility: MOBIKE, Mobile IPv4, hand-over of keys, random walks.

mod claims;
mod handover;
mod holders;
mod mobike;
mod mobile;
mod mobile_nat;
mod reverse_paths;
mod walks;
