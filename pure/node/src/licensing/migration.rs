//! Directed key migration, DKM (DESIGN section 5): the node that a mobile node moves to fetches its
//! first keys from the previous node, with a token from the mobile node.
//!
//! ```text
//! mobile node -> new node    token, with the registration request
//! new node -> node before    KEY_REQUEST with the token, on their own IKE SA
//! node before -> new node    what it has itself of this slot, and the new one may have: to read, and nothing else
//! ```
//!
//! The exchange runs in parallel with the registration, which does not wait for it. If a message is
//! lost, packets stay unread until the gateway's own keys arrive. A token is valid for one slot
//! with its current keys, from one node to one other, once, and for a few seconds
//! ([`wire::ike::Token`]). No node receives more than both ends allow: the mobile node lists the
//! zones in the token, by its licences, and the gateway lists them in the grant.
//!
//! Keys received this way are kept for [`MIGRATION`]. In this time both ends leave the slot
//! (`placement.rs`). An end that issued a token leaves the slot in any case, and rekeys if it
//! stays in place.

use super::grants::Csa;
use super::placement::MIGRATION;
use crate::config::Role;
use crate::effects::{IkeCommand, Turn};
use crate::event::TOKEN;
use crate::mobile_ip::{Attachment, NtpTime, Station};
use crate::transit::{Transit, both_spis, readable};
use crate::tunnels::Tunnels;
use crate::{Cause, Event, HeldGrant, NoKeys};
use crypto::Secret;
use ike::{KeyRefusal, is_signed, sign_token, token_key};
use model::{
    ChildSaId, CsaId, Grant, Identity, IkeSaId, Instant, PeerId, Right, Zone, ZoneId, most_crowded,
};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::ike::Token;
use wire::mobile_ip::Enclosure;

/// Validity of a token in seconds, by the clocks of its issuer and its recipient.
const GOOD_FOR: u32 = 10;
/// Maximum difference of these clocks in seconds, so that a wrong clock cannot issue a token of
/// unlimited validity.
const APART: u32 = 10;
/// Maximum number of tokens from visitors that are remembered until they expire.
const MOST_TOKENS: usize = 256;
/// Maximum number of used tokens remembered per composite SA: a holder of its keys can create any
/// number.
const MOST_OF_ONE: usize = 8;
/// Maximum number of tokens per station, which has one for each tunnel of a mobile node.
const MOST_AT_STATION: usize = 8;

/// State of key migration, in all roles.
#[derive(Default)]
pub(crate) struct Migration {
    /// Time of day, and the instant at which it was set.
    clock: Option<(NtpTime, Instant)>,
    /// Tokens that we served keys for.
    spent: Tokens,
    /// Tokens that we presented to other nodes.
    shown: Shown,
    /// Tokens that wait until their recipient is recorded.
    unrecorded: Vec<Given>,
    counters: MigrationCounters,
}

/// Counters of key migration between nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationCounters {
    /// Keys sent to another node.
    pub given: u64,
    /// Keys received from another node.
    pub taken: u64,
    /// Requests of others that were refused, by reason.
    pub refused: BTreeMap<NoKeys, u64>,
    /// Requests of ours that were refused or could not be sent.
    pub missed: u64,
}

/// Used tokens, by nonce. No token is forgotten before it expires, so each composite SA has a limit
/// of its own.
#[derive(Default)]
struct Tokens(BTreeMap<[u8; 16], Spent>);

/// A token that was used.
struct Spent {
    expiry: u32,
    /// Composite SA whose keys were sent, by the gateway and its identifier.
    of: (PeerId, CsaId),
}

impl Tokens {
    /// Records the use of a token for the keys of a grant. Errors if the token was used before or
    /// the limit is reached.
    fn take(&mut self, token: &Token, held: &HeldGrant, seconds: u32) -> Result<(), NoKeys> {
        self.0
            .retain(|_, spent| seconds_left(spent.expiry, seconds).is_some());
        if self.0.contains_key(&token.nonce) {
            return Err(NoKeys::Used);
        }
        let of = (held.gateway, held.csa);
        let same = self.0.values().filter(|spent| spent.of == of);
        if same.count() >= MOST_OF_ONE {
            return Err(NoKeys::Busy);
        }
        let expiry = token.expiry;
        self.0.insert(token.nonce, Spent { expiry, of });
        Ok(())
    }
}

