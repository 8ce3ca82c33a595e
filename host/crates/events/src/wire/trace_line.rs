//! The lines of `traces/trace.jsonl`.

use serde::Serialize;
use veeksha_model::{MetricDefinition, MetricSample, RequestRecord, ToolRunRecord, seconds};

use crate::dropped_tool_run::DroppedToolRun;
use crate::event::{Event, FailedPlugin, PluginCall, ThreadSample};

/// An event as a JSON object; `event` is its kind.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum TraceLine<'a> {
    RunStarted {
        epoch_unix: f64,
        epoch_monotonic: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        run_id: Option<&'a str>,
    },
    SessionPlanned {
        session_id: u64,
        digest: String,
    },
    PluginCalled {
        thread: &'a str,
        what: &'a str,
        begin: f64,
        end: f64,
    },
    MetricDefined {
        metric: &'a str,
        unit: &'a str,
        better: &'static str,
        summary: &'a str,
        plugin: &'a str,
    },
    Sampled {
        metric: &'a str,
        value: f64,
        weight: f64,
        request_id: Option<String>,
    },
    Judged {
        plugin: &'a str,
        request_id: String,
        good: bool,
    },
    PluginFailed {
        plugin: &'a str,
        part: &'static str,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<f64>,
    },
    RunJudged {
        plugin: &'a str,
        name: &'a str,
        met: bool,
        observed: Option<f64>,
        threshold: f64,
        detail: &'a str,
    },
    SessionStarted {
        session_id: u64,
        at: f64,
        requests: u32,
    },
    Dispatched {
        request_id: String,
        session_id: u64,
        node_id: u32,
        intended: f64,
        dispatched_at: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
    },
    Finished {
        request_id: String,
        session_id: u64,
        node_id: u32,
        at: f64,
        success: bool,
        parents: Vec<u32>,
        history_parent: Option<u32>,
        wait_after_ready: f64,
        session_total_requests: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
    },
    ToolRan {
        session_id: u64,
        node_id: u32,
        tool: &'a str,
        at: f64,
        ready_at: f64,
        started_at: f64,
        cold: bool,
        success: bool,
        result_tokens: u32,
        parents: Vec<u32>,
    },
    ToolDropped {
        session_id: u64,
        node_id: u32,
        tool: &'a str,
        at: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        ready_at: Option<f64>,
        reason: &'a str,
    },
    NeverSent {
        request_id: String,
        session_id: u64,
        node_id: u32,
        at: f64,
        reason: &'a str,
    },
    SessionFinished {
        session_id: u64,
        at: f64,
        end: &'a str,
        requests: u32,
    },
    Starved {
        due: f64,
        at: f64,
    },
    ArrivalsMissed {
        sessions: u64,
        at: f64,
    },
    ThreadSampled {
        thread: &'a str,
        at: f64,
        span: f64,
        busy: f64,
        waiting: f64,
    },
    ClockStepped {
        at: f64,
        by: f64,
    },
    TimeoutReached {
        at: f64,
    },
    Interrupted {
        at: f64,
    },
    RunEnded {
        at: f64,
    },
}

/// Appends the line of `traces/trace.jsonl` for an event, without the newline. `content` is the
/// text sent ([`Event::Dispatched`]) or received ([`Event::Finished`]) if the run records it; it is
/// ignored for other events.
pub fn trace_line(line: &mut Vec<u8>, event: &Event, content: Option<&str>) -> serde_json::Result<()> {
    serde_json::to_writer(line, &TraceLine::of(event, content))
}

