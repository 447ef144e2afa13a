//! Message counters: every denial and every dropped message is counted.

use std::collections::BTreeMap;
use std::fmt;
use wire::mobile_ip::Code;

macro_rules! reasons {
    ($($name:ident $label:literal $text:literal)*) => {
        /// The reason why a message was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Dropped {
            $(#[doc = $text] $name,)*
        }

        impl Dropped {
            /// All drop reasons.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the counter's name, in snake case.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }

        impl fmt::Display for Dropped {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $text,)*
                })
            }
        }
    };
}

reasons! {
    Malformed "malformed" "the message cannot be parsed"
    UnknownType "unknown_type" "the message is of a type that is not handled here"
    OtherInterface "other_interface" "the message came on an interface where its type is not expected"
    NoForeignAgent "no_foreign_agent" "the advertising agent is not a foreign agent with reverse tunnels, or its lifetime is too short"
    TooManyAgents "too_many_agents" "too many agents advertise themselves: one was forgotten"
    TooOften "too_often" "the limit of answers per second is reached"
    GaveWay "gave_way" "all places were taken: it was the oldest of the station with the most"
    UnknownMobile "unknown_mobile" "the message is for an unknown mobile node"
    NotAuthenticMobile "not_authentic_mobile" "the mobile node or its home agent failed to authenticate"
    NotAuthenticForeign "not_authentic_foreign" "the foreign agent failed to authenticate"
    StrangeForeign "strange_foreign" "the foreign agent authenticates itself, but shares no key with us"
    NoClock "no_clock" "the clock is not set, so the message cannot be checked for freshness"
    Unsolicited "unsolicited" "the message answers no outstanding request"
    StrangeNeighbour "strange_neighbour" "the foreign agent is not a configured neighbour"
    NoNoteKey "no_note_key" "the note cannot be verified: no key is shared with the mobile node"
    OldNote "old_note" "the note is not of the current registration, or was taken from another agent"
    NotSentOn "not_sent_on" "the previous agent of the mobile node forwards nothing to it"
    NeighbourSilent "neighbour_silent" "the previous agent of the mobile node does not answer"
    NotRouted "not_routed" "another mobile node has the home address, and the home agent did not show that it is on its route"
    WrongSource "wrong_source" "the source of the answer is not the address that was asked"
}

/// Counters of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages received.
    pub received: u64,
    /// Requests accepted.
    pub accepted: u64,
    /// Requests denied, by code. A denial that the rate limit suppresses counts here, and as
    /// [`Dropped::TooOften`] too.
    pub denied: BTreeMap<Code, u64>,
    /// Messages dropped, by reason.
    pub dropped: BTreeMap<Dropped, u64>,
}

impl Counters {
    pub(super) fn drop(&mut self, reason: Dropped) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    pub(super) fn deny(&mut self, code: Code) {
        *self.denied.entry(code).or_default() += 1;
    }
}
