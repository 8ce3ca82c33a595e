//! Writes the trace as JSON, one event per line.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;

use serde::Serialize;
use serde_json::{Value, json};
use veeksha_model::Nanos;

use super::{ChromeTrace, Lane, SessionLane, ToolSlice};

impl ChromeTrace {
    /// Writes the file. Open entries end, marked as open, at the last known instant.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&self, writer: &mut dyn io::Write) -> io::Result<()> {
        write(self, writer)
    }
}

const REQUESTS: u32 = 1;
const SESSIONS: u32 = 2;
const PLUGINS: u32 = 3;
const RUN: u32 = 4;
const TOOLS: u32 = 5;

/// The first thread id; lower numbers are processes.
const FIRST_THREAD: u32 = 100;

/// A line of slices in the viewer. The format identifies threads by unique numbers, which metadata
/// maps to names.
#[derive(Clone, Copy)]
struct TraceThread {
    pid: u32,
    tid: u32,
}

/// A complete event (`X`).
#[derive(Serialize)]
struct TraceSlice<'a> {
    name: &'a str,
    cat: &'a str,
    ph: &'a str,
    ts: f64,
    dur: f64,
    pid: u32,
    tid: u32,
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
    tid: u32,
}

/// Viewers that count in whole nanoseconds multiply by a thousand and truncate. A number slightly
/// too small in binary would begin a slice a nanosecond before its neighbor ends, and be drawn
/// below it. An instant is therefore written slightly late, by less than the resolution.
const LATER: &str = "4";

fn instant_micros(at: Nanos) -> f64 {
    at as f64 / 1e3 + 0.0004
}

fn micros(length: Nanos) -> f64 {
    length as f64 / 1e3
}

/// Appends nanoseconds as microseconds with all digits. This dominates the time to write a file;
/// the standard library's formatting would take three times as long.
fn push_micros(text: &mut String, nanos: Nanos) {
    // The maximum number of digits of 64 bits, and the point.
    let mut digits = [b'0'; 21];
    let mut begin = digits.len();
    let mut rest = nanos;
    while rest > 0 || digits.len() - begin < 5 {
        if digits.len() - begin == 3 {
            begin -= 1;
            digits[begin] = b'.';
        }
        begin -= 1;
        digits[begin] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text.extend(digits[begin..].iter().map(|digit| char::from(*digit)));
}

/// Writes the brackets and elements of an array.
struct Array<'a> {
    writer: &'a mut dyn io::Write,
    begun: bool,
    lines: String,
    threads: HashMap<(u32, String), TraceThread>,
}

