//! The terminal of a program: results as text or JSON, colours, exit statuses, and escaping of
//! untrusted text. `strata` and `strata-lab` print with it.

mod output;
mod text;
mod width;

pub use output::{Exit, Output};
pub use text::{Paint, clean, failure, json_safe};
pub use width::{Size, cut, padded, size, width, wrapped};
