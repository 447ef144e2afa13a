//! Following a peer without MOBIKE to a new address behind its NAT (RFC 7296 section 2.23).
//!
//! If an authentic message has "a different port, address, or both", a host without MOBIKE "that is
//! not behind a NAT, SHOULD send all packets (including retransmission packets) to the IP address
//! and port in the validated packet". The integrity check does not cover the header: a router that
//! rewrites the source address of one authentic packet would move a tunnel to a third party. A new
//! address is therefore only a reason for a check:
//!
//! 1. A request is sent to the new address alone. Its answer, from any address, shows that packets
//!    for the new address reach the peer. If it also returns our COOKIE2, the peer has read the
//!    request. Most peers without MOBIKE return none, so several answers count instead
//!    ([`SUSTAINED`]), because a peer can write an answer without having received the request.
//! 2. A request is sent to the old address alone. If there is no answer for a little longer than
//!    the new address took, IKE messages and the child SAs' packets move.
//!
//! IKE_AUTH from another address than IKE_SA_INIT is checked in the same way, with MOBIKE as well.
//!
//! An authentic message from the old address, or an answer to the second request, ends the check:
//! the peer has not moved. The same check moves the SA back. Until the check succeeds, the new
//! address gets no packet of a child SA. It receives at most three times the octets that came from
//! it, answers included.
//!
//! Packets of child SAs are checked in the same way, with MOBIKE as well, as soon as the newest of
//! them comes from another address or port: a NAT may map ESP apart from IKE. The data plane says
//! from which address most of the newer packets come. Child SAs move there if the old address is
//! silent, or if newer packets keep coming only from the new one. Without MOBIKE, and where both
//! had one address that is silent now, the IKE SA moves too. With MOBIKE it moves by
//! UPDATE_SA_ADDRESSES alone (RFC 4555 section 3.8), so the check says where the peer is seen, and
//! the peer then sends that update. Such a check gives way to one of a newer address ([`Pace`]).
//!
//! A third party that relays everything is indistinguishable from a NAT. So the SA leaves an
//! address that a check found, but that the peer did not announce, as soon as newer packets come
//! only from another address. Answers from the address that is left do not count.
//!
//! The two requests are sent one after the other, because the peer may keep no more than one
//! response. A request that was sent to both addresses proves nothing. If an earlier request is
//! outstanding, it is only retransmitted to both.

use super::established::Established;
use super::pace::Pace;
use super::task::Task;
use super::{Arrived, Context, Core, Turn};
use crate::extension::mobike::{self, Cookie};
use crate::extension::nat::{self, Nat};
use crate::refusal::{Refusal, Unfollowed};
use model::{Deadline, Instant, Path, Stray, site_of};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use wire::ike::{Message, Payload};

/// Time to wait for an address, in intervals of the first retransmission.
const PATIENCE: u32 = 2;

/// Minimum and maximum of this time. Other requests wait as long.
const SHORTEST_PATIENCE: Duration = Duration::from_secs(1);
const LONGEST_PATIENCE: Duration = Duration::from_secs(4);

/// Minimum time to wait for the old address.
const SHORTEST: Duration = Duration::from_millis(50);

/// Number of requests that a peer without COOKIE2 has to answer at its new address before it is
/// followed.
const SUSTAINED: u8 = 3;

/// Octets that may be sent to a new address for each octet that came from there. One more is for
/// the answer.
const SHARE: usize = 2;

/// The same for each octet of a child SA's packet, which needs no answer.
const SHARE_OF_PACKETS: usize = 3;

/// Length of the longest question in any suite. Twice the shortest request is as long.
const QUESTION: usize = 112;

/// The same with the hashes of both addresses.
const QUESTION_WITH_HASHES: usize = 176;

/// Maximum number of checks of new addresses per second.
const CHECKS: u32 = 1024;

/// The same limit for the addresses of one network.
const CHECKS_PER_NETWORK: u32 = 64;

/// The same limit for the messages of one peer, whose source addresses may be forged. It leaves
/// checks to other peers.
const CHECKS_PER_PEER: u32 = 4;