impl Array<'_> {
    /// Returns the thread of this name; its first use writes its name and its sort index, in order
    /// of use.
    fn thread(&mut self, pid: u32, name: &str) -> io::Result<TraceThread> {
        if let Some(known) = self.threads.get(&(pid, name.to_owned())) {
            return Ok(*known);
        }
        let tid = FIRST_THREAD + self.threads.len() as u32;
        self.push(
            &json!({"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}),
        )?;
        self.push(
            &json!({"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": tid, "args": {"sort_index": tid}}),
        )?;
        let thread = TraceThread { pid, tid };
        self.threads.insert((pid, name.to_owned()), thread);
        Ok(thread)
    }

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
        TraceThread { pid, tid }: TraceThread,
        args: Option<Value>,
    ) -> io::Result<()> {
        self.push(&TraceSlice {
            name,
            cat,
            ph: "X",
            ts: instant_micros(from),
            dur: micros(to.saturating_sub(from)),
            pid,
            tid,
            args,
        })
    }

    /// `T1`, `T2`, ...: a slice from each chunk to the next. They are most of a file, so their
    /// common part is formatted once per lane.
    fn chunks(
        &mut self,
        first: Nanos,
        later: &[Nanos],
        TraceThread { pid, tid }: TraceThread,
    ) -> io::Result<()> {
        let same = format!(r#""cat":"decode","ph":"X","pid":{pid},"tid":{tid}}}"#);
        self.lines.clear();
        let mut from = first;
        for (number, at) in later.iter().enumerate() {
            let to = (*at).max(from);
            let lasts = to - from;
            let begin = if self.begun { ",\n" } else { "[\n" };
            self.begun = true;
            self.lines.push_str(begin);
            // Writing to memory does not fail.
            let _ = write!(self.lines, r#"{{"name":"T{}","ts":"#, number + 1);
            push_micros(&mut self.lines, from);
            self.lines.push_str(LATER);
            self.lines.push_str(r#","dur":"#);
            push_micros(&mut self.lines, lasts);
            self.lines.push(',');
            self.lines.push_str(&same);
            from = to;
        }
        self.writer.write_all(self.lines.as_bytes())
    }

    fn instant(
        &mut self,
        name: &str,
        at: Nanos,
        scope: &str,
        TraceThread { pid, tid }: TraceThread,
    ) -> io::Result<()> {
        self.push(&Instant {
            name,
            cat: "mark",
            ph: "i",
            ts: instant_micros(at),
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
        threads: HashMap::new(),
    };
    for (pid, name) in [
        (REQUESTS, "requests"),
        (SESSIONS, "sessions"),
        (PLUGINS, "plugins"),
        (RUN, "run"),
        (TOOLS, "tools"),
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
        let name = format!("R{} / {id} / unfinished", trace.requests.len() + place);
        let end = trace.last.max(*dispatched);
        let thread = array.thread(REQUESTS, &name)?;
        array.slice("Unfinished", "request", (*dispatched, end), thread, None)?;
    }
    for lane in trace.all_sessions() {
        session(&mut array, &lane)?;
    }
    let mut calls: Vec<_> = trace.plugins.iter().collect();
    calls.sort_by_key(|call| (call.begin, &call.thread));
    for call in calls {
        let end = call.end.max(call.begin);
        let thread = array.thread(PLUGINS, &call.thread)?;
        array.slice(&call.what, "plugin", (call.begin, end), thread, None)?;
    }
    tool_runs(&mut array, &trace.tool_runs)?;
    let mut marks: Vec<_> = trace.marks.iter().collect();
    marks.sort_by_key(|mark| (mark.at, &mark.what));
    for mark in marks {
        let (scope, thread) = match mark.session {
            Some(id) => ("t", array.thread(SESSIONS, &session_name(id.0))?),
            None => ("g", array.thread(RUN, "run")?),
        };
        array.instant(&mark.what, mark.at, scope, thread)?;
    }
    array.close()
}

/// Ignored by viewers: the numbers of kept and omitted entries.
fn metadata(trace: &ChromeTrace) -> Value {
    let omitted = trace.omitted;
    json!({
        "name": "veeksha_host", "ph": "M", "pid": RUN,
        "args": {
            "zero": "start of the run",
            "limit_entries": trace.limits.entries,
            "limit_chunks": trace.limits.chunks,
            "requests_left_out": omitted.requests,
            "requests_without_chunks": omitted.requests_without_chunks,
            "sessions_left_out": omitted.sessions,
            "plugin_calls_left_out": omitted.plugin_calls,
            "tool_runs_left_out": omitted.tool_runs,
            "marks_left_out": omitted.marks,
        },
    })
}

fn request(array: &mut Array<'_>, index: usize, lane: &Lane) -> io::Result<()> {
    // Veeksha's name of a lane; the second part is the session.
    let name = format!(
        "R{index} / {} / {}->{}",
        lane.id.session, lane.prompt_tokens, lane.output_tokens
    );
    let place = array.thread(REQUESTS, &name)?;
    if lane.dispatched > lane.intended {
        array.slice("Wait", "request", (lane.intended, lane.dispatched), place, None)?;
    }
    let first = lane.first.or(lane.last).unwrap_or(lane.completed);
    let first = first.max(lane.dispatched);
    let is_unstreamed = lane.first.is_none() && lane.last.is_some();
    array.slice(
        if is_unstreamed { "Answer" } else { "Prefill" },
        "request",
        (lane.dispatched, first),
        place,
        Some(arguments(lane)),
    )?;
    let last = lane.last.unwrap_or(first).max(first);
    match &lane.chunks {
        Some(chunks) => {
            array.chunks(first, chunks, place)?;
            let last_chunk = chunks.iter().copied().fold(first, Nanos::max);
            if last > last_chunk {
                array.slice("Finish", "decode", (last_chunk, last), place, None)?;
            }
        }
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
        "ttfc": lane.ttfc,
        "end_to_end_latency": lane.end_to_end,
        "dispatch_lateness": seconds(lane.intended, lane.dispatched),
        "pickup_delay": lane.picked_up.map(|at| seconds(lane.dispatched, at)),
        "send_delay": lane.sent.map(|at| seconds(lane.dispatched, at)),
        "server": lane.server,
        "measured": lane.measured,
        "error_class": lane.failure.as_ref().map(|(class, _)| class),
        "error_message": lane.failure.as_ref().map(|(_, message)| message),
    })
}

/// Writes tool runs, each on the first thread of its class that is free: the slices of a thread
/// must not overlap.
fn tool_runs(array: &mut Array<'_>, runs: &[ToolSlice]) -> io::Result<()> {
    let mut runs: Vec<&ToolSlice> = runs.iter().collect();
    runs.sort_by_key(|run| (run.ready, run.id));
    let mut ends: HashMap<&str, Vec<Nanos>> = HashMap::new();
    for run in runs {
        let threads = ends.entry(&*run.class).or_default();
        let free = threads.iter().position(|end| *end <= run.ready);
        let thread = free.unwrap_or_else(|| {
            threads.push(0);
            threads.len() - 1
        });
        threads[thread] = run.completed;
        let place = array.thread(TOOLS, &format!("{} {}", run.class, thread + 1))?;
        let args = json!({
            "session_id": run.id.session.0,
            "node_id": run.id.node.0,
            "cold": run.is_cold,
            "success": !run.failed,
            "result_tokens": run.result_tokens,
            "measured": run.measured,
        });
        let name = run.id.to_string();
        array.slice(&name, "tool", (run.ready, run.completed), place, Some(args))?;
        if run.started > run.ready {
            array.slice("Waiting", "tool", (run.ready, run.started), place, None)?;
        }
        array.slice("Service", "tool", (run.started, run.completed), place, None)?;
    }
    Ok(())
}

fn session(array: &mut Array<'_>, lane: &SessionLane) -> io::Result<()> {
    let name = lane.how.map_or("unfinished", |how| how.name());
    let args = json!({"session_id": lane.id.0, "requests": lane.requests});
    let thread = array.thread(SESSIONS, &session_name(lane.id.0))?;
    array.slice(name, "session", (lane.start, lane.end), thread, Some(args))
}

fn session_name(id: u64) -> String {
    format!("session {id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_written_as_microseconds_with_three_decimals() {
        for (nanos, text) in [
            (0, "0.000"),
            (7, "0.007"),
            (999, "0.999"),
            (1_000, "1.000"),
            (12_345_006, "12345.006"),
            (u64::MAX, "18446744073709551.615"),
        ] {
            let mut written = String::new();
            push_micros(&mut written, nanos);
            assert_eq!(written, text);
        }
    }
}
