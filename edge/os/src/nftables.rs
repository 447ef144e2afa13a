//! Tables of nftables through the netlink protocol, so that packets are filtered on machines
//! without the program `nft`.
//!
//! The kernel applies the changes of a batch together, or not at all. `nft list table` shows the
//! result where the program is installed.

mod attribute;
mod rule;

pub(crate) use attribute::{Attributes, find, kind, read};
pub(crate) use rule::{Base, Meta, R0, Rule, Verdict, seen};

use crate::Error;
use crate::netlink::messages;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{ReceiveTimeout, SndBufForce};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto,
    setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsRawFd, OwnedFd};

/// The family of tables that see IPv4 and IPv6.
const INET: u8 = 1;

/// The families of tables that see packets of IP, with their names.
pub(crate) const FILTERED: [(u8, &str); 3] = [(INET, "inet"), (2, "ip"), (10, "ip6")];

/// Octets of a message's two headers.
const HEADERS: usize = 20;

/// Offset of a message's flags; that of an acknowledgement is among the lower eight bits.
const FLAGS: usize = if cfg!(target_endian = "little") { 6 } else { 7 };

/// Elements in one message: the length of an attribute is at most 65,535 octets.
const ELEMENTS_AT_ONCE: usize = 500;

/// Octets of a verdict in a map.
const VERDICT: u32 = 16;

/// Longest answer of the kernel, in octets.
const ANSWER: usize = 1 << 16;

/// Seconds after which a kernel that does not answer counts as one without nftables.
const PATIENCE: i64 = 10;

/// Priority before other filters. The lock's, for instance, would drop packets without a record of
/// their source.
const FIRST: i32 = -1;

/// Hooks of packets from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hook {
    /// Packets to the host itself.
    Input = 1,
    /// Packets to be forwarded.
    Forward = 2,
}

/// A set that rules fill from packets.
pub(crate) struct Record<'a> {
    pub name: &'a str,
    /// nft's number of the key's type, for its listings.
    pub key_type: u32,
    /// Octets of a key.
    pub key: u32,
    /// Most elements at once.
    pub size: u32,
    /// Milliseconds until an element expires that is not seen again.
    pub timeout: u64,
}

