//! Speed of the cores: the governor of their frequency.

use std::collections::BTreeMap;

use crate::finding::{MachineFinding, State};
use crate::tree::Tree;

/// Returns the governors of the given cores and the number of cores with each. Empty if the kernel
/// offers no control.
pub(crate) fn governors(tree: &Tree, cores: &[usize]) -> BTreeMap<String, usize> {
    count(tree, cores, "scaling_governor")
}

fn count(tree: &Tree, cores: &[usize], file: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for core in cores {
        if let Some(word) = tree.word(&format!("/sys/devices/system/cpu/cpu{core}/cpufreq/{file}")) {
            *found.entry(word).or_default() += 1;
        }
    }
    found
}

pub(crate) fn finding(tree: &Tree, cores: &[usize]) -> MachineFinding {
    let governors = governors(tree, cores);
    let why = "a core that slows down when it is idle answers its first events late".to_owned();
    if governors.is_empty() {
        return MachineFinding {
            name: "frequency",
            state: State::Good,
            found: "no control is visible here, as in most virtual machines; the machine below decides"
                .to_owned(),
            why,
            remedy: None,
        };
    }
    let preferences = count(tree, cores, "energy_performance_preference");
    let slow_governor = governors.keys().any(|governor| governor != "performance");
    // If the driver controls the frequency itself (intel_pstate, amd_pstate), the preference
    // decides, regardless of the governor's name.
    let slow_preference = preferences
        .keys()
        .any(|preference| preference.contains("power") && preference != "balance_performance");
    let state = if slow_governor || slow_preference {
        State::Advice
    } else {
        State::Good
    };
    let mut found = format!("governor {}", shown(&governors));
    if !preferences.is_empty() {
        found.push_str(&format!("; energy preference {}", shown(&preferences)));
    }
    MachineFinding {
        name: "frequency",
        state,
        found,
        why,
        remedy: (state == State::Advice)
            .then(|| "`sudo cpupower frequency-set --governor performance`".to_owned()),
    }
}

fn shown(counts: &BTreeMap<String, usize>) -> String {
    if let (1, Some(name)) = (counts.len(), counts.keys().next()) {
        return name.clone();
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(name, cores)| format!("{name} on {cores}"))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    const FIRST: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    const SECOND: &str = "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";

    #[test]
    fn performance_everywhere_is_good() {
        let (_folder, tree) = tree(&[(FIRST, "performance\n"), (SECOND, "performance\n")]);
        let finding = finding(&tree, &[0, 1]);
        assert_eq!(
            (finding.state, finding.found.as_str()),
            (State::Good, "governor performance")
        );
    }

    #[test]
    fn one_slow_core_is_enough_for_advice_if_it_may_be_used() {
        let (_folder, tree) = tree(&[(FIRST, "performance\n"), (SECOND, "powersave\n")]);
        let both = finding(&tree, &[0, 1]);
        assert_eq!(both.state, State::Advice);
        assert_eq!(both.found, "governor performance on 1, powersave on 1");
        assert!(both.remedy.unwrap().contains("cpupower"));
        assert_eq!(finding(&tree, &[0]).state, State::Good);
    }

    #[test]
    fn a_preference_for_little_power_counts() {
        let preference = "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference";
        for (word, state) in [
            ("balance_power", State::Advice),
            ("power", State::Advice),
            ("balance_performance", State::Good),
            ("performance", State::Good),
        ] {
            let (_folder, tree) = tree(&[(FIRST, "performance"), (preference, word)]);
            assert_eq!(finding(&tree, &[0]).state, state, "{word}");
        }
    }

    #[test]
    fn a_virtual_machine_shows_none() {
        let (_folder, tree) = tree(&[]);
        let finding = finding(&tree, &[0]);
        assert_eq!(finding.state, State::Good);
        assert!(finding.found.contains("virtual"));
    }
}
