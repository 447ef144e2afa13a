//! A filter against unencrypted packets with addresses from inside a tunnel.
//!
//! RFC 4301 section 5.2 requires that unprotected inbound packets are looked up in the SPD and
//! dropped if the policy protects them. The kernel does not know our policies: an interface accepts
//! a packet from any source for any address. So a table of nftables checks packets that arrive on
//! any interface other than the tunnel's, for the host itself and for hosts behind it. It concerns
//! arriving packets, independent of `leak`, which concerns leaving ones ([`crate::lock`]).
//!
//! Bypasses are checked first: traffic of the host itself that carries the tunnels or keeps the
//! outer network alive, and the operator's exceptions. Among prefixes the longest decides, as in
//! our routes; if the tunnel of a longer one does not carry the destination, the next one decides.
//! One hash table lookup for each length in use finds the source among any number of peers.
//!
//! The table works without this process, also after `kill -9`, until the next start or an orderly
//! end. It does not need the program `nft`, which may be missing. To see it, run `nft list table
//! inet strata_clear`.

use crate::nftables::{self, Base, Batch, Hook, IPV4, IPV6, Meta, R0, Record, Rule, Verdict, kind};
use crate::routes::Service;
use crate::{Error, Family, LinkAddress, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Name of the table, in the family `inet`.
const TABLE: &str = "strata_clear";

/// The table in the notation of nft(8).
pub const NAME: &str = "table inet strata_clear";

/// Name of the counter of all dropped packets.
const DROPPED: &str = "dropped";

/// Time for which a source is remembered after its last packet.
const MEMORY: Duration = Duration::from_secs(3600);

/// Most remembered sources of a family. Packets of others are dropped and counted all the same.
const MOST_SOURCES: u32 = 1024;

/// nft's numbers of the types in a source's key.
const INTERFACE_NAME: u32 = 41;
const ETHER_ADDRESS: u32 = 9;

/// The type of Ethernet and Wi-Fi interfaces (`ARPHRD_ETHER`), in the order of this machine.
const ETHERNET: u16 = 1;

/// Octets of an interface's name and of a link-layer address in a source's key.
const NAME_LEN: usize = 16;
const LINK: usize = 8;

const ICMP: u8 = 1;
const IP_IN_IP: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ESP: u8 = 50;
const ICMPV6: u8 = 58;

/// Ports of DHCP: the client's and the server's.
const DHCP: [[u16; 2]; 2] = [[68, 67], [546, 547]];

/// Types of ICMP that report an error about a packet.
const ICMP_ERRORS: [u8; 3] = [3, 11, 12];
const ICMPV6_ERRORS: RangeInclusive<u8> = 1..=4;

/// Types of ICMPv6 between neighbours: listeners of multicast, routers, redirects.
const NEIGHBOURS: RangeInclusive<u8> = 130..=137;
const LISTENER_REPORT: u8 = 143;

/// Types of ICMP with which agents of Mobile IP advertise themselves.
const ROUTERS: RangeInclusive<u8> = 9..=10;

/// The traffic that is accepted only out of the tunnel, with its exceptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// The TUN that decapsulated packets arrive on.
    pub device: String,
    /// The traffic that tunnels carry to us.
    pub protected: BTreeSet<Flow>,
    /// Sources that are accepted outside the tunnel too.
    pub bypassed: Vec<Prefix>,
    /// Services that are accepted outside the tunnel too, for any prefix.
    pub services: Vec<Service>,
    /// UDP ports on which encapsulated packets arrive.
    pub ports: Vec<u16>,
    /// TCP port of listeners for encapsulated packets.
    pub stream_port: Option<u16>,
    /// Remote ends of outgoing TCP streams with encapsulated packets.
    pub streams: Vec<SocketAddr>,
    /// Name servers that we ask for the addresses of peers.
    pub resolvers: Vec<IpAddr>,
    /// UDP ports on which messages of Mobile IP arrive; empty without a role in it.
    pub mobile: Vec<u16>,
}

