//! Values of the paper.

/// Octets of object links, which are in the first zone, and of page information, which is in the
/// second.
pub(super) const LINKS: [usize; 7] = [20, 40, 64, 128, 256, 512, 1024];
pub(super) const PAGE: [usize; 8] = [0, 20, 40, 64, 128, 256, 512, 1024];

/// Cycles of a packet, with a row for each length of page information. The last two rows lack the
/// numbers of datagrams that exceed Ethernet's MTU.
const CYCLES: [&[f64]; 8] = [
    &[3416.6, 4678.1, 5419.6, 8422.3, 14548.0, 28012.1, 53884.9],
    &[5116.6, 6378.1, 7119.6, 10122.3, 16248.0, 29712.1, 55584.9],
    &[5827.3, 7128.0, 7624.3, 10916.3, 16697.9, 30576.2, 56181.2],
    &[7164.2, 8242.1, 9081.7, 11959.5, 18211.2, 31701.8, 57714.4],
    &[
        10014.5, 11121.2, 12074.1, 15685.8, 20994.2, 34679.9, 60852.0,
    ],
    &[
        16382.3, 18094.9, 18813.5, 22514.5, 28672.4, 41354.8, 67832.6,
    ],
    &[28464.6, 29131.3, 29744.9, 33636.3, 38743.6, 52372.1],
    &[52938.0, 53672.2, 56759.4, 59473.8, 62624.5],
];

/// Most cycles for an octet, and the clock for each Mb/s that the paper computes from it.
pub(super) const EACH: f64 = 64.5;
pub(super) const CLOCK: f64 = 8.225;

/// Returns the paper's value for these lengths, or `None` if it has none.
pub(super) fn cycles(links: usize, page: usize) -> Option<f64> {
    let column = LINKS.iter().position(|octets| *octets == links)?;
    let row = PAGE.iter().position(|octets| *octets == page)?;
    CYCLES[row].get(column).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_has_a_number_wherever_ethernet_has_room() {
        for links in LINKS {
            for page in PAGE {
                let fits = 40 + links + page <= 1500;
                assert_eq!(cycles(links, page).is_some(), fits, "{links} {page}");
            }
        }
        assert_eq!(cycles(20, 0), Some(3416.6));
        assert_eq!(cycles(256, 1024), Some(62624.5));
        assert_eq!(cycles(1024, 256), Some(67832.6));
    }

    /// The paper states at most 64.5 cycles for each octet of a packet.
    #[test]
    fn no_packet_of_the_paper_takes_more_cycles_for_an_octet_than_it_says() {
        let all = LINKS.iter().flat_map(|m| PAGE.map(|n| (*m, n)));
        let each = all.filter_map(|(m, n)| Some(cycles(m, n)? / (40 + m + n) as f64));
        let most = each.fold(0.0, f64::max);
        assert!((63.9..=EACH).contains(&most), "{most}");
    }
}
