//! The cores that this process may use, and the affinity of its threads.

use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::MachineError;

/// Returns the cores that this process may use, in ascending order. Pinned threads (see [`pin_to`])
/// do not reduce the list.
pub fn usable_cores() -> Vec<usize> {
    // The affinity of the main thread is that of the process.
    let set = sched_getaffinity(Some(getpid())).or_else(|_| sched_getaffinity(None));
    match set {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect(),
        Err(_) => Vec::new(),
    }
}

/// Restricts the calling thread to the given cores.
///
/// # Errors
/// [`MachineError::NoCores`] for an empty list, [`MachineError::Cores`] for a core that this
/// process may not use (the message lists the permitted ones), [`MachineError::Pinning`] if the
/// kernel refuses.
pub fn pin_to(cores: &[usize]) -> Result<(), MachineError> {
    let usable = usable_cores();
    if cores.is_empty() {
        return Err(MachineError::NoCores { usable });
    }
    let refused: Vec<usize> = cores
        .iter()
        .copied()
        .filter(|core| !usable.contains(core))
        .collect();
    if !refused.is_empty() {
        return Err(MachineError::Cores { refused, usable });
    }
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core);
    }
    sched_setaffinity(None, &set).map_err(|error| MachineError::Pinning {
        cores: cores.to_vec(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_stays_there_and_the_process_does_not() {
        let usable = usable_cores();
        let last = *usable.last().expect("a core");
        std::thread::spawn(move || {
            pin_to(&[last]).expect("a usable core");
            let own = sched_getaffinity(None).expect("an affinity");
            assert_eq!((own.count(), own.is_set(last)), (1, true));
            assert_eq!(rustix::thread::sched_getcpu(), last);
        })
        .join()
        .expect("the thread");
        assert_eq!(usable_cores(), usable);
    }

    #[test]
    fn cores_that_may_not_be_used_are_refused_by_name() {
        let usable = usable_cores();
        assert_eq!(
            pin_to(&[]),
            Err(MachineError::NoCores {
                usable: usable.clone()
            })
        );
        // A number beyond the capacity of a set, where setting the bit would be out of bounds.
        let error = pin_to(&[usable[0], 1_000_000]).expect_err("no such core");
        assert_eq!(
            error,
            MachineError::Cores {
                refused: vec![1_000_000],
                usable
            }
        );
    }
}