/// Packets from a prefix to a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Source of the packets.
    pub source: Prefix,
    /// Destination of the packets, with protocol and ports.
    pub target: Target,
}

/// Our end of a flow, with the protocol and the ports of both ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// First address, of the source's family.
    pub first: IpAddr,
    /// Last address.
    pub last: IpAddr,
    /// IP protocol, 0 for any.
    pub protocol: u8,
    /// Source ports.
    pub from: Ports,
    /// Destination ports.
    pub to: Ports,
}

/// A range of ports. The full range also matches packets without ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ports {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl From<&RangeInclusive<u16>> for Ports {
    fn from(range: &RangeInclusive<u16>) -> Self {
        Self {
            first: *range.start(),
            last: *range.end(),
        }
    }
}

/// An observed source of dropped packets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The inner address that it claimed.
    pub claimed: IpAddr,
    /// The interface on which its packets arrived.
    pub interface: String,
    /// Its Ethernet address, or that of the last router before us.
    pub link: Option<LinkAddress>,
    /// Number of dropped packets.
    pub packets: u64,
    /// Time since the last dropped packet.
    pub ago: Duration,
}

impl Guard {
    /// Sets up the filter, replacing a predecessor's.
    pub fn start(&self) -> Result<(), Error> {
        let mut batch = Batch::new(TABLE);
        batch.table();
        batch.delete_table();
        batch.table();
        records(&mut batch);
        self.fill(batch)
    }

    /// Replaces the rules. Counters continue, and the filter has no gap in between.
    pub fn set(&self) -> Result<(), Error> {
        if dropped()?.is_none() {
            return self.start();
        }
        let mut batch = Batch::new(TABLE);
        batch.table();
        batch.delete_rules();
        // Another program may have removed objects that the rules need.
        self.fill(batch).or_else(|_| self.start())
    }

    fn fill(&self, mut batch: Batch<'_>) -> Result<(), Error> {
        chains(&mut batch);
        self.judge(&mut batch);
        self.receive(&mut batch);
        self.forward(&mut batch);
        batch.commit("filtering packets in clear with nftables")
    }

    /// Adds the rules for packets to the host itself.
    fn receive(&self, batch: &mut Batch<'_>) {
        let accept = |rule: Rule| rule.verdict(Verdict::Accept);
        let mut input = |rule: Rule| batch.rule("input", &rule);
        // Encapsulated packets are the majority, and numbers compare faster than names.
        for port in &self.ports {
            input(accept(udp(2, *port)));
        }
        input(accept(Rule::default().protocol(ESP)));
        for interface in [self.device.as_str(), "lo"] {
            input(accept(Rule::default().by(interface)));
        }
        // IPv6 is reassembled only behind this hook, and only a first fragment has ports.
        let fragment = Rule::default()
            .meta(Meta::Family, R0)
            .is(&[Layout::new(Family::V6).number]);
        let fragment = fragment.protocol(UDP).load_fragment();
        let fragment = fragment.masked(&[0xff, 0xf8]).differs_from(&[0, 0]);
        input(accept(fragment));
        if let Some(port) = self.stream_port {
            input(accept(tcp(2, port)));
        }
        for end in &self.streams {
            input(accept(answer_of(*end)));
        }
        for server in &self.resolvers {
            input(accept(answer_about_names(*server)));
        }
        // By destination alone: any sender can have port 434.
        for port in &self.mobile {
            input(accept(udp(2, *port)));
        }
        if !self.mobile.is_empty() {
            // A packet inside is judged when it leaves the device of the tunnel.
            input(accept(Rule::default().protocol(IP_IN_IP)));
            input(accept(icmp(ICMP, ROUTERS)));
        }
        for [client, server] in DHCP {
            for ports in [[client, server], [server, client]] {
                let [from, to] = ports.map(u16::to_be_bytes);
                let ports = Rule::default().protocol(UDP);
                input(accept(ports.transport(0, &[from, to].concat())));
            }
        }
        input(accept(icmp(ICMPV6, NEIGHBOURS)));
        input(accept(icmp(ICMPV6, LISTENER_REPORT..=LISTENER_REPORT)));
        for kind in ICMP_ERRORS {
            input(icmp(ICMP, kind..=kind).verdict(Verdict::Jump("about4")));
        }
        input(icmp(ICMPV6, ICMPV6_ERRORS).verdict(Verdict::Jump("about6")));
        input(accept(self.out_of_vrf()));
        input(Rule::default().verdict(Verdict::Jump("judge")));
        // The packet in a report begins after 8 octets, and one of ours has no options.
        let whole = |rule: Rule| rule.transport(8, &[0x45]);
        self.report(
            batch,
            "about4",
            Embedded {
                protocol: 17,
                ports: 28,
            },
            whole,
        );
        self.report(
            batch,
            "about6",
            Embedded {
                protocol: 14,
                ports: 48,
            },
            |rule| rule,
        );
    }