/// The check of a new address of a peer.
pub(super) struct Following {
    to: Path,
    step: Step,
    /// Time at which the step ends.
    until: Instant,
    /// Octets that may still be sent to the new address.
    credit: usize,
    /// Number of questions that were answered at the new address.
    answers: u8,
    /// State of the child SAs' packets, if one of them started the check.
    packets: Option<Packets>,
}

/// Child SAs' packets while their new address is checked.
#[derive(Clone, Copy)]
struct Packets {
    /// Start of the check.
    since: Instant,
    /// The newest packet, unless it came from the old address.
    stray: Option<Stray>,
    /// True if the old address has answered, and is one that the peer announced.
    old_answers: bool,
}

#[derive(Clone, Copy)]
enum Step {
    /// Requests from before the check are outstanding.
    Waiting,
    /// The new address has been asked.
    New { asked: Instant, repeated: bool },
    /// The old address has been asked.
    Old,
}

impl Packets {
    /// Begins with a packet that came on a new path.
    const fn begin(path: Path, now: Instant) -> Self {
        let (since, away) = (now, now);
        Self {
            since,
            stray: Some(Stray { path, since, away }),
            old_answers: false,
        }
    }

    /// Returns true if child SAs' packets come on the new path now, and on the old one no more.
    /// Where the old path still answers, they have to come on the new one alone, and only another
    /// port of the same address counts: a NAT that maps ESP apart from IKE. Otherwise, an attacker
    /// who forwards packets faster than the network could take the tunnel to another host.
    fn moved(self, new: Path, old: Path) -> bool {
        // The data plane reads the time of a packet later than control that of its turn.
        let begun = self.since + SHORTEST;
        self.stray.is_some_and(|stray| {
            let enough = match self.old_answers {
                true => stray.since <= begun && new.remote.ip() == old.remote.ip(),
                false => stray.away <= begun,
            };
            stray.path.remote == new.remote && enough
        })
    }
}

impl Following {
    fn begin(to: Path, packets: Option<Packets>, turn: &Turn<'_, '_>) -> Self {
        Self {
            to,
            step: Step::Waiting,
            until: turn.ctx.now + patience(turn),
            credit: 0,
            answers: 0,
            packets,
        }
    }

    /// Returns the size of the longest check of the new address, in octets.
    const fn longest_question(&self, mobike: bool) -> usize {
        match mobike && self.packets.is_some() {
            true => QUESTION_WITH_HASHES,
            false => QUESTION,
        }
    }

    const fn asks_new(&self) -> bool {
        matches!(self.step, Step::New { .. })
    }

    const fn is_waiting(&self) -> bool {
        matches!(self.step, Step::Waiting)
    }

    /// Sends a request to the new address, if the octets that came from there allow it.
    fn send(&mut self, datagrams: &[Vec<u8>], ctx: &mut Context<'_>) {
        let octets = datagrams.iter().map(Vec::len).sum();
        if let Some(left) = self.credit.checked_sub(octets) {
            self.credit = left;
            ctx.transmit_all(self.to, datagrams);
        }
    }
}

fn patience(turn: &Turn<'_, '_>) -> Duration {
    let first = turn.core.requests.timeout(&turn.ctx.config.timers);
    (first * PATIENCE).clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE)
}

fn question(ctx: &mut Context<'_>) -> Task {
    Task::Question(mobike::cookie(ctx.rng).0)
}

impl Established {
    /// Examines the source address of an authentic message. A peer with MOBIKE announces its
    /// address, so "other messages" move nothing (RFC 4555 section 3.8).
    pub(super) fn follow(&mut self, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) {
        if !turn.core.is_newest(arrived.datagram.header()) || self.mobike.is_some() {
            return;
        }
        match (turn.core.path.is_stream(), arrived.path.is_stream()) {
            (false, false) => self.note_source(arrived, turn),
            // "It SHOULD choose the TCP connection on which it last received a valid and
            // decryptable IKE or ESP message" (RFC 9329 section 6.1). Who began has one connection,
            // and knows it.
            (true, true) if !self.contact.ours => {
                turn.core.switch_to(arrived.path, turn.ctx);
                turn.core.carry(self.children(), turn.ctx);
            }
            // "When switching from UDP to TCP, a new IKE_SA_INIT exchange MUST be initiated" (RFC
            // 9329 section 5.1).
            _ => {}
        }
    }

