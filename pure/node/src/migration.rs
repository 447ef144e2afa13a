//! Directed key migration, DKM (DESIGN section 5): the node to which a mobile node goes has its first keys from the
//! node before, with a token that the mobile node has given it.
//!
//! ```text
//! mobile node -> new node    token, with the registration request
//! new node -> node before    KEY_REQUEST with the token, on their own IKE SA
//! node before -> new node    what it has itself of this slot, and the new one may have: to read, and nothing else
//! ```
//!
//! All that is beside the registration, which waits for none of it; and whatever is lost of it, what passes is merely not
//! read before the gateway's own keys come. A token is good for one slot with the keys of now, from one node, for one
//! other, once, and for some seconds ([`wire::ike::Token`]). So that no node has more than both ends let it have: the
//! mobile node says in the token which zones, by its licences, and the gateway in the grant.
//!
//! Keys that came so are kept for [`MIGRATION`], in which both ends leave the slot (`whereabouts.rs`). Who has given a token
//! leaves it in any case, and has new keys made if it stays where it is.

use crate::config::Role;
use crate::mobile_ip::{Attachment, Enclosed, NtpTime, Station};
use crate::node::Node;
use crate::transit::{both_spis, readable};
use crate::whereabouts::{Handover, MIGRATION};
use crate::{Event, HeldGrant};
use crypto::Secret;
use ike::{KeyRefusal, is_signed, is_slot, sign_token, token_key};
use model::{ChildSaId, CsaId, Grant, Identity, IkeSaId, Instant, Licence, Right, ZoneId};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::ike::{MAX_LICENCES, RefusalCode, Token};
use wire::mobile_ip::Enclosure;

/// In place of a grant's number: [`Event::Giving`] is about a token.
pub(crate) const TOKEN: u16 = 0;

/// So long a token is good, in seconds, by the clocks of whoever makes it and whoever takes it.
const GOOD_FOR: u32 = 10;
/// By how much those may differ, so that no token is good for ever that a wrong clock has made.
const APART: u32 = 10;
/// So many tokens that visitors have given us are remembered until their time is over.
const MOST_TOKENS: usize = 256;
/// So many that had their use are remembered of one composite SA: whoever has its keys can make any number.
const MOST_OF_ONE: usize = 8;
/// So many of one station, which has one for each tunnel of a mobile node.
const MOST_AT_STATION: usize = 8;

/// What it has to do with tokens.
#[derive(Default)]
pub(crate) struct Migration {
    /// The time of day when it was told.
    clock: Option<(NtpTime, Instant)>,
    /// The tokens by which keys went.
    spent: Tokens,
    /// Those by which we have asked.
    shown: Shown,
    /// Those that wait until it is recorded who gets them.
    unrecorded: Vec<Unrecorded>,
    counters: MigrationCounters,
}

/// How often keys went from node to node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationCounters {
    /// To another one, from us.
    pub given: u64,
    /// To us.
    pub taken: u64,
    /// Requests of others that were refused.
    pub refused: BTreeMap<NoKeys, u64>,
    /// Requests of ours that were refused or could not be made.
    pub missed: u64,
}

/// Why a node gives another one no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum NoKeys {
    /// There are none of that, or they may not be handed on.
    #[error("it asks for keys that we do not have, or may not hand on")]
    Unknown,
    /// The MAC is wrong.
    #[error("its token was not made by the mobile node, or not for it")]
    Wrong,
    /// The time of day is not known here.
    #[error("it has a token, and nobody has told us the time of day by which that is good")]
    NoClock,
    /// Its time has passed, or comes later than it can.
    #[error("its token is too old, or the mobile node's clock is not ours: compare both")]
    Stale,
    /// It came before.
    #[error("its token was used before")]
    Used,
    /// Both ends have to license whoever gets keys.
    #[error("it has a token, and the gateway or the mobile node has no licence for it to read")]
    NotLicensed,
    /// There are more tokens than are remembered.
    #[error("there are more tokens at once than can be remembered")]
    Busy,
}

