//! The lab: real packets between network namespaces on one machine, without root.
//!
//! * [`testbed`], [`host`], [`wire`]: hosts (namespaces), wires between them and the processes
//!   ([`process`], [`daemon`]) that run in them. A test reads like a drawing of the network.
//! * [`emulator`]: a wire with a rate, a delay, a queue and bit errors, in real time; [`vigil`] keeps
//!   the machine awake for it, [`bystander`] sees whether it was.
//! * [`pair`], [`plain`], [`certified`], [`lending`], [`transfer`], [`chatter`], [`volley`], [`spis`], [`wiretap`], [`tshark`],
//!   [`strongswan`], [`libreswan`], [`origin`], [`duo`], [`openssl`], [`account`]: what end-to-end tests are made of.
//! * [`walk`]: a mobile node between foreign agents, for tests of Mobile IPv4 and for the demo that walks.
//! * [`guest`]: a machine with a kernel of its own, for peers that leave ESP to it.
//! * [`bait`], [`canary`]: whether plaintext shows up where it must not.
//! * [`scene`]: the network of the demo and of the figures.
//! * [`demo`]: the whole of Strata at work, measured (`strata demo`); [`spectator`]: demos from outside.
//! * [`experiment`], [`figures`], [`plot`], [`page`]: the figures of the papers, measured, judged,
//!   drawn and put on one page (`strata lab`).
//! * [`matrix`]: Strata with every strongSwan at hand, each pair of choices in some cell.
//! * [`mod@bench`]: what setting up tunnels costs a responder, and what a packet costs (`strata bench`); [`bare`]: the
//!   data plane in memory, for whoever times it.
//! * `legacy`: the algorithms that papers were measured with, if the feature of this name is on.
//! * [`obstacle`]: what keeps a machine from all this, with the fix.
//! * [`histogram`]: durations by how many there are; [`interrupt`]: Ctrl-C, so that what was made is taken down.
//! * [`runner`] and the attribute [`test`]: tests in processes and namespaces of their own.
//!
//! Devices, addresses and routes are made through `os`, not by tools of the system. Everything
//! dies with the process that made it.

pub mod account;
pub mod bait;
pub mod bare;
pub mod bench;
pub mod bystander;
pub mod canary;
pub mod certified;
pub mod chatter;
pub mod daemon;
pub mod demo;
pub mod duo;
pub mod emulator;
pub mod experiment;
pub mod figures;
pub mod guest;
pub mod histogram;
pub mod host;
pub mod interrupt;
mod legacy;
pub mod lending;
pub mod libreswan;
pub mod matrix;
pub mod obstacle;
pub mod openssl;
pub mod origin;
pub mod page;
pub mod pair;
pub mod plain;
pub mod plot;
pub mod process;
pub mod runner;
pub mod scene;
pub mod spectator;
pub mod spis;
pub mod strongswan;
pub mod testbed;
mod text;
pub mod transfer;
pub mod tshark;
pub mod vigil;
pub mod volley;
pub mod walk;
pub mod wire;
pub mod wiretap;

pub use lab_test::test;
