//! An event that is not a request's end as a row, and back.

use parquet::{data_type::ByteArray, errors::Result};
use veeksha_events::{DroppedToolRun, Event, FailedPlugin, PluginCall, RunInfo, ThreadSample};
use veeksha_model::{MetricDefinition, MetricSample, Nanos, NodeId, RequestId, SessionId, ToolRunRecord};

use crate::{
    cells::{invalid_cell, name, small, text},
    codes::{better, never_sent_reason, plugin_part, session_end, tool_drop_reason},
    nested_cells::{push_edges, push_labels, read_edges, read_labels},
    tables::{EventColumns, EventRows},
};

/// The cells of a row; what an event does not have stays empty.
#[derive(Default)]
struct EventRow<'a> {
    event: &'static str,
    at: Option<Nanos>,
    session: Option<SessionId>,
    node: Option<NodeId>,
    requests: Option<u32>,
    sessions: Option<u64>,
    digest: Option<u64>,
    intended: Option<Nanos>,
    due: Option<Nanos>,
    reason: Option<&'static str>,
    end: Option<&'static str>,
    thread: Option<&'a str>,
    what: Option<&'a str>,
    begin: Option<Nanos>,
    until: Option<Nanos>,
    span: Option<Nanos>,
    busy: Option<Nanos>,
    waiting: Option<Nanos>,
    by: Option<i64>,
    epoch_wall: Option<u64>,
    epoch_monotonic: Option<u64>,
    metric: Option<&'a str>,
    unit: Option<&'a str>,
    better: Option<&'static str>,
    summary: Option<&'a str>,
    plugin: Option<&'a str>,
    value: Option<f64>,
    weight: Option<f64>,
    good: Option<bool>,
    threshold: Option<f64>,
    run_id: Option<&'a str>,
    tool_run: Option<&'a ToolRunRecord>,
}

impl EventRow<'_> {
    fn new(event: &'static str) -> Self {
        EventRow {
            event,
            ..EventRow::default()
        }
    }

    fn at(event: &'static str, at: Nanos) -> Self {
        EventRow {
            at: Some(at),
            ..EventRow::new(event)
        }
    }

    fn of_request(self, request: RequestId) -> Self {
        EventRow {
            session: Some(request.session),
            node: Some(request.node),
            ..self
        }
    }
}

/// Returns the row of an event. The names are those of `traces/trace.jsonl`.
fn row(event: &Event) -> EventRow<'_> {
    match event {
        Event::RunStarted(info) => EventRow {
            epoch_wall: Some(info.epoch_wall_nanos),
            epoch_monotonic: Some(info.epoch_monotonic_nanos),
            run_id: info.run_id.as_deref(),
            ..EventRow::new("run_started")
        },
        Event::SessionPlanned { session, digest } => EventRow {
            session: Some(*session),
            digest: Some(*digest),
            ..EventRow::new("session_planned")
        },
        Event::PluginCalled(call) => call_row(call),
        Event::SessionStarted {
            session,
            at,
            requests,
        } => EventRow {
            session: Some(*session),
            requests: Some(*requests),
            ..EventRow::at("session_started", *at)
        },
        Event::Dispatched {
            request,
            intended,
            at,
        } => EventRow {
            intended: Some(*intended),
            ..EventRow::at("dispatched", *at).of_request(*request)
        },
        // Finished requests have a separate table.
        Event::Finished(record) => EventRow::at("finished", record.completed_at).of_request(record.id),
        Event::ToolRan(run) => tool_row(run),
        Event::ToolDropped(run) => dropped_tool_row(run),
        Event::NeverSent { request, reason, at } => EventRow {
            reason: Some(reason.name()),
            ..EventRow::at("never_sent", *at).of_request(*request)
        },
        Event::SessionFinished {
            session,
            at,
            end,
            requests,
        } => EventRow {
            session: Some(*session),
            end: Some(end.name()),
            requests: Some(*requests),
            ..EventRow::at("session_finished", *at)
        },
        Event::MetricDefined(definition) => definition_row(definition),
        Event::Sampled(sample) => sample_row(sample),
        Event::Judged {
            plugin,
            request,
            good,
        } => EventRow {
            plugin: Some(plugin),
            good: Some(*good),
            ..EventRow::new("judged").of_request(*request)
        },
        Event::PluginFailed(failed) => failure_row(failed),
        Event::RunJudged {
            plugin,
            name,
            met,
            observed,
            threshold,
            detail,
        } => EventRow {
            plugin: Some(plugin),
            metric: Some(name),
            good: Some(*met),
            value: *observed,
            threshold: Some(*threshold),
            summary: Some(detail),
            ..EventRow::new("run_judged")
        },
        Event::Starved { due, at } => EventRow {
            due: Some(*due),
            ..EventRow::at("starved", *at)
        },
        Event::ThreadSampled(sample) => thread_row(sample),
        Event::ClockStepped { at, by } => EventRow {
            by: Some(*by),
            ..EventRow::at("clock_stepped", *at)
        },
        Event::ArrivalsMissed { sessions, at } => EventRow {
            sessions: Some(*sessions),
            ..EventRow::at("arrivals_missed", *at)
        },
        Event::TimeoutReached { at } => EventRow::at("timeout_reached", *at),
        Event::Interrupted { at } => EventRow::at("interrupted", *at),
        Event::RunEnded { at } => EventRow::at("run_ended", *at),
    }
}

