//! AIPerf's closing tables: `aiperf/exporters/console_metrics_exporter.py`.

use veeksha_events::Event;

use super::catalogue::ConsoleGroup;
use super::state::AiperfState;
use crate::options::ViewOptions;
use crate::report::{MetricList, Notes, ToolResult};
use crate::table::{BoxTable, grouped};

const COLUMNS: [&str; 7] = ["avg", "min", "max", "p99", "p90", "p50", "std"];
const TITLE: &str = "NVIDIA AIPerf | LLM Metrics";

/// The view in AIPerf's definitions.
#[derive(Debug, Default)]
pub(crate) struct Aiperf {
    state: AiperfState,
}

impl Aiperf {
    pub(crate) fn on(&mut self, event: &Event) {
        self.state.on(event);
    }

    pub(crate) fn finish(self, options: &ViewOptions) -> ToolResult {
        let mut metrics = self.state.metrics(&options.goodput);
        let mut list = MetricList::default();
        for metric in &metrics {
            let samples = metric.stats.count.unwrap_or(0) as usize;
            for (name, value) in metric.stats.named() {
                if value.is_some() {
                    list.only(&format!("{}.{name}", metric.tag), metric.unit, value, samples);
                }
            }
            list.object.insert(metric.tag.clone(), metric.json());
        }
        // In display order; metrics with equal order stay in the order of computation.
        metrics.sort_by_key(|metric| if metric.order == 0 { u32::MAX } else { metric.order });
        let mut table = String::new();
        let groups = [
            (ConsoleGroup::Effective, "Effective"),
            (ConsoleGroup::Active, "Active"),
            (ConsoleGroup::Usage, "Usage"),
            (ConsoleGroup::Default, ""),
        ];
        for (group, name) in groups {
            let title = if name.is_empty() {
                TITLE.to_owned()
            } else {
                format!("{TITLE}: {name}")
            };
            let mut headings = vec!["Metric"];
            headings.extend(COLUMNS);
            let mut boxed = BoxTable::new(&title, &headings);
            for metric in metrics.iter().filter(|metric| metric.group == group) {
                let mut cells = vec![format!("{} ({})", metric.header, metric.unit)];
                let stats = &metric.stats;
                let columns = [
                    stats.avg, stats.min, stats.max, stats.p99, stats.p90, stats.p50, stats.std,
                ];
                let shown = columns.map(|value| match value {
                    Some(value) if value.is_finite() => grouped(value, 2),
                    Some(_) => "inf".to_owned(),
                    None => "N/A".to_owned(),
                });
                cells.extend(shown);
                boxed.row(cells);
            }
            if !boxed.is_empty() {
                table.push_str(&boxed.draw());
            }
        }
        let mut notes = Notes::default();
        notes.add(
            "Lengths are counted by this host's tokenizer, without the chat template, as AIPerf counts by default; where it did not count, they are the server's.",
        );
        ToolResult {
            metrics: list,
            table,
            notes,
        }
    }
}
