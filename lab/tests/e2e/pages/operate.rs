//! The pages of `docs/operate`, each in networks of its own.

use super::lesson::{ELSEWHERE, Lesson};
use anyhow::{Context, Result, bail, ensure};
use pages::{Block, blocks};
use std::collections::BTreeSet;
use std::path::Path;

/// Follows a page.
fn follow(page: &str) -> Result<()> {
    let blocks = page_blocks(page)?;
    Lesson::new("operate")?.follow(&blocks)
}

fn page_blocks(page: &str) -> Result<Vec<Block>> {
    let text = pages::read(&format!("operate/{page}.md"));
    ensure!(!text.is_empty(), "no page {page}");
    let file = format!("docs/operate/{page}.md");
    Ok(blocks(Path::new(&file), &text))
}

#[lab::test]
fn audit() -> Result<()> {
    follow("audit")
}

#[lab::test]
fn certificates() -> Result<()> {
    follow("certificates")
}

#[lab::test]
fn choose_a_caching_policy() -> Result<()> {
    follow("choose-a-caching-policy")
}

#[lab::test]
fn containers() -> Result<()> {
    follow("containers")
}

#[lab::test]
fn first_tunnel() -> Result<()> {
    follow("first-tunnel")
}

#[lab::test]
fn leak_protection() -> Result<()> {
    follow("leak-protection")
}

#[lab::test]
fn licensed_nodes() -> Result<()> {
    follow("licensed-nodes")
}

#[lab::test]
fn measure() -> Result<()> {
    follow("measure")
}

#[lab::test]
fn mobility() -> Result<()> {
    follow("mobility")
}

#[lab::test]
fn monitoring() -> Result<()> {
    follow("monitoring")
}

#[lab::test]
fn moving_in() -> Result<()> {
    follow("moving-in")
}

#[lab::test]
fn mtu() -> Result<()> {
    follow("mtu")
}

#[lab::test]
fn names() -> Result<()> {
    follow("names")
}

// Weakness: 163
#[lab::test]
fn network_managers() -> Result<()> {
    follow("networkmanager-networkd")
}

#[lab::test]
fn no_traffic() -> Result<()> {
    follow("no-traffic")
}

#[lab::test]
fn pools_and_dns() -> Result<()> {
    follow("pools-and-dns")
}

#[lab::test]
fn reconnect() -> Result<()> {
    follow("reconnect")
}

#[lab::test]
fn road_warriors() -> Result<()> {
    follow("road-warriors")
}

#[lab::test]
fn satellite_link() -> Result<()> {
    follow("satellite-link")
}

#[lab::test]
fn second_site() -> Result<()> {
    follow("second-site")
}

#[lab::test]
fn settings() -> Result<()> {
    follow("settings")
}

// Weakness: 163
#[lab::test]
fn upgrade() -> Result<()> {
    follow("upgrade")
}

/// README.md of the folder is a table of the pages.
// Weakness: 162
#[lab::test]
fn every_page_is_followed_and_every_place_elsewhere_is_used() -> Result<()> {
    let tests = include_str!("operate.rs");
    let mut places = BTreeSet::new();
    for file in pages::list("operate") {
        let page = file.trim_end_matches(".md");
        let blocks = page_blocks(page)?;
        let is_followed = tests.contains(&format!("    follow(\"{page}\")\n"));
        ensure!(is_followed || blocks.is_empty(), "no test follows {file}");
        places.extend(
            blocks
                .into_iter()
                .filter_map(|block| block.words.into_iter().nth(1)),
        );
    }
    for (place, _) in ELSEWHERE {
        ensure!(places.contains(place), "no block belongs to {place}");
    }
    Ok(())
}

/// Each line changes one block of a page so that it is no longer true.
// Weakness: 162
#[lab::test]
fn a_page_with_a_wrong_line_fails() -> Result<()> {
    const PAGE: &str = "settings";
    let follow_once = |text: &str| {
        let mut lesson = Lesson::new("wrong")?.once();
        lesson.follow(&blocks(Path::new(PAGE), text))
    };
    let page = pages::read(&format!("operate/{PAGE}.md"));
    follow_once(&page).context("the page itself")?;
    for (right, wrong, why) in [
        ("1 tunnel,", "2 tunnels,", "waited"),
        ("$ strata check ", "$ strata chekc ", "unrecognized"),
        ("sysctl -p ", "sysctl -q ", "sysctl"),
        ("```sh gateway", "```sh", "says not where"),
        ("```sh gateway", "```", "says not where"),
        ("```sh gateway", "```sh gatway", "no host gatway"),
        ("network road", "network rood", "no network"),
        (
            "toml gateway\n",
            "toml gateway\n[nod]\nid = \"a\"\n#",
            "unknown",
        ),
    ] {
        ensure!(page.contains(right), "the page has no {right}");
        let Err(error) = follow_once(&page.replace(right, wrong)) else {
            bail!("{wrong:?} passes for {right:?}");
        };
        let error = format!("{error:?}");
        ensure!(
            error.contains(why),
            "{wrong:?} fails, but not for {why}: {error}"
        );
    }
    Ok(())
}