impl NoKeys {
    /// As it is counted.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
            Self::NoClock => "no_clock",
            Self::Stale => "stale",
            Self::Used => "used",
            Self::NotLicensed => "not_licensed",
            Self::Busy => "busy",
        }
    }

    const fn code(self) -> RefusalCode {
        match self {
            Self::Unknown => RefusalCode::UNKNOWN_GRANT,
            Self::Wrong => RefusalCode::WRONG_TOKEN,
            Self::NoClock | Self::Stale => RefusalCode::STALE_TOKEN,
            Self::Used => RefusalCode::USED_TOKEN,
            Self::NotLicensed => RefusalCode::NOT_LICENSED,
            Self::Busy => RefusalCode::BUSY,
        }
    }
}

/// Tokens that had their use, by their nonces. None is forgotten before its time, so each composite SA has places of its own.
#[derive(Default)]
struct Tokens(BTreeMap<[u8; 16], Spent>);

/// A token that had its use.
struct Spent {
    expiry: u32,
    /// The composite SA whose keys went by it, as its gateway calls it.
    of: (String, CsaId),
}

impl Tokens {
    /// Takes one that is new, for keys of this grant.
    fn take(&mut self, token: &Token, held: &HeldGrant, seconds: u32) -> Result<(), NoKeys> {
        self.0
            .retain(|_, spent| seconds_left(spent.expiry, seconds).is_some());
        if self.0.contains_key(&token.nonce) {
            return Err(NoKeys::Used);
        }
        let of = (held.gateway.clone(), held.csa);
        let same = self.0.values().filter(|spent| spent.of == of);
        if same.count() >= MOST_OF_ONE {
            return Err(NoKeys::Busy);
        }
        let expiry = token.expiry;
        self.0.insert(token.nonce, Spent { expiry, of });
        Ok(())
    }
}

/// Tokens that visitors have given us, by their nonces. Nothing proves one but the answer of the node that it names, so a station
/// has a few, and those that were refused make room for others.
#[derive(Default)]
struct Shown(BTreeMap<[u8; 16], Asking>);

/// A token by which we have asked.
struct Asking {
    expiry: u32,
    station: Option<Station>,
    is_refused: bool,
}

impl Shown {
    /// Takes one that is new.
    fn take(
        &mut self,
        token: &Token,
        station: Option<Station>,
        seconds: u32,
    ) -> Result<(), NoKeys> {
        self.0
            .retain(|_, asking| seconds_left(asking.expiry, seconds).is_some());
        if self.0.contains_key(&token.nonce) {
            return Err(NoKeys::Used);
        }
        let at_station = self.0.values().filter(|asking| asking.station == station);
        if at_station.count() >= MOST_AT_STATION {
            return Err(NoKeys::Busy);
        }
        if self.0.len() >= MOST_TOKENS {
            let mut all = self.0.iter();
            let refused = all.find(|(_, asking)| asking.is_refused);
            let refused = refused.map(|(nonce, _)| *nonce).ok_or(NoKeys::Busy)?;
            self.0.remove(&refused);
        }
        let asking = Asking {
            expiry: token.expiry,
            station,
            is_refused: false,
        };
        self.0.insert(token.nonce, asking);
        Ok(())
    }

    /// One was refused.
    fn refuse(&mut self, token: &Token) {
        if let Some(asking) = self.0.get_mut(&token.nonce) {
            asking.is_refused = true;
        }
    }
}

/// A token for an agent that is asked to serve us.
struct Unrecorded {
    csa: CsaId,
    /// Whose slot it is.
    child: ChildSaId,
    at: Attachment,
    octets: Vec<u8>,
    told: Event,
}

impl Migration {
    pub(crate) const fn set_time(&mut self, time: NtpTime, now: Instant) {
        self.clock = Some((time, now));
    }

    /// What time it is, if a token is good at it. So nobody has it remembered for longer than that.
    fn timely(&self, token: &Token, now: Instant) -> Result<u32, NoKeys> {
        let seconds = self.seconds(now).ok_or(NoKeys::NoClock)?;
        let left = seconds_left(token.expiry, seconds).ok_or(NoKeys::Stale)?;
        match left <= GOOD_FOR + APART {
            true => Ok(seconds),
            false => Err(NoKeys::Stale),
        }
    }