impl<'a> TraceLine<'a> {
    fn of(event: &'a Event, content: Option<&'a str>) -> Self {
        match event {
            Event::RunStarted(info) => TraceLine::RunStarted {
                epoch_unix: seconds(info.epoch_wall_nanos),
                epoch_monotonic: seconds(info.epoch_monotonic_nanos),
                run_id: info.run_id.as_deref(),
            },
            Event::SessionPlanned { session, digest } => TraceLine::SessionPlanned {
                session_id: session.0,
                digest: format!("{digest:016x}"),
            },
            Event::PluginCalled(call) => TraceLine::plugin_called(call),
            Event::MetricDefined(definition) => TraceLine::metric_defined(definition),
            Event::Sampled(sample) => TraceLine::sampled(sample),
            Event::Judged {
                plugin,
                request,
                good,
            } => TraceLine::Judged {
                plugin,
                request_id: request.to_string(),
                good: *good,
            },
            Event::PluginFailed(failed) => TraceLine::plugin_failed(failed),
            Event::RunJudged {
                plugin,
                name,
                met,
                observed,
                threshold,
                detail,
            } => TraceLine::RunJudged {
                plugin,
                name,
                met: *met,
                observed: *observed,
                threshold: *threshold,
                detail,
            },
            Event::SessionStarted {
                session,
                at,
                requests,
            } => TraceLine::SessionStarted {
                session_id: session.0,
                at: seconds(*at),
                requests: *requests,
            },
            Event::Dispatched {
                request,
                intended,
                at,
            } => TraceLine::Dispatched {
                request_id: request.to_string(),
                session_id: request.session.0,
                node_id: request.node.0,
                intended: seconds(*intended),
                dispatched_at: seconds(*at),
                content,
            },
            Event::Finished(record) => TraceLine::finished(record, content),
            Event::ToolRan(run) => TraceLine::tool_ran(run),
            Event::ToolDropped(run) => TraceLine::tool_dropped(run),
            Event::NeverSent { request, reason, at } => TraceLine::NeverSent {
                request_id: request.to_string(),
                session_id: request.session.0,
                node_id: request.node.0,
                at: seconds(*at),
                reason: reason.name(),
            },
            Event::SessionFinished {
                session,
                at,
                end,
                requests,
            } => TraceLine::SessionFinished {
                session_id: session.0,
                at: seconds(*at),
                end: end.name(),
                requests: *requests,
            },
            Event::Starved { due, at } => TraceLine::Starved {
                due: seconds(*due),
                at: seconds(*at),
            },
            Event::ArrivalsMissed { sessions, at } => TraceLine::ArrivalsMissed {
                sessions: *sessions,
                at: seconds(*at),
            },
            Event::ThreadSampled(sample) => TraceLine::thread_sampled(sample),
            Event::ClockStepped { at, by } => TraceLine::ClockStepped {
                at: seconds(*at),
                by: *by as f64 / 1e9,
            },
            Event::TimeoutReached { at } => TraceLine::TimeoutReached { at: seconds(*at) },
            Event::Interrupted { at } => TraceLine::Interrupted { at: seconds(*at) },
            Event::RunEnded { at } => TraceLine::RunEnded { at: seconds(*at) },
        }
    }

    fn plugin_called(call: &'a PluginCall) -> Self {
        TraceLine::PluginCalled {
            thread: &call.thread,
            what: &call.what,
            begin: seconds(call.begin),
            end: seconds(call.end),
        }
    }

    fn metric_defined(definition: &'a MetricDefinition) -> Self {
        TraceLine::MetricDefined {
            metric: &definition.name,
            unit: &definition.unit,
            better: definition.better.name(),
            summary: &definition.summary,
            plugin: &definition.plugin,
        }
    }

    fn sampled(sample: &'a MetricSample) -> Self {
        TraceLine::Sampled {
            metric: &sample.metric,
            value: sample.value,
            weight: sample.weight,
            request_id: sample.request.map(|request| request.to_string()),
        }
    }

    fn plugin_failed(failed: &'a FailedPlugin) -> Self {
        TraceLine::PluginFailed {
            plugin: &failed.plugin,
            part: failed.part.name(),
            message: &failed.message,
            session_id: failed.session.map(|session| session.0),
            at: failed.at.map(seconds),
        }
    }

    fn finished(record: &RequestRecord, content: Option<&'a str>) -> Self {
        TraceLine::Finished {
            request_id: record.id.to_string(),
            session_id: record.id.session.0,
            node_id: record.id.node.0,
            at: seconds(record.completed_at),
            success: record.is_ok(),
            parents: record.parents.iter().map(|edge| edge.parent.0).collect(),
            history_parent: record.history_parent.map(|parent| parent.0),
            wait_after_ready: seconds(record.wait_after_ready),
            session_total_requests: record.session_requests,
            content,
        }
    }

    fn tool_dropped(run: &'a DroppedToolRun) -> Self {
        TraceLine::ToolDropped {
            session_id: run.id.session.0,
            node_id: run.id.node.0,
            tool: &run.class,
            at: seconds(run.at),
            ready_at: run.ready_at.map(seconds),
            reason: run.reason.name(),
        }
    }

