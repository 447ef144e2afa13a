//! Memory of the process.

/// Returns freed memory to the system. The C library keeps it for later use, and reading a
/// configuration takes several times the memory of its result.
pub fn return_freed() {
    // SAFETY: the function has no preconditions, and takes the locks of the allocator itself.
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code, reason = "a function of the C library")]
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Returns the resident octets of this process.
    fn resident() -> usize {
        let pages = fs::read_to_string("/proc/self/statm").unwrap();
        let resident = pages.split(' ').nth(1).unwrap();
        resident.parse::<usize>().unwrap() * 4096
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn freed_memory_is_returned_although_other_memory_stays() {
        const EACH: usize = 1 << 10;
        let mut all: Vec<_> = (0..1 << 16).map(|_| vec![1_u8; EACH]).collect();
        let kept = all.pop();
        let used = resident();
        drop(all);
        return_freed();
        assert!(resident() + (EACH << 15) < used);
        drop(kept);
    }
}
