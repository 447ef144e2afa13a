//! The lab: real packets between network namespaces on one machine, without root.
//!
//! * [`testbed`], [`host`], [`wire`]: hosts (namespaces), wires between them and the processes
//!   ([`process`], [`daemon`]) that run in them. A test reads like a drawing of the network.
//! * [`emulator`]: a wire with a rate, a delay, a queue and bit errors, in real time. [`vigil`]
//!   keeps the machine awake for it, [`bystander`] measures how far the machine delayed it.
//! * [`pair`], [`plain`], [`certified`], [`lending`], [`transfer`], [`chatter`], [`volley`],
//!   [`gaps`], [`echo`], [`spis`], [`wiretap`], [`tshark`], [`name_server`], [`browser`],
//!   [`freeradius`], [`openvpn`], [`strongswan`], [`libreswan`], [`origin`], [`duo`], [`openssl`],
//!   [`account`]: parts of end-to-end tests.
//! * [`walk`]: a mobile node between foreign agents, for tests of Mobile IPv4 and for the roaming
//!   demo.
//! * [`guest`]: a machine with its own kernel, for peers that use the kernel's ESP.
//! * [`bait`], [`canary`]: detectors of plaintext in places that must not see it.
//! * [`scene`]: the network of the demo and of the figures.
//! * [`demo`]: the whole of Strata at work, measured (`strata-lab demo`). [`spectator`]: demos seen
//!   from outside.
//! * [`experiment`], [`figures`], [`plot`], [`page`]: the figures of the papers, measured, judged,
//!   drawn and put on one page (`strata-lab figures`). [`bundle`]: results with their raw data, to
//!   be checked without measuring.
//! * [`matrix`]: Strata against every available strongSwan, with each pair of options in at least
//!   one cell.
//! * [`mod@bench`]: the cost of tunnel setup at a responder and of a packet (`strata-lab bench`).
//!   [`bare`]: the data plane in memory, for benchmarks.
//! * [`logs`]: the logs of gateways, and which caching strategy they recommend (`strata-lab logs`).
//! * `legacy`: the algorithms that the papers were measured with.
//! * [`obstacle`]: reasons for which a machine cannot run the lab, each with a fix.
//! * [`histogram`]: a histogram of durations. [`interrupt`]: Ctrl-C, with removal of the testbeds.
//! * [`runner`] and the attribute [`test`]: tests in processes and namespaces of their own.
//!
//! Devices, addresses and routes are made through `os`, not with the system's tools. Everything
//! disappears with the process that made it.

pub mod account;
pub mod bait;
pub mod bare;
pub mod bench;
pub mod browser;
pub mod bundle;
pub mod bystander;
pub mod canary;
pub mod certified;
pub mod chatter;
pub mod daemon;
pub mod demo;
pub mod duo;
pub mod echo;
pub mod emulator;
pub mod experiment;
pub mod figures;
pub mod fork;
pub mod freeradius;
pub mod gaps;
pub mod guest;
pub mod histogram;
pub mod host;
pub mod interrupt;
mod legacy;
pub mod lending;
pub mod libreswan;
pub mod logs;
pub mod matrix;
pub mod name_server;
pub mod obstacle;
pub mod openssl;
pub mod openvpn;
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
