//! What a request to this machine can be refused for.

/// Why a limit, a priority or a set of cores was not granted. Every message names the remedy where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// The soft limit of open files could not be raised.
    #[error("the limit of open files stays at {soft}: the kernel refused {hard} ({reason})")]
    OpenFiles {
        /// The limit that holds.
        soft: u64,
        /// The limit that was asked for.
        hard: u64,
        /// The kernel's word.
        reason: String,
    },
    /// A real-time priority outside the range of the policy.
    #[error("the real-time priority {priority} does not exist; it must be between 1 and 99")]
    NoSuchPriority {
        /// What was asked for.
        priority: u8,
    },
    /// The kernel does not let this process have a real-time priority.
    #[error(
        "the real-time priority {priority} is refused ({reason}); raise `ulimit -r` to at least {priority} (a line `rtprio` in /etc/security/limits.conf), or grant CAP_SYS_NICE: `sudo setcap cap_sys_nice+ep $(command -v veeksha-host)`"
    )]
    Priority {
        /// What was asked for.
        priority: u8,
        /// The kernel's word.
        reason: String,
    },
    /// No core was named.
    #[error("no core is named to run on; this process may use {}", list(usable))]
    NoCores {
        /// The cores that may be named.
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
        /// What was asked for in vain.
        refused: Vec<usize>,
        /// The cores that may be named.
        usable: Vec<usize>,
    },
    /// The kernel refused cores that it had offered.
    #[error("the kernel refused to pin a thread to {} ({reason})", list(cores))]
    Pinning {
        /// What was asked for.
        cores: Vec<usize>,
        /// The kernel's word.
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
