#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| { fuzz::config_file::run(octets) });
