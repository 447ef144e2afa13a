//! A bystander: an honest peer of the same host, which has to notice nothing of the insider.
//!
//! It has the insider's role towards the host. Its IKE SA is up before the insider sends anything,
//! with what the role brings: a child SA, an inner address, a grant. While the insider sends, it
//! only answers and sends liveness checks.

use crate::scene::{self, HOST, HOST_ID, Scene, between, engine, grant};
use ike::{Addressing, Engine, Event, FRAGMENT, PeerRole};
use model::{ChildSaId, IkeSaId, InnerAddresses, Instant, Lease, Path, PeerId};
use std::net::Ipv4Addr;

/// The bystander, to the host.
pub const ID: PeerId = PeerId(2);

/// Identity.
pub const IDENTITY: &str = "bystander.example.net";

/// Pre-shared key with the host.
pub const PSK: &str = "unknown to the insider";

/// Last octet of its address in 192.0.2.0/24, and of the host's.
const HERE: u8 = 9;
const THERE: u8 = 2;

/// The inner address that one of the two assigns to the other.
const INNER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 77);

/// The bystander.
pub struct Bystander {
    engine: Engine,
    role: PeerRole,
    /// Its IKE SA at the host.
    pub sa: IkeSaId,
    /// Its child SAs at the host.
    children: Vec<ChildSaId>,
    /// Its state at both ends before the insider sends.
    before: Vec<String>,
    /// What either end reported about it since then.
    noted: Vec<String>,
    /// Number of its messages that the host acted upon since then.
    taken: u64,
    /// True if it receives and sends nothing any more.
    pub is_silent: bool,
}

impl Bystander {
    /// Connects with a host that has not begun anything yet.
    pub fn join(scene: Scene, host: &mut Engine) -> Self {
        let [its_role, role] = [scene.host(), scene.insider()];
        let peer = scene.peer(HOST_ID, HOST, its_role.clone(), &[None], Some(PSK));
        let mut engine = engine(IDENTITY, vec![peer], None, FRAGMENT, 3);
        for (lender, role, identity) in [
            (&mut *host, &role, IDENTITY),
            (&mut engine, &its_role, HOST),
        ] {
            if lends(role) {
                lender.restore_leases(vec![lease(identity)]);
            }
        }
        let begun = match scene.insider_begins {
            true => engine.initiate(HOST_ID, between(HERE, THERE, ike::PORT), Instant::ZERO),
            false => host.initiate(ID, between(THERE, HERE, ike::PORT), Instant::ZERO),
        };
        begun.expect("the peer is configured");
        let mut bystander = Self {
            engine,
            role,
            sa: IkeSaId(0),
            children: Vec::new(),
            before: Vec::new(),
            noted: Vec::new(),
            taken: 0,
            is_silent: false,
        };
        bystander.talk(host, Instant::ZERO);
        let sa = host.sas_of(ID).next();
        bystander.sa = sa.expect("its IKE SA is up").id;
        bystander.children = host.children(bystander.sa);
        if matches!(bystander.role, PeerRole::Gateway | PeerRole::Licensed) {
            bystander.renew(host, Instant::ZERO);
            bystander.talk(host, Instant::ZERO);
        }
        bystander.before = bystander.state(host);
        let has_address = bystander.before[0].contains(&INNER.to_string());
        assert_eq!(has_address, lends(&bystander.role) || lends(&its_role));
        bystander.noted.clear();
        bystander.taken = 0;
        bystander
    }

    /// Returns true if a message of the host goes to it.
    pub fn is_at(path: Path) -> bool {
        path.remote.ip() == between(THERE, HERE, ike::PORT).remote.ip()
    }

    /// Handles a message of the host.
    pub fn hear(&mut self, path: Path, message: &[u8], now: Instant) {
        if self.is_silent {
            return;
        }
        self.engine.handle_datagram(path.reversed(), message, now);
        while let Some(event) = self.engine.poll_event() {
            if let Event::Granted { sa, grant, .. } = &event {
                let (csa, number) = (grant.csa, grant.grant);
                self.engine.answer_grant(*sa, csa, number, None, now);
            }
            self.noted.push(format!("{event:?}"));
        }
    }

    /// Sends its next message to the host. Returns true if there was one.
    pub fn speak(&mut self, host: &mut Engine, now: Instant) -> bool {
        let Some((path, message)) = scene::sent(&mut self.engine) else {
            return false;
        };
        if !self.is_silent {
            let before = host.counters().taken;
            host.handle_datagram(path.reversed(), &message, now);
            self.taken += host.counters().taken - before;
        }
        true
    }

