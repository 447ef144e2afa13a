//! The sockets of one thread for IKE and ESP.

use crate::kept::Kept;
use config::{Config, Mobility, Offload};
use model::{Df, Encapsulation, Path};
use os::routes::MARK;
use os::{Datagrams, Error, Links, Run};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU8;

/// Sockets of each kind: one per listening address, or one per address family.
pub struct Sockets {
    /// Sockets for IKE only.
    pub ike: Vec<Datagrams>,
    /// For IKE and ESP (RFC 3948).
    pub natt: Vec<Datagrams>,
    /// Sockets for ESP without UDP, if configured.
    pub esp: Vec<Datagrams>,
    /// Packets queued to leave together.
    pub run: Run,
    offload: Offload,
}

impl Sockets {
    /// Opens the sockets of the main thread, or takes over kept ones. With several threads, the
    /// kernel distributes ESP by SPI; IKE, which has zeros at that position, goes to the main
    /// thread.
    pub fn open(config: &Config, links: &Links, kept: &mut Kept) -> Result<Self, Error> {
        let workers = config.tunnel.workers;
        let alone = workers == NonZeroU8::MIN;
        let ike = |address| SocketAddr::new(address, config.listen.ike);
        let natt = |address| SocketAddr::new(address, config.listen.nat);
        let sockets = Self {
            ike: listen(config, |address| udp(ike(address), false, kept))?,
            natt: listen(config, |address| udp(natt(address), !alone, kept))?,
            esp: bare(config, |address| Datagrams::esp(address, Some(MARK)))?,
            run: Run::default(),
            offload: config.tunnel.offload,
        }
        .with_links(links);
        for socket in sockets.natt.iter().filter(|_| !alone) {
            socket.share_out(workers.get())?;
        }
        Ok(sockets)
    }

    /// Opens the sockets of another thread; call it in the order of thread numbers. ESP without UDP
    /// cannot be distributed, so the main thread receives it.
    pub fn beside(config: &Config, links: &Links) -> Result<Self, Error> {
        let natt = |address| SocketAddr::new(address, config.listen.nat);
        let sockets = Self {
            ike: Vec::new(),
            natt: listen(config, |address| {
                Datagrams::udp_beside(natt(address), Some(MARK))
            })?,
            esp: bare(config, |address| Datagrams::esp_sender(address, Some(MARK)))?,
            run: Run::default(),
            offload: config.tunnel.offload,
        };
        Ok(sockets.with_links(links))
    }

    /// Sets the interfaces of hosts with link-local addresses.
    fn with_links(self, links: &Links) -> Self {
        let with = |sockets: Vec<Datagrams>| -> Vec<_> {
            let sockets = sockets.into_iter();
            sockets.map(|socket| socket.with_links(links)).collect()
        };
        Self {
            ike: with(self.ike),
            natt: with(self.natt),
            esp: with(self.esp),
            ..self
        }
    }

    /// Returns no sockets, for tests.
    #[cfg(test)]
    pub fn none() -> Self {
        Self {
            ike: Vec::new(),
            natt: Vec::new(),
            esp: Vec::new(),
            run: Run::default(),
            offload: Offload::Auto,
        }
    }

    /// Sends a payload from the socket of the path's local port and family, with this traffic class
    /// in the outer header, and this treatment of fragmentation.
    pub fn send(&self, path: Path, class: u8, df: Df, payload: &[u8]) -> io::Result<()> {
        self.socket(path)?.send_as(path, (class, df), payload)
    }

    fn socket(&self, path: Path) -> io::Result<&Datagrams> {
        let fits = |socket: &&Datagrams| {
            let local = socket.local();
            local.port() == path.local.port() && serves(local, path)
        };
        let mut sockets = self.natt.iter().chain(&self.esp).chain(&self.ike);
        let none = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        sockets.find(fits).ok_or_else(none)
    }

    /// Sends the queued packets together. Returns the number of packets sent, from the first; an
    /// error if none was. All of them stay queued.
    pub fn send_run(&self) -> io::Result<usize> {
        let (destination, together) = (self.run.destination(), self.run.together());
        let (Some((path, header)), Some((length, octets))) = (destination, together) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        self.socket(path)?.send_run(path, header, length, octets)
    }

    /// Returns true if packets are sent together where possible.
    pub fn gathers(&self) -> bool {
        self.offload == Offload::Auto
    }
}

/// Takes over the kept socket of an address, or opens it.
fn udp(address: SocketAddr, beside: bool, kept: &mut Kept) -> Result<Datagrams, Error> {
    match (kept.udp(address, beside), beside) {
        (Some(socket), _) => Ok(socket),
        (None, false) => Datagrams::udp(address, Some(MARK)),
        (None, true) => Datagrams::udp_beside(address, Some(MARK)),
    }
}

/// Opens sockets without UDP, if the configuration asks for them.
fn bare(
    config: &Config,
    bind: impl Fn(IpAddr) -> Result<Datagrams, Error>,
) -> Result<Vec<Datagrams>, Error> {
    match config.listen.encapsulation {
        Encapsulation::Always => Ok(Vec::new()),
        Encapsulation::ForNat => listen(config, bind),
    }
}

/// Opens sockets of one kind: one per listening address, or one per address family. A mobile node
/// listens at its home address.
fn listen(
    config: &Config,
    mut bind: impl FnMut(IpAddr) -> Result<Datagrams, Error>,
) -> Result<Vec<Datagrams>, Error> {
    let listen = &config.listen.addresses;
    if !listen.is_empty() {
        return listen.iter().copied().map(bind).collect();
    }
    // A tunnel from another address would end with the next move.
    if let Some(Mobility::MobileNode(node)) = &config.mobility {
        return bind(node.home_address.into()).map(|socket| vec![socket]);
    }
    let any = [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];
    let bound = any.map(bind);
    let lacks_family =
        |result: &Result<Datagrams, Error>| matches!(result, Err(Error::NoFamily { .. }));
    bound
        .into_iter()
        .filter(|result| !lacks_family(result))
        .collect()
}

/// Returns true if a socket can send on a path: same family, and not bound to another address.
fn serves(bound: SocketAddr, path: Path) -> bool {
    let local = path.local.ip();
    bound.is_ipv4() == path.remote.is_ipv4()
        && (bound.ip().is_unspecified() || local.is_unspecified() || bound.ip() == local)
}
