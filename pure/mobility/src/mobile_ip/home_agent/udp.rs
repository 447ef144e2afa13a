//! UDP tunnels (RFC 3519 section 4.6), for foreign agents and mobile nodes behind a NAT.
//!
//! A NAT shows by the source of a request, which differs from the care-of address in it. The tunnel
//! then ends at the source of the request, address and port, until another request is accepted.

use super::HomeAgent;
use crate::mobile_ip::{Arrival, Nat, Remote, is_host};
use wire::ip_in_ip;
use wire::mobile_ip::{
    Between, Code, Extensions, Request, RequestFlags, UdpTunnelReply, UdpTunnelRequest,
};

/// The UDP tunnel requests of both parties. The place of the extension identifies the sender
/// (sections 4.4 and 4.5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    mobile: Option<UdpTunnelRequest>,
    foreign: Option<UdpTunnelRequest>,
}

impl Asked {
    /// Reads both requests. Extensions behind the foreign agent's own authentication are ignored.
    pub(super) fn from_extensions(extensions: Extensions<'_>) -> Self {
        let Some(mobile) = extensions.only(Between::MobileHome) else {
            return Self::default();
        };
        let behind = extensions.after(&mobile);
        let behind = match extensions.only(Between::ForeignHome) {
            Some(foreign) => behind.before(&foreign),
            None => behind,
        };
        Self {
            mobile: UdpTunnelRequest::find(extensions.before(&mobile)),
            foreign: UdpTunnelRequest::find(behind),
        }
    }

    /// Returns the request of the party that decapsulates: the mobile node if it is co-located,
    /// otherwise the foreign agent (section 4.6.1). A request by the other party is an error.
    fn fitting(self, flags: RequestFlags) -> Result<Option<UdpTunnelRequest>, Code> {
        let (fitting, other) = match flags.has(RequestFlags::CO_LOCATED) {
            true => (self.mobile, self.foreign),
            false => (self.foreign, self.mobile),
        };
        match other {
            Some(_) => Err(Code::HomePoorlyFormed),
            None => Ok(fitting),
        }
    }
}

/// A permitted tunnel, and the answer to a UDP tunnel request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) to: Remote,
    pub(super) answer: Option<UdpTunnelReply>,
    /// True if the answer goes to the mobile node, false if to the foreign agent: see [`Asked`].
    pub(super) co_located: bool,
}

impl HomeAgent {
    /// Selects the tunnel to a care-of address from the request and its source. "The home agent
    /// SHOULD be consistent in acknowledging support for UDP tunnelling or not": an unnecessary
    /// request is declined explicitly.
    pub(super) fn grant(
        &self,
        request: &Request,
        asked: Asked,
        arrival: &Arrival,
    ) -> Result<Granted, Code> {
        let Request { care_of, flags, .. } = *request;
        let granted = |to, answer| Granted {
            to,
            answer,
            co_located: flags.has(RequestFlags::CO_LOCATED),
        };
        let is_translated = care_of != *arrival.source.ip();
        let Some(asked) = asked.fitting(flags)? else {
            return match is_translated {
                true => Err(Code::HomeProhibited),
                false => Ok(granted(Remote::Ip(care_of), None)),
            };
        };
        if !is_translated && !asked.forced {
            return Ok(granted(Remote::Ip(care_of), Some(self.declined())));
        }
        // A mobile node whose tunnel has another mapping than its request (R) gets no tunnel here.
        let is_allowed = match self.config.nat {
            Nat::Never => false,
            Nat::Detect => is_translated && !asked.through_agent,
            Nat::Always => !asked.through_agent,
        };
        let source = *arrival.source.ip();
        if !is_allowed || !is_host(source) || self.is_ours(source) {
            return Err(Code::HomeProhibited);
        }
        let is_ip = match asked.encapsulation {
            0 => !flags.asks_for_other_encapsulation(),
            encapsulation => encapsulation == ip_in_ip::PROTOCOL,
        };
        if !is_ip {
            return Err(Code::HomeUdpEncapsulation);
        }
        let answer = UdpTunnelReply {
            code: UdpTunnelReply::WILL,
            forced: asked.forced,
            ..self.declined()
        };
        Ok(granted(Remote::Udp(arrival.source), Some(answer)))
    }

    /// Returns true if a request would create a UDP tunnel without authentication of the foreign
    /// agent. A co-located mobile node's own authentication covers its request.
    pub(super) fn has_unproved_udp(
        &self,
        request: &Request,
        asked: Asked,
        arrival: &Arrival,
    ) -> bool {
        let is_mobiles = request.flags.has(RequestFlags::CO_LOCATED);
        let granted = self.grant(request, asked, arrival);
        !is_mobiles && granted.is_ok_and(|granted| granted.to.udp().is_some())
    }

    fn declined(&self) -> UdpTunnelReply {
        let keepalive = self.config.keepalive.map_or(0, |after| after.as_secs());
        UdpTunnelReply {
            code: UdpTunnelReply::DECLINED,
            forced: false,
            keepalive: u16::try_from(keepalive).unwrap_or(u16::MAX),
        }
    }
}
