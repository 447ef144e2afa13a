//! Reads and writes messages in the notation of RFC 7296.
//!
//! ```text
//! message = "asks" | "answers" EXCHANGE "{" payload, ... "}"
//! payload = [ COUNT " * " ] [ "!" ] NAME [ "(" word ... ")" | "=" octets ]
//! octets  = hex [ "*" COUNT ] ...
//! ```
//!
//! A payload without words has the content of an honest peer's. `!` marks it critical. `=`
//! introduces its body, with arbitrary octets. Words have these meanings:
//!
//! * `N(TYPE)`, `N(TYPE ESP spi)`, `N(TYPE octets)`: a notify, optionally for an SA, optionally
//!   with data.
//! * `D(IKE)`, `D(ESP spi ...)`: a Delete.
//! * `TSi(prefix ...)`, `TSr(prefix ...)`: traffic selectors.
//! * `SA(IKE)`: a proposal for a successor of the IKE SA; `SA(new)`: a proposal for a child, with
//!   an unused SPI.
//! * `NAME(yours)`, `N(TYPE yours)`: the same payload as in the host's last message or, in an
//!   answer, in its last request.
//!
//! An SPI is `mine`, on which the insider receives for the newest child; `yours`, on which the host
//! does; or octets. Names are those of the registries; numbers are accepted as well. In place of
//! payloads `{raw TYPE octets}` is a literal chain with the type of its first payload.

use crate::insider::Chain;
use model::{Spi, TrafficSelector};
use wire::codec::Codec;
use wire::ike::{
    ConfigurationAttribute, Delete, ExchangeType, Message, Notify, NotifyType, Payload,
    PayloadType, Protocol, TrafficSelectors,
};

const NAMES: [(&str, PayloadType); 17] = [
    ("SA", PayloadType::SA),
    ("KE", PayloadType::KE),
    ("IDi", PayloadType::IDI),
    ("IDr", PayloadType::IDR),
    ("CERT", PayloadType::CERT),
    ("CERTREQ", PayloadType::CERTREQ),
    ("AUTH", PayloadType::AUTH),
    ("Nonce", PayloadType::NONCE),
    ("N", PayloadType::NOTIFY),
    ("D", PayloadType::DELETE),
    ("V", PayloadType::VENDOR_ID),
    ("TSi", PayloadType::TSI),
    ("TSr", PayloadType::TSR),
    ("SK", PayloadType::SK),
    ("CP", PayloadType::CP),
    ("GRANT", PayloadType::GRANT),
    ("SECRET", PayloadType::SECRET),
];

/// Types and bodies of payloads.
pub type Bodies = Vec<(u8, Vec<u8>)>;

/// The SPIs of a child SA.
#[derive(Clone, Copy)]
pub struct Spis {
    /// SPI on which the insider receives.
    pub mine: Spi,
    /// SPI on which the host receives.
    pub yours: Spi,
}

/// Current meanings of the words.
pub struct Lexicon {
    /// Payloads of an honest peer.
    pub honest: Bodies,
    /// Payloads of an honest peer for a successor of the IKE SA.
    pub honest_ike: Bodies,
    /// Payloads of the host's last message or, for an answer, of its last request.
    pub yours: Bodies,
    /// SPIs of the newest child SA, if there is one.
    pub spis: Option<Spis>,
    /// An unused SPI.
    pub unused: Spi,
}

/// A message to be sent.
pub struct Line<'a> {
    /// True for a response.
    pub response: bool,
    /// Exchange type.
    pub exchange: u8,
    payloads: &'a str,
}

impl<'a> Line<'a> {
    /// Parses the part before the payloads.
    pub fn read(text: &'a str) -> Result<Self, String> {
        let braced = text
            .split_once('{')
            .and_then(|(head, rest)| Some((head, rest.strip_suffix('}')?)));
        let (head, payloads) = braced.ok_or_else(|| format!("no {{payloads}} in `{text}`"))?;
        let words: Vec<_> = head.split_whitespace().collect();
        let [verb @ ("asks" | "answers"), exchange] = words[..] else {
            return Err(format!(
                "`{head}` is not `asks` or `answers` and an exchange"
            ));
        };
        let name = |number: u16| ExchangeType(u8::try_from(number).ok()?).name();
        Ok(Self {
            response: verb == "answers",
            exchange: number(exchange, name)? as u8,
            payloads,
        })
    }

    /// Returns true if the message concerns a successor of the IKE SA.
    pub fn is_about_ike(&self) -> bool {
        self.payloads.contains("SA(IKE)")
    }

