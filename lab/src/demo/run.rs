//! One setup, from its first namespace to its last number.

use super::download::{Span, download};
use super::progress::Teller;
use super::web;
use super::witness::Node;
use super::{Options, Setup};
use crate::canary::{Canary, Marked};
use crate::emulator::Statistics;
use crate::scene::{SERVER, Scene};
use crate::testbed::Testbed;
use anyhow::Result;
use serde::Serialize;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

/// Measurements of one setup.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Goodput in bits of payload per second, without the first seconds.
    pub goodput: f64,
    /// Octets downloaded, each compared with the server's file.
    pub octets: u64,
    /// Counters of the lossy hop: to the mobile node, and from it.
    pub lossy: [Statistics; 2],
    /// Counters of the wired hop: to the gateway, and from it.
    pub wired: [Statistics; 2],
    /// The licensed node, if there is one.
    pub node: Option<Node>,
}

/// Values that all setups share.
pub(super) struct Shared<'a> {
    pub bed: &'a Testbed,
    pub options: &'a Options,
    pub stream: &'a Marked,
    pub canary: &'a Canary,
    /// Folder that the servers serve.
    pub folder: &'a Path,
}

/// Builds the setup, downloads, and searches the node half way and at the end.
pub(super) fn run(setup: Setup, shared: &Shared<'_>, teller: &Teller) -> Result<Run> {
    let Shared {
        bed,
        options,
        stream,
        canary,
        folder,
    } = shared;
    teller.phase("building the network");
    let scene = Scene::build(bed, setup.key(), &options.scene(setup))?;
    let _web = web::serve(&scene.server, SERVER, folder)?;
    teller.phase("downloading");
    let span = Span {
        total: options.duration,
        skipped: options.skipped(),
    };
    let daemon = scene.node.as_ref();
    let (received, earlier) = thread::scope(|scope| {
        let (over, is_over) = mpsc::channel::<()>();
        let half_way = span.total / 2;
        let look = scope.spawn(move || {
            // Returns early, by disconnection, if the download fails.
            let _ = is_over.recv_timeout(half_way);
            daemon.map(|daemon| Node::look(daemon, canary)).transpose()
        });
        let url = web::url(SERVER);
        let progress = |octets| teller.octets(octets);
        let received = download(&scene.mobile, &url, stream, span, progress);
        drop(over);
        (received, look.join().expect("looking does not panic"))
    });
    let (received, earlier) = (received?, earlier?);
    teller.phase("searching the node");
    let node = daemon
        .map(|daemon| Node::look(daemon, canary))
        .transpose()?;
    let [from_mobile, to_mobile] = scene.lossy.statistics();
    Ok(Run {
        goodput: received.goodput,
        octets: received.octets,
        lossy: [to_mobile, from_mobile],
        wired: scene.wired.statistics(),
        node: node.map(|node| node.after(earlier.unwrap_or_default())),
    })
}
