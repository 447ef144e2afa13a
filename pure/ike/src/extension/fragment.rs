//! Messages in fragments (RFC 7383): the engine fragments long messages itself, because many
//! firewalls and NATs drop IP fragments. Messages with certificates are long.
//!
//! Both ends announce support in IKE_SA_INIT, which therefore never comes in fragments itself. Each
//! fragment is sealed separately, so a receiver stores only fragments of an authentic sender:
//!
//! ```text
//! HDR, SK {all}   =   HDR, SKF 1/3 {a}   HDR, SKF 2/3 {ll}   HDR, SKF 3/3 {}
//! ```
//!
//! A message that is not answered is fragmented into smaller pieces (section 2.5.2). The total
//! number then distinguishes old fragments from new ones, and only ever grows.
//!
//! **Bounds.** An IKE SA reassembles at most one request and one response at a time, of at most
//! [`MAX_MESSAGE`] octets in at most [`MOST`] fragments, for [`crate::Timers::reassembly`]. If
//! several messages are incomplete, it keeps the one that began last. Only a peer that holds the
//! SA's keys can use that memory. Among unauthenticated peers, that is as many as may be half open.

use crate::cipher::Cipher;
use crate::config::{Config, FRAGMENT};
use crate::counters::DropReason;
use crate::exchange::{find_notify, notify};
use crypto::sha256;
use model::{Instant, Path};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::ike::{
    Content, Fragment, Header, MAX_MESSAGE, Message, NotifyType, Payload, PayloadType, Sealed,
};
use zeroize::Zeroizing;

/// Maximum number of fragments accepted for one message. Ours have at least 400 octets each.
const MOST: u16 = 128;

/// Octets of UDP header and non-ESP marker.
const BEFORE_IKE: usize = 8 + 4;

/// Returns the notify for IKE_SA_INIT that announces support.
pub(crate) fn payload(config: &Config) -> Option<Payload> {
    let kind = NotifyType::IKEV2_FRAGMENTATION_SUPPORTED;
    (config.fragment != 0).then(|| notify(kind, Vec::new()))
}

/// Returns the initial size of datagrams if both ends support fragments, given the other end's
/// IKE_SA_INIT message.
pub(crate) fn agreed(message: &Message, config: &Config) -> Option<Limit> {
    find_notify(message, NotifyType::IKEV2_FRAGMENTATION_SUPPORTED)?;
    (config.fragment != 0).then(|| Limit(config.fragment.max(Limit::SMALLEST.0)))
}

/// Maximum size of an IP datagram that carries a message, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Limit(pub(crate) u16);

impl Limit {
    /// "Small enough to avoid IP fragmentation in most situations" (section 2.5.1).
    pub(crate) const SMALLEST: Self = Self(576);

    /// Returns the size of the IP datagram in which a message arrived. The peer assumes that this
    /// size passes.
    pub(crate) fn of(message: &[u8], path: Path) -> Self {
        let length = message.len() + before_ike(path);
        Self(u16::try_from(length).unwrap_or(u16::MAX)).max(Self::SMALLEST)
    }

    /// Returns the octets left for the message.
    fn room(self, path: Path) -> usize {
        usize::from(self.0) - before_ike(path)
    }
}

fn before_ike(path: Path) -> usize {
    let ip = match path.remote.ip() {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
    };
    ip + BEFORE_IKE
}

/// A message that IP has to fragment, because one of the ends has disabled IKE fragmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncut {
    /// Size of its IP datagram in octets.
    pub octets: u16,
    /// True if IKE fragmentation is disabled here; otherwise the peer does not support it.
    pub ours: bool,
}

impl Uncut {
    /// Returns the size of a message on a path if IP has to fragment it.
    pub(crate) fn of(
        message: &[u8],
        path: Path,
        limit: Option<Limit>,
        config: &Config,
    ) -> Option<Self> {
        let Limit(octets) = Limit::of(message, path);
        let ours = config.fragment == 0;
        (limit.is_none() && octets > FRAGMENT && !path.is_stream()).then_some(Self { octets, ours })
    }
}

/// A message as it is transmitted and retransmitted: one datagram, or one per fragment.
#[derive(Debug)]
pub(crate) struct Outgoing {
    datagrams: Vec<Vec<u8>>,
    /// The message, as long as smaller fragments are possible.
    whole: Option<Message>,
}

impl Outgoing {
    /// Creates a message that is never fragmented.
    pub(crate) fn clear(octets: Vec<u8>) -> Self {
        Self {
            datagrams: vec![octets],
            whole: None,
        }
    }

    /// Seals a message, in fragments if that was negotiated and the message is too long for one
    /// datagram.
    pub(crate) fn seal(
        message: Message,
        limit: Option<Limit>,
        path: Path,
        cipher: &mut Cipher,
    ) -> Self {
        let Some(limit) = limit else {
            return Self::clear(cipher.seal(&message));
        };
        let datagrams = cipher.seal_within(&message, limit.room(path));
        let smallest = Limit::SMALLEST.room(path);
        let is_coarse = datagrams.iter().any(|octets| octets.len() > smallest);
        Self {
            datagrams,
            whole: is_coarse.then_some(message),
        }
    }

    pub(crate) fn datagrams(&self) -> &[Vec<u8>] {
        &self.datagrams
    }

    /// Returns the total length of all datagrams, in octets.
    pub(crate) fn len(&self) -> usize {
        self.datagrams.iter().map(Vec::len).sum()
    }

    pub(crate) const fn is_coarse(&self) -> bool {
        self.whole.is_some()
    }