/// Tokens from visitors, by nonce. Only the answer of the named node proves a token. The number per
/// station is therefore limited. If there is no room, a refused token gives way, or the oldest of
/// the station with the most: a station can forge its address. The neighbour's answer counts
/// nevertheless.
#[derive(Default)]
struct Shown(BTreeMap<[u8; 16], Asking>);

/// A token that we presented to another node.
struct Asking {
    expiry: u32,
    since: Instant,
    station: Option<Station>,
    is_refused: bool,
}

impl Shown {
    /// Records a token. Errors if it was presented before or a limit is reached.
    fn take(
        &mut self,
        token: &Token,
        station: Option<Station>,
        seconds: u32,
        now: Instant,
    ) -> Result<(), NoKeys> {
        self.0
            .retain(|_, asking| seconds_left(asking.expiry, seconds).is_some());
        if self.0.contains_key(&token.nonce) {
            return Err(NoKeys::Used);
        }
        let at_station = self.0.values().filter(|asking| asking.station == station);
        let at_station = at_station.count();
        if at_station >= MOST_AT_STATION {
            return Err(NoKeys::Busy);
        }
        if self.0.len() >= MOST_TOKENS {
            let gives_way = self.gives_way(at_station).ok_or(NoKeys::Busy)?;
            self.0.remove(&gives_way);
        }
        let asking = Asking {
            expiry: token.expiry,
            since: now,
            station,
            is_refused: false,
        };
        self.0.insert(token.nonce, asking);
        Ok(())
    }

    /// Returns the nonce of the token that gives way to one of a station with this many.
    fn gives_way(&self, at_station: usize) -> Option<[u8; 16]> {
        let mut oldest: Vec<_> = self.0.iter().collect();
        oldest.sort_by_key(|(_, asking)| asking.since);
        let mut refused = oldest.iter().filter(|(_, asking)| asking.is_refused);
        let refused = refused.next().map(|(nonce, _)| **nonce);
        let members = oldest
            .iter()
            .map(|(nonce, asking)| (asking.station, **nonce));
        let crowded = || most_crowded(members).filter(|(_, most)| *most > at_station);
        refused.or_else(|| crowded().map(|(nonce, _)| nonce))
    }

    /// Marks a token as refused.
    fn refuse(&mut self, token: &Token) {
        if let Some(asking) = self.0.get_mut(&token.nonce) {
            asking.is_refused = true;
        }
    }
}

/// A token for the agent that is asked to serve us.
pub(super) struct Given {
    csa: CsaId,
    /// Child SA of the slot.
    pub child: ChildSaId,
    pub at: Attachment,
    pub octets: Vec<u8>,
    /// The zones that the token is for.
    rights: Vec<(Zone, Right)>,
    /// The event once the token is enclosed.
    pub told: Event,
}

impl Migration {
    pub(crate) const fn set_time(&mut self, time: NtpTime, now: Instant) {
        self.clock = Some((time, now));
    }

    /// Returns the time of day if a token is valid at that time. A token whose validity is too long
    /// is refused, so that it never has to be remembered for longer.
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

    /// Returns the counters of key migration.
    pub(crate) const fn counters(&self) -> &MigrationCounters {
        &self.counters
    }

    // Mobile node.

    /// Issues a token to the agent that is asked to serve us, if we license its node.
    pub(super) fn issue(
        &self,
        at: Attachment,
        csa: &Csa,
        child: ChildSaId,
        asker: &Identity,
        turn: &mut Turn<'_>,
    ) -> Option<Given> {
        let token = self.token(csa, asker, turn)?;
        let (holder, octets) = (token.holder.clone(), token.encode());
        if octets.len() > Enclosure::LONGEST {
            let why = format!(
                "the name {holder} is too long for a token: keys of that node do not migrate"
            );
            turn.refuse(Some(csa.peer), why);
            return None;
        }
        let meant = |zone: &&Zone| token.zones.contains(&zone.id);
        let zones = csa.agreement.zones.iter().filter(meant);
        Some(Given {
            csa: csa.id,
            child,
            at,
            octets,
            rights: zones.map(|zone| (*zone, Right::Read)).collect(),
            told: Event::TokenGiven {
                sa: csa.name(),
                holder,
                asker: asker.clone(),
            },
        })
    }

