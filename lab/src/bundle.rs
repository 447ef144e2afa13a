//! Results with their raw data in one folder, for a reviewer: everything on the page can be
//! computed again without measuring.

use crate::experiment::{Report, files, recompute};
use crate::obstacle::Obstacle;
use crate::page;
use anyhow::{Context, Error, Result, ensure};
use crypto::sha256;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// File of the checksums, in the format of `sha256sum`.
const SUMS: &str = "SHA256SUMS";

/// File with the origin of the results and the way to check them.
const README: &str = "README.md";

/// Copies the results of an output folder, and the raw data behind them, into a new folder.
/// Returns the number of its files.
///
/// # Errors
/// There is no result, a result does not follow from its raw data, or the folder cannot be made.
pub fn pack(out: &Path, to: &Path) -> Result<usize, Obstacle> {
    let measure = "measure it again with `strata-lab figures run NAME --out DIR`";
    let reports = read(out)?;
    let faults = faults(out, &reports);
    if let Some(fault) = faults.first() {
        let others = faults.len() - 1;
        let message = format!("{fault}; {others} other faults");
        return Err(Obstacle::new(message, measure));
    }
    fs::create_dir(to).map_err(|error| {
        let message = format!("cannot make the folder {}: {error}", to.display());
        Obstacle::new(message, "choose a folder that does not exist, with --to")
    })?;
    let room = |error: Error| Obstacle::new(format!("{error:#}"), "make room there");
    copy(out, &reports, to).map_err(room)?;
    page::write(to)?;
    let readme = readme(&reports);
    fs::write(to.join(README), readme).map_err(|error| room(error.into()))?;
    let sums = sums(to).map_err(room)?;
    let lines = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n"));
    fs::write(to.join(SUMS), lines.collect::<String>()).map_err(|error| room(error.into()))?;
    Ok(sums.len())
}

/// Outcome of a check.
#[derive(Debug)]
pub struct Checked {
    /// Number of figures and tables.
    pub reports: usize,
    /// Number of files with a checksum.
    pub files: usize,
    /// Files that were changed, and numbers and verdicts that do not follow from the raw data.
    pub faults: Vec<String>,
}

/// Checks the files of a bundle, and computes every number and verdict again from its raw data.
///
/// # Errors
/// The folder is no bundle.
pub fn verify(folder: &Path) -> Result<Checked, Obstacle> {
    let is_none = |error: Error| {
        let fix = "name a folder that `strata-lab figures bundle` wrote";
        Obstacle::new(format!("{error:#}"), fix)
    };
    let reports = read(folder)?;
    let listed = listed(folder).map_err(is_none)?;
    let found = sums(folder).map_err(is_none)?;
    let mut changed = Vec::new();
    for (name, sum) in &listed {
        match found.get(name) {
            None => changed.push(format!("{name} is missing")),
            Some(other) if other != sum => changed.push(format!("{name} was changed")),
            Some(_) => {}
        }
    }
    let others = found.keys().filter(|name| !listed.contains_key(*name));
    changed.extend(others.map(|name| format!("{name} has no checksum")));
    changed.extend(faults(folder, &reports));
    Ok(Checked {
        reports: reports.len(),
        files: listed.len(),
        faults: changed,
    })
}

fn read(folder: &Path) -> Result<Vec<Report>, Obstacle> {
    let fix = "run `strata-lab figures run NAME --out DIR` first, then this with the same DIR";
    let reports = Report::read_all(folder);
    let reports = reports.map_err(|error| Obstacle::new(format!("{error:#}"), fix))?;
    if reports.is_empty() {
        let message = format!("{} holds no result", folder.display());
        return Err(Obstacle::new(message, fix));
    }
    Ok(reports)
}