    fn seconds(&self, now: Instant) -> Option<u32> {
        let (time, at) = self.clock?;
        Some(time.plus(now.since(at)).seconds())
    }
}

/// `None` if that is over. Seconds of NTP begin anew in 2036.
fn seconds_left(expiry: u32, seconds: u32) -> Option<u32> {
    let left = expiry.wrapping_sub(seconds);
    (left as i32 >= 0).then_some(left)
}

impl Node {
    /// How often keys went from node to node.
    pub const fn migrations(&self) -> &MigrationCounters {
        &self.migration.counters
    }

    /// Sees to tokens that are to be given or were; whether there were any.
    pub(crate) fn migrate(&mut self, now: Instant) -> bool {
        let Some(part) = &mut self.mobile_ip else {
            return false;
        };
        if let Some(at) = part.poll_asked() {
            self.give_tokens(at, now);
            return true;
        }
        let Some(Enclosed { station, octets }) = part.poll_enclosed() else {
            return false;
        };
        self.show_token(station, &octets, now);
        true
    }

    // A gateway.

    /// Which nodes may have what of a slot from its own: all others that have one, as far as they may read.
    pub(crate) fn onward(&self, peer: &str, child: Option<&str>) -> Vec<Licence> {
        let migrates = self.whereabouts.handover(peer) == Some(Handover::Dkm) && is_slot(child);
        let slots = self.peer(peer).filter(|_| migrates);
        let slots = slots.into_iter().flat_map(|peer| &peer.slots);
        let others = slots.filter(|slot| Some(slot.name.as_str()) != child);
        let licences = others.flat_map(|slot| {
            let licences = slot.zones.licences.iter();
            licences.filter(|licence| slot.is_of(&licence.node) && licence.right == Right::Read)
        });
        licences.take(MAX_LICENCES).cloned().collect()
    }

    /// The configuration may let others have keys from nodes.
    pub(crate) fn relicense_onward(&mut self, now: Instant) {
        let mut grants = std::mem::take(&mut self.grants);
        let told = grants.set_onward(|peer, child| self.onward(peer, child), now);
        self.grants = grants;
        told.iter().for_each(|name| self.distribute(name, now));
    }

    // A mobile node.

    /// Gives the agent that is asked to serve us tokens for what we go on in, if it is one that we license.
    fn give_tokens(&mut self, at: Attachment, now: Instant) {
        let peers = self.whereabouts.migrating();
        let peers: Vec<_> = peers
            .map(|(peer, child)| (peer.to_owned(), child))
            .collect();
        for (peer, child) in peers {
            for asker in self.whereabouts.nodes_at(&peer, at.care_of.into()) {
                self.give_token_for(at, (&peer, child), &asker, now);
            }
        }
    }

    fn give_token_for(
        &mut self,
        at: Attachment,
        (peer, child): (&str, ChildSaId),
        asker: &Identity,
        now: Instant,
    ) -> Option<()> {
        let (holder, token) = self.token(peer, child, asker, now)?;
        let octets = token.encode();
        if octets.len() > Enclosure::LONGEST {
            let why = format!("{holder} is too long a name for a token: its keys do not migrate");
            self.refused(Some(peer.to_owned()), why, now);
            return None;
        }
        let csa = self.grants.of(child)?;
        let (sa, meant) = (csa.name(), |zone: &&model::Zone| {
            token.zones.contains(&zone.id)
        });
        let zones = csa.agreement.zones.iter().filter(meant);
        let rights = zones.map(|zone| (*zone, Right::Read)).collect();
        let told = Event::TokenGiven {
            sa: sa.clone(),
            holder,
            asker: asker.clone(),
        };
        let unrecorded = Unrecorded {
            csa: sa.csa,
            child,
            at,
            octets,
            told,
        };
        if self.recording {
            self.events.push_back(Event::Giving {
                sa,
                node: asker.clone(),
                rights,
                lifetime: Duration::from_secs(GOOD_FOR.into()) + MIGRATION,
                grant: TOKEN,
            });
            self.migration.unrecorded.push(unrecorded);
        } else {
            self.enclose(unrecorded, now);
        }
        Some(())
    }

