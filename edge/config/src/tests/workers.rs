//! The number of worker threads, and its effect on a peer's tunnels.

use super::{Folder, OFFICE};
use crate::{Config, Warning};

fn load(workers: &str, resources: &str) -> Config {
    let text = format!("{OFFICE}{resources}\n[tunnel]\n{workers}\n");
    Folder::new().load(&text).unwrap()
}

#[test]
fn without_a_word_there_is_one() {
    assert_eq!(load("", "").tunnel.workers.get(), 1);
    assert_eq!(load("workers = 32", "").tunnel.workers.get(), 32);
}

#[test]
fn none_and_too_many_are_refused_with_the_limits() {
    for workers in ["0", "33", "-1", "\"two\""] {
        let text = format!("{OFFICE}[tunnel]\nworkers = {workers}\n");
        let faults = Folder::new().lines(&text);
        let told = faults.len() == 1 && faults[0].contains("tunnel.workers");
        assert!(told, "{workers}: {faults:#?}");
    }
}

#[test]
fn who_has_fewer_tunnels_than_threads_is_warned_of() {
    for (workers, resources, warned) in [
        ("workers = 4", "resources = 2", true),
        ("workers = 4", "resources = 4", false),
        ("workers = 4", "", false),
        ("", "resources = 1", false),
    ] {
        let waits = Warning::ThreadsWait {
            peer: "office".to_owned(),
            resources: 2,
            workers: 4,
        };
        let config = load(workers, resources);
        assert_eq!(
            config.warnings.contains(&waits),
            warned,
            "{workers} {resources}"
        );
    }
}
