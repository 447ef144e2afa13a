//! Transport and BEET mode with strongSwan, on a Linux kernel.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS, expect_refusal};
use lab::guest::{self, Guest};
use lab::origin::Origin;
use lab::pair::{children, is_up};
use lab::strongswan::{Charon, Connection};
use lab::transfer::round_trip;

const OCTETS: u64 = 1_000_000;

/// A mode with its inner addresses.
struct Terms {
    mode: &'static str,
    /// Inner addresses: ours, and the guest's.
    inside: [&'static str; 2],
}

const TRANSPORT: Terms = Terms {
    mode: "transport",
    inside: ["192.0.2.1", "192.0.2.2"],
};

const BEET: Terms = Terms {
    mode: "beet",
    inside: ["10.1.0.1", "10.9.0.1"],
};

impl Terms {
    /// Starts both daemons, not connected yet; charon's mode is `theirs`.
    fn start(&self, theirs: &str) -> Result<(Duo, Daemon, Charon)> {
        let guest = Guest::boot()?;
        let duo = Duo::with("mode", None, Some(&guest))?;
        let [ours, inside] = self.inside.map(|address| format!("{address}/32"));
        if self.mode == "beet" {
            guest.run(&format!("ip addr add {inside} dev lo"))?;
        }
        guest.echo()?;
        let own = match self.mode {
            "transport" => "addresses = [\"10.1.0.1/32\"]\n",
            _ => "",
        };
        let configuration = OURS
            .replace(own, "")
            .replace(
                "local = [\"10.1.0.1/32\"]",
                &format!("local = [\"{ours}\"]"),
            )
            .replace("10.2.0.0/24", &inside);
        let mode = format!("mode = \"{}\"\n", self.mode);
        let connection = Connection {
            mode: theirs,
            local: &inside,
            remote: &ours,
            ..THEIRS
        };
        let (strata, charon) =
            duo.start_with(&(configuration + &mode), Origin::Guest(guest), &connection)?;
        Ok((duo, strata, charon))
    }

    /// Fails unless octets return in both roles, also after a rekey, and the kernel's ESP carried
    /// them in this mode.
    fn carries(&self) -> Result<()> {
        for ours in [true, false] {
            let (duo, strata, charon) = self.start(self.mode)?;
            match ours {
                true => strata.strata("up theirs --wait").map(drop)?,
                false => charon.initiate().map(drop)?,
            }
            let status = strata.wait_until("status", DEADLINE, is_up)?;
            ensure!(children(&status)[0]["mode"] == self.mode, "{status}");
            self.carry(&duo, &charon)?;
            charon.rekey()?;
            self.carry(&duo, &charon)?;
        }
        Ok(())
    }

    fn carry(&self, duo: &Duo, charon: &Charon) -> Result<()> {
        let guest = charon.guest().context("charon is not in a guest")?;
        let before = guest.carried()?;
        round_trip(&duo.ours, &format!("{}:7", self.inside[1]), OCTETS)?;
        let carried = guest::growth(&before, &guest.carried()?);
        ensure!(
            carried.len() == 2 && carried.values().all(|count| *count >= OCTETS),
            "of {OCTETS} octets the kernel's ESP carried {carried:?}"
        );
        let states = guest.run("ip xfrm state")?;
        let modes = states.matches(" mode ").count();
        let same = states.matches(&format!(" mode {}", self.mode)).count();
        ensure!(modes >= 2 && modes == same, "{states}");
        Ok(())
    }
}

#[lab::test(repeated)]
fn transport_mode_carries_octets_each_way_whoever_begins() -> Result<()> {
    TRANSPORT.carries()
}

#[lab::test(repeated)]
fn strongswan_makes_a_tunnel_of_it_and_is_left() -> Result<()> {
    let (_duo, strata, charon) = TRANSPORT.start("tunnel")?;
    strata.strata("up theirs")?;
    expect_refusal(&strata, &["transport"])?;
    stays_away(&charon)
}

#[lab::test(repeated)]
fn strongswan_asks_for_a_tunnel_and_is_refused() -> Result<()> {
    let (_duo, strata, charon) = TRANSPORT.start("tunnel")?;
    ensure!(charon.initiate().is_err(), "it is up");
    expect_refusal(&strata, &["the peer requests tunnel mode", "transport"])?;
    stays_away(&charon)
}

/// strongSwan does not negotiate its BEET mode in either role, and no other tunnel results.
#[lab::test(repeated)]
fn beet_mode_is_not_asked_of_strongswan_which_answers_its_own_kind_only() -> Result<()> {
    let (_duo, strata, charon) = BEET.start("beet")?;
    strata.strata("up theirs")?;
    expect_refusal(&strata, &["USE_BEET_MODE"])?;
    ensure!(charon.initiate().is_err(), "it is up");
    stays_away(&charon)
}

/// Waits until charon has no SA left.
fn stays_away(charon: &Charon) -> Result<()> {
    let none = |sas: &str| !sas.contains("state=INSTALLED");
    charon.wait_until(DEADLINE, none).map(drop)
}
