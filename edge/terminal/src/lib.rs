//! The terminal of a program: results as text or JSON, colours, exit statuses, and escaping of
//! untrusted text. `strata` and `strata-lab` print with it.

mod output;
mod text;

pub use output::{Exit, Output};
pub use text::{Paint, clean, failure, json_safe};
