//! Networks on which a ticket was seen. A ticket is shown on one only: an eavesdropper on two of
//! them would recognize its holder.

use model::Path;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Our address for packets to each remote one, as the driver reports it; `None` without a route.
#[derive(Default)]
pub(crate) struct Sources(BTreeMap<IpAddr, Option<IpAddr>>);

/// The network on which a ticket was seen, known by our address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// On none: there was no route to the gateway.
    Nowhere,
    From(IpAddr),
    /// On several, or on one that is not known.
    Anywhere,
}

impl Sources {
    pub(crate) fn set(&mut self, sources: impl Iterator<Item = (IpAddr, Option<IpAddr>)>) {
        self.0 = sources.collect();
    }

    /// Returns where a message on this path is seen. Without an address of ours in the path, the
    /// operating system chooses it.
    pub(crate) fn shown(&self, path: Path) -> Shown {
        let (local, remote) = (path.local.ip(), path.remote.ip());
        let known = Some(Some(local)).filter(|_| !local.is_unspecified());
        match known.or_else(|| self.0.get(&remote).copied()) {
            Some(Some(local)) => Shown::From(local),
            Some(None) => Shown::Nowhere,
            None => Shown::Anywhere,
        }
    }
}

impl Shown {
    /// Returns where a ticket was seen that is shown again.
    pub(crate) fn and(self, again: Self) -> Self {
        match (self, again) {
            (Self::Nowhere, shown) | (shown, Self::Nowhere) => shown,
            (Self::From(one), Self::From(other)) if one == other => self,
            _ => Self::Anywhere,
        }
    }

    /// Returns true if a ticket may be shown again.
    pub(crate) fn allows(self, again: Self) -> bool {
        match self {
            Self::Nowhere => true,
            Self::From(_) => self == again,
            Self::Anywhere => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_seen_on_one_network_or_may_be_on_several() {
        let [home, train] = [[192, 0, 2, 1], [198, 51, 100, 1]].map(|ip| Shown::From(ip.into()));
        assert_eq!(Shown::Nowhere.and(home), home);
        assert_eq!(home.and(Shown::Nowhere), home);
        assert_eq!(home.and(home), home);
        assert_eq!(home.and(train), Shown::Anywhere);
        assert_eq!(Shown::Anywhere.and(Shown::Nowhere), Shown::Anywhere);
        assert!(home.allows(home) && Shown::Nowhere.allows(train));
        assert!(!home.allows(train) && !home.allows(Shown::Nowhere));
        assert!(!Shown::Anywhere.allows(Shown::Anywhere));
    }
}
