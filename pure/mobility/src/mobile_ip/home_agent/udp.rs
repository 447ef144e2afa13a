//! Tunnels in UDP (RFC 3519 section 4.6), for who asks from behind a NAT.
//!
//! That there is one is seen by the source of a request, which is not the care-of address that it names. The tunnel then
//! ends where the request came from, address and port, until another request is accepted.

use super::HomeAgent;
use crate::mobile_ip::{Arrival, Nat, Remote, is_host};
use wire::ip_in_ip;
use wire::mobile_ip::{
    Between, Code, Extensions, Request, RequestFlags, UdpTunnelReply, UdpTunnelRequest,
};

/// What was asked, and by whom: that is said by its place (sections 4.4 and 4.5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    mobile: Option<UdpTunnelRequest>,
    foreign: Option<UdpTunnelRequest>,
}

impl Asked {
    /// What a foreign agent adds behind its own authentication is not looked at.
    pub(super) fn of(extensions: Extensions<'_>) -> Self {
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

    /// A mobile node asks for where itself takes packets out of the tunnel, and a foreign agent for where it does
    /// (section 4.6.1).
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

/// A tunnel that may be, and what is said of it to who asked for one in UDP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) to: Remote,
    pub(super) answer: Option<UdpTunnelReply>,
    /// Whom to answer: see [`Asked`].
    pub(super) co_located: bool,
}

impl HomeAgent {
    /// The tunnel to a care-of address, by what was asked and what is seen. "The home agent SHOULD be consistent in
    /// acknowledging support for UDP tunnelling or not": who asks for it and does not need it is told so.
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
        // A mobile node that is behind another mapping than its request (R) has no tunnel here.
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

    /// Whether a tunnel in UDP would be made by the word of a foreign agent with which there is no key. What a mobile node asks
    /// for itself its own authentication covers.
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
