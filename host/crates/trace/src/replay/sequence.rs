//! Order of the groups, and their mapping to sessions and epochs.

use veeksha_model::Nanos;

use crate::error::{RowPosition, TraceError};
use crate::index::{Groups, NO_ARRIVAL, RowIndex, TIME_END};
use crate::options::Order;
use crate::replay::permutation::Permutation;

const SECOND: Nanos = 1_000_000_000;
const DAY: Nanos = 86_400 * SECOND;

/// The order of the groups.
#[derive(Clone, Debug)]
pub(crate) enum GroupSequence {
    /// As in the file.
    File { groups: u64 },
    /// Shuffled differently in each epoch.
    Shuffled {
        groups: u64,
        seed: u64,
        first_as_in_file: bool,
    },
    /// By arrival.
    Arrivals {
        /// Groups of the window, the earliest first.
        groups: Vec<u32>,
        /// First arrival.
        first: Nanos,
        /// Last arrival.
        last: Nanos,
        /// Time from the first arrival of an epoch to that of the next.
        period: Nanos,
    },
}

impl GroupSequence {
    /// Returns the number of sessions per epoch.
    pub(crate) fn len(&self) -> u64 {
        match self {
            GroupSequence::File { groups } | GroupSequence::Shuffled { groups, .. } => *groups,
            GroupSequence::Arrivals { groups, .. } => groups.len() as u64,
        }
    }

    /// Returns the order of an epoch.
    pub(crate) fn epoch(&self, epoch: u64) -> Epoch<'_> {
        match self {
            GroupSequence::Shuffled {
                groups,
                seed,
                first_as_in_file,
            } if epoch > 0 || !first_as_in_file => Epoch::Shuffled(Permutation::new(*groups, *seed, epoch)),
            GroupSequence::File { .. } | GroupSequence::Shuffled { .. } => Epoch::File,
            GroupSequence::Arrivals { groups, .. } => Epoch::Listed(groups),
        }
    }
}

/// The order of one epoch.
pub(crate) enum Epoch<'a> {
    File,
    Shuffled(Permutation),
    Listed(&'a [u32]),
}

impl Epoch<'_> {
    /// Returns the group at a place.
    pub(crate) fn group(&self, place: u64) -> u32 {
        match self {
            // Groups are counted with 32 bits.
            Epoch::File => place as u32,
            Epoch::Shuffled(permutation) => permutation.at(place) as u32,
            Epoch::Listed(groups) => groups[place as usize],
        }
    }
}

/// Returns the earliest arrival of a group's rows.
pub(crate) fn arrival_of(rows: &RowIndex, groups: &Groups, group: u32) -> Option<Nanos> {
    groups.rows(group).filter_map(|row| rows.arrival(row)).min()
}

/// Returns the groups without any arrival.
pub(crate) fn without_arrival(rows: &RowIndex, groups: &Groups) -> Vec<u32> {
    let absent = |row: u32| rows.arrivals.get(row as usize).is_none_or(|at| *at == NO_ARRIVAL);
    (0..groups.len())
        .filter(|group| groups.rows(*group).all(absent))
        .collect()
}

/// Builds the order that the user selected.
pub(crate) fn sequence(
    order: Order,
    seed: u64,
    rows: &RowIndex,
    groups: &Groups,
    place: &dyn Fn(u32) -> RowPosition,
) -> Result<GroupSequence, TraceError> {
    let count = u64::from(groups.len());
    let shuffled = |first_as_in_file| GroupSequence::Shuffled {
        groups: count,
        seed,
        first_as_in_file,
    };
    match order {
        Order::File => Ok(GroupSequence::File { groups: count }),
        Order::Shuffled => Ok(shuffled(false)),
        Order::ShuffledAfterFirst => Ok(shuffled(true)),
        Order::ByArrival { start, end } => by_arrival(start, end, rows, groups, place),
    }
}

fn by_arrival(
    start: Option<Nanos>,
    end: Option<Nanos>,
    rows: &RowIndex,
    groups: &Groups,
    place: &dyn Fn(u32) -> RowPosition,
) -> Result<GroupSequence, TraceError> {
    // Raw arrivals, including those too late to be replayed: a window may exclude them.
    let raw = |row: u32| {
        let at = rows.arrivals.get(row as usize).filter(|at| **at != NO_ARRIVAL)?;
        u64::try_from(*at).ok()
    };
    let mut window = Vec::new();
    let mut latest = 0;
    for group in 0..groups.len() {
        let Some(at) = groups.rows(group).filter_map(raw).min() else {
            continue;
        };
        latest = latest.max(at);
        if start.is_none_or(|start| start <= at) && end.is_none_or(|end| at < end) {
            let late = groups
                .rows(group)
                .filter_map(|row| Some((row, raw(row)?)))
                .find(|(_, at)| *at >= TIME_END);
            if let Some((row, at)) = late {
                return Err(TraceError::SpanTooLong {
                    place: place(row),
                    days: at / DAY,
                });
            }
            window.push((at, group));
        }
    }
    // Groups with equal arrivals stay in the order of the file.
    window.sort_unstable();
    let (Some((first, _)), Some((last, _))) = (window.first().copied(), window.last().copied()) else {
        return Err(TraceError::EmptyWindow {
            window: described(start, end),
            last: seconds(latest),
        });
    };
    let span = last - first;
    let gaps = window.len() as u64 - 1;
    let period = match span {
        0 => SECOND,
        // The gap count is not 0, because two arrivals differ.
        span => span + span / gaps,
    };
    Ok(GroupSequence::Arrivals {
        groups: window.into_iter().map(|(_, group)| group).collect(),
        first,
        last,
        period,
    })
}

fn described(start: Option<Nanos>, end: Option<Nanos>) -> String {
    match (start, end) {
        (Some(start), Some(end)) => format!("from {} s to {} s", seconds(start), seconds(end)),
        (Some(start), None) => format!("from {} s on", seconds(start)),
        (None, Some(end)) => format!("before {} s", seconds(end)),
        (None, None) => "at all".to_owned(),
    }
}

fn seconds(nanos: Nanos) -> String {
    let text = format!("{}.{:09}", nanos / SECOND, nanos % SECOND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