    /// Creates the token with which a node fetches the keys of a slot from the slot's own node.
    fn token(&self, csa: &Csa, asker: &Identity, turn: &mut Turn<'_>) -> Option<Token> {
        if csa.closed {
            return None;
        }
        let peer = turn.ike.peer(csa.peer)?;
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
        let seconds = self.seconds(turn.now)?;
        if holder == *asker || !zones.contains(&ZoneId::DESIGNATED) {
            return None;
        }
        let key = token_key(csa.tokens.as_ref()?, &holder);
        let mut token = Token {
            spis,
            nonce: turn.rng.array(),
            expiry: seconds.wrapping_add(GOOD_FOR),
            zones,
            mac: [0; 16],
            holder,
        };
        sign_token(&mut token, &key, asker);
        Some(token)
    }

    /// Has a token wait until its recipient is recorded.
    pub(super) fn wait(&mut self, given: Given, csa: &Csa, asker: Identity, turn: &mut Turn<'_>) {
        turn.add(Event::Giving {
            sa: csa.name(),
            node: asker,
            rights: given.rights.clone(),
            lifetime: Duration::from_secs(GOOD_FOR.into()) + MIGRATION,
            grant: TOKEN,
        });
        self.unrecorded.push(given);
    }

    /// Takes out the token of a composite SA that waits for its record.
    pub(super) fn take_unrecorded(&mut self, csa: CsaId) -> Option<Given> {
        let mut waiting = self.unrecorded.iter();
        let index = waiting.position(|one| one.csa == csa)?;
        Some(self.unrecorded.remove(index))
    }

    // New node.

    /// Handles a token from a visitor: requests the keys from the node that it names, if that is a
    /// neighbour. A repeated request contains the same token, which is ignored.
    pub(crate) fn show(
        &mut self,
        station: Option<Station>,
        octets: &[u8],
        tunnels: &Tunnels,
        turn: &mut Turn<'_>,
    ) {
        let Ok(token) = Token::decode(octets) else {
            return self.missed(None, "a visitor sent an invalid token".to_owned(), turn);
        };
        let mut named = turn.ike.peers_named(&token.holder);
        let neighbour = named.find(|peer| peer.role == Role::Neighbour);
        drop(named);
        let peer = neighbour.map(|peer| peer.id);
        let Some(sa) = peer.and_then(|peer| tunnels.established(peer)) else {
            return self.missed(peer, Cause::UnknownHolder(token.holder), turn);
        };
        let timely = self.timely(&token, turn.now);
        match timely.and_then(|seconds| self.shown.take(&token, station, seconds, turn.now)) {
            Err(NoKeys::Used) => {}
            Err(why) => self.missed(None, Cause::Visitor(why), turn),
            Ok(()) => turn.add(IkeCommand::RequestKeys(sa, token)),
        }
    }

    /// Handles the answer of a neighbour.
    pub(crate) fn keys_answered(
        &mut self,
        sa: IkeSaId,
        token: &Token,
        answer: Result<Grant<Secret>, KeyRefusal>,
        transit: &mut Transit,
        turn: &mut Turn<'_>,
    ) {
        let Some(peer) = turn.peer(sa) else { return };
        let taken = answer.map_err(Cause::from);
        let taken = taken.and_then(|grant| borrow(sa, peer, token, &grant, transit, turn.now));
        match taken {
            Ok(held) => {
                self.counters.taken += 1;
                turn.add(Event::GrantHeld(held));
            }
            Err(why) => {
                self.shown.refuse(token);
                self.missed(Some(peer), why, turn);
            }
        }
    }

    fn missed(&mut self, peer: Option<PeerId>, why: impl Into<Cause>, turn: &mut Turn<'_>) {
        self.counters.missed += 1;
        turn.refuse(peer, why);
    }

    // Previous node.

