//! Counters of the proxy.

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Events since the proxy was created. Every segment that is not handled in the plain way,
        /// and every packet the proxy originates, is counted here.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Counters {
            /// Returns every counter with its name and its meaning, for a metrics registry.
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
    /// Data segments forwarded uncached: more than 2^30 octets from the last acknowledgement.
    out_of_window,
    /// Data segments forwarded uncached: the connection's acknowledgements take another path.
    acks_elsewhere,
    /// Data segments that the sender retransmitted.
    sender_retransmissions,
    /// Segments already seen by the node's replay window; they changed nothing.
    not_fresh,
    /// Retransmissions because a packet sent later is known to have arrived.
    retransmitted_lost,
    /// Retransmissions after a retransmission timeout without progress.
    retransmitted_timeout,
    /// Retransmissions after the persist time without any packet.
    retransmitted_persist,
    /// Retransmissions not made: the packet is too far behind in the replay window.
    too_old,
    /// Retransmissions not made: the packet has used up its attempts.
    given_up,
    /// Acknowledgements suppressed and never sent.
    suppressed,
    /// Acknowledgements held that were superseded or sent later.
    held,
    /// Duplicate acknowledgements forwarded: the sender has to repair the loss.
    duplicates_forwarded,
    /// Acknowledgements of data that did not pass through this node; they changed nothing.
    ack_beyond_data,
    /// Connections evicted to make room for others.
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
