//! The processor's time stamp counter, the unit of measurement in papers.

/// Returns the counter. It runs at a constant rate, whatever the current frequency of the
/// processor, also while another thread runs. `None` if the processor has none.
pub fn now() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        #![allow(unsafe_code, reason = "no crate at hand has this instruction")]
        // SAFETY: every x86-64 has it, and it writes only its result.
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_goes_on_while_something_is_done() {
        let before = super::now();
        let sum = std::hint::black_box((0..1000_u64).sum::<u64>());
        assert_eq!(sum, 499_500);
        assert_eq!(before.is_some(), cfg!(target_arch = "x86_64"));
        assert!(super::now() >= before);
    }
}
