//! What several threads share. In unit tests it is what tries their orders out (the crate shuttle).

#[cfg(test)]
use shuttle::sync;
#[cfg(not(test))]
use std::sync;

pub(crate) use sync::atomic::{AtomicBool, Ordering};
pub(crate) use sync::{Arc, Mutex, MutexGuard};
