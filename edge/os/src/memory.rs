//! Memory of the process.

/// Freed octets that the C library keeps at the end of its memory.
#[cfg(target_env = "gnu")]
const KEPT: i32 = 8 << 20;

/// Keeps some freed memory for later use. By default the C library returns all but 128 KiB, and the
/// kernel clears each page again for the next tunnels that are set up.
pub fn keep_freed() {
    // SAFETY: the function has no preconditions, and takes the locks of the allocator itself.
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code, reason = "a function of the C library")]
    unsafe {
        nix::libc::mallopt(nix::libc::M_TRIM_THRESHOLD, KEPT);
    }
}

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

    /// One test, because both parts measure the whole process.
    #[test]
    #[cfg(target_env = "gnu")]
    fn freed_memory_is_kept_up_to_a_limit_and_returned_although_other_memory_stays() {
        const EACH: usize = 1 << 10;
        let taken = |number| -> Vec<_> { (0..number).map(|_| vec![1_u8; EACH]).collect() };
        keep_freed();
        let few = taken(6 << 10);
        let used = resident();
        drop(few);
        assert!(resident() + (EACH << 11) > used);
        let mut all = taken(1 << 16);
        let kept = all.pop();
        let used = resident();
        drop(all);
        return_freed();
        assert!(resident() + (EACH << 15) < used);
        drop(kept);
    }
}
