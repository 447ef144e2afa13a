//! IPv4 packets to and from the neighbours on one link, without the kernel's routes and ARP.
//!
//! Hosts that have just met have no routes to each other. The kernel drops such a neighbour's
//! packets if it checks reverse paths (`rp_filter`; even loosely, if there is no route at all or
//! the interface has no address). For packets to the neighbour it would use ARP, which a mobile
//! host away from home must not broadcast, nor an agent for it (RFC 5944 sections 4.2.1, 4.2.2 and
//! 4.6): each learns the other's link address from received messages. So packets are read before
//! the kernel checks them, with their source link address, and written with their destination link
//! address.
//!
//! A filter in the kernel passes only the messages that a caller waits for.

use crate::{Error, option};
use nix::errno::Errno;
use nix::libc::{self, packet_mreq, sockaddr_ll, tpacket_auxdata};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, RecvMsg, recvmsg};
use socket2::{Domain, SockAddr, SockFilter, Socket, Type};
use std::fmt;
use std::io::{self, IoSliceMut};
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use wire::checksum::{Checksum, Sum};
use wire::ip::{Header, V4_HEADER_LEN};

/// Length of the longest message that is read, in octets; messages to a new neighbour are shorter.
const LONGEST: usize = 2048;

/// "Don't fragment", and so no identification (RFC 6864 section 4.1).
const WHOLE: [u8; 4] = [0, 0, 0x40, 0];

/// The address of a station on an Ethernet, or on a wireless network that looks like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkAddress(pub [u8; 6]);

impl LinkAddress {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Returns the address of a multicast group (RFC 1112 section 6.4).
    pub const fn of_group(group: Ipv4Addr) -> Self {
        let [_, a, b, c] = group.octets();
        Self([0x01, 0, 0x5e, a & 0x7f, b, c])
    }
}

impl fmt::Display for LinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The addresses of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Source: an address of ours, or a neighbour's.
    pub source: Ipv4Addr,
    /// Destination: an address, a group or broadcast.
    pub destination: Ipv4Addr,
    /// The neighbour's link address: the source of a received packet, the destination of a sent
    /// one.
    pub link: LinkAddress,
    /// Time to live: 255 proves that the sender is a neighbour, because every router decrements it.
    pub ttl: u8,
}

/// A filter of packets: a protocol, and a value in the header after IP's.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub protocol: u8,
    pub field: Field,
}

#[derive(Clone, Copy)]
pub(crate) enum Field {
    /// ICMP's type.
    Kind(u8),
    /// UDP's destination port.
    Port(u16),
}

/// A socket for filtered packets on one interface.
pub(crate) struct LinkSocket {
    socket: Socket,
    index: u32,
    buffer: Vec<u8>,
}

/// A received packet.
pub(crate) struct Received<'a> {
    pub ends: Ends,
    pub header: Header<'a>,
    /// Left for packets from a program on this machine.
    pub checksum: Checksum,
}

impl LinkSocket {
    /// Opens the socket on an interface of the calling thread's network namespace.
    pub fn open(interface: &str, wanted: Wanted) -> Result<Self, Error> {
        let failed = || Error::os(format!("listening for neighbours on {interface}"));
        let index = if_nametoindex(interface);
        let index = index.map_err(Error::os(format!("looking for the interface {interface}")))?;
        // The socket receives nothing before it is bound, and the filter is attached earlier.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None).map_err(failed())?;
        socket.set_nonblocking(true).map_err(failed())?;
        let filter = wanted.filter();
        socket.attach_filter(&filter).map_err(failed())?;
        let notes = option::set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1);
        notes.map_err(failed())?;
        socket
            .bind(&station(index, LinkAddress::BROADCAST))
            .map_err(failed())?;
        // The kernel's address of an interface ends with the link address.
        let bound = socket.local_addr().map_err(failed())?;
        if bound.len() as usize != offset_of!(sockaddr_ll, sll_addr) + 6 {
            let interface = interface.to_owned();
            return Err(Error::NoEthernet { interface });
        }
        Ok(Self {
            socket,
            index,
            buffer: vec![0; LONGEST],
        })
    }

    /// Joins a group, whose packets are received too.
    pub fn join(&self, group: Ipv4Addr) -> io::Result<()> {
        let LinkAddress([a, b, c, d, e, f]) = LinkAddress::of_group(group);
        let membership = packet_mreq {
            mr_ifindex: self.index as i32,
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: 6,
            mr_address: [a, b, c, d, e, f, 0, 0],
        };
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP);
        option::set(&self.socket, level, name, membership)
    }

    /// Reads one packet. Returns `None` if IP would not accept it. A down interface is no error
    /// here: nothing arrives.
    pub fn recv(&mut self) -> io::Result<Option<Received<'_>>> {
        let mut notes = nix::cmsg_space!(tpacket_auxdata);
        let mut octets = [IoSliceMut::new(&mut self.buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let (descriptor, notes) = (self.socket.as_raw_fd(), Some(&mut notes[..]));
        let came = match recvmsg::<LinkAddr>(descriptor, &mut octets, notes, flags) {
            Err(Errno::ENETDOWN) => return Ok(None),
            came => came?,
        };
        let (len, checksum) = (came.bytes, checksum(&came));
        let link = came.address.and_then(|from| from.addr());
        Ok(link.and_then(|link| Received::read(&self.buffer[..len], LinkAddress(link), checksum)))
    }

    /// Sends one packet: `front` is the header after IP's, `payload` the rest. `finish` receives
    /// the whole packet before it is sent, to complete fields such as the checksum.
    ///
    /// # Errors
    /// EMSGSIZE for a packet longer than the link's MTU, ENETDOWN while the interface is down,
    /// ENXIO once it is gone, WouldBlock if the buffer is full.
    pub fn send(
        &self,
        ends: Ends,
        protocol: u8,
        [front, payload]: [&[u8]; 2],
        finish: impl FnOnce(&mut [u8]),
    ) -> io::Result<()> {
        let len = V4_HEADER_LEN + front.len() + payload.len();
        let len = u16::try_from(len).map_err(|_| Errno::EMSGSIZE)?;
        let mut packet = [&header(ends, protocol, len), front, payload].concat();
        finish(&mut packet);
        let to = station(self.index, ends.link);
        self.socket.send_to(&packet, &to).map(drop)
    }
}