    /// Accepts reports about our own outer packets.
    fn report(
        &self,
        batch: &mut Batch<'_>,
        chain: &str,
        at: Embedded,
        begin: impl Fn(Rule) -> Rule,
    ) {
        let of = |protocol| {
            let icmp = begin(Rule::default());
            icmp.transport(at.protocol, &[protocol])
        };
        let port = |protocol, offset, port: u16| {
            let rule = of(protocol).transport(at.ports + offset, &port.to_be_bytes());
            rule.verdict(Verdict::Accept)
        };
        batch.rule(chain, &of(ESP).verdict(Verdict::Accept));
        for ours in self.ports.iter().chain(&self.mobile) {
            batch.rule(chain, &port(UDP, 0, *ours));
        }
        if let Some(ours) = self.stream_port {
            batch.rule(chain, &port(TCP, 0, ours));
        }
        let ends: BTreeSet<_> = self.streams.iter().map(SocketAddr::port).collect();
        for theirs in ends {
            batch.rule(chain, &port(TCP, 2, theirs));
        }
        if !self.mobile.is_empty() {
            batch.rule(chain, &of(IP_IN_IP).verdict(Verdict::Accept));
        }
    }

    /// Matches decapsulated packets whose TUN is in a VRF: they arrive on the VRF's device.
    fn out_of_vrf(&self) -> Rule {
        Rule::default().named(Meta::EnslavedInterface, &self.device)
    }

    /// Adds the rules for forwarded packets. Tunnels of others need no exception: a tunnel between
    /// a claimed source and a host behind us would be inside our own, because our routes lead to
    /// that source through ours.
    fn forward(&self, batch: &mut Batch<'_>) {
        let own = Rule::default().by(&self.device);
        batch.rule("forward", &own.verdict(Verdict::Accept));
        batch.rule("forward", &self.out_of_vrf().verdict(Verdict::Accept));
        batch.rule("forward", &Rule::default().verdict(Verdict::Jump("judge")));
    }

    /// Adds the decisions: bypassed services, then prefixes from the longest to the shortest.
    fn judge(&self, batch: &mut Batch<'_>) {
        for family in Family::ALL {
            let layout = Layout::new(family);
            let rule = Rule::default().meta(Meta::Family, R0).is(&[layout.number]);
            batch.rule("judge", &rule.verdict(Verdict::Jump(layout.judge)));
            layout.drop(batch);
            let services = self.services.iter();
            for service in services.filter(|service| service.prefix.family() == family) {
                batch.rule(layout.judge, &layout.service(service));
            }
        }
        let mut chains = Chains::default();
        let mut by_length = BTreeMap::<(Family, u8), Sources>::new();
        for (source, targets) in self.targets() {
            let chain = chains.chain(source.family(), targets, batch);
            let place = (source.family(), u8::MAX - source.length);
            let sources = by_length.entry(place).or_default();
            sources.protected.push(octets(source.address));
            sources.chains.push(chain);
        }
        for prefix in &self.bypassed {
            let place = (prefix.family(), u8::MAX - prefix.length);
            let sources = by_length.entry(place).or_default();
            sources.bypassed.insert(octets(prefix.address));
        }
        for ((family, length), sources) in by_length {
            let layout = Layout::new(family);
            sources.decide(&layout, u8::MAX - length, batch);
        }
    }

