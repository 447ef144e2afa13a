//! The sockets that IKE and ESP come and go by, those of one thread.

use config::{Config, Mobility, Offload};
use model::{Encapsulation, Path};
use os::routes::MARK;
use os::{Datagrams, Error, Run};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU8;

/// One for each address to listen on, or for each family there is.
pub struct Sockets {
    /// For IKE alone.
    pub ike: Vec<Datagrams>,
    /// For IKE and ESP (RFC 3948).
    pub natt: Vec<Datagrams>,
    /// For ESP without UDP, where that is wanted.
    pub esp: Vec<Datagrams>,
    /// Packets that wait to leave together.
    pub run: Run,
    offload: Offload,
}

impl Sockets {
    /// Those of the main thread. Where there are others, the kernel shares out ESP by SPI, and IKE, whose
    /// packets have zeros there, is for this one.
    pub fn open(config: &Config) -> Result<Self, Error> {
        let workers = config.tunnel.workers;
        let alone = workers == NonZeroU8::MIN;
        let ike = |address| SocketAddr::new(address, config.listen.ike);
        let natt = |address| SocketAddr::new(address, config.listen.nat);
        let sockets = Self {
            ike: listen(config, |address| Datagrams::udp(ike(address), Some(MARK)))?,
            natt: listen(config, |address| match alone {
                true => Datagrams::udp(natt(address), Some(MARK)),
                false => Datagrams::udp_beside(natt(address), Some(MARK)),
            })?,
            esp: bare(config, |address| Datagrams::esp(address, Some(MARK)))?,
            run: Run::default(),
            offload: config.tunnel.offload,
        };
        for socket in sockets.natt.iter().filter(|_| !alone) {
            socket.share_out(workers.get())?;
        }
        Ok(sockets)
    }

    /// Those of another thread, which are to be opened in the order of its number. What comes without UDP cannot
    /// be shared out: it is for the main thread.
    pub fn beside(config: &Config) -> Result<Self, Error> {
        let natt = |address| SocketAddr::new(address, config.listen.nat);
        Ok(Self {
            ike: Vec::new(),
            natt: listen(config, |address| {
                Datagrams::udp_beside(natt(address), Some(MARK))
            })?,
            esp: bare(config, |address| Datagrams::esp_sender(address, Some(MARK)))?,
            run: Run::default(),
            offload: config.tunnel.offload,
        })
    }

    /// Sends what a datagram is to carry from the socket of the path's local port and family, with this
    /// traffic class outside, and perhaps so that nobody on the way may cut it.
    pub fn send(&self, path: Path, class: u8, whole: bool, payload: &[u8]) -> io::Result<()> {
        let socket = self.socket(path)?;
        match whole {
            true => socket.send_whole(path, class, payload),
            false => socket.send(path, class, payload),
        }
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

    /// Sends what waits to leave together. Gives how many packets were sent, from the first; an error if none
    /// was. All of them still wait.
    pub fn send_run(&self) -> io::Result<usize> {
        let (destination, together) = (self.run.destination(), self.run.together());
        let (Some((path, header)), Some((length, octets))) = (destination, together) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        self.socket(path)?.send_run(path, header, length, octets)
    }

    /// Whether packets leave together where they can.
    pub fn gathers(&self) -> bool {
        self.offload == Offload::Auto
    }
}

/// Sockets without UDP, if the configuration wants any.
fn bare(
    config: &Config,
    bind: impl Fn(IpAddr) -> Result<Datagrams, Error>,
) -> Result<Vec<Datagrams>, Error> {
    match config.listen.encapsulation {
        Encapsulation::Always => Ok(Vec::new()),
        Encapsulation::ForNat => listen(config, bind),
    }
}

/// Sockets of one kind: one for each address to listen on, or one for each family there is. A mobile node listens at its
/// home address.
fn listen(
    config: &Config,
    bind: impl Fn(IpAddr) -> Result<Datagrams, Error>,
) -> Result<Vec<Datagrams>, Error> {
    let listen = &config.listen.addresses;
    if !listen.is_empty() {
        return listen.iter().copied().map(bind).collect();
    }
    // From another address a tunnel would end with the next move.
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

/// Whether a socket can send on a path: same family, and bound to no other address.
fn serves(bound: SocketAddr, path: Path) -> bool {
    let local = path.local.ip();
    bound.is_ipv4() == path.remote.is_ipv4()
        && (bound.ip().is_unspecified() || local.is_unspecified() || bound.ip() == local)
}
