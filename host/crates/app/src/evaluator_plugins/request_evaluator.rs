//! Calls of metric plugins and request checks with batches of finished requests, and conversion of
//! their results to events.

use std::sync::Arc;

use veeksha_clock::RunClock;
use veeksha_events::{Event, PluginCall, PluginRole, RequestRecord};
use veeksha_model::{MetricDefinition, MetricSample, RequestId};
use veeksha_ports::{MetricCollector, PluginFailure, PluginSample, RequestCheck};

use crate::evaluator_plugins::open::EvaluatorPlugins;
use crate::evaluator_plugins::slo_checks::failed_plugin;

/// Name of the thread that calls the plugins, also in the record.
pub(super) const THREAD: &str = "metrics-0";

/// Maximum number of requests per call. From about 64 on the cost of the call itself is negligible,
/// and a small batch narrows down the request that made a plugin fail.
const BATCH: usize = 64;

/// Opened plugins, and the requests that they have not received yet. Owned by one thread.
pub(crate) struct RequestEvaluator {
    metrics: Vec<OpenedMetric>,
    checks: Vec<OpenedCheck>,
    waiting: Vec<Arc<Event>>,
    failures: Vec<PluginFailure>,
    /// Clock of the run; calls are recorded once it is known.
    clock: Option<RunClock>,
}

struct OpenedMetric {
    plugin: String,
    definitions: Vec<MetricDefinition>,
    collector: Box<dyn MetricCollector>,
}

struct OpenedCheck {
    plugin: String,
    check: Box<dyn RequestCheck>,
}

impl RequestEvaluator {
    /// Opens every plugin, on the thread that will use it. Metric definitions go to `emit`.
    ///
    /// # Errors
    /// If a plugin cannot be opened; the run does not start without it.
    pub(crate) fn open(
        plugins: &EvaluatorPlugins,
        mut emit: impl FnMut(Event),
    ) -> Result<Self, PluginFailure> {
        let mut metrics = Vec::new();
        for factory in &plugins.metrics {
            let opened = factory.open()?;
            for definition in &opened.definitions {
                emit(Event::MetricDefined(definition.clone()));
            }
            metrics.push(OpenedMetric {
                plugin: factory.info().name.clone(),
                definitions: opened.definitions,
                collector: opened.collector,
            });
        }
        let mut checks = Vec::new();
        for factory in &plugins.request_checks {
            checks.push(OpenedCheck {
                plugin: factory.info().name.clone(),
                check: factory.open()?,
            });
        }
        Ok(RequestEvaluator {
            metrics,
            checks,
            waiting: Vec::new(),
            failures: Vec::new(),
            clock: None,
        })
    }

    /// Emits an event for each call from now on, with times of this clock.
    pub(crate) fn timed(mut self, clock: RunClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Adds a finished request to the batch; other events are ignored. A full batch is evaluated.
    pub(crate) fn take(&mut self, event: &Arc<Event>, emit: &mut dyn FnMut(Event)) {
        if matches!(**event, Event::Finished(_)) {
            self.waiting.push(Arc::clone(event));
        }
        if self.waiting.len() >= BATCH {
            self.flush(emit);
        }
    }

    /// Evaluates the waiting requests, even if the batch is not full.
    pub(crate) fn flush(&mut self, emit: &mut dyn FnMut(Event)) {
        let waiting = std::mem::take(&mut self.waiting);
        let batch: Vec<&RequestRecord> = waiting
            .iter()
            .filter_map(|event| match &**event {
                Event::Finished(record) => Some(&**record),
                _ => None,
            })
            .collect();
        if batch.is_empty() {
            return;
        }
        let begin = self.clock.map(|clock| clock.now());
        let failures = &mut self.failures;
        // A plugin that failed is not called again, because its state is lost.
        self.metrics.retain_mut(|metric| {
            let observed = metric.collector.observe(&batch);
            match unwrap_call(observed, PluginRole::Metric, failures, emit) {
                Some(samples) => metric.emit_samples(samples, &batch, emit),
                None => return false,
            }
            true
        });
        self.checks.retain_mut(|check| {
            let judged = veeksha_ports::judge(check.check.as_mut(), &batch);
            match unwrap_call(judged, PluginRole::RequestCheck, failures, emit) {
                Some(judged) => check.emit_judgements(&judged, &batch, emit),
                None => return false,
            }
            true
        });
        if let (Some(begin), Some(clock)) = (begin, self.clock) {
            emit(Event::PluginCalled(PluginCall {
                thread: THREAD.to_owned(),
                what: format!("{} requests", batch.len()),
                begin,
                end: clock.now(),
            }));
        }
    }

    /// Evaluates the remaining requests and collects the last samples. Returns the failures of all
    /// plugins.
    pub(crate) fn finish(mut self, emit: &mut dyn FnMut(Event)) -> Vec<PluginFailure> {
        self.flush(emit);
        let failures = &mut self.failures;
        for metric in &mut self.metrics {
            let last = metric.collector.finish();
            if let Some(samples) = unwrap_call(last, PluginRole::Metric, failures, emit) {
                metric.emit_samples(samples, &[], emit);
            }
        }
        self.failures
    }
}

/// Unwraps the result of a call; a failure becomes an event and is kept.
fn unwrap_call<T>(
    answer: Result<T, PluginFailure>,
    part: PluginRole,
    failures: &mut Vec<PluginFailure>,
    emit: &mut dyn FnMut(Event),
) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(failure) => {
            emit(Event::PluginFailed(failed_plugin(&failure, part)));
            failures.push(failure);
            None
        }
    }
}

impl OpenedMetric {
    fn emit_samples(
        &self,
        samples: Vec<PluginSample>,
        batch: &[&RequestRecord],
        emit: &mut dyn FnMut(Event),
    ) {
        for sample in samples {
            // The plugin engines have validated both indexes.
            let Some(definition) = self.definitions.get(sample.metric as usize) else {
                continue;
            };
            let request: Option<RequestId> = sample
                .of
                .and_then(|of| batch.get(of as usize))
                .map(|record| record.id);
            emit(Event::Sampled(MetricSample {
                metric: definition.name.clone(),
                value: sample.value,
                weight: sample.weight,
                request,
            }));
        }
    }
}

impl OpenedCheck {
    fn emit_judgements(&self, judged: &[bool], batch: &[&RequestRecord], emit: &mut dyn FnMut(Event)) {
        // A failed request is never good, and no check was called for it.
        for (record, good) in batch.iter().zip(judged).filter(|(record, _)| record.is_ok()) {
            emit(Event::Judged {
                plugin: self.plugin.clone(),
                request: record.id,
                good: *good,
            });
        }
    }
}

impl std::fmt::Debug for OpenedMetric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedMetric")
            .field("plugin", &self.plugin)
            .finish()
    }
}
