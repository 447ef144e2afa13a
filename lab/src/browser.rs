//! A browser: Chromium without a window, which says how it lays a page out.

use crate::testbed::find_command;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Longest life of the browser, in seconds.
const DEADLINE: &str = "60";

/// Element that has the measurements.
const MARK: &str = "<pre id=\"layout\">";

/// Measures the page when it is loaded.
const SCRIPT: &str = r#"<script>
addEventListener("load", () => {
  const all = (query) => [...document.querySelectorAll(query)];
  const box = (one) => { const { left, right, width, height } = one.getBoundingClientRect();
    return { left, right, width, height }; };
  const layout = { window: innerWidth, content: document.documentElement.scrollWidth,
    figures: all("svg").map(box), tables: all("table").map(box),
    loaded: performance.getEntriesByType("resource").length, text: document.body.innerText };
  const to = document.createElement("pre");
  to.id = "layout";
  to.textContent = encodeURIComponent(JSON.stringify(layout));
  document.body.append(to);
});
</script>"#;

/// Layout of a page. Lengths are in CSS pixels.
#[derive(Clone, Debug, Deserialize)]
pub struct Layout {
    /// Width of the window.
    pub window: f64,
    /// Width of the content, which is scrolled sideways if it is wider.
    pub content: f64,
    /// The drawings.
    pub figures: Vec<Area>,
    /// The tables.
    pub tables: Vec<Area>,
    /// Number of resources that were loaded beside the page.
    pub loaded: usize,
    /// Text that readers see.
    pub text: String,
}

/// Area of an element.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Area {
    /// Its left edge.
    pub left: f64,
    /// Its right edge.
    pub right: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// Lays a page out in a window of this width. The browser works in the folder of the page.
///
/// # Errors
/// Chromium is not installed (the message names the package), or it did not show the page.
pub fn lay_out(page: &Path, width: u32) -> Result<Layout> {
    let chromium = find_command("chromium", "chromium")?;
    let folder = page.parent().context("the page is in a folder")?;
    let measured = folder.join("measured.html");
    fs::write(&measured, fs::read_to_string(page)? + SCRIPT)?;
    let output = Command::new("timeout")
        .args(["--kill-after=5", DEADLINE])
        .arg(chromium)
        // The sandbox refuses to run as root.
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("browser").display()
        ))
        .arg(format!("--window-size={width},900"))
        .arg("--dump-dom")
        .arg(format!("file://{}", measured.display()))
        .output()?;
    let shown = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "chromium: {told}");
    let layout = shown.rsplit_once(MARK).map(|(_, layout)| layout);
    let layout = layout.and_then(|layout| layout.split('<').next());
    let layout = layout.with_context(|| format!("chromium measured nothing: {told}"))?;
    serde_json::from_str(&decoded(layout)?).context("what was measured")
}

/// Undoes JavaScript's `encodeURIComponent`.
fn decoded(text: &str) -> Result<String> {
    let mut octets = Vec::new();
    let mut parts = text.split('%');
    octets.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        let digits = part.get(..2).context("two digits")?;
        octets.push(u8::from_str_radix(digits, 16)?);
        octets.extend(part.bytes().skip(2));
    }
    Ok(String::from_utf8(octets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_browser_encodes_is_decoded() {
        assert_eq!(decoded("a%20%E2%80%93%25b").unwrap(), "a –%b");
        assert!(decoded("a%2").is_err() && decoded("%zz").is_err());
    }
}
