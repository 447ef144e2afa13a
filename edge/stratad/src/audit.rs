//! The audit log: one JSON object per line, as evidence of which node could read which zones, and
//! when.
//!
//! One call appends a line to the end of the file, so a line is complete or absent. If the system
//! accepts only part of a line, the next one begins on a line of its own. After a failed open or
//! write, the file is opened again for the next line.

use crate::explain::told;
use crate::quota::Quota;
use config::Audit as Settings;
use control::{AuditEvent, Permit, Record, Why, Zone};
use crypto::UnixTime;
use model::{Identity, Instant, Licence, PeerNames, Right, ZoneId, ZoneSelector};
use node::{
    Composite, CsaStatus, Dropped, Ending, Event, GrantState, GrantStatus, HeldGrant, Node,
};
use os::files::{Access, open_own};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::time::Duration;

/// The audit file, if one is configured.
#[derive(Default)]
pub struct Audit {
    settings: Option<Settings>,
    file: Option<File>,
    /// True if the file ends in the middle of a line.
    torn: bool,
    /// Quotas of refusals, by the name of the peer that causes them.
    refusals: BTreeMap<String, Quota>,
}

impl Audit {
    /// Opens the file for further lines. The same file is reopened too, because it may have been
    /// moved (logrotate). Returns an error if that fails.
    pub fn open(&mut self, settings: Option<&Settings>) -> io::Result<()> {
        *self = Self {
            settings: settings.cloned(),
            ..Self::default()
        };
        match &self.settings {
            Some(settings) => open(settings).map(|file| self.file = Some(file)),
            None => Ok(()),
        }
    }

    /// Returns true if an audit log is configured.
    pub const fn is_on(&self) -> bool {
        self.settings.is_some()
    }

    /// Returns true if keys may leave only after they are recorded.
    pub fn is_required(&self) -> bool {
        let settings = self.settings.as_ref();
        settings.is_some_and(|settings| settings.required)
    }

    /// Omits a record if one peer causes too many refusals; no key is involved in those. The next
    /// written record has the number of omitted ones.
    pub fn ration(&mut self, record: Record, now: Instant) -> Option<Record> {
        let is_refusal = matches!(record.event, AuditEvent::Refused | AuditEvent::NotAgreed);
        let whose = record.gateway.as_ref().or(record.peer.as_ref());
        let Some(whose) = whose.filter(|_| is_refusal) else {
            return Some(record);
        };
        let quota = self.refusals.entry(whose.clone()).or_default();
        let left_out = quota.take(now)?;
        let reason = record.reason.map(|why| match left_out {
            0 => why,
            left_out => format!("{why} ({left_out} earlier records omitted)"),
        });
        Some(Record { reason, ..record })
    }

