//! Memory use of a test's own thread, to measure the state that a host keeps and what its packets
//! cost.

#![allow(
    unsafe_code,
    reason = "a global allocator can only be implemented with it"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Per thread, because each test has a world of its own.
    static IN_USE: Cell<i64> = const { Cell::new(0) };
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the octets in use by this thread. Only differences are meaningful.
#[allow(dead_code, reason = "not every test measures it")]
pub fn in_use() -> i64 {
    IN_USE.get()
}

/// Returns the octets that this thread ever allocated. Only differences are meaningful.
#[allow(dead_code, reason = "not every test measures it")]
pub fn allocated() -> u64 {
    ALLOCATED.get()
}

/// Returns the number of allocations of `work`.
#[allow(dead_code, reason = "not every test measures it")]
pub fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

fn count(change: i64) {
    let _ = IN_USE.try_with(|octets| octets.set(octets.get() + change));
}

// SAFETY: every call is passed unchanged to the system's allocator. The counter is a plain
// thread-local integer, which itself allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        let _ = ALLOCATED.try_with(|octets| octets.set(octets.get() + layout.size() as u64));
        let _ = ALLOCATIONS.try_with(|number| number.set(number.get() + 1));
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
