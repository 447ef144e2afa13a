//! Sockets of UDP for IKE and ESP, or of raw IP for protocols without ports (ESP alone, and IP in
//! IP), with many datagrams per system call.
//!
//! quinn-udp receives batches, reports each datagram's destination address (so that answers leave
//! from there) and ECN field, and splits datagrams that the kernel coalesced. Three of its choices
//! are undone here. It asks for timestamps, which are not used. It forbids fragmentation, because
//! QUIC probes path MTUs; here each datagram decides. A datagram that may be fragmented (RFC 4303
//! section 3.3.4) has "don't fragment" clear on IPv4, whatever the path MTU is said to be, and on
//! IPv6 the kernel fragments it to the path MTU that it has learnt. A datagram that may not is
//! refused if it is longer than the path MTU, which [`path_mtu`] returns, or than the interface's
//! where reports to the system do not count ([`Df::Whole`]). And small kernel buffers lose whole
//! bursts while a worker is busy, so both are enlarged as far as permissions allow.

use crate::{Error, Family, Links, kept, option, owner::Owner};
use model::{Df, Path};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{self, in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, sendmsg, setsockopt, sockopt,
};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};
use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Datagrams, or coalesced runs of them, per system call.
const BATCH: usize = 8;

/// Length of the longest UDP payload, and of the longest coalesced run, in octets.
const LONGEST: usize = 65_535;

/// IP protocol numbers of IP in IP (RFC 2003 section 3.1) and ESP (RFC 4303 section 2).
const IP_IN_IP: u8 = 4;
const ESP: u8 = 50;

/// Most datagrams in one call of [`Datagrams::send_run`] (`UDP_MAX_SEGMENTS` of Linux before 6.9).
pub const MOST_AT_ONCE: usize = 64;

/// Size of each kernel buffer in octets: 20 ms at 1.6 Gb/s.
const KERNEL_BUFFER: usize = 4 << 20;

/// Fragmentable datagrams in a row after which a socket keeps fragmentation permitted. Until then
/// it forbids fragmentation between sends, because the kernel accepts routers' path MTU reports
/// only for such a socket. After that many, no caller needs the reports.
const DEAF_AFTER: u32 = 1000;

/// The addresses of a received datagram, and its ECN field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The path between the datagram's destination, which is ours, and its sender: the path of an
    /// answer.
    pub path: Path,
    /// The ECN field of its IP header (RFC 3168), 0 to 3.
    pub ecn: u8,
}

/// A bound, non-blocking socket of one family.
pub struct Datagrams {
    socket: Socket,
    state: UdpSocketState,
    local: SocketAddr,
    /// True for raw IP without UDP.
    bare: bool,
    /// Fragmentable datagrams since the last that was not, up to [`DEAF_AFTER`].
    cuttable: Cell<u32>,
    /// The treatment of fragmentation that the socket is set to.
    df: Cell<Df>,
    /// The interfaces of hosts with link-local addresses.
    links: Links,
    buffers: Vec<u8>,
}

impl Datagrams {
    /// Binds a UDP socket in the calling thread's network namespace. An unspecified address
    /// receives datagrams to every address of its family. An address that no interface has yet
    /// receives datagrams as soon as one has it. With `mark`, all sent packets carry it,
    /// for routing rules that keep encapsulated packets out of the tunnel ([`crate::Routes`]).
    pub fn udp(address: SocketAddr, mark: Option<u32>) -> Result<Self, Error> {
        Self::bind((Type::DGRAM, Protocol::UDP), address, mark, false)
    }

    /// Binds one of several UDP sockets that share a port. Each datagram goes to one of them, to
    /// the first unless [`Datagrams::share_out`] says otherwise.
    pub fn udp_beside(address: SocketAddr, mark: Option<u32>) -> Result<Self, Error> {
        Self::bind((Type::DGRAM, Protocol::UDP), address, mark, true)
    }

