//! Scalars: the meaning of a string or a number in the file.

use crate::Prefix;
use crate::keys::{size, time};
use crate::reader::{Value, suggestion};
use crate::set::SETS;
use crypto::UnixTime;
use model::{EspSuite, Group, Identity, Kem, Suite, TrafficSelector, Wildcard};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use toml::value::Offset;

/// The word for "no additional key exchange" in `kem`.
pub const NO_KEM: &str = "none";

/// Names of protocols and their numbers.
pub const PROTOCOLS: [(&str, u8); 5] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("icmpv6", 58),
    ("sctp", 132),
];

/// The protocols that have ports.
pub const WITH_PORTS: [u8; 3] = [6, 17, 132];

impl<'a> Value<'a> {
    /// Returns true if the value is a string.
    pub fn is_text(&self) -> bool {
        self.inner.is_str()
    }

    pub fn text(&self) -> Option<&'a str> {
        match self.inner.as_str() {
            Some("") => self.fault("is empty", "write a value between the quotes"),
            Some(text) => Some(text),
            None => self.wrong_type("a string", "put it in quotes"),
        }
    }

    pub fn boolean(&self) -> Option<bool> {
        self.accepts(|| "true, false".to_owned());
        let boolean = self.inner.as_bool();
        boolean.or_else(|| self.wrong_type("true or false", "write true or false without quotes"))
    }

    /// Reads a whole number within limits.
    pub fn number(&self, limits: RangeInclusive<u32>) -> Option<u32> {
        self.accepts(|| format!("{} to {}", limits.start(), limits.end()));
        let Some(integer) = self.inner.as_integer() else {
            return self.wrong_type("a number", "write it in digits, without quotes");
        };
        let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        number
            .filter(|number| limits.contains(number))
            .or_else(|| self.out_of_limits(limits.start(), limits.end()))
    }

    pub fn port(&self) -> Option<u16> {
        let number = self.number(1..=u32::from(u16::MAX))?;
        u16::try_from(number).ok()
    }

    /// Reads one of a few words.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        self.accepts(|| {
            let words = choices.iter().map(|(word, _)| format!("`\"{word}\"`"));
            words.collect::<Vec<_>>().join(", ")
        });
        let text = self.text()?;
        let chosen = choices.iter().find(|(word, _)| *word == text);
        chosen.map(|&(_, choice)| choice).or_else(|| {
            let words = choices.iter().map(|&(word, _)| word);
            self.fault(format!("`{text}` is not known"), suggestion(text, words))
        })
    }

    /// Reads an identity that a peer can prove. Anything that looks like a pattern is refused,
    /// because identities are compared octet by octet.
    pub fn identity(&self) -> Option<Identity> {
        self.accepts(|| "identity".to_owned());
        self.identity_with("write one name, mail address or IP address")
    }

    /// Reads the identity of a node, or a domain of nodes.
    pub fn identity_or_domain(&self) -> Option<Identity> {
        self.accepts(|| "identity, or domain: `\"*.DOMAIN\"`".to_owned());
        let Ok(identity) = self.text()?.parse();
        match Wildcard::read(&identity) {
            Some(Wildcard::Below(_)) if !has_space(self.text()?) => Some(identity),
            _ => self.identity_with(
                "write one name, mail address or IP address, or a domain: \"*.sat.example.net\"",
            ),
        }
    }

    /// Reads an identity, or a pattern of many.
    pub fn identity_or_pattern(&self) -> Option<Identity> {
        self.accepts(|| "identity, or pattern: `\"*@DOMAIN\"`, `\"*.DOMAIN\"`, `\"*\"`".to_owned());
        let Ok(identity) = self.text()?.parse();
        match Wildcard::read(&identity) {
            Some(_) if !has_space(self.text()?) => Some(identity),
            _ => self.identity_with(
                "write one name, mail address or IP address; for many users with certificates \
                 write \"*@example.net\" or \"*.example.net\"",
            ),
        }
    }

    fn identity_with(&self, fix: &str) -> Option<Identity> {
        let text = self.text()?;
        if text.contains('*') || has_space(text) {
            let problem = format!("`{}` is not an identity", text.escape_debug());
            return self.fault(problem, fix);
        }
        text.parse().ok()
    }

    pub fn address(&self) -> Option<IpAddr> {
        self.accepts(|| "IP address".to_owned());
        let text = self.text()?;
        match text.parse() {
            Ok(IpAddr::V6(address)) if address.is_unicast_link_local() => self.fault(
                format!("`{text}` is link-local, so it belongs to one link only"),
                "write a global address, or one of a private network (fd00::/8)",
            ),
            Ok(address) => Some(address),
            Err(_) => self.fault(
                format!("`{text}` is not an IP address"),
                "write it like \"192.0.2.1\" or \"2001:db8::1\"; only `address` of [peer.NAME], [licensed.NAME] and [neighbour.NAME] may be a name",
            ),
        }
    }

    /// Reads an interface address: an address with a prefix length, host bits allowed.
    pub fn interface_address(&self) -> Option<Prefix> {
        self.accepts(|| "address with prefix length".to_owned());
        let text = self.text()?;
        text.parse().ok().or_else(|| {
            self.fault(
                format!("`{text}` is not an address with a prefix length"),
                "write it like \"10.1.0.2/32\" or \"fd01::2/128\"",
            )
        })
    }

    /// Reads a network: a prefix without host bits.
    pub fn prefix(&self) -> Option<Prefix> {
        self.accepts(|| "prefix".to_owned());
        self.prefix_in(self.text()?)
    }

    /// Reads a network, optionally limited to a protocol and its ports: `10.8.0.0/16 tcp 443`.
    pub fn selector(&self) -> Option<TrafficSelector> {
        self.accepts(|| "prefix, with or without protocol and ports".to_owned());
        let text = self.text()?;
        let (prefix, service) = text.split_once(' ').unwrap_or((text, ""));
        let all = self.prefix_in(prefix)?.selector();
        let (protocol, ports) = match service {
            "" => (all.protocol, all.ports),
            service => self.service(service)?,
        };
        Some(TrafficSelector {
            protocol,
            ports,
            ..all
        })
    }

    /// Reads a service: `tcp`, or `tcp 443`, or `udp 5000-5010`.
    fn service(&self, text: &str) -> Option<(u8, RangeInclusive<u16>)> {
        let (name, ports) = text.split_once(' ').unwrap_or((text, ""));
        let protocol = PROTOCOLS.iter().find(|(known, _)| *known == name);
        let number = || {
            // `parse` would accept a plus sign.
            let digits = name.bytes().all(|octet| octet.is_ascii_digit());
            let number = name.parse::<u8>().ok();
            number.filter(|number| digits && *number > 0)
        };
        let protocol = protocol.map(|(_, number)| *number).or_else(number);
        let Some(protocol) = protocol else {
            return self.fault(
                format!("`{}` is not a protocol", name.escape_debug()),
                "write the name or number of a protocol after the prefix, then its ports: \"10.8.0.0/16 tcp 443\"",
            );
        };
        if ports.is_empty() {
            return Some((protocol, 0..=u16::MAX));
        }
        if !WITH_PORTS.contains(&protocol) {
            return self.fault(
                "only tcp, udp and sctp have ports",
                "remove the ports, or write another protocol",
            );
        }
        Some((protocol, self.ports_in(ports)?))
    }

    /// Reads a port as a number, or a range such as "8000-8080".
    pub fn ports(&self) -> Option<RangeInclusive<u16>> {
        self.accepts(|| "port or range of ports".to_owned());
        match self.inner.is_integer() {
            true => self.port().map(|port| port..=port),
            false => self.ports_in(self.text()?),
        }
    }

    fn ports_in(&self, text: &str) -> Option<RangeInclusive<u16>> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| {
            let digits = text.bytes().all(|octet| octet.is_ascii_digit());
            text.parse::<u16>().ok().filter(|_| digits)
        };
        let range = port(first.trim()).zip(port(last.trim()));
        let range = range.filter(|(first, last)| first <= last);
        let Some((first, last)) = range else {
            return self.fault(
                format!("`{}` is not a range of ports", text.escape_debug()),
                "write one port as a number, or a range like \"8000-8080\"",
            );
        };
        Some(first..=last)
    }

    fn prefix_in(&self, text: &str) -> Option<Prefix> {
        let Ok(prefix) = text.parse::<Prefix>() else {
            return self.fault(
                format!("`{text}` is not a prefix"),
                "write it like \"10.8.0.0/16\" or \"fd00:8::/64\"",
            );
        };
        let network = prefix.network();
        if network != prefix {
            return self.fault(
                format!("`{text}` has bits set beyond its length"),
                format!("write \"{network}\""),
            );
        }
        Some(prefix)
    }

    /// Reads the name of a network device.
    pub fn interface(&self) -> Option<String> {
        self.accepts(|| "device name".to_owned());
        let text = self.text()?;
        if !is_device(text) {
            return self.fault(
                format!("`{}` cannot be a device's name", text.escape_debug()),
                "use 1 to 15 letters and digits, as `ip link` shows them",
            );
        }
        Some(text.to_owned())
    }

    /// Reads the absolute path of a file.
    pub fn absolute_path(&self) -> Option<PathBuf> {
        self.accepts(|| "absolute path".to_owned());
        let path = PathBuf::from(self.text()?);
        if !path.is_absolute() || path.file_name().is_none() {
            return self.fault(
                "this cannot be the path of a file",
                "write an absolute path, like \"/etc/resolv.conf\"",
            );
        }
        Some(path)
    }

    /// Reads a duration such as "30s".
    pub fn duration(&self, limits: RangeInclusive<Duration>) -> Option<Duration> {
        self.accepts(|| format!("{} to {}", time(*limits.start()), time(*limits.end())));
        const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
        self.with_unit("a time", "s")?;
        let text = self.text()?;
        let Some(millis) = amount(text, &UNITS) else {
            return self.fault(
                format!("`{text}` is not a time"),
                "write a number and ms, s, m or h, like \"30s\"",
            );
        };
        let duration = Duration::from_millis(millis);
        if !limits.contains(&duration) {
            return self.out_of_limits(time(*limits.start()), time(*limits.end()));
        }
        Some(duration)
    }

    /// Records a fault for a number without quotes and unit, with one that has both.
    fn with_unit(&self, expected: &str, unit: &str) -> Option<()> {
        let Some(integer) = self.inner.as_integer() else {
            return Some(());
        };
        let number = integer.as_str();
        self.wrong_type(
            expected,
            &format!("write \"{number}{unit}\", with quotes and unit"),
        )
    }

    /// Reads a number of octets such as "16MiB".
    pub fn size(&self, limits: RangeInclusive<u64>) -> Option<u64> {
        self.accepts(|| format!("{} to {}", size(*limits.start()), size(*limits.end())));
        const UNITS: [(&str, u64); 4] = [
            ("B", 1),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        ];
        self.with_unit("a size", "B")?;
        let text = self.text()?;
        let Some(octets) = amount(text, &UNITS) else {
            return self.fault(
                format!("`{text}` is not a size"),
                "write a number and B, KiB, MiB or GiB, like \"16MiB\"",
            );
        };
        if !limits.contains(&octets) {
            return self
                .out_of_limits(format!("{}B", limits.start()), format!("{}B", limits.end()));
        }
        Some(octets)
    }

    /// Reads a point in time: `2026-12-24T18:00:00Z`, or the beginning of a day in UTC.
    pub fn time(&self) -> Option<UnixTime> {
        self.accepts(|| "date, or date and time with `Z` or an offset".to_owned());
        let fix = "write it without quotes, like 2026-12-24T18:00:00Z";
        let Some(written) = self.inner.as_datetime() else {
            return self.wrong_type("a point in time", fix);
        };
        let Some(date) = written.date else {
            return self.fault("this time has no date", fix);
        };
        let day = UnixTime::from_date(date.year, date.month, date.day).0;
        let (time, offset) = match (written.time, written.offset) {
            (None, _) => return Some(UnixTime(day)),
            (Some(_), None) => return self.fault("this time has no zone", fix),
            (Some(time), Some(Offset::Z)) => (time, 0),
            (Some(time), Some(Offset::Custom { minutes })) => (time, i64::from(minutes) * 60),
        };
        let of_day = u64::from(time.hour) * 3600 + u64::from(time.minute) * 60;
        let local = day + of_day + u64::from(time.second.unwrap_or(0));
        Some(UnixTime(local.saturating_add_signed(-offset)))
    }

    /// Reads one suite without encryption or a list, best first.
    pub fn unencrypted_suites(&self) -> Option<Vec<EspSuite>> {
        self.choices(&EspSuite::UNENCRYPTED.map(|suite| (suite.name(), suite)))
    }

    /// Reads one suite or a list, best first; or the name of a set, which also yields the set's
    /// groups.
    pub fn suites(&self) -> Option<(Vec<Suite>, Option<Vec<Group>>)> {
        let set = |name| SETS.iter().find(|(set, _)| Some(*set) == name);
        if let Some((_, set)) = set(self.inner.as_str()) {
            return Some((set.suites.to_vec(), Some(set.groups.to_vec())));
        }
        if let Some(suite) = self.names_unencrypted() {
            return self.fault(
                format!("`{suite}` does not encrypt"),
                format!(
                    "in [peer.NAME] write `unencrypted = {{ suite = \"{suite}\", until = 2026-12-24T18:00:00Z }}`, and here a suite that encrypts"
                ),
            );
        }
        let all = Suite::ALL.map(|suite| (suite.name(), Some(suite)));
        let all: Vec<_> = all
            .into_iter()
            .chain(SETS.map(|(name, _)| (name, None)))
            .collect();
        let suites = self.choices(&all)?;
        let suites: Option<Vec<_>> = suites.into_iter().collect();
        let suites = suites.or_else(|| {
            self.fault(
                "a set of suites cannot be in a list",
                "write `suite = \"modern\"` without a list, or list single suites",
            )
        })?;
        Some((suites, None))
    }

    /// Returns a suite without encryption that the value names.
    fn names_unencrypted(&self) -> Option<EspSuite> {
        let named = |suite: &EspSuite| {
            let is = |value: &Value<'_>| value.inner.as_str() == Some(suite.name());
            is(self) || self.elements().any(|element| is(&element))
        };
        EspSuite::UNENCRYPTED.into_iter().find(named)
    }

    /// Reads one group or a list, best first.
    pub fn groups(&self) -> Option<Vec<Group>> {
        self.choices(&Group::ALL.map(|group| (group.name(), group)))
    }

    /// Reads one method for an additional key exchange or a list, best first; `none` is `None`.
    pub fn kems(&self) -> Option<Vec<Option<Kem>>> {
        let all = Kem::ALL.into_iter().map(|kem| (kem.name(), Some(kem)));
        let all: Vec<_> = all.chain([(NO_KEM, None)]).collect();
        self.choices(&all)
    }

    fn choices<T: Copy>(&self, all: &[(&str, T)]) -> Option<Vec<T>> {
        if self.inner.is_str() {
            return self.choice(all).map(|choice| vec![choice]);
        }
        let choices = self.list(|element| element.choice(all))?;
        if choices.is_empty() {
            return self.fault("the list is empty", "leave the key out for the default");
        }
        Some(choices)
    }

    fn out_of_limits<T>(&self, least: impl ToString, most: impl ToString) -> Option<T> {
        let (least, most) = (least.to_string(), most.to_string());
        let problem = format!("is not between {least} and {most}");
        self.fault(problem, format!("choose a value from {least} to {most}"))
    }
}

/// Returns true if Linux gives a network device this name.
pub(crate) fn is_device(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    !text.is_empty() && text.len() <= 15 && text.chars().all(good) && !text.starts_with('.')
}

fn has_space(text: &str) -> bool {
    text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Reads digits and a unit. Returns `None` also if the product overflows.
fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(split);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}