/// Returns the row of a tool run that ended.
fn tool_row(run: &ToolRunRecord) -> EventRow<'_> {
    EventRow {
        what: Some(&run.class),
        intended: Some(run.ready_at),
        begin: Some(run.started_at),
        until: Some(run.completed_at),
        good: Some(!run.failed),
        tool_run: Some(run),
        ..EventRow::at("tool_ran", run.completed_at).of_request(run.id)
    }
}

/// Returns the row of a tool run that did not end.
fn dropped_tool_row(run: &DroppedToolRun) -> EventRow<'_> {
    EventRow {
        what: Some(&run.class),
        intended: run.ready_at,
        reason: Some(run.reason.name()),
        ..EventRow::at("tool_dropped", run.at).of_request(run.id)
    }
}

/// Returns the row of a call of a plugin.
fn call_row(call: &PluginCall) -> EventRow<'_> {
    EventRow {
        thread: Some(&call.thread),
        what: Some(&call.what),
        begin: Some(call.begin),
        until: Some(call.end),
        ..EventRow::new("plugin_called")
    }
}

/// Returns the row of the definition of a metric.
fn definition_row(definition: &MetricDefinition) -> EventRow<'_> {
    EventRow {
        metric: Some(&definition.name),
        unit: Some(&definition.unit),
        better: Some(definition.better.name()),
        summary: Some(&definition.summary),
        plugin: Some(&definition.plugin),
        ..EventRow::new("metric_defined")
    }
}

/// Returns the row of a sample of a metric.
fn sample_row(sample: &MetricSample) -> EventRow<'_> {
    EventRow {
        metric: Some(&sample.metric),
        value: Some(sample.value),
        weight: Some(sample.weight),
        session: sample.request.map(|request| request.session),
        node: sample.request.map(|request| request.node),
        ..EventRow::new("sampled")
    }
}

/// Returns the row of the failure of a plugin.
fn failure_row(failed: &FailedPlugin) -> EventRow<'_> {
    EventRow {
        plugin: Some(&failed.plugin),
        what: Some(failed.part.name()),
        summary: Some(&failed.message),
        session: failed.session,
        at: failed.at,
        ..EventRow::new("plugin_failed")
    }
}

/// Returns the row of a sample of a thread.
fn thread_row(sample: &ThreadSample) -> EventRow<'_> {
    EventRow {
        thread: Some(&sample.thread),
        span: Some(sample.span),
        busy: Some(sample.busy),
        waiting: Some(sample.waiting),
        ..EventRow::at("thread_sampled", sample.at)
    }
}

