//! The daemons at both ends of a tunnel: Strata's or strongSwan's.

use super::configuration;
use super::contender::Contender;
use super::place::{FIRST, Network, PEER, Place, RENUMBERED, SECOND};
use super::protection::Protection;
use super::terms::Terms;
use super::trace::{AT_GATEWAY, AT_MOBILE, Request, Requests, Trace};
use crate::daemon::Daemon;
use crate::duo::add_inner_address;
use crate::pair::{self, TUNNEL_KEY};
use crate::process::{DEADLINE, until};
use crate::strongswan::Charon;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::time::Duration;

/// Daemons of the mobile node and of the gateway.
pub(super) enum Daemons {
    /// Without protection there are none.
    None,
    Strata([Daemon; 2]),
    Strongswan([Charon; 2]),
}

impl Daemons {
    /// Brings a tunnel up.
    pub fn start(network: &Network, terms: &Terms) -> Result<Self> {
        match (terms.protection, terms.contender) {
            (Protection::None, _) => Ok(Self::None),
            (_, Contender::Strata) => strata(network, terms).map(Self::Strata),
            (_, Contender::Strongswan) => strongswan(network, terms).map(Self::Strongswan),
        }
    }

    /// Ends the tunnel at both ends, until it is begun again.
    pub fn end(&self) -> Result<()> {
        match self {
            Self::None => bail!("there is no tunnel"),
            Self::Strata([mobile, gateway]) => {
                mobile.strata("down office")?;
                mobile.wait_until("status", DEADLINE, pair::is_down)?;
                let is_gone = |status: &Value| pair::children(status).is_empty();
                gateway.wait_until("status", DEADLINE, is_gone).map(drop)
            }
            Self::Strongswan([mobile, _]) => mobile.terminate().map(drop),
        }
    }

    /// Begins the tunnel again, and returns when it is up.
    pub fn begin(&self) -> Result<()> {
        match self {
            Self::None => bail!("there is no tunnel"),
            Self::Strata([mobile, _]) => mobile.strata("up office --wait").map(drop),
            Self::Strongswan([mobile, _]) => mobile.initiate().map(drop),
        }
    }

    /// Returns the log of strongSwan at the mobile node.
    pub fn log(&mut self) -> String {
        match self {
            Self::None | Self::Strata(_) => String::new(),
            Self::Strongswan([mobile, _]) => mobile.process().log(),
        }
    }

    /// Waits until this many paths of Strata carry packets, and work at both ends.
    pub fn await_live_paths(&self, number: usize) -> Result<()> {
        let Self::Strata(daemons) = self else {
            bail!("only Strata has several live paths");
        };
        for daemon in daemons {
            until("live paths", DEADLINE, || {
                let paths: Value = serde_json::from_str(&daemon.ask("paths", json!({}))?)?;
                let live = paths["paths"]["tunnels"][0]["live"].as_array();
                let live = live.into_iter().flatten();
                let working = live.filter(|path| path["works"] == true).count();
                Ok((working == number).then_some(()))
            })?;
        }
        Ok(())
    }

    /// Tells Strata to move the tunnel. No process is started for it.
    pub fn ask_to_move(&self, to: Place, soft: bool) -> Result<()> {
        let Self::Strata([mobile, _]) = self else {
            bail!("strongSwan has no command that moves a tunnel");
        };
        let words = json!({"peer": "office", "from": to.address, "soft": soft});
        mobile.ask("move", words).map(drop)
    }

    /// Returns true if both ends of Strata have one IKE SA with one child SA, and the mobile node
    /// sends from this place.
    pub fn is_alone_at(&self, place: Place) -> Result<bool> {
        let Self::Strata(daemons) = self else {
            bail!("strongSwan clones no IKE SA");
        };
        for daemon in daemons {
            let status: Value = serde_json::from_str(&daemon.ask("status", json!({}))?)?;
            if pair::children(&status).len() != 1 || pair::peer(&status)["ike_sas"] != 1 {
                return Ok(false);
            }
        }
        let paths: Value = serde_json::from_str(&daemons[0].ask("paths", json!({}))?)?;
        let local = paths["paths"]["tunnels"][0]["local"].as_str();
        let address = format!("{}:4500", place.address);
        Ok(local == Some(address.as_str()))
    }

