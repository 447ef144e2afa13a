#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| { fuzz::import::run(octets) });