impl EventColumns {
    /// Appends an event. Numbers of 64 bits keep their bits.
    pub(crate) fn push(&mut self, position: u64, event: &Event) {
        let row = row(event);
        let bits = |number: u64| number as i64;
        self.position.push(bits(position));
        self.event.push(name(row.event));
        self.at_ns.push(row.at.map(bits));
        self.session_id.push(row.session.map(|session| bits(session.0)));
        self.node_id.push(row.node.map(|node| node.0.into()));
        self.requests.push(row.requests.map(i64::from));
        self.sessions.push(row.sessions.map(bits));
        self.digest.push(row.digest.map(bits));
        self.intended_ns.push(row.intended.map(bits));
        self.due_ns.push(row.due.map(bits));
        self.reason.push(row.reason.map(name));
        self.end.push(row.end.map(name));
        self.thread.push(row.thread.map(ByteArray::from));
        self.what.push(row.what.map(ByteArray::from));
        self.begin_ns.push(row.begin.map(bits));
        self.end_ns.push(row.until.map(bits));
        self.span_ns.push(row.span.map(bits));
        self.busy_ns.push(row.busy.map(bits));
        self.waiting_ns.push(row.waiting.map(bits));
        self.by_ns.push(row.by);
        self.epoch_unix_ns.push(row.epoch_wall.map(bits));
        self.epoch_monotonic_ns.push(row.epoch_monotonic.map(bits));
        self.metric.push(row.metric.map(ByteArray::from));
        self.unit.push(row.unit.map(ByteArray::from));
        self.better.push(row.better.map(name));
        self.summary.push(row.summary.map(ByteArray::from));
        self.plugin.push(row.plugin.map(ByteArray::from));
        self.value.push(row.value);
        self.weight.push(row.weight);
        self.good.push(row.good);
        self.threshold.push(row.threshold);
        self.run_id.push(row.run_id.map(ByteArray::from));
        self.push_tool_run(row.tool_run);
    }
}

impl EventColumns {
    fn push_tool_run(&mut self, run: Option<&ToolRunRecord>) {
        self.result_tokens.push(run.map(|run| run.result_tokens.into()));
        self.cold.push(run.map(|run| run.is_cold));
        self.measured.push(run.map(|run| run.measured));
        push_edges(
            run.map_or(&[], |run| &run.parents),
            &mut self.parents,
            &mut self.parent_triggers,
            &mut self.parent_delays_ns,
        );
        push_labels(
            run.map_or(&[], |run| &run.labels),
            &mut self.label_names,
            &mut self.label_values,
        );
    }
}

/// A cell that this kind of event has.
fn required_cell<'a, T>(column: &str, cell: Option<&'a T>) -> Result<&'a T> {
    cell.ok_or_else(|| invalid_cell(column, "nothing"))
}

fn number(column: &str, cell: Option<&i64>) -> Result<u64> {
    Ok(*required_cell(column, cell)? as u64)
}

fn words(column: &str, cell: Option<&ByteArray>) -> Result<String> {
    Ok(text(column, required_cell(column, cell)?)?.to_owned())
}

fn optional_words(column: &str, cell: Option<&ByteArray>) -> Result<Option<String>> {
    cell.map(|cell| Ok(text(column, cell)?.to_owned())).transpose()
}

fn known<T>(column: &str, cell: Option<&ByteArray>, find: fn(&str) -> Option<T>) -> Result<T> {
    let name = text(column, required_cell(column, cell)?)?;
    find(name).ok_or_else(|| invalid_cell(column, name))
}

