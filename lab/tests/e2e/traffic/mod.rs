//! Packets through tunnels: modes, offload, MTU, marks, padding, encapsulation.

mod aead;
mod clamp;
mod dscp;
mod ecn;
mod encapsulation;
mod esn;
mod fragment;
mod mode;
mod mute;
mod offload;
mod pmtu;
mod probes;
mod selectors;
mod tcp;
mod tfc;
mod transfer;
mod unencrypted;
mod workers;