    /// Makes the kernel distribute datagrams over this many sockets with the same port, in the
    /// order in which they were bound. The index is the first four octets of the payload modulo the
    /// number of sockets. Shorter datagrams go to the first.
    pub fn share_out(&self, sockets: u8) -> Result<(), Error> {
        let instruction = |code: u32, k: u32| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf: 0,
            k,
        };
        // A load beyond the end returns 0 at once.
        let mut program = [
            instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
            instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, sockets.into()),
            instruction(libc::BPF_RET | libc::BPF_A, 0),
        ];
        let program = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        let set = setsockopt(&self.socket, sockopt::AttachReusePortCbpf, &program);
        let what = format!(
            "distributing packets to port {} among sockets",
            self.local.port()
        );
        set.map_err(io::Error::from).map_err(Error::os(what))
    }

    /// Binds a raw socket of IP protocol 50 (ESP), which has no ports.
    pub fn esp(address: IpAddr, mark: Option<u32>) -> Result<Self, Error> {
        Self::without_udp(ESP, address, mark)
    }

    /// Binds a raw socket of IP protocol 4 (IP in IP). Payloads are inner packets; the kernel
    /// writes the outer header.
    pub fn ip_in_ip(address: IpAddr, mark: Option<u32>) -> Result<Self, Error> {
        Self::without_udp(IP_IN_IP, address, mark)
    }

    fn without_udp(protocol: u8, address: IpAddr, mark: Option<u32>) -> Result<Self, Error> {
        let kind = (Type::RAW, Protocol::from(i32::from(protocol)));
        Self::bind(kind, SocketAddr::new(address, 0), mark, false)
    }

    /// Binds a raw ESP socket for a thread that only sends: it receives nothing.
    pub fn esp_sender(address: IpAddr, mark: Option<u32>) -> Result<Self, Error> {
        let sender = Self::esp(address, mark)?;
        let nothing = SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0);
        let refused = sender.socket.attach_filter(&[nothing]);
        refused.map_err(Error::os("attaching a filter that receives nothing"))?;
        Ok(sender)
    }

    fn bind(
        (kind, protocol): (Type, Protocol),
        address: SocketAddr,
        mark: Option<u32>,
        beside: bool,
    ) -> Result<Self, Error> {
        let failed = |error| explain(error, protocol, address);
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, kind, Some(protocol)).map_err(failed)?;
        let bare = kind == Type::RAW;
        if address.is_ipv6() && !bare {
            socket.set_only_v6(true).map_err(failed)?;
        }
        if let Some(mark) = mark {
            socket
                .set_mark(mark)
                .map_err(Error::os("setting the mark of a socket"))?;
        }
        socket.set_reuse_port(beside).map_err(failed)?;
        bind_early(&socket, address).map_err(failed)?;
        Self::over(socket, address, protocol)
    }

    /// Takes over a UDP socket that outlived its process ([`crate::kept`]), with the datagrams in
    /// its buffer.
    pub fn adopt(kept: OwnedFd, address: SocketAddr) -> Result<Self, Error> {
        Self::over(kept.into(), address, Protocol::UDP)
    }

    /// Returns true if a socket that outlived its process is what [`Datagrams::udp`] would open, or
    /// with `beside` [`Datagrams::udp_beside`].
    pub fn is_such(kept: &OwnedFd, address: SocketAddr, mark: u32, beside: bool) -> bool {
        let socket = SockRef::from(kept);
        let is_such = || {
            let is_udp =
                socket.r#type()? == Type::DGRAM && socket.protocol()? == Some(Protocol::UDP);
            let is_bound = socket.local_addr()?.as_socket() == Some(address);
            let is_ours = socket.mark()? == mark && socket.reuse_port()? == beside;
            let is_alone = address.is_ipv4() || socket.only_v6()?;
            io::Result::Ok(is_udp && is_bound && is_ours && is_alone)
        };
        let is_connected = socket.peer_addr().is_ok();
        !is_connected && is_such().unwrap_or(false) && kept::is_of_this_namespace(kept)
    }

    /// Returns the port of a socket that outlived its process.
    pub fn port_of(kept: &OwnedFd) -> Option<u16> {
        let local = SockRef::from(kept).local_addr().ok()?;
        local.as_socket().map(|local| local.port())
    }

    /// Sets a bound socket up.
    fn over(socket: Socket, address: SocketAddr, protocol: Protocol) -> Result<Self, Error> {
        let failed = |error| explain(error, protocol, address);
        let bare = protocol != Protocol::UDP;
        let state = UdpSocketState::new((&socket).into()).map_err(failed)?;
        // quinn-udp has room for the kernel's metadata of a datagram, but not with timestamps: the
        // ECN field of coalesced datagrams, which comes last, would be cut off.
        setsockopt(&socket, sockopt::ReceiveTimestampns, &false)
            .map_err(|errno| failed(errno.into()))?;
        let local = socket.local_addr().map_err(failed)?;
        let mut local = local.as_socket().unwrap_or(address);
        if bare {
            // The kernel reports the protocol number as the port.
            local.set_port(0);
        }
        set_df(&socket, Family::from_address(local.ip()), Df::Clear).map_err(failed)?;
        enlarge_buffers(&socket);
        let buffers = vec![0; BATCH * LONGEST];
        Ok(Self {
            socket,
            state,
            local,
            bare,
            cuttable: Cell::new(DEAF_AFTER),
            df: Cell::new(Df::Clear),
            links: Links::default(),
            buffers,
        })
    }

    /// Sets the interfaces of hosts with link-local addresses.
    #[must_use]
    pub fn with_links(self, links: &Links) -> Self {
        Self {
            links: links.clone(),
            ..self
        }
    }

    /// Returns the bound address and port; the port of UDP is never 0.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Reads with one system call and passes each datagram's payload to `each`. Returns the number
    /// of datagrams; call again until [`io::ErrorKind::WouldBlock`].
    pub fn recv(&mut self, mut each: impl FnMut(Arrival, &mut [u8])) -> io::Result<usize> {
        let mut metas = [RecvMeta::default(); BATCH];
        let mut chunks = self.buffers.chunks_exact_mut(LONGEST);
        let mut slices: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let filled = self
            .state
            .recv((&self.socket).into(), &mut slices, &mut metas)?;
        let mut datagrams = 0;
        for (meta, run) in metas.iter().zip(&mut slices).take(filled) {
            let mut arrival = arrival(meta, self.local);
            arrival.path = self.links.arriving(arrival.path);
            if self.bare {
                arrival.path = arrival.path.without_udp();
                let at = header_len(self.local, &run[..meta.len]);
                each(arrival, &mut run[at..meta.len]);
                datagrams += 1;
                continue;
            }
            let run = &mut run[..meta.len];
            // No protocol here uses empty datagrams, but receivers count all that they drop.
            if run.is_empty() {
                each(arrival, run);
                datagrams += 1;
            }
            for payload in run.chunks_mut(meta.stride.max(1)) {
                each(arrival, payload);
                datagrams += 1;
            }
        }
        Ok(datagrams)
    }

    /// Sends one datagram from the path's local address to its remote one, with a traffic class
    /// (DSCP, then two bits of ECN) in its IP header. The local port is the socket's own. Routers
    /// may fragment it.
    ///
    /// # Errors
    /// Those of sendmsg(2), for this datagram: EMSGSIZE if it is longer than UDP carries,
    /// ENETUNREACH and EHOSTUNREACH without a route (or from an address that is no longer ours),
    /// EINVAL to port 0, WouldBlock if the buffer is full.
    pub fn send(&self, path: Path, class: u8, payload: &[u8]) -> io::Result<()> {
        self.as_cuttable(|| self.put(path, class, payload))
    }

    fn as_cuttable<T>(&self, put: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let cuttable = self.cuttable.get();
        if cuttable == DEAF_AFTER {
            return put();
        }
        self.switch(Df::Clear)?;
        let sent = put();
        self.cuttable.set(cuttable + 1);
        if cuttable + 1 < DEAF_AFTER {
            self.switch(Df::Set)?;
        }
        sent
    }

    /// Sets the treatment of fragmentation, unless it is set already.
    fn switch(&self, df: Df) -> io::Result<()> {
        if self.df.get() != df {
            set_df(&self.socket, Family::from_address(self.local.ip()), df)?;
            self.df.set(df);
        }
        Ok(())
    }

    /// Sends one datagram that must not be fragmented.
    ///
    /// # Errors
    /// Those of [`Datagrams::send`], and EMSGSIZE if it is longer than the known path MTU
    /// ([`is_too_long`], [`path_mtu`]).
    pub fn send_whole(&self, path: Path, class: u8, payload: &[u8]) -> io::Result<()> {
        self.send_as(path, (class, Df::Set), payload)
    }

    /// Sends one datagram with this treatment of fragmentation.
    ///
    /// # Errors
    /// Those of [`Datagrams::send`], and EMSGSIZE if it may not be fragmented and is longer than
    /// the known path MTU, or than the interface allows.
    pub fn send_as(&self, path: Path, (class, df): (u8, Df), payload: &[u8]) -> io::Result<()> {
        self.treated(df, || self.put(path, class, payload))
    }

    fn treated<T>(&self, df: Df, put: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if df == Df::Clear {
            return self.as_cuttable(put);
        }
        self.switch(df)?;
        self.cuttable.set(0);
        put()
    }

    /// Sends datagrams of one length with one system call (UDP GSO, and sendmmsg without UDP).
    /// `payload` holds them one after the other, `length` octets each; the last may be shorter.
    /// There are at most [`MOST_AT_ONCE`], and no more octets than a datagram may have. Returns the
    /// number of datagrams sent, from the first.
    ///
    /// # Errors
    /// Those of [`Datagrams::send_as`].
    /// With UDP also EMSGSIZE if one would have to be fragmented, EIO if the kernel does not
    /// segment for this route, EINVAL if it never does. Then none was sent, and they can be sent
    /// one by one.
    pub fn send_run(
        &self,
        path: Path,
        (class, df): (u8, Df),
        length: u16,
        payload: &[u8],
    ) -> io::Result<usize> {
        let path = self.links.leaving(path)?;
        let put = || match self.bare {
            true => self.put_each(path, class, length, payload),
            false => {
                self.put_run(path, class, Some(length), payload)?;
                Ok(payload.len().div_ceil(length.into()))
            }
        };
        self.treated(df, put)
    }

    fn put(&self, path: Path, class: u8, payload: &[u8]) -> io::Result<()> {
        // A peer that sends from port 0 can make us answer there. quinn-udp would take the kernel's
        // EINVAL for a lack of ECN and send none from then on.
        if path.remote.port() == 0 && !self.bare {
            return Err(Errno::EINVAL.into());
        }
        let path = self.links.leaving(path)?;
        if class >> 2 != 0 {
            return self.put_run(path, class, None, payload);
        }
        let local = path.local.ip();
        let datagram = Transmit {
            destination: path.remote,
            ecn: EcnCodepoint::from_bits(class),
            contents: payload,
            segment_size: None,
            src_ip: (!local.is_unspecified()).then_some(local),
        };
        self.state.try_send((&self.socket).into(), &datagram)
    }

    /// Sends without quinn-udp, which writes no DSCP, and stops using GSO after the first route
    /// that does not support it.
    fn put_run(
        &self,
        path: Path,
        class: u8,
        length: Option<u16>,
        payload: &[u8],
    ) -> io::Result<()> {
        let header = OuterHeader::new(path, class);
        let length = length.as_ref().map(ControlMessage::UdpGsoSegments);
        let controls: Vec<_> = header.controls().chain(length).collect();
        let (to, flags) = (SockaddrStorage::from(path.remote), MsgFlags::empty());
        let payload = [IoSlice::new(payload)];
        sendmsg(
            self.socket.as_raw_fd(),
            &payload,
            &controls,
            flags,
            Some(&to),
        )?;
        Ok(())
    }

    /// Sends many datagrams without UDP, which the kernel does not segment but accepts in one call.
    /// Returns the number of accepted ones.
    fn put_each(&self, path: Path, class: u8, length: u16, payload: &[u8]) -> io::Result<usize> {
        let header = OuterHeader::new(path, class);
        let controls: Vec<_> = header.controls().collect();
        let packets = payload.chunks(length.into());
        let packets: Vec<_> = packets.map(|packet| [IoSlice::new(packet)]).collect();
        let to = vec![Some(SockaddrStorage::from(path.remote)); packets.len()];
        let mut headers = MultiHeaders::preallocate(packets.len(), Some(header.space()));
        let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
        let sent = sendmmsg(socket, &mut headers, &packets, &to, &controls, flags)?;
        Ok(sent.count())
    }
}

