//! `zones`, `layout`, `map`, `licences`, `handover`, `holders` and `shared` of a peer: the parts of
//! packets that both ends would license to nodes.

use crate::domain::{self, Domain};
use crate::handover::{self, Handover, Slot};
use crate::reader::{Table, Value};
use model::{
    Identity, Licence, MapKind, Right, Run, TrafficSelector, Wildcard, ZoneId, ZoneSelector,
    ZoneSuite,
};

/// The default layout.
const LAYOUT: [ZoneSelector; 2] = [ZoneSelector::IpTransport, ZoneSelector::Rest];

/// Most zones of a packet: its map has no room for more.
const MOST: usize = 8;

/// The zones and the suite of each.
type Layout = [(ZoneSelector, Option<ZoneSuite>)];

/// The zones of a peer's packets, and the nodes that may access them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonePolicy {
    /// `zones`: default `refuse`.
    pub stance: Stance,
    /// `layout`: the zones and the suite of each, if it is not the best of `suite`. An octet that
    /// several zones ask for belongs to the first of them. The last zone is the payload, which must
    /// be encrypted. Default `["headers", "payload"]`.
    pub layout: Vec<(ZoneSelector, Option<ZoneSuite>)>,
    /// `map`: a fixed map: the number of octets of each zone in every zoned packet, without the
    /// rest, which belongs to the payload: `["52 headers"]`. Default: each packet carries its own
    /// map.
    pub map: MapKind,
    /// `licences`: the right of each node to each zone, subject to the peer's agreement, sorted and
    /// without duplicates. Default none. Written as
    /// `[{ node = "fa.example.net", zones = ["headers"], right = "read" }]`.
    pub licences: Vec<Licence>,
    /// The entries of `licences` that apply in one place only: `at = ["198.51.100.2"]`.
    pub slots: Vec<Slot>,
    /// The entries of `licences` for all nodes of a domain: `node = "*.sat.example.net"`.
    pub domains: Vec<Domain>,
    /// `handover`: the time at which the nodes of such places receive their keys. Default `push`.
    pub handover: Handover,
    /// `holders`: most nodes of such places that share keys, 2 to 32, if they have the same rights;
    /// with `handover = "pkd"`. Default: each node has its own keys.
    pub holders: Option<usize>,
    /// `shared`: true if several nodes may hold the key of the same zone other than the first.
    /// Default false.
    pub shared: bool,
}

/// The policy on sealing packets in zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// `accept`: zones if the peer supports them, else plain ESP.
    Accept,
    /// `require`: zones, or no tunnel.
    Require,
    /// `refuse`: always plain ESP.
    Refuse,
}

impl Stance {
    pub(crate) const WORDS: [(&str, Self); 3] = [
        ("accept", Self::Accept),
        ("require", Self::Require),
        ("refuse", Self::Refuse),
    ];
}

impl Default for ZonePolicy {
    fn default() -> Self {
        Self {
            stance: Stance::Refuse,
            layout: LAYOUT.map(|selector| (selector, None)).to_vec(),
            map: MapKind::default(),
            licences: Vec::new(),
            slots: Vec::new(),
            domains: Vec::new(),
            handover: Handover::default(),
            holders: None,
            shared: false,
        }
    }
}

