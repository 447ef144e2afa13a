//! The walk of the host: out of its Wi-Fi, and back.

use super::network::Network;
use super::news::{News, Teller};
use anyhow::{Context, Result};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Loss of the Wi-Fi in per cent while it fades, in each [`PACE`]. The daemon needs the time for
/// three losses: after each it does not measure for a second, and longer if the retransmission is
/// lost as well. Where less is lost, ten answers in a row would have the tunnel return too early.
const FADE: [u8; 9] = [8, 12, 16, 20, 24, 26, 28, 30, 40];

const PACE: Duration = Duration::from_millis(1500);

/// Time for which the Wi-Fi carries nothing and still has a carrier.
const SILENT: Duration = Duration::from_millis(2500);

/// Time after which a path that the routes prefer is used again, added to the last stay.
const RETURN: Duration = Duration::from_secs(2);

/// Longest wait for the end of the download after the walk.
const LONGEST: Duration = Duration::from_secs(60);

/// A step of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The host is in its Wi-Fi.
    Home,
    /// The Wi-Fi loses more and more packets.
    Fading,
    /// The Wi-Fi carries nothing, and its interface is up.
    Silent,
    /// The interface of the Wi-Fi is down.
    Away,
    /// The host is in its Wi-Fi again.
    Back,
}

impl Step {
    /// Returns a message.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Home => "the host is at home, in its Wi-Fi",
            Self::Fading => "the Wi-Fi fades: it loses more and more packets",
            Self::Silent => "the Wi-Fi carries nothing any more; its carrier stays",
            Self::Away => "the interface of the Wi-Fi goes down",
            Self::Back => "the host is back in its Wi-Fi",
        }
    }

    /// Returns the name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Home => "at home",
            Self::Fading => "Wi-Fi fades",
            Self::Silent => "Wi-Fi is silent",
            Self::Away => "Wi-Fi is gone",
            Self::Back => "at home again",
        }
    }
}

/// The times of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Journey {
    /// Length of each stay.
    pub stay: Duration,
    /// True if the Wi-Fi fades before it is gone.
    pub fades: bool,
}

impl Journey {
    /// Returns the time for which the Wi-Fi is at hand and good, at least in part.
    pub fn near(&self) -> Duration {
        self.stay * 2 + if self.fades { PACE * 2 } else { Duration::ZERO }
    }

    /// Returns the time for which only the cellular network is good.
    pub fn far(&self) -> Duration {
        let fading = PACE * (FADE.len() as u32 / 2) + SILENT;
        self.stay + RETURN + if self.fades { fading } else { Duration::ZERO }
    }

    /// Returns the planned duration.
    pub fn total(&self) -> Duration {
        let fading = PACE * FADE.len() as u32 + SILENT;
        self.stay * 3 + RETURN + if self.fades { fading } else { Duration::ZERO }
    }

    /// Walks, and waits at home for the end of the download.
    pub fn walk(&self, network: &Network, teller: &Teller, fetched: &AtomicBool) -> Result<()> {
        teller.tell(News::Step(Step::Home));
        thread::sleep(self.stay);
        if self.fades {
            fade(network, teller);
        }
        teller.tell(News::Step(Step::Away));
        network
            .leave_wifi()
            .context("the Wi-Fi could not be left")?;
        thread::sleep(self.stay);
        network.fade(0.0);
        teller.tell(News::Loss(0));
        teller.tell(News::Step(Step::Back));
        network
            .enter_wifi()
            .context("the Wi-Fi could not be entered")?;
        thread::sleep(self.stay + RETURN);
        let last = Instant::now() + LONGEST;
        while !fetched.load(Ordering::Relaxed) && Instant::now() < last {
            thread::sleep(super::LOOK);
        }
        teller.tell(News::Faded(network.faded()));
        teller.tell(News::Over);
        Ok(())
    }
}

fn fade(network: &Network, teller: &Teller) {
    teller.tell(News::Step(Step::Fading));
    for percent in FADE {
        network.fade(f64::from(percent) / 100.0);
        teller.tell(News::Loss(percent));
        thread::sleep(PACE);
    }
    network.fade(1.0);
    teller.tell(News::Loss(100));
    teller.tell(News::Step(Step::Silent));
    thread::sleep(SILENT);
}
