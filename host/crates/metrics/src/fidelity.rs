//! Replay fidelity: comparison of a recorded trace with its replay.

use veeksha_events::{Event, NeverSentReason, RequestRecord};
use veeksha_model::Nanos;
use veeksha_stats::Summary;

use crate::edges::EdgeTracker;
use crate::fidelity_report::{ArrivalFidelity, EdgeFidelity, FidelityReport, Lengths, PrefixHits};
use veeksha_definitions::seconds_between;

/// All instants are below 2^53 ns.
const LATEST: Nanos = (1 << 53) - 1;

/// The mapping of recorded arrivals to instants of the run: a request recorded at `t` was due at
/// `offset + (t − first) / speedup`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FidelitySchedule {
    /// The instant at which the first replayed arrival was due.
    pub offset: Nanos,
    /// The speed relative to the recording.
    pub speedup: f64,
    /// The recorded instant of the first replayed arrival. `None` selects the earliest recorded
    /// arrival of a session's first request.
    pub first: Option<Nanos>,
}

/// Compares measured requests that were recorded with their recording. Accepts the events of a run
/// in any order. Holds 16 bytes for each arrival, 32 for each request with parents and 8 for each
/// other sample.
#[derive(Debug)]
pub struct Fidelity {
    schedule: Option<FidelitySchedule>,
    requests: u64,
    arrivals: Vec<ReplayedArrival>,
    /// The earliest recorded arrival of any session, measured or not.
    earliest: Option<Nanos>,
    prompts: Differences,
    prompts_by_server: Differences,
    tokenizers: Differences,
    outputs: Differences,
    edges: EdgeTracker,
    prefix: PrefixHits,
}

#[derive(Clone, Copy, Debug)]
struct ReplayedArrival {
    recorded: Nanos,
    dispatched: Nanos,
}

/// Differences of two token counts.
#[derive(Debug, Default)]
struct Differences {
    values: Vec<f64>,
    exact: u64,
    expected: u64,
    achieved: u64,
}

/// Returns the prompt length by the measure that the workload used: with the chat template if the
/// requested length includes it, otherwise without.
fn asked_length(record: &RequestRecord) -> u32 {
    let of_content = record.target_prompt_tokens == record.prompt_tokens;
    if of_content {
        record.total_prompt_tokens.saturating_sub(record.template_tokens)
    } else {
        record.total_prompt_tokens
    }
}

impl Fidelity {
    /// Creates an empty comparison. `schedule` describes traffic that replays recorded arrivals;
    /// `None` for any other traffic.
    pub fn new(schedule: Option<FidelitySchedule>) -> Self {
        Fidelity {
            schedule,
            requests: 0,
            arrivals: Vec::new(),
            earliest: schedule.and_then(|schedule| schedule.first),
            prompts: Differences::default(),
            prompts_by_server: Differences::default(),
            tokenizers: Differences::default(),
            outputs: Differences::default(),
            edges: EdgeTracker::default(),
            prefix: PrefixHits::default(),
        }
    }

    /// Processes the next event.
    pub fn on(&mut self, event: &Event) {
        match event {
            Event::Finished(record) => self.on_record(record),
            Event::ToolRan(record) => self.edges.on_tool_run(record),
            Event::ToolDropped(run) if run.reason.is_cancelled() => {
                self.edges.on_unsent_end(run.id, run.at);
                self.edges.forget_if_over(run.id.session);
            }
            Event::NeverSent { request, reason, at } => {
                if *reason == NeverSentReason::CancelledByClient {
                    self.edges.on_unsent_end(*request, *at);
                }
                self.edges.on_never_sent(request.session);
            }
            Event::SessionFinished {
                session, requests, ..
            } => self.edges.on_session_finished(*session, *requests),
            Event::RunStarted(_)
            | Event::ToolDropped(_)
            | Event::SessionPlanned { .. }
            | Event::PluginCalled(_)
            | Event::MetricDefined(_)
            | Event::Sampled(_)
            | Event::Judged { .. }
            | Event::RunJudged { .. }
            | Event::PluginFailed(_)
            | Event::SessionStarted { .. }
            | Event::Dispatched { .. }
            | Event::Starved { .. }
            | Event::ArrivalsMissed { .. }
            | Event::ThreadSampled(_)
            | Event::ClockStepped { .. }
            | Event::TimeoutReached { .. }
            | Event::Interrupted { .. }
            | Event::RunEnded { .. } => {}
        }
    }

