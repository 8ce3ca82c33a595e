//! Closing table and result file of `vllm bench serve` and of sglang's `bench_serving`: both print
//! the same values and the same statistics of four latencies.

use crate::report::{MetricList, Notes, ToolResult};
use crate::sample::ToolSample;
use crate::served::{Peak, Served, rate};
use crate::table::{decimal, line, rule};

/// Values of a whole run, from which [`ServedValue`]s are computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedTotals {
    pub(crate) seconds: f64,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) retokenized: u64,
    /// Sum of all latencies in seconds.
    pub(crate) latencies: f64,
    pub(crate) peak_chunks: u64,
    pub(crate) peak_requests: u64,
}

impl ServedTotals {
    /// Returns the totals over a duration.
    pub(crate) fn of(served: &Served, seconds: f64) -> ServedTotals {
        let latency = served.answered.iter().map(|request| request.latency as f64 / 1e9);
        ServedTotals {
            seconds,
            completed: served.answered.len(),
            failed: served.failed,
            input: served.sum(|request| request.prompt),
            output: served.sum(|request| request.output),
            retokenized: served.sum(|request| request.retokenized),
            latencies: latency.sum(),
            peak_chunks: served.peak_chunks(),
            peak_requests: served.peak_requests(Peak::PerSecond),
        }
    }

    /// Returns all requests, failed ones included.
    pub(crate) fn sent(&self) -> usize {
        self.completed + self.failed
    }

    fn per_second(&self, count: f64) -> Option<f64> {
        rate(count, self.seconds)
    }
}

/// Formula and form of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServedFormula {
    /// An integer.
    Count(fn(&ServedTotals) -> u64),
    /// An integer with decimals in the table.
    DecimalCount(fn(&ServedTotals) -> u64),
    /// A number with decimals.
    Real(fn(&ServedTotals) -> Option<f64>),
}

/// A value of the whole run: its key in the result file and its line in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedValue {
    pub(crate) key: &'static str,
    /// Label in the table; empty if the table does not show it.
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
    /// True if failed requests are part of the number of samples.
    pub(crate) of_sent: bool,
    pub(crate) formula: ServedFormula,
}

/// Creates a number of requests, out of all that were sent.
const fn requests(key: &'static str, label: &'static str, of: fn(&ServedTotals) -> u64) -> ServedValue {
    ServedValue {
        key,
        label,
        unit: "requests",
        of_sent: true,
        formula: ServedFormula::Count(of),
    }
}

/// Creates a number of tokens of the answered requests.
pub(crate) const fn tokens(
    key: &'static str,
    label: &'static str,
    of: fn(&ServedTotals) -> u64,
) -> ServedValue {
    ServedValue {
        key,
        label,
        unit: "tok",
        of_sent: false,
        formula: ServedFormula::Count(of),
    }
}

const fn throughput(
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    of: fn(&ServedTotals) -> Option<f64>,
) -> ServedValue {
    ServedValue {
        key,
        label,
        unit,
        of_sent: false,
        formula: ServedFormula::Real(of),
    }
}

pub(crate) const COMPLETED: ServedValue = requests("completed", "Successful requests:", |totals| {
    totals.completed as u64
});
pub(crate) const FAILED: ServedValue = requests("failed", "Failed requests:", |totals| totals.failed as u64);
pub(crate) const DURATION: ServedValue = ServedValue {
    of_sent: true,
    ..throughput("duration", "Benchmark duration (s):", "s", |totals| {
        Some(totals.seconds)
    })
};
pub(crate) const INPUT_TOKENS: ServedValue =
    tokens("total_input_tokens", "Total input tokens:", |totals| totals.input);
pub(crate) const OUTPUT_TOKENS: ServedValue =
    tokens("total_output_tokens", "Total generated tokens:", |totals| {
        totals.output
    });