impl ZonePolicy {
    pub(crate) fn read(table: &mut Table<'_>) -> Self {
        let default = Self::default();
        let stance = table.optional("zones", |value| value.choice(&Stance::WORDS));
        let refused = table.value("zones").is_none() || stance == Some(Stance::Refuse);
        let layout = table.optional("layout", |value| match refused {
            true => no_zones(value, "`layout` requires zones", "`layout`"),
            false => layout(value),
        });
        let layout = layout.unwrap_or(default.layout);
        let map = table.optional("map", |value| match refused {
            true => no_zones(value, "`map` requires zones", "`map`"),
            false => map(value, &layout),
        });
        let licences = table.optional("licences", |value| {
            let licences = value.list(|value| licence(value, &layout, map.as_ref()))?;
            match refused && !licences.is_empty() {
                true => no_zones(value, "`licences` requires zones", "`licences`"),
                false => {
                    let (domains, named) = domain::split(value, licences)?;
                    let (everywhere, slots) = handover::sort(value, named)?;
                    Some((everywhere, slots, domains))
                }
            }
        });
        let (licences, slots, domains) = licences.unwrap_or_default();
        let is_idle = slots.is_empty() && domains.is_empty();
        let handover = table.optional("handover", |value| match is_idle {
            true => value.fault(
                "no licence has `at`, so no keys are handed over",
                "add the place of each node to its licence, like `at = [\"198.51.100.2\"]`, or remove `handover`",
            ),
            false => handover::handover(value, &slots),
        });
        let holders = table.optional("holders", |value| {
            handover::holders(value, handover, &licences, &slots)
        });
        let shared = table.optional("shared", |value| match (refused, value.boolean()?) {
            (true, true) => no_zones(value, "`shared` requires zones", "`shared`"),
            (_, shared) => Some(shared),
        });
        Self {
            stance: stance.unwrap_or(default.stance),
            layout,
            map: map.unwrap_or_default(),
            licences,
            slots,
            domains,
            handover: handover.unwrap_or_default(),
            holders,
            shared: shared.unwrap_or(default.shared),
        }
    }

    /// Returns the name of a zone in a licence.
    pub fn name(&self, zone: ZoneId) -> String {
        let place = usize::from(zone.0).checked_sub(1);
        let zone = place.and_then(|place| self.layout.get(place));
        zone.map_or_else(String::new, |(selector, _)| selector.to_string())
    }

    /// Returns the licences of all places.
    pub fn all_licences(&self) -> impl Iterator<Item = &Licence> {
        let slots = self.slots.iter().flat_map(|slot| &slot.licences);
        let domains = self.domains.iter().flat_map(|domain| &domain.licences);
        self.licences.iter().chain(slots).chain(domains)
    }

    /// Returns the slots in groups. With `holders`, a group has the slots with the same rights,
    /// whose nodes share keys; otherwise each slot is a group of its own.
    pub fn groups(&self) -> Vec<Vec<&Slot>> {
        match self.holders {
            Some(_) => handover::groups(&self.slots),
            None => self.slots.iter().map(|slot| vec![slot]).collect(),
        }
    }

    /// Returns true if a licence opens the payload.
    pub fn opens_payload(&self, licence: &Licence) -> bool {
        usize::from(licence.zone.0) == self.layout.len()
    }
}

pub(crate) fn no_zones<T>(value: &Value<'_>, what: &str, those: &str) -> Option<T> {
    value.fault(
        format!("{what}, and packets of this peer have none"),
        format!("add `zones = \"accept\"` or `zones = \"require\"`, or remove {those}"),
    )
}

/// Reads a layout: the last zone must be the payload, and every zone must be able to receive
/// octets.
fn layout(value: &Value<'_>) -> Option<Vec<(ZoneSelector, Option<ZoneSuite>)>> {
    let layout = value.list(zone)?;
    let selectors: Vec<_> = layout.iter().map(|(selector, _)| *selector).collect();
    if !(2..=MOST).contains(&selectors.len()) {
        return value.fault(
            format!("a layout cannot have {} zones", selectors.len()),
            format!("write 2 to {MOST} zones, like [\"ip\", \"transport\", \"payload\"]"),
        );
    }
    let last = selectors.len() - 1;
    if selectors
        .iter()
        .position(|zone| *zone == ZoneSelector::Rest)
        != Some(last)
    {
        return value.fault(
            "the last zone is not \"payload\", or \"payload\" occurs before it",
            "write \"payload\" once, at the end",
        );
    }
    let useless = (1..last).find(|i| {
        selectors[..*i]
            .iter()
            .any(|zone| takes(*zone, selectors[*i]))
    });
    if let Some(i) = useless {
        return value.fault(
            format!(
                "the zones before `{}` contain all of its octets",
                selectors[i]
            ),
            "remove it, or move it before them",
        );
    }
    Some(layout)
}

/// Reads a zone: its name, or a table with its suite.
fn zone(value: &Value<'_>) -> Option<(ZoneSelector, Option<ZoneSuite>)> {
    if value.is_text() {
        return Some((selector(value)?, None));
    }
    let mut table = value.table()?;
    let zone = table.required("zone", "\"headers\"", selector);
    let suite = table.optional("suite", |value| suite(value, zone));
    table.finish();
    Some((zone?, suite))
}

