//! throw-away
#[path = "../tests/memory/mod.rs"]
#[allow(dead_code)]
mod memory;
use crypto::Secret;
use model::*;
use node::*;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant as Clock};

fn pfx(a: u32, l: u8) -> Vec<TrafficSelector> {
    vec![TrafficSelector::from_prefix(IpAddr::V4(Ipv4Addr::from_bits(a)), l).unwrap()]
}
fn id(n: u32) -> Identity {
    format!("{n}.bench").parse().unwrap()
}
fn config(identity: Identity, peers: Vec<Peer>) -> Config {
    let names: Vec<String> = peers.iter().map(|p| p.name.clone()).collect();
    Config {
        identity,
        credential: None,
        trust: crypto::TrustStore::default(),
        start: vec![],
        peers,
        encapsulation: Encapsulation::Always,
        ike_port: 500,
        natt_port: 4500,
        addresses: vec![],
        fragment: 1280,
        elsewhere: None,
        workers: std::num::NonZeroU8::MIN,
        policies: vec![],
        snoop: None,
        window: None,
        stand_in: None,
        mobile_ip: None,
        places: Default::default(),
        neighbours: vec![],
        grant_lifetime: Duration::from_secs(3600),
        classes: names.iter().map(|n| (n.clone(), Dscp::default())).collect(),
        sizes: BTreeMap::new(),
        cover: BTreeMap::new(),
        levels: names
            .iter()
            .map(|n| (n.clone(), LevelChoice::default()))
            .collect(),
        clamp: None,
        path_mtu: false,
        key_log: false,
    }
}
fn vpn(
    local: Vec<TrafficSelector>,
    remote: Vec<TrafficSelector>,
    pool: Option<Pool>,
    ask: bool,
    zoned: bool,
) -> Role {
    Role::Vpn {
        local,
        remote,
        addressing: if let Some(p) = pool {
            Addressing::Lent(Box::new(p))
        } else if ask {
            Addressing::Requested
        } else {
            Addressing::Fixed
        },
        zones: if zoned {
            ZonePolicy {
                stance: Stance::Require,
                zones: vec![
                    (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
                    (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
                ],
                map: MapKind::Changeable,
                window: 4096,
                licences: vec![Licence {
                    node: "fa.bench".parse().unwrap(),
                    zone: ZoneId(1),
                    right: Right::Read,
                }],
                level: None,
            }
        } else {
            ZonePolicy {
                stance: Stance::Refuse,
                zones: vec![],
                map: MapKind::Changeable,
                window: 4096,
                licences: vec![],
                level: None,
            }
        },
        mode: Mode::Tunnel,
    }
}
fn addr(n: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a000000 + n))
}
fn p(name: String, address: Option<IpAddr>, identity: Identity, role: Role, mob: bool) -> Peer {
    Peer {
        address,
        psk: Some(Secret::new(vec![7; 32])),
        mobike: mob,
        clones: mob,
        liveness: Duration::from_secs(3600),
        ..Peer::new(&name, identity, role)
    }
}
struct T {
    spent: Duration,
}
fn out(n: &mut Node, to: &mut Vec<Transmit>) {
    while n.poll_lease().is_some() {}
    while let Some(t) = n.poll_transmit() {
        to.push(t)
    }
    while n.poll_event().is_some() {}
    let _ = n.poll_timeout();
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: u32 = a[1].parse().unwrap();
    let has = |s: &str| a.iter().any(|x| x == s);
    let (pool, zoned, initiator, mob) =
        (has("pool"), has("zoned"), has("initiator"), !has("fixed"));
    let gw: IpAddr = "192.0.2.1".parse().unwrap();
    let mut now = Instant::ZERO;
    let net = pfx(0xc0a80000, 16);
    let inner = |i: u32| pfx(0xac100000 + i, 32);
    let thepool = Pool {
        name: "p".into(),
        addresses: pfx(0xac100000, 14),
        reserved: vec![],
        dns: vec![],
        subnets: vec![],
        lease: Duration::from_secs(3600),
    };
    let before = memory::in_use();
    let peers: Vec<Peer> = (0..n)
        .map(|i| {
            if initiator {
                p(
                    format!("i{i}"),
                    Some(addr(i)),
                    id(i),
                    vpn(net.clone(), inner(i), None, false, zoned),
                    mob,
                )
            } else {
                let remote = if pool { pfx(0xac100000, 14) } else { inner(i) };
                p(
                    format!("i{i}"),
                    None,
                    id(i),
                    vpn(
                        net.clone(),
                        remote,
                        pool.then(|| thepool.clone()),
                        false,
                        zoned,
                    ),
                    mob,
                )
            }
        })
        .collect();
    println!(
        "one list of peers: {} B each, size_of Peer {}",
        (memory::in_use() - before) / i64::from(n),
        std::mem::size_of::<Peer>()
    );
    let mut peers = peers;
    if zoned {
        peers.push(p(
            "fa".into(),
            Some("203.0.113.1".parse().unwrap()),
            "fa.bench".parse().unwrap(),
            Role::Licensed,
            false,
        ));
    }
    let c = config("gw.bench".parse().unwrap(), peers);
    println!(
        "config: {} B each",
        (memory::in_use() - before) / i64::from(n)
    );
    let mut s = Node::new(c, [1; 32], now);
    println!(
        "node: {} B each",
        (memory::in_use() - before) / i64::from(n)
    );
    let mut t = T {
        spent: Duration::ZERO,
    };
    let mut v = vec![];
    out(&mut s, &mut v);
    v.clear();
    let step = (n / 8).max(1);
    let mut first = 0.0;
    let mut sas = vec![];
    for i in 0..n {
        now = now + Duration::from_millis(2);
        let role = if initiator {
            vpn(inner(i), net.clone(), None, false, zoned)
        } else if pool {
            vpn(pfx(0xac100000, 14), net.clone(), None, true, zoned)
        } else {
            vpn(inner(i), net.clone(), None, false, zoned)
        };
        let peer = p(
            "gw".into(),
            if initiator { None } else { Some(gw) },
            "gw.bench".parse().unwrap(),
            role,
            mob,
        );
        let mut cl = Node::new(
            config(id(i), vec![peer]),
            {
                let mut k = [2; 32];
                k[..4].copy_from_slice(&i.to_be_bytes());
                k
            },
            now,
        );
        let (mut to_s, mut to_c) = (vec![], vec![]);
        if initiator {
            let b = Clock::now();
            s.up(&format!("i{i}"), now).unwrap();
            out(&mut s, &mut to_c);
            t.spent += b.elapsed();
        } else {
            cl.up("gw", now).unwrap();
            out(&mut cl, &mut to_s);
        }
        for _ in 0..12 {
            for m in std::mem::take(&mut to_s) {
                let path = Path::udp(
                    std::net::SocketAddr::new(gw, m.path.remote.port()),
                    std::net::SocketAddr::new(addr(i), m.path.local.port()),
                );
                let pl = if m.path.remote.port() == 4500 {
                    &m.payload[4..]
                } else {
                    &m.payload[..]
                };
                let b = Clock::now();
                s.handle_datagram(path, pl, now);
                out(&mut s, &mut to_c);
                t.spent += b.elapsed();
            }
            for m in std::mem::take(&mut to_c) {
                if m.path.remote.ip() != addr(i) {
                    continue;
                }
                let path = Path::udp(
                    std::net::SocketAddr::new(addr(i), m.path.remote.port()),
                    std::net::SocketAddr::new(gw, m.path.local.port()),
                );
                let pl = if m.path.remote.port() == 4500 {
                    &m.payload[4..]
                } else {
                    &m.payload[..]
                };
                cl.handle_datagram(path, pl, now);
                out(&mut cl, &mut to_s);
            }
        }
        sas.push(format!("i{i}"));
        if (i + 1) % step == 0 {
            let us = t.spent.as_secs_f64() * 1e6 / f64::from(step);
            if first == 0.0 {
                first = us
            }
            println!(
                "{:7} up: {:.0} us each, {:.2} of first",
                i + 1,
                us,
                us / first
            );
            t.spent = Duration::ZERO;
        }
    }
    let ups = s
        .peers()
        .iter()
        .filter(|p| p.state == PeerState::Up)
        .count();
    println!(
        "up {ups}; {} B each",
        (memory::in_use() - before) / i64::from(n)
    );
    // tear down
    let k = n.min(200);
    let b = Clock::now();
    for i in 0..k {
        s.down(&sas[i as usize], now).unwrap();
        let mut v = vec![];
        out(&mut s, &mut v);
    }
    println!(
        "down: {:.0} us each",
        b.elapsed().as_secs_f64() * 1e6 / f64::from(k)
    );
}