    /// Returns the destinations that each source must not reach in clear.
    fn targets(&self) -> BTreeMap<Prefix, BTreeSet<&Target>> {
        let mut targets = BTreeMap::<_, BTreeSet<_>>::new();
        for flow in &self.protected {
            let source = whole(flow.source);
            targets.entry(source).or_default().insert(&flow.target);
        }
        targets
    }
}

/// Offsets of the protocol and the ports of the packet in a report.
#[derive(Clone, Copy)]
struct Embedded {
    protocol: u32,
    ports: u32,
}

/// Sources of one prefix length.
#[derive(Default)]
struct Sources {
    protected: Vec<Vec<u8>>,
    /// The chain of each protected source.
    chains: Vec<String>,
    bypassed: BTreeSet<Vec<u8>>,
}

impl Sources {
    /// Adds the rules of this prefix length. Of two equal prefixes the protected one is checked
    /// first, as in our routes.
    fn decide(&self, layout: &Layout, length: u8, batch: &mut Batch<'_>) {
        let source = || layout.source(length);
        if !self.protected.is_empty() {
            let map = batch.map(&self.protected, &self.chains);
            batch.rule(layout.judge, &source().chosen(map));
        }
        if !self.bypassed.is_empty() {
            let keys: Vec<_> = self.bypassed.iter().cloned().collect();
            let set = batch.set(&keys);
            let rule = source().member(set).verdict(Verdict::Accept);
            batch.rule(layout.judge, &rule);
        }
    }
}

/// Chains that drop packets to certain targets, shared by peers with the same targets.
#[derive(Default)]
struct Chains<'a> {
    known: BTreeMap<(Family, BTreeSet<&'a Target>), String>,
}

impl<'a> Chains<'a> {
    fn chain(
        &mut self,
        family: Family,
        targets: BTreeSet<&'a Target>,
        batch: &mut Batch<'_>,
    ) -> String {
        let number = self.known.len();
        let chain = self.known.entry((family, targets));
        if let std::collections::btree_map::Entry::Occupied(known) = chain {
            return known.get().clone();
        }
        let layout = Layout::new(family);
        let name = format!("to_{number}");
        batch.chain(&name, None);
        for target in &chain.key().1 {
            batch.rule(&name, &layout.target(target));
        }
        chain.or_insert(name).clone()
    }
}

/// The header layout of a family, and the names of its parts of the table.
struct Layout {
    family: Family,
    number: u8,
    judge: &'static str,
    drop: &'static str,
    sources: &'static str,
    source: u32,
    destination: u32,
    length: u32,
}

impl Layout {
    const fn new(family: Family) -> Self {
        match family {
            Family::V4 => Self {
                family,
                number: 2,
                judge: "judge4",
                drop: "drop4",
                sources: "sources4",
                source: 12,
                destination: 16,
                length: 4,
            },
            Family::V6 => Self {
                family,
                number: 10,
                judge: "judge6",
                drop: "drop6",
                sources: "sources6",
                source: 8,
                destination: 24,
                length: 16,
            },
        }
    }

    /// Loads the network of a packet's source.
    fn source(&self, length: u8) -> Rule {
        let rule = Rule::default().load(Base::Network, self.source, self.length, R0);
        match length == self.family.bits() {
            true => rule,
            false => rule.masked(&mask(self.length as usize, length)),
        }
    }

    fn service(&self, service: &Service) -> Rule {
        let prefix = whole(service.prefix);
        let rule = self.source(prefix.length).is(&octets(prefix.address));
        let rule = rule.protocol(service.protocol);
        let rule = match &service.ports {
            Some(ports) => within(rule, 0, ports.into()),
            None => rule,
        };
        rule.verdict(Verdict::Accept)
    }