    /// Returns the requests of a move. Strata sends UPDATE_SA_ADDRESSES at once, and its gateway
    /// checks the address. strongSwan's log says what each request contains; `said` is its length
    /// before the move.
    pub fn requests(&mut self, trace: &Trace, event: Duration, said: usize) -> Requests {
        match self {
            Self::None => return Requests::default(),
            Self::Strata(_) => {}
            Self::Strongswan(_) => return in_log(self.log().get(said..).unwrap_or_default()),
        }
        let request = |end: usize, from: &[&str]| {
            let from: Vec<_> = from.iter().filter_map(|one| one.parse().ok()).collect();
            let ids = trace.requests(end, &from, event);
            ids.first().map(|id| Request { end, id: *id })
        };
        let places = [FIRST, SECOND, RENUMBERED].map(|place| place.address);
        Requests {
            update: request(AT_MOBILE, &places),
            check: request(AT_GATEWAY, &[PEER]),
        }
    }
}

/// Finds the requests of a move in charon's log. A check is the request before the one with the
/// update.
fn in_log(log: &str) -> Requests {
    const GENERATING: &str = "generating INFORMATIONAL request ";
    let mut requests = Requests::default();
    for line in log.lines() {
        let Some((_, rest)) = line.split_once(GENERATING) else {
            continue;
        };
        let id = rest.split(' ').next().and_then(|id| id.parse().ok());
        let request = id.map(|id| Request { end: AT_MOBILE, id });
        let of = if rest.contains("N(UPD_SA_ADDR)") {
            &mut requests.update
        } else if requests.update.is_none() {
            &mut requests.check
        } else {
            continue;
        };
        *of = of.or(request);
    }
    requests
}

fn strata(network: &Network, terms: &Terms) -> Result<[Daemon; 2]> {
    let [near, far] = configuration::strata(terms.protection, terms.more)?;
    for host in [&network.mobile, &network.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    let far = network.gateway.stratad(&far)?;
    let near = network.mobile.stratad(&near)?;
    for daemon in [&near, &far] {
        daemon.wait_until("status", DEADLINE, pair::is_up)?;
    }
    Ok([near, far])
}

fn strongswan(network: &Network, terms: &Terms) -> Result<[Charon; 2]> {
    let near = configuration::strongswan(terms.protection)?;
    add_inner_address(&network.mobile, "10.1.0.2/32")?;
    add_inner_address(&network.gateway, "10.8.0.1/32")?;
    let far = network.gateway.charon(&near.reversed());
    let far = far.context("strongSwan at the gateway")?;
    let near = network.mobile.charon(&near);
    let near = near.context("strongSwan at the mobile node")?;
    near.initiate()?;
    Ok([near, far])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_by_what_the_log_says_of_them() {
        let log = "\
            14[ENC] generating INFORMATIONAL request 2 [ ]\n\
            06[IKE] retransmit 1 of request with message ID 2\n\
            08[ENC] generating INFORMATIONAL request 3 [ N(UPD_SA_ADDR) N(NATD_S_IP) \
            N(NATD_D_IP) N(COOKIE2) N(NO_ADD_ADDR) ]\n\
            09[ENC] generating INFORMATIONAL response 0 [ N(COOKIE2) ]\n\
            10[ENC] generating INFORMATIONAL request 4 [ N(NO_ADD_ADDR) ]\n";
        let request = |id| Some(Request { end: AT_MOBILE, id });
        let expected = Requests {
            update: request(3),
            check: request(2),
        };
        assert_eq!(in_log(log), expected);
        assert_eq!(in_log(""), Requests::default());
    }
}
