//! Statistics of a trace: JSON by `serde`, and text for a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::arrivals::ArrivalStats;
use crate::distribution::{Distribution, QuantityUnit};
use crate::labels::LabelValues;

/// Statistics of a trace. A distribution is `None` (`null`) if the trace lacks the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceStats {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of requests in all sessions.
    pub requests: u64,
    /// Requests per session.
    pub turns: Option<Distribution>,
    /// Graph counts over all sessions.
    pub graph: GraphCounts,
    /// Tokens of a request's new messages.
    pub new_prompt_tokens: Option<Distribution>,
    /// Tokens of a whole prompt: as recorded, else counted over the history and the new messages.
    pub prompt_tokens: Option<Distribution>,
    /// Tokens of an answer: as recorded, as requested, or counted in its text.
    pub output_tokens: Option<Distribution>,
    /// Think times of the requests that wait for others.
    pub think_time: Option<Distribution>,
    /// Recorded durations of answers.
    pub latency: Option<Distribution>,
    /// Recorded arrivals of sessions.
    pub session_arrivals: Option<ArrivalStats>,
    /// Recorded instants of all requests.
    pub request_arrivals: Option<ArrivalStats>,
    /// New messages by role, and recorded answers and their tool calls.
    pub messages: BTreeMap<&'static str, u64>,
    /// Media by kind.
    pub media: BTreeMap<&'static str, u64>,
    /// Labels by name.
    pub labels: Vec<LabelValues>,
    /// Hits of an unbounded prefix cache.
    pub prefix: PrefixReport,
}

/// Counts over the graphs of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GraphCounts {
    /// Requests without parents.
    pub roots: u64,
    /// Pairs of a request and a parent.
    pub edges: u64,
    /// Requests with several children.
    pub forks: u64,
    /// Requests with several parents.
    pub joins: u64,
    /// Requests that send their history with live answers.
    pub continued_live: u64,
    /// Requests that send their history with recorded answers.
    pub continued_recorded: u64,
    /// Requests with a history that they do not send.
    pub continued_fresh: u64,
}

/// Hits of an unbounded prefix cache. Live answers count as text that is new to the cache, even if
/// a server would keep them after generating them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrefixReport {
    /// Tokens of all prompts as they are sent.
    pub prompt_tokens: u64,
    /// Tokens that are a prefix of an earlier prompt.
    pub hit_tokens: u64,
    /// Share of hits in all tokens; `None` without prompts.
    pub hit_rate: Option<f64>,
    /// True if the count is exact; else it is an estimate within about half a percent of the new
    /// tokens.
    pub exact: bool,
}

impl TraceStats {
    /// Returns the available distributions with their names, for tables and plots.
    pub fn distributions(&self) -> Vec<(&'static str, &Distribution)> {
        let all = [
            ("requests of a session", self.turns.as_ref()),
            ("prompt tokens", self.prompt_tokens.as_ref()),
            ("new prompt tokens", self.new_prompt_tokens.as_ref()),
            ("output tokens", self.output_tokens.as_ref()),
            ("think time", self.think_time.as_ref()),
            ("recorded latency", self.latency.as_ref()),
            (
                "gap between sessions",
                self.session_arrivals
                    .as_ref()
                    .and_then(|arrivals| arrivals.gaps.as_ref()),
            ),
        ];
        all.into_iter()
            .filter_map(|(name, distribution)| Some((name, distribution?)))
            .collect()
    }

