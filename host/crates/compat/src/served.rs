//! Code shared by the views of `vllm bench serve` and of sglang's `bench_serving`, its descendant.
//! Both keep a start, a time to first token, gaps between chunks and a latency for each request and
//! aggregate them at the end.

use std::collections::BTreeMap;

use veeksha_model::Nanos;

use crate::sample::{GapPool, ToolSample};

/// Results of all requests.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) answered: Vec<ServedRequest>,
    pub(crate) failed: usize,
    gaps: GapPool,
    /// First start and last end of all requests, failed ones included.
    first_start: Option<Nanos>,
    last_end: Nanos,
}

/// A request that the tool counts as successful. Times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct ServedRequest {
    pub(crate) start: Nanos,
    pub(crate) ttft: Nanos,
    pub(crate) latency: Nanos,
    pub(crate) prompt: u64,
    pub(crate) output: u64,
    /// Tokens of the text by a client's tokenizer.
    pub(crate) retokenized: u64,
    /// Range of its gaps in the pool.
    gaps: std::ops::Range<usize>,
}

impl ServedRequest {
    /// Returns (latency − time to first token) / (tokens − 1) for two or more tokens.
    pub(crate) fn tpot(&self) -> Option<f64> {
        let rest = self.latency.saturating_sub(self.ttft) as f64;
        (self.output > 1).then(|| rest / (self.output - 1) as f64)
    }

    /// Returns the value that the goodput of both tools compares, in nanoseconds. One token has a
    /// TPOT of 0.
    pub(crate) fn goodput_nanos(&self, metric: &str) -> f64 {
        match metric {
            "ttft" => self.ttft as f64,
            "tpot" => self.tpot().unwrap_or(0.0),
            _ => self.latency as f64,
        }
    }

    fn end(&self) -> Nanos {
        self.start.saturating_add(self.latency)
    }
}

/// Definition of the peak number of concurrent requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peak {
    /// vLLM after 0.32: exactly, over half-open intervals.
    Exact,
    /// sglang, and vLLM up to 0.32: in the busiest whole second since the first start; a request
    /// counts in every second that it touches.
    PerSecond,
}

impl Served {
    /// Records start and end of a request, whatever its outcome.
    pub(crate) fn record_span(&mut self, start: Nanos, end: Nanos) {
        self.first_start = Some(self.first_start.map_or(start, |first| first.min(start)));
        self.last_end = self.last_end.max(end);
    }

    /// Records a successful request with the arrival of each chunk that the tool counts.
    pub(crate) fn answer(&mut self, output: AnswerTimes, times: impl Iterator<Item = Nanos>) {
        let begin = self.gaps.len();
        let mut before: Option<Nanos> = None;
        for at in times {
            if let Some(before) = before {
                self.gaps.push(at.saturating_sub(before));
            }
            before = Some(at);
        }
        self.answered.push(ServedRequest {
            start: output.start,
            ttft: output.ttft,
            latency: output.latency,
            prompt: output.prompt,
            output: output.output,
            retokenized: output.retokenized,
            gaps: begin..self.gaps.len(),
        });
    }

    /// Returns the time from the run's zero, when vLLM's loop begins to draw gaps, to the end of
    /// the last request.
    pub(crate) fn seconds_since_zero(&self) -> f64 {
        self.last_end as f64 / 1e9
    }

    /// Returns the time from the start of the first request to the end of the last: sglang's loop
    /// begins with a request.
    pub(crate) fn seconds_since_first(&self) -> f64 {
        self.last_end.saturating_sub(self.first_start.unwrap_or(0)) as f64 / 1e9
    }

    fn base(&self) -> Nanos {
        self.answered.iter().map(|output| output.start).min().unwrap_or(0)
    }

    /// Returns the most chunks in one whole second since the first start ("output tokens per
    /// second" in both tools).
    pub(crate) fn peak_chunks(&self) -> u64 {
        let base = self.base();
        let mut seconds: BTreeMap<Nanos, u64> = BTreeMap::new();
        for output in &self.answered {
            let mut at = output.start.saturating_add(output.ttft).saturating_sub(base);
            let mut count = |at: Nanos| *seconds.entry(at / 1_000_000_000).or_default() += 1;
            count(at);
            for gap in output.gaps.clone() {
                at = at.saturating_add(self.gaps.get(gap));
                count(at);
            }
        }
        seconds.into_values().max().unwrap_or(0)
    }

    /// Returns the peak number of concurrent requests.
    pub(crate) fn peak_requests(&self, peak: Peak) -> u64 {
        // A departure sorts before an arrival at the same instant.
        let mut steps: Vec<(u64, i64)> = Vec::with_capacity(2 * self.answered.len());
        let base = self.base();
        for output in &self.answered {
            let (start, end) = (output.start - base, output.end().saturating_sub(base));
            match peak {
                Peak::Exact => steps.extend([(start, 1), (end, -1)]),
                Peak::PerSecond => {
                    let second = 1_000_000_000;
                    steps.extend([(start / second, 1), (end / second + 1, -1)]);
                }
            }
        }
        steps.sort_unstable();
        let (mut now, mut most) = (0_i64, 0_i64);
        for (_, step) in steps {
            now += step;
            most = most.max(now);
        }
        most.unsigned_abs()
    }

    /// Takes all gaps between chunks out of the requests, in milliseconds.
    pub(crate) fn take_gaps(&mut self) -> ToolSample {
        std::mem::take(&mut self.gaps).into_sample(1e6)
    }

    /// Collects a time of each request, in milliseconds.
    pub(crate) fn sample(&self, time: impl Fn(&ServedRequest) -> Option<f64>) -> ToolSample {
        ToolSample::of(
            self.answered
                .iter()
                .filter_map(time)
                .map(|nanos| nanos / 1e6)
                .collect(),
        )
    }

    pub(crate) fn sum(&self, tokens: impl Fn(&ServedRequest) -> u64) -> u64 {
        self.answered.iter().map(tokens).sum()
    }
}

/// A successful request without its chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerTimes {
    pub(crate) start: Nanos,
    pub(crate) ttft: Nanos,
    pub(crate) latency: Nanos,
    pub(crate) prompt: u64,
    pub(crate) output: u64,
    pub(crate) retokenized: u64,
}

/// Returns `count` per second; `None` for a duration of 0.
pub(crate) fn rate(count: f64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| count / seconds)
}