impl EventRows {
    /// The event of a row. The texts of samples and judgements, of which there can be as many as
    /// requests, take the place of those in `event` where that is of the same kind.
    pub(crate) fn read(&self, row: usize, event: &mut Event) -> Result<()> {
        match (text("event", self.event.get(row))?, &mut *event) {
            ("sampled", Event::Sampled(sample)) => {
                let metric = text("metric", required_cell("metric", self.metric.get(row))?)?;
                sample.metric.clear();
                sample.metric.push_str(metric);
                self.read_sample(row, sample)
            }
            (
                "judged",
                Event::Judged {
                    plugin,
                    request,
                    good,
                },
            ) => {
                let name = text("plugin", required_cell("plugin", self.plugin.get(row))?)?;
                plugin.clear();
                plugin.push_str(name);
                *request = self.request(row)?;
                *good = *required_cell("good", self.good.get(row))?;
                Ok(())
            }
            (name, _) => {
                *event = self.event(row, name)?;
                Ok(())
            }
        }
    }

    fn at(&self, row: usize) -> Result<Nanos> {
        number("at_ns", self.at_ns.get(row))
    }

    fn session(&self, row: usize) -> Result<SessionId> {
        Ok(SessionId(number("session_id", self.session_id.get(row))?))
    }

    fn request(&self, row: usize) -> Result<RequestId> {
        Ok(RequestId {
            session: self.session(row)?,
            node: NodeId(small(
                "node_id",
                *required_cell("node_id", self.node_id.get(row))?,
            )?),
        })
    }

    fn requests(&self, row: usize) -> Result<u32> {
        small("requests", *required_cell("requests", self.requests.get(row))?)
    }

    /// All of a sample but its metric.
    fn read_sample(&self, row: usize, sample: &mut MetricSample) -> Result<()> {
        sample.value = *required_cell("value", self.value.get(row))?;
        sample.weight = *required_cell("weight", self.weight.get(row))?;
        sample.request = match self.session_id.get(row) {
            Some(_) => Some(self.request(row)?),
            None => None,
        };
        Ok(())
    }

    fn tool_run(&self, row: usize) -> Result<ToolRunRecord> {
        let (mut parents, mut labels) = (Vec::new(), Vec::new());
        read_edges(
            row,
            &self.parents,
            &self.parent_triggers,
            &self.parent_delays_ns,
            &mut parents,
        )?;
        read_labels(row, &self.label_names, &self.label_values, &mut labels)?;
        let tokens = required_cell("result_tokens", self.result_tokens.get(row))?;
        Ok(ToolRunRecord {
            id: self.request(row)?,
            class: words("what", self.what.get(row))?.into(),
            parents,
            ready_at: number("intended_ns", self.intended_ns.get(row))?,
            started_at: number("begin_ns", self.begin_ns.get(row))?,
            completed_at: number("end_ns", self.end_ns.get(row))?,
            is_cold: *required_cell("cold", self.cold.get(row))?,
            failed: !*required_cell("good", self.good.get(row))?,
            result_tokens: small("result_tokens", *tokens)?,
            measured: *required_cell("measured", self.measured.get(row))?,
            labels: labels.into(),
        })
    }

    fn dropped_tool_run(&self, row: usize) -> Result<DroppedToolRun> {
        Ok(DroppedToolRun {
            id: self.request(row)?,
            class: words("what", self.what.get(row))?.into(),
            ready_at: self.intended_ns.get(row).map(|&at| at as u64),
            reason: known("reason", self.reason.get(row), tool_drop_reason)?,
            at: self.at(row)?,
        })
    }