    /// A token for a node, by which it gets keys of a slot from the node of that.
    fn token(
        &mut self,
        peer: &str,
        child: ChildSaId,
        asker: &Identity,
        now: Instant,
    ) -> Option<(Identity, Token)> {
        let csa = self.grants.of(child).filter(|csa| !csa.closed)?;
        let peer = self.peer(peer)?;
        let before = peer.slot(csa.child.as_ref()?)?;
        let next = peer.slots.iter().find(|slot| slot.is_of(asker))?;
        let holder = before.nodes.first()?.clone();
        let readable = next.zones.licences.iter();
        let readable =
            readable.filter(|licence| licence.node == *asker && licence.right == Right::Read);
        let mut zones: Vec<_> = readable.map(|licence| licence.zone).collect();
        zones.sort();
        zones.dedup();
        let mut spis = [csa.inbound.spi, csa.outbound.spi];
        spis.sort();
        let seconds = self.migration.seconds(now)?;
        if holder == *asker || !zones.contains(&ZoneId::DESIGNATED) {
            return None;
        }
        let key = token_key(csa.tokens.as_ref()?, &holder);
        let mut token = Token {
            spis,
            nonce: self.rng.array(),
            expiry: seconds.wrapping_add(GOOD_FOR),
            zones,
            mac: [0; 16],
            holder: holder.clone(),
        };
        sign_token(&mut token, &key, asker);
        Some((holder, token))
    }

    /// Answers [`Event::Giving`] about a token. The request may have left by then: the token goes with the next.
    pub(crate) fn give_token(&mut self, csa: CsaId, recorded: Result<(), String>, now: Instant) {
        let mut waiting = self.migration.unrecorded.iter();
        let Some(index) = waiting.position(|one| one.csa == csa) else {
            return;
        };
        let unrecorded = self.migration.unrecorded.remove(index);
        if recorded.is_ok() {
            self.enclose(unrecorded, now);
        }
        self.drain(now);
    }

    fn enclose(&mut self, given: Unrecorded, now: Instant) {
        let child = self.children.get(&given.child);
        let peer = child.map(|child| child.peer.clone());
        if let (Some(part), Some(peer)) = (&mut self.mobile_ip, peer) {
            if !part.enclose(given.at, given.octets) {
                // The agent has answered, or is asked no more: nobody ever has this token.
                return;
            }
            self.whereabouts.note_token(&peer, given.child, now);
            self.events.push_back(given.told);
        }
    }

    // The node to which it goes.

    /// A visitor has given us a token: its node is asked, if it is a neighbour. A request that comes again has the
    /// same.
    pub(crate) fn show_token(&mut self, station: Option<Station>, octets: &[u8], now: Instant) {
        let Ok(token) = Token::decode(octets) else {
            return self.missed(
                None,
                "a visitor has given us what is no token".to_owned(),
                now,
            );
        };
        let mut peers = self.peers.iter();
        let neighbour =
            peers.find(|peer| (&peer.role, &peer.identity) == (&Role::Neighbour, &token.holder));
        let name = neighbour.map(|peer| peer.name.clone());
        let Some(sa) = name.as_deref().and_then(|name| self.established(name)) else {
            let why = format!(
                "a visitor comes from {}, of which we get no keys: there is no [neighbour.NAME] of it, or it is not up",
                token.holder
            );
            return self.missed(name, why, now);
        };
        let timely = self.migration.timely(&token, now);
        match timely.and_then(|seconds| self.migration.shown.take(&token, station, seconds)) {
            Err(NoKeys::Used) => {}
            Err(why) => self.missed(None, format!("a visitor: {why}"), now),
            Ok(()) => self.ike.request_keys(sa, token, now),
        }
    }

