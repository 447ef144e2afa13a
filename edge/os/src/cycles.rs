//! The processor's time stamp counter, which papers measure with.

/// What it says. It counts at one rate, whatever that of the processor is at the moment, and also while
/// another thread runs. `None` where there is none.
pub fn now() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        #![allow(unsafe_code, reason = "no crate at hand has this instruction")]
        // SAFETY: every x86-64 has it, and it writes nothing but its result.
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
