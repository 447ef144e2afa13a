//! Payloads and rules of extensions, one file each. What an extension does on an IKE SA that is up
//! is in `task/`.

pub(crate) mod childless;
pub(crate) mod clone;
pub(crate) mod configuration;
pub(crate) mod contact;
pub(crate) mod cookie;
pub(crate) mod crash;
pub(crate) mod delete;
pub(crate) mod distribute;
pub(crate) mod followup;
pub(crate) mod fragment;
pub(crate) mod guess;
pub(crate) mod intermediate;
pub(crate) mod level;
pub(crate) mod live_path;
pub(crate) mod liveness;
pub(crate) mod migration;
pub(crate) mod mobike;
pub(crate) mod mobikex;
pub(crate) mod mode;
pub(crate) mod nat;
pub(crate) mod no_nats;
pub(crate) mod overlap;
pub(crate) mod padding;
pub(crate) mod path_traffic;
pub(crate) mod ping;
pub(crate) mod ppk;
pub(crate) mod reauth;
pub(crate) mod redirect;
pub(crate) mod resource;
pub(crate) mod routability;
pub(crate) mod skid;
pub(crate) mod slot;
pub(crate) mod tcp;
pub(crate) mod tfc;
pub(crate) mod ticket;
pub(crate) mod zones;

/// Returns an INFORMATIONAL request with payloads.
#[cfg(test)]
fn informational(payloads: Vec<wire::ike::Payload>) -> wire::ike::Message {
    use wire::ike::{ExchangeType, Flags, Header, Message, VERSION_2};
    let header = Header {
        spi_i: 1,
        spi_r: 2,
        version: VERSION_2,
        exchange: ExchangeType::INFORMATIONAL,
        flags: Flags::default(),
        message_id: 0,
    };
    Message { header, payloads }
}
