//! Networks behind a NAT, from which no tunnel of IP in IP comes (RFC 3519).

/// When tunnels are in UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nat {
    /// Never: nobody is asked for it, and who asks is denied if there is a NAT.
    #[default]
    Never,
    /// Where the home agent sees that a request has passed a NAT. Who asks leaves that to it, and who is asked has
    /// it no other way.
    Detect,
    /// Whether there is a NAT or not: who asks says that it has to be so (section 3.1.1), and who is asked allows
    /// that.
    Always,
}