/// Returns what does not follow from the raw data.
fn faults(folder: &Path, reports: &[Report]) -> Vec<String> {
    let of = |report: &Report| {
        let faults = recompute(folder, report);
        faults.unwrap_or_else(|error| vec![format!("{}: {error:#}", report.figure)])
    };
    reports.iter().flat_map(of).collect()
}

fn copy(out: &Path, reports: &[Report], to: &Path) -> Result<()> {
    for report in reports {
        for file in files(out, report)? {
            let target = to.join(&file);
            let folder = target.parent().context("it is in a folder")?;
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
            fs::copy(out.join(&file), &target)
                .with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    Ok(())
}

/// Returns the checksums of all files of a bundle but that of the checksums, by name.
fn sums(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut sums = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let path = folder.join(&inner);
        let entries =
            fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for entry in entries {
            let name = inner.join(entry?.file_name());
            let path = folder.join(&name);
            if path.is_dir() {
                folders.push(name);
            } else if name != Path::new(SUMS) {
                let content =
                    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                sums.insert(
                    name.display().to_string(),
                    hexadecimal(&sha256(&[&content])),
                );
            }
        }
    }
    Ok(sums)
}

/// Returns the checksums that a bundle lists.
fn listed(folder: &Path) -> Result<BTreeMap<String, String>> {
    let path = folder.join(SUMS);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let parse = |line: &str| {
        let (sum, name) = line.split_once("  ").context("a line without a name")?;
        ensure!(sum.len() == 64, "a checksum of {} digits", sum.len());
        Ok((name.to_owned(), sum.to_owned()))
    };
    let lines = text.lines().map(parse).collect::<Result<_>>();
    lines.with_context(|| format!("{} is no list of checksums", path.display()))
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{octet:02x}");
        text
    })
}

