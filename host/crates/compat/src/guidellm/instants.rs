//! Instants that GuideLLM assigns to the tokens of a request: evenly spread over its events.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// `num` instants from `first` to `last`, evenly spaced (`np.linspace`), with `weight` each, except
/// for the first one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TokenInstants {
    pub(crate) first: f64,
    pub(crate) last: f64,
    pub(crate) num: u64,
    pub(crate) weight: f64,
    /// Weight of the first instant; 0 leaves it out.
    pub(crate) head: f64,
}

impl TokenInstants {
    /// Creates a single instant.
    pub(crate) fn once(at: f64, weight: f64) -> Self {
        TokenInstants {
            first: at,
            last: at,
            num: 1,
            weight,
            head: weight,
        }
    }

    fn at(&self, index: u64) -> f64 {
        if index + 1 >= self.num {
            return self.last;
        }
        self.first + index as f64 * ((self.last - self.first) / (self.num - 1) as f64)
    }
}

/// Merges the instants of many spreads in ascending order; memory is proportional to the number of
/// spreads.
pub(crate) fn merged(spreads: &[TokenInstants]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let nonempty = spreads.iter().enumerate().filter(|(_, spread)| spread.num > 0);
    let mut heap: BinaryHeap<Reverse<Next>> = nonempty
        .map(|(of, spread)| {
            Reverse(Next {
                at: spread.at(0),
                of,
                index: 0,
            })
        })
        .collect();
    std::iter::from_fn(move || {
        let Reverse(next) = heap.pop()?;
        let spread = spreads.get(next.of)?;
        let index = next.index + 1;
        if index < spread.num {
            heap.push(Reverse(Next {
                at: spread.at(index),
                of: next.of,
                index,
            }));
        }
        Some((
            next.at,
            if next.index == 0 {
                spread.head
            } else {
                spread.weight
            },
        ))
    })
}

#[derive(Clone, Copy, Debug)]
struct Next {
    at: f64,
    of: usize,
    index: u64,
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.of.cmp(&other.of))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Next {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_spreads_in_time_order() {
        let spreads = [
            TokenInstants {
                first: 0.0,
                last: 4.0,
                num: 3,
                weight: 2.0,
                head: 1.0,
            },
            TokenInstants::once(1.0, 5.0),
        ];
        let all: Vec<_> = merged(&spreads).collect();
        assert_eq!(all, [(0.0, 1.0), (1.0, 5.0), (2.0, 2.0), (4.0, 2.0)]);
    }
}
