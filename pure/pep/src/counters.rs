//! What the proxy did, counted.

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Events since the proxy was made. Every segment that is not handled in the plain way,
        /// and every packet the proxy originates, has its number here.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Counters {
            /// Every counter with its name and its meaning, for a metrics registry.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), concat!($($doc),+), self.$name),)+].into_iter()
            }
        }
    };
}

counters! {
    /// Data segments cached.
    cached,
    /// Data segments forwarded uncached: the connection's or the total limit was reached.
    cache_full,
    /// Data segments forwarded uncached: the receiver had acknowledged them before.
    already_acknowledged,
    /// Data segments forwarded uncached: half the sequence space away from the connection.
    out_of_window,
    /// Data segments forwarded uncached: the connection's acknowledgements take another way.
    acks_elsewhere,
    /// Data segments that the sender sent again.
    sender_retransmissions,
    /// Segments that the node's replay window knew already; they changed nothing.
    not_fresh,
    /// Retransmissions because a packet sent later is known to have arrived.
    retransmitted_lost,
    /// Retransmissions because nothing was heard for a retransmission timeout.
    retransmitted_timeout,
    /// Retransmissions because nothing was heard for the persist time.
    retransmitted_persist,
    /// Retransmissions not made: the packet is too far behind in the replay window.
    too_old,
    /// Retransmissions not made: the packet had its share.
    given_up,
    /// Acknowledgements suppressed for good.
    suppressed,
    /// Acknowledgements kept back for a while that were superseded or sent later.
    held,
    /// Duplicate acknowledgements forwarded: the loss is the sender's to repair.
    duplicates_forwarded,
    /// Acknowledgements of data that never came through here; they changed nothing.
    ack_beyond_data,
    /// Connections that gave way to a newer one.
    flows_evicted,
    /// Connections forgotten after the garbage time.
    flows_expired,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_listed_once_with_its_value() {
        let counters = Counters {
            cached: 3,
            flows_expired: 4,
            ..Counters::default()
        };
        let listed: Vec<_> = counters.iter().collect();
        assert_eq!(listed[0], ("cached", " Data segments cached.", 3));
        assert_eq!(
            listed.last().map(|last| (last.0, last.2)),
            Some(("flows_expired", 4))
        );
    }
}
