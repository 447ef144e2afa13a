//! The page of `strata-lab logs analyse`, in a real browser.

use anyhow::{Context, Result, ensure};
use lab::browser::{Layout, lay_out};
use lab::testbed::{Testbed, find_binary};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Widths of the window of a laptop and of a tablet.
const WIDTHS: [u32; 2] = [1280, 600];

/// Figures 2 to 6, the two that the paper leaves out, and the cache.
const FIGURES: usize = 8;

// Works: logs
#[lab::test]
fn a_browser_shows_the_whole_report_and_loads_nothing_else() -> Result<()> {
    let bed = Testbed::new("report")?;
    let page = report(bed.directory())?;
    for width in WIDTHS {
        judge(&lay_out(&page, width)?)?;
    }
    let whole = fs::read_to_string(&page)?;
    let drawing = whole.match_indices("<svg").nth(3).context("a drawing")?.0;
    let early = whole[..drawing].to_owned();
    let damages = [
        ("a figure is lost", whole.replacen("<svg", "<p", 1)),
        (
            "a table is wider than the window",
            whole.replacen("<table", "<table style='width:3000px'", 1),
        ),
        (
            "something is fetched",
            whole.clone() + "<img src='http://192.0.2.1/pixel.gif'>",
        ),
        ("it ends early", early),
    ];
    for (damage, text) in damages {
        fs::write(&page, text)?;
        let layout = lay_out(&page, WIDTHS[0])?;
        ensure!(judge(&layout).is_err(), "{damage}");
    }
    Ok(())
}

/// Judges what a reader of the page has before the eyes.
fn judge(layout: &Layout) -> Result<()> {
    ensure!(layout.figures.len() == FIGURES, "{layout:?}");
    for figure in &layout.figures {
        ensure!(
            figure.width >= 300.0 && figure.height >= 200.0,
            "{figure:?}"
        );
    }
    for area in layout.figures.iter().chain(&layout.tables) {
        ensure!(
            area.left >= 0.0 && area.right <= layout.window,
            "{area:?} {}",
            layout.window
        );
    }
    ensure!(
        layout.content <= layout.window,
        "{} {}",
        layout.content,
        layout.window
    );
    ensure!(layout.loaded == 0, "{} resources", layout.loaded);
    for words in [
        "Recommendation: ",
        " connections of ",
        "clocked 24 h",
        "[sessions]",
    ] {
        ensure!(layout.text.contains(words), "{words}: {}", layout.text);
    }
    Ok(())
}

/// Writes the report about a synthetic log. Returns its page.
fn report(folder: &Path) -> Result<PathBuf> {
    let log = folder.join("log.csv").display().to_string();
    let out = folder.join("report");
    let made: [&[&str]; 2] = [
        &["logs", "synth", &log, "--connections", "5000"],
        &["logs", "analyse", &log, "--out", &out.display().to_string()],
    ];
    for words in made {
        let output = Command::new(find_binary("strata-lab")?)
            .args(words)
            .output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{told}");
    }
    Ok(out.join("logs.html"))
}