fn suite(value: &Value<'_>, zone: Option<ZoneSelector>) -> Option<ZoneSuite> {
    let names: Vec<_> = ZoneSuite::all().map(|suite| suite.to_string()).collect();
    let names = names.iter().map(String::as_str);
    let choices: Vec<_> = names.zip(ZoneSuite::all()).collect();
    let suite = value.choice(&choices)?;
    if zone == Some(ZoneSelector::Rest) && !suite.encrypts() {
        return value.fault(
            format!("{suite} does not encrypt, so every router could read the payload"),
            "write a suite that encrypts, like \"aes128gcm16\"",
        );
    }
    Some(suite)
}

fn selector(value: &Value<'_>) -> Option<ZoneSelector> {
    value.accepts(|| "zone".to_owned());
    let text = value.text()?;
    text.parse().ok().or_else(|| {
        value.fault(
            format!("`{}` is not a zone", text.escape_debug()),
            "write ip, transport, headers, octets 0-27, rtp 16384-32767 or payload",
        )
    })
}

/// Reads the runs of a fixed map, which must be one that a packet could carry.
fn map(value: &Value<'_>, layout: &Layout) -> Option<MapKind> {
    let runs = value.list(|value| run(value, layout))?;
    let name = |run: &Run| layout[usize::from(run.zone.0) - 1].0;
    let example = format!("\"52 {}\"", layout[0].0);
    if !(1..MOST).contains(&runs.len()) {
        return value.fault(
            format!("a map cannot have {} runs", runs.len()),
            format!("write 1 to {}, like [{example}], or remove it", MOST - 1),
        );
    }
    if runs[0].zone != ZoneId::DESIGNATED {
        return value.fault(
            format!(
                "a packet begins with `{}`, not `{}`",
                layout[0].0,
                name(&runs[0])
            ),
            format!("begin with the first zone, like {example}"),
        );
    }
    if let Some(pair) = runs.windows(2).find(|pair| pair[0].zone == pair[1].zone) {
        return value.fault(
            format!("`{}` occurs twice in a row", name(&pair[0])),
            "write one run with the sum of both",
        );
    }
    if runs
        .last()
        .is_some_and(|run| usize::from(run.zone.0) == layout.len())
    {
        return value.fault(
            "the last run is the payload, whose length is not fixed",
            "remove the last entry",
        );
    }
    Some(MapKind::Fixed(runs))
}

/// Reads a run such as `52 headers`.
fn run(value: &Value<'_>, layout: &Layout) -> Option<Run> {
    value.accepts(|| "number of octets and zone".to_owned());
    let text = value.text()?;
    let read = || {
        let (len, name) = text.split_once(' ')?;
        let len = len.parse().ok().filter(|len| *len > 0)?;
        let place = layout
            .iter()
            .position(|(zone, _)| zone.to_string() == name)?;
        let zone = ZoneId(place as u8 + 1);
        Some(Run { zone, len })
    };
    read().or_else(|| {
        value.fault(
            format!(
                "`{}` is not a number and a zone of the layout",
                text.escape_debug()
            ),
            format!(
                "write a number of octets and a zone, like \"52 {}\"",
                layout[0].0
            ),
        )
    })
}

/// Returns true if a zone takes every octet that a later zone asks for.
fn takes(zone: ZoneSelector, later: ZoneSelector) -> bool {
    let in_headers = matches!(
        later,
        ZoneSelector::Ip | ZoneSelector::Transport | ZoneSelector::Octets(_)
    );
    match (zone, later) {
        (ZoneSelector::IpTransport, _) if in_headers => true,
        (ZoneSelector::Octets(all), ZoneSelector::Octets(some))
        | (ZoneSelector::Rtp(all), ZoneSelector::Rtp(some)) => {
            all.contains(some.first()) && all.contains(some.last())
        }
        _ => zone == later,
    }
}

/// One entry of `licences`: one licence for each of its zones, and the places where they apply.
/// Without `at` they apply everywhere.
pub(crate) struct Licences {
    pub(crate) node: Identity,
    pub(crate) at: Option<Vec<TrafficSelector>>,
    /// `at_most`, for a domain.
    pub(crate) most: Option<u8>,
    pub(crate) licences: Vec<Licence>,
}

