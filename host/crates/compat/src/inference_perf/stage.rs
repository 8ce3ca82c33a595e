//! Summary of inference-perf's only stage: its metrics, its result file and its tables.

use serde_json::{Map, Value, json};

use super::goodput::Goodput;
use super::success::SuccessSamples;
use super::summary::{SummaryList, extend, summary};
use super::table::{draw_statistics, draw_statistics_in_milliseconds, one_row, tenth};
use crate::report::number;
use crate::sample::ToolSample;

/// Values of the stage.
pub(super) struct StageSummary {
    /// From the first start to the last end of all requests.
    pub(super) seconds: f64,
    /// Requested and achieved requests per second.
    pub(super) request_rate: f64,
    pub(super) achieved_rate: f64,
    pub(super) failed: usize,
    /// Goodput with the length of its window in seconds, if there are thresholds.
    pub(super) goodput: Option<(Goodput, f64)>,
    pub(super) samples: SuccessSamples,
}

impl StageSummary {
    fn all(&self) -> usize {
        self.samples.count + self.failed
    }

    /// Returns the rates with their names in the result file and their units.
    fn rates(&self) -> [(&'static str, &'static str, f64); 4] {
        let per_second = |sum: f64| {
            if self.seconds > 0.0 {
                sum / self.seconds
            } else {
                0.0
            }
        };
        let (input, output) = (self.samples.prompt.sum(), self.samples.client_output.sum());
        [
            ("requests_per_sec", "req/s", per_second(self.samples.count as f64)),
            ("input_tokens_per_sec", "tokens/s", per_second(input)),
            ("output_tokens_per_sec", "tokens/s", per_second(output)),
            ("total_tokens_per_sec", "tokens/s", per_second(input + output)),
        ]
    }

    /// Returns `load_summary`.
    pub(super) fn add_load(&self, list: &mut SummaryList<'_>, delays: Vec<f64>) -> Map<String, Value> {
        list.count("load_summary.count", self.all(), self.all());
        let delays = list.distribution("load_summary.schedule_delay", "s", &ToolSample::of(delays));
        Map::from_iter([
            ("count".to_owned(), self.all().into()),
            ("schedule_delay".to_owned(), delays),
        ])
    }

    /// Returns `successes`.
    pub(super) fn add_successes(&self, list: &mut SummaryList<'_>, cached: f64) -> Map<String, Value> {
        let samples = &self.samples;
        list.count("successes.count", samples.count, self.all());
        let latency: Map<String, Value> = samples
            .latencies()
            .into_iter()
            .map(|(name, sample)| {
                let key = format!("successes.latency.{name}");
                (name.to_owned(), list.distribution(&key, "s", sample))
            })
            .collect();
        let mut throughput = Map::new();
        for (name, unit, value) in self.rates() {
            throughput.insert(name.to_owned(), number(Some(value)));
            let key = format!("successes.throughput.{name}");
            list.list.only(&key, unit, Some(value), samples.count);
        }
        let mut tokens = |name: &str, sample: &ToolSample| {
            list.distribution(&format!("successes.{name}"), "tokens", sample)
        };
        let mut prompt_tokens = tokens("prompt_tokens", &samples.prompt);
        let output_len = tokens("output_len", &samples.client_output);
        let mut output_tokens = tokens("output_tokens", &samples.server_output);
        let total = samples.prompt.sum();
        extend(
            &mut prompt_tokens,
            &[
                ("total", total),
                ("cached", cached),
                ("uncached", (total - cached).max(0.0)),
            ],
        );
        extend(&mut output_tokens, &[("total", samples.server_output.sum())]);
        let mut successes = Map::from_iter([
            ("count".to_owned(), samples.count.into()),
            ("latency".to_owned(), latency.into()),
            ("throughput".to_owned(), throughput.into()),
            ("prompt_tokens".to_owned(), prompt_tokens),
            ("output_len".to_owned(), output_len),
            ("output_tokens".to_owned(), output_tokens),
        ]);
        if let Some((goodput, window)) = &self.goodput {
            let object = goodput.object(*window);
            for (name, value) in &object {
                let key = format!("successes.goodput_metrics.{name}");
                list.list.only(&key, "", value.as_f64(), samples.count);
            }
            successes.insert("goodput_metrics".into(), object.into());
        }
        successes
    }

    /// Returns `failures`, given the latency in seconds and the prompt tokens of each.
    pub(super) fn add_failures(
        &self,
        list: &mut SummaryList<'_>,
        failures: &[(f64, f64)],
        by_label: Map<String, Value>,
    ) -> Value {
        list.count("failures.count", self.failed, self.all());
        let latency = ToolSample::of(failures.iter().map(|failure| failure.0).collect());
        let prompt = ToolSample::of(failures.iter().map(|failure| failure.1).collect());
        let mut prompt_tokens = summary(&prompt, list.percentiles);
        let sum = prompt.sum();
        extend(
            &mut prompt_tokens,
            &[("total", sum), ("cached", 0.0), ("uncached", sum)],
        );
        json!({
            "count": self.failed,
            "request_latency": summary(&latency, list.percentiles),
            "prompt_tokens": prompt_tokens,
            "by_label": by_label,
        })
    }

    /// Draws the closing tables.
    pub(super) fn table(&self) -> String {
        let samples = &self.samples;
        let errors = if self.all() > 0 {
            100.0 * self.failed as f64 / self.all() as f64
        } else {
            0.0
        };
        let mut row = vec![
            "0".to_owned(),
            tenth(self.request_rate),
            tenth(self.achieved_rate),
            format!("{errors:.1}%"),
        ];
        row.extend(self.rates().map(|(_, _, value)| tenth(value)));
        let mut headings = vec![
            "Stage",
            "Req Rate",
            "Achieved Rate",
            "Error Rate",
            "Req/s",
            "In Tokens/s",
            "Out Tokens/s",
            "Tot Tokens/s",
        ];
        if let Some((goodput, window)) = &self.goodput {
            headings.extend(["Goodput %", "Req Goodput", "Token Goodput"]);
            let [share, requests, tokens] = goodput.rates(*window);
            row.extend([format!("{share:.1}%"), tenth(requests), tenth(tokens)]);
        }
        let mut table = one_row("Throughput and Goodput Summary", &headings, row);
        table += &draw_statistics_in_milliseconds(
            "Request & Token Latency (ms)",
            &[
                ("Req Lat", &samples.request_latency),
                ("TTFT", &samples.time_to_first_token),
                ("ITL", &samples.inter_token_latency),
            ],
        );
        table += &draw_statistics_in_milliseconds(
            "Token Generation Speed (ms)",
            &[
                ("TPOT", &samples.time_per_output_token),
                ("Norm TPOT", &samples.normalized_time_per_output_token),
            ],
        );
        let lengths = [
            ("Prompt", &samples.prompt),
            ("Out (client)", &samples.client_output),
            ("Out (server)", &samples.server_output),
        ];
        table += &draw_statistics("Token Length Aggregates", &lengths, 1.0);
        table
    }
}