    fn note_source(&mut self, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) {
        let from = arrived.path;
        match &self.following {
            None if from != turn.core.path => self.check(from, None, turn),
            // Child SAs' packets may have another address than messages.
            Some(following) if following.packets.is_some() => {}
            Some(following) if following.to != from && from == turn.core.path => {
                self.stay(Unfollowed::StillThere, turn);
            }
            _ => {}
        }
        self.give_credit(from, SHARE * arrived.octets.len(), turn);
    }

    /// Permits to send this many octets more to an address, if it is checked.
    fn give_credit(&mut self, to: Path, octets: usize, turn: &mut Turn<'_, '_>) {
        let following = self.following.as_mut();
        if let Some(following) = following.filter(|following| following.to == to) {
            following.credit += octets;
            // The answer to a request under way may be what the peer cannot send to us otherwise.
            if let (Step::Waiting, Some(datagrams)) = (following.step, turn.core.requests.oldest())
            {
                following.send(datagrams, turn.ctx);
                turn.core.requests.exclude();
            }
        }
    }

    /// Checks the path of a child SA's newest packet, of `octets` octets, which is not the path
    /// that child SAs send on.
    pub(crate) fn note_stray(&mut self, from: Path, octets: usize, turn: &mut Turn<'_, '_>) {
        // A stream has one address, which is the peer's.
        if from.is_stream() || turn.core.esp.is_stream() || from.remote == turn.core.esp.remote {
            return;
        }
        // "NO_NATS_ALLOWED": a translated packet is an attack (RFC 4555 section 3.9).
        if turn
            .core
            .peer(turn.ctx.config)
            .is_some_and(|peer| peer.features.forbids_nat)
        {
            return;
        }
        let runs = self.following.is_some();
        if self.gives_way(from) && self.pace.admits(from.remote, runs, turn.ctx.now) {
            self.drop_check(turn);
            self.check(from, Some(Packets::begin(from, turn.ctx.now)), turn);
        }
        self.give_credit(from, SHARE_OF_PACKETS * octets, turn);
        self.send_next(turn);
    }

    /// Returns true if no check is running, or one that a check of a packet's path may replace.
    /// With MOBIKE, packets do not replace the check of IKE_AUTH, because they cannot move the IKE
    /// SA.
    fn gives_way(&self, newer: Path) -> bool {
        let following = self.following.as_ref();
        following.is_none_or(|following| {
            let replaceable = following.packets.is_some() || self.mobike.is_none();
            replaceable && following.to.remote != newer.remote
        })
    }

    /// Notes the newest packet of child SAs, unless it came on the path that they send on.
    pub(crate) fn note_newest(&mut self, stray: Option<Stray>) {
        let following = self.following.as_mut();
        if let Some(packets) = following.and_then(|following| following.packets.as_mut()) {
            packets.stray = stray;
        }
    }

    /// Returns true if a child SA's packet started the check. Such a packet is a hint, so a check
    /// without a response is no reason to give the SA up.
    pub(super) fn is_led_by_packets(&self) -> bool {
        let following = self.following.as_ref();
        following.is_some_and(|following| following.packets.is_some())
    }

    /// Returns the address hashes of a check, which accompany its cookie.
    pub(super) fn question_payloads(&self, turn: &mut Turn<'_, '_>) -> Vec<Payload> {
        match (&self.mobike, &self.following) {
            (Some(_), Some(following)) if following.packets.is_some() => {
                let mut path = turn.core.path;
                if following.asks_new() {
                    path = following.to;
                }
                nat::payloads(
                    turn.core.spi_i,
                    turn.core.spi_r,
                    path,
                    turn.ctx.config,
                    turn.ctx.rng,
                )
                .to_vec()
            }
            _ => Vec::new(),
        }
    }