fn licence(value: &Value<'_>, layout: &Layout, map: Option<&MapKind>) -> Option<Licences> {
    let mut table = value.table()?;
    let node = table.required("node", "\"fa.example.net\"", Value::identity_or_domain);
    let is_domain = node.as_ref().and_then(Wildcard::read).is_some();
    let zones = table.required("zones", "[\"headers\"]", |value| {
        let zones = licensed_zones(value, layout)?;
        match is_domain && zones.contains(&ZoneId(layout.len() as u8)) {
            true => value.fault(
                "the payload is licensed to a node by its name only, never to a domain",
                "remove \"payload\", or write the name of one node as `node`",
            ),
            false => Some(zones),
        }
    });
    let right = table.required("right", "\"read\"", |value| {
        let rights = [Right::Read, Right::Write, Right::Inject];
        let right = value.choice(&rights.map(|right| (right.name(), right)))?;
        match right {
            Right::Read => Some(right),
            Right::Write | Right::Inject if map.is_some_and(MapKind::is_fixed) => value.fault(
                "write and inject rights require a map in each packet, which a fixed `map` omits",
                "write `right = \"read\"`, or remove `map`",
            ),
            Right::Write | Right::Inject => in_headers(value, right, zones.as_deref()?, layout),
        }
    });
    let at = table.optional("at", |value| match is_domain {
        true => value.fault(
            "the places of a domain's nodes are known to the end that distributes their keys",
            "remove `at`; that end has `at` in the [licensed.NAME] of each node",
        ),
        false => handover::at(value),
    });
    let most = table.optional("at_most", |value| match is_domain {
        true => domain::most(value),
        false => value.fault(
            "`at_most` limits the nodes of a domain, and this licence is for one node",
            "remove `at_most`, or write a domain as `node`: \"*.sat.example.net\"",
        ),
    });
    table.finish();
    let (node, right) = (node?, right?);
    let licence = |zone| Licence {
        node: node.clone(),
        zone,
        right,
    };
    let licences = zones?.into_iter().map(licence).collect();
    Some(Licences {
        node,
        at,
        most,
        licences,
    })
}

/// Returns the right if it is allowed for these zones. Write and inject rights cover the TCP header
/// only, which must be in the first zone (DESIGN section 3).
fn in_headers(value: &Value<'_>, right: Right, zones: &[ZoneId], layout: &Layout) -> Option<Right> {
    let name = |zone: &ZoneId| layout.get(usize::from(zone.0) - 1).map(|zone| zone.0);
    let headers = layout.first().map(|zone| zone.0) == Some(ZoneSelector::IpTransport);
    let others = zones.iter().find(|zone| **zone != ZoneId::DESIGNATED);
    let refused = match others {
        Some(other) => name(other),
        None => name(&ZoneId::DESIGNATED).filter(|_| !headers),
    };
    let Some(refused) = refused else {
        return Some(right);
    };
    let nothing = match right {
        Right::Inject => "injected: inject rights cover TCP headers only",
        Right::Read | Right::Write => "written: write rights cover the TCP window only",
    };
    value.fault(
        format!("zone `{refused}` cannot be {nothing}"),
        format!("license to {} only `headers`, as the first zone, and the others with `right = \"read\"`", right.name()),
    )
}

/// Reads zones by name. The payload is licensed only by its own name, and never alone: a node
/// locates the other zones by the designated one (DESIGN sections 3 and 4).
fn licensed_zones(value: &Value<'_>, layout: &Layout) -> Option<Vec<ZoneId>> {
    value.accepts(|| "list of zones of `layout`".to_owned());
    let names: Vec<_> = layout.iter().map(|(zone, _)| zone.to_string()).collect();
    let serials = (1..).map(ZoneId);
    let choices: Vec<_> = names.iter().map(String::as_str).zip(serials).collect();
    let zones = value.list(|zone| zone.choice(&choices))?;
    if !zones.contains(&ZoneId::DESIGNATED) {
        return value.fault(
            format!("a node cannot open packets without the zone `{}`", names[0]),
            format!("add \"{}\", or remove this licence", names[0]),
        );
    }
    Some(zones)
}
