//! Limits of open files: every stream is a socket, and every socket counts.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::MachineError;
use crate::finding::{ExpectedLoad, MachineFinding, State};
use crate::tree::Tree;

/// Files in addition to the streams: those of the program, result files, event queues, and the
/// overlap while connections are replaced.
const SPARE: u64 = 128;

/// Files that a run of one request at a time opens: event queues, sockets, result files. Runs with
/// one client thread needed 24.
pub const LEAST_OPEN_FILES: u64 = 48;

/// The limits of open files of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// The limit in effect; `u64::MAX` if there is no limit.
    pub soft: u64,
    /// The maximum to which the process may raise it; `u64::MAX` if there is no limit.
    pub hard: u64,
}

/// Raises this process's soft limit of open files to its hard limit and returns the limits in
/// effect.
///
/// # Errors
/// [`MachineError::OpenFiles`] if the kernel refuses; the old limit then remains in effect.
pub fn raise_open_files() -> Result<OpenFiles, MachineError> {
    let limits = getrlimit(Resource::Nofile);
    let (soft, hard) = (
        limits.current.unwrap_or(u64::MAX),
        limits.maximum.unwrap_or(u64::MAX),
    );
    if soft >= hard {
        return Ok(OpenFiles { soft, hard });
    }
    let raised = Rlimit {
        current: limits.maximum,
        maximum: limits.maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| MachineError::OpenFiles {
        soft,
        hard,
        reason: error.to_string(),
    })?;
    Ok(OpenFiles { soft: hard, hard })
}

/// Returns the limits of this process, as listed in `/proc/self/limits`.
pub(crate) fn limits(tree: &Tree) -> Option<OpenFiles> {
    let (soft, hard) = limit(&tree.text("/proc/self/limits")?, "Max open files")?;
    Some(OpenFiles { soft, hard })
}

/// Returns the soft and the hard value of a limit in the text of `/proc/self/limits`.
pub(crate) fn limit(text: &str, name: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut values = line.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some((values.next()??, values.next()??))
}

pub(crate) fn finding(tree: &Tree, load: &ExpectedLoad) -> Option<MachineFinding> {
    let limits = limits(tree)?;
    let needed = u64::from(load.streams) + SPARE;
    let state = if limits.hard >= needed {
        State::Good
    } else {
        State::Bad
    };
    let raised = if limits.soft < needed && needed <= limits.hard {
        "; a run raises the soft limit to the hard one"
    } else {
        ""
    };
    let remedy = (state == State::Bad).then(|| {
        let most = tree.number::<u64>("/proc/sys/fs/nr_open");
        let first = match most {
            Some(most) if most < needed => format!("`sudo sysctl -w fs.nr_open={needed}`, then "),
            _ => String::new(),
        };
        format!(
            "{first}`sudo prlimit --pid $$ --nofile={needed}:{needed}` in this shell (a container: `docker run --ulimit nofile={needed}`; a service: `LimitNOFILE={needed}`)"
        )
    });
    Some(MachineFinding {
        name: "open files",
        state,
        found: format!(
            "{} (hard limit {}){raised}",
            shown(limits.soft),
            shown(limits.hard)
        ),
        why: format!(
            "{} streams at once and the program itself need {needed} open files",
            load.streams
        ),
        remedy,
    })
}

fn shown(limit: u64) -> String {
    if limit == u64::MAX {
        "unlimited".to_owned()
    } else {
        limit.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
        Max processes             96365                96365                processes \n\
        Max open files            1024                 20000                files     \n\
        Max realtime priority     0                    0                    \n";

    fn load(streams: u32) -> ExpectedLoad {
        ExpectedLoad {
            streams,
            requests_per_second: 1.0,
        }
    }

    #[test]
    fn the_hard_limit_decides() {
        let (_folder, tree) = tree(&[("/proc/self/limits", LIMITS)]);
        let few = finding(&tree, &load(100)).unwrap();
        assert_eq!(
            (few.state, few.found.as_str()),
            (State::Good, "1024 (hard limit 20000)")
        );
        let more = finding(&tree, &load(10_000)).unwrap();
        assert_eq!(more.state, State::Good);
        assert!(
            more.found
                .ends_with("a run raises the soft limit to the hard one")
        );
        let most = finding(&tree, &load(20_000)).unwrap();
        assert_eq!(most.state, State::Bad);
        assert!(most.remedy.unwrap().contains("--nofile=20128:20128"));
    }

    #[test]
    fn what_the_kernel_allows_at_most_is_part_of_the_remedy() {
        let (_folder, tree) = tree(&[("/proc/self/limits", LIMITS), ("/proc/sys/fs/nr_open", "30000\n")]);
        let within = finding(&tree, &load(25_000)).unwrap().remedy.unwrap();
        assert!(!within.contains("nr_open"));
        let beyond = finding(&tree, &load(40_000)).unwrap().remedy.unwrap();
        assert!(beyond.starts_with("`sudo sysctl -w fs.nr_open=40128`"));
    }

    #[test]
    fn limits_can_be_unlimited_or_nonsense() {
        assert_eq!(
            limit("Max open files  unlimited unlimited files", "Max open files"),
            Some((u64::MAX, u64::MAX))
        );
        assert_eq!(limit("Max open files  many more files", "Max open files"), None);
        assert_eq!(limit("Max open files  10", "Max open files"), None);
        assert_eq!(limit("", "Max open files"), None);
    }

    #[test]
    fn raising_leaves_the_soft_limit_at_the_hard_one() {
        let raised = raise_open_files().expect("a process may raise its soft limit");
        assert_eq!(raised.soft, raised.hard);
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, now.maximum);
    }
}
