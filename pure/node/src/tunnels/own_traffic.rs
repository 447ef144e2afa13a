//! Traffic that one of several live paths carries before all others, and which of our rules it is.
//!
//! A path with such a child SA carries nothing else while a path without one works. If the path is
//! down, its traffic takes the child SAs of the other paths, which carry all traffic. Both ends
//! decide so independently. The end that chooses the paths requests the child SA of a rule for the
//! path that leaves by the rule's interface, and removes it when the path leaves by another one.

use crate::effects::{Effect, IkeCommand, Turn};
use esp::Command;
use ike::{PathRule, PathTraffic};
use model::{ChildSaId, IkeSaId, Instant, TrafficSelector};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// The first and the longest pause before a child SA is requested again that was not created.
const AGAIN: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// The traffic of a path's own, if it has any.
#[derive(Default)]
pub(super) struct OwnTraffic {
    carried: Option<Carried>,
    /// The last request for the child SA of a rule; `None` if the path has it, or needs none.
    request: Option<Request>,
}

/// A request for the child SA of a rule, which has not been created.
#[derive(Clone, Copy)]
struct Request {
    rule: u8,
    /// Time of the next one.
    again: Instant,
    /// Time of the first one.
    since: Instant,
}

/// The child SAs with the traffic of a path.
pub(super) struct Carried {
    /// Index of our rule; `None` if the peer selected the traffic.
    rule: Option<u8>,
    /// The child SAs, the oldest first.
    children: Vec<ChildSaId>,
    /// The selectors at the peer's end if the rule is ours, otherwise at ours.
    selectors: Vec<TrafficSelector>,
    /// True if the child SAs are not sent on.
    is_off: bool,
    /// True if the path leaves by another interface now.
    is_stale: bool,
}

impl Carried {
    pub(super) const fn new(traffic: PathTraffic) -> Self {
        Self {
            rule: traffic.rule,
            children: Vec::new(),
            selectors: Vec::new(),
            is_off: false,
            is_stale: false,
        }
    }

    /// Adds a child SA that is newer than the others.
    pub(super) fn enter(
        &mut self,
        id: ChildSaId,
        local: &[TrafficSelector],
        remote: &[TrafficSelector],
    ) {
        let narrowed = if self.rule.is_some() { remote } else { local };
        self.selectors = narrowed.to_vec();
        self.children.push(id);
    }
}

impl OwnTraffic {
    pub(super) const NONE: Self = Self {
        carried: None,
        request: None,
    };

    /// Updates the child SAs.
    pub(super) fn update(&mut self, found: Option<Carried>) {
        let before = self.carried.take();
        self.carried = found.map(|found| match before {
            Some(before) if before.rule == found.rule => Carried {
                is_off: before.is_off,
                is_stale: before.is_stale,
                ..found
            },
            _ => found,
        });
    }

    /// Returns all child SAs.
    pub(super) fn all(&self) -> impl Iterator<Item = ChildSaId> {
        let children = self.carried.iter().flat_map(|carried| &carried.children);
        children.copied()
    }

    /// Returns the child SA that sends.
    pub(super) fn sending(&self) -> Option<ChildSaId> {
        self.carried.as_ref()?.children.last().copied()
    }

    /// Returns the selectors.
    pub(super) fn selectors(&self) -> &[TrafficSelector] {
        let carried = self.carried.as_ref();
        carried.map_or(&[], |carried| &carried.selectors)
    }

    /// Returns true if the path carries nothing else while another path works.
    pub(super) fn is_reserved(&self) -> bool {
        let carried = self.carried.as_ref();
        carried.is_some_and(|carried| !carried.is_stale)
    }

    /// Returns true if the child SAs are not sent on.
    pub(super) fn is_off(&self) -> bool {
        self.carried.as_ref().is_some_and(|carried| carried.is_off)
    }

    /// Returns the time of the next request.
    pub(super) fn again(&self) -> Option<Instant> {
        self.request.map(|request| request.again)
    }

    /// Has the child SA of a rule requested without a pause.
    pub(super) const fn hasten(&mut self) {
        self.request = None;
    }

    /// Has the path carry the traffic of this rule of ours, and of no other. Nothing is requested
    /// for a path that is not usable, or that carries all traffic in any case.
    pub(super) fn follow_rule(
        &mut self,
        number: u8,
        rule: Option<u8>,
        is_usable: bool,
        sa: IkeSaId,
        turn: &mut Turn<'_>,
    ) {
        if let Some(carried) = &mut self.carried {
            self.request = None;
            let was_stale = std::mem::replace(&mut carried.is_stale, carried.rule != rule);
            if carried.is_stale && !was_stale {
                turn.add(IkeCommand::RemovePathTraffic(sa, number));
            }
            return;
        }
        let Some(rule) = rule.filter(|_| is_usable) else {
            self.request = None;
            return;
        };
        let last = self.request.filter(|last| last.rule == rule);
        if last.is_none_or(|last| last.again <= turn.now) {
            // Each pause is as long as all before it together.
            let since = last.map_or(turn.now, |last| last.since);
            let again = turn.now + turn.now.since(since).clamp(AGAIN, LONGEST);
            self.request = Some(Request { rule, again, since });
            turn.add(IkeCommand::AddPathTraffic(sa, number, rule));
        }
    }

    /// Stops sending if the path is down, otherwise sends. The child SAs that stop are added to
    /// `retired`.
    pub(super) fn switch(
        &mut self,
        is_down: bool,
        retired: &mut Vec<ChildSaId>,
        turn: &mut Turn<'_>,
    ) {
        let sending = self.sending();
        let Some(carried) = &mut self.carried else {
            return;
        };
        let is_off = is_down || carried.is_stale;
        if std::mem::replace(&mut carried.is_off, is_off) == is_off {
            return;
        }
        match is_off {
            true => retired.extend(&carried.children),
            false => turn.effects.extend(sending.map(Effect::Prefer)),
        }
    }
}

/// Stops sending on child SAs.
pub(super) fn retire(retired: Vec<ChildSaId>, turn: &mut Turn<'_>) {
    for id in retired {
        turn.add(Command::Retire(id));
    }
}

/// Returns the index of the rule for paths from each local address.
pub(super) fn by_address(
    interfaces: &BTreeMap<IpAddr, String>,
    rules: &[PathRule],
) -> BTreeMap<IpAddr, u8> {
    let rule = |interface: &String| {
        let place = rules.iter().position(|rule| rule.interface == *interface)?;
        u8::try_from(place).ok()
    };
    let known = interfaces.iter();
    let known = known.filter_map(|(address, interface)| Some((*address, rule(interface)?)));
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_of_an_address_is_that_of_its_interface() {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let rule = |interface: &str| PathRule {
            interface: interface.to_owned(),
            remote: Vec::new(),
        };
        let interfaces = [(1, "wlan0"), (2, "wwan0"), (3, "eth0"), (4, "wwan0")];
        let interfaces = interfaces.map(|(last, name)| (address(last), name.to_owned()));
        let found = by_address(
            &interfaces.into_iter().collect(),
            &[rule("wwan0"), rule("wlan0"), rule("usb0")],
        );
        let expected = [(address(1), 1), (address(2), 0), (address(4), 0)];
        assert_eq!(found, expected.into_iter().collect());
    }
}
