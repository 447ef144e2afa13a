//! Asks memory for what will be needed soon.
//!
//! With many SAs those of a batch are in no cache. A processor that meets one after the other waits for each
//! line of each; asked for all of them first, memory brings them while the others are asked for. Only what is
//! behind a pointer of the AEAD's library cannot be asked for.

/// Begins to bring a value, or a slice, into the cache nearest to the processor. What it points to is not brought.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    let (first, len) = (std::ptr::from_ref(value).cast::<i8>(), size_of_val(value));
    if len > 0 {
        // Few values begin where a line does, so they may end in one more than they are long.
        let before = first.addr() % LINE;
        for offset in (0..before + len).step_by(LINE) {
            line(first.wrapping_sub(before).wrapping_add(offset));
        }
    }
}

/// Octets of a cache's line.
const LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
#[inline]
fn line(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    #[allow(unsafe_code, reason = "the instruction has no other interface")]
    // SAFETY: every x86-64 processor has it, and it reads nothing: of a wrong address too, nothing comes.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(at);
    }
}

/// Other processors have such an instruction, and stable Rust has none for it.
#[cfg(not(target_arch = "x86_64"))]
fn line(_at: *const i8) {}
