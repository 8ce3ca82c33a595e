//! Time that a hypervisor took from this machine's cores.

use crate::finding::{MachineFinding, State};
use crate::tree::Tree;

/// Clock ticks since boot, over all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// In any state.
    pub(crate) all: u64,
    /// Runnable here, while the hypervisor ran something else.
    pub(crate) stolen: u64,
}

/// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal (the
/// remaining columns are part of user and nice).
pub(crate) fn ticks(tree: &Tree) -> Option<Ticks> {
    let text = tree.text("/proc/stat")?;
    let values: Vec<u64> = text
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))?
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .take(8)
        .collect();
    Some(Ticks {
        all: values.iter().fold(0, |sum, value| sum.saturating_add(*value)),
        stolen: *values.get(7)?,
    })
}

/// Returns the finding. `before` and `after` enclose the measurement of the wake-ups.
pub(crate) fn finding(before: Option<Ticks>, after: Option<Ticks>) -> Option<MachineFinding> {
    let (before, after) = (before?, after?);
    let stolen = after.stolen.saturating_sub(before.stolen);
    let share = ratio(stolen, after.all.saturating_sub(before.all));
    let since_boot = ratio(after.stolen, after.all);
    // A tick is usually 10 ms, so a single tick is not significant.
    let state = if stolen >= 2 && share >= 0.05 {
        State::Bad
    } else if stolen >= 2 || since_boot >= 0.005 {
        State::Advice
    } else {
        State::Good
    };
    Some(MachineFinding {
        name: "stolen time",
        state,
        found: format!(
            "{:.1} % just now, {:.2} % since boot",
            share * 100.0,
            since_boot * 100.0
        ),
        why: "while the hypervisor runs another guest, this machine is suspended but its clock is not, and everything is late".to_owned(),
        remedy: (state != State::Good)
            .then(|| "use a machine with dedicated cores, or one whose host is less loaded".to_owned()),
    })
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    #[test]
    fn guest_time_is_not_counted_twice() {
        let (_folder, tree) = tree(&[(
            "/proc/stat",
            "cpu  100 10 20 800 5 0 5 60 7 8\ncpu0 1 1 1 1 1 1 1 1\n",
        )]);
        assert_eq!(
            ticks(&tree),
            Some(Ticks {
                all: 1000,
                stolen: 60
            })
        );
    }

    #[test]
    fn old_kernels_count_no_steal() {
        let (_folder, tree) = tree(&[("/proc/stat", "cpu  100 10 20 800 5 0 5\n")]);
        assert_eq!(ticks(&tree), None);
    }

    #[test]
    fn the_interval_decides_over_the_past() {
        let at = |all, stolen| Some(Ticks { all, stolen });
        let of = |before, after| finding(before, after).unwrap();
        assert_eq!(of(at(100_000, 0), at(100_100, 0)).state, State::Good);
        // One tick of a hundred is chance; five of a hundred are five per cent.
        assert_eq!(of(at(100_000, 0), at(100_100, 1)).state, State::Good);
        assert_eq!(of(at(100_000, 0), at(100_100, 5)).state, State::Bad);
        let past = of(at(100_000, 1_000), at(100_100, 1_000));
        assert_eq!(past.state, State::Advice);
        assert_eq!(past.found, "0.0 % just now, 1.00 % since boot");
    }
}
