//! The use of resources by plugins, as a file and as a table.

use serde_json::{Value, json};
use veeksha_page::PluginUseRow;
use veeksha_ports::PluginUsageReport;

/// Returns the content of `plugin_usage.json`.
pub(crate) fn json(reports: &[PluginUsageReport]) -> Value {
    let plugins = reports.iter().map(|report| {
        let PluginUsageReport {
            plugin,
            usage,
            allowed,
            notes,
        } = report;
        json!({
            "plugin": plugin,
            "calls": usage.calls,
            "longest_call_seconds": usage.longest_call.as_secs_f64(),
            "call_deadline_seconds": allowed.call.as_secs_f64(),
            "memory_bytes": usage.memory_bytes,
            "allowed_memory_bytes": allowed.memory_bytes,
            "output_bytes": measured(usage.output_bytes),
            "allowed_output_bytes": measured(allowed.output_bytes),
            "call_fuel": measured(usage.call_fuel),
            "log_lines": usage.log_lines,
            "dropped_log_lines": usage.dropped_log_lines,
            "traps": usage.traps,
            "restarts": usage.restarts,
            "instances": usage.instances,
            "notes": notes,
        })
    });
    plugins.collect()
}

/// Returns the rows of the page's table.
pub(crate) fn rows(reports: &[PluginUsageReport]) -> Vec<PluginUseRow> {
    let mebi = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let row = |report: &PluginUsageReport| PluginUseRow {
        name: report.plugin.clone(),
        calls: report.usage.calls,
        longest_call: format!(
            "{} of {}",
            veeksha_report::duration(report.usage.longest_call.as_secs_f64()),
            veeksha_report::duration(report.allowed.call.as_secs_f64())
        ),
        memory: format!(
            "{} of {}",
            mebi(report.usage.memory_bytes),
            mebi(report.allowed.memory_bytes)
        ),
        output: measured(report.usage.output_bytes).map(mebi),
        log_lines: report.usage.log_lines,
        dropped_log_lines: report.usage.dropped_log_lines,
        restarts: report.usage.restarts,
    };
    reports.iter().map(row).collect()
}

/// Returns a value that is 0 if it was not measured.
fn measured(value: u64) -> Option<u64> {
    (value > 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use veeksha_ports::{PluginAllowance, PluginUsage};

    use super::*;

    #[test]
    fn values_are_next_to_their_limits_and_absent_where_not_measured() {
        let report = PluginUsageReport {
            plugin: "coder".into(),
            usage: PluginUsage {
                calls: 3,
                longest_call: Duration::from_millis(250),
                memory_bytes: 3 << 19,
                ..PluginUsage::default()
            },
            allowed: PluginAllowance {
                call: Duration::from_secs(10),
                memory_bytes: 256 << 20,
                output_bytes: 32 << 20,
            },
            notes: vec!["a note".into()],
        };
        let shown = json(std::slice::from_ref(&report));
        assert_eq!(shown[0]["longest_call_seconds"], 0.25);
        assert_eq!(shown[0]["output_bytes"], Value::Null);
        assert_eq!(shown[0]["allowed_output_bytes"], 32 << 20);
        let rows = rows(&[report]);
        assert_eq!(rows[0].memory, "1.5 MiB of 256.0 MiB");
        assert_eq!(rows[0].output, None);
    }
}