    fn target(&self, target: &Target) -> Rule {
        let rule = Rule::default().load(Base::Network, self.destination, self.length, R0);
        let rule = rule.within(&octets(target.first), &octets(target.last));
        let rule = match target.protocol {
            0 => rule,
            protocol => rule.protocol(protocol),
        };
        let rule = within(within(rule, 0, target.from), 2, target.to);
        rule.verdict(Verdict::Goto(self.drop))
    }

    /// Records the source, with its Ethernet address if it has one, and drops the packet.
    fn drop(&self, batch: &mut Batch<'_>) {
        let name = R0 + self.length / 4;
        let link = name + (NAME_LEN / 4) as u32;
        let seen = |rule: Rule| {
            let rule = rule.load(Base::Network, self.source, self.length, R0);
            rule.meta(Meta::Interface, name)
        };
        let kind = || Rule::default().meta(Meta::InterfaceType, R0);
        let ethernet = seen(kind().is(&ETHERNET.to_ne_bytes()));
        let ethernet = ethernet.load(Base::Link, 6, 6, link);
        let other = seen(kind().differs_from(&ETHERNET.to_ne_bytes()));
        let other = other.constant(&[0; LINK], link);
        for rule in [ethernet, other] {
            batch.rule(self.drop, &rule.record(self.sources));
        }
        let rule = Rule::default().count(DROPPED).verdict(Verdict::Drop);
        batch.rule(self.drop, &rule);
    }

    fn read(&self, element: &[u8]) -> Option<Source> {
        let key = nftables::find(element, kind::ELEMENT_KEY)?;
        let key = nftables::find(key, kind::VALUE)?;
        let (claimed, rest) = key.split_at_checked(self.length as usize)?;
        let (name, link) = rest.split_first_chunk::<NAME_LEN>()?;
        let link: [u8; 6] = *link.first_chunk()?;
        let left = nftables::find(element, kind::ELEMENT_EXPIRATION)?
            .first_chunk()
            .copied();
        let left = Duration::from_millis(left.map_or(0, u64::from_be_bytes));
        Some(Source {
            claimed: match self.family {
                Family::V4 => IpAddr::from(*claimed.first_chunk::<4>()?),
                Family::V6 => IpAddr::from(*claimed.first_chunk::<16>()?),
            },
            interface: name
                .iter()
                .take_while(|octet| **octet != 0)
                .map(|octet| char::from(*octet))
                .collect(),
            link: (link != [0; 6]).then_some(LinkAddress(link)),
            packets: nftables::seen(element)?,
            ago: MEMORY.saturating_sub(left),
        })
    }
}

/// Adds the counter and the sets of sources, which stay when rules change.
fn records(batch: &mut Batch<'_>) {
    batch.counter(DROPPED);
    for (family, address) in [(Family::V4, IPV4), (Family::V6, IPV6)] {
        let layout = Layout::new(family);
        batch.records(&Record {
            name: layout.sources,
            key_type: address << 12 | INTERFACE_NAME << 6 | ETHER_ADDRESS,
            key: layout.length + (NAME_LEN + LINK) as u32,
            size: MOST_SOURCES,
            timeout: MEMORY.as_millis() as u64,
        });
    }
}

/// Adds the chains at hooks, and those that rules jump to.
fn chains(batch: &mut Batch<'_>) {
    for layout in Family::ALL.map(Layout::new) {
        batch.chain(layout.drop, None);
        batch.chain(layout.judge, None);
    }
    for chain in ["judge", "about4", "about6"] {
        batch.chain(chain, None);
    }
    batch.chain("input", Some(Hook::Input));
    batch.chain("forward", Some(Hook::Forward));
}