    /// Appends a line; with `required`, the line is on disk on return.
    pub fn keep(&mut self, record: &Record) -> io::Result<()> {
        let Some(settings) = &self.settings else {
            return Ok(());
        };
        let mut file = match self.file.take() {
            Some(file) => file,
            None => open(settings)?,
        };
        let begin = if self.torn { "\n" } else { "" };
        let line = format!("{begin}{}\n", record.to_line());
        let written = file.write(line.as_bytes())?;
        self.torn = written < line.len();
        if self.torn {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if settings.required {
            file.sync_data()?;
        }
        self.file = Some(file);
        Ok(())
    }
}

fn open(settings: &Settings) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = open_own(&settings.file, Access::Read, options.append(true))?;
    // After a crash, a new file may be lost with its content until its folder is on disk.
    if let Some(folder) = settings.file.parent().filter(|_| settings.required) {
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

/// Returns the record of an event, if it has one. `today` and `now` are the same time by two
/// clocks.
pub fn record(event: &Event, names: &PeerNames, today: UnixTime, now: Instant) -> Option<Record> {
    let record = match event {
        Event::Licensed {
            sa,
            agreement,
            lifetime,
        } => Record {
            zones: agreement.zones.iter().map(Zone::from).collect(),
            licences: permits(&agreement.licences, &agreement.zones),
            lifetime_seconds: Some(lifetime.as_secs()),
            ..entry(sa, names, AuditEvent::Agreed)
        },
        Event::NotLicensed {
            peer,
            licence,
            zone,
            why,
        } => Record {
            event: AuditEvent::NotAgreed,
            peer: Some(names.name(*peer).to_owned()),
            identity: Some(licence.node.to_string()),
            licences: vec![unmet(licence, *zone)],
            reason: Some(told(why)),
            ..Record::default()
        },
        Event::Giving {
            sa,
            node,
            rights,
            lifetime,
            grant,
        } => {
            let mut zones: Vec<_> = rights.iter().map(|(zone, _)| *zone).collect();
            zones.dedup();
            let licence = |(zone, right): &(model::Zone, Right)| Licence {
                node: node.clone(),
                zone: zone.id,
                right: *right,
            };
            let licences: Vec<_> = rights.iter().map(licence).collect();
            Record {
                grant: Some(*grant),
                licences: permits(&licences, &zones),
                zones: zones.iter().map(Zone::from).collect(),
                until: after(today, *lifetime),
                ..with(sa, names, AuditEvent::Given, node)
            }
        }
        Event::Granted { sa, node, .. } => with(sa, names, AuditEvent::Accepted, node),
        Event::GrantRefused { sa, node, why } => Record {
            reason: Some(told(why)),
            ..with(sa, names, AuditEvent::Refused, node)
        },
        Event::GrantEnded {
            sa,
            node,
            given,
            why,
        } => {
            let gone = matches!(why, Ending::NodeGone(_));
            let (why, reason) = ending(why);
            let event = match *given && !gone {
                true => AuditEvent::Revoked,
                false => AuditEvent::Ended,
            };
            Record {
                why: Some(why),
                reason,
                ..with(sa, names, event, node)
            }
        }
        Event::GrantHeld(held) => Record {
            until: after(today, held.until.since(now)),
            ..with_keys(held, names, AuditEvent::Accepted)
        },
        // The node that received our keys, and the zones that they open.
        Event::KeysHandedOn { held, node } => Record {
            identity: Some(node.to_string()),
            opens: held.zones.iter().map(|zone| zone.0).collect(),
            ..at_node(held, names, AuditEvent::Given)
        },
        Event::GrantUnusable { gateway, csa, why } => Record {
            event: AuditEvent::Refused,
            gateway: Some(names.name(*gateway).to_owned()),
            csa: Some(format!("{:016x}", csa.0)),
            reason: Some(why.clone()),
            ..Record::default()
        },
        Event::GrantDropped { held, why } => dropped(held, names, *why),
        Event::Unencrypted {
            peer,
            child,
            inbound,
            outbound,
            suite,
        } => Record {
            event: AuditEvent::Unencrypted,
            peer: Some(names.name(*peer).to_owned()),
            child: child.clone(),
            spi_in: Some(inbound.to_string()),
            spi_out: Some(outbound.to_string()),
            reason: Some(format!("{suite} does not encrypt")),
            ..Record::default()
        },
        // `Giving` has the record.
        Event::TokenGiven { .. } => return None,
        Event::PeerUp { .. }
        | Event::Reauthenticated { .. }
        | Event::Cloned { .. }
        | Event::HandedOver { .. }
        | Event::Redirected { .. }
        | Event::Resumed { .. }
        | Event::NotResumed { .. }
        | Event::FellBack { .. }
        | Event::SealedFor { .. }
        | Event::NameWanted { .. }
        | Event::NameFound { .. }
        | Event::NameNotFound { .. }
        | Event::NameProved { .. }
        | Event::Unanswered { .. }
        | Event::Displaced { .. }
        | Event::PeerDown { .. }
        | Event::Configured { .. }
        | Event::ChildUp { .. }
        | Event::UnencryptedLow { .. }
        | Event::ChildRekeyed { .. }
        | Event::IkeRekeyed { .. }
        | Event::EcnUnused { .. }
        | Event::Unpadded { .. }
        | Event::LevelSpent { .. }
        | Event::LevelRefused { .. }
        | Event::ChildDown { .. }
        | Event::PairLearnt { .. }
        | Event::PairForgotten { .. }
        | Event::PathMtu { .. }
        | Event::PathMtuForged { .. }
        | Event::PathMoved { .. }
        | Event::LivePath { .. }
        | Event::Signal { .. }
        | Event::WaysWanted { .. }
        | Event::Refused { .. }
        | Event::MobileIp(_)
        | Event::KeyLog(_) => return None,
    };
    Some(Record {
        time: today.rfc3339(),
        ..record
    })
}

/// Returns a record of each holder of keys: of our own keys, and this host as a holder of others'
/// keys. A log that begins later than the keys is otherwise silent about them until they change.
pub fn holders(node: &Node, today: UnixTime, now: Instant) -> Vec<Record> {
    let (csas, held) = (node.composite_sas(), node.held_grants());
    let given = csas.iter().flat_map(|csa| {
        let left =
            |grant: &&GrantStatus| matches!(grant.state, GrantState::Sent | GrantState::Held);
        let grants = csa.grants.iter().filter(left);
        grants.map(move |grant| holder(csa, node.names(), grant))
    });
    let held = held.iter().map(|held| Record {
        until: after(today, held.until.since(now)),
        ..with_keys(held, node.names(), AuditEvent::Held)
    });
    let time = |record| Record {
        time: today.rfc3339(),
        ..record
    };
    given.chain(held).map(time).collect()
}

fn holder(csa: &CsaStatus, names: &PeerNames, grant: &GrantStatus) -> Record {
    let sa = Composite {
        csa: csa.csa,
        peer: csa.peer,
        child: None,
        inbound: csa.inbound,
        outbound: csa.outbound,
    };
    let opened = |zone: &&model::Zone| {
        let mut licences = grant.licences.iter();
        licences.any(|licence| licence.zone == zone.id)
    };
    let zones = &csa.agreement.zones;
    Record {
        zones: zones.iter().filter(opened).map(Zone::from).collect(),
        licences: permits(&grant.licences, zones),
        ..with(&sa, names, AuditEvent::Held, &grant.node)
    }
}

fn after(today: UnixTime, time: Duration) -> Option<String> {
    Some(UnixTime(today.0 + time.as_secs()).rfc3339())
}

/// Starts an endpoint's record about a composite SA.
fn entry(sa: &Composite, names: &PeerNames, event: AuditEvent) -> Record {
    Record {
        event,
        peer: Some(names.name(sa.peer).to_owned()),
        child: sa.child.clone(),
        csa: Some(format!("{:016x}", sa.csa.0)),
        spi_in: Some(sa.inbound.to_string()),
        spi_out: Some(sa.outbound.to_string()),
        ..Record::default()
    }
}

fn with(sa: &Composite, names: &PeerNames, event: AuditEvent, node: &Identity) -> Record {
    Record {
        identity: Some(node.to_string()),
        ..entry(sa, names, event)
    }
}

/// Starts a licensed node's record about keys.
fn at_node(held: &HeldGrant, names: &PeerNames, event: AuditEvent) -> Record {
    Record {
        event,
        gateway: Some(names.name(held.gateway).to_owned()),
        identity: Some(held.identity.to_string()),
        csa: Some(format!("{:016x}", held.csa.0)),
        spi_in: Some(held.to_gateway.to_string()),
        spi_out: Some(held.from_gateway.to_string()),
        ..Record::default()
    }
}

fn with_keys(held: &HeldGrant, names: &PeerNames, event: AuditEvent) -> Record {
    Record {
        grant: Some(held.grant),
        opens: held.zones.iter().map(|zone| zone.0).collect(),
        ..at_node(held, names, event)
    }
}

fn dropped(held: &HeldGrant, names: &PeerNames, why: Dropped) -> Record {
    let (event, why) = match why {
        Dropped::Revoked => (AuditEvent::Revoked, None),
        Dropped::Expired => (AuditEvent::Expired, Some(Why::Lifetime)),
        Dropped::GatewayGone => (AuditEvent::Ended, Some(Why::Down)),
    };
    Record {
        why,
        ..at_node(held, names, event)
    }
}

fn ending(why: &Ending) -> (Why, Option<String>) {
    match why {
        Ending::Rekeyed => (Why::Rekey, None),
        Ending::Reconfigured => (Why::Reload, None),
        Ending::LifetimeOver => (Why::Lifetime, None),
        Ending::Unbound => (Why::Unbound, None),
        Ending::Moved => (Why::Moved, None),
        Ending::Down(cause) => (Why::Down, Some(told(cause))),
        Ending::NodeGone(cause) => (Why::NodeGone, Some(told(cause))),
    }
}

/// Returns one permit for each node and right.
pub fn permits(licences: &[Licence], zones: &[model::Zone]) -> Vec<Permit> {
    let mut all: BTreeMap<_, Vec<ZoneId>> = BTreeMap::new();
    for licence in licences {
        let zones = all.entry((&licence.node, licence.right)).or_default();
        zones.push(licence.zone);
    }
    let of_node = |((node, of), ids): ((&Identity, _), Vec<ZoneId>)| {
        let zones = zones.iter();
        permit(node, names(zones.filter(|zone| ids.contains(&zone.id))), of)
    };
    all.into_iter().map(of_node).collect()
}

fn names<'a>(zones: impl Iterator<Item = &'a model::Zone>) -> Vec<String> {
    zones.map(|zone| zone.selector.to_string()).collect()
}

/// Returns a permit that was not agreed on: only the configuration names its zones.
fn unmet(licence: &Licence, zone: ZoneSelector) -> Permit {
    permit(&licence.node, vec![zone.to_string()], licence.right)
}

fn permit(node: &Identity, zones: Vec<String>, right: Right) -> Permit {
    let fields = right.fields().iter().map(|field| (*field).to_owned());
    Permit {
        node: node.to_string(),
        zones,
        right: right.name().to_owned(),
        fields: fields.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CsaId, MapKind, PeerId, Spi, ZoneAgreement, ZoneSuite};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    const TODAY: UnixTime = UnixTime(1_795_346_707);
    const NOW: Instant = Instant::ZERO;

    fn names() -> PeerNames {
        let mut names = PeerNames::default();
        names.enter(["alice", "gw", "mallory"]);
        names
    }

    fn id(peer: &str) -> PeerId {
        names().id(peer).unwrap()
    }

    fn sa() -> Composite {
        Composite {
            csa: CsaId(0x1234),
            peer: id("alice"),
            child: None,
            inbound: Spi(0xa1),
            outbound: Spi(0xb2),
        }
    }

    fn node() -> Identity {
        "fa.example.net".parse().unwrap()
    }

    fn zone(id: u8, selector: ZoneSelector) -> model::Zone {
        model::Zone {
            id: ZoneId(id),
            selector,
            suite: ZoneSuite::Aes128Gcm16,
        }
    }

    fn line(event: &Event) -> String {
        record(event, &names(), TODAY, NOW).unwrap().to_line()
    }

    fn settings(name: &str, required: bool) -> Settings {
        let name = format!("stratad-audit-{}-{name}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&file);
        Settings { file, required }
    }

    fn ended() -> Record {
        let why = Ending::Rekeyed;
        let (sa, node, given) = (sa(), node(), true);
        let event = Event::GrantEnded {
            sa,
            node,
            given,
            why,
        };
        record(&event, &names(), TODAY, NOW).unwrap()
    }

    #[test]
    fn what_was_agreed_on_names_zones_suites_nodes_and_rights() {
        let licence = |zone| Licence {
            node: node(),
            zone: ZoneId(zone),
            right: Right::Read,
        };
        let event = Event::Licensed {
            sa: Composite {
                child: Some("voice".to_owned()),
                ..sa()
            },
            agreement: ZoneAgreement {
                zones: vec![
                    zone(1, ZoneSelector::IpTransport),
                    zone(2, ZoneSelector::Rest),
                ],
                map: MapKind::Changeable,
                window: 4096,
                licences: vec![licence(1), licence(2)],
                level: None,
            },
            lifetime: Duration::from_secs(3600),
        };
        assert_eq!(
            line(&event),
            r#"{"time":"2026-11-22T11:25:07Z","event":"agreed","peer":"alice","child":"voice","csa":"0000000000001234","spi_in":"000000a1","spi_out":"000000b2","zones":[{"serial":1,"name":"headers","suite":"aes128gcm16"},{"serial":2,"name":"payload","suite":"aes128gcm16"}],"licences":[{"node":"fa.example.net","zones":["headers","payload"],"right":"read"}],"lifetime_seconds":3600}"#
        );
    }

    /// Returns an event that a gateway can cause at any rate, with any reason.
    fn unusable(gateway: &str, why: &str) -> Event {
        Event::GrantUnusable {
            gateway: id(gateway),
            csa: CsaId(1),
            why: why.to_owned(),
        }
    }

    // Weakness: 126
    #[test]
    fn refusals_that_a_gateway_causes_without_end_leave_room_for_what_is_given() {
        let mut audit = Audit::default();
        let mut kept = |event: &Event, millis| {
            let now = NOW + Duration::from_millis(millis);
            audit.ration(record(event, &names(), TODAY, now).unwrap(), now)
        };
        let refusals = (0..10_000).filter_map(|millis| kept(&unusable("mallory", "no"), millis));
        let refusals: Vec<_> = refusals.collect();
        assert!((100..110).contains(&refusals.len()), "{}", refusals.len());
        let reason = refusals.last().unwrap().reason.as_deref().unwrap();
        assert!(reason.starts_with("no (249 earlier"), "{reason}");
        // The quota covers neither another gateway's refusals nor the end of keys.
        assert!(kept(&unusable("gw", "no"), 9_999).is_some());
        let (sa, node, why) = (sa(), node(), Ending::Rekeyed);
        let given = true;
        let ended = Event::GrantEnded {
            sa,
            node,
            given,
            why,
        };
        assert_eq!((0..1000).filter_map(|_| kept(&ended, 9_999)).count(), 1000);
    }

    // Weakness: 127
    #[test]
    fn a_reason_with_a_line_of_its_own_is_one_record() {
        let forged = "no\n{\"time\":\"\",\"event\":\"taken\"}";
        let line = line(&unusable("gw", forged));
        assert_eq!(line.lines().count(), 1);
        let read = Record::read(&line).unwrap();
        assert_eq!(read.reason.as_deref(), Some(forged));
    }

    #[test]
    fn what_is_given_says_until_when() {
        let event = Event::Giving {
            sa: sa(),
            node: node(),
            rights: vec![(zone(1, ZoneSelector::IpTransport), Right::Read)],
            lifetime: Duration::from_secs(8 * 3600),
            grant: 1,
        };
        assert_eq!(
            line(&event),
            r#"{"time":"2026-11-22T11:25:07Z","event":"given","peer":"alice","identity":"fa.example.net","csa":"0000000000001234","spi_in":"000000a1","spi_out":"000000b2","grant":1,"zones":[{"serial":1,"name":"headers","suite":"aes128gcm16"}],"licences":[{"node":"fa.example.net","zones":["headers"],"right":"read"}],"until":"2026-11-22T19:25:07Z"}"#
        );
    }

    #[test]
    fn what_is_given_says_what_it_is_for_and_which_fields_a_writer_may_change() {
        let (headers, payload) = (
            zone(1, ZoneSelector::IpTransport),
            zone(2, ZoneSelector::Rest),
        );
        let event = Event::Giving {
            sa: sa(),
            node: node(),
            rights: vec![
                (headers, Right::Write),
                (headers, Right::Inject),
                (payload, Right::Read),
            ],
            lifetime: Duration::from_secs(60),
            grant: 7,
        };
        let line = line(&event);
        for words in [
            r#""grant":7,"#,
            r#"{"node":"fa.example.net","zones":["headers"],"right":"write","fields":["window"]}"#,
            r#"{"node":"fa.example.net","zones":["headers"],"right":"inject"}"#,
            r#"{"node":"fa.example.net","zones":["payload"],"right":"read"}"#,
        ] {
            assert!(line.contains(words), "{line}");
        }
    }

    #[test]
    fn what_has_ended_says_why_and_whether_somebody_is_told() {
        let ended = |given, why| {
            let (sa, node) = (sa(), node());
            let event = Event::GrantEnded {
                sa,
                node,
                given,
                why,
            };
            let record = record(&event, &names(), TODAY, NOW).unwrap();
            (record.event, record.why.unwrap(), record.reason)
        };
        let text = || "closed on request".to_owned();
        let cause = || text().into();
        let all = [
            (true, Ending::Rekeyed, AuditEvent::Revoked, Why::Rekey),
            (true, Ending::Reconfigured, AuditEvent::Revoked, Why::Reload),
            (
                true,
                Ending::LifetimeOver,
                AuditEvent::Revoked,
                Why::Lifetime,
            ),
            (true, Ending::Unbound, AuditEvent::Revoked, Why::Unbound),
            (true, Ending::Moved, AuditEvent::Revoked, Why::Moved),
            (true, Ending::Down(cause()), AuditEvent::Revoked, Why::Down),
            (false, Ending::Down(cause()), AuditEvent::Ended, Why::Down),
            (
                true,
                Ending::NodeGone(cause()),
                AuditEvent::Ended,
                Why::NodeGone,
            ),
        ];
        for (given, ending, event, why) in all {
            let told = matches!(ending, Ending::Down(_) | Ending::NodeGone(_));
            let expected = (event, why, told.then(text));
            assert_eq!(ended(given, ending), expected);
        }
    }

    #[test]
    fn a_licensed_node_says_whose_keys_it_has_and_what_became_of_them() {
        let held = HeldGrant {
            csa: CsaId(0x1234),
            gateway: id("gw"),
            identity: "gw.example.net".parse().unwrap(),
            from_gateway: Spi(0xb2),
            to_gateway: Spi(0xa1),
            zones: vec![ZoneId(1)],
            payload_zone: ZoneId(2),
            grant: 3,
            writes: false,
            injects: false,
            until: NOW + Duration::from_secs(60),
        };
        assert_eq!(
            line(&Event::GrantHeld(held.clone())),
            r#"{"time":"2026-11-22T11:25:07Z","event":"accepted","gateway":"gw","identity":"gw.example.net","csa":"0000000000001234","spi_in":"000000a1","spi_out":"000000b2","grant":3,"opens":[1],"until":"2026-11-22T11:26:07Z"}"#
        );
        let why = [
            (Dropped::Revoked, "revoked"),
            (Dropped::Expired, "expired"),
            (Dropped::GatewayGone, "ended"),
        ];
        for (why, event) in why {
            let held = held.clone();
            let line = line(&Event::GrantDropped { held, why });
            let event = format!("\"event\":\"{event}\"");
            assert!(line.contains(&event), "{line}");
        }
    }

    #[test]
    fn what_is_refused_says_by_whom_and_why() {
        let not_agreed = Event::NotLicensed {
            peer: id("alice"),
            licence: Licence {
                node: node(),
                zone: ZoneId(2),
                right: Right::Read,
            },
            zone: ZoneSelector::Rest,
            why: "it does not accept it".to_owned().into(),
        };
        assert_eq!(
            line(&not_agreed),
            r#"{"time":"2026-11-22T11:25:07Z","event":"not_agreed","peer":"alice","identity":"fa.example.net","licences":[{"node":"fa.example.net","zones":["payload"],"right":"read"}],"reason":"it does not accept it"}"#
        );
        let refused = Event::GrantRefused {
            sa: sa(),
            node: node(),
            why: "it holds as many as it can".to_owned().into(),
        };
        assert_eq!(
            line(&refused),
            r#"{"time":"2026-11-22T11:25:07Z","event":"refused","peer":"alice","identity":"fa.example.net","csa":"0000000000001234","spi_in":"000000a1","spi_out":"000000b2","reason":"it holds as many as it can"}"#
        );
        let unusable = Event::GrantUnusable {
            gateway: id("gw"),
            csa: CsaId(0x1234),
            why: "too many".to_owned(),
        };
        assert_eq!(
            line(&unusable),
            r#"{"time":"2026-11-22T11:25:07Z","event":"refused","gateway":"gw","csa":"0000000000001234","reason":"too many"}"#
        );
    }

    #[test]
    fn after_half_a_line_the_next_one_begins_on_its_own() {
        let settings = settings("torn", false);
        fs::write(&settings.file, "{\"time\":").unwrap();
        let mut audit = Audit::default();
        audit.open(Some(&settings)).unwrap();
        audit.torn = true;
        audit.keep(&ended()).unwrap();
        audit.keep(&ended()).unwrap();
        let text = fs::read_to_string(&settings.file).unwrap();
        let whole = text.lines().filter_map(Record::read).count();
        assert_eq!((whole, text.lines().count()), (2, 3), "{text}");
        fs::remove_file(&settings.file).unwrap();
    }

    #[test]
    fn other_events_are_not_recorded() {
        let peer = id("alice");
        assert_eq!(record(&Event::PeerUp { peer }, &names(), TODAY, NOW), None);
    }

    #[test]
    fn nobody_else_can_read_the_file_and_lines_are_added_to_it() {
        let settings = settings("mode", true);
        for _ in 0..2 {
            let mut audit = Audit::default();
            audit.open(Some(&settings)).unwrap();
            audit.keep(&ended()).unwrap();
        }
        let mode = fs::metadata(&settings.file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(&settings.file).unwrap();
        let expected = format!("{}\n", ended().to_line()).repeat(2);
        assert_eq!(text, expected);
        fs::remove_file(&settings.file).unwrap();
    }

    #[test]
    fn a_file_that_was_taken_away_is_made_again_when_it_is_opened() {
        let settings = settings("rotated", false);
        let old = PathBuf::from(format!("{}.1", settings.file.display()));
        let mut audit = Audit::default();
        audit.open(Some(&settings)).unwrap();
        audit.keep(&ended()).unwrap();
        fs::rename(&settings.file, &old).unwrap();
        audit.keep(&ended()).unwrap();
        audit.open(Some(&settings)).unwrap();
        audit.keep(&ended()).unwrap();
        for (file, lines) in [(&old, 2), (&settings.file, 1)] {
            assert_eq!(fs::read_to_string(file).unwrap().lines().count(), lines);
            fs::remove_file(file).unwrap();
        }
    }

    // Recovers: audit
    #[test]
    fn a_file_that_cannot_be_opened_is_tried_again_for_each_line() {
        let folder = settings("folder", false).file;
        let settings = Settings {
            file: folder.join("audit.jsonl"),
            required: false,
        };
        let mut audit = Audit::default();
        assert!(audit.open(Some(&settings)).is_err());
        assert!(audit.keep(&ended()).is_err());
        fs::create_dir(&folder).unwrap();
        audit.keep(&ended()).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut audit = Audit::default();
        let settings = Settings {
            file: "/dev/full".into(),
            required: false,
        };
        audit.open(Some(&settings)).unwrap();
        assert!(audit.keep(&ended()).is_err());
    }

    #[test]
    fn without_a_file_nothing_is_kept_and_nothing_fails() {
        let mut audit = Audit::default();
        audit.open(None).unwrap();
        audit.keep(&ended()).unwrap();
        assert!(!audit.is_on() && !audit.is_required());
    }
}
