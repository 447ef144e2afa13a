//! What all readers of logs have in common.

use crate::{Clock, Notes, Why};

/// A reader of one log.
///
/// It takes lines and leaves notes, and keeps nothing about sessions: what belongs together is
/// decided in [`crate::Join`]. A line that does not concern sessions is passed over; a line that
/// does, and lacks something, is a fault.
pub trait Reader {
    /// Takes the next line, without its end.
    fn line(&mut self, line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why>;

    /// Takes the end of a file. The next file continues the log.
    fn end_of_file(&mut self, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        let (_, _) = (clock, to);
        Ok(())
    }
}