    /// Handles the token that a neighbour presents.
    pub(crate) fn keys_asked(
        &mut self,
        sa: IkeSaId,
        node: Identity,
        token: &Token,
        transit: &Transit,
        turn: &mut Turn<'_>,
    ) {
        let answer = match self.hand_on(&node, token, transit, turn.now) {
            Ok((held, grant)) => {
                self.counters.given += 1;
                turn.add(Event::KeysHandedOn { held, node });
                Ok(grant)
            }
            Err(why) => {
                *self.counters.refused.entry(why).or_default() += 1;
                turn.refuse(turn.peer(sa), why);
                Err(why.code())
            }
        };
        turn.add(IkeCommand::AnswerRequest(sa, token.nonce, Box::new(answer)));
    }

    /// Returns the keys for a node that presents a valid token. An invalid token leaves no state.
    fn hand_on(
        &mut self,
        asker: &Identity,
        token: &Token,
        transit: &Transit,
        now: Instant,
    ) -> Result<(HeldGrant, Grant<Secret>), NoKeys> {
        let mut held = transit.onward(token.spis).peekable();
        held.peek().ok_or(NoKeys::Unknown)?;
        let mut proved = held.filter_map(|(held, grant)| {
            let onward = grant.onward.as_ref()?;
            is_signed(token, &onward.key, asker).then_some((held, grant, &onward.licences))
        });
        let (held, grant, licences) = proved.next().ok_or(NoKeys::Wrong)?;
        let seconds = self.timely(token, now)?;
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
        self.spent.take(token, &held, seconds)?;
        Ok((held, given))
    }
}

/// Returns the seconds until `expiry`, or `None` if it has passed. NTP seconds wrap around in 2036.
fn seconds_left(expiry: u32, seconds: u32) -> Option<u32> {
    let left = expiry.wrapping_sub(seconds);
    (left as i32 >= 0).then_some(left)
}

/// Installs keys if they match the request: to read only, and for [`MIGRATION`] at most.
fn borrow(
    sa: IkeSaId,
    peer: PeerId,
    token: &Token,
    grant: &Grant<Secret>,
    transit: &mut Transit,
    now: Instant,
) -> Result<HeldGrant, Cause> {
    let mut zones = grant.from_gateway.zones.iter();
    let asked = zones.all(|(zone, ..)| token.zones.contains(zone));
    // A second token does not extend keys from a neighbour: their time counts from the first
    // token.
    let lent = transit.holds(peer, grant.csa);
    if both_spis(grant) != token.spis || !asked || lent {
        return Err("the peer sent keys that were not requested"
            .to_owned()
            .into());
    }
    let grant = Grant {
        lifetime: grant.lifetime.min(MIGRATION),
        onward: None,
        ..readable(grant)
    };
    let holder = token.holder.clone();
    let installed = transit.install(sa, peer, holder, grant, now);
    installed.map_err(|unusable| unusable.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens of these stations fill the memory, and none is refused. A station can forge its
    /// address.
    // Weakness: 113
    #[test]
    fn tokens_of_stations_that_fill_the_memory_leave_room_for_that_of_another() {
        for (stations, each) in [(32, 8), (256, 1)] {
            let mut shown = Shown::default();
            let mut show = |station: u16, number: u16| {
                let mut nonce = [0; 16];
                nonce[..2].copy_from_slice(&station.to_be_bytes());
                nonce[2..4].copy_from_slice(&number.to_be_bytes());
                let token = Token {
                    spis: [model::Spi(1), model::Spi(2)],
                    nonce,
                    expiry: 10,
                    zones: Vec::new(),
                    mac: [0; 16],
                    holder: "fa.example.net".parse().unwrap(),
                };
                let [high, low] = station.to_be_bytes();
                let now = Instant::from_origin(Duration::from_millis(number.into()));
                shown.take(&token, Some(Station([2, 0, 0, 0, high, low])), 0, now)
            };
            for station in 0..stations {
                for number in 0..each {
                    assert_eq!(show(station, number), Ok(()));
                }
            }
            assert_eq!(show(1_000, 1_000), Ok(()));
            assert_eq!(show(1_000, 1_000), Err(NoKeys::Used));
            // Control: a station that has its share does not get another's place.
            if each > 1 {
                assert_eq!(show(5, 1_001), Err(NoKeys::Busy));
            }
            assert_eq!(shown.0.len(), MOST_TOKENS);
        }
    }
}
