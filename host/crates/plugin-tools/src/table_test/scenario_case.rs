//! Tests of a scenario: a run in virtual time against the simulated target.

use std::path::Path;

use serde_json::{Map, Value, json};
use veeksha_app::{CommandFailure, CompatOptions, Control, ShardSpec, Source, plan_simulation, simulate};
use veeksha_ports::RunResults;

use super::format::TestCase;
use super::session_case::{CaseFailure, CaseResult};

/// Simulates a scenario and returns its metrics.
pub(crate) fn scenario(folder: &Path, scenario: &Path, case: &TestCase) -> Result<CaseResult, CaseFailure> {
    let results = tempfile::tempdir().map_err(CommandFailure::internal)?;
    let mut set = case.set.clone();
    set.push(format!(
        "output_dir={}",
        Value::from(results.path().to_string_lossy())
    ));
    if !set.iter().any(|key| key.starts_with("seed=")) && case.seed != super::format::SEED {
        set.push(format!("seed={}", case.seed));
    }
    let loaded = Source::read(&folder.join(scenario))?.settle(&set, &[], false)?;
    let plan = plan_simulation(loaded, ShardSpec::default(), None)?;
    let conclusion = simulate(plan, &CompatOptions::default(), &Control::default())?;
    let evaluation = &conclusion.results.evaluation;
    let samples: &dyn RunResults = &*evaluation.samples;
    let metric = |name: String| {
        let stats = samples.stats(&name, &[]);
        let value = json!({
            "count": stats.count, "mean": stats.mean, "std": stats.std, "min": stats.min, "max": stats.max,
            "p50": stats.p50, "p90": stats.p90, "p95": stats.p95, "p99": stats.p99,
        });
        (name, value)
    };
    let run = evaluation.run_metrics().iter();
    let run: Map<String, Value> = run
        .map(|(metric, value)| (metric.name().to_owned(), (*value).into()))
        .collect();
    let metrics: Map<String, Value> = samples.metrics().into_iter().map(metric).collect();
    Ok(CaseResult::of(json!({
        "metrics": metrics,
        "run": run,
        "requests": evaluation.counts.requests,
        "messages": conclusion.messages,
        "exit_code": conclusion.code,
    }))?)
}
