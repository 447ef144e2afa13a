//! `strata-lab logs`: passes the arguments to the lab and prints its analysis.

use crate::args::{Analyse, Logs, Synth};
use ::logs::Columns;
use lab::logs::synthesis::{self, Open, Workload};
use lab::logs::{self, Asked, Cost};
use lab::obstacle::Obstacle;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;
use terminal::{Exit, Output};

/// Runs a subcommand.
pub fn run(logs: &Logs, output: &Output) -> Result<Exit, Obstacle> {
    match logs {
        Logs::Analyse(analyse) => self::analyse(analyse, output),
        Logs::Synth(synth) => synthesise(synth),
    }
}

fn analyse(analyse: &Analyse, output: &Output) -> Result<Exit, Obstacle> {
    let analysis = logs::analyse(&asked(analyse, output.json))?;
    let page = analyse
        .out
        .as_deref()
        .map(|out| analysis.write(out))
        .transpose()?;
    if output.json {
        let line = serde_json::to_string(&analysis).expect("an analysis has only string keys");
        output.print_json(&line);
        return Ok(Exit::Done);
    }
    output.print(&analysis.text());
    if let Some(page) = page {
        output.print(&format!("\nPage: {}\n", page.display()));
    }
    Ok(Exit::Done)
}

fn asked(analyse: &Analyse, json: bool) -> Asked {
    let with = |columns: Columns, (name, column): &(String, _)| columns.with(name, *column);
    let columns = analyse.columns.iter().fold(Columns::default(), with);
    let micros = |us: u32| Duration::from_micros(us.into());
    let cost = analyse.full_us.zip(analyse.resumed_us);
    Asked {
        files: analyse.files.clone(),
        format: analyse.format,
        columns: (!analyse.columns.is_empty()).then_some(columns),
        zone: analyse.zone,
        in_order: analyse.in_order,
        entries: analyse.entries as usize,
        cost: cost.map(|(full, resumed)| Cost {
            full: micros(full),
            resumed: micros(resumed),
        }),
        anonymous: analyse.anonymise.clone(),
        bars: !json,
    }
}

fn synthesise(synth: &Synth) -> Result<Exit, Obstacle> {
    let workload = match synth.like.as_str() {
        "remote" => Workload::REMOTE,
        _ => Workload::WIRELESS,
    };
    let workload = synth
        .connections
        .map_or(workload, |count| workload.scaled(count));
    let open = Open {
        returns: f64::from(synth.returns) / 100.0,
        ..Open::USUAL
    };
    let mut to = create(&synth.file).map_err(|error| {
        let message = format!("cannot write {}: {error}", synth.file.display());
        Obstacle::new(
            message,
            "name a file that does not exist and can be written",
        )
    })?;
    synthesis::write(workload, open, synth.seed, &mut to)?;
    Ok(Exit::Done)
}

fn create(path: &Path) -> io::Result<Box<dyn Write>> {
    Ok(match path.as_os_str() == "-" {
        true => Box::new(BufWriter::new(io::stdout().lock())),
        false => Box::new(BufWriter::new(File::create_new(path)?)),
    })
}
