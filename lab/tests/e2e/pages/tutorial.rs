//! The tutorial.

use super::lesson::Lesson;
use anyhow::{Result, ensure};
use std::path::Path;

const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");

#[lab::test]
fn the_tutorial_shows_what_happens() -> Result<()> {
    let mut blocks = pages::blocks(Path::new("docs/tutorial.md"), TUTORIAL);
    // The picture, and the interactive shells.
    blocks.retain(|block| !block.words.is_empty());
    let mut lesson = Lesson::new("tutorial")?;
    lesson.follow(&blocks)?;
    ensure!(lesson.shown() >= 15, "{} outputs", lesson.shown());
    Ok(())
}
