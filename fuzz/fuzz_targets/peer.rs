#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let _ = fuzz::peer::play(octets);
});