    /// Returns the statistics as text, about 110 characters wide.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<26}{value}");
        };
        line("sessions", self.sessions.to_string());
        line("requests", self.requests.to_string());
        let graph = &self.graph;
        line(
            "edges",
            format!(
                "{} ({} forks, {} joins); histories: {} live, {} recorded, {} fresh",
                graph.edges,
                graph.forks,
                graph.joins,
                graph.continued_live,
                graph.continued_recorded,
                graph.continued_fresh
            ),
        );
        for (name, arrivals) in [
            ("arrivals of sessions", &self.session_arrivals),
            ("instants of requests", &self.request_arrivals),
        ] {
            if let Some(arrivals) = arrivals {
                line(name, arrivals_line(arrivals));
            }
        }
        for (name, counts) in [("messages", &self.messages), ("media", &self.media)] {
            if !counts.is_empty() {
                let counts: Vec<String> = counts.iter().map(|(of, count)| format!("{count} {of}")).collect();
                line(name, counts.join(", "));
            }
        }
        for label in &self.labels {
            let top = label.top.iter().take(5);
            let top: Vec<String> = top
                .map(|(value, count)| format!("{} ({count})", short(value)))
                .collect();
            let more = label.different.saturating_sub(5);
            let more = if more > 0 {
                format!(", {more} more")
            } else {
                String::new()
            };
            line(
                &format!("label {}", short(&label.name)),
                format!("{}{more}", top.join(", ")),
            );
        }
        if let Some(rate) = self.prefix.hit_rate {
            let about = if self.prefix.exact { "" } else { "about " };
            let (hits, all) = (self.prefix.hit_tokens, self.prefix.prompt_tokens);
            line(
                "ideal prefix hits",
                format!("{about}{:.2} % ({hits} of {all} prompt tokens)", rate * 100.0),
            );
        }
        let _ = writeln!(
            text,
            "\n{:<26}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
            "", "mean", "min", "P50", "P90", "P99", "max"
        );
        for (name, distribution) in self.distributions() {
            let _ = write!(text, "{name:<26}");
            let Distribution {
                mean,
                min,
                p50,
                p90,
                p99,
                max,
                unit,
                ..
            } = distribution;
            for value in [mean, min, p50, p90, p99, max] {
                let _ = write!(text, "{:>12}", quantity(*value, *unit));
            }
            text.push('\n');
        }
        text
    }
}

fn arrivals_line(arrivals: &ArrivalStats) -> String {
    let mut line = format!(
        "{} from {} to {}",
        arrivals.count,
        quantity(arrivals.first, QuantityUnit::Seconds),
        quantity(arrivals.last, QuantityUnit::Seconds)
    );
    if let (Some(rate), Some(variation), Some(burstiness)) =
        (arrivals.rate, arrivals.gap_variation, arrivals.burstiness)
    {
        let _ = write!(
            line,
            ", {} per s; gaps vary by {variation:.2}, burstiness {burstiness:.2}",
            rounded(rate)
        );
    }
    line
}

/// Formats a value with its unit, short enough for a column.
fn quantity(value: f64, unit: QuantityUnit) -> String {
    match unit {
        QuantityUnit::Tokens | QuantityUnit::Count => rounded(value),
        QuantityUnit::Seconds if value != 0.0 && value.abs() < 1.0 => format!("{} ms", rounded(value * 1e3)),
        QuantityUnit::Seconds => format!("{} s", rounded(value)),
    }
}

/// Formats integers as they are, small numbers with two decimals and large ones with none.
fn rounded(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 1000.0 {
        format!("{value:.0}")
    } else if value.abs() >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn short(text: &str) -> String {
    let mut cut: String = text.chars().take(24).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use crate::TraceStatsBuilder;
    use crate::fixture::blocks;

    #[test]
    fn text_agrees_with_statistics() {
        let mut stats_builder = TraceStatsBuilder::new();
        for (at, ids) in [(0, [1, 2, 3]), (2, [1, 2, 4]), (3, [9, 8, 7])] {
            stats_builder.add(&blocks(&ids, 512, 1536, at * 1_000_000_000, 20), &|_| 0);
        }
        let text = stats_builder.finish().text();
        let expected = "\
sessions                  3
requests                  3
edges                     0 (0 forks, 0 joins); histories: 0 live, 0 recorded, 0 fresh
arrivals of sessions      3 from 0 s to 3 s, 0.67 per s; gaps vary by 0.33, burstiness -0.50
instants of requests      3 from 0 s to 3 s, 0.67 per s; gaps vary by 0.33, burstiness -0.50
messages                  3 user
ideal prefix hits         22.22 % (1024 of 4608 prompt tokens)

                                  mean         min         P50         P90         P99         max
requests of a session                1           1           1           1           1           1
prompt tokens                     1536        1536        1536        1536        1536        1536
new prompt tokens                 1536        1536        1536        1536        1536        1536
output tokens                       20          20          20          20          20          20
gap between sessions            1.50 s         1 s      1.50 s      1.90 s      1.99 s         2 s
";
        assert_eq!(text, expected);
    }
}
