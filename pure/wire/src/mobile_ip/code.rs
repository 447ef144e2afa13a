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
                    Self::Other(number) => write!(f, "the agent answered with the unknown code {number}"),
                }
            }
        }
    };
}

codes! {
    Accepted = 0 "the registration is accepted"
    AcceptedAlone = 1 "the registration is accepted, but not together with others"
    ForeignUnspecified = 64 "the foreign agent refuses the registration without a reason"
    ForeignProhibited = 65 "the foreign agent does not allow the registration"
    ForeignResources = 66 "the foreign agent has insufficient resources"
    ForeignMobileAuthentication = 67 "the foreign agent could not authenticate the mobile node: compare the key at both"
    ForeignHomeAuthentication = 68 "the foreign agent could not authenticate the home agent: compare the key at both"
    ForeignLifetime = 69 "the foreign agent does not accept so long a lifetime"
    ForeignPoorlyFormed = 70 "the foreign agent cannot parse the request"
    ForeignPoorlyFormedReply = 71 "the foreign agent cannot parse the reply of the home agent"
    ForeignEncapsulation = 72 "the foreign agent does not support the requested encapsulation"
    ForeignReserved = 73 "the foreign agent does not support a requested feature"
    ForeignNoReverseTunnel = 74 "the foreign agent does not support reverse tunnels"
    ForeignReverseTunnelWanted = 75 "the foreign agent requires a reverse tunnel"
    ForeignTooDistant = 76 "the foreign agent serves only its own link, and the mobile node is not on that link"
    ForeignCareOf = 77 "the care-of address does not belong to the foreign agent"
    ForeignTimeout = 78 "the home agent did not answer the foreign agent in time"
    ForeignDelivery = 79 "the foreign agent does not support the requested delivery style"
    HomeNetworkUnreachable = 80 "the foreign agent cannot reach the home network"
    HomeHostUnreachable = 81 "the foreign agent cannot reach the home agent"
    HomePortUnreachable = 82 "no home agent runs at the address of the home agent"
    HomeUnreachable = 88 "the foreign agent cannot reach the home agent, without a specific reason"
    ForeignHomeAgent = 194 "the foreign agent considers the address of the home agent wrong"
    HomeUnspecified = 128 "the home agent refuses the registration without a reason"
    HomeProhibited = 129 "the home agent does not allow the registration"
    HomeResources = 130 "the home agent has insufficient resources"
    HomeMobileAuthentication = 131 "the home agent could not authenticate the mobile node: compare the key at both"
    HomeForeignAuthentication = 132 "the home agent could not authenticate the foreign agent: compare the key at both"
    HomeIdentification = 133 "the home agent does not accept the request as fresh"
    HomePoorlyFormed = 134 "the home agent cannot parse the request"
    HomeTooManyBindings = 135 "the home agent has the maximum number of bindings for this mobile node"
    HomeAddress = 136 "the home agent has another address"
    HomeNoReverseTunnel = 137 "the home agent does not support reverse tunnels"
    HomeReverseTunnelWanted = 138 "the home agent requires a reverse tunnel"
    HomeEncapsulation = 139 "the home agent does not support the requested encapsulation"
    HomeUdpEncapsulation = 142 "the home agent does not support the requested encapsulation in UDP"
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