/// Changes to one table, in order.
pub(crate) struct Batch<'a> {
    table: &'a str,
    octets: Vec<u8>,
    sequence: u32,
    sets: u32,
    /// Offset of the last message.
    last: usize,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(table: &'a str) -> Self {
        let mut batch = Self {
            table,
            octets: Vec::new(),
            sequence: 0,
            sets: 0,
            last: 0,
        };
        batch.end(libc::NFNL_MSG_BATCH_BEGIN);
        batch
    }

    /// Creates the table if it does not exist, and activates it if another program made it dormant.
    pub(crate) fn table(&mut self) {
        let attributes = Attributes::default()
            .text(kind::TABLE, self.table)
            .number(kind::TABLE_FLAGS, 0);
        self.push(libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE, &attributes);
    }

    /// Deletes the table, which must exist.
    pub(crate) fn delete_table(&mut self) {
        let attributes = Attributes::default().text(kind::TABLE, self.table);
        self.push(libc::NFT_MSG_DELTABLE, 0, &attributes);
    }

    /// Deletes all rules, and with them the sets that only they use.
    pub(crate) fn delete_rules(&mut self) {
        let attributes = Attributes::default().text(kind::TABLE, self.table);
        self.push(libc::NFT_MSG_DELRULE, 0, &attributes);
    }

    /// Creates a counter, which must not exist.
    pub(crate) fn counter(&mut self, name: &str) {
        let attributes = Attributes::default()
            .text(kind::TABLE, self.table)
            .text(kind::NAME, name)
            .number(kind::OBJECT_TYPE, rule::COUNTER)
            .nested(kind::OBJECT_DATA, &Attributes::default());
        self.push(libc::NFT_MSG_NEWOBJ, libc::NLM_F_CREATE, &attributes);
    }

    /// Creates a set for [`Rule::record`], which must not exist.
    pub(crate) fn records(&mut self, record: &Record<'_>) {
        self.sets += 1;
        let flags = libc::NFT_SET_TIMEOUT | libc::NFT_SET_EVAL;
        let attributes = Attributes::default()
            .text(kind::TABLE, self.table)
            .text(kind::NAME, record.name)
            .number(kind::SET_FLAGS, flags as u32)
            .number(kind::SET_KEY_TYPE, record.key_type)
            .number(kind::SET_KEY_LENGTH, record.key)
            .nested(
                kind::SET_DESCRIPTION,
                &Attributes::default().number(kind::DESCRIPTION_SIZE, record.size),
            )
            .number(kind::SET_NUMBER, self.sets)
            .octets(kind::SET_TIMEOUT, &record.timeout.to_be_bytes());
        self.push(libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE, &attributes);
    }

    /// Creates a chain if it does not exist: at a hook, with accept as its policy, or for jumps.
    pub(crate) fn chain(&mut self, name: &str, hook: Option<Hook>) {
        let attributes = Attributes::default()
            .text(kind::TABLE, self.table)
            .text(kind::CHAIN_NAME, name);
        let attributes = match hook {
            None => attributes,
            Some(hook) => {
                let priority = FIRST.cast_unsigned();
                let place = Attributes::default()
                    .number(kind::HOOK_NUMBER, hook as u32)
                    .number(kind::HOOK_PRIORITY, priority);
                attributes
                    .nested(kind::CHAIN_HOOK, &place)
                    .number(kind::CHAIN_POLICY, libc::NF_ACCEPT as u32)
                    .text(kind::CHAIN_TYPE, "filter")
            }
        };
        self.push(libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE, &attributes);
    }

    /// Appends a rule to a chain.
    pub(crate) fn rule(&mut self, chain: &str, rule: &Rule) {
        let attributes = Attributes::default()
            .text(kind::TABLE, self.table)
            .text(kind::NAME, chain)
            .nested(kind::RULE_EXPRESSIONS, rule.expressions());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_APPEND;
        self.push(libc::NFT_MSG_NEWRULE, flags, &attributes);
    }

    /// Creates a set for one rule ([`Rule::member`]) and returns its number.
    pub(crate) fn set(&mut self, keys: &[Vec<u8>]) -> u32 {
        let elements = keys.iter().map(|key| rule::element(key, None));
        self.anonymous(false, keys, elements.collect())
    }

    /// Creates a map to chains for one rule ([`Rule::chosen`]) and returns its number. Each key has
    /// one chain.
    pub(crate) fn map(&mut self, keys: &[Vec<u8>], chains: &[String]) -> u32 {
        let elements = keys.iter().zip(chains);
        let elements = elements.map(|(key, chain)| rule::element(key, Some(Verdict::Jump(chain))));
        self.anonymous(true, keys, elements.collect())
    }

    fn anonymous(&mut self, map: bool, keys: &[Vec<u8>], elements: Vec<Attributes>) -> u32 {
        self.sets += 1;
        let number = self.sets;
        let length = keys.first().map_or(0, Vec::len) as u32;
        let flags = libc::NFT_SET_ANONYMOUS | libc::NFT_SET_CONSTANT;
        let flags = flags | if map { libc::NFT_SET_MAP } else { 0 };
        let key_type = if length == 4 { IPV4 } else { IPV6 };
        let size = Attributes::default().number(kind::DESCRIPTION_SIZE, keys.len() as u32);
        let set = Attributes::default()
            .text(kind::TABLE, self.table)
            .text(kind::NAME, rule::ANONYMOUS)
            .number(kind::SET_FLAGS, flags as u32)
            .number(kind::SET_KEY_TYPE, key_type)
            .number(kind::SET_KEY_LENGTH, length);
        let set = match map {
            true => set
                .number(kind::SET_DATA_TYPE, libc::NFT_DATA_VERDICT)
                .number(kind::SET_DATA_LENGTH, VERDICT),
            false => set,
        };
        let set = set
            .nested(kind::SET_DESCRIPTION, &size)
            .number(kind::SET_NUMBER, number);
        self.push(libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE, &set);
        for some in elements.chunks(ELEMENTS_AT_ONCE) {
            let some = some.iter().fold(Attributes::default(), |list, element| {
                list.nested(kind::MEMBER, element)
            });
            let attributes = Attributes::default()
                .text(kind::TABLE, self.table)
                .text(kind::NAME, rule::ANONYMOUS)
                .nested(kind::ELEMENTS, &some)
                .number(kind::ELEMENTS_SET_NUMBER, number);
            self.push(libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE, &attributes);
        }
        number
    }

    /// Applies the batch, in the calling thread's network namespace.
    pub(crate) fn commit(mut self, doing: &str) -> Result<(), Error> {
        let last = self.sequence;
        // Errors are answered in any case, and one acknowledgement is enough.
        self.octets[self.last + FLAGS] |= libc::NLM_F_ACK as u8;
        self.end(libc::NFNL_MSG_BATCH_END);
        self.exchange(last).map_err(Error::os(doing))
    }

    fn exchange(&self, last: u32) -> Result<(), Errno> {
        let socket = open()?;
        // The kernel reads a batch as one datagram.
        setsockopt(&socket, SndBufForce, &(2 * self.octets.len()))?;
        send(&socket, &self.octets)?;
        answers(&socket, last, |_| {})
    }

    fn push(&mut self, kind: i32, flags: i32, attributes: &Attributes) {
        let kind = (libc::NFNL_SUBSYS_NFTABLES << 8) | kind;
        let flags = flags | libc::NLM_F_REQUEST;
        self.sequence += 1;
        self.last = self.octets.len();
        let message = message(kind, flags, self.sequence, attributes);
        self.octets.extend(message);
    }

    /// Adds the begin or the end of a batch, which names the subsystem.
    fn end(&mut self, kind: i32) {
        self.sequence += 1;
        let mut message = message(
            kind,
            libc::NLM_F_REQUEST,
            self.sequence,
            &Attributes::default(),
        );
        message[HEADERS - 1] = libc::NFNL_SUBSYS_NFTABLES as u8;
        self.octets.extend(message);
    }
}