    fn on_record(&mut self, record: &RequestRecord) {
        let is_root = record.parents.is_empty();
        let recorded_at = record.recorded.and_then(|recorded| recorded.at);
        let known_first = self.schedule.is_some_and(|schedule| schedule.first.is_some());
        if is_root && !known_first {
            self.earliest = self.earliest.into_iter().chain(recorded_at).min();
        }
        self.edges.on_record(record);
        if !record.measured {
            return;
        }
        self.add_prefix_hits(record);
        let Some(recorded) = record.recorded else { return };
        self.requests += 1;
        if let (true, Some(recorded)) = (is_root, recorded_at) {
            let dispatched = record.dispatched_at;
            self.arrivals.push(ReplayedArrival { recorded, dispatched });
        }
        let by_server = record.usage.map(|usage| usage.prompt);
        if let Some(prompt) = recorded.prompt_tokens {
            self.prompts.add(prompt, asked_length(record));
            if let Some(by_server) = by_server {
                self.prompts_by_server.add(prompt, by_server);
            }
        }
        if let Some(by_server) = by_server {
            self.tokenizers.add(record.total_prompt_tokens, by_server);
        }
        if let (Some(output), true) = (recorded.output_tokens, record.is_ok()) {
            self.outputs.add(output, record.output_tokens);
        }
    }

    fn add_prefix_hits(&mut self, record: &RequestRecord) {
        let hits = &mut self.prefix;
        hits.requests += 1;
        // The prefix accounting covers message content only, without a chat template.
        let prompt = u64::from(record.total_prompt_tokens.saturating_sub(record.template_tokens));
        let ideal = record.ideal_cached_tokens.map(u64::from);
        if let Some(ideal) = ideal {
            hits.with_ideal += 1;
            hits.ideal_tokens += ideal;
            hits.ideal_of_tokens += prompt;
        }
        if let Some(usage) = record.usage
            && let Some(cached) = usage.cached
        {
            hits.reporting += 1;
            hits.measured_tokens += u64::from(cached);
            hits.measured_of_tokens += u64::from(usage.prompt);
            if let Some(ideal) = ideal {
                hits.ideal_tokens_of_reporting += ideal;
                hits.ideal_of_tokens_of_reporting += prompt;
            }
        }
    }

    /// Returns the instant at which a request recorded at `at` was due; `None` if arrivals were not
    /// replayed.
    fn mapped(&self, at: Nanos) -> Option<Nanos> {
        let schedule = self.schedule?;
        let since = at.saturating_sub(self.earliest?);
        let after = (since as f64 / schedule.speedup).round() as Nanos;
        Some(schedule.offset.saturating_add(after).min(LATEST))
    }

    /// Returns the comparison; `None` if no measured request was recorded.
    pub fn finish(mut self) -> Option<FidelityReport> {
        if self.requests == 0 {
            return None;
        }
        let mut slack = self.edges.slack(|at| self.mapped(at));
        Some(FidelityReport {
            requests: self.requests,
            arrivals: self.arrivals(),
            prompt_tokens: self.prompts.lengths(),
            prompt_tokens_by_server: self.prompts_by_server.lengths(),
            tokenizer_against_server: self.tokenizers.lengths(),
            output_tokens: self.outputs.lengths(),
            edges: EdgeFidelity {
                slack: Summary::of(&mut slack),
                gap_difference: Summary::of(&mut self.edges.gap_difference),
            },
            prefix_hits: self.prefix,
        })
    }

    fn arrivals(&self) -> Option<ArrivalFidelity> {
        let due = |arrival: &ReplayedArrival| self.mapped(arrival.recorded);
        let late = |arrival: &ReplayedArrival| Some(seconds_between(due(arrival)?, arrival.dispatched));
        let mut lateness: Vec<f64> = self.arrivals.iter().filter_map(late).collect();
        Some(ArrivalFidelity {
            lateness: Summary::of(&mut lateness)?,
            gap_distance: {
                let due = self.arrivals.iter().filter_map(due);
                let dispatched = self.arrivals.iter().map(|arrival| arrival.dispatched);
                wasserstein(&gaps(due.collect()), &gaps(dispatched.collect()))
            },
        })
    }
}

/// Returns the gaps between successive instants in seconds, ascending.
fn gaps(mut instants: Vec<Nanos>) -> Vec<f64> {
    instants.sort_unstable();
    let mut gaps: Vec<f64> = instants
        .windows(2)
        .map(|pair| seconds_between(pair[0], pair[1]))
        .collect();
    gaps.sort_unstable_by(f64::total_cmp);
    gaps
}

/// Returns the Wasserstein distance of order 1 of two ascending samples of equal size: the mean of
/// |difference| by rank.
fn wasserstein(one: &[f64], other: &[f64]) -> Option<f64> {
    let differences = one.iter().zip(other).map(|(a, b)| (a - b).abs());
    (!one.is_empty() && one.len() == other.len()).then(|| differences.sum::<f64>() / one.len() as f64)
}

impl Differences {
    fn add(&mut self, expected: u32, achieved: u32) {
        self.values.push(f64::from(achieved) - f64::from(expected));
        self.exact += u64::from(expected == achieved);
        self.expected += u64::from(expected);
        self.achieved += u64::from(achieved);
    }

    fn lengths(&mut self) -> Option<Lengths> {
        let difference = Summary::of(&mut self.values)?;
        Some(Lengths {
            difference,
            exact_share: self.exact as f64 / difference.count as f64,
            expected: self.expected,
            achieved: self.achieved,
        })
    }
}
