//! Feeds finished requests to metric plugins and request checks in batches, and makes events of what they say.

use std::sync::Arc;

use veeksha_clock::RunClock;
use veeksha_events::{Event, PluginCall, PluginPart, RequestRecord};
use veeksha_model::{MetricDefinition, MetricSample, RequestId};
use veeksha_ports::{MetricCollector, PluginFailure, PluginSample, RequestCheck};

use crate::judges::of_run::failed;
use crate::judges::open::Judges;

/// Requests of one call, at most: from some 64 on a call's own cost no longer counts, and a batch is what a failure is looked for in.
const BATCH: usize = 64;

/// Opened plugins, and the requests that they have not seen yet. One thread owns it.
pub(crate) struct Observer {
    metrics: Vec<OpenedMetric>,
    checks: Vec<OpenedCheck>,
    waiting: Vec<Arc<Event>>,
    failures: Vec<PluginFailure>,
    /// Whose time the calls are told in, if they are told.
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

impl Observer {
    /// Opens every plugin, on the thread that will use it. `said` is given what the plugins define.
    ///
    /// # Errors
    /// If one cannot be opened: nothing is measured without it.
    pub(crate) fn open(judges: &Judges, mut said: impl FnMut(Event)) -> Result<Self, PluginFailure> {
        let mut metrics = Vec::new();
        for factory in &judges.metrics {
            let opened = factory.open()?;
            for definition in &opened.definitions {
                said(Event::MetricDefined(definition.clone()));
            }
            metrics.push(OpenedMetric {
                plugin: factory.info().name.clone(),
                definitions: opened.definitions,
                collector: opened.collector,
            });
        }
        let mut checks = Vec::new();
        for factory in &judges.request_checks {
            checks.push(OpenedCheck {
                plugin: factory.info().name.clone(),
                check: factory.open()?,
            });
        }
        Ok(Observer {
            metrics,
            checks,
            waiting: Vec::new(),
            failures: Vec::new(),
            clock: None,
        })
    }

    /// Has the plugins' calls told as events, on this clock.
    pub(crate) fn timed(mut self, clock: RunClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Takes the next event; what is no finished request is ignored. `said` is given what the plugins make of a full batch.
    pub(crate) fn take(&mut self, event: &Arc<Event>, said: &mut dyn FnMut(Event)) {
        if matches!(**event, Event::Finished(_)) {
            self.waiting.push(Arc::clone(event));
        }
        if self.waiting.len() >= BATCH {
            self.flush(said);
        }
    }

    /// Shows the plugins what is waiting, however little it is.
    pub(crate) fn flush(&mut self, said: &mut dyn FnMut(Event)) {
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
        // A plugin that failed is not asked again: what it had in mind is lost.
        self.metrics.retain_mut(|metric| {
            let observed = metric.collector.observe(&batch);
            match heard(observed, PluginPart::Metric, failures, said) {
                Some(samples) => metric.tell(samples, &batch, said),
                None => return false,
            }
            true
        });
        self.checks.retain_mut(|check| {
            let judged = veeksha_ports::judge(check.check.as_mut(), &batch);
            match heard(judged, PluginPart::RequestCheck, failures, said) {
                Some(judged) => check.tell(&judged, &batch, said),
                None => return false,
            }
            true
        });
        if let (Some(begin), Some(clock)) = (begin, self.clock) {
            said(Event::PluginCalled(PluginCall {
                thread: super::thread::NAME.to_owned(),
                what: format!("{} requests", batch.len()),
                begin,
                end: clock.now(),
            }));
        }
    }

    /// Shows the plugins the rest, asks them for their last samples, and gives back what went wrong.
    pub(crate) fn finish(mut self, said: &mut dyn FnMut(Event)) -> Vec<PluginFailure> {
        self.flush(said);
        let failures = &mut self.failures;
        for metric in &mut self.metrics {
            let last = metric.collector.finish();
            if let Some(samples) = heard(last, PluginPart::Metric, failures, said) {
                metric.tell(samples, &[], said);
            }
        }
        self.failures
    }
}

/// What a plugin said; `None` if it failed, which is told.
fn heard<T>(
    answer: Result<T, PluginFailure>,
    part: PluginPart,
    failures: &mut Vec<PluginFailure>,
    said: &mut dyn FnMut(Event),
) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(failure) => {
            said(Event::PluginFailed(failed(&failure, part)));
            failures.push(failure);
            None
        }
    }
}

impl OpenedMetric {
    fn tell(&self, samples: Vec<PluginSample>, batch: &[&RequestRecord], said: &mut dyn FnMut(Event)) {
        for sample in samples {
            // The engines have checked both places.
            let Some(definition) = self.definitions.get(sample.metric as usize) else {
                continue;
            };
            let request: Option<RequestId> = sample
                .of
                .and_then(|of| batch.get(of as usize))
                .map(|record| record.id);
            said(Event::Sampled(MetricSample {
                metric: definition.name.clone(),
                value: sample.value,
                weight: sample.weight,
                request,
            }));
        }
    }
}

impl OpenedCheck {
    fn tell(&self, judged: &[bool], batch: &[&RequestRecord], said: &mut dyn FnMut(Event)) {
        // Of one that failed there is nothing to say: it is not good, and no check was asked.
        for (record, good) in batch.iter().zip(judged).filter(|(record, _)| record.is_ok()) {
            said(Event::Judged {
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
