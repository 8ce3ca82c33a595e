//! The kernel's clock source: a source that is slow to read makes every timestamp expensive.

use crate::finding::{MachineFinding, State};
use crate::tree::Tree;

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

/// Returns the clock source in use.
pub(crate) fn current(tree: &Tree) -> Option<String> {
    tree.word(&format!("{FOLDER}/current_clocksource"))
}

pub(crate) fn finding(tree: &Tree) -> Option<MachineFinding> {
    let current = current(tree)?;
    let state = match current.as_str() {
        // These are read without entering the kernel (vDSO).
        "tsc"
        | "kvm-clock"
        | "hyperv_clocksource_tsc_page"
        | "arch_sys_counter"
        | "timebase"
        | "riscv_clocksource" => State::Good,
        // A trap to the hypervisor or a read over a slow bus, which takes a microsecond or more
        // each time.
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" => State::Bad,
        _ => State::Advice,
    };
    let offered = tree
        .text(&format!("{FOLDER}/available_clocksource"))
        .unwrap_or_default();
    let better = ["tsc", "kvm-clock"]
        .into_iter()
        .find(|name| offered.split_whitespace().any(|word| word == *name));
    let remedy = match (state, better) {
        (State::Good, _) => None,
        (_, Some(name)) => Some(format!("`echo {name} | sudo tee {FOLDER}/current_clocksource`")),
        (_, None) => {
            Some("boot the kernel with `tsc=reliable`, if this machine's counters run evenly".to_owned())
        }
    };
    Some(MachineFinding {
        name: "clock source",
        state,
        found: current,
        why: "every timestamp of a run is a read of it".to_owned(),
        remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    #[test]
    fn distinguishes_fast_and_slow_clocks() {
        for (name, state) in [
            ("tsc", State::Good),
            ("kvm-clock", State::Good),
            ("hpet", State::Bad),
            ("acpi_pm", State::Bad),
            ("xen", State::Advice),
        ] {
            let path = format!("{FOLDER}/current_clocksource");
            let (_folder, tree) = tree(&[(path.as_str(), name)]);
            assert_eq!(finding(&tree).unwrap().state, state, "{name}");
        }
    }

    #[test]
    fn the_remedy_is_a_clock_that_the_kernel_offers() {
        let current = format!("{FOLDER}/current_clocksource");
        let offered = format!("{FOLDER}/available_clocksource");
        let (_folder, tree) = tree(&[
            (current.as_str(), "hpet\n"),
            (offered.as_str(), "hpet tsc acpi_pm \n"),
        ]);
        assert!(
            finding(&tree)
                .unwrap()
                .remedy
                .unwrap()
                .starts_with("`echo tsc | sudo tee")
        );
    }
}
