//! The log formats, and how a format is recognised. Each has a file with its [`Reader`].

mod asa;
mod charon;
pub(crate) mod csv;
mod detail;
mod openvpn;
mod openvpn_status;
mod strata;
mod text;

use crate::Reader;

/// A log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// A table with a header, such as an export of FreeRADIUS's `radacct`.
    Csv,
    /// strongSwan's charon, from its file, syslog or the journal.
    Charon,
    /// Accounting of FreeRADIUS, `detail` files.
    Detail,
    /// OpenVPN's status file.
    OpenVpnStatus,
    /// OpenVPN's log.
    OpenVpn,
    /// Syslog of a Cisco ASA.
    Asa,
    /// The log of `stratad`.
    Strata,
}

impl Format {
    /// All formats, the ones that are recognised by less after those that are recognised by more.
    pub const ALL: [Self; 7] = [
        Self::Asa,
        Self::OpenVpnStatus,
        Self::Detail,
        Self::Charon,
        Self::OpenVpn,
        Self::Strata,
        Self::Csv,
    ];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Charon => "charon",
            Self::Detail => "freeradius-detail",
            Self::OpenVpnStatus => "openvpn-status",
            Self::OpenVpn => "openvpn",
            Self::Asa => "cisco-asa",
            Self::Strata => "strata",
        }
    }

    /// Recognises the format of a file by its first lines: it has most of them, as a line may have
    /// the words of a client.
    pub fn detect(head: &str) -> Option<Self> {
        let count = |format: Self| head.lines().filter(|line| format.has(line)).count();
        let counted = Self::ALL.map(|format| (count(format), format));
        // Of equal ones the first.
        let found = counted.into_iter().rev().filter(|(count, _)| *count > 0);
        found
            .max_by_key(|(count, _)| *count)
            .map(|(_, format)| format)
    }

    /// Creates a reader with the usual settings.
    pub fn reader(self) -> Box<dyn Reader> {
        match self {
            Self::Csv => Box::new(csv::Csv::default()),
            Self::Charon => Box::new(charon::Charon),
            Self::Detail => Box::new(detail::Detail::default()),
            Self::OpenVpnStatus => Box::new(openvpn_status::Status::default()),
            Self::OpenVpn => Box::new(openvpn::Log),
            Self::Asa => Box::new(asa::Asa),
            Self::Strata => Box::new(strata::Strata),
        }
    }

    /// Returns true if only this format has such a line.
    fn has(self, line: &str) -> bool {
        match self {
            Self::Csv => csv::is_header(line),
            Self::Charon => charon::is_line(line),
            Self::Detail => detail::is_line(line),
            Self::OpenVpnStatus => openvpn_status::is_status(line),
            Self::OpenVpn => openvpn::is_line(line),
            Self::Asa => asa::is_line(line),
            Self::Strata => strata::is_line(line),
        }
    }
}

#[cfg(test)]
mod tests;
