//! `veeksha-host doctor`: checks whether this machine can measure accurately.

use serde_json::json;
use veeksha_machine::{ExpectedLoad, Facts, Machine, MachineFinding, State};

use crate::cli::args::DoctorArgs;
use veeksha_app::CommandFailure;
use veeksha_present::terminal;

/// Prints the facts and findings about the machine. Returns the exit code of an invalid measurement
/// if the machine cannot drive the expected load.
pub(super) fn doctor(args: &DoctorArgs) -> Result<u8, CommandFailure> {
    let load = ExpectedLoad {
        streams: args.streams,
        requests_per_second: args.rate,
    };
    let machine = Machine::here();
    let (facts, findings) = (machine.facts(), machine.findings(&load));
    let worst = findings.iter().map(|finding| finding.state).max();
    if args.json {
        let report = json!({
            "expected": { "streams": load.streams, "requests_per_second": load.requests_per_second },
            "machine": facts,
            "findings": findings,
        });
        let text = serde_json::to_string_pretty(&report).map_err(CommandFailure::internal)?;
        terminal::out(text);
    } else {
        terminal::out(table(&load, &facts, &findings));
    }
    Ok(match worst {
        Some(State::Bad) => veeksha_exit::INVALID,
        _ => veeksha_exit::DONE,
    })
}

fn table(load: &ExpectedLoad, facts: &Facts, findings: &[MachineFinding]) -> String {
    let mut lines = vec![heading(facts)];
    lines.push(format!(
        "for {} concurrent streams and {} requests per second:",
        load.streams, load.requests_per_second
    ));
    lines.push(String::new());
    let width = findings
        .iter()
        .map(|finding| finding.name.len())
        .max()
        .unwrap_or(0);
    for finding in findings {
        let mark = match finding.state {
            State::Good => "✓",
            State::Advice => "·",
            State::Bad => "✗",
        };
        lines.push(format!("{mark} {:width$}  {}", finding.name, finding.found));
        if finding.state != State::Good {
            let indent = " ".repeat(width + 4);
            lines.push(format!("{indent}{}", finding.why));
            lines.extend(
                finding
                    .remedy
                    .iter()
                    .map(|remedy| format!("{indent}fix: {remedy}")),
            );
        }
    }
    let count = |state| findings.iter().filter(|finding| finding.state == state).count() as u64;
    lines.push(String::new());
    lines.push(match (count(State::Bad), count(State::Advice)) {
        (0, 0) => "This machine is ready.".to_owned(),
        (0, advice) => format!(
            "This machine is ready; {} could be better (·).",
            veeksha_stats::counted(advice, "setting")
        ),
        (bad, _) => format!("{} found (✗).", veeksha_stats::counted(bad, "problem")),
    });
    lines.join("\n")
}

fn heading(facts: &Facts) -> String {
    let mut parts = vec![
        facts
            .processor
            .clone()
            .unwrap_or_else(|| "processor unknown".into()),
    ];
    parts.push(veeksha_stats::counted(facts.cores as u64, "core"));
    parts.extend(
        facts
            .memory
            .map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))),
    );
    parts.extend(facts.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    parts.extend(facts.hypervisor.clone());
    parts.extend(facts.container.map(str::to_owned));
    parts.join(", ")
}
