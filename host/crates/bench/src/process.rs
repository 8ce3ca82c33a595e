//! Resource usage of processes, from the kernel.

use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use veeksha_model::Nanos;

/// Processor time of this process, all threads, user and kernel.
pub(crate) fn process_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processor time of reaped children, in nanoseconds (the kernel's resolution is a microsecond).
pub(crate) fn children_cpu() -> Option<Nanos> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let nanos =
        |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * 1_000_000_000 + time.tv_usec() as u64 * 1_000;
    Some(nanos(usage.user_time()) + nanos(usage.system_time()))
}

/// Peak resident memory of this process so far, in bytes.
pub(crate) fn peak_resident() -> Option<u64> {
    peak_resident_of("self")
}

/// Peak resident memory of the process with this id; `None` once it has exited.
pub(crate) fn peak_resident_of(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(process).join("status")).ok()?;
    resident_in(&status)
}

/// Parses `VmHWM` from `/proc/PID/status`, in bytes.
fn resident_in(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let mut words = value.split_whitespace();
    let count: u64 = words.next()?.parse().ok()?;
    (words.next()? == "kB").then(|| count.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses_resident_memory_in_kibibytes() {
        assert_eq!(
            resident_in("Name:\tx\nVmHWM:\t    1536 kB\nVmRSS:\t 9 kB\n"),
            Some(1536 * 1024)
        );
        assert_eq!(resident_in("Name:\tx\n"), None);
        assert_eq!(resident_in("VmHWM:\t12 MB\n"), None);
        assert!(peak_resident().expect("this process has memory") > 1 << 20);
        assert_eq!(peak_resident_of("no such process"), None);
    }

    #[test]
    fn processor_time_grows_with_work() {
        let before = process_cpu();
        let mut sum = 0u64;
        for number in 0..2_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
        }
        assert!(process_cpu() > before);
    }

    #[test]
    fn counts_processor_time_of_reaped_children() {
        let before = children_cpu().expect("reported by the kernel");
        let child = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
            .status();
        assert!(child.expect("a shell").success());
        assert!(children_cpu().expect("reported by the kernel") > before);
    }

    proptest! {
        #[test]
        fn survives_arbitrary_input(text in ".{0,80}|VmHWM:[0-9 kB\t]{0,60}") {
            let _ = resident_in(&text);
        }
    }
}
