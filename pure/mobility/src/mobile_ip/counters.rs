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
    Malformed "malformed" "it cannot be read"
    UnknownType "unknown_type" "it is no message that is for us"
    OtherInterface "other_interface" "it came on an interface where nothing of that kind is expected"
    NoForeignAgent "no_foreign_agent" "who advertises itself is no foreign agent that tunnels back, or registers nobody for long enough"
    TooManyAgents "too_many_agents" "more agents advertise themselves than are remembered: one was forgotten"
    TooOften "too_often" "as much was answered already as is answered in a second"
    UnknownMobile "unknown_mobile" "it is for a mobile node that is nobody's here"
    NotAuthenticMobile "not_authentic_mobile" "the mobile node or its home agent did not prove itself"
    NotAuthenticForeign "not_authentic_foreign" "the foreign agent did not prove itself"
    StrangeForeign "strange_foreign" "a foreign agent proves itself with whom we have no key"
    NoClock "no_clock" "nobody has told us the time by which to judge whether it is new"
    Unsolicited "unsolicited" "it answers nothing that was asked"
    StrangeNeighbour "strange_neighbour" "it is of a foreign agent that is not one of our neighbours"
    NoNoteKey "no_note_key" "its note proves nothing: with that mobile node we share no key"
    OldNote "old_note" "its note is not of the registration that there is, or was taken from another agent"
    NotSentOn "not_sent_on" "the agent that the mobile node comes from sends nothing after it"
    NeighbourSilent "neighbour_silent" "the agent that the mobile node comes from does not answer"
    WrongSource "wrong_source" "it does not come from whom was asked"
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
