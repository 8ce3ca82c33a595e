//! Errors of requests for machine resources.

/// Reason why a limit, a priority or a set of cores was not granted. Every message names the remedy
/// if there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// The soft limit of open files could not be raised.
    #[error("the limit of open files stays at {soft}: the kernel refused {hard} ({reason})")]
    OpenFiles {
        /// The limit in effect.
        soft: u64,
        /// The requested limit.
        hard: u64,
        /// The error of the kernel.
        reason: String,
    },
    /// A real-time priority outside the range of the policy.
    #[error("the real-time priority {priority} does not exist; it must be between 1 and 99")]
    NoSuchPriority {
        /// The requested priority.
        priority: u8,
    },
    /// The kernel does not permit a real-time priority for this process.
    #[error(
        "the real-time priority {priority} is refused ({reason}); raise `ulimit -r` to at least {priority} (a line `rtprio` in /etc/security/limits.conf), or grant CAP_SYS_NICE: `sudo setcap cap_sys_nice+ep $(command -v veeksha-host)`"
    )]
    Priority {
        /// The requested priority.
        priority: u8,
        /// The error of the kernel.
        reason: String,
    },
    /// The list of cores is empty.
    #[error("no core is named to run on; this process may use {}", list(usable))]
    NoCores {
        /// The cores that are permitted.
        usable: Vec<usize>,
    },
    /// Cores that this process may not use, or that do not exist.
    #[error(
        "{} {} not for this process to use; it may use {}",
        list(refused),
        are(refused),
        list(usable)
    )]
    Cores {
        /// The requested cores that are not permitted.
        refused: Vec<usize>,
        /// The cores that are permitted.
        usable: Vec<usize>,
    },
    /// The kernel refused cores that it had listed as permitted.
    #[error("the kernel refused to pin a thread to {} ({reason})", list(cores))]
    Pinning {
        /// The requested cores.
        cores: Vec<usize>,
        /// The error of the kernel.
        reason: String,
    },
}

fn list(cores: &[usize]) -> String {
    let noun = if cores.len() == 1 { "core" } else { "cores" };
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    format!("{noun} {}", numbers.join(", "))
}

fn are(cores: &[usize]) -> &'static str {
    if cores.len() == 1 { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_cores_are_named_with_those_that_may_be_used() {
        let one = MachineError::Cores {
            refused: vec![9],
            usable: vec![0, 1],
        };
        assert_eq!(
            one.to_string(),
            "core 9 is not for this process to use; it may use cores 0, 1"
        );
    }

    #[test]
    fn a_refused_priority_names_both_remedies() {
        let text = MachineError::Priority {
            priority: 20,
            reason: "not permitted".into(),
        }
        .to_string();
        assert!(
            text.contains("ulimit -r")
                && text.contains("at least 20")
                && text.contains("setcap cap_sys_nice+ep")
        );
    }
}
