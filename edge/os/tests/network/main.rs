//! The operating system's side of Strata against a real kernel, in network namespaces that each
//! test makes for itself. Needs root's privileges, or `unshare -Urnm`.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod bulk;
mod changes;
mod claim;
mod clear;
mod divert;
mod esp;
mod ip_in_ip;
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