    /// Ends the check when an update of the addresses arrives, unless the IKE SA stays where it is:
    /// child SAs' packets may still have another address.
    pub(super) fn end_check(&mut self, updated: Path, core: &Core) {
        let moves = updated.remote != core.path.remote;
        if moves {
            self.pace = Pace::default();
        }
        let known = self.following.as_ref();
        if moves || known.is_some_and(|following| following.packets.is_none()) {
            self.following = None;
        }
    }

    /// Returns true if an update returns child SAs to the path of IKE messages. An update that a
    /// check of ours caused says nothing about packets that a NAT maps apart.
    pub(super) fn returns(&self, updated: Path, turn: &Turn<'_, '_>) -> bool {
        let remote = nat::esp_path(updated, turn.core.nat, turn.ctx.config).remote;
        let is_apart =
            turn.core.esp.remote.ip() == remote.ip() && self.pace.is_resting(turn.ctx.now);
        turn.core.esp.remote != remote && !is_apart
    }

    /// Checks the source address of IKE_AUTH, if it differs from that of IKE_SA_INIT. Only the
    /// latter is known to be the peer's: the keys depend on the response that was sent there.
    pub(super) fn check_beginning(&mut self, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) {
        self.begin_check(arrived.path, None, turn);
        if let Some(following) = &mut self.following {
            following.credit = SHARE * arrived.octets.len();
        }
    }

    /// Starts the check of an address, if the peer may be followed there.
    fn check(&mut self, to: Path, packets: Option<Packets>, turn: &mut Turn<'_, '_>) {
        if !turn.core.nat.is_some_and(Nat::follows) {
            return;
        }
        let only = turn
            .core
            .peer(turn.ctx.config)
            .and_then(|peer| peer.address);
        let ip = to.remote.ip();
        if let Some(only) = only.filter(|only| *only != ip) {
            return turn
                .ctx
                .refused(Some(turn.core.name()), Refusal::MovedAway { to: ip, only });
        }
        self.begin_check(to, packets, turn);
    }

    fn begin_check(&mut self, to: Path, packets: Option<Packets>, turn: &mut Turn<'_, '_>) {
        if self.children.are_fixed() {
            return;
        }
        match turn
            .ctx
            .out
            .checks
            .admit(Some(&turn.core.name()), to.remote.ip(), turn.ctx.now)
        {
            Ok(()) => self.following = Some(Box::new(Following::begin(to, packets, turn))),
            Err(why) => self.refuse_to_follow(to, why, turn),
        }
    }

    fn refuse_to_follow(&self, path: Path, why: Unfollowed, turn: &mut Turn<'_, '_>) {
        let to = path.remote;
        turn.ctx
            .refused(Some(turn.core.name()), Refusal::NotFollowed { to, why });
    }

    /// Returns true if the next request is the question to a new address, for which all others
    /// wait.
    pub(super) fn is_to_follow(&self) -> bool {
        let following = self.following.as_ref();
        let mobike = self.mobike.is_some();
        following.is_some_and(|following| {
            following.is_waiting() && following.credit >= following.longest_question(mobike)
        })
    }

    /// Returns the question to a new address.
    pub(super) fn next_question(&mut self, turn: &mut Turn<'_, '_>) -> Option<Task> {
        if !self.is_to_follow() {
            return None;
        }
        let following = self.following.as_mut()?;
        following.step = Step::New {
            asked: turn.ctx.now,
            repeated: false,
        };
        following.until = turn.ctx.now + patience(turn);
        Some(question(turn.ctx))
    }

    /// Returns the path of a request that is about to be sent.
    pub(super) fn path_for(&self, task: &Task, core: &Core) -> Path {
        match (task, &self.following) {
            (Task::Question(_), Some(following)) if following.asks_new() => following.to,
            (Task::Question(_), Some(following)) if following.packets.is_some() => core.esp,
            _ => core.path,
        }
    }

    /// Charges the credit of the new address with the question that was sent there.
    pub(super) fn note_sent(&mut self, core: &Core) {
        let following = self.following.as_mut();
        if let Some(following) = following.filter(|following| following.asks_new()) {
            let datagrams = core.requests.oldest().unwrap_or_default();
            let octets = datagrams.iter().map(Vec::len).sum();
            following.credit = following.credit.saturating_sub(octets);
        }
    }