    /// Parses the payloads.
    pub fn chain(&self, lexicon: &Lexicon) -> Result<Chain, String> {
        if let Some(raw) = self.payloads.strip_prefix("raw ") {
            let (first, content) = raw.split_once(' ').unwrap_or((raw, ""));
            return Ok(Chain {
                first: kind(first)?,
                octets: octets(content)?,
            });
        }
        let mut payloads = Vec::new();
        for text in self.payloads.split(", ").filter(|text| !text.is_empty()) {
            let (count, payload) = item(text, lexicon).map_err(|why| format!("{text}: {why}"))?;
            payloads.extend(std::iter::repeat_n(payload, count));
        }
        let mut octets = Vec::new();
        for (index, (_, critical, body)) in payloads.iter().enumerate() {
            let next = payloads.get(index + 1).map_or(0, |(kind, ..)| *kind);
            octets.extend([next, *critical]);
            octets.extend((body.len() as u16 + 4).to_be_bytes());
            octets.extend(body);
        }
        let first = payloads.first().map_or(0, |(kind, ..)| *kind);
        Ok(Chain { first, octets })
    }
}

/// Type, octet with the critical bit, and body.
type Item = (u8, u8, Vec<u8>);

fn item(text: &str, lexicon: &Lexicon) -> Result<(usize, Item), String> {
    let (count, text) = text.split_once(" * ").unwrap_or(("1", text));
    let count = count.parse().map_err(|_| format!("{count} is no count"))?;
    let (critical, text) = match text.strip_prefix('!') {
        Some(text) => (0x80, text),
        None => (0, text),
    };
    let (name, body) = if let Some((name, content)) = text.split_once('=') {
        (name, octets(content)?)
    } else if let Some((name, words)) = text.split_once('(') {
        let words = words.strip_suffix(')').ok_or("no `)` at the end")?;
        let words: Vec<_> = words.split_whitespace().collect();
        (name, composed(name, &words, lexicon)?)
    } else {
        let honest = find(&lexicon.honest, kind(text)?, &[]);
        (text, honest.ok_or("an honest peer has none there")?)
    };
    Ok((count, (kind(name)?, critical, body)))
}

/// Returns the body that words describe.
fn composed(name: &str, words: &[&str], lexicon: &Lexicon) -> Result<Vec<u8>, String> {
    match (name, words) {
        ("SA", ["IKE"]) => {
            let honest = find(&lexicon.honest_ike, PayloadType::SA.0, &[]);
            honest.ok_or_else(|| "an honest peer has none there".to_owned())
        }
        ("SA", ["new"]) => {
            let honest = find(&lexicon.honest, PayloadType::SA.0, &[]);
            let honest = honest.ok_or("an honest peer has none there")?;
            Ok(with_spi(honest, lexicon.unused))
        }
        ("N", [kind, rest @ ..]) => notify(kind, rest, lexicon),
        ("D", ["IKE"]) => Ok(vec![Protocol::IKE.0, 0, 0, 0]),
        ("D", [protocol, spis @ ..]) => {
            let count = (spis.len() as u16).to_be_bytes();
            let mut body = vec![self::protocol(protocol)?, 4, count[0], count[1]];
            for word in spis {
                body.extend(spi(word, lexicon)?);
            }
            Ok(body)
        }
        ("TSi" | "TSr", prefixes) => {
            let selectors = prefixes.iter().map(|text| selector(text));
            let mut body = Vec::new();
            TrafficSelectors(selectors.collect::<Result<_, _>>()?).encode(&mut body);
            Ok(body)
        }
        (name, ["yours"]) => {
            let theirs = find(&lexicon.yours, kind(name)?, &[]);
            theirs.ok_or_else(|| "the host said none".to_owned())
        }
        _ => Err("nobody knows these words".to_owned()),
    }
}

fn notify(kind: &str, rest: &[&str], lexicon: &Lexicon) -> Result<Vec<u8>, String> {
    let number = number(kind, |number| NotifyType(number).name())?.to_be_bytes();
    if rest == ["yours"] {
        let theirs = find(&lexicon.yours, PayloadType::NOTIFY.0, &number);
        return theirs.ok_or_else(|| "the host said none".to_owned());
    }
    let (protocol, spi, data) = match rest {
        [word, about, data @ ..] if protocol(word).is_ok() => {
            (protocol(word)?, spi(about, lexicon)?, data)
        }
        data => (0, Vec::new(), data),
    };
    let mut body = vec![protocol, spi.len() as u8];
    body.extend(number);
    body.extend(spi);
    body.extend(octets(&data.join(" "))?);
    Ok(body)
}

/// Returns the first payload of a type or, among notifies, of a notify type.
fn find(bodies: &[(u8, Vec<u8>)], kind: u8, notify: &[u8]) -> Option<Vec<u8>> {
    let fits = |(of, body): &&(u8, Vec<u8>)| {
        *of == kind && (notify.is_empty() || body.get(2..4) == Some(notify))
    };
    bodies.iter().find(fits).map(|(_, body)| body.clone())
}