/// nft's numbers of types.
pub(crate) const IPV4: u32 = 7;
pub(crate) const IPV6: u32 = 8;

/// Returns an error if this kernel has no nftables, or this process no permission to use it.
pub(crate) fn require() -> Result<(), Error> {
    let none = Attributes::default();
    let asked = ask(libc::NFT_MSG_GETGEN, 0, &none, |_| {});
    asked.map_err(Error::os("looking for nftables in this kernel"))
}

/// Returns the packets that a counter of a table has seen; `None` without the table.
pub(crate) fn counted(table: &str, counter: &str) -> Result<Option<u64>, Error> {
    let which = Attributes::default()
        .text(kind::TABLE, table)
        .text(kind::NAME, counter)
        .number(kind::OBJECT_TYPE, rule::COUNTER);
    let mut packets = None;
    let take = |attributes: &[u8]| {
        packets = find(attributes, kind::OBJECT_DATA).and_then(rule::packets);
    };
    match ask(libc::NFT_MSG_GETOBJ, 0, &which, take) {
        Ok(()) => Ok(packets),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(Error::os(format!(
            "reading the counter {counter} of the table {table}"
        ))(errno)),
    }
}

/// Returns a fingerprint of a table's flags, chains and rules, without values that packets change.
/// Equal fingerprints mean equal behaviour, if rules look only into constant sets. `None` without
/// the table.
pub(crate) fn fingerprint(table: &str) -> Result<Option<u64>, Error> {
    /// A change to any table interrupts a listing, which is then repeated.
    const ATTEMPTS: usize = 100;
    let interrupted = |read: &Result<_, Errno>| *read == Err(Errno::EINTR);
    let mut attempts = (0..ATTEMPTS).map(|_| read_fingerprint(table));
    let read = attempts.find(|read| !interrupted(read));
    read.unwrap_or(Err(Errno::EINTR))
        .map_err(Error::os(format!("listing the table {table}")))
}

fn read_fingerprint(table: &str) -> Result<Option<u64>, Errno> {
    let (mut hasher, mut parts) = (DefaultHasher::new(), 0);
    let which = Attributes::default().text(kind::TABLE, table);
    for list in [
        libc::NFT_MSG_GETTABLE,
        libc::NFT_MSG_GETCHAIN,
        libc::NFT_MSG_GETRULE,
    ] {
        let take = |attributes: &[u8]| {
            if is_of(attributes, table) {
                attributes.hash(&mut hasher);
                parts += 1;
            }
        };
        ask(list, libc::NLM_F_DUMP, &which, take)?;
    }
    Ok((parts > 0).then(|| hasher.finish()))
}

/// Returns true if a notification is about a table or its content.
pub(crate) fn is_about(message: &[u8], table: &str) -> bool {
    is_of(message.get(HEADERS..).unwrap_or_default(), table)
}

fn is_of(attributes: &[u8], table: &str) -> bool {
    let name = find(attributes, kind::TABLE).and_then(|name| name.strip_suffix(&[0]));
    name == Some(table.as_bytes())
}

/// Passes the attributes of each element of a set that rules fill to `take`.
pub(crate) fn elements(table: &str, set: &str, mut take: impl FnMut(&[u8])) -> Result<(), Error> {
    let which = Attributes::default()
        .text(kind::TABLE, table)
        .text(kind::NAME, set);
    let each = |attributes: &[u8]| {
        let list = find(attributes, kind::ELEMENTS).unwrap_or_default();
        read(list).for_each(|(_, element)| take(element));
    };
    let asked = match ask(libc::NFT_MSG_GETSETELEM, libc::NLM_F_DUMP, &which, each) {
        // Each element is consistent by itself.
        Err(Errno::EINTR) => Ok(()),
        asked => asked,
    };
    asked.map_err(Error::os(format!(
        "reading the set {set} of the table {table}"
    )))
}