impl AsFd for LinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Wanted {
    /// Returns the filter as a BPF program; a load beyond the end rejects a packet.
    fn filter(self) -> [SockFilter; 11] {
        const REFUSE: u8 = 10;
        const OTHERS: u32 = libc::PACKET_OTHERHOST as u32;
        const MORE_FRAGMENTS_AND_OFFSET: u32 = 0x3fff;
        let load = libc::BPF_LD | libc::BPF_ABS;
        let of_packet = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
        let (load_field, value) = match self.field {
            Field::Kind(kind) => ((libc::BPF_LD | libc::BPF_IND | libc::BPF_B, 0), kind.into()),
            Field::Port(port) => ((libc::BPF_LD | libc::BPF_IND | libc::BPF_H, 2), port.into()),
        };
        // The operand of a jump is the number of instructions to skip.
        let step = |code: u32, k: u32| SockFilter::new(code as u16, 0, 0, k);
        let refuse_if = |at: u8, code: u32, k: u32| {
            let jump = libc::BPF_JMP | libc::BPF_K | code;
            SockFilter::new(jump as u16, REFUSE - at - 1, 0, k)
        };
        let refuse_unless = |at: u8, k: u32| {
            let jump = libc::BPF_JMP | libc::BPF_K | libc::BPF_JEQ;
            SockFilter::new(jump as u16, 0, REFUSE - at - 1, k)
        };
        [
            step(load | libc::BPF_W, of_packet),
            refuse_if(1, libc::BPF_JGE, OTHERS),
            step(load | libc::BPF_B, 9),
            refuse_unless(3, self.protocol.into()),
            step(load | libc::BPF_H, 6),
            refuse_if(5, libc::BPF_JSET, MORE_FRAGMENTS_AND_OFFSET),
            step(libc::BPF_LDX | libc::BPF_MSH | libc::BPF_B, 0),
            step(load_field.0, load_field.1),
            refuse_unless(8, value),
            step(libc::BPF_RET | libc::BPF_K, u32::MAX),
            step(libc::BPF_RET | libc::BPF_K, 0),
        ]
    }
}

impl<'a> Received<'a> {
    /// Parses a packet. Returns `None` if the kernel's own IP would drop it.
    fn read(octets: &'a [u8], link: LinkAddress, checksum: Checksum) -> Option<Self> {
        let header = Header::parse(octets).ok()?;
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (header.source(), header.destination())
        else {
            return None;
        };
        let ttl = header.ttl();
        let ends = Ends {
            source,
            destination,
            link,
            ttl,
        };
        header.checksum_is_right().then_some(Self {
            ends,
            header,
            checksum,
        })
    }
}

/// Returns the state of a checksum, as the kernel reports it.
fn checksum(came: &RecvMsg<'_, '_, LinkAddr>) -> Checksum {
    let mut notes = came.cmsgs().into_iter().flatten();
    // tpacket_auxdata begins with the status.
    let status = notes.find_map(|note| match note {
        ControlMessageOwned::Unknown(note) => note.data_bytes.first_chunk().copied(),
        _ => None,
    });
    match status.map_or(0, u32::from_ne_bytes) & libc::TP_STATUS_CSUMNOTREADY {
        0 => Checksum::Made,
        _ => Checksum::Left,
    }
}

/// Returns the IP header of a packet with this total length.
fn header(ends: Ends, protocol: u8, len: u16) -> [u8; V4_HEADER_LEN] {
    let mut header = [0; V4_HEADER_LEN];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&len.to_be_bytes());
    header[4..8].copy_from_slice(&WHOLE);
    header[8] = ends.ttl;
    header[9] = protocol;
    header[12..16].copy_from_slice(&ends.source.octets());
    header[16..20].copy_from_slice(&ends.destination.octets());
    let sum = Sum::default().with(&header).finish();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// Returns the socket address of a station on an interface.
#[allow(unsafe_code, reason = "no crate at hand makes an address of this kind")]
fn station(index: u32, LinkAddress([a, b, c, d, e, f]): LinkAddress) -> SockAddr {
    let address = sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_IP as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [a, b, c, d, e, f, 0, 0],
    };
    // SAFETY: the storage has room for every kind of address, including this one, and the length is
    // its own.
    let made = unsafe {
        SockAddr::try_init(|storage, len| {
            storage.cast::<sockaddr_ll>().write(address);
            *len = size_of::<sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
    };
    made.expect("writing it does not fail").1
}
