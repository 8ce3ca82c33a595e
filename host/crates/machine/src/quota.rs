//! Cores that this process may use: its affinity, and the time quota of its control group.

use crate::cgroup::folders;
use crate::finding::{ExpectedLoad, MachineFinding, State};
use crate::tree::{Tree, field, numbers};

/// Requests per second beyond which a single core is not enough: the dispatcher and a client then
/// compete for it.
const BUSY_REQUESTS: f64 = 200.0;

/// A quota of processor time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quota {
    /// Processor time in units of cores.
    pub(crate) cores: f64,
    /// Accounting period, in microseconds.
    pub(crate) period_micros: u64,
}

/// Throttling by the kernel to enforce a quota, since the group was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Throttled {
    /// Number of periods in which the group was throttled.
    pub(crate) times: u64,
    /// Total throttled time, in nanoseconds.
    pub(crate) nanos: u64,
}

/// Returns the smallest quota of this process's groups.
pub(crate) fn quota(tree: &Tree) -> Option<Quota> {
    folders(tree, "cpu")
        .iter()
        .filter_map(|folder| quota_of(tree, folder))
        .min_by(|a, b| a.cores.total_cmp(&b.cores))
}

fn quota_of(tree: &Tree, folder: &str) -> Option<Quota> {
    let (quota, period): (i64, u64) = match tree.text(&format!("{folder}/cpu.max")) {
        Some(text) => {
            let mut words = text.split_whitespace();
            // `max` is not a number and means that there is no quota.
            (words.next()?.parse().ok()?, words.next()?.parse().ok()?)
        }
        None => (
            tree.number(&format!("{folder}/cpu.cfs_quota_us"))?,
            tree.number(&format!("{folder}/cpu.cfs_period_us"))?,
        ),
    };
    (quota > 0 && period > 0).then(|| Quota {
        cores: quota as f64 / period as f64,
        period_micros: period,
    })
}

/// Returns the throttling of this process's group, or of the nearest ancestor that counts it.
pub(crate) fn throttled(tree: &Tree) -> Option<Throttled> {
    folders(tree, "cpu").iter().find_map(|folder| {
        let text = tree.text(&format!("{folder}/cpu.stat"))?;
        let times = field(&text, "nr_throttled")?.parse().ok()?;
        let nanos = match field(&text, "throttled_usec") {
            Some(micros) => micros.parse::<u64>().ok()?.saturating_mul(1_000),
            None => field(&text, "throttled_time")?.parse().ok()?,
        };
        Some(Throttled { times, nanos })
    })
}

/// Returns the cores that this process's affinity allows, as listed in `/proc/self/status`.
pub(crate) fn allowed(tree: &Tree) -> Vec<usize> {
    tree.field("/proc/self/status", "Cpus_allowed_list")
        .map(|list| numbers(&list, 8_192))
        .unwrap_or_default()
}

