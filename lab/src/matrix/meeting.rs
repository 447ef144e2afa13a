//! The test of a cell: a tunnel comes up, carries octets each way, survives an event and carries
//! octets again.

use super::cell::{Cell, Event, Path, Peer};
use crate::daemon::Daemon;
use crate::duo::{DEADLINE, Duo, OURS, Side, THEIRS, certified};
use crate::guest::Guest;
use crate::origin::Origin;
use crate::pair::{children, is_down, is_up};
use crate::process::until;
use crate::strongswan::{Charon, Connection, Ppk};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::thread;

/// Octets carried each way, before the event and after it.
const OCTETS: u64 = 1_000_000;

/// Rekeys of each SA by each end in a storm.
const STORM: usize = 4;

/// Commands that rekey both SAs from our end.
const REKEYS: [&str; 2] = ["rekey theirs", "rekey theirs --ike"];

/// 256 bits in base64.
const PPK_KEY: &str = "k1l0dmVzdGVyIGlzIG5vdCBhIHF1YW50dW0ga2V5ISE=";
const PPK: Ppk<'_> = Ppk {
    id: "office2026",
    secret: PPK_KEY,
    named: true,
    required: true,
};

/// Both connected ends.
struct Meeting<'c> {
    cell: &'c Cell,
    duo: Duo,
    strata: Daemon,
    charon: Charon,
}

/// Runs a cell to its end. Returns the witness: the program whose listing of the SAs was checked,
/// and the kernel whose ESP counted the octets, if any. A spare guest from an earlier cell is used,
/// and a working guest is left as the spare.
///
/// # Errors
/// The tunnel did not come up or stay up, octets did not arrive, or charon's listing of the SAs
/// lacks the cell's parameters.
pub fn meet(cell: &Cell, spare: &mut Option<Guest>) -> Result<String> {
    let origin = origin(cell.peer, spare)?;
    let hidden = (cell.path == Path::Nat).then_some(cell.begins);
    let duo = Duo::with("matrix", hidden, origin.guest())?;
    if let Some(key) = cell.proof.certificate {
        duo.certify(key)?;
    }
    duo.ours.secret("theirs.ppk", PPK_KEY)?;
    let (ike, esp) = proposals(cell);
    let theirs = connection(cell, &ike, &esp);
    let (strata, charon) = duo.start_with(&configuration(cell), origin, &theirs)?;
    let mut meeting = Meeting {
        cell,
        duo,
        strata,
        charon,
    };
    let witness = match meeting.play() {
        Ok(witness) => witness,
        Err(error) => return Err(error.context(meeting.logs())),
    };
    if let Some(guest) = meeting.charon.into_guest() {
        guest.clear()?;
        *spare = Some(guest);
    }
    Ok(witness)
}

fn origin(peer: Peer, spare: &mut Option<Guest>) -> Result<Origin> {
    match peer {
        Peer::Installed => Ok(Origin::Installed),
        Peer::Newer => Ok(Origin::newer()?),
        Peer::Kernel => {
            let guest = spare.take().map_or_else(Guest::boot, Ok)?;
            Ok(Origin::Guest(guest))
        }
    }
}

/// Returns charon's proposals for the IKE SA and for its child.
fn proposals(cell: &Cell) -> (String, String) {
    let (suite, exchange) = (cell.suite.word, cell.exchange);
    let ike = format!("{suite}-prfsha256-{}", exchange.theirs);
    let esp = match cell.pfs {
        true => format!("{suite}-{}", exchange.theirs),
        false => suite.to_owned(),
    };
    (ike, esp)
}

fn connection<'a>(cell: &Cell, ike: &'a str, esp: &'a str) -> Connection<'a> {
    let elsewhere = cell.begins == Side::Theirs && cell.path == Path::Nat;
    Connection {
        address: match elsewhere || is_awaited(cell) {
            true => "%any",
            false => THEIRS.address,
        },
        psk: THEIRS.psk.filter(|_| cell.proof.certificate.is_none()),
        ppk: cell.proof.ppk.then_some(PPK),
        ike,
        esp,
        fragment: match cell.path {
            Path::Narrow => 600,
            Path::Wire | Path::Nat => THEIRS.fragment,
        },
        ..THEIRS
    }
}

fn configuration(cell: &Cell) -> String {
    let mut ours = match cell.proof.certificate {
        Some(_) => certified(OURS),
        None => OURS.to_owned(),
    };
    if is_awaited(cell) {
        ours = ours.replace("address = \"192.0.2.2\"\n", "");
        ours = ours.replace("start = \"manual\"\n", "");
    }
    let (suite, exchange, pfs) = (cell.suite.word, cell.exchange.ours, cell.pfs);
    ours += &format!("suite = \"{suite}\"\n{exchange}\npfs = {pfs}\n");
    if cell.proof.ppk {
        ours += "ppk = { id = \"office2026\", key = \"theirs.ppk\", required = true }\n";
    }
    if cell.path == Path::Narrow {
        ours += "[listen]\nfragment = 600\n";
    }
    ours
}

/// Returns true if our configuration has no address for charon, because charon moves, or because
/// charon alone reconnects after a delete.
fn is_awaited(cell: &Cell) -> bool {
    cell.begins == Side::Theirs && matches!(cell.event, Event::Move | Event::Deletes)
}

