//! Other load on this machine.

use crate::finding::{MachineFinding, State};
use crate::tree::Tree;

/// The contents of `/proc/loadavg`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    /// Runnable threads, averaged over a minute (including those that wait for a disk).
    pub(crate) minute: f64,
    /// Threads that are currently runnable, including the calling one.
    pub(crate) runnable: u64,
}

pub(crate) fn load(tree: &Tree) -> Option<Load> {
    let text = tree.text("/proc/loadavg")?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let minute: f64 = words.first()?.parse().ok()?;
    let runnable = words.get(3)?.split('/').next()?.parse().ok()?;
    (minute.is_finite() && minute >= 0.0).then_some(Load { minute, runnable })
}

pub(crate) fn finding(tree: &Tree, cores: usize) -> Option<MachineFinding> {
    let load = load(tree)?;
    let cores = cores.max(1);
    let others = load.runnable.saturating_sub(1);
    let state = if load.minute > cores as f64 && others >= cores as u64 {
        State::Bad
    } else if load.minute > 0.5 * cores as f64 || others >= cores as u64 {
        State::Advice
    } else {
        State::Good
    };
    Some(MachineFinding {
        name: "other load",
        state,
        found: format!(
            "{:.2} over the last minute on {cores} cores, {others} others runnable now",
            load.minute
        ),
        why: "a thread that shares its core waits for its turn, and its timestamps and its dispatches with it".to_owned(),
        remedy: (state != State::Good).then(|| {
            "stop other work here, or keep cores for the measurement (pin the client threads, `isolcpus`, a real-time priority)"
                .to_owned()
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    #[test]
    fn load_is_judged_by_the_cores() {
        for (text, cores, state) in [
            ("0.16 0.30 0.90 1/84 22868\n", 2, State::Good),
            ("1.50 0.30 0.90 1/84 22868\n", 2, State::Advice),
            ("0.10 0.30 0.90 3/84 22868\n", 2, State::Advice),
            // The last minute was busy, but the load has ended.
            ("5.00 0.30 0.90 1/84 22868\n", 2, State::Advice),
            ("5.00 0.30 0.90 4/84 22868\n", 2, State::Bad),
            ("5.00 0.30 0.90 4/84 22868\n", 16, State::Good),
        ] {
            let (_folder, tree) = tree(&[("/proc/loadavg", text)]);
            assert_eq!(finding(&tree, cores).unwrap().state, state, "{text} on {cores}");
        }
    }

    #[test]
    fn nonsense_is_not_judged() {
        for text in ["", "1", "1 2 3", "x 2 3 1/2", "NaN 2 3 1/2 4", "1 2 3 a/b 4"] {
            let (_folder, tree) = tree(&[("/proc/loadavg", text)]);
            assert!(finding(&tree, 2).is_none(), "{text:?}");
        }
    }
}