    fn tool_ran(run: &'a ToolRunRecord) -> Self {
        TraceLine::ToolRan {
            session_id: run.id.session.0,
            node_id: run.id.node.0,
            tool: &run.class,
            at: seconds(run.completed_at),
            ready_at: seconds(run.ready_at),
            started_at: seconds(run.started_at),
            cold: run.is_cold,
            success: !run.failed,
            result_tokens: run.result_tokens,
            parents: run.parents.iter().map(|edge| edge.parent.0).collect(),
        }
    }

    fn thread_sampled(sample: &'a ThreadSample) -> Self {
        TraceLine::ThreadSampled {
            thread: &sample.thread,
            at: seconds(sample.at),
            span: seconds(sample.span),
            busy: seconds(sample.busy),
            waiting: seconds(sample.waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        FailedPlugin, NeverSentReason, PluginRole, RunInfo, SessionEnd, ThreadSample, wire::sample::record,
    };

    fn trace_line_of(event: &Event, content: Option<&str>) -> String {
        let mut line = Vec::new();
        trace_line(&mut line, event, content).unwrap();
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn every_event_is_one_line_that_names_itself() {
        let request = record().id;
        let session = request.session;
        let cases = [
            (Event::RunStarted(RunInfo::default()), "run_started"),
            (
                Event::SessionStarted {
                    session,
                    at: 1,
                    requests: 3,
                },
                "session_started",
            ),
            (
                Event::Dispatched {
                    request,
                    intended: 1,
                    at: 2,
                },
                "dispatched",
            ),
            (Event::Finished(Box::new(record())), "finished"),
            (
                Event::NeverSent {
                    request,
                    reason: NeverSentReason::RunEnded,
                    at: 1,
                },
                "never_sent",
            ),
            (
                Event::SessionFinished {
                    session,
                    at: 1,
                    end: SessionEnd::Errored,
                    requests: 3,
                },
                "session_finished",
            ),
            (
                Event::RunJudged {
                    plugin: "mine".to_owned(),
                    name: "two\nlines".to_owned(),
                    met: false,
                    observed: None,
                    threshold: 0.5,
                    detail: String::new(),
                },
                "run_judged",
            ),
            (
                Event::PluginFailed(FailedPlugin {
                    plugin: "mine".to_owned(),
                    part: PluginRole::SloCheck,
                    message: "no \"luck\"".to_owned(),
                    session: None,
                    at: None,
                }),
                "plugin_failed",
            ),
            (Event::Starved { due: 1, at: 2 }, "starved"),
            (Event::ArrivalsMissed { sessions: 3, at: 2 }, "arrivals_missed"),
            (Event::ThreadSampled(ThreadSample::default()), "thread_sampled"),
            (Event::ClockStepped { at: 1, by: -2 }, "clock_stepped"),
            (Event::TimeoutReached { at: 1 }, "timeout_reached"),
            (Event::Interrupted { at: 1 }, "interrupted"),
            (Event::RunEnded { at: 1 }, "run_ended"),
        ];
        for (event, name) in cases {
            let line = trace_line_of(&event, None);
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(value["event"], name);
            assert!(!line.contains('\n') && value.get("content").is_none(), "{line}");
        }
    }

    /// The place of a request in its session is in the line of its end.
    #[test]
    fn finished_request_has_its_session_context() {
        let line = trace_line_of(&Event::Finished(Box::new(record())), None);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        let expected = serde_json::json!({
            "parents": [0, 1], "history_parent": 1, "wait_after_ready": 0.25, "session_total_requests": 3,
        });
        for (key, expected) in expected.as_object().unwrap() {
            assert_eq!(value.get(key), Some(expected), "{key}");
        }
    }

    #[test]
    fn content_is_written_for_dispatched_and_finished() {
        let dispatched = Event::Dispatched {
            request: record().id,
            intended: 1,
            at: 2,
        };
        let finished = Event::Finished(Box::new(record()));
        for event in [dispatched, finished] {
            let line = trace_line_of(&event, Some("two\nlines"));
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(value["content"], "two\nlines");
            assert!(!line.contains('\n'));
        }
        assert!(!trace_line_of(&Event::RunEnded { at: 1 }, Some("nothing")).contains("nothing"));
    }
}
