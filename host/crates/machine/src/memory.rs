//! Memory that a run may use.

use crate::cgroup::folders;
use crate::finding::{ExpectedLoad, MachineFinding, State};
use crate::tree::Tree;

/// Bytes that the program needs before the first stream: its code, the plugin engine, a tokenizer,
/// and prompts generated ahead of time.
const BASE: u64 = 256 << 20;

/// A generous upper bound on the bytes of one stream, here and in the kernel.
const PER_STREAM: u64 = 32 << 10;

/// Memory in bytes: the total of the machine, and the part that a process can still allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) total: u64,
    pub(crate) available: u64,
}

pub(crate) fn memory(tree: &Tree) -> Option<Memory> {
    let text = tree.text("/proc/meminfo")?;
    let kib = |key| {
        let value = crate::tree::field(&text, key)?;
        value
            .split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()?
            .checked_mul(1024)
    };
    let memory = Memory {
        total: kib("MemTotal")?,
        available: kib("MemAvailable")?,
    };
    let left = folders(tree, "memory")
        .iter()
        .filter_map(|folder| left_in(tree, folder))
        .min();
    Some(Memory {
        available: left.map_or(memory.available, |left| left.min(memory.available)),
        ..memory
    })
}

/// Returns the bytes that remain below the limit of a control group.
fn left_in(tree: &Tree, folder: &str) -> Option<u64> {
    let number = |file: &str| tree.number::<u64>(&format!("{folder}/{file}"));
    let (limit, used) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?),
        None => (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")?),
    };
    Some(limit.saturating_sub(used))
}

pub(crate) fn finding(tree: &Tree, load: &ExpectedLoad) -> Option<MachineFinding> {
    let memory = memory(tree)?;
    let needed = BASE + u64::from(load.streams) * PER_STREAM;
    let state = if memory.available < needed {
        State::Bad
    } else if memory.available < 2 * needed {
        State::Advice
    } else {
        State::Good
    };
    Some(MachineFinding {
        name: "memory",
        state,
        found: format!("{} MiB available", memory.available >> 20),
        why: format!(
            "{} streams need at most about {} MiB; a machine that swaps is late by milliseconds",
            load.streams,
            needed >> 20
        ),
        remedy: (state != State::Good)
            .then(|| "free memory, or raise the limit of this container".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    const MEMINFO: &str = "MemTotal:       8388608 kB\nMemFree:        100 kB\nMemAvailable:   4194304 kB\n";

    fn load(streams: u32) -> ExpectedLoad {
        ExpectedLoad {
            streams,
            requests_per_second: 1.0,
        }
    }

    #[test]
    fn available_memory_is_judged_by_the_streams() {
        let (_folder, tree) = tree(&[("/proc/meminfo", MEMINFO)]);
        assert_eq!(
            memory(&tree),
            Some(Memory {
                total: 8 << 30,
                available: 4 << 30
            })
        );
        // 256 MiB + n × 32 KiB: 100 streams need 259 MiB, 100,000 need 3,381 MiB, 200,000 need
        // 6,506 MiB.
        assert_eq!(finding(&tree, &load(100)).unwrap().state, State::Good);
        assert_eq!(finding(&tree, &load(100_000)).unwrap().state, State::Advice);
        assert_eq!(finding(&tree, &load(200_000)).unwrap().state, State::Bad);
    }

    #[test]
    fn a_container_s_limit_holds() {
        let (_folder, tree) = tree(&[
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/memory.max", "536870912\n"),
            ("/sys/fs/cgroup/memory.current", "436207616\n"),
        ]);
        assert_eq!(memory(&tree).unwrap().available, 96 << 20);
        assert_eq!(finding(&tree, &load(1)).unwrap().state, State::Bad);
    }

    #[test]
    fn no_limit_is_written_as_max_or_as_a_huge_number() {
        let (_folder, new) = tree(&[
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/memory.max", "max\n"),
            ("/sys/fs/cgroup/memory.current", "1\n"),
        ]);
        assert_eq!(memory(&new).unwrap().available, 4 << 30);
        let (_folder, old) = tree(&[
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "4:memory:/x\n"),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n"),
        ]);
        assert_eq!(memory(&old).unwrap().available, 4 << 30);
    }
}
