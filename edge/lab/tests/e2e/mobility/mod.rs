//! Mobility: MOBIKE, Mobile IPv4, handover of keys, random walks.

mod handover;
mod holders;
mod mobike;
mod mobile;
mod mobile_nat;
mod walks;
