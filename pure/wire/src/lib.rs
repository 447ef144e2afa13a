//! Parsing and encoding of packets and messages, without cryptography or I/O. Readers accept any
//! octets and never panic: malformed input is an error or `None`.

pub mod acknowledgement;
pub mod checksum;
pub mod class;
pub mod classify;
pub mod codec;
pub mod content;
pub mod dns;
pub mod ecn;
pub mod esp;
pub mod fragments;
pub mod ike;
pub mod ip;
pub mod ip_in_ip;
pub mod mobile_ip;
pub mod mss;
pub mod probe;
pub mod quoted;
pub mod rtp;
pub mod shell;
pub mod stream;
pub mod tcp;
pub mod too_big;
pub mod trailer;
pub mod udp;
pub mod zoned;