/// The fields of the outer header other than the destination. An unspecified address is left out.
struct OuterHeader {
    is_v6: bool,
    class: u8,
    /// The traffic class in the width of IPv6.
    wide: i32,
    v4: Option<in_pktinfo>,
    v6: Option<in6_pktinfo>,
}

impl OuterHeader {
    fn new(path: Path, class: u8) -> Self {
        Self {
            is_v6: path.remote.is_ipv6(),
            class,
            wide: class.into(),
            v4: source_v4(path.local.ip()),
            v6: source_v6(path.local.ip()),
        }
    }

    fn controls(&self) -> impl Iterator<Item = ControlMessage<'_>> {
        let class = match self.is_v6 {
            false => ControlMessage::Ipv4Tos(&self.class),
            true => ControlMessage::Ipv6TClass(&self.wide),
        };
        let v4 = self.v4.as_ref().map(ControlMessage::Ipv4PacketInfo);
        let v6 = self.v6.as_ref().map(ControlMessage::Ipv6PacketInfo);
        std::iter::once(class).chain(v4).chain(v6)
    }

    /// Returns a buffer of exactly the size of these control messages. The kernel would also read
    /// the unwritten rest of a larger one.
    fn space(&self) -> Vec<u8> {
        match (self.is_v6, &self.v4, &self.v6) {
            (false, None, _) => cmsg_space!(u8),
            (false, Some(_), _) => cmsg_space!(u8, in_pktinfo),
            (true, _, None) => cmsg_space!(i32),
            (true, _, Some(_)) => cmsg_space!(i32, in6_pktinfo),
        }
    }
}

