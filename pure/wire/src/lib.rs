//! Octets to types and back. No cryptography, no I/O; a reader never fails in any other way than
//! by saying that it could not read.

pub mod acknowledgement;
pub mod checksum;
pub mod class;
pub mod classify;
pub mod codec;
pub mod content;
pub mod ecn;
pub mod esp;
pub mod fragments;
pub mod ike;
pub mod ip;
pub mod ip_in_ip;
pub mod mobile_ip;
pub mod mss;
pub mod rtp;
pub mod shell;
pub mod stream;
pub mod tcp;
pub mod too_big;
pub mod trailer;
pub mod udp;
pub mod zoned;
