#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| { fuzz::logs::run(octets) });