    /// Fragments the message into smaller pieces, and returns true if it did: the number of
    /// fragments has to be "really increased" (section 2.5.2).
    pub(crate) fn cut_smaller(&mut self, limit: Limit, path: Path, cipher: &mut Cipher) -> bool {
        let Some(message) = self.whole.take() else {
            return false;
        };
        let smaller = Self::seal(message, Some(limit), path, cipher);
        let is_more = smaller.datagrams.len() > self.datagrams.len();
        match is_more {
            true => *self = smaller,
            false => self.whole = smaller.whole,
        }
        is_more
    }
}

/// Incomplete messages: at most one in each direction.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    request: Option<Box<Gathering>>,
    response: Option<Box<Gathering>>,
}

/// Fragments of one message. All of them are authentic.
#[derive(Debug)]
struct Gathering {
    header: Header,
    total: u16,
    pieces: BTreeMap<u16, Content>,
    octets: usize,
    /// Hash of the first fragment, which identifies a retransmission of the message.
    mark: [u8; 32],
    /// The octets before the IV of the first fragment.
    before: Vec<u8>,
    largest: Limit,
    until: Instant,
}

/// A reassembled message.
pub(crate) struct Whole {
    pub(crate) content: Content,
    pub(crate) mark: [u8; 32],
    /// The octets before the IV of the first fragment.
    pub(crate) before: Vec<u8>,
    /// Size of the largest datagram that carried a fragment.
    pub(crate) largest: Limit,
}

impl Inbox {
    /// Returns `Ok` if a fragment is new, as far as its headers show (section 2.6). The fragment
    /// has not been opened yet.
    pub(crate) fn admits(&self, header: &Header, at: Fragment) -> Result<(), DropReason> {
        let Some(gathering) = self.of(header).filter(|of| of.is_of(header)) else {
            return Ok(());
        };
        if *header != gathering.header || at.total < gathering.total {
            return Err(DropReason::FragmentMisfit);
        }
        match at.total == gathering.total && gathering.pieces.contains_key(&at.number) {
            true => Err(DropReason::FragmentRepeated),
            false => Ok(()),
        }
    }

    /// Stores an admitted, authentic fragment. Returns the message once it is complete.
    pub(crate) fn add(
        &mut self,
        sealed: &Sealed<'_>,
        at: Fragment,
        content: Content,
        octets: &[u8],
        path: Path,
        until: Instant,
    ) -> Result<Option<Whole>, DropReason> {
        if at.total > MOST {
            return Err(DropReason::FragmentTooLong);
        }
        let header = &sealed.header;
        let place = self.of_mut(header);
        let goes_on = |of: &Gathering| of.is_of(header) && of.total == at.total;
        if !place.as_deref().is_some_and(goes_on) {
            // "Discard all received fragments and start the reassembly process over."
            *place = None;
        }
        let gathering = place.get_or_insert_with(|| {
            let gathering = Gathering::new(*header, at.total, until);
            Box::new(gathering)
        });
        gathering.octets += content.octets.len();
        if gathering.octets > MAX_MESSAGE {
            *place = None;
            return Err(DropReason::FragmentTooLong);
        }
        if at.number == 1 {
            gathering.mark = sha256(&[octets]);
            gathering.before = sealed.before_iv();
        }
        gathering.largest = gathering.largest.max(Limit::of(octets, path));
        gathering.pieces.insert(at.number, content);
        let is_complete = gathering.pieces.len() == usize::from(at.total);
        Ok(place.take_if(|_| is_complete).map(|all| all.join()))
    }

    /// Drops the fragments of a message that arrived in another way, or that is no longer awaited.
    pub(crate) fn forget(&mut self, header: &Header) {
        self.of_mut(header).take_if(|of| of.is_of(header));
    }

    /// Returns the time at which incomplete messages are dropped.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let both = self.request.iter().chain(&self.response);
        both.map(|gathering| gathering.until).min()
    }

    /// Drops expired fragments, and returns the number of incomplete messages.
    pub(crate) fn expire(&mut self, now: Instant) -> u64 {
        let both = [&mut self.request, &mut self.response].into_iter();
        let expired = both.filter_map(|place| place.take_if(|gathering| gathering.until <= now));
        expired.map(|_| 1).sum()
    }

    fn of(&self, header: &Header) -> Option<&Gathering> {
        match header.flags.response {
            true => self.response.as_deref(),
            false => self.request.as_deref(),
        }
    }

    const fn of_mut(&mut self, header: &Header) -> &mut Option<Box<Gathering>> {
        match header.flags.response {
            true => &mut self.response,
            false => &mut self.request,
        }
    }
}

impl Gathering {
    const fn new(header: Header, total: u16, until: Instant) -> Self {
        Self {
            header,
            total,
            pieces: BTreeMap::new(),
            octets: 0,
            mark: [0; 32],
            before: Vec::new(),
            largest: Limit::SMALLEST,
            until,
        }
    }

    /// Returns true if a fragment has the same message ID.
    const fn is_of(&self, header: &Header) -> bool {
        self.header.message_id == header.message_id
    }

    fn join(self) -> Whole {
        let mut octets = Zeroizing::new(Vec::with_capacity(self.octets));
        let mut first = PayloadType::NONE;
        for (number, piece) in self.pieces {
            octets.extend_from_slice(&piece.octets);
            if number == 1 {
                first = piece.first;
            }
        }
        Whole {
            content: Content { first, octets },
            mark: self.mark,
            before: self.before,
            largest: self.largest,
        }
    }
}
