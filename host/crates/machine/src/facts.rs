//! A description of this machine as plain data, for the files of a run and for the headings of
//! benchmark tables.

use serde::Serialize;

use crate::memory::memory;
use crate::tree::{Tree, field};
use crate::{clock_source, environment, load, open_files, ports, power, quota};

/// A description of this machine. A field that cannot be read is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// Name of the processor.
    pub processor: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Number of cores that this process may use.
    pub cores: usize,
    /// Quota of processor time, in cores.
    pub quota_cores: Option<f64>,
    /// Memory of the machine, in bytes.
    pub memory: Option<u64>,
    /// Memory that can still be allocated, in bytes, including the limits of a container.
    pub memory_available: Option<u64>,
    /// The hypervisor, if there is one.
    pub hypervisor: Option<String>,
    /// The container, if the process runs in one.
    pub container: Option<&'static str>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Frequency governors of the usable cores. Empty if none is visible.
    pub governors: Vec<String>,
    /// Soft limit of open files.
    pub open_files: Option<u64>,
    /// Hard limit of open files.
    pub open_files_most: Option<u64>,
    /// Number of local ports for outgoing connections to one address.
    pub local_ports: Option<u32>,
    /// Number of runnable threads, averaged over the last minute.
    pub load: Option<f64>,
}

impl Facts {
    pub(crate) fn of(tree: &Tree) -> Self {
        let cores = quota::allowed(tree);
        let memory = memory(tree);
        let open_files = open_files::limits(tree);
        let cpu = tree.text("/proc/cpuinfo").unwrap_or_default();
        Facts {
            processor: field(&cpu, "model name").map(str::to_owned),
            kernel: tree.word("/proc/sys/kernel/osrelease"),
            quota_cores: quota::quota(tree).map(|quota| quota.cores),
            memory: memory.map(|memory| memory.total),
            memory_available: memory.map(|memory| memory.available),
            hypervisor: environment::hypervisor(tree),
            container: environment::container(tree),
            clock_source: clock_source::current(tree),
            governors: power::governors(tree, &cores).into_keys().collect(),
            open_files: open_files.map(|limits| limits.soft),
            open_files_most: open_files.map(|limits| limits.hard),
            local_ports: ports::range(tree).map(|(_, _, free)| free),
            load: load::load(tree).map(|load| load.minute),
            cores: cores.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    #[test]
    fn facts_of_a_made_up_machine() {
        let (_folder, tree) = tree(&[
            (
                "/proc/cpuinfo",
                "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t: hypervisor\n",
            ),
            ("/proc/sys/kernel/osrelease", "6.18.44\n"),
            ("/proc/self/status", "Cpus_allowed_list:\t0-1,4\n"),
            ("/proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n"),
            ("/proc/loadavg", "0.50 0.30 0.90 1/84 22868\n"),
        ]);
        let facts = Facts::of(&tree);
        assert_eq!(facts.processor.as_deref(), Some("AMD EPYC"));
        assert_eq!(facts.kernel.as_deref(), Some("6.18.44"));
        assert_eq!((facts.cores, facts.quota_cores), (3, None));
        assert_eq!(
            (facts.memory, facts.memory_available),
            (Some(2 << 20), Some(1 << 20))
        );
        assert_eq!(facts.hypervisor.as_deref(), Some("a hypervisor"));
        assert_eq!((facts.container, facts.load), (None, Some(0.5)));
        assert_eq!((facts.open_files, facts.local_ports), (None, None));
    }

    #[test]
    fn of_an_empty_tree_nothing_is_known() {
        let (_folder, tree) = tree(&[]);
        assert_eq!(Facts::of(&tree), Facts::default());
    }
}
