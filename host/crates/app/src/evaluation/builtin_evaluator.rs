//! Conversion of the built-in evaluator's keys to the configuration of its metrics.

use veeksha_metrics::{
    Deadlines, DecodeConcurrency, DecodeWindowRules, DecodeWindowSelection, FidelitySchedule, LiveStats,
    Objectives, Setup, WholeAnswers, WindowAnchor,
};
use veeksha_model::{MetricDefinition, Nanos};
use veeksha_report::ProgressStats;
use veeksha_scenario::{
    DecodeWindowConfig as Written, Evaluator, Generator, MinActiveRequests as AtLeast, Performance, Scenario,
    WindowSelection as Selection,
};

use crate::evaluation::objectives;
use crate::failure::CommandFailure;

/// Returns the configuration of the metrics.
pub fn setup(
    scenario: &Scenario,
    objectives: Objectives,
    definitions: &[MetricDefinition],
) -> Result<Setup, CommandFailure> {
    let performance = performance(scenario);
    let nanos = |seconds: f64| (seconds * 1e9).round() as Nanos;
    Ok(Setup {
        catalogue: objectives::catalogue(definitions)?,
        objectives,
        deadlines: Deadlines {
            prefill: nanos(performance.fluidity.prefill_deadline),
            decode: nanos(performance.fluidity.decode_deadline),
        },
        slice: performance.slice_seconds.map(nanos),
        group_by: performance.group_by.clone(),
        repeated_metrics: std::collections::BTreeSet::new(),
        what_if: Vec::new(),
    })
}

/// Returns the scenario with time slices of another length, in seconds.
pub(crate) fn with_slice(mut scenario: Scenario, slice: f64) -> Scenario {
    let index = match objectives::performance(&scenario) {
        Some((index, _)) => index,
        None => {
            scenario
                .evaluators
                .push(Evaluator::Performance(Performance::default()));
            scenario.evaluators.len() - 1
        }
    };
    if let Some(Evaluator::Performance(performance)) = scenario.evaluators.get_mut(index) {
        performance.slice_seconds = Some(slice);
    }
    scenario
}

/// Returns the `config.yml` of a run with time slices of another length. The rest of the text is
/// kept, because it may describe Lua functions that cannot be recovered. If it sets no length, a
/// comment with the length is appended.
pub(crate) fn config_with_slice(config: &str, slice: f64) -> String {
    const KEY: &str = "slice_seconds:";
    let mut within = false;
    let mut found = false;
    let mut lines: Vec<String> = Vec::new();
    for line in config.lines() {
        if !line.starts_with([' ', '-']) {
            within = line.starts_with("evaluators:");
        }
        let key = line.trim_start_matches([' ', '-']);
        if within && !found && key.starts_with(KEY) {
            found = true;
            let indent = &line[..line.len() - key.len()];
            lines.push(format!("{indent}{KEY} {slice:?}"));
        } else {
            lines.push(line.to_owned());
        }
    }
    if !found {
        lines.push(format!("# evaluated with {KEY} {slice:?}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the keys of the built-in evaluator.
pub fn performance(scenario: &Scenario) -> Performance {
    objectives::performance(scenario)
        .map_or_else(Performance::default, |(_, performance)| performance.clone())
}

/// Returns the windows in which gaps are measured separately, if the scenario enables them.
pub(crate) fn decode_windows(scenario: &Scenario) -> Option<DecodeWindowRules> {
    let text = performance(scenario).text_channel;
    text.decode_window_enabled
        .then(|| windows(&text.decode_window_config.unwrap_or_default()))
}

fn windows(written: &Written) -> DecodeWindowRules {
    DecodeWindowRules {
        min_active_requests: match written.min_active_requests {
            AtLeast::Number(number) => DecodeConcurrency::AtLeast(number),
            AtLeast::Named(_) => DecodeConcurrency::MaxObserved,
        },
        selection: match written.selection_strategy {
            Selection::Longest => DecodeWindowSelection::Longest,
            Selection::First => DecodeWindowSelection::First,
            Selection::All => DecodeWindowSelection::All,
        },
        anchor: if written.anchor_to_client_pickup {
            WindowAnchor::ClientPickup
        } else {
            WindowAnchor::Dispatch
        },
        whole_answers: if written.require_streaming {
            WholeAnswers::SkipAsNonStream
        } else {
            WholeAnswers::Take
        },
    }
}

/// Returns the mapping of recorded arrivals to the clock of the run; `None` if the scenario replays
/// no trace, `Some(None)` if it ignores the recorded arrivals.
pub(crate) fn fidelity(scenario: &Scenario) -> Option<Option<FidelitySchedule>> {
    if !matches!(scenario.session_generator, Generator::Trace(_)) {
        return None;
    }
    let recorded = scenario.traffic_scheduler.recorded_arrivals();
    Some(recorded.map(|recorded| FidelitySchedule {
        offset: (recorded.offset * 1e9) as Nanos,
        speedup: recorded.speedup,
        // Arrivals are relative to the first one that is replayed.
        first: Some(0),
    }))
}

/// Converts interim values for the progress line.
pub(crate) fn progress(live: &LiveStats, elapsed: f64, sessions_planned: Option<u64>) -> ProgressStats {
    ProgressStats {
        elapsed,
        sessions: live.sessions_started,
        sessions_planned,
        in_flight: live.in_flight,
        completed: live.completed,
        failed: live.failed,
        ttfc_p50: live.ttfc_p50,
        ttfc_p99: live.ttfc.map(|ttfc| ttfc.p99),
        tbc_p50: live.tbc_p50,
        tbc_p99: live.tbc.map(|tbc| tbc.p99),
        output_tokens: live.output_tokens,
        requests_per_second: live.requests_per_second,
        output_tokens_per_second: live.output_tokens_per_second,
        client_lag_p99: live.client_lag_p99,
    }
}