    /// Records an event of the host if it names the bystander or its SAs. Returns false for any
    /// other one.
    pub fn note(&mut self, event: &Event) -> bool {
        let text = format!("{event:?}");
        let mut names = vec![format!("{ID:?}"), format!("{:?}", self.sa)];
        names.extend(self.children.iter().map(|child| format!("{child:?}")));
        let is_its = names.iter().any(|name| text.contains(name));
        self.noted.extend(is_its.then_some(text));
        is_its
    }

    /// Returns the next time at which it has something to do.
    pub fn due(&self) -> Option<Instant> {
        let due = self.engine.poll_timeout().filter(|_| !self.is_silent);
        due.map(|deadline| deadline.at)
    }

    /// Handles its due timeouts.
    pub fn tick(&mut self, now: Instant) {
        if self.due().is_some_and(|at| at <= now) {
            self.engine.handle_timeout(now);
        }
    }

    /// Returns the number of its messages that the host acted upon.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Errors if anything about it has changed, or if a renewal of its keys or grant fails.
    pub fn check(&mut self, host: &mut Engine, now: Instant) -> Result<(), String> {
        if !self.noted.is_empty() {
            return Err(format!("the bystander was touched: {:#?}", self.noted));
        }
        let state = self.state(host);
        if state != self.before {
            let before = &self.before;
            return Err(format!("the bystander had {before:#?}, and has {state:#?}"));
        }
        self.renew(host, now);
        self.talk(host, now);
        let renewals = ["ChildRekeyed", "GrantAccepted", "IkeRekeyed"];
        let is_renewal = |event: &String| renewals.iter().any(|name| event.starts_with(name));
        match self.noted.iter().any(is_renewal) {
            true => Ok(()),
            false => Err(format!("the bystander renewed nothing: {:#?}", self.noted)),
        }
    }

    /// Renews what its role has: the child SA, the grant, or the IKE SA alone.
    fn renew(&mut self, host: &mut Engine, now: Instant) {
        let own = self.engine.sas().next();
        let Some(own) = own else { return };
        match self.role {
            PeerRole::Vpn { .. } => {
                for child in own.children {
                    self.engine.rekey_child(own.id, child, now);
                }
            }
            PeerRole::Gateway => self.engine.distribute(own.id, grant(), now),
            PeerRole::Licensed => host.distribute(self.sa, grant(), now),
            PeerRole::Neighbour => self.engine.rekey_ike(own.id, now),
        }
    }

    /// Exchanges all pending messages with the host, whose other peers send nothing meanwhile.
    fn talk(&mut self, host: &mut Engine, now: Instant) {
        loop {
            if let Some((path, message)) = scene::sent(host) {
                self.hear(path, &message, now);
            } else if !self.speak(host, now) {
                return;
            }
            while let Some(event) = host.poll_event() {
                if let Event::Granted { sa, grant, .. } = &event {
                    host.answer_grant(*sa, grant.csa, grant.grant, None, now);
                }
                self.noted.push(format!("{event:?}"));
            }
        }
    }

    /// Returns its state at both ends: IKE SAs with their keys, child SAs, addresses and leases,
    /// and the number of messages that it dropped.
    fn state(&self, host: &Engine) -> Vec<String> {
        let mut state = Vec::new();
        for (engine, peer) in [(host, ID), (&self.engine, HOST_ID)] {
            for sa in engine.sas_of(peer) {
                let keys = engine.key_log(sa.id).map(|keys| {
                    let ours = [&keys.sk_ei, &keys.sk_er].map(|key| key.expose().to_vec());
                    (keys.spi_i, keys.spi_r, ours)
                });
                state.push(format!(
                    "{:?} {:?} since {:?} on {:?}, {:?}, children {:?}, keys {keys:?}",
                    sa.id, sa.state, sa.since, sa.path, sa.addresses, sa.children
                ));
            }
        }
        let leases = host.leases().chain(self.engine.leases());
        let leases = leases.filter(|lease| lease.addresses.v4 == Some(INNER));
        state.extend(leases.map(|lease| format!("{lease:?}")));
        let dropped: u64 = self.engine.counters().drops().map(|(_, count)| count).sum();
        state.push(format!("{dropped} dropped"));
        state
    }
}

/// Returns true for the role of a peer that is assigned an address.
fn lends(role: &PeerRole) -> bool {
    matches!(
        role,
        PeerRole::Vpn {
            addressing: Addressing::Lent(_),
            ..
        }
    )
}

/// Returns a lease, so that the other peers get the addresses that they would get without it.
fn lease(identity: &str) -> Lease {
    Lease {
        pool: scene::POOL.to_owned(),
        identity: identity.parse().expect("any text is an identity"),
        addresses: InnerAddresses {
            v4: Some(INNER),
            v6: None,
        },
        free_from: None,
    }
}
