//! Strata with every strongSwan at hand: every pair of choices in some cell of a matrix.
//!
//! What goes wrong between two implementations mostly goes wrong where two choices meet: a rekey
//! behind a NAT, RSA in fragments. All combinations would take half a day; so few of them that
//! any two levels of any two factors meet at least once ([`pairs`]) take minutes. The factors
//! and their levels are in [`cell`], what happens in a cell in `meeting`, and [`table`] says which
//! cell has which witness.

pub mod cell;
mod meeting;
pub mod pairs;
pub mod table;

pub use cell::Cell;
pub use meeting::meet;
