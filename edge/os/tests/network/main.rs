//! The operating system's side of Strata against a real kernel, in network namespaces that each
//! test makes for itself. Needs root's privileges, or `unshare -Urnm`.
//!
//! Run them with `--test-threads=1`: a program that one test starts holds, from fork to exec, the
//! devices that another test closes and expects to be gone.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod bulk;
mod changes;
mod claim;
mod clear;
mod divert;
mod esp;
mod ip_in_ip;
mod kept;
mod line;
mod link_socket;
mod mobile;
mod netlink;
mod netns;
mod passage;
mod routes;
mod stream;
mod tcp;
mod tun;
mod udp;
mod ways;
