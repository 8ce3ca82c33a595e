//! Idle states of the cores: leaving a deep idle state takes time.

use crate::finding::{MachineFinding, State};
use crate::tree::Tree;

/// Exit latency in microseconds from which an idle state causes delays of tens of microseconds.
const SLOW_MICROS: u64 = 50;

/// Returns the slowest enabled idle state of a core: its name and its exit latency in microseconds.
fn deepest(tree: &Tree, core: usize) -> Option<(String, u64)> {
    let folder = format!("/sys/devices/system/cpu/cpu{core}/cpuidle");
    tree.names(&folder)
        .iter()
        .filter_map(|state| {
            let file = |name: &str| format!("{folder}/{state}/{name}");
            if tree.number::<u64>(&file("disable")) == Some(1) {
                return None;
            }
            let latency = tree.number(&file("latency"))?;
            Some((tree.word(&file("name")).unwrap_or_else(|| state.clone()), latency))
        })
        .max_by_key(|(_, latency)| *latency)
}

pub(crate) fn finding(tree: &Tree, cores: &[usize]) -> Option<MachineFinding> {
    let (name, micros) = cores
        .iter()
        .filter_map(|&core| deepest(tree, core))
        .max_by_key(|(_, latency)| *latency)?;
    let state = if micros > SLOW_MICROS {
        State::Advice
    } else {
        State::Good
    };
    Some(MachineFinding {
        name: "idle states",
        state,
        found: format!("the deepest is {name}, {micros} µs to leave"),
        why: "a core that sleeps deeply wakes up late for a deadline or an arrival".to_owned(),
        remedy: (state == State::Advice)
            .then(|| format!("`sudo cpupower idle-set --disable-by-latency {SLOW_MICROS}`")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    #[test]
    fn the_deepest_enabled_state_counts() {
        let base = "/sys/devices/system/cpu/cpu0/cpuidle";
        let files = [
            (format!("{base}/state0/name"), "POLL"),
            (format!("{base}/state0/latency"), "0"),
            (format!("{base}/state1/name"), "C1"),
            (format!("{base}/state1/latency"), "2"),
            (format!("{base}/state2/name"), "C6"),
            (format!("{base}/state2/latency"), "133"),
        ];
        let mut listed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        {
            let (_folder, tree) = tree(&listed);
            let slow = finding(&tree, &[0]).unwrap();
            assert_eq!(
                (slow.state, slow.found.as_str()),
                (State::Advice, "the deepest is C6, 133 µs to leave")
            );
        }
        let disabled = format!("{base}/state2/disable");
        listed.push((&disabled, "1"));
        let (_folder, tree) = tree(&listed);
        let quick = finding(&tree, &[0]).unwrap();
        assert_eq!(
            (quick.state, quick.found.as_str()),
            (State::Good, "the deepest is C1, 2 µs to leave")
        );
    }

    #[test]
    fn reports_nothing_without_idle_states() {
        let (_folder, tree) = tree(&[]);
        assert!(finding(&tree, &[0, 1]).is_none());
    }
}
