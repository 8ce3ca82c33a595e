//! The end of a series of changes.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Time without a change after which a series is complete, in nanoseconds. Editors write, rename
/// and remove files within a few milliseconds.
const QUIET_NANOS: u64 = 50_000_000;
/// Time after which a series is complete even if it continues, in nanoseconds.
const LONGEST_NANOS: u64 = 500_000_000;

/// Collects the changes of a series: one save of an editor is several events.
#[derive(Clone, Debug, Default)]
pub struct Debounce {
    changed: BTreeSet<PathBuf>,
    /// Instants of the first and the last change, in nanoseconds.
    series: Option<(u64, u64)>,
}

impl Debounce {
    /// Adds a change at `now`.
    pub fn add(&mut self, path: PathBuf, now: u64) {
        self.changed.insert(path);
        let first = self.series.map_or(now, |(first, _)| first);
        self.series = Some((first, now));
    }

    /// Returns the time until the series is complete, in nanoseconds; none without a change.
    pub fn remaining(&self, now: u64) -> Option<u64> {
        let (first, last) = self.series?;
        let end = last
            .saturating_add(QUIET_NANOS)
            .min(first.saturating_add(LONGEST_NANOS));
        Some(end.saturating_sub(now))
    }

    /// Returns the changed files if the series is complete at `now`; the next change begins another
    /// one.
    pub fn take(&mut self, now: u64) -> Option<BTreeSet<PathBuf>> {
        if self.remaining(now)? > 0 {
            return None;
        }
        self.series = None;
        Some(std::mem::take(&mut self.changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_the_events_of_a_save() {
        let mut debounce = Debounce::default();
        assert_eq!(debounce.remaining(0), None);
        assert_eq!(debounce.take(0), None);
        debounce.add("a".into(), 10);
        debounce.add("b".into(), QUIET_NANOS);
        assert_eq!(debounce.take(QUIET_NANOS + 10), None);
        assert_eq!(debounce.remaining(QUIET_NANOS + 10), Some(QUIET_NANOS - 10));
        let changed = debounce.take(2 * QUIET_NANOS);
        assert_eq!(changed, Some(["a".into(), "b".into()].into()));
        assert_eq!(debounce.take(u64::MAX), None);
    }

    proptest::proptest! {
        #[test]
        fn a_series_ends_even_if_changes_continue(
            steps in proptest::collection::vec(0..QUIET_NANOS, 1..200),
        ) {
            let mut debounce = Debounce::default();
            let (mut now, mut added, mut taken) = (0, 0, 0);
            let mut first = None;
            for (index, step) in steps.into_iter().enumerate() {
                now += step;
                if let Some(changed) = debounce.take(now) {
                    taken += changed.len();
                    first = None;
                }
                let first = *first.get_or_insert(now);
                debounce.add(index.to_string().into(), now);
                added += 1;
                proptest::prop_assert!(now - first <= LONGEST_NANOS);
            }
            taken += debounce.take(now + QUIET_NANOS).map_or(0, |changed| changed.len());
            proptest::prop_assert_eq!(added, taken);
        }
    }
}
