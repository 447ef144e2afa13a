//! Pure TCP acknowledgements that a licensed node builds for an end that is silent.

use crate::esp::next_header;
use crate::shell::Shell;
use crate::tcp::{Flags, MIN_HEADER_LEN, PROTOCOL, Seq};
use model::Flow;
use std::net::IpAddr;

/// Fields of the acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Addresses and ports.
    pub flow: Flow,
    /// Sequence number: the octet after all that the sender has sent.
    pub seq: Seq,
    /// Acknowledgement number: the next octet that the sender expects.
    pub ack: Seq,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Timestamp and echo (RFC 7323 section 3.2), if the connection uses them.
    pub stamps: Option<(u32, u32)>,
}

impl Acknowledgement {
    /// Returns the headers, and the Next Header number of the first one (RFC 4303 section 2.6).
    /// They start with the IP header, or with the TCP header if the addresses differ in family, as
    /// for unknown addresses. The checksum is left out: the receiver computes it.
    pub fn headers(&self) -> (Vec<u8>, u8) {
        let tcp = self.tcp();
        let Flow {
            source,
            destination,
            ..
        } = self.flow;
        match Shell::new(source, destination, PROTOCOL, tcp.len()) {
            Some(shell) => {
                let next_header = match source {
                    IpAddr::V4(_) => next_header::IPV4,
                    IpAddr::V6(_) => next_header::IPV6,
                };
                ([shell.octets(), &tcp].concat(), next_header)
            }
            None => (tcp, PROTOCOL),
        }
    }

    fn tcp(&self) -> Vec<u8> {
        let stamps = self.stamps.map(|(value, echo)| {
            // Two no-operations in front, as in RFC 7323 appendix A.
            let front = [1, 1, 8, 10];
            [front, value.to_be_bytes(), echo.to_be_bytes()].concat()
        });
        let options = stamps.unwrap_or_default();
        let words = (MIN_HEADER_LEN + options.len()) / 4;
        let mut octets = Vec::with_capacity(4 * words);
        octets.extend_from_slice(&self.flow.source_port.to_be_bytes());
        octets.extend_from_slice(&self.flow.destination_port.to_be_bytes());
        octets.extend_from_slice(&self.seq.0.to_be_bytes());
        octets.extend_from_slice(&self.ack.0.to_be_bytes());
        octets.extend_from_slice(&[(words as u8) << 4, Flags::ACK.0]);
        octets.extend_from_slice(&self.window.to_be_bytes());
        // Checksum and urgent pointer.
        octets.extend_from_slice(&[0; 4]);
        octets.extend_from_slice(&options);
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{checksum, ip, tcp};

    fn between(source: &str, destination: &str) -> Acknowledgement {
        Acknowledgement {
            flow: Flow {
                source: source.parse().unwrap(),
                destination: destination.parse().unwrap(),
                protocol: PROTOCOL,
                source_port: 40_000,
                destination_port: 80,
                ports_visible: true,
            },
            seq: Seq(7),
            ack: Seq(9),
            window: 500,
            stamps: Some((11, 13)),
        }
    }

    #[test]
    fn what_is_made_reads_as_what_was_said() {
        for (ends, first) in [(["10.0.0.1", "10.0.0.2"], 4), (["fd00::1", "fd00::2"], 41)] {
            for stamps in [None, Some((11, 13))] {
                let said = Acknowledgement {
                    stamps,
                    ..between(ends[0], ends[1])
                };
                let (mut octets, next_header) = said.headers();
                assert_eq!(next_header, first);
                assert!(checksum::restore(&mut octets));
                let header = ip::Header::parse(&octets).unwrap();
                assert_eq!(header.flow(), said.flow);
                let tcp = tcp::Header::parse(header.payload()).unwrap();
                assert_eq!(tcp.header_len, header.payload().len(), "no payload");
                assert_eq!((tcp.seq, tcp.ack), (said.seq, said.ack));
                assert_eq!((tcp.window, tcp.flags), (500, Flags::ACK));
                let value = tcp.options().map(|option| option.unwrap().value).next();
                let expected =
                    stamps.map(|(value, echo)| tcp::OptionValue::Timestamps { value, echo });
                assert_eq!(value, expected);
            }
        }
    }

    #[test]
    fn without_addresses_there_is_the_header_of_tcp_alone() {
        let (octets, next_header) = between("::", "0.0.0.0").headers();
        assert_eq!((octets.len(), next_header), (32, PROTOCOL));
    }
}