/// Removes the filter, ours or a predecessor's.
pub fn remove() -> Result<(), Error> {
    match dropped() {
        Ok(Some(_)) => {
            let mut batch = Batch::new(TABLE);
            batch.delete_table();
            batch.commit("removing the table strata_clear from nftables")
        }
        // A kernel without tables has none of ours.
        Ok(None) | Err(Error::Os { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the packets dropped since the filter was set up; `None` without a filter.
pub fn dropped() -> Result<Option<u64>, Error> {
    nftables::counted(TABLE, DROPPED)
}

/// Returns a fingerprint of the filter's rules: equal fingerprints mean equal behaviour. `None`
/// without a filter.
pub fn fingerprint() -> Result<Option<u64>, Error> {
    nftables::fingerprint(TABLE)
}

/// Returns true if a notification of nftables is about the table.
pub(crate) fn is_changed_by(message: &[u8]) -> bool {
    nftables::is_about(message, TABLE)
}

/// Returns the sources of the last hour, those with the most packets first.
pub fn sources() -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for family in Family::ALL {
        let layout = Layout::new(family);
        nftables::elements(TABLE, layout.sources, |element| {
            sources.extend(layout.read(element));
        })?;
    }
    sources.sort_by(|a, b| (b.packets, &a.claimed).cmp(&(a.packets, &b.claimed)));
    Ok(sources)
}

/// Returns an error if this kernel has no nftables, or this process no permission to use it.
pub fn require() -> Result<(), Error> {
    nftables::require()
}

fn udp(offset: u32, port: u16) -> Rule {
    Rule::default()
        .protocol(UDP)
        .transport(offset, &port.to_be_bytes())
}

fn tcp(offset: u32, port: u16) -> Rule {
    Rule::default()
        .protocol(TCP)
        .transport(offset, &port.to_be_bytes())
}

/// Matches segments of an outgoing stream of ours, other than those that open a connection to us.
fn answer_of(end: SocketAddr) -> Rule {
    const SYN: u8 = 0x02;
    const ACK: u8 = 0x10;
    let layout = Layout::new(Family::from_address(end.ip()));
    let family = Rule::default().meta(Meta::Family, R0).is(&[layout.number]);
    let rule = family.load(Base::Network, layout.source, layout.length, R0);
    let rule = rule.is(&octets(end.ip())).protocol(TCP);
    let rule = rule.transport(0, &end.port().to_be_bytes());
    let flags = rule.load(Base::Transport, 13, 1, R0).masked(&[SYN | ACK]);
    flags.differs_from(&[SYN])
}

/// Matches answers of a name server.
fn answer_about_names(server: IpAddr) -> Rule {
    const DNS: u16 = 53;
    let layout = Layout::new(Family::from_address(server));
    let family = Rule::default().meta(Meta::Family, R0).is(&[layout.number]);
    let rule = family.load(Base::Network, layout.source, layout.length, R0);
    let rule = rule.is(&octets(server)).protocol(UDP);
    rule.transport(0, &DNS.to_be_bytes())
}

fn icmp(protocol: u8, kinds: RangeInclusive<u8>) -> Rule {
    let rule = Rule::default().protocol(protocol);
    let rule = rule.load(Base::Transport, 0, 1, R0);
    rule.within(&[*kinds.start()], &[*kinds.end()])
}

/// Adds a match for ports in a range, at an offset of the transport header.
fn within(rule: Rule, offset: u32, ports: Ports) -> Rule {
    if (ports.first, ports.last) == (0, u16::MAX) {
        return rule;
    }
    let rule = rule.load(Base::Transport, offset, 2, R0);
    rule.within(&ports.first.to_be_bytes(), &ports.last.to_be_bytes())
}

/// Returns a prefix without host bits.
fn whole(prefix: Prefix) -> Prefix {
    let octets = octets(prefix.address);
    let mask = mask(octets.len(), prefix.length);
    let masked: Vec<u8> = octets.iter().zip(mask).map(|(o, m)| o & m).collect();
    let address = match (masked.first_chunk::<4>(), masked.first_chunk::<16>()) {
        (_, Some(v6)) => IpAddr::from(*v6),
        (Some(v4), None) => IpAddr::from(*v4),
        (None, None) => prefix.address,
    };
    Prefix { address, ..prefix }
}

/// Returns the mask of a prefix length, in this many octets.
fn mask(octets: usize, length: u8) -> Vec<u8> {
    let bits = |octet: usize| usize::from(length).saturating_sub(8 * octet).min(8);
    (0..octets)
        .map(|octet| (0xff00_u16 >> bits(octet)) as u8)
        .collect()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}