fn readme(reports: &[Report]) -> String {
    let mut text = "# Results of the lab\n\n\
        `report.html` shows them. Each figure or table has a folder with its verdict and findings \
        (`result.json`), its raw data (`raw.json`, and for figures one file for each download and \
        seed in `cells`, simulated ones in `simulated`), and its plots.\n\n\
        To check them, run the following in this folder, the second with the commit below. It \
        computes every number and verdict again from the raw data, measures nothing, and ends with \
        exit status 1 if one of them was changed.\n\n\
        ```\nsha256sum --check SHA256SUMS\nstrata-lab figures verify .\n```\n\n\
        | figure or table | verdict | measured | seeds | commit | command |\n\
        |---|---|---|---|---|---|\n"
        .to_owned();
    for report in reports {
        let environment = &report.environment;
        let or_dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
        let seeds = environment.downloads.as_ref();
        let cells = [
            report.figure.clone(),
            report.verdict.word().to_owned(),
            or_dash(&environment.date),
            seeds.map_or("-".to_owned(), |downloads| {
                format!("1 to {}", downloads.seeds)
            }),
            or_dash(&environment.commit),
            format!("`{}`", environment.command),
        ];
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text += "\n| figure or table | Strata | kernel | processors |\n|---|---|---|---|\n";
    for report in reports {
        let environment = &report.environment;
        text += &format!(
            "| {} | {} | {} | {} {} |\n",
            report.figure,
            environment.build,
            environment.kernel,
            environment.cores,
            environment.processor
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::synthetic::{Folder, as_claimed, fill, options};
    use crate::experiment::{Exhibit, run};
    use crate::figures;

    /// A bundle of a figure and of a table that measures nothing.
    fn bundle(name: &str) -> (Folder, PathBuf) {
        let folder = Folder::new(name);
        let out = folder.0.join("out");
        fs::create_dir(&out).unwrap();
        let figure = figures::find("mml-fig15").unwrap();
        fill(&out, figure.figure().unwrap(), as_claimed);
        let table = figures::find("mml-fig18").unwrap();
        assert!(matches!(table, Exhibit::Table(_)));
        run(&[figure, table], &options(&out)).unwrap();
        let to = folder.0.join("bundle");
        assert!(pack(&out, &to).unwrap() > 30);
        (folder, to)
    }

    /// Changes the first `from` in a file, and its checksum as well.
    fn forge(bundle: &Path, name: &str, from: &str, to: &str) {
        let path = bundle.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} is not in {name}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let sums = sums(bundle).unwrap();
        let lines = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n"));
        fs::write(bundle.join(SUMS), lines.collect::<String>()).unwrap();
    }

    #[test]
    fn an_unchanged_bundle_is_right() {
        let (_folder, bundle) = bundle("right");
        let checked = verify(&bundle).unwrap();
        assert_eq!(checked.faults, [""; 0]);
        assert_eq!(checked.reports, 2);
        let readme = fs::read_to_string(bundle.join(README)).unwrap();
        assert!(readme.contains("| mml-fig15 | holds |"), "{readme}");
        assert!(readme.contains("| 1 to 2 |"), "{readme}");
    }

    #[test]
    fn a_number_that_was_changed_is_found_with_its_file() {
        let (_folder, bundle) = bundle("changed");
        let name = "cells/zoned_snoop-reno-512k-100ms-20s-seed1.json";
        let path = bundle.join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("\"resent\":3", "\"resent\":4", 1)).unwrap();
        let faults = verify(&bundle).unwrap().faults;
        assert_eq!(faults[0], format!("{name} was changed"));
        assert!(
            faults[1].contains("mml-fig15/result.json: points"),
            "{faults:?}"
        );
    }

    /// Each row changes one number together with its checksum: in a raw cell, in a raw table, in a
    /// finding, and in a verdict.
    #[test]
    fn a_forged_number_is_found_by_what_follows_from_it() {
        let rows = [
            (
                "cells/zoned_snoop-reno-512k-100ms-20s-seed1.json",
                "\"acknowledged\":3",
                "\"acknowledged\":9",
                "mml-fig15/result.json: findings 0: measured",
            ),
            (
                "mml-fig18/raw.json",
                "\"plain\":14",
                "\"plain\":13",
                "mml-fig18/result.json: ",
            ),
            (
                "mml-fig15/result.json",
                "\"at_least\": 2.0",
                "\"at_least\": 1.0",
                "mml-fig15/result.json: findings 0: at_least is 1.0, the raw data give 2.0",
            ),
            (
                "mml-fig18/result.json",
                "\"verdict\": \"holds\"",
                "\"verdict\": \"fails\"",
                "the raw data give \"holds\"",
            ),
            (
                "mml-fig18/rows.csv",
                "every packet encrypted,700",
                "every packet encrypted,701",
                "mml-fig18/rows.csv is not what follows",
            ),
        ];
        for (row, (name, from, to, told)) in rows.into_iter().enumerate() {
            let (_folder, bundle) = bundle(&format!("forged-{row}"));
            forge(&bundle, name, from, to);
            let faults = verify(&bundle).unwrap().faults;
            assert!(
                faults.iter().any(|fault| fault.contains(told)),
                "{name}: {faults:?}"
            );
        }
    }

    #[test]
    fn a_cell_that_was_taken_out_is_missed() {
        let (_folder, bundle) = bundle("taken");
        let name = "simulated/ipsec-reno-512k-100ms-20s-seed2.json";
        fs::remove_file(bundle.join(name)).unwrap();
        let faults = verify(&bundle).unwrap().faults;
        assert_eq!(faults[0], format!("{name} is missing"));
        assert!(faults[1].ends_with("is missing or damaged"), "{faults:?}");
    }

    #[test]
    fn a_folder_that_exists_or_has_no_result_is_refused() {
        let (folder, bundle) = bundle("exists");
        let refused = pack(&folder.0.join("out"), &bundle).unwrap_err();
        assert!(refused.fix.contains("--to"), "{refused:?}");
        let empty = Folder::new("empty");
        assert!(verify(&empty.0).is_err());
    }
}
