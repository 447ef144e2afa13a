//! Types shared between threads. Unit tests replace them by those of the crate shuttle, which
//! explores thread interleavings.

#[cfg(test)]
use shuttle::sync;
#[cfg(not(test))]
use std::sync;

pub(crate) use sync::atomic::{AtomicBool, Ordering};
pub(crate) use sync::{Arc, Mutex, MutexGuard};