    /// Retransmits a request to the new address, if that has a part in it. Returns true if it must
    /// go nowhere else.
    pub(crate) fn repeat_there(&mut self, datagrams: &[Vec<u8>], ctx: &mut Context<'_>) -> bool {
        let Some(following) = &mut self.following else {
            return false;
        };
        match &mut following.step {
            Step::Waiting => {
                following.send(datagrams, ctx);
                false
            }
            Step::New { repeated, .. } => {
                *repeated = true;
                following.send(datagrams, ctx);
                true
            }
            Step::Old => false,
        }
    }

    /// Evaluates the answer to a question. The source address of the answer does not matter, as the
    /// request went to one address.
    pub(super) fn conclude_question(
        &mut self,
        cookie: &Cookie,
        response: &Message,
        turn: &mut Turn<'_, '_>,
    ) {
        let Some(following) = &mut self.following else {
            return;
        };
        let (asked, repeated) = match following.step {
            // It was sent to both addresses.
            Step::Waiting => return,
            Step::Old => return self.note_old_answer(turn),
            Step::New { asked, repeated } => (asked, repeated),
        };
        following.answers += 1;
        if !mobike::is_returned(cookie, response) {
            // A peer with MOBIKE returns the cookie, which proves that it receives there.
            if self.mobike.is_some() {
                return self.stay(Unfollowed::Unanswered, turn);
            }
            if following.answers < SUSTAINED {
                following.step = Step::Waiting;
                following.until = turn.ctx.now + patience(turn);
                return;
            }
        }
        let took = turn.ctx.now - asked;
        let pause = match repeated {
            true => patience(turn),
            false => (took + took / 4).clamp(SHORTEST, patience(turn)),
        };
        following.step = Step::Old;
        following.until = turn.ctx.now + pause;
        self.send(question(turn.ctx), turn);
    }

    /// Notes an answer from the old address. Child SAs' packets may still come only from the new
    /// one.
    fn note_old_answer(&mut self, turn: &mut Turn<'_, '_>) {
        // With MOBIKE, the peer announces the path of IKE messages.
        let announced = match self.mobike {
            Some(_) => turn.core.path.remote.ip(),
            None => self.home,
        };
        let following = self.following.as_mut();
        match following.and_then(|following| following.packets.as_mut()) {
            Some(packets) => packets.old_answers = turn.core.esp.remote.ip() == announced,
            None => self.stay(Unfollowed::StillThere, turn),
        }
    }

    /// Ends the step of a check whose time is over.
    pub(super) fn end_step(&mut self, turn: &mut Turn<'_, '_>) {
        let Some(following) = self
            .following
            .take_if(|following| following.until <= turn.ctx.now)
        else {
            return;
        };
        let why = match (following.step, following.packets) {
            (Step::Old, Some(packets)) if !packets.moved(following.to, turn.core.esp) => {
                Unfollowed::StillThere
            }
            (Step::Old, packets) => {
                let children = self.children();
                let old_is_silent = packets.is_none_or(|packets| !packets.old_answers);
                let together = turn.core.path.remote == turn.core.esp.remote;
                let all = packets.is_none() || self.mobike.is_none() && together && old_is_silent;
                match all {
                    true => {
                        turn.core.switch_to(following.to, turn.ctx);
                        turn.core.carry(children, turn.ctx);
                    }
                    false => turn.core.carry_to(following.to, children, turn.ctx),
                }
                self.pace.succeed();
                return;
            }
            _ => Unfollowed::Unanswered,
        };
        self.following = Some(following);
        self.stay(why, turn);
    }

    /// Ends a check: everything stays on the old path, including an outstanding question.
    fn stay(&mut self, why: Unfollowed, turn: &mut Turn<'_, '_>) {
        if let Some(to) = self.drop_check(turn) {
            self.refuse_to_follow(to, why, turn);
        }
    }

    /// Ends a check, and returns the path that was checked. An outstanding question is sent on the
    /// old path now.
    fn drop_check(&mut self, turn: &mut Turn<'_, '_>) -> Option<Path> {
        let following = self.following.take()?;
        if following.asks_new() {
            turn.core.send_again(turn.ctx);
        }
        Some(following.to)
    }

