//! Codes of Registration Replies (RFC 5944 section 3.4, RFC 3024 section 3.4, RFC 3519
//! section 3.5). One list defines the type, its numbers and their texts.

use std::fmt;

macro_rules! codes {
    ($($name:ident = $number:literal $text:literal)*) => {
        /// An agent's answer to a registration request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = concat!("Number ", $number, ": ", $text, ".")] $name,)*
            /// An unknown code.
            Other(u8),
        }

        impl Code {
            /// All known codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the code of a number.
            pub const fn from_number(number: u8) -> Self {
                match number {
                    $($number => Self::$name,)*
                    other => Self::Other(other),
                }
            }

            /// Returns the number.
            pub const fn number(self) -> u8 {
                match self {
                    $(Self::$name => $number,)*
                    Self::Other(number) => number,
                }
            }
        }

        impl fmt::Display for Code {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name => f.write_str($text),)*
                    Self::Other(number) => write!(f, "it was answered by code {number}, which is unknown here"),
                }
            }
        }
    };
}

codes! {
    Accepted = 0 "the registration is accepted"
    AcceptedAlone = 1 "the registration is accepted, but not beside others"
    ForeignUnspecified = 64 "the foreign agent refuses it without a reason"
    ForeignProhibited = 65 "the foreign agent does not allow it"
    ForeignResources = 66 "the foreign agent has too much to do"
    ForeignMobileAuthentication = 67 "the foreign agent does not find the mobile node authentic: is the key the same at both?"
    ForeignHomeAuthentication = 68 "the foreign agent does not find the home agent authentic: is the key the same at both?"
    ForeignLifetime = 69 "the foreign agent accepts no registration that is so long"
    ForeignPoorlyFormed = 70 "the foreign agent cannot read the request"
    ForeignPoorlyFormedReply = 71 "the foreign agent cannot read what the home agent replied"
    ForeignEncapsulation = 72 "the foreign agent does not have the encapsulation that was asked for"
    ForeignReserved = 73 "the foreign agent does not have what was asked for"
    ForeignNoReverseTunnel = 74 "the foreign agent has no tunnel back"
    ForeignReverseTunnelWanted = 75 "the foreign agent wants a tunnel back to be asked for"
    ForeignTooDistant = 76 "the foreign agent serves its own link alone, and the mobile node is not there"
    ForeignCareOf = 77 "the care-of address is not one of the foreign agent"
    ForeignTimeout = 78 "the home agent did not answer the foreign agent in time"
    ForeignDelivery = 79 "the foreign agent does not have the delivery style that was asked for"
    HomeNetworkUnreachable = 80 "the foreign agent does not reach the home network"
    HomeHostUnreachable = 81 "the foreign agent does not reach the home agent"
    HomePortUnreachable = 82 "no home agent runs at the address of the home agent"
    HomeUnreachable = 88 "the foreign agent does not reach the home agent, and has no better reason"
    ForeignHomeAgent = 194 "the foreign agent takes the address of the home agent for a wrong one"
    HomeUnspecified = 128 "the home agent refuses it without a reason"
    HomeProhibited = 129 "the home agent does not allow it"
    HomeResources = 130 "the home agent has too much to do"
    HomeMobileAuthentication = 131 "the home agent does not find the mobile node authentic: is the key the same at both?"
    HomeForeignAuthentication = 132 "the home agent does not find the foreign agent authentic: is the key the same at both?"
    HomeIdentification = 133 "the home agent does not find the request fresh"
    HomePoorlyFormed = 134 "the home agent cannot read the request"
    HomeTooManyBindings = 135 "the home agent has as many bindings for this mobile node as it allows"
    HomeAddress = 136 "the home agent has another address"
    HomeNoReverseTunnel = 137 "the home agent has no tunnel back"
    HomeReverseTunnelWanted = 138 "the home agent wants a tunnel back to be asked for"
    HomeEncapsulation = 139 "the home agent does not have the encapsulation that was asked for"
    HomeUdpEncapsulation = 142 "the home agent does not have in UDP the encapsulation that was asked for"
}

/// The agent that decided on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The foreign agent, which may share no key with the recipient.
    ForeignAgent,
    /// The home agent, which always shares a key with the mobile node.
    HomeAgent,
}

impl Code {
    /// Returns true if the request is granted.
    pub const fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted | Self::AcceptedAlone)
    }

    /// Returns the agent that decided. The foreign agent denies with 64 to 127 and 194. Unknown
    /// codes count as the home agent's, so only an authenticated reply can use them.
    pub const fn party(self) -> Party {
        match self.number() {
            64..=127 | 194 => Party::ForeignAgent,
            _ => Party::HomeAgent,
        }
    }
}
