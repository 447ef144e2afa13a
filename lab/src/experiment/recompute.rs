//! Judges kept raw data again: a report must say what follows from them.

use super::cell::Cell;
use super::record::{self, Record};
use super::report::{self, Outcome, Report};
use super::results::Results;
use super::store::Store;
use super::{Exhibit, Figure, MEASURED, SIMULATED, simulation};
use crate::figures;
use anyhow::{Context, Result};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Largest relative difference between two results of the same computation on two machines.
const ROUNDING: f64 = 1e-9;

/// Returns the files of a report in an output folder, raw data included, relative to it.
///
/// # Errors
/// The folder or the raw data cannot be read.
pub fn files(out: &Path, report: &Report) -> Result<Vec<PathBuf>> {
    let folder = Path::new(&report.figure);
    let entries = fs::read_dir(out.join(folder))
        .with_context(|| format!("cannot read the folder of {}", report.figure))?;
    let names = entries.map(|entry| Ok(folder.join(entry?.file_name())));
    let mut files = names.collect::<Result<Vec<_>>>()?;
    if let Exhibit::Figure(figure) = exhibit(report)? {
        let record = Record::read(out, &report.figure)?;
        for (name, store) in stores(out, report) {
            let kept = figure.cells(&record.plan).into_iter();
            let kept = kept.filter(|cell| store.load(cell).is_some());
            let path = |cell: Cell| Path::new(name).join(cell.key() + ".json");
            files.extend(kept.map(path));
        }
    }
    files.sort();
    Ok(files)
}

/// Computes a report again from the raw data in its folder. Returns every difference.
///
/// # Errors
/// The raw data are missing or damaged, or are those of an unknown exhibit.
pub fn recompute(out: &Path, report: &Report) -> Result<Vec<String>> {
    let name = &report.figure;
    let record = Record::read(out, name)?;
    let environment = report.environment.clone().of_plan(&record.plan);
    let mut faults = Vec::new();
    let outcome = match exhibit(report)? {
        Exhibit::Table(table) => table.outcome(record.raw()?, environment)?,
        Exhibit::Figure(figure) => {
            faults.extend(missing(out, report, figure, &record)?);
            let [results, simulated] = stores(out, report).map(|(_, store)| {
                let cells = figure.cells(&record.plan).into_iter();
                cells
                    .filter_map(|cell| store.load(&cell))
                    .collect::<Results>()
            });
            figure.outcome(&record, [&results, &simulated], environment)?
        }
    };
    faults.extend(differences(out, report, &outcome)?);
    Ok(faults)
}

fn exhibit(report: &Report) -> Result<Exhibit> {
    let name = &report.figure;
    figures::find(name).with_context(|| format!("this build has no figure {name}"))
}

/// Returns the stores of measured and of simulated cells, of the build that measured the report.
fn stores(out: &Path, report: &Report) -> [(&'static str, Store); 2] {
    let build = &report.environment.build;
    [MEASURED, SIMULATED].map(|name| (name, Store::of_build(out, name, build)))
}

/// Returns the cells of the plan that are neither kept nor recorded as unmeasured.
fn missing(out: &Path, report: &Report, figure: &Figure, record: &Record) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (name, store) in stores(out, report) {
        let is_due = |cell: &Cell| name == MEASURED || simulation::has(cell);
        for cell in figure
            .cells(&record.plan)
            .iter()
            .filter(|cell| is_due(cell))
        {
            let key = cell.key() + ":";
            let unmeasured = record.unmeasured()?;
            let is_told = unmeasured.iter().any(|told| told.starts_with(&key));
            if store.load(cell).is_none() && !is_told {
                let path = store.path(cell);
                faults.push(format!("{} is missing or damaged", path.display()));
            }
        }
    }
    Ok(faults)
}

/// Returns the differences between what is kept and what follows from the raw data.
fn differences(out: &Path, report: &Report, outcome: &Outcome) -> Result<Vec<String>> {
    let folder = out.join(&report.figure);
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut faults = Vec::new();
    let kept: Value = serde_json::from_str(&read(report::FILE)?)?;
    let computed = serde_json::to_value(outcome.report_with_plots())?;
    let at = format!("{}/{}", report.figure, report::FILE);
    compare(&at, &kept, &computed, &mut faults);
    for (name, computed) in &outcome.files {
        if read(name)? != *computed {
            let raw = record::FILE;
            faults.push(format!(
                "{}/{name} is not what follows from {raw} and the cells",
                report.figure
            ));
        }
    }
    Ok(faults)
}

fn compare(at: &str, kept: &Value, computed: &Value, faults: &mut Vec<String>) {
    let empty = Map::new();
    match (kept, computed) {
        (Value::Object(_), Value::Object(_)) => {
            let [kept, computed] = [kept, computed].map(|one| one.as_object().unwrap_or(&empty));
            let keys: BTreeSet<_> = kept.keys().chain(computed.keys()).collect();
            for key in keys {
                let [kept, computed] = [kept, computed].map(|one| one.get(key));
                let null = &Value::Null;
                let at = format!("{at}: {key}");
                compare(&at, kept.unwrap_or(null), computed.unwrap_or(null), faults);
            }
        }
        (Value::Array(kept), Value::Array(computed)) if kept.len() == computed.len() => {
            for (place, (kept, computed)) in kept.iter().zip(computed).enumerate() {
                compare(&format!("{at} {place}"), kept, computed, faults);
            }
        }
        _ if is_same(kept, computed) => {}
        _ => faults.push(format!("{at} is {kept}, the raw data give {computed}")),
    }
}

fn is_same(kept: &Value, computed: &Value) -> bool {
    match (kept.as_f64(), computed.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= ROUNDING * a.abs().max(b.abs()),
        _ => kept == computed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(kept: &Value, computed: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        compare("a", kept, computed, &mut faults);
        faults
    }

    #[test]
    fn every_difference_is_told_with_its_place() {
        let kept = json!({"findings": [{"value": 3.5}, {"value": 2.0}], "verdict": "holds"});
        assert_eq!(faults(&kept, &kept), [""; 0]);
        let mut other = kept.clone();
        other["findings"][1]["value"] = json!(2.000_001);
        other["verdict"] = json!("fails");
        let told = [
            "a: findings 1: value is 2.0, the raw data give 2.000001",
            "a: verdict is \"holds\", the raw data give \"fails\"",
        ];
        assert_eq!(faults(&kept, &other), told);
        other["findings"] = json!([]);
        assert!(faults(&kept, &other)[0].starts_with("a: findings is "));
    }

    #[test]
    fn rounding_is_no_difference() {
        let [a, b] = [json!([0.1 + 0.2, 7]), json!([0.3, 7.0])];
        assert_eq!(faults(&a, &b), [""; 0]);
    }
}