    /// A neighbour has answered.
    pub(crate) fn keys_answered(
        &mut self,
        sa: IkeSaId,
        token: &Token,
        answer: Result<Grant<Secret>, KeyRefusal>,
        now: Instant,
    ) {
        let Some(name) = self.name(sa) else { return };
        let taken = answer.map_err(|why| why.to_string());
        let taken = taken.and_then(|grant| self.borrow(sa, &name, token, &grant, now));
        match taken {
            Ok(held) => {
                self.migration.counters.taken += 1;
                self.events.push_back(Event::GrantHeld(held));
            }
            Err(why) => {
                self.migration.shown.refuse(token);
                self.missed(Some(name), why, now);
            }
        }
    }

    /// Takes keys that are those which were asked for, to read and for no longer than they are of use.
    fn borrow(
        &mut self,
        sa: IkeSaId,
        name: &str,
        token: &Token,
        grant: &Grant<Secret>,
        now: Instant,
    ) -> Result<HeldGrant, String> {
        let mut zones = grant.from_gateway.zones.iter();
        let asked = zones.all(|(zone, ..)| token.zones.contains(zone));
        // Nor is what a neighbour has lent renewed: its time counts from the first token.
        let lent = self.transit.holds(name, grant.csa);
        if both_spis(grant) != token.spis || !asked || lent {
            return Err("it gives keys that nobody has asked for".to_owned());
        }
        let grant = Grant {
            lifetime: grant.lifetime.min(MIGRATION),
            onward: None,
            ..readable(grant)
        };
        let holder = token.holder.clone();
        let installed = self
            .transit
            .install(sa, name.to_owned(), holder, grant, now);
        installed.map_err(|unusable| unusable.to_string())
    }

    fn missed(&mut self, peer: Option<String>, why: String, now: Instant) {
        self.migration.counters.missed += 1;
        self.refused(peer, why, now);
    }

    // The node before.

    /// A neighbour shows a token.
    pub(crate) fn keys_asked(&mut self, sa: IkeSaId, node: Identity, token: &Token, now: Instant) {
        let answer = match self.hand_on(&node, token, now) {
            Ok((held, grant)) => {
                self.migration.counters.given += 1;
                self.events.push_back(Event::KeysHandedOn { held, node });
                Ok(grant)
            }
            Err(why) => {
                *self.migration.counters.refused.entry(why).or_default() += 1;
                self.refused(self.name(sa), why.to_string(), now);
                Err(why.code())
            }
        };
        self.ike.answer_request(sa, token.nonce, &answer, now);
    }

    /// What a node gets that shows a token. Nothing is remembered of one that proves nothing.
    fn hand_on(
        &mut self,
        asker: &Identity,
        token: &Token,
        now: Instant,
    ) -> Result<(HeldGrant, Grant<Secret>), NoKeys> {
        let mut held = self.transit.onward(token.spis).peekable();
        held.peek().ok_or(NoKeys::Unknown)?;
        let mut proved = held.filter_map(|(held, grant)| {
            let onward = grant.onward.as_ref()?;
            is_signed(token, &onward.key, asker).then_some((held, grant, &onward.licences))
        });
        let (held, grant, licences) = proved.next().ok_or(NoKeys::Wrong)?;
        let seconds = self.migration.timely(token, now)?;
        let may_have = |zone: ZoneId| {
            let mut licences = licences.iter();
            token.zones.contains(&zone)
                && licences.any(|licence| (&licence.node, licence.zone) == (asker, zone))
        };
        if !may_have(ZoneId::DESIGNATED) {
            return Err(NoKeys::NotLicensed);
        }
        let mut given = Grant {
            lifetime: MIGRATION,
            onward: None,
            ..grant.clone()
        };
        for half in [&mut given.from_gateway, &mut given.to_gateway] {
            half.zones.retain(|(zone, ..)| may_have(*zone));
        }
        let held = held.clone();
        self.migration.spent.take(token, &held, seconds)?;
        Ok((held, given))
    }
}