/// Returns an SA payload with this SPI in all of its proposals.
fn with_spi(mut body: Vec<u8>, spi: Spi) -> Vec<u8> {
    let mut at = 0;
    while at < body.len() {
        body[at + 8..at + 12].copy_from_slice(&spi.0.to_be_bytes());
        at += usize::from(u16::from_be_bytes([body[at + 2], body[at + 3]]));
    }
    body
}

fn kind(name: &str) -> Result<u8, String> {
    let known = NAMES.iter().find(|(known, _)| *known == name);
    let known = known.map(|(_, kind)| kind.0).or_else(|| name.parse().ok());
    known.ok_or_else(|| format!("`{name}` is no payload"))
}

fn protocol(word: &str) -> Result<u8, String> {
    let known = (0..=3).find(|number| Protocol(*number).name() == Some(word));
    known.ok_or_else(|| format!("`{word}` is no protocol"))
}

fn spi(word: &str, lexicon: &Lexicon) -> Result<Vec<u8>, String> {
    let of_child = |pick: fn(Spis) -> Spi| -> Result<Vec<u8>, String> {
        let spis = lexicon.spis.ok_or("there is no child")?;
        Ok(pick(spis).0.to_be_bytes().to_vec())
    };
    match word {
        "mine" => of_child(|spis| spis.mine),
        "yours" => of_child(|spis| spis.yours),
        word => octets(word),
    }
}

fn selector(text: &str) -> Result<TrafficSelector, String> {
    let prefix = text.split_once('/').and_then(|(address, length)| {
        TrafficSelector::from_prefix(address.parse().ok()?, length.parse().ok()?)
    });
    prefix.ok_or_else(|| format!("`{text}` is no prefix"))
}

/// Parses a number, or its name in a registry.
fn number(word: &str, name: impl Fn(u16) -> Option<&'static str>) -> Result<u16, String> {
    let named = || (0..=u16::MAX).find(|number| name(*number) == Some(word));
    let number = word.parse().ok().or_else(named);
    number.ok_or_else(|| format!("`{word}` is neither a name nor a number"))
}

/// Parses hexadecimal octets, with repetitions.
pub fn octets(text: &str) -> Result<Vec<u8>, String> {
    let mut octets = Vec::new();
    for word in text.split_whitespace() {
        let (hex, count) = word.split_once('*').unwrap_or((word, "1"));
        let digits: Option<Vec<_>> = hex.chars().map(|digit| digit.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len().is_multiple_of(2));
        let (Some(digits), Ok(count)) = (digits, count.parse()) else {
            return Err(format!("`{word}` is not made of octets"));
        };
        let once = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8);
        octets.extend(once.collect::<Vec<_>>().repeat(count));
    }
    Ok(octets)
}

/// Formats a message in the same notation.
pub fn shown(message: &Message, spis: Option<Spis>) -> String {
    let verb = match message.header.flags.response {
        true => "answers",
        false => "asks",
    };
    let payloads = message.payloads.iter().map(|payload| one(payload, spis));
    let payloads = payloads.collect::<Vec<_>>().join(", ");
    format!("{verb} {} {{{payloads}}}", message.header.exchange)
}

fn one(payload: &Payload, spis: Option<Spis>) -> String {
    match payload {
        Payload::Notify(Notify {
            protocol,
            spi,
            kind,
            ..
        }) => match spi.as_slice().try_into().map(u32::from_be_bytes) {
            Ok(spi) => format!("N({kind} {protocol} {})", named(Spi(spi), spis)),
            Err(_) => format!("N({kind})"),
        },
        Payload::Delete(Delete::IkeSa) => "D(IKE)".to_owned(),
        Payload::Delete(Delete::Children { protocol, spis: of }) => {
            let of = of.iter().map(|spi| format!(" {}", named(*spi, spis)));
            format!("D({protocol}{})", of.collect::<String>())
        }
        Payload::TsInitiator(selectors) => format!("TSi({})", words(&selectors.0)),
        Payload::TsResponder(selectors) => format!("TSr({})", words(&selectors.0)),
        Payload::Configuration(configuration) => {
            let attributes = configuration.attributes.iter();
            let addresses = attributes.filter_map(|attribute| match attribute {
                ConfigurationAttribute::Address { value, .. } => value.map(|(address, _)| address),
                _ => None,
            });
            format!("CP({})", words(&addresses.collect::<Vec<_>>()))
        }
        other => {
            let known = NAMES.iter().find(|(_, kind)| *kind == other.kind());
            known.map_or_else(|| other.kind().to_string(), |(name, _)| (*name).to_owned())
        }
    }
}

fn named(spi: Spi, spis: Option<Spis>) -> String {
    match spis {
        Some(spis) if spi == spis.mine => "mine".to_owned(),
        Some(spis) if spi == spis.yours => "yours".to_owned(),
        _ => format!("{:08x}", spi.0),
    }
}

fn words(items: &[impl ToString]) -> String {
    let texts: Vec<_> = items.iter().map(ToString::to_string).collect();
    texts.join(" ")
}
