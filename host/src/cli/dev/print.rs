//! Output of the watch mode.

use std::path::{Path, PathBuf};

use veeksha_dev::{CycleDifference, MetricChange, MetricValue};
use veeksha_model::{printable, printable_lines};
use veeksha_plugin_tools::table_test::text_diff;
use veeksha_present::terminal;
use veeksha_report::{ColorMode, duration, number, summary_table};

use super::cycle::{CompletedCycle, StepTimes};

/// Width of the plan where the width of the terminal is unknown.
const WIDTH: usize = 110;
/// Sections of the plan that are printed: workload and traffic.
const PLAN_SECTIONS: usize = 2;
/// Lines of the drawing of a session that are printed.
const GRAPH_LINES: usize = 12;
/// Lines of the difference of a session that are printed.
const DIFF_LINES: usize = 40;
/// Seconds of a nanosecond.
const SECONDS: f64 = 1e-9;

/// Prints the first results.
pub(super) fn first(cycle: &CompletedCycle, times: &StepTimes) {
    let plan = cycle.plan.get(..PLAN_SECTIONS).unwrap_or(&cycle.plan);
    terminal::out(summary_table(plan, WIDTH, ColorMode::from_stdout()));
    for (index, graph) in cycle.graphs.iter().enumerate() {
        let lines = if index == 0 { GRAPH_LINES } else { 1 };
        terminal::out(shortened(graph, lines));
    }
    let width = name_width(cycle.results.metrics.iter().map(|metric| &*metric.name));
    for MetricValue { name, unit, value } in &cycle.results.metrics {
        terminal::out(format!("  {name:<width$}  {}", quantity(*value, unit)));
    }
    for line in cycle.results.slos.iter().chain(&cycle.results.messages) {
        terminal::out(printable_lines(line));
    }
    terminal::out(format!("simulated: {}", steps(times)));
}

/// Prints the files whose changes started a cycle.
pub(super) fn changed<'p>(paths: impl IntoIterator<Item = &'p PathBuf>, below: &Path) {
    let shown = |path: &PathBuf| {
        let path = path.strip_prefix(below).unwrap_or(path);
        printable(&path.display().to_string())
    };
    let paths: Vec<String> = paths.into_iter().map(shown).collect();
    terminal::out(format!("\nchanged: {}", paths.join(", ")));
}

/// Prints the difference of two cycles.
pub(super) fn difference(difference: &CycleDifference, times: &StepTimes) {
    if difference.is_empty() {
        terminal::out(format!("no difference: {}", steps(times)));
        return;
    }
    terminal::out(format!("simulated: {}", steps(times)));
    let (changed, all) = (difference.changed_sessions, difference.sessions);
    terminal::out(format!("sessions: {changed} of {all} changed"));
    if let Some((session, before, after)) = &difference.first_session {
        terminal::out(format!("session {session}:"));
        let diff = text_diff(before, after);
        terminal::out(printable_lines(&shortened(&diff, DIFF_LINES)));
    }
    let width = name_width(difference.metrics.iter().map(|change| &*change.name));
    for change in &difference.metrics {
        terminal::out(format!("  {:<width$}  {}", change.name, metric_change(change)));
    }
    for (sign, lines) in [('-', &difference.removed_lines), ('+', &difference.added_lines)] {
        for line in lines {
            terminal::out(format!("{sign} {}", printable_lines(line)));
        }
    }
}

/// `120 ms → 150 ms  +25 %`.
fn metric_change(change: &MetricChange) -> String {
    let side =
        |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| quantity(value, change.unit));
    let percent = change.percent().map_or_else(String::new, |percent| {
        let sign = if percent > 0.0 { "+" } else { "" };
        format!("  {sign}{} %", number(percent))
    });
    format!("{} → {}{percent}", side(change.before), side(change.after))
}

fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "s" => duration(value),
        "1" => number(value),
        unit => format!("{} {unit}", number(value)),
    }
}

/// `load 3 ms, check 20 ms, simulate 40 ms`.
fn steps(times: &StepTimes) -> String {
    let step = |(step, nanos): &(&str, u64)| format!("{step} {}", duration(*nanos as f64 * SECONDS));
    times.0.iter().map(step).collect::<Vec<_>>().join(", ")
}

fn name_width<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names.map(str::len).max().unwrap_or_default()
}

fn shortened(text: &str, lines: usize) -> String {
    let mut kept: Vec<&str> = text.lines().take(lines).collect();
    if lines > 1 && text.lines().count() > lines {
        kept.push("…");
    }
    kept.join("\n")
}
