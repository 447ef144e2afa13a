//! The access of nodes to zones, and the connections that a licensed node sees.

use crate::audit::permits;
use crate::explain::told;
use control::{Composite, Flow, Flows, GrantState, Held, Holder, SnoopCounters, Zone, Zones};
use model::{Identity, Instant, Right};
use node::{CsaStatus, HeldGrant, Node};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Returns the answer to `strata zones`.
pub fn zones(node: &Node, now: Instant) -> Zones {
    Zones {
        composites: node
            .composite_sas()
            .iter()
            .map(|csa| composite(csa, node, now))
            .collect(),
        held: node
            .held_grants()
            .iter()
            .map(|held| held_grant(held, node, now))
            .collect(),
    }
}

fn composite(status: &CsaStatus, node: &Node, now: Instant) -> Composite {
    let licences = &status.agreement.licences;
    let nodes = licences
        .iter()
        .map(|licence| (&licence.node, licence.right));
    let nodes: BTreeSet<_> = nodes.collect();
    Composite {
        csa: format!("{:016x}", status.csa.0),
        peer: node.name(status.peer).to_owned(),
        child: status.child.clone(),
        spi_in: status.inbound.to_string(),
        spi_out: status.outbound.to_string(),
        map: status.agreement.fixed_runs(),
        spi_opaque_in: status.opaque.map(|(inbound, _)| inbound.to_string()),
        spi_opaque_out: status.opaque.map(|(_, outbound)| outbound.to_string()),
        level: level(status, now),
        signal: status.signal.to_string(),
        link: status.link.map(|link| control::Link {
            missing: link.missing,
            good: link.good,
        }),
        window: status.agreement.window,
        zones: status.agreement.zones.iter().map(Zone::from).collect(),
        holders: nodes
            .into_iter()
            .map(|(node, right)| holder(status, node, right, now))
            .collect(),
        not_agreed: permits(&status.missing, &status.agreement.zones),
    }
}

/// Returns the grant for packets without encryption.
fn level(status: &CsaStatus, now: Instant) -> Option<control::LevelGrant> {
    let (level, (inbound, outbound)) = status.level.zip(status.integrity)?;
    let grant = level.grant;
    Some(control::LevelGrant {
        class: grant.class.to_string(),
        spi_in: inbound.to_string(),
        spi_out: outbound.to_string(),
        packets: grant.packets,
        seconds: grant.seconds,
        renewals: grant.renewals,
        sent: level.sealed,
        received: level.opened,
        packets_left: level.packets_left(),
        seconds_left: level.seconds_left(now),
    })
}

/// Returns a licensed node and its rights, with the state of its grant if we issued it.
fn holder(status: &CsaStatus, node: &Identity, right: Right, now: Instant) -> Holder {
    let licences = &status.agreement.licences;
    let may = |zone: &&model::Zone| {
        let mut licences = licences.iter();
        licences.any(|l| (&l.node, l.zone, l.right) == (node, zone.id, right))
    };
    let licensed = status.agreement.zones.iter().filter(may);
    let grant = status.grants.iter().find(|grant| grant.node == *node);
    Holder {
        node: node.to_string(),
        zones: licensed.map(|zone| zone.selector.to_string()).collect(),
        right: right.name().to_owned(),
        state: grant.map(|grant| grant_state(grant.state)),
        since_seconds: grant.map(|grant| now.since(grant.since).as_secs()),
        refusal: grant.and_then(|grant| grant.refusal.as_ref().map(told)),
    }
}

fn held_grant(held: &HeldGrant, node: &Node, now: Instant) -> Held {
    Held {
        csa: format!("{:016x}", held.csa.0),
        gateway: node.name(held.gateway).to_owned(),
        identity: held.identity.to_string(),
        spi_from_gateway: held.from_gateway.to_string(),
        spi_to_gateway: held.to_gateway.to_string(),
        opens: held.zones.iter().map(|zone| zone.0).collect(),
        writes: writes(held),
        injects: held.injects,
        payload_zone: held.payload_zone.0,
        lifetime_left_seconds: held.until.since(now).as_secs(),
    }
}

fn writes(held: &HeldGrant) -> Vec<String> {
    let fields = Right::Write.fields().iter().filter(|_| held.writes);
    fields.map(|field| (*field).to_owned()).collect()
}

const fn grant_state(state: node::GrantState) -> GrantState {
    match state {
        node::GrantState::Pending => GrantState::Pending,
        node::GrantState::Sent => GrantState::Sent,
        node::GrantState::Held => GrantState::Held,
        node::GrantState::Refused => GrantState::Refused,
    }
}

/// Returns the answer to `strata flows`.
pub fn flows(node: &Node) -> Flows {
    let counters = node.snoop_counters();
    let total = counters.map_or_else(SnoopCounters::default, |counters| SnoopCounters {
        cached: counters.cached,
        retransmitted: counters.retransmitted_lost
            + counters.retransmitted_timeout
            + counters.retransmitted_persist,
        suppressed: counters.suppressed,
    });
    Flows {
        snoop: counters.is_some(),
        total,
        flows: node.flows().iter().map(flow).collect(),
    }
}

fn flow(status: &node::FlowStatus) -> Flow {
    let model::Flow {
        source,
        destination,
        source_port,
        destination_port,
        ..
    } = status.flow;
    Flow {
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
        zoned: status.line.is_some(),
        state: status.state.to_string(),
        cached_packets: status.packets as u64,
        cached_octets: status.octets as u64,
        round_trip_micros: status.srtt.map(|srtt| srtt.as_micros() as u64),
        retransmitted: status.retransmitted,
        suppressed: status.suppressed,
    }
}
