//! All findings about this machine, in one list.

use std::path::Path;

use crate::error::MachineError;
use crate::facts::Facts;
use crate::finding::{ExpectedLoad, MachineFinding};
use crate::quota::Throttled;
use crate::steal::Ticks;
use crate::tree::Tree;
use crate::wake::WakeUps;
use crate::{
    clock_source, environment, idle, load, memory, open_files, ports, power, priority, quota, steal, wake,
};

/// This machine, as `/proc` and `/sys` show it.
#[derive(Clone, Debug)]
pub struct Machine {
    tree: Tree,
}

/// Results of experiments, for properties that no file contains.
#[derive(Clone, Debug)]
struct Experiments {
    wake_ups: Option<WakeUps>,
    realtime: Result<(), MachineError>,
    ticks: [Option<Ticks>; 2],
    throttled: Throttled,
}

impl Machine {
    /// Returns the machine that this process runs on.
    pub fn here() -> Self {
        Machine::under(Path::new("/"))
    }

    /// Returns a machine whose `/proc` and `/sys` are below `root`. Experiments (wake-ups,
    /// priorities) still run on the actual machine.
    pub fn under(root: &Path) -> Self {
        Machine {
            tree: Tree::under(root),
        }
    }

    /// Returns the findings for generating `load` from this machine. Takes about a quarter of a
    /// second, because wake-ups are measured. Properties that this machine does not expose (no such
    /// file) have no finding.
    pub fn findings(&self, load: &ExpectedLoad) -> Vec<MachineFinding> {
        self.judge(load, &self.try_out())
    }

    /// Returns the description of this machine.
    pub fn facts(&self) -> Facts {
        Facts::of(&self.tree)
    }

    fn try_out(&self) -> Experiments {
        let ticks = steal::ticks(&self.tree);
        let stopped = quota::throttled(&self.tree).unwrap_or_default();
        let wake_ups = WakeUps::measure();
        let stopped_now = quota::throttled(&self.tree).unwrap_or_default();
        Experiments {
            wake_ups,
            realtime: priority::allowed(),
            ticks: [ticks, steal::ticks(&self.tree)],
            throttled: Throttled {
                times: stopped_now.times.saturating_sub(stopped.times),
                nanos: stopped_now.nanos.saturating_sub(stopped.nanos),
            },
        }
    }

    fn judge(&self, load: &ExpectedLoad, tried: &Experiments) -> Vec<MachineFinding> {
        let tree = &self.tree;
        let cores = quota::allowed(tree);
        let [before, after] = tried.ticks;
        let findings = [
            open_files::finding(tree, load),
            ports::finding(tree, load),
            quota::finding(tree, load, tried.throttled),
            tried.wake_ups.as_ref().map(wake::finding),
            Some(priority::finding(&tried.realtime)),
            Some(power::finding(tree, &cores)),
            idle::finding(tree, &cores),
            clock_source::finding(tree),
            load::finding(tree, cores.len()),
            steal::finding(before, after),
            memory::finding(tree, load),
            Some(environment::finding(tree)),
        ];
        findings.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::State;
    use crate::tree::tests::tree;

    const LOAD: ExpectedLoad = ExpectedLoad {
        streams: 64,
        requests_per_second: 100.0,
    };

    fn tried() -> Experiments {
        Experiments {
            wake_ups: Some(WakeUps {
                count: 200,
                minimal_slack: true,
                p50: 5_000,
                p99: 20_000,
                max: 30_000,
            }),
            realtime: Ok(()),
            ticks: [
                Some(Ticks { all: 100, stolen: 0 }),
                Some(Ticks { all: 200, stolen: 0 }),
            ],
            throttled: Throttled::default(),
        }
    }

    #[test]
    fn here_every_finding_has_words_and_every_defect_a_remedy() {
        let findings = Machine::here().findings(&LOAD);
        let names: Vec<&str> = findings.iter().map(|finding| finding.name).collect();
        for name in ["open files", "cores", "wake-ups", "memory", "environment"] {
            assert!(names.contains(&name), "{name} is missing from {names:?}");
        }
        for finding in &findings {
            assert!(
                !finding.found.is_empty() && !finding.why.is_empty(),
                "{finding:?}"
            );
            assert!(
                finding.state != State::Bad || finding.remedy.is_some(),
                "{finding:?}"
            );
        }
    }

    #[test]
    fn facts_of_this_machine_agree_with_the_kernel_s_own_answers() {
        let facts = Machine::here().facts();
        assert_eq!(facts.cores, crate::usable_cores().len());
        assert_eq!(
            facts.kernel.as_deref(),
            rustix::system::uname().release().to_str().ok()
        );
        assert!(facts.memory >= facts.memory_available);
    }

    #[test]
    fn a_good_machine_has_only_good_findings() {
        let (folder, _tree) = tree(&[
            ("/proc/self/limits", "Max open files  65536  65536  files\n"),
            ("/proc/sys/net/ipv4/ip_local_port_range", "1024 65535\n"),
            ("/proc/self/status", "Cpus_allowed_list:\t0-1\n"),
            ("/proc/self/cgroup", "0::/user.slice\n"),
            ("/proc/loadavg", "0.00 0.00 0.00 1/84 22868\n"),
            (
                "/proc/meminfo",
                "MemTotal: 16777216 kB\nMemAvailable: 16000000 kB\n",
            ),
            ("/proc/cpuinfo", "flags : sse\n"),
            (
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc\n",
            ),
            (
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "performance\n",
            ),
            (
                "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
                "performance\n",
            ),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n"),
        ]);
        let findings = Machine::under(folder.path()).judge(&LOAD, &tried());
        assert_eq!(findings.len(), 12);
        for finding in findings {
            assert_eq!(
                (finding.state, &finding.remedy),
                (State::Good, &None),
                "{finding:?}"
            );
        }
    }

    #[test]
    fn a_machine_that_shows_nothing_is_not_judged_by_what_it_does_not_show() {
        let (folder, _tree) = tree(&[]);
        let findings = Machine::under(folder.path()).judge(&LOAD, &tried());
        let names: Vec<&str> = findings.iter().map(|finding| finding.name).collect();
        assert_eq!(
            names,
            [
                "wake-ups",
                "real-time priority",
                "frequency",
                "stolen time",
                "environment"
            ]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// For any file contents, the evaluation terminates and returns valid text.
        #[test]
        fn garbage_is_survived(texts in proptest::collection::vec(".{0,60}|[0-9 \\-:,/\n\t]{0,60}|(cpu|Max open files|TCP:|0::/|cpu.max) [0-9]{0,25} [0-9]{0,25} [0-9 ]{0,60}", 16)) {
            let paths = [
                "/proc/self/limits", "/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/net/ipv4/ip_local_reserved_ports",
                "/proc/sys/net/ipv4/tcp_tw_reuse", "/proc/net/sockstat", "/proc/self/status", "/proc/self/cgroup", "/proc/loadavg",
                "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu.stat",
                "/sys/fs/cgroup/memory.max", "/sys/devices/system/cpu/cpu0/cpuidle/state0/latency",
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ];
            let files: Vec<(&str, &str)> = paths.into_iter().zip(texts.iter().map(String::as_str)).collect();
            let (folder, made) = tree(&files);
            let mut tried = tried();
            tried.ticks = [steal::ticks(&made), steal::ticks(&made)];
            let machine = Machine::under(folder.path());
            for finding in machine.judge(&LOAD, &tried) {
                prop_assert!(!finding.found.is_empty());
            }
            let _ = machine.facts();
        }
    }
}
