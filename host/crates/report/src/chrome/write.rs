//! The events as JSON, one a line.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;
use serde_json::{Value, json};
use veeksha_model::Nanos;

use super::{ChromeTrace, Lane, SessionLane};

const REQUESTS: u32 = 1;
const SESSIONS: u32 = 2;
const PLUGINS: u32 = 3;
const RUN: u32 = 4;

/// A complete event (`X`).
#[derive(Serialize)]
struct Slice<'a> {
    name: &'a str,
    cat: &'a str,
    ph: &'a str,
    ts: f64,
    dur: f64,
    pid: u32,
    tid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

/// An instant (`i`): of its thread (`t`) or of everything (`g`).
#[derive(Serialize)]
struct Instant<'a> {
    name: &'a str,
    cat: &'a str,
    ph: &'a str,
    ts: f64,
    s: &'a str,
    pid: u32,
    tid: &'a str,
}

fn micros(at: Nanos) -> f64 {
    at as f64 / 1e3
}

/// Writes the elements of an array, and its brackets.
struct Array<'a> {
    writer: &'a mut dyn io::Write,
    begun: bool,
    lines: String,
}

impl Array<'_> {
    fn push(&mut self, element: &impl Serialize) -> io::Result<()> {
        self.writer.write_all(if self.begun { b",\n" } else { b"[\n" })?;
        self.begun = true;
        serde_json::to_writer(&mut *self.writer, element).map_err(io::Error::from)
    }

    fn slice(
        &mut self,
        name: &str,
        cat: &str,
        (from, to): (Nanos, Nanos),
        (pid, tid): (u32, &str),
        args: Option<Value>,
    ) -> io::Result<()> {
        self.push(&Slice {
            name,
            cat,
            ph: "X",
            ts: micros(from),
            dur: micros(to.saturating_sub(from)),
            pid,
            tid,
            args,
        })
    }

    /// `T1`, `T2`, ...: a slice from each chunk to the next. They are most of a file, so what is the same in all of a lane is made once.
    fn chunks(&mut self, first: Nanos, later: &[Nanos], (pid, tid): (u32, &str)) -> io::Result<()> {
        let tid = serde_json::to_string(tid).map_err(io::Error::from)?;
        let same = format!(r#""cat":"decode","ph":"X","pid":{pid},"tid":{tid}}}"#);
        self.lines.clear();
        let mut from = first;
        for (number, at) in later.iter().enumerate() {
            let to = (*at).max(from);
            let lasts = to - from;
            let begin = if self.begun { ",\n" } else { "[\n" };
            self.begun = true;
            // Nanoseconds are thousandths of microseconds: no digit is lost. Writing to memory does not fail.
            let _ = write!(
                self.lines,
                r#"{begin}{{"name":"T{}","ts":{}.{:03},"dur":{}.{:03},{same}"#,
                number + 1,
                from / 1000,
                from % 1000,
                lasts / 1000,
                lasts % 1000
            );
            from = to;
        }
        self.writer.write_all(self.lines.as_bytes())
    }

    fn instant(&mut self, name: &str, at: Nanos, scope: &str, (pid, tid): (u32, &str)) -> io::Result<()> {
        self.push(&Instant {
            name,
            cat: "mark",
            ph: "i",
            ts: micros(at),
            s: scope,
            pid,
            tid,
        })
    }

    fn close(self) -> io::Result<()> {
        self.writer.write_all(if self.begun { b"\n]\n" } else { b"[]\n" })
    }
}