impl Meeting<'_> {
    fn play(&mut self) -> Result<String> {
        self.connect()?;
        self.duo.carry(OCTETS)?;
        match self.cell.event {
            Event::Rekeys => self.rekeys()?,
            Event::Storm => self.storm()?,
            Event::Move => self.moves()?,
            Event::Deletes => self.deletes()?,
        }
        self.duo.carry(OCTETS)?;
        self.agree()?;
        self.witness()
    }

    /// Returns the logs and SAs of both ends, for a failed cell.
    fn logs(&mut self) -> String {
        let status = self.strata.strata("status");
        let sas = self.charon.sas();
        let (strata, charon) = (self.strata.process().log(), self.charon.process().log());
        format!("strata:\n{strata}\n{status:?}\ncharon:\n{charon}\n{sas:?}\n")
    }

    fn connect(&self) -> Result<()> {
        match self.cell.begins {
            Side::Ours => self.strata.strata("up theirs --wait").map(drop)?,
            Side::Theirs => self.charon.initiate().map(drop)?,
        }
        self.strata.wait_until("status", DEADLINE, is_up).map(drop)
    }

    fn rekeys(&mut self) -> Result<()> {
        self.charon.rekey()?;
        self.wait_for_new_keys(1)?;
        for words in REKEYS {
            self.strata.strata(words)?;
        }
        self.wait_for_new_keys(2)
    }

    fn wait_for_new_keys(&mut self, times: usize) -> Result<()> {
        for keys in ["IKE SA rekeyed", "tunnel rekeyed"] {
            until(keys, DEADLINE, || {
                let log = self.strata.process().log();
                Ok((log.matches(keys).count() >= times).then_some(()))
            })?;
        }
        Ok(())
    }

    /// Rekeys from both ends at once. Some requests collide and some are refused temporarily. In
    /// the end there must be one tunnel, and it must carry octets.
    fn storm(&mut self) -> Result<()> {
        let (strata, charon) = (&self.strata, &self.charon);
        thread::scope(|scope| {
            let theirs = scope.spawn(|| (0..STORM).filter(|_| charon.rekey().is_ok()).count());
            let ours = REKEYS.iter().cycle().take(REKEYS.len() * STORM);
            let ours = ours.filter(|words| strata.strata(words).is_ok());
            let asked = ours.count() + theirs.join().expect("a client returns its errors");
            ensure!(asked > STORM, "only {asked} requests were taken");
            Ok(())
        })?;
        self.wait_for_new_keys(1)
    }

    /// Moves the initiator to another address of the same network. charon notices by itself once
    /// its old address is gone.
    fn moves(&mut self) -> Result<()> {
        let network = match self.cell.path {
            Path::Nat => "10.3.0",
            Path::Wire | Path::Narrow => "192.0.2",
        };
        let add = format!("ip addr add {network}.11/24 dev eth0");
        match self.cell.begins {
            Side::Ours => {
                self.duo.ours.run(&add)?;
                let words = format!("move theirs --from {network}.11");
                self.strata.strata(&words)?;
            }
            Side::Theirs => {
                let promote = "net.ipv4.conf.eth0.promote_secondaries";
                self.duo.theirs.sysctl(promote, "1")?;
                self.charon.run(&add)?;
                let delete = format!("ip addr del {network}.2/24 dev eth0");
                self.charon.run(&delete)?;
                if self.cell.path == Path::Nat {
                    self.charon.run("ip route replace default via 10.3.0.1")?;
                }
            }
        }
        self.strata.process().wait_for_log("tunnel moved", DEADLINE)
    }

    fn deletes(&mut self) -> Result<()> {
        let (strata, charon) = (&self.strata, &self.charon);
        thread::scope(|scope| {
            let theirs = scope.spawn(|| charon.terminate());
            let ours = strata.strata("down theirs");
            // The SA may be gone before charon is asked.
            let _ = theirs.join().expect("a client returns its errors");
            ours
        })?;
        strata.wait_until("status", DEADLINE, is_down)?;
        charon.wait_until(DEADLINE, |sas| {
            sas.trim().is_empty() || !sas.contains("state=")
        })?;
        if self.cell.begins == Side::Theirs {
            // Otherwise our end would refuse the initiator.
            strata.strata("up theirs")?;
        }
        self.connect()
    }

    /// Checks that both ends have one IKE SA with one child, with the cell's parameters.
    fn agree(&self) -> Result<()> {
        let Cell {
            suite, exchange, ..
        } = self.cell;
        let sas = self.charon.wait_until(DEADLINE, |sas| {
            sas.matches("reqid=").count() == 1 && sas.matches("state=ESTABLISHED").count() == 1
        })?;
        // Attempts that had no answer in time stay half open at charon for a while.
        let mut each = sas.lines();
        let up = each.find(|sa| sa.contains("state=ESTABLISHED"));
        let up = up.unwrap_or_default();
        let agreed = up.matches(suite.agreed).count() == 2 && up.contains(exchange.agreed);
        ensure!(agreed, "something else was agreed: {sas}");
        let status = |status: &Value| is_up(status) && current(status) == 1;
        self.strata.wait_until("status", DEADLINE, status)?;
        Ok(())
    }

    fn witness(&self) -> Result<String> {
        let charon = format!("strongSwan {}", self.charon.version()?);
        match self.charon.guest() {
            None => Ok(charon),
            Some(guest) => {
                self.duo.carry_by_kernel(guest, OCTETS)?;
                Ok(format!("{charon}, ESP of Linux {}", guest.version()?))
            }
        }
    }
}

/// Returns the number of children that are not being replaced.
fn current(status: &Value) -> usize {
    let children = children(status).into_iter();
    children.filter(|child| child["draining"] == false).count()
}
