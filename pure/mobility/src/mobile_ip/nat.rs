//! Networks behind a NAT, which IP-in-IP tunnels do not pass (RFC 3519).

/// The policy for UDP tunnels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nat {
    /// Never: agents do not request them, and home agents deny requests that passed a NAT.
    #[default]
    Never,
    /// If the home agent detects that a request has passed a NAT. A foreign agent leaves that
    /// decision to the home agent, and a home agent grants no UDP tunnel otherwise.
    Detect,
    /// With or without a NAT: a foreign agent forces UDP in its requests (section 3.1.1), and a
    /// home agent allows that.
    Always,
}
