//! The built-in metrics: their names, and what each says about itself.

use std::fmt;
use std::str::FromStr;

use veeksha_model::Better;
use veeksha_slo::Range;

use crate::metric_table::{ENTRIES, Entry};

/// A built-in metric. Its name is Veeksha's where Veeksha has it; [`Metric::definition`] says what it means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// `num_prompt_tokens`
    PromptTokens,
    /// `num_output_tokens`
    OutputTokens,
    /// `num_total_tokens`
    TotalTokens,
    /// `num_reasoning_tokens`
    ReasoningTokens,
    /// `cached_token_share`
    CachedTokenShare,
    /// `tpot`
    Tpot,
    /// `ttfc`
    Ttfc,
    /// `ttfc_from_intended`
    TtfcFromIntended,
    /// `ttfc_content`
    TtfcContent,
    /// `time_to_second_chunk`
    TimeToSecondChunk,
    /// `tbc`
    Tbc,
    /// `itl`
    Itl,
    /// `end_to_end_latency`
    EndToEnd,
    /// `e2e_from_intended`
    EndToEndFromIntended,
    /// `normalized_end_to_end_latency`
    NormalizedEndToEnd,
    /// `output_throughput`
    OutputThroughput,
    /// `prefill_time`
    PrefillTime,
    /// `decode_time`
    DecodeTime,
    /// `fluidity`
    Fluidity,
    /// `fluidity_tokens`
    FluidityTokens,
    /// `session_size`
    SessionSize,
    /// `session_duration`
    SessionDuration,
    /// `session_makespan`
    SessionMakespan,
    /// `session_critical_path_llm_time`
    SessionCriticalPath,
    /// `session_think_time`
    SessionThinkTime,
    /// `session_tool_time`
    SessionToolTime,
    /// `session_slowdown`
    SessionSlowdown,
}

/// What one value of a metric or figure describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A request: such objectives are what goodput asks of each request.
    Request,
    /// A gap within a request; goodput asks for the same figure of a request's own gaps.
    Gap,
    /// A session.
    Session,
    /// The whole run.
    Run,
}

impl Scope {
    /// The lower-case name, as it stands in files.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Request => "request",
            Scope::Gap => "gap",
            Scope::Session => "session",
            Scope::Run => "run",
        }
    }

    /// Whether a request has values of its own.
    pub fn is_of_a_request(self) -> bool {
        matches!(self, Scope::Request | Scope::Gap)
    }
}

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

    /// The unit of its values; `1` for a ratio.
    pub fn unit(self) -> &'static str {
        self.entry().unit
    }

    /// Whether its values are shares, from 0 to 1.
    pub fn is_share(self) -> bool {
        matches!(
            self,
            Metric::CachedTokenShare | Metric::Fluidity | Metric::FluidityTokens
        )
    }

    /// The values that it can have.
    pub fn range(self) -> Range {
        match self.is_share() {
            true => Range::Share,
            false => Range::NotNegative,
        }
    }

    /// One line that says what it is.
    pub fn definition(self) -> &'static str {
        self.entry().definition
    }

    /// Whose definition it is, or where its formula comes from.
    pub fn source(self) -> &'static str {
        self.entry().source
    }

    /// What one sample describes.
    pub fn scope(self) -> Scope {
        self.entry().scope
    }

    /// Which way it is good.
    pub fn better(self) -> Better {
        self.entry().better
    }

    /// Whether one of Veeksha's SLOs bounds it from above (latencies) or from below (throughput).
    pub fn lower_is_better(self) -> bool {
        self.better() != Better::Higher
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

/// Further names of metrics, and the names that they stand for.
pub(crate) const ALIASES: [(&str, &str); 2] = [
    ("e2e", "end_to_end_latency"),
    ("end_to_end_latency_from_intended", "e2e_from_intended"),
];

/// A metric's own name for any of its names.
pub(crate) fn canonical(name: &str) -> &str {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, own)| own)
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    /// Takes [`Metric::name`], and `e2e` and `end_to_end_latency_from_intended` as further names.
    fn from_str(name: &str) -> Result<Self, UnknownMetric> {
        let own = canonical(name);
        let entry = ENTRIES.iter().find(|entry| entry.name == own);
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
            for other in &ENTRIES[..place] {
                assert_ne!(entry.name, other.name);
                assert_ne!(entry.display, other.display);
            }
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
