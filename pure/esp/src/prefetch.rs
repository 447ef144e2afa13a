//! Prefetching of data that is needed soon.
//!
//! With many SAs, those of a batch are in no cache, and a processor that handles packets one after
//! the other waits for every cache line. If all lines are requested first, the memory accesses
//! overlap. Only data behind pointers of the AEAD library cannot be prefetched.

/// Prefetches a value or slice into the nearest cache, but not the data that it points to.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    let (first, len) = (std::ptr::from_ref(value).cast::<i8>(), size_of_val(value));
    if len > 0 {
        // A value that does not start on a line boundary may extend into one more line.
        let before = first.addr() % LINE;
        for offset in (0..before + len).step_by(LINE) {
            line(first.wrapping_sub(before).wrapping_add(offset));
        }
    }
}

/// Size of a cache line, in octets.
const LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
#[inline]
fn line(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    #[allow(unsafe_code, reason = "the instruction has no other interface")]
    // SAFETY: every x86-64 processor has this instruction. It does not access memory
    // architecturally, so a wrong address has no effect.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(at);
    }
}

/// Other processors have such an instruction, but stable Rust does not expose it.
#[cfg(not(target_arch = "x86_64"))]
fn line(_at: *const i8) {}
