//! The two daemons between which there is a tunnel, and a download by it that goes on while something happens.

use super::{HOME_KEY, Walk, bound, registered};
use crate::canary::Marked;
use crate::daemon::Daemon;
use crate::pair::{self, MOBILE, Terms};
use crate::process::DEADLINE;
use crate::transfer::connect;
use anyhow::{Result, bail};
use serde_json::Value;
use std::io::Read;
use std::net::{Shutdown, TcpStream};

/// What is read before something happens, and after it.
const PART: usize = 4_000_000;

/// The daemons of both ends.
pub struct Ends {
    /// That of the home agent.
    pub home: Daemon,
    /// That of the mobile node.
    pub mobile: Daemon,
}

impl Ends {
    /// Both with a tunnel that is up, through whichever foreign agent is there; `more` are lines of `[mobile_node]`.
    ///
    /// # Errors
    /// Either does not run, or the tunnel does not come up.
    pub fn start(walk: &Walk, more: &str) -> Result<Self> {
        let home = walk.start_home(Terms::PLAIN)?;
        Self::start_with(walk, home, more)
    }

    /// The same with a home agent that runs.
    ///
    /// # Errors
    /// As [`Ends::start`].
    pub fn start_with(walk: &Walk, home: Daemon, more: &str) -> Result<Self> {
        let mobile = walk.start_mobile(HOME_KEY, more, Terms::PLAIN)?;
        mobile.wait_until("status", DEADLINE, pair::is_up)?;
        home.wait_until("status", DEADLINE, pair::is_up)?;
        Ok(Self { home, mobile })
    }

    /// Waits until both know that the mobile node is at this place and at no other.
    ///
    /// # Errors
    /// They do not.
    pub fn is_at(&self, care_of: &str) -> Result<()> {
        let registered = |status: &Value| registered(status) == [care_of];
        self.mobile.wait_until("status", DEADLINE, registered)?;
        let bound = |status: &Value| bound(status) == [care_of];
        self.home.wait_until("status", DEADLINE, bound).map(drop)
    }

    /// The SPIs of the tunnel at both ends, and how often it came up.
    ///
    /// # Errors
    /// A daemon does not answer.
    pub fn tunnel(&mut self) -> Result<(Vec<Value>, usize)> {
        let mut spis = Vec::new();
        for daemon in [&self.mobile, &self.home] {
            let status = daemon.strata("status")?;
            let children = pair::children(&status);
            spis.extend(children.iter().map(|child| child["spi_in"].clone()));
        }
        let log = self.home.process().log();
        Ok((spis, log.matches("peer alice: up").count()))
    }
}

/// A download of three parts, after the first two of which something happens: all of it arrives.
///
/// # Errors
/// It does not, or what happens fails.
pub fn download(walk: &Walk, mut happen: impl FnMut(usize) -> Result<()>) -> Result<()> {
    let (out, mut inward) = connect(&walk.home, &walk.mobile, MOBILE[0])?;
    for stream in [&out, &inward] {
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
    }
    let content = Marked::new(7);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut out = out;
            content.write_to(&mut out, 3 * PART as u64)?;
            out.shutdown(Shutdown::Write)
        });
        let received = (0..3).try_for_each(|part| {
            read_part(&mut inward, &content, part * PART)?;
            if part < 2 { happen(part) } else { Ok(()) }
        });
        drop(inward);
        let sent = sending.join().expect("a sender returns its errors");
        received?;
        Ok(sent?)
    })
}

fn read_part(inward: &mut TcpStream, content: &Marked, from: usize) -> Result<()> {
    let mut part = vec![0; PART];
    inward.read_exact(&mut part)?;
    match content.first_difference(from as u64, &part) {
        Some(at) => bail!("octet {at} differs from the one sent"),
        None => Ok(()),
    }
}