pub(crate) const REQUEST_THROUGHPUT: ServedValue = throughput(
    "request_throughput",
    "Request throughput (req/s):",
    "req/s",
    |totals| totals.per_second(totals.completed as f64),
);
pub(crate) const INPUT_THROUGHPUT: ServedValue = throughput(
    "input_throughput",
    "Input token throughput (tok/s):",
    "tok/s",
    |totals| totals.per_second(totals.input as f64),
);
pub(crate) const OUTPUT_THROUGHPUT: ServedValue = throughput(
    "output_throughput",
    "Output token throughput (tok/s):",
    "tok/s",
    |totals| totals.per_second(totals.output as f64),
);
pub(crate) const PEAK_OUTPUT_THROUGHPUT: ServedValue = throughput(
    "max_output_tokens_per_s",
    "Peak output token throughput (tok/s):",
    "tok/s",
    |totals| Some(totals.peak_chunks as f64),
);
pub(crate) const PEAK_REQUESTS: ServedValue = ServedValue {
    of_sent: false,
    ..requests("max_concurrent_requests", "Peak concurrent requests:", |totals| {
        totals.peak_requests
    })
};
pub(crate) const TOTAL_THROUGHPUT: ServedValue = throughput(
    "total_throughput",
    "Total token throughput (tok/s):",
    "tok/s",
    |totals| totals.per_second((totals.input + totals.output) as f64),
);
pub(crate) const CONCURRENCY: ServedValue = throughput("concurrency", "Concurrency:", "requests", |totals| {
    totals.per_second(totals.latencies)
});

/// A latency with its statistics, in milliseconds.
pub(crate) struct ServedLatency {
    /// Suffix of its keys: `ttft` in `mean_ttft_ms`.
    pub(crate) key: &'static str,
    /// Name in the lines of the table.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) sample: ToolSample,
    /// Value of each statistic without samples.
    pub(crate) empty: Option<f64>,
}

/// Table and result file, written together.
#[derive(Debug)]
pub(crate) struct ServedReport {
    pub(crate) list: MetricList,
    pub(crate) table: String,
}

impl ServedReport {
    pub(crate) fn new() -> ServedReport {
        ServedReport {
            list: MetricList::default(),
            table: rule(" Serving Benchmark Result ", '='),
        }
    }

    /// Adds values of the whole run to both.
    pub(crate) fn add_values(&mut self, values: &[ServedValue], totals: &ServedTotals) {
        for value in values {
            let samples = if value.of_sent {
                totals.sent()
            } else {
                totals.completed
            };
            let text = match value.formula {
                ServedFormula::Count(of) => {
                    self.list.count(value.key, value.unit, of(totals), samples);
                    line(value.label, &of(totals).to_string())
                }
                ServedFormula::DecimalCount(of) => {
                    self.list.count(value.key, value.unit, of(totals), samples);
                    decimal(value.label, Some(of(totals) as f64))
                }
                ServedFormula::Real(of) => {
                    self.list.put(value.key, value.unit, of(totals), samples);
                    decimal(value.label, of(totals))
                }
            };
            if !value.label.is_empty() {
                self.table += &text;
            }
        }
    }

    /// Adds the statistics of a latency. The table does not show the standard deviation.
    pub(crate) fn add_latency(&mut self, latency: &ServedLatency, percentiles: &[f64]) {
        let sample = &latency.sample;
        self.table += &rule(latency.title, '-');
        let mut add = |stat: &str, label: Option<&str>, value: Option<f64>| {
            let value = value.or(latency.empty);
            if let Some(label) = label {
                self.table += &decimal(&format!("{label} {} (ms):", latency.name), value);
            }
            let key = format!("{stat}_{}_ms", latency.key);
            self.list.put(&key, "ms", value, sample.len());
        };
        add("mean", Some("Mean"), sample.mean());
        add("median", Some("Median"), sample.percentile(50.0));
        add("std", None, sample.std());
        for &p in percentiles {
            add(&format!("p{p}"), Some(&format!("P{p}")), sample.percentile(p));
        }
    }

    /// Draws the end of the table.
    pub(crate) fn close(mut self, notes: Notes) -> ToolResult {
        self.table += &"=".repeat(50);
        self.table.push('\n');
        ToolResult {
            metrics: self.list,
            table: self.table,
            notes,
        }
    }
}
