//! Measurements: the emulated link, the demo, benchmarks and figures, and the testbed itself.

mod bench;
mod canary;
mod demo;
mod demo_move;
mod demo_roam;
mod emulator;
mod figures;
mod testbed;