fn source_v4(local: IpAddr) -> Option<in_pktinfo> {
    let IpAddr::V4(local) = local else {
        return None;
    };
    let address = |octets| in_addr {
        s_addr: u32::from_ne_bytes(octets),
    };
    (!local.is_unspecified()).then(|| in_pktinfo {
        ipi_ifindex: 0,
        ipi_spec_dst: address(local.octets()),
        ipi_addr: address([0; 4]),
    })
}

fn source_v6(local: IpAddr) -> Option<in6_pktinfo> {
    let IpAddr::V6(local) = local else {
        return None;
    };
    (!local.is_unspecified()).then(|| in6_pktinfo {
        ipi6_addr: in6_addr {
            s6_addr: local.octets(),
        },
        ipi6_ifindex: 0,
    })
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn arrival(meta: &RecvMeta, bound: SocketAddr) -> Arrival {
    let local = meta.dst_ip.unwrap_or(bound.ip());
    let remote = match meta.addr {
        SocketAddr::V4(v4) => SocketAddr::V4(v4),
        // The flow label does not identify the sender. The scope does, for addresses that need one.
        SocketAddr::V6(v6) => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
    };
    let local = match (local, remote) {
        (IpAddr::V6(ip), SocketAddr::V6(from)) => {
            SocketAddrV6::new(ip, bound.port(), 0, from.scope_id()).into()
        }
        _ => SocketAddr::new(local, bound.port()),
    };
    Arrival {
        path: Path::udp(local, remote),
        ecn: meta.ecn.map_or(0, |ecn| ecn as u8),
    }
}

/// Returns the length of the IP header in front of a raw socket's payload: present over IPv4
/// (raw(7)), absent over IPv6.
fn header_len(bound: SocketAddr, octets: &[u8]) -> usize {
    let words = octets.first().map_or(0, |first| first & 0x0f);
    match bound.is_ipv4() {
        true => octets.len().min(4 * usize::from(words)),
        false => 0,
    }
}

/// Returns true if a datagram was refused because it exceeds the path MTU.
pub fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EMSGSIZE as i32)
}

