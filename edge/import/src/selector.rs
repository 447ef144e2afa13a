//! Traffic selectors: `10.1.0.0/16`, `10.1.0.0/16[tcp/80]`, `dynamic[udp]`, `%dynamic[tcp/http]`.

use crate::range;

/// A selector of the imported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    /// The prefixes; none for the address of the end itself.
    pub(crate) prefixes: Option<Vec<String>>,
    /// Protocol and ports in the syntax of our configuration, or nothing.
    pub(crate) service: String,
}

impl Selector {
    /// The selector of the address of the end itself.
    pub(crate) const fn dynamic() -> Self {
        Self {
            prefixes: None,
            service: String::new(),
        }
    }

    /// Reads a selector.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (address, service) = match text.split_once('[') {
            Some((address, rest)) => (address.trim(), rest.trim_end_matches(']')),
            None => (text.trim(), ""),
        };
        let prefixes = match address.trim_start_matches('%') {
            "dynamic" | "config" | "modeconfig" | "" => None,
            "any" => Some(vec!["0.0.0.0/0".to_owned()]),
            address => Some(range::prefixes(address).ok_or_else(|| {
                format!("`{address}` is no address, prefix or range of addresses")
            })?),
        };
        let service = self::service(service)?;
        Ok(Self { prefixes, service })
    }

    /// Returns the selectors in the syntax of our configuration. `own` has the addresses of the end
    /// itself.
    pub(crate) fn written(&self, own: &[String]) -> Vec<String> {
        let prefixes = self.prefixes.as_deref().unwrap_or(own);
        let written = prefixes.iter().map(|prefix| match self.service.is_empty() {
            true => prefix.clone(),
            false => format!("{prefix} {}", self.service),
        });
        written.collect()
    }
}

/// Names of services that files of strongSwan use as ports.
const SERVICES: [(&str, u16); 8] = [
    ("ftp", 21),
    ("ssh", 22),
    ("smtp", 25),
    ("domain", 53),
    ("http", 80),
    ("https", 443),
    ("ldap", 389),
    ("l2tp", 1701),
];

/// Reads `tcp/80`, `udp/5000-5010`, `tcp/http`, `icmp`, `6/%any` or nothing.
fn service(text: &str) -> Result<String, String> {
    let (protocol, ports) = match text.split_once('/') {
        Some((protocol, ports)) => (protocol.trim(), ports.trim()),
        None => (text.trim(), ""),
    };
    let protocol = match protocol.to_ascii_lowercase().as_str() {
        "" | "any" | "%any" | "0" => "",
        "6" => "tcp",
        "17" => "udp",
        "1" => "icmp",
        "58" | "ipv6-icmp" | "icmpv6" => "icmpv6",
        "132" => "sctp",
        known @ ("tcp" | "udp" | "icmp" | "sctp") => return ported(known, ports),
        number if number.parse::<u8>().is_ok() => return ported(number, ports),
        "gre" => "47",
        other => {
            return Err(format!(
                "`{other}` is no protocol that Strata knows: write its number"
            ));
        }
    };
    ported(protocol, ports)
}

fn ported(protocol: &str, ports: &str) -> Result<String, String> {
    let port = |text: &str| {
        let named = SERVICES.iter().find(|(name, _)| *name == text);
        named.map(|(_, port)| *port).or_else(|| text.parse().ok())
    };
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    match (ports, port(first.trim()).zip(port(last.trim()))) {
        ("" | "any" | "%any" | "0", _) => Ok(protocol.to_owned()),
        _ if !["tcp", "udp", "sctp"].contains(&protocol) => {
            Err("only tcp, udp and sctp have ports in Strata".to_owned())
        }
        (_, Some((first, last))) if first == last => Ok(format!("{protocol} {first}")),
        (_, Some((first, last))) if first < last => Ok(format!("{protocol} {first}-{last}")),
        _ => Err(format!("`{ports}` is no port or range of ports")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_written_in_our_syntax() {
        let own = ["192.0.2.1/32".to_owned()];
        for (text, ours) in [
            ("10.1.0.0/16", &["10.1.0.0/16"][..]),
            ("10.1.0.10", &["10.1.0.10/32"]),
            ("10.1.0.0/16[tcp/80]", &["10.1.0.0/16 tcp 80"]),
            ("10.1.0.0/16[udp/5000-5010]", &["10.1.0.0/16 udp 5000-5010"]),
            ("dynamic", &["192.0.2.1/32"]),
            ("dynamic[tcp/http]", &["192.0.2.1/32 tcp 80"]),
            ("%dynamic[17/%any]", &["192.0.2.1/32 udp"]),
            ("0.0.0.0/0[icmp]", &["0.0.0.0/0 icmp"]),
            ("10.1.0.0/16[gre]", &["10.1.0.0/16 47"]),
            ("fd00::/64[6/443]", &["fd00::/64 tcp 443"]),
        ] {
            assert_eq!(
                Selector::read(text).expect(text).written(&own),
                ours,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_selector_is_refused_with_a_reason() {
        for (text, why) in [
            ("moon", "no address"),
            ("10.1.0.0/16[tcp/none]", "no port"),
            ("10.1.0.0/16[icmp/8]", "have ports"),
            ("10.1.0.0/16[foo]", "no protocol"),
            ("10.1.0.0/16[tcp/9-1]", "no port"),
        ] {
            let told = Selector::read(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
