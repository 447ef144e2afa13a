//! The daemons of the tunnel's two ends, and a download through it that continues while something
//! happens.

use super::{CARE_OF, HOME_KEY, Walk, bound, registered};
use crate::daemon::Daemon;
use crate::pair::{self, GATEWAY, MOBILE, Terms};
use crate::process::DEADLINE;
use crate::spis::sealed_in;
use crate::transfer::{in_parts, transfer};
use anyhow::Result;
use serde_json::Value;

/// Octets read before and after each event.
const PART: usize = 4_000_000;

/// The daemons of both ends.
pub struct Ends {
    /// Daemon of the home agent.
    pub home: Daemon,
    /// Daemon of the mobile node.
    pub mobile: Daemon,
}

impl Ends {
    /// Starts both daemons and waits until the tunnel is up, through any available foreign agent;
    /// `more` are lines of `[mobile_node]`.
    ///
    /// # Errors
    /// A daemon does not run, or the tunnel does not come up.
    pub fn start(walk: &Walk, more: &str) -> Result<Self> {
        let home = walk.start_home(Terms::PLAIN)?;
        Self::start_with(walk, home, more)
    }

    /// Starts the mobile node with a home agent that already runs.
    ///
    /// # Errors
    /// As [`Ends::start`].
    pub fn start_with(walk: &Walk, home: Daemon, more: &str) -> Result<Self> {
        Self::start_on(walk, home, more, Terms::PLAIN)
    }

    /// Starts the mobile node with a running home agent and these terms for zones.
    ///
    /// # Errors
    /// As [`Ends::start`].
    pub fn start_on(walk: &Walk, home: Daemon, more: &str, terms: Terms<'_>) -> Result<Self> {
        Self::when_up(home, walk.start_mobile(HOME_KEY, more, terms)?)
    }

    /// Waits until the tunnel between two daemons is up.
    ///
    /// # Errors
    /// The tunnel does not come up.
    pub fn when_up(home: Daemon, mobile: Daemon) -> Result<Self> {
        mobile.wait_until("status", DEADLINE, pair::is_up)?;
        home.wait_until("status", DEADLINE, pair::is_up)?;
        Ok(Self { home, mobile })
    }

    /// Starts both daemons among foreign agents that are licensed nodes, each with its own
    /// additional tables, and returns the agents' daemons too. `home` is the home agent's
    /// configuration. The mobile node is at the first agent.
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
        // The mobile node might otherwise hear another agent first.
        walk.leave_link(0)?;
        Ok((Self::start_on(walk, home, more, terms)?, agents))
    }

    /// Moves the mobile node to a foreign agent, away from all others.
    ///
    /// # Errors
    /// The kernel refuses, or as [`Ends::is_at`].
    pub fn move_to(&self, walk: &Walk, number: usize) -> Result<()> {
        walk.leave_link(number)?;
        self.is_at(CARE_OF[number])
    }

    /// Waits until both daemons know that the mobile node has this care-of address and no other.
    ///
    /// # Errors
    /// They do not know it in time.
    pub fn is_at(&self, care_of: &str) -> Result<()> {
        let registered = |status: &Value| registered(status) == [care_of];
        self.mobile.wait_until("status", DEADLINE, registered)?;
        let bound = |status: &Value| bound(status) == [care_of];
        self.home.wait_until("status", DEADLINE, bound).map(drop)
    }

    /// Returns the SPIs of this slot if both ends send on it, seen from home: the inbound SPI
    /// first.
    ///
    /// # Errors
    /// A daemon does not answer.
    pub fn sealed_in(&self, slot: &str) -> Result<Option<[String; 2]>> {
        let (home, mobile) = (self.home.strata("status")?, self.mobile.strata("status")?);
        Ok(sealed_in(&home, &mobile, slot))
    }

    /// Returns the inbound SPIs of the tunnel at both ends, and the number of times that it came
    /// up.
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

/// Downloads three parts and calls `happen` after each of the first two. Checks that everything
/// arrives.
///
/// # Errors
/// An octet does not arrive, or `happen` fails.
pub fn download(walk: &Walk, mut happen: impl FnMut(usize) -> Result<()>) -> Result<()> {
    let hosts = (&walk.home, &walk.mobile);
    in_parts(hosts, MOBILE[0], (3, PART), |read| happen(read - 1))
}

/// Carries a million octets of TCP through the tunnel, one way and then the other.
///
/// # Errors
/// An octet does not arrive.
pub fn both_ways(walk: &Walk) -> Result<()> {
    const OCTETS: u64 = 1_000_000;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], OCTETS)?;
    transfer(&walk.home, &walk.mobile, MOBILE[0], OCTETS)
}
