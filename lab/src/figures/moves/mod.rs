//! Tunnels that move while traffic passes: the parts that the figures of moves share.

mod configuration;
mod contender;
mod daemons;
mod download;
mod flow;
mod kind;
mod place;
mod protection;
mod recorder;
mod stage;
mod talk;
mod terms;
mod trace;
mod watch;
mod way;

pub(super) use contender::Contender;
pub(super) use download::Curve;
pub(super) use flow::Flow;
#[cfg(test)]
pub(super) use flow::Message;
pub(super) use kind::Kind;
pub(super) use place::{FIRST, Place, RENUMBERED, SECOND};
pub(super) use protection::Protection;
pub(super) use stage::Stage;
pub(super) use terms::Terms;
pub(super) use trace::Passage;
pub(super) use way::Way;

/// Returns `one` and `other` for even numbers, and the reverse for odd ones.
pub(super) const fn in_turn(number: usize, one: Place, other: Place) -> (Place, Place) {
    match number % 2 {
        0 => (one, other),
        _ => (other, one),
    }
}

/// Returns the quartiles and the longest of some values.
pub(super) fn quartiles(mut values: Vec<f64>) -> [Option<f64>; 4] {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else {
        return [None; 4];
    };
    [0.25, 0.5, 0.75, 1.0].map(|share| {
        let place = share * last as f64;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        let part = place - place.floor();
        Some(values[below] + part * (values[above] - values[below]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_between_the_values() {
        let values = vec![40.0, 10.0, 20.0, 30.0];
        assert_eq!(quartiles(values), [17.5, 25.0, 32.5, 40.0].map(Some));
        assert_eq!(quartiles(vec![7.0]), [Some(7.0); 4]);
        assert_eq!(quartiles(Vec::new()), [None; 4]);
    }
}
