//! The two daemons between which there is a tunnel, and a download by it that goes on while something happens.

use super::{CARE_OF, HOME_KEY, Walk, bound, registered};
use crate::daemon::Daemon;
use crate::pair::{self, GATEWAY, MOBILE, Terms};
use crate::process::DEADLINE;
use crate::spis::sealed_in;
use crate::transfer::{in_parts, transfer};
use anyhow::Result;
use serde_json::Value;

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
        Self::start_on(walk, home, more, Terms::PLAIN)
    }

    /// The same with what the mobile node wants of zones.
    ///
    /// # Errors
    /// As [`Ends::start`].
    pub fn start_on(walk: &Walk, home: Daemon, more: &str, terms: Terms<'_>) -> Result<Self> {
        let mobile = walk.start_mobile(HOME_KEY, more, terms)?;
        mobile.wait_until("status", DEADLINE, pair::is_up)?;
        home.wait_until("status", DEADLINE, pair::is_up)?;
        Ok(Self { home, mobile })
    }

    /// The same among foreign agents that are licensed nodes, each with tables of its own, which are given as well; the mobile
    /// node is at the first one. Home is told this.
    ///
    /// # Errors
    /// Those of [`Host::stratad`](crate::host::Host::stratad), or as [`Ends::start`].
    pub fn start_among(
        walk: &Walk,
        home: &str,
        (more, terms): (&str, Terms<'_>),
        tables: impl Fn(usize) -> String,
    ) -> Result<(Self, Vec<Daemon>)> {
        let agents = walk.start_licensed_agents(tables)?;
        let home = walk.start_home_as(home)?;
        // It might hear another one first.
        walk.leave_link(0)?;
        Ok((Self::start_on(walk, home, more, terms)?, agents))
    }

    /// Has the mobile node go to a foreign agent, and leave all others.
    ///
    /// # Errors
    /// The kernel refuses, or as [`Ends::is_at`].
    pub fn move_to(&self, walk: &Walk, number: usize) -> Result<()> {
        walk.leave_link(number)?;
        self.is_at(CARE_OF[number])
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

    /// The SPIs of the slot that both send on, if it is this one: of home first the one that it receives on.
    ///
    /// # Errors
    /// A daemon does not answer.
    pub fn sealed_in(&self, slot: &str) -> Result<Option<[String; 2]>> {
        let (home, mobile) = (self.home.strata("status")?, self.mobile.strata("status")?);
        Ok(sealed_in(&home, &mobile, slot))
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
    let hosts = (&walk.home, &walk.mobile);
    in_parts(hosts, MOBILE[0], (3, PART), |read| happen(read - 1))
}

/// Some of the tunnel's TCP, one way and then the other.
///
/// # Errors
/// It does not arrive.
pub fn both_ways(walk: &Walk) -> Result<()> {
    const OCTETS: u64 = 1_000_000;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], OCTETS)?;
    transfer(&walk.home, &walk.mobile, MOBILE[0], OCTETS)
}