    fn event(&self, row: usize, name: &str) -> Result<Event> {
        Ok(match name {
            "tool_ran" => Event::ToolRan(Box::new(self.tool_run(row)?)),
            "tool_dropped" => Event::ToolDropped(Box::new(self.dropped_tool_run(row)?)),
            "dispatched" => Event::Dispatched {
                request: self.request(row)?,
                intended: number("intended_ns", self.intended_ns.get(row))?,
                at: self.at(row)?,
            },
            "session_planned" => Event::SessionPlanned {
                session: self.session(row)?,
                digest: number("digest", self.digest.get(row))?,
            },
            "session_started" => Event::SessionStarted {
                session: self.session(row)?,
                at: self.at(row)?,
                requests: self.requests(row)?,
            },
            "session_finished" => Event::SessionFinished {
                session: self.session(row)?,
                at: self.at(row)?,
                end: known("end", self.end.get(row), session_end)?,
                requests: self.requests(row)?,
            },
            "never_sent" => Event::NeverSent {
                request: self.request(row)?,
                reason: known("reason", self.reason.get(row), never_sent_reason)?,
                at: self.at(row)?,
            },
            "sampled" => {
                let mut sample = MetricSample {
                    metric: words("metric", self.metric.get(row))?,
                    value: 0.0,
                    weight: 0.0,
                    request: None,
                };
                self.read_sample(row, &mut sample)?;
                Event::Sampled(sample)
            }
            "judged" => Event::Judged {
                plugin: words("plugin", self.plugin.get(row))?,
                request: self.request(row)?,
                good: *required_cell("good", self.good.get(row))?,
            },
            "run_judged" => Event::RunJudged {
                plugin: words("plugin", self.plugin.get(row))?,
                name: words("metric", self.metric.get(row))?,
                met: *required_cell("good", self.good.get(row))?,
                observed: self.value.get(row).copied(),
                threshold: *required_cell("threshold", self.threshold.get(row))?,
                detail: words("summary", self.summary.get(row))?,
            },
            "plugin_failed" => Event::PluginFailed(FailedPlugin {
                plugin: words("plugin", self.plugin.get(row))?,
                part: known("what", self.what.get(row), plugin_part)?,
                message: words("summary", self.summary.get(row))?,
                session: self.session_id.get(row).map(|&session| SessionId(session as u64)),
                at: self.at_ns.get(row).map(|&at| at as u64),
            }),
            "plugin_called" => Event::PluginCalled(PluginCall {
                thread: words("thread", self.thread.get(row))?,
                what: words("what", self.what.get(row))?,
                begin: number("begin_ns", self.begin_ns.get(row))?,
                end: number("end_ns", self.end_ns.get(row))?,
            }),
            "thread_sampled" => Event::ThreadSampled(ThreadSample {
                thread: words("thread", self.thread.get(row))?,
                at: self.at(row)?,
                span: number("span_ns", self.span_ns.get(row))?,
                busy: number("busy_ns", self.busy_ns.get(row))?,
                waiting: number("waiting_ns", self.waiting_ns.get(row))?,
            }),
            "metric_defined" => Event::MetricDefined(MetricDefinition {
                name: words("metric", self.metric.get(row))?,
                unit: words("unit", self.unit.get(row))?,
                better: known("better", self.better.get(row), better)?,
                summary: words("summary", self.summary.get(row))?,
                plugin: words("plugin", self.plugin.get(row))?,
            }),
            "starved" => Event::Starved {
                due: number("due_ns", self.due_ns.get(row))?,
                at: self.at(row)?,
            },
            "run_started" => Event::RunStarted(RunInfo {
                epoch_wall_nanos: number("epoch_unix_ns", self.epoch_unix_ns.get(row))?,
                epoch_monotonic_nanos: number("epoch_monotonic_ns", self.epoch_monotonic_ns.get(row))?,
                run_id: optional_words("run_id", self.run_id.get(row))?,
            }),
            "clock_stepped" => Event::ClockStepped {
                at: self.at(row)?,
                by: *required_cell("by_ns", self.by_ns.get(row))?,
            },
            "arrivals_missed" => Event::ArrivalsMissed {
                sessions: number("sessions", self.sessions.get(row))?,
                at: self.at(row)?,
            },
            "timeout_reached" => Event::TimeoutReached { at: self.at(row)? },
            "interrupted" => Event::Interrupted { at: self.at(row)? },
            "run_ended" => Event::RunEnded { at: self.at(row)? },
            unknown => return Err(invalid_cell("event", unknown)),
        })
    }
}
