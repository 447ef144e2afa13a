//! What sessions amount to: the paper's table II and figures 2 to 5, and the simulation of caching
//! strategies (figure 6, and the two that the paper leaves out).

mod histogram;
mod order;
mod simulation;
mod summary;

pub use histogram::{Bound, Histogram, bounds};
pub use order::Order;
pub use simulation::{Exposure, Outcome, Sample, Simulation};
pub use summary::{Days, Summary, Visits};
