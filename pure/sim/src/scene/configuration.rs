//! Configurations of the papers' download.

/// Protection of the download, and the service of the node on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// No protection; the node only forwards.
    None,
    /// Unprotected TCP, with SNOOP at the node.
    Snoop,
    /// Plain ESP from the mobile node to the gateway.
    Ipsec,
    /// Zoned ESP; the node may read the headers, but does not use them.
    Zoned,
    /// Zoned ESP, with SNOOP at the node.
    ZonedSnoop,
}

impl Configuration {
    /// All configurations, in the order of the papers' figure.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::Snoop,
        Self::Ipsec,
        Self::Zoned,
        Self::ZonedSnoop,
    ];

    /// Returns true if there is a tunnel between the mobile node and the gateway.
    pub const fn has_tunnel(self) -> bool {
        matches!(self, Self::Ipsec | Self::Zoned | Self::ZonedSnoop)
    }

    /// Returns true if the tunnel uses zoned ESP.
    pub const fn is_zoned(self) -> bool {
        matches!(self, Self::Zoned | Self::ZonedSnoop)
    }

    /// Returns true if a node between them sees transit packets. Otherwise it is a plain router.
    pub const fn has_node(self) -> bool {
        matches!(self, Self::Snoop | Self::Zoned | Self::ZonedSnoop)
    }

    /// Returns true if SNOOP runs at the node.
    pub const fn has_snoop(self) -> bool {
        matches!(self, Self::Snoop | Self::ZonedSnoop)
    }
}
