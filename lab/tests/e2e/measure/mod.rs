//! Measurements: the emulated link, the demo, benchmarks, figures and logs, and the testbed itself.

mod bench;
mod caching;
mod canary;
mod demo;
mod demo_move;
mod demo_roam;
mod emulator;
mod figures;
mod logs;
mod report;
mod testbed;