/// Calls `take` with the attributes of every chain of a family.
pub(crate) fn chains(family: u8, take: impl FnMut(&[u8])) -> Result<(), Error> {
    let kind = (libc::NFNL_SUBSYS_NFTABLES << 8) | libc::NFT_MSG_GETCHAIN;
    let flags = libc::NLM_F_DUMP | libc::NLM_F_REQUEST | libc::NLM_F_ACK;
    let mut message = message(kind, flags, 1, &Attributes::default());
    message[HEADERS - 4] = family;
    let list = || {
        let socket = open()?;
        send(&socket, &message)?;
        answers(&socket, 1, take)
    };
    match list() {
        // Each chain is consistent by itself.
        Err(Errno::EINTR) => Ok(()),
        listed => listed.map_err(Error::os("reading the chains of nftables")),
    }
}

fn ask(kind: i32, flags: i32, which: &Attributes, take: impl FnMut(&[u8])) -> Result<(), Errno> {
    let socket = open()?;
    let kind = (libc::NFNL_SUBSYS_NFTABLES << 8) | kind;
    let flags = flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK;
    send(&socket, &message(kind, flags, 1, which))?;
    answers(&socket, 1, take)
}

fn open() -> Result<OwnedFd, Errno> {
    let family = AddressFamily::Netlink;
    let socket = socket(
        family,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkNetFilter,
    )?;
    setsockopt(&socket, ReceiveTimeout, &TimeVal::seconds(PATIENCE))?;
    Ok(socket)
}

fn send(socket: &OwnedFd, octets: &[u8]) -> Result<(), Errno> {
    let kernel = NetlinkAddr::new(0, 0);
    sendto(socket.as_raw_fd(), octets, &kernel, MsgFlags::empty()).map(drop)
}

/// Returns one message in the `inet` family, with its two headers: `nlmsghdr` and `nfgenmsg`.
fn message(kind: i32, flags: i32, sequence: u32, attributes: &Attributes) -> Vec<u8> {
    let attributes = attributes.as_slice();
    let mut octets = Vec::with_capacity(HEADERS + attributes.len());
    octets.extend(((HEADERS + attributes.len()) as u32).to_ne_bytes());
    octets.extend((kind as u16).to_ne_bytes());
    octets.extend((flags as u16).to_ne_bytes());
    octets.extend(sequence.to_ne_bytes());
    octets.extend([0; 4]);
    octets.extend([INET, 0, 0, 0]);
    octets.extend(attributes);
    octets
}

/// Reads answers until the one to message `last`, or the first error. A listing that was
/// interrupted by a change is complete and ends with `EINTR`, but may mix states of different
/// times.
fn answers(socket: &OwnedFd, last: u32, mut take: impl FnMut(&[u8])) -> Result<(), Errno> {
    let mut buffer = vec![0; ANSWER];
    let mut interrupted = false;
    loop {
        let length = match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Err(Errno::EINTR) => continue,
            length => length?,
        };
        for answer in messages(&buffer[..length]).filter_map(Answer::read) {
            match i32::from(answer.kind) {
                libc::NLMSG_ERROR | libc::NLMSG_DONE => match answer.error() {
                    0 if answer.sequence >= last && interrupted => return Err(Errno::EINTR),
                    0 if answer.sequence >= last => return Ok(()),
                    0 => {}
                    errno => return Err(Errno::from_raw(-errno)),
                },
                _ => {
                    interrupted |= answer.is_interrupted();
                    take(answer.body.get(4..).unwrap_or_default());
                }
            }
        }
    }
}

/// One message of the kernel, without its first header.
struct Answer<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Returns `None` for a truncated message.
    fn read(message: &'a [u8]) -> Option<Self> {
        let (header, body) = message.split_first_chunk::<16>()?;
        let [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, ..] = *header;
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        (length == message.len()).then_some(Self {
            kind: u16::from_ne_bytes([k0, k1]),
            flags: u16::from_ne_bytes([f0, f1]),
            sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
            body,
        })
    }

    /// Returns the negated error number of an error; 0 for an acknowledgement.
    fn error(&self) -> i32 {
        let number = self.body.first_chunk().copied();
        number.map_or(0, i32::from_ne_bytes)
    }

    /// Returns true if the listed objects have changed since the listing began.
    fn is_interrupted(&self) -> bool {
        i32::from(self.flags) & libc::NLM_F_DUMP_INTR != 0
    }
}