/// Returns the finding. `while_measuring` is the throttling of the group during the measurement of
/// the wake-ups.
pub(crate) fn finding(
    tree: &Tree,
    load: &ExpectedLoad,
    while_measuring: Throttled,
) -> Option<MachineFinding> {
    let allowed = allowed(tree);
    if allowed.is_empty() {
        return None;
    }
    let quota = quota(tree);
    let throttled = throttled(tree).unwrap_or_default();
    let cores = quota.as_ref().map_or(allowed.len() as f64, |quota| {
        quota.cores.min(allowed.len() as f64)
    });
    let few = cores < 2.0 && load.requests_per_second > BUSY_REQUESTS;
    let state = if while_measuring.times > 0 || cores < 1.0 {
        State::Bad
    } else if few || quota.is_some() {
        State::Advice
    } else {
        State::Good
    };
    let mut found = format!(
        "{} usable",
        if allowed.len() == 1 {
            "1 core".to_owned()
        } else {
            format!("{} cores", allowed.len())
        }
    );
    if let Some(quota) = &quota {
        found.push_str(&format!(
            ", with a quota of {:.2} cores in each {:.0} ms; stopped {} times, {:.1} s in all, {} times just now",
            quota.cores,
            quota.period_micros as f64 / 1e3,
            throttled.times,
            throttled.nanos as f64 / 1e9,
            while_measuring.times
        ));
    }
    let remedy = if quota.is_some() && state != State::Good {
        Some("run without a quota of time and give whole cores instead (`docker run --cpuset-cpus=0-3` without `--cpus`; in Kubernetes the static CPU manager policy)".to_owned())
    } else if few {
        Some("give this process at least two cores (`taskset`, `--cpuset-cpus`)".to_owned())
    } else {
        None
    };
    Some(MachineFinding {
        name: "cores",
        state,
        found,
        why: "a process that has used up its quota is stopped for the rest of the period, and everything it measures then is late; dispatching and receiving want a core each"
            .to_owned(),
        remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    const STATUS: (&str, &str) = (
        "/proc/self/status",
        "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n",
    );

    fn load(requests_per_second: f64) -> ExpectedLoad {
        ExpectedLoad {
            streams: 1,
            requests_per_second,
        }
    }

    #[test]
    fn no_quota_is_good() {
        let (_folder, tree) = tree(&[
            STATUS,
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/cpu.max", "max 100000\n"),
        ]);
        let finding = finding(&tree, &load(1000.0), Throttled::default()).unwrap();
        assert_eq!(
            (finding.state, finding.found.as_str()),
            (State::Good, "4 cores usable")
        );
    }

    #[test]
    fn the_smallest_quota_of_the_ancestors_holds_in_version_2() {
        let (_folder, tree) = tree(&[
            STATUS,
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"),
            (
                "/sys/fs/cgroup/a/b/cpu.stat",
                "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 2500000\n",
            ),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ]);
        assert_eq!(quota(&tree).unwrap().cores, 1.5);
        assert_eq!(
            throttled(&tree),
            Some(Throttled {
                times: 4,
                nanos: 2_500_000_000
            })
        );
        let found = finding(&tree, &load(10.0), Throttled::default()).unwrap();
        assert_eq!(found.state, State::Advice);
        assert!(
            found
                .found
                .contains("a quota of 1.50 cores in each 100 ms; stopped 4 times, 2.5 s in all")
        );
        let stopped = Throttled { times: 1, nanos: 1 };
        assert_eq!(finding(&tree, &load(10.0), stopped).unwrap().state, State::Bad);
    }

    #[test]
    fn version_1_uses_nanoseconds_and_minus_one_for_no_quota() {
        let files = |quota| {
            [
                STATUS,
                ("/proc/self/cgroup", "3:cpu,cpuacct:/docker/1\n"),
                ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota),
                ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n"),
                (
                    "/sys/fs/cgroup/cpu/cpu.stat",
                    "nr_periods 3\nnr_throttled 2\nthrottled_time 7000\n",
                ),
            ]
        };
        let (_folder, none) = tree(&files("-1\n"));
        assert_eq!(quota(&none), None);
        let (_folder, half) = tree(&files("25000\n"));
        assert_eq!(quota(&half).unwrap().cores, 0.5);
        assert_eq!(
            throttled(&half),
            Some(Throttled {
                times: 2,
                nanos: 7_000
            })
        );
        assert_eq!(
            finding(&half, &load(1.0), Throttled::default()).unwrap().state,
            State::Bad
        );
    }

    #[test]
    fn one_core_is_few_for_a_high_rate_only() {
        let (_folder, tree) = tree(&[("/proc/self/status", "Cpus_allowed_list:\t5\n")]);
        assert_eq!(
            finding(&tree, &load(10.0), Throttled::default()).unwrap().state,
            State::Good
        );
        assert_eq!(
            finding(&tree, &load(1000.0), Throttled::default()).unwrap().state,
            State::Advice
        );
    }
}
