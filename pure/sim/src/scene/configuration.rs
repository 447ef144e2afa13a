//! The five ways to carry the papers' download.

/// What protects the download, and what the node on its way does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// Nothing protects it; the node only forwards.
    None,
    /// Clear TCP, SNOOP at the node.
    Snoop,
    /// Plain ESP from the mobile node to the gateway.
    Ipsec,
    /// Zoned ESP; the node may read the headers but does nothing with them.
    Zoned,
    /// Zoned ESP, SNOOP at the node.
    ZonedSnoop,
}

impl Configuration {
    /// All of them, in the order of the papers' figure.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::Snoop,
        Self::Ipsec,
        Self::Zoned,
        Self::ZonedSnoop,
    ];

    /// Whether there is a tunnel between the mobile node and the gateway.
    pub const fn has_tunnel(self) -> bool {
        matches!(self, Self::Ipsec | Self::Zoned | Self::ZonedSnoop)
    }

    /// Whether the tunnel's packets are sealed in zones.
    pub const fn is_zoned(self) -> bool {
        matches!(self, Self::Zoned | Self::ZonedSnoop)
    }

    /// Whether there is a node between them that sees transit packets; else it is a router.
    pub const fn has_node(self) -> bool {
        matches!(self, Self::Snoop | Self::Zoned | Self::ZonedSnoop)
    }

    /// Whether SNOOP runs at the node.
    pub const fn has_snoop(self) -> bool {
        matches!(self, Self::Snoop | Self::ZonedSnoop)
    }
}
