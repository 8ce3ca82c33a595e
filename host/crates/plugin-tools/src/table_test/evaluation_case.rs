//! Tests of metrics, checks and codecs.

use std::sync::Arc;

use serde_json::{Value, json};
use veeksha_model::{AnswerPart, Framing, RequestRecord};
use veeksha_ports::PluginSample;

use super::format::TestCase;
use super::run_results::StatedResults;
use super::session_case::{CaseFailure, CaseResult};
use crate::opened::{OpenedPlugin, PluginSettings};

/// Measures the requests of a test, in one batch.
pub(crate) fn metric(
    plugin: &OpenedPlugin,
    settings: &PluginSettings,
    case: &TestCase,
) -> Result<CaseResult, CaseFailure> {
    let records = records(case)?;
    let mut opened = plugin.metric(settings)?.open()?;
    let batch: Vec<&RequestRecord> = records.iter().collect();
    let mut samples = opened.collector.observe(&batch)?;
    samples.extend(opened.collector.finish()?);
    let name = |sample: &PluginSample| {
        let definition = opened.definitions.get(sample.metric as usize);
        definition.map_or(String::new(), |definition| definition.name.clone())
    };
    let sample = |sample: &PluginSample| {
        json!({
            "metric": name(sample),
            "value": sample.value,
            "weight": sample.weight,
            "of": sample.of,
        })
    };
    let definition = |definition: &veeksha_model::MetricDefinition| {
        json!({
            "name": definition.name,
            "unit": definition.unit,
            "better": definition.better.name(),
            "summary": definition.summary,
        })
    };
    let of_metric = |definition: &veeksha_model::MetricDefinition| -> (String, Value) {
        let values: Vec<f64> = samples
            .iter()
            .filter(|sample| name(sample) == definition.name)
            .map(|sample| sample.value)
            .collect();
        (definition.name.clone(), values.into())
    };
    Ok(CaseResult::of(json!({
        "definitions": opened.definitions.iter().map(definition).collect::<Vec<_>>(),
        "samples": samples.iter().map(sample).collect::<Vec<_>>(),
        "values": opened.definitions.iter().map(of_metric).collect::<serde_json::Map<_, _>>(),
    }))?)
}

/// Judges the requests of a test.
pub(crate) fn request_check(
    plugin: &OpenedPlugin,
    settings: &PluginSettings,
    case: &TestCase,
) -> Result<CaseResult, CaseFailure> {
    let records = records(case)?;
    let batch: Vec<&RequestRecord> = records.iter().collect();
    let mut check = plugin.request_check(settings)?.open()?;
    let good = veeksha_ports::judge(check.as_mut(), &batch)?;
    Ok(CaseResult::of(json!({ "good": good }))?)
}

/// Judges the results of a test.
pub(crate) fn slo_check(
    plugin: &OpenedPlugin,
    settings: &PluginSettings,
    case: &TestCase,
) -> Result<CaseResult, CaseFailure> {
    let input = case.results.clone().unwrap_or_default();
    let check = plugin.slo_check(settings)?;
    let verdicts = check.check(Arc::new(StatedResults::new(input)))?;
    let verdict = |verdict: &veeksha_ports::SloVerdict| {
        json!({
            "name": verdict.name,
            "met": verdict.met,
            "observed": verdict.observed,
            "threshold": verdict.threshold,
            "detail": verdict.detail,
        })
    };
    let verdicts: Vec<Value> = verdicts.iter().map(verdict).collect();
    Ok(CaseResult::of(json!({ "verdicts": verdicts }))?)
}

/// Decodes the events of a test.
pub(crate) fn codec(
    plugin: &OpenedPlugin,
    settings: &PluginSettings,
    case: &TestCase,
) -> Result<CaseResult, CaseFailure> {
    let endpoint = plugin.codec(settings)?;
    let events: Vec<&[u8]> = case.events.iter().map(String::as_bytes).collect();
    let parts = endpoint.codec.decode(&events)?;
    let text: String = parts.iter().flatten().filter_map(content).collect();
    let shape = &endpoint.shape;
    let request: Value = serde_json::from_str(&shape.request).unwrap_or_default();
    let parts: Vec<Vec<Value>> = parts
        .iter()
        .map(|parts| parts.iter().map(part_json).collect())
        .collect();
    Ok(CaseResult::of(json!({
        "endpoint": {
            "path": shape.path,
            "headers": shape.headers,
            "request": request,
            "framing": match shape.framing {
                Framing::EventStream => "event-stream",
                Framing::Lines => "lines",
                Framing::Whole => "whole",
            },
        },
        "parts": parts,
        "text": text,
    }))?)
}

fn content(part: &AnswerPart) -> Option<&str> {
    match part {
        AnswerPart::Content(text) => Some(text),
        _ => None,
    }
}

/// Returns a part under the name that the contract gives it.
fn part_json(part: &AnswerPart) -> Value {
    match part {
        AnswerPart::Role => json!("role"),
        AnswerPart::Reasoning(text) => json!({ "reasoning": text }),
        AnswerPart::Content(text) => json!({ "content": text }),
        AnswerPart::Tool {
            index,
            id,
            name,
            arguments,
        } => json!({ "tool": { "index": index, "id": id, "name": name, "arguments": arguments } }),
        AnswerPart::Finish(reason) => json!({ "finish": reason }),
        AnswerPart::Usage(usage) => json!({ "usage": {
            "prompt": usage.prompt,
            "completion": usage.completion,
            "cached": usage.cached,
            "reasoning": usage.reasoning,
        } }),
        AnswerPart::Signature(text) => json!({ "signature": text }),
        AnswerPart::LogProbabilities(tokens) => json!({ "log_probabilities": {
            "logarithms": tokens.logarithms,
            "greedy": tokens.greedy,
        } }),
        AnswerPart::ResponseId(id) => json!({ "response_id": id }),
        AnswerPart::Done => json!("done"),
        AnswerPart::Comment => json!("comment"),
        AnswerPart::Error { message, code } => json!({ "error": { "message": message, "code": code } }),
    }
}

fn records(case: &TestCase) -> Result<Vec<RequestRecord>, CaseFailure> {
    let records = case.requests.iter().enumerate().map(|(index, request)| {
        request
            .record(index)
            .map_err(|why| CaseFailure::Test(format!("requests[{index}]: {why}")))
    });
    records.collect()
}
