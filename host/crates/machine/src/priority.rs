//! Real-time priority: a thread with it runs as soon as it can, ahead of all ordinary threads.

use rustix::io::Errno;
use thread_priority::{
    Error, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use crate::error::MachineError;
use crate::finding::{MachineFinding, State};

/// Real-time priority of the measuring threads if the scenario does not choose one. Low, so that
/// the kernel's own real-time threads keep precedence.
pub const DEFAULT_REALTIME_PRIORITY: u8 = 10;

/// Niceness of threads that must not delay the measuring threads. Their share of a contended core
/// is about a third of a normal thread's, so they still make progress.
const BACKGROUND_NICENESS: i32 = 5;

/// Sets the policy `SCHED_FIFO` with the given priority, 1 to 99, for the calling thread.
///
/// # Errors
/// [`MachineError::NoSuchPriority`], or [`MachineError::Priority`] if the kernel refuses; its
/// message names the remedy.
pub fn set_realtime(priority: u8) -> Result<(), MachineError> {
    let value = match ThreadPriorityValue::try_from(priority) {
        Ok(value) if priority > 0 => value,
        _ => return Err(MachineError::NoSuchPriority { priority }),
    };
    set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(value),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .map_err(|error| MachineError::Priority {
        priority,
        reason: match error {
            Error::OS(code) => Errno::from_raw_os_error(code).to_string(),
            other => other.to_string(),
        },
    })
}

/// Returns true if this process is permitted to use [`DEFAULT_REALTIME_PRIORITY`].
pub fn realtime_is_permitted() -> bool {
    allowed().is_ok()
}

/// Lowers the priority of the calling thread below that of the measuring threads, which then
/// preempt it when they wake up. A refusal is ignored: the thread then
/// competes with the measuring threads.
pub fn lower_priority() {
    let _ = rustix::process::nice(BACKGROUND_NICENESS);
}

/// Tries the default real-time priority on a thread that ends at once.
pub(crate) fn allowed() -> Result<(), MachineError> {
    let refused = |reason: &str| MachineError::Priority {
        priority: DEFAULT_REALTIME_PRIORITY,
        reason: reason.to_owned(),
    };
    match std::thread::Builder::new().spawn(|| set_realtime(DEFAULT_REALTIME_PRIORITY)) {
        Ok(thread) => thread.join().unwrap_or_else(|_| Err(refused("the trial failed"))),
        Err(error) => Err(refused(&error.to_string())),
    }
}

pub(crate) fn finding(allowed: &Result<(), MachineError>) -> MachineFinding {
    let why =
        "with it the dispatcher and the client threads run as soon as they are ready, ahead of all normal threads; runs use it by default where it is permitted".to_owned();
    match allowed {
        Ok(()) => MachineFinding {
            name: "real-time priority",
            state: State::Good,
            found: "may be set".to_owned(),
            why,
            remedy: None,
        },
        Err(error) => MachineFinding {
            name: "real-time priority",
            state: State::Advice,
            found: match error {
                MachineError::Priority { reason, .. } => format!("may not be set ({reason})"),
                other => format!("may not be set ({other})"),
            },
            why,
            remedy: Some(
                "`sudo setcap cap_sys_nice+ep $(command -v veeksha-host)`, or a line `rtprio 50` for this user in /etc/security/limits.conf (`ulimit -r`); a container: `--cap-add=SYS_NICE`"
                    .to_owned(),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use thread_priority::thread_schedule_policy;

    use super::*;

    #[test]
    fn priorities_that_do_not_exist_are_refused() {
        for priority in [0, 100, 255] {
            assert_eq!(
                set_realtime(priority),
                Err(MachineError::NoSuchPriority { priority })
            );
        }
    }

    #[test]
    fn granted_priority_applies_and_refused_one_names_the_fix() {
        std::thread::spawn(|| match set_realtime(1) {
            Ok(()) => assert_eq!(
                thread_schedule_policy(),
                Ok(ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo))
            ),
            Err(error) => assert!(error.to_string().contains("ulimit -r"), "{error}"),
        })
        .join()
        .expect("the thread");
    }

    #[test]
    fn lower_priority_concerns_the_calling_thread_only() {
        // The niceness is the 19th field of `stat`, the 17th after the name.
        let niceness = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("procfs");
            let after_name = stat.rsplit(')').next().expect("a name").to_owned();
            let field = after_name.split_whitespace().nth(16).expect("a niceness");
            field.parse::<i32>().expect("a number")
        };
        let before = niceness();
        let lowered = std::thread::spawn(move || {
            lower_priority();
            niceness()
        });
        let lowered = lowered.join().expect("the thread");
        assert_eq!(lowered, (before + BACKGROUND_NICENESS).min(19));
        assert_eq!(niceness(), before);
    }

    #[test]
    fn a_refusal_is_advice_not_a_defect() {
        let refused = Err(MachineError::Priority {
            priority: 10,
            reason: "Operation not permitted".into(),
        });
        let finding = finding(&refused);
        assert_eq!(finding.state, State::Advice);
        assert_eq!(finding.found, "may not be set (Operation not permitted)");
        assert!(finding.remedy.unwrap().contains("cap_sys_nice"));
    }
}