    /// Repeats a question that was dropped with its keys.
    pub(super) fn repeat_question(&mut self, turn: &Turn<'_, '_>) {
        if let Some(following) = &mut self.following {
            following.step = Step::Waiting;
            following.until = turn.ctx.now + patience(turn);
        }
    }

    pub(super) fn step_ends_at(&self) -> Option<Deadline> {
        let following = self.following.as_ref()?;
        Some(Deadline {
            at: following.until,
            reason: "probe an address that the peer's messages came from",
        })
    }
}

/// Number of checks started in this second. Peers could direct many of them to a third party.
/// Answers on unknown IKE SAs are limited in the same way.
#[derive(Default)]
pub(crate) struct Checks {
    since: Instant,
    all: u32,
    /// By IPv4 /24 or IPv6 /48 network of the address.
    by_network: BTreeMap<u128, u32>,
    by_peer: BTreeMap<String, u32>,
}

impl Checks {
    /// Counts a datagram to an address that is not proved, for a peer if that is known.
    pub(crate) fn admit(
        &mut self,
        peer: Option<&str>,
        ip: IpAddr,
        now: Instant,
    ) -> Result<(), Unfollowed> {
        if self.since + Duration::from_secs(1) <= now {
            *self = Self {
                since: now,
                ..Self::default()
            };
        }
        let of_peer = peer.and_then(|peer| self.by_peer.get(peer)).copied();
        let of_peer = of_peer.unwrap_or_default();
        if of_peer >= CHECKS_PER_PEER {
            return Err(Unfollowed::TooOften);
        }
        if self.all >= CHECKS {
            return Err(Unfollowed::TooMany);
        }
        let of_network = self.by_network.entry(site_of(ip)).or_default();
        if *of_network >= CHECKS_PER_NETWORK {
            return Err(Unfollowed::TooMany);
        }
        *of_network += 1;
        self.all += 1;
        if let Some(peer) = peer {
            self.by_peer.insert(peer.to_owned(), of_peer + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    /// Returns the number of addresses that are checked, each of another peer.
    fn admitted(checks: &mut Checks, ips: impl Iterator<Item = IpAddr>, now: Instant) -> usize {
        let peers = ips.enumerate();
        let admitted = peers.filter(|(n, ip)| checks.admit(Some(&n.to_string()), *ip, now).is_ok());
        admitted.count()
    }

    fn neighbours(count: u32) -> impl Iterator<Item = IpAddr> + Clone {
        (0..count).map(|n| IpAddr::V4((0xc000_0200 + n % 256).into()))
    }

    #[test]
    fn addresses_of_one_network_are_asked_64_times_a_second_and_all_together_1024_times() {
        let mut checks = Checks::default();
        let one = neighbours(1000);
        assert_eq!(admitted(&mut checks, one.clone(), at(0)), 64);
        let six = (1000..2000_u128).map(|n| IpAddr::V6(((0x2001_0db8 << 96) + n).into()));
        assert_eq!(admitted(&mut checks, six, at(999)), 64);
        let many = (0..5000_u32).map(|n| IpAddr::V4((n << 8).into()));
        assert_eq!(admitted(&mut checks, many, at(999)), 1024 - 128);
        assert!(checks.by_network.len() <= 1024 && checks.by_peer.len() <= 1024);
        assert_eq!(admitted(&mut checks, one, at(1000)), 64);
    }

    // Weakness: 124
    #[test]
    fn a_peer_that_seems_to_be_everywhere_leaves_others_their_checks() {
        let mut checks = Checks::default();
        let everywhere = neighbours(256).chain((0..5000_u32).map(|n| IpAddr::V4((n << 8).into())));
        let asked = everywhere.filter(|ip| checks.admit(Some("mallory"), *ip, at(0)).is_ok());
        assert_eq!(asked.count(), CHECKS_PER_PEER as usize);
        let refused = checks.admit(Some("mallory"), [192, 0, 2, 1].into(), at(0));
        assert_eq!(refused, Err(Unfollowed::TooOften));
        assert_eq!(admitted(&mut checks, neighbours(60), at(0)), 60);
    }
}
