//! The built-in metrics: names, units, definitions.

use std::fmt;
use std::str::FromStr;

/// A built-in metric. Its name is Veeksha's where Veeksha has it; [`Metric::definition`] says what it means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// `num_prompt_tokens`
    PromptTokens,
    /// `num_output_tokens`
    OutputTokens,
    /// `num_total_tokens`
    TotalTokens,
    /// `tpot`
    Tpot,
    /// `ttfc`
    Ttfc,
    /// `ttfc_from_intended`
    TtfcFromIntended,
    /// `tbc`
    Tbc,
    /// `end_to_end_latency`
    EndToEnd,
    /// `e2e_from_intended`
    EndToEndFromIntended,
    /// `normalized_end_to_end_latency`
    NormalizedEndToEnd,
    /// `output_throughput`
    OutputThroughput,
    /// `session_size`
    SessionSize,
    /// `session_duration`
    SessionDuration,
    /// `session_think_time`
    SessionThinkTime,
}

/// What one sample of a metric describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A request, or a gap within one: such SLOs are what goodput asks of each request.
    Request,
    /// A session.
    Session,
}

struct Entry {
    metric: Metric,
    name: &'static str,
    display: &'static str,
    unit: &'static str,
    definition: &'static str,
}

/// Everything about each metric, in the order of the enum (a test holds them together).
const ENTRIES: [Entry; 14] = [
    Entry {
        metric: Metric::PromptTokens,
        name: "num_prompt_tokens",
        display: "Number of Prompt Tokens",
        unit: "tokens",
        definition: "tokens of the new messages of the request, without history, by the host's tokenizer",
    },
    Entry {
        metric: Metric::OutputTokens,
        name: "num_output_tokens",
        display: "Number of Output Tokens",
        unit: "tokens",
        definition: "tokens generated, as the server reports them, else by the host's tokenizer",
    },
    Entry {
        metric: Metric::TotalTokens,
        name: "num_total_tokens",
        display: "Number of Total Tokens",
        unit: "tokens",
        definition: "tokens of history, new messages and output",
    },
    Entry {
        metric: Metric::Tpot,
        name: "tpot",
        display: "Time per Output Token",
        unit: "s",
        definition: "(last generated chunk - first generated chunk) / (output tokens - 1), of answers with at least two tokens and two chunks",
    },
    Entry {
        metric: Metric::Ttfc,
        name: "ttfc",
        display: "Time to First Chunk",
        unit: "s",
        definition: "first generated chunk (reasoning, content or tool call) - dispatched",
    },
    Entry {
        metric: Metric::TtfcFromIntended,
        name: "ttfc_from_intended",
        display: "Time to First Chunk from Intended",
        unit: "s",
        definition: "first generated chunk (reasoning, content or tool call) - the instant the schedule asked for",
    },
    Entry {
        metric: Metric::Tbc,
        name: "tbc",
        display: "Time Between Chunks",
        unit: "s",
        definition: "gaps between successive generated chunks of a request, those of all requests together",
    },
    Entry {
        metric: Metric::EndToEnd,
        name: "end_to_end_latency",
        display: "End to End Latency",
        unit: "s",
        definition: "last generated chunk - dispatched",
    },
    Entry {
        metric: Metric::EndToEndFromIntended,
        name: "e2e_from_intended",
        display: "End to End Latency from Intended",
        unit: "s",
        definition: "last generated chunk - the instant the schedule asked for",
    },
    Entry {
        metric: Metric::NormalizedEndToEnd,
        name: "normalized_end_to_end_latency",
        display: "Normalized End to End Latency",
        unit: "s/token",
        definition: "end to end latency / output tokens",
    },
    Entry {
        metric: Metric::OutputThroughput,
        name: "output_throughput",
        display: "Output Throughput",
        unit: "tokens/s",
        definition: "output tokens / end to end latency, of one request",
    },
    Entry {
        metric: Metric::SessionSize,
        name: "session_size",
        display: "Requests per Session",
        unit: "requests",
        definition: "requests sent in a session of which every request was tried",
    },
    Entry {
        metric: Metric::SessionDuration,
        name: "session_duration",
        display: "Session Duration",
        unit: "s",
        definition: "first dispatch to last completion of a session of which every request was tried",
    },
    Entry {
        metric: Metric::SessionThinkTime,
        name: "session_think_time",
        display: "Intra-session Think Time",
        unit: "s",
        definition: "the instant the schedule asked for - the last completion among the request's parents",
    },
];

impl Metric {
    /// All metrics, in the order of the files and tables.
    pub fn all() -> impl Iterator<Item = Metric> {
        ENTRIES.iter().map(|entry| entry.metric)
    }

    fn entry(self) -> &'static Entry {
        &ENTRIES[self as usize]
    }

    /// The name in configuration and files.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The name in `slo_results.json`: Veeksha writes `e2e` there.
    pub fn slo_name(self) -> &'static str {
        match self {
            Metric::EndToEnd => "e2e",
            other => other.name(),
        }
    }

    /// The name for people, and in the keys of `summary_stats.json`.
    pub fn display_name(self) -> &'static str {
        self.entry().display
    }

    /// The unit of its values.
    pub fn unit(self) -> &'static str {
        self.entry().unit
    }

    /// One line that says what it is.
    pub fn definition(self) -> &'static str {
        self.entry().definition
    }

    /// What one sample describes.
    pub fn scope(self) -> Scope {
        match self {
            Metric::SessionSize | Metric::SessionDuration | Metric::SessionThinkTime => Scope::Session,
            _ => Scope::Request,
        }
    }

    /// Whether an SLO bounds it from above (latencies) or from below (throughput).
    pub fn lower_is_better(self) -> bool {
        self != Metric::OutputThroughput
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no metric's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no metric `{name}`; the metrics are {}", known())]
pub struct UnknownMetric {
    /// What was asked for.
    pub name: String,
}

fn known() -> String {
    ENTRIES
        .iter()
        .map(|entry| entry.name)
        .collect::<Vec<_>>()
        .join(", ")
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    /// Takes [`Metric::name`], and `e2e` and `end_to_end_latency_from_intended` as further names.
    fn from_str(name: &str) -> Result<Self, UnknownMetric> {
        match name {
            "e2e" => return Ok(Metric::EndToEnd),
            "end_to_end_latency_from_intended" => return Ok(Metric::EndToEndFromIntended),
            _ => {}
        }
        let entry = ENTRIES.iter().find(|entry| entry.name == name);
        entry.map(|entry| entry.metric).ok_or_else(|| UnknownMetric {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_own_entry() {
        for (place, entry) in ENTRIES.iter().enumerate() {
            assert_eq!(entry.metric as usize, place, "{}", entry.name);
            assert_eq!(entry.name.parse::<Metric>(), Ok(entry.metric));
            assert_eq!(entry.metric.slo_name().parse::<Metric>(), Ok(entry.metric));
        }
    }

    #[test]
    fn veekshas_names_are_understood_and_others_are_answered_with_the_list() {
        assert_eq!("e2e".parse(), Ok(Metric::EndToEnd));
        assert_eq!("end_to_end_latency".parse(), Ok(Metric::EndToEnd));
        let error = "ttft".parse::<Metric>().unwrap_err().to_string();
        assert!(
            error.starts_with("there is no metric `ttft`; the metrics are num_prompt_tokens, "),
            "{error}"
        );
    }
}
