//! The single source of randomness: getrandom(2), once for each generator. All other random octets
//! come from a `crypto::Rng` that is seeded here, so that engines stay reproducible in tests.

/// Returns a fresh seed. Blocks only while the kernel's generator is not initialised (early boot).
pub fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).expect("Linux has had getrandom since 3.17");
    seed
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_seeds_differ() {
        assert_ne!(super::seed(), super::seed());
    }
}