/// Returns the path MTU that the kernel knows between two addresses, in the calling thread's
/// network namespace: the MTU of the interface, or less if a router reported less.
///
/// # Errors
/// There is no route, or the local address is no longer ours.
pub fn path_mtu(path: Path, mark: Option<u32>) -> io::Result<u16> {
    let family = Family::from_address(path.remote.ip());
    let socket = Socket::new(Domain::for_address(path.remote), Type::DGRAM, None)?;
    mark.map_or(Ok(()), |mark| socket.set_mark(mark))?;
    socket.bind(&SocketAddr::new(path.local.ip(), 0).into())?;
    socket.connect(&path.remote.into())?;
    let (level, name) = match family {
        Family::V4 => (libc::IPPROTO_IP, libc::IP_MTU),
        Family::V6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let mtu = option::get(&socket, level, name)?;
    // The MTU of loopback exceeds the longest datagram.
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Forbids or permits fragmentation of a socket's datagrams. Probes and whole packets ignore the
/// path MTU that the system knows. If fragmentation is permitted, IPv4 routers fragment as needed,
/// so forged path MTU reports have no effect; IPv6 routers do not fragment.
fn set_df(socket: &Socket, family: Family, df: Df) -> io::Result<()> {
    let (level, name, [clear, set, probe]) = match family {
        Family::V4 => (
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            [
                libc::IP_PMTUDISC_OMIT,
                libc::IP_PMTUDISC_DO,
                libc::IP_PMTUDISC_PROBE,
            ],
        ),
        Family::V6 => (
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            [
                libc::IPV6_PMTUDISC_DONT,
                libc::IPV6_PMTUDISC_DO,
                libc::IPV6_PMTUDISC_PROBE,
            ],
        ),
    };
    let treatment = match df {
        Df::Clear => clear,
        Df::Set => set,
        Df::Whole | Df::Probe => probe,
    };
    option::set(socket, level, name, treatment)?;
    match family {
        Family::V4 => Ok(()),
        Family::V6 => option::set(
            socket,
            level,
            libc::IPV6_DONTFRAG,
            i32::from(df != Df::Clear),
        ),
    }
}

/// Enlarges the kernel buffers. Root may exceed the machine's limit, others get up to it. A smaller
/// buffer is slower, not wrong.
fn enlarge_buffers(socket: &Socket) {
    if setsockopt(socket, sockopt::RcvBufForce, &KERNEL_BUFFER).is_err() {
        let _up_to_the_limit = socket.set_recv_buffer_size(KERNEL_BUFFER);
    }
    if setsockopt(socket, sockopt::SndBufForce, &KERNEL_BUFFER).is_err() {
        let _up_to_the_limit = socket.set_send_buffer_size(KERNEL_BUFFER);
    }
}

/// Binds a socket also to an address that no interface has: one that comes with its interface, or
/// that is still checked for duplicates. Otherwise a program at boot fails if it is faster than the
/// network. Sending from an address that is not there remains an error.
pub(crate) fn bind_early(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    let permit = |early| match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(early),
        SocketAddr::V6(_) => socket.set_freebind_v6(early),
    };
    permit(true)?;
    socket.bind(&address.into())?;
    permit(false)
}

pub(crate) fn explain(error: io::Error, protocol: Protocol, address: SocketAddr) -> Error {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EADDRINUSE) => Error::PortTaken {
            protocol: "UDP",
            port: address.port(),
            owner: Owner::of_udp_port(address.port()),
        },
        Some(Errno::EADDRNOTAVAIL) => Error::NoSuchAddress {
            address: address.ip(),
        },
        Some(Errno::EAFNOSUPPORT) => Error::NoFamily {
            family: Family::from_address(address.ip()),
        },
        _ if protocol == Protocol::UDP => Error::os(format!("listening on UDP {address}"))(error),
        _ => {
            let (number, address) = (i32::from(protocol), address.ip());
            Error::os(format!("listening for protocol {number} at {address}"))(error)
        }
    }
}
