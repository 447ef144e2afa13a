//! Strata against every available strongSwan: every pair of options occurs in some cell of a
//! matrix.
//!
//! Two implementations mostly fail where two options combine: a rekey behind a NAT, RSA in
//! fragments. All combinations would take half a day. A selection in which any two levels of any
//! two factors occur together at least once ([`pairs`]) takes minutes. The factors and their levels
//! are in [`cell`], the test of a cell is in `meeting`, [`play()`] runs several at once, and
//! [`table`] lists the witness of each cell.

pub mod cell;
mod meeting;
pub mod pairs;
mod play;
pub mod table;

pub use cell::Cell;
pub use meeting::meet;
pub use play::{Played, play, ready};
