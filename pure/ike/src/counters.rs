//! Counters of datagrams. Every dropped datagram is counted.

/// Declares the reasons once: the enum, a metric label, a phrase for messages, and the list.
macro_rules! reasons {
    ($($(#[$meta:meta])* $name:ident = $label:literal, $text:literal;)+) => {
        /// Reason for which a datagram was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DropReason {
            $(#[doc = concat!("A datagram was dropped because ", $text, ".")] $name,)+
        }

        impl DropReason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the label of the reason in metrics.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)+ }
            }
        }

        impl std::fmt::Display for DropReason {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$name => $text,)+ })
            }
        }
    };
}

reasons! {
    BadIcv = "bad_icv", "its integrity check failed";
    CookieWanted = "cookie_wanted", "it lacks the cookie that is required while many initiators are unauthenticated";
    FragmentMisfit = "fragment_misfit", "its fragment does not fit the previous ones";
    FragmentNotAgreed = "fragment_not_agreed", "it is a fragment, and fragmentation was not negotiated";
    FragmentRepeated = "fragment_repeated", "its fragment was already received";
    FragmentTooLong = "fragment_too_long", "its message would exceed the maximum length";
    HalfOpenLimit = "half_open_limit", "too many initiators are unauthenticated";
    KeyExchange = "key_exchange", "its public value is invalid";
    MalformedMessage = "malformed", "it is not an IKE message";
    MessageId = "message_id", "its message ID is not the expected one";
    OldVersion = "old_version", "it is IKEv1";
    Redirected = "redirected", "it was redirected to another gateway";
    Reflected = "reflected", "it is our own message sent back to us";
    Refused = "refused", "it is a request that was refused";
    RepeatedElsewhere = "repeated_elsewhere", "its response would be longer than what was received from that address";
    RepeatedTooOften = "repeated_too_often", "its response was already retransmitted too often";
    TooMuch = "too_much", "it has more payloads, or more elements in one of them, than the limits allow";
    Unauthenticated = "unauthenticated", "it is not protected, but has to be";
    UnexpectedExchange = "unexpected_exchange", "its exchange is not possible in this state";
    UnknownSa = "unknown_sa", "it belongs to no IKE SA";
    UnknownVersion = "unknown_version", "its major version is unknown";
    WrongAnswer = "wrong_answer", "it answers a request or an offer that was not made";
    WrongPayloads = "wrong_payloads", "its payloads do not fit its exchange";
}

/// Counters of an engine. The number of received datagrams is the sum of those accepted, answered
/// again, and dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams that were acted upon: genuine ones, and acceptable first messages of a handshake.
    pub taken: u64,
    /// Initiators that were refused in IKE_AUTH; a part of `taken`.
    pub refused: u64,
    /// Key pairs that were generated for unauthenticated initiators.
    pub key_pairs: u64,
    /// Unauthenticated initiators that were evicted in favour of those from less crowded networks.
    pub gave_way: u64,
    /// Datagrams sent, retransmissions included.
    pub sent: u64,
    /// Retransmitted requests.
    pub retransmitted: u64,
    /// Retransmitted requests of peers, which got the same response again.
    pub answered_again: u64,
    /// Messages sent in fragments, including retransmissions.
    pub fragmented: u64,
    /// Messages that were reassembled from fragments.
    pub reassembled: u64,
    /// Messages of which some, but not all, fragments arrived in time.
    pub incomplete: u64,
    /// Requests and responses that were fragmented into smaller pieces because nothing came back.
    pub cut_smaller: u64,
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Returns the number of datagrams that were dropped for a reason.
    pub const fn dropped(&self, why: DropReason) -> u64 {
        self.dropped[why as usize]
    }

    /// Returns every reason with its count.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|&why| (why, self.dropped(why)))
    }

    pub(crate) const fn drop(&mut self, why: DropReason) {
        self.dropped[why as usize] += 1;
    }
}