pub(super) fn write(trace: &ChromeTrace, writer: &mut dyn io::Write) -> io::Result<()> {
    let mut array = Array {
        writer,
        begun: false,
        lines: String::new(),
    };
    for (pid, name) in [
        (REQUESTS, "requests"),
        (SESSIONS, "sessions"),
        (PLUGINS, "plugins"),
        (RUN, "run"),
    ] {
        array.push(&json!({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}))?;
        array.push(
            &json!({"name": "process_sort_index", "ph": "M", "pid": pid, "args": {"sort_index": pid}}),
        )?;
    }
    array.push(&metadata(trace))?;
    let mut lanes: Vec<&Lane> = trace.requests.iter().collect();
    lanes.sort_by_key(|lane| (lane.dispatched, lane.id));
    for (index, lane) in lanes.into_iter().enumerate() {
        request(&mut array, index, lane)?;
    }
    let mut open: Vec<_> = trace.open.iter().collect();
    open.sort();
    for (place, (id, dispatched)) in open.into_iter().take(trace.limits.entries).enumerate() {
        let tid = format!("R{} / {id} / unfinished", trace.requests.len() + place);
        let end = trace.last.max(*dispatched);
        array.slice(
            "Unfinished",
            "request",
            (*dispatched, end),
            (REQUESTS, &tid),
            None,
        )?;
    }
    for lane in trace.all_sessions() {
        session(&mut array, &lane)?;
    }
    let mut calls: Vec<_> = trace.plugins.iter().collect();
    calls.sort_by_key(|call| (call.begin, &call.thread));
    for call in calls {
        let end = call.end.max(call.begin);
        array.slice(
            &call.what,
            "plugin",
            (call.begin, end),
            (PLUGINS, &call.thread),
            None,
        )?;
    }
    let mut marks: Vec<_> = trace.marks.iter().collect();
    marks.sort_by_key(|mark| (mark.at, &mark.what));
    for mark in marks {
        match mark.session {
            Some(id) => array.instant(&mark.what, mark.at, "t", (SESSIONS, &session_tid(id.0)))?,
            None => array.instant(&mark.what, mark.at, "g", (RUN, "run"))?,
        }
    }
    array.close()
}

/// Ignored by viewers: what was kept and what was left out.
fn metadata(trace: &ChromeTrace) -> Value {
    let left_out = trace.left_out;
    json!({
        "name": "veeksha_host", "ph": "M", "pid": RUN,
        "args": {
            "zero": "start of the run",
            "limit_entries": trace.limits.entries,
            "limit_chunks": trace.limits.chunks,
            "requests_left_out": left_out.requests,
            "requests_without_chunks": left_out.requests_without_chunks,
            "sessions_left_out": left_out.sessions,
            "plugin_calls_left_out": left_out.plugin_calls,
            "marks_left_out": left_out.marks,
        },
    })
}

fn request(array: &mut Array<'_>, index: usize, lane: &Lane) -> io::Result<()> {
    // Veeksha's name of a lane; the second part is the session.
    let tid = format!(
        "R{index} / {} / {}->{}",
        lane.id.session, lane.prompt_tokens, lane.output_tokens
    );
    let place = (REQUESTS, tid.as_str());
    if lane.dispatched > lane.intended {
        array.slice("Wait", "request", (lane.intended, lane.dispatched), place, None)?;
    }
    let first = lane.first.unwrap_or(lane.completed).max(lane.dispatched);
    array.slice(
        "Prefill",
        "request",
        (lane.dispatched, first),
        place,
        Some(arguments(lane)),
    )?;
    let last = lane.last.unwrap_or(first).max(first);
    match &lane.chunks {
        Some(chunks) => array.chunks(first, chunks, place)?,
        None if last > first => array.slice("Decode", "decode", (first, last), place, None)?,
        None => {}
    }
    if let Some((class, _)) = &lane.failure {
        array.instant(class, lane.completed.max(last), "t", place)?;
    }
    Ok(())
}

fn arguments(lane: &Lane) -> Value {
    let seconds = |from: Nanos, to: Nanos| (to as i64 - from as i64) as f64 / 1e9;
    json!({
        "request_id": lane.id.to_string(),
        "session_id": lane.id.session.0,
        "node_id": lane.id.node.0,
        "num_total_prompt_tokens": lane.prompt_tokens,
        "num_output_tokens": lane.output_tokens,
        "usage_cached_tokens": lane.cached_tokens,
        "ttfc": lane.first.map(|first| seconds(lane.dispatched, first)),
        "end_to_end_latency": lane.last.filter(|_| lane.failure.is_none()).map(|last| seconds(lane.dispatched, last)),
        "dispatch_lateness": seconds(lane.intended, lane.dispatched),
        "pickup_delay": lane.picked_up.map(|at| seconds(lane.dispatched, at)),
        "send_delay": lane.sent.map(|at| seconds(lane.dispatched, at)),
        "server": lane.server,
        "measured": lane.measured,
        "error_class": lane.failure.as_ref().map(|(class, _)| class),
        "error_message": lane.failure.as_ref().map(|(_, message)| message),
    })
}

fn session(array: &mut Array<'_>, lane: &SessionLane) -> io::Result<()> {
    let name = lane.how.map_or("unfinished", |how| how.name());
    let args = json!({"session_id": lane.id.0, "requests": lane.requests});
    let place = (SESSIONS, session_tid(lane.id.0));
    array.slice(
        name,
        "session",
        (lane.start, lane.end),
        (place.0, &place.1),
        Some(args),
    )
}

fn session_tid(id: u64) -> String {
    format!("session {id}")
}
