//! Conformance of metrics, checks and codecs.

use std::sync::Arc;

use veeksha_model::{NodeId, RequestId, RequestRecord, SessionId, Status};
use veeksha_ports::{MetricFactory, PluginFailure, PluginFailureKind, PluginSample, RequestCheckFactory};

use super::report::ConformReport;
use crate::opened::{OpenedPlugin, PluginSettings};
use crate::table_test::{RequestInput, ResultsInput, StatedResults};

/// Finished requests that are measured.
const REQUESTS: usize = 24;

/// Returns finished requests of different lengths; every fourth failed.
fn records() -> Vec<RequestRecord> {
    let record = |index: usize| {
        let input = RequestInput {
            at: index as f64,
            ttfc: Some(0.1 + 0.01 * index as f64),
            gap: Some(0.02),
            output_tokens: Some(4 + index as u32),
            prompt_tokens: 100,
            labels: [("tier".to_owned(), "gold".to_owned())].into(),
            ..RequestInput::default()
        };
        let mut record = input.record(index).unwrap_or_else(|_| {
            RequestRecord::answered(RequestId {
                session: SessionId(index as u64),
                node: NodeId(0),
            })
        });
        if index % 4 == 3 {
            record.status = Status::Failed {
                class: veeksha_model::ErrorClass::Timeout,
                message: "timed out".to_owned(),
            };
        }
        record
    };
    (0..REQUESTS).map(record).collect()
}

/// Checks a metric: its samples do not depend on the division into batches.
pub(super) fn metric(plugin: &OpenedPlugin, settings: &PluginSettings, report: &mut ConformReport) {
    let Ok(factory) = plugin.metric(settings) else {
        return;
    };
    let records = records();
    let compared = measured(factory.as_ref(), &records, REQUESTS).and_then(|whole| {
        for size in [1, 5] {
            if measured(factory.as_ref(), &records, size)? != whole {
                return Err(PluginFailure::new(
                    plugin.name(),
                    "collector.observe",
                    PluginFailureKind::Result,
                    format!("the samples differ if the requests come in batches of {size}"),
                ));
            }
        }
        Ok(())
    });
    report.add("metric: the same samples in batches of any size", compared);
    let empty = factory.open().and_then(|mut opened| {
        opened.collector.observe(&[])?;
        opened.collector.finish()
    });
    report.add("metric: an empty run", empty.map(drop));
}

/// Returns the samples of all requests, with the positions of their requests in the whole list.
fn measured(
    factory: &dyn MetricFactory,
    records: &[RequestRecord],
    size: usize,
) -> Result<Vec<PluginSample>, PluginFailure> {
    let mut opened = factory.open()?;
    let mut samples = Vec::new();
    for (index, chunk) in records.chunks(size).enumerate() {
        let batch: Vec<&RequestRecord> = chunk.iter().collect();
        let offset = (index * size) as u32;
        let observed = opened.collector.observe(&batch)?;
        samples.extend(observed.into_iter().map(|sample| PluginSample {
            of: sample.of.map(|of| of + offset),
            ..sample
        }));
    }
    samples.extend(opened.collector.finish()?);
    Ok(samples)
}

/// Checks a request check: its answers depend on the request alone.
pub(super) fn request_check(plugin: &OpenedPlugin, settings: &PluginSettings, report: &mut ConformReport) {
    let Ok(factory) = plugin.request_check(settings) else {
        return;
    };
    let records = records();
    let compared = judged(factory.as_ref(), records.iter().collect()).and_then(|forward| {
        let mut backward = Vec::new();
        for record in records.iter().rev() {
            backward.extend(judged(factory.as_ref(), vec![record])?);
        }
        backward.reverse();
        if backward == forward {
            return Ok(());
        }
        Err(PluginFailure::new(
            plugin.name(),
            "checker.judge",
            PluginFailureKind::Result,
            "the answers depend on the other requests",
        ))
    });
    report.add("request-check: the same answers in any order and batch", compared);
}

fn judged(factory: &dyn RequestCheckFactory, batch: Vec<&RequestRecord>) -> Result<Vec<bool>, PluginFailure> {
    veeksha_ports::judge(factory.open()?.as_mut(), &batch)
}

/// Checks an SLO check: it judges a run without samples, twice in the same way.
pub(super) fn slo_check(plugin: &OpenedPlugin, settings: &PluginSettings, report: &mut ConformReport) {
    let Ok(check) = plugin.slo_check(settings) else {
        return;
    };
    let results = || Arc::new(StatedResults::new(ResultsInput::default()));
    let compared = check.check(results()).and_then(|first| {
        if check.check(results())? == first {
            return Ok(());
        }
        Err(PluginFailure::new(
            plugin.name(),
            "checker.check",
            PluginFailureKind::Result,
            "the verdicts on the same results differ",
        ))
    });
    report.add("slo-check: the same verdicts on a run without samples", compared);
}

/// Checks a codec: the parts of an event do not depend on its neighbors, and damaged events are
/// refused without a trap.
pub(super) fn codec(plugin: &OpenedPlugin, settings: &PluginSettings, report: &mut ConformReport) {
    let Ok(endpoint) = plugin.codec(settings) else {
        return;
    };
    let events: [&[u8]; 6] = [
        b"{}",
        b"[DONE]",
        b"",
        b"{\"a\":",
        b"\xff\xfe",
        b"[1, null, \"x\"]",
    ];
    let mut understood = Vec::new();
    let alone = events
        .iter()
        .try_for_each(|event| match endpoint.codec.decode(&[event]) {
            Ok(mut parts) => {
                understood.push((*event, parts.pop().unwrap_or_default()));
                Ok(())
            }
            Err(failure) if matches!(failure.kind, PluginFailureKind::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        });
    report.add("endpoint-codec: events that are not of the API", alone);
    let together: Vec<&[u8]> = understood.iter().map(|(event, _)| *event).collect();
    let compared = endpoint.codec.decode(&together).and_then(|parts| {
        let single: Vec<_> = understood.iter().map(|(_, parts)| parts.clone()).collect();
        if parts == single {
            return Ok(());
        }
        Err(PluginFailure::new(
            plugin.name(),
            "codec.decode",
            PluginFailureKind::Result,
            "the parts of an event depend on the events before it",
        ))
    });
    report.add(
        "endpoint-codec: the same parts for any division of events",
        compared,
    );
}
