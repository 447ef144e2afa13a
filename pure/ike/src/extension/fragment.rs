//! Messages in fragments (RFC 7383): what IP would have to cut is cut here, because what IP cuts is
//! lost in many firewalls and NATs. Long are the messages with certificates.
//!
//! Both ends say in IKE_SA_INIT that they can, which therefore never comes in fragments itself. Each
//! fragment is sealed on its own, so nothing is stored that its sender has no key for:
//!
//! ```text
//! HDR, SK {all}   =   HDR, SKF 1/3 {a}   HDR, SKF 2/3 {ll}   HDR, SKF 3/3 {}
//! ```
//!
//! A message that nobody answers is cut smaller (section 2.5.2). The total then tells old pieces from
//! new ones, and only ever grows.
//!
//! **Bounds.** An IKE SA gathers at most one request and one response at a time, of at most
//! [`MAX_MESSAGE`] octets in at most [`MOST`] pieces, for [`crate::Timers::reassembly`]; where several
//! are under way, the one that began last. Only who holds its keys can fill that: of strangers, as many
//! as may be half open.

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

/// More pieces of one message are not taken. Ours have at least 400 octets.
const MOST: u16 = 128;

/// UDP header and non-ESP marker.
const BEFORE_IKE: usize = 8 + 4;

/// What either end adds to IKE_SA_INIT.
pub(crate) fn payload(config: &Config) -> Option<Payload> {
    let kind = NotifyType::IKEV2_FRAGMENTATION_SUPPORTED;
    (config.fragment != 0).then(|| notify(kind, Vec::new()))
}

/// Whether both ends can, given the other end's IKE_SA_INIT; then how large datagrams are at first.
pub(crate) fn agreed(message: &Message, config: &Config) -> Option<Limit> {
    find_notify(message, NotifyType::IKEV2_FRAGMENTATION_SUPPORTED)?;
    (config.fragment != 0).then(|| Limit(config.fragment.max(Limit::SMALLEST.0)))
}

/// The longest IP datagram that a message is sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Limit(pub(crate) u16);

impl Limit {
    /// "Small enough to avoid IP fragmentation in most situations" (section 2.5.1).
    pub(crate) const SMALLEST: Self = Self(576);

    /// Of the IP datagram that a message came in; the peer believes that it passes.
    pub(crate) fn of(message: &[u8], path: Path) -> Self {
        let length = message.len() + before_ike(path);
        Self(u16::try_from(length).unwrap_or(u16::MAX)).max(Self::SMALLEST)
    }

    /// Octets for the message.
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

/// A message that IP has to cut, because one of the ends does not want it in fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncut {
    /// Octets of its IP datagram.
    pub octets: u16,
    /// Whether it is we who do not want it; otherwise it is the peer.
    pub ours: bool,
}

impl Uncut {
    /// Looks at a message that is sent on a path.
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

/// A message as it is sent and sent again: one datagram, or a fragment in each.
#[derive(Debug)]
pub(crate) struct Parcel {
    datagrams: Vec<Vec<u8>>,
    /// The message, while it could be cut smaller.
    whole: Option<Message>,
}

impl Parcel {
    /// A message that is never cut.
    pub(crate) fn clear(octets: Vec<u8>) -> Self {
        Self {
            datagrams: vec![octets],
            whole: None,
        }
    }

    /// Seals a message: in fragments if that was agreed and it does not fit otherwise.
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

    /// Octets of all its datagrams.
    pub(crate) fn len(&self) -> usize {
        self.datagrams.iter().map(Vec::len).sum()
    }

    pub(crate) const fn is_coarse(&self) -> bool {
        self.whole.is_some()
    }

    /// Cuts it smaller, and says whether it did: the number of fragments has to be "really increased"
    /// (section 2.5.2).
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

/// What came of messages in fragments: at most one in each direction.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    request: Option<Box<Gathering>>,
    response: Option<Box<Gathering>>,
}

/// Pieces of one message. All of them are genuine.
#[derive(Debug)]
struct Gathering {
    header: Header,
    total: u16,
    pieces: BTreeMap<u16, Content>,
    octets: usize,
    /// The hash of the first fragment, by which the message is known when it comes again.
    mark: [u8; 32],
    /// What stood before the IV of the first fragment.
    before: Vec<u8>,
    largest: Limit,
    until: Instant,
}

/// A message that was put together.
pub(crate) struct Whole {
    pub(crate) content: Content,
    pub(crate) mark: [u8; 32],
    /// What stood before the IV, of the first piece.
    pub(crate) before: Vec<u8>,
    /// The largest datagram that a piece came in.
    pub(crate) largest: Limit,
}

impl Inbox {
    /// Whether a fragment is new, as far as can be told before it is opened (section 2.6).
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

    /// Stores a piece that was admitted and is genuine; gives the message once it is complete.
    pub(crate) fn add(
        &mut self,
        sealed: &Sealed<'_>,
        at: Fragment,
        content: Content,
        (octets, path): (&[u8], Path),
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

    /// The message came otherwise, or nobody waits for it any more.
    pub(crate) fn forget(&mut self, header: &Header) {
        self.of_mut(header).take_if(|of| of.is_of(header));
    }

    /// When pieces are thrown away whose message is not complete.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let both = self.request.iter().chain(&self.response);
        both.map(|gathering| gathering.until).min()
    }

    /// Throws them away; gives how many messages that were.
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

    /// Whether a fragment belongs to the same exchange, going by what windows go by.
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
