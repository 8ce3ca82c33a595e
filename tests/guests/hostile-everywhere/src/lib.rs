//! A plugin of every kind except the session generator (a component that is both that and an agent
//! generator is used as the former) that misbehaves in any function of the contract: the
//! configuration
//! `{"in": "workload.length loop"}` names the function and the misbehaviour, which are those of
//! [`misbehave`]. Every other function behaves, and returns as little as it may.

wit_bindgen::generate!({
    inline: "
        package fixtures:hostile-everywhere;
        world hostile-everywhere {
            import veeksha:plugin/log@0.2.0;
            import veeksha:plugin/blobs@0.2.0;
            import veeksha:plugin/results@0.2.0;
            export veeksha:plugin/agent-generator@0.2.0;
            export veeksha:plugin/arrival-process@0.2.0;
            export veeksha:plugin/trace-flavor@0.2.0;
            export veeksha:plugin/endpoint-codec@0.2.0;
            export veeksha:plugin/metric@0.2.0;
            export veeksha:plugin/request-check@0.2.0;
            export veeksha:plugin/slo-check@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use std::cell::RefCell;
use std::hint::black_box;

use exports::veeksha::plugin::{
    agent_generator as agents, arrival_process as arrivals, endpoint_codec as codecs, metric as metrics,
    request_check as checks, slo_check as slos, trace_flavor as flavors,
};
use veeksha::plugin::blobs::Blob;
use veeksha::plugin::log;
use veeksha::plugin::records::Batch;
use veeksha::plugin::results::Results;
use veeksha::plugin::types::{
    Descriptor, Error, Failure, Guarantees, Message, Output, Request, Response, Role, Segment, Session,
    ToolResult,
};

struct Plugin;

/// Every resource of the plugin.
struct Hostile;

thread_local! {
    /// The function and its misbehaviour.
    static PLAN: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the plan of a configuration.
fn open(config: &str, function: &str) -> Result<(), Error> {
    let plan = config.rsplit('"').nth(1).unwrap_or("").to_owned();
    PLAN.with_borrow_mut(|kept| *kept = plan);
    misbehave(function)
}

/// Misbehaves, if the plan names this function.
fn misbehave(function: &str) -> Result<(), Error> {
    let plan = PLAN.with_borrow(Clone::clone);
    let Some((planned, behaviour)) = plan.rsplit_once(' ') else {
        return Ok(());
    };
    if planned != function {
        return Ok(());
    }
    match behaviour {
        "loop" => loop {
            black_box(0);
        },
        "recurse" => {
            black_box(deeper(black_box(u64::MAX)));
        }
        "memory" => {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1_u8; 1 << 20]);
                black_box(&kept);
            }
        }
        "panic" => panic!("in {function}"),
        "log-flood" => (0..50_000).for_each(|_| log::write(log::Level::Info, "a line of a flood")),
        "blob-flood" => {
            for _ in 0..50_000 {
                black_box(Blob::open("not granted").is_ok());
            }
        }
        "utf8" => return Err(error(invalid())),
        "huge" => return Err(error("x".repeat(48 << 20))),
        _ => {}
    }
    Ok(())
}

/// A recursion that uses the stack of calls, not that in memory.
#[inline(never)]
fn deeper(depth: u64) -> u64 {
    if depth == 0 {
        return 0;
    }
    black_box(deeper as fn(u64) -> u64)(depth - 1).wrapping_add(depth)
}

/// Text that is not UTF-8.
fn invalid() -> String {
    // SAFETY: nothing in this guest reads the text.
    unsafe { String::from_utf8_unchecked(vec![b'a', 0xff, 0xfe]) }
}

fn error(message: String) -> Error {
    Error {
        code: "asked-to".into(),
        message,
        hint: None,
        path: None,
    }
}

/// The same for functions that cannot return an error.
fn misbehave_without_result(function: &str) {
    let _ = misbehave(function);
}

fn descriptor() -> Descriptor {
    Descriptor {
        name: "hostile-everywhere".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        summary: "misbehaves in one function".into(),
        config_schema: "{}".into(),
    }
}

fn guarantees() -> Guarantees {
    Guarantees {
        max_output_tokens: None,
        max_depth: None,
        distinct_prompts: false,
    }
}

fn request(node: u32) -> Request {
    Request {
        node,
        parents: Vec::new(),
        history_parent: None,
        keep_reasoning: false,
        wait_after_ready: 0,
        messages: vec![Message {
            role: Role::User,
            content: vec![Segment::Text("go".into())],
            tool_call_id: None,
            tool_calls: Vec::new(),
            reasoning: None,
        }],
        output: Output {
            target_tokens: None,
            exact: false,
            form: None,
        },
        tools: None,
        cancellation: None,
        client: None,
        body: None,
        headers: Vec::new(),
        labels: Vec::new(),
        recording: None,
    }
}

fn session() -> Session {
    Session {
        tool_runs: Vec::new(),
        requests: vec![request(0)],
        arrives_at: None,
        headers: Vec::new(),
        labels: Vec::new(),
    }
}

impl agents::Guest for Plugin {
    type Generator = Hostile;
    type Agent = HostileAgent;

    fn describe() -> Descriptor {
        descriptor()
    }
}

impl agents::GuestGenerator for Hostile {
    fn open(config: String) -> Result<agents::Generator, Error> {
        open(&config, "generator.open").map(|()| agents::Generator::new(Hostile))
    }

    fn guarantees(&self) -> Guarantees {
        misbehave_without_result("generator.guarantees");
        guarantees()
    }

    fn length(&self) -> Option<u64> {
        misbehave_without_result("generator.length");
        None
    }

    fn start(&self, _index: u64) -> Result<(agents::Agent, agents::Opening), Error> {
        misbehave("generator.start")?;
        let opening = agents::Opening {
            step: step(vec![request(0), request(1)], false),
            headers: Vec::new(),
            labels: Vec::new(),
        };
        Ok((agents::Agent::new(HostileAgent), opening))
    }
}

fn step(requests: Vec<Request>, done: bool) -> agents::Step {
    agents::Step {
        requests,
        tool_runs: Vec::new(),
        cancel: Vec::new(),
        done,
    }
}

struct HostileAgent;

impl Drop for HostileAgent {
    fn drop(&mut self) {
        misbehave_without_result("agent (destructor)");
    }
}

impl agents::GuestAgent for HostileAgent {
    fn answered(&self, _: Response) -> Result<agents::Step, Error> {
        misbehave("agent.answered").map(|()| step(Vec::new(), true))
    }

    fn failed(&self, _: Failure) -> Result<agents::Step, Error> {
        misbehave("agent.failed").map(|()| step(Vec::new(), true))
    }

    fn cancelled(&self, _: Response) -> Result<agents::Step, Error> {
        misbehave("agent.cancelled").map(|()| step(Vec::new(), true))
    }

    fn tool_ended(&self, _: ToolResult) -> Result<agents::Step, Error> {
        misbehave("agent.tool-ended").map(|()| step(Vec::new(), true))
    }
}

impl arrivals::Guest for Plugin {
    type Process = Hostile;

    fn describe() -> Descriptor {
        descriptor()
    }
}

impl arrivals::GuestProcess for Hostile {
    fn open(config: String) -> Result<arrivals::Process, Error> {
        open(&config, "process.open").map(|()| arrivals::Process::new(Hostile))
    }

    fn next(&self, count: u32) -> Result<Vec<u64>, Error> {
        misbehave("process.next").map(|()| vec![0; count as usize])
    }
}

impl flavors::Guest for Plugin {
    type Flavor = Hostile;

    fn describe() -> Descriptor {
        descriptor()
    }
}

impl flavors::GuestFlavor for Hostile {
    fn open(config: String) -> Result<flavors::Flavor, Error> {
        open(&config, "flavor.open").map(|()| flavors::Flavor::new(Hostile))
    }

    fn guarantees(&self) -> Guarantees {
        misbehave_without_result("flavor.guarantees");
        guarantees()
    }

    fn layout(&self) -> flavors::Layout {
        misbehave_without_result("flavor.layout");
        flavors::Layout {
            columns: vec![flavors::Column {
                name: "prompt".into(),
                aliases: Vec::new(),
                cell: flavors::Cell::Text,
                required: true,
            }],
            rows_in: None,
            grouping: flavors::Grouping::Row,
            arrival: None,
            keep: None,
            warms_up: true,
        }
    }

    fn sessions(
        &self,
        _: flavors::Facts,
        _: u64,
        groups: Vec<flavors::Group>,
    ) -> Result<Vec<Session>, Error> {
        misbehave("flavor.sessions")?;
        Ok(groups.iter().map(|_| session()).collect())
    }

    fn warmup(&self, _: flavors::Facts, _: Vec<flavors::Group>) -> Result<Vec<Session>, Error> {
        misbehave("flavor.warmup").map(|()| Vec::new())
    }
}

impl codecs::Guest for Plugin {
    type Codec = Hostile;

    fn describe() -> Descriptor {
        descriptor()
    }
}

impl codecs::GuestCodec for Hostile {
    fn open(config: String) -> Result<codecs::Codec, Error> {
        open(&config, "codec.open").map(|()| codecs::Codec::new(Hostile))
    }

    fn endpoint(&self) -> codecs::Endpoint {
        misbehave_without_result("codec.endpoint");
        codecs::Endpoint {
            path: "generate".into(),
            headers: Vec::new(),
            request: "{\"prompt\": \"{{prompt}}\"}".into(),
            framing: codecs::Framing::Lines,
        }
    }

    fn decode(&self, _: Vec<u8>, ends: Vec<u32>) -> Result<codecs::Parts, Error> {
        misbehave("codec.decode")?;
        Ok(codecs::Parts {
            parts: Vec::new(),
            ends: vec![0; ends.len()],
        })
    }
}

impl metrics::Guest for Plugin {
    type Collector = Hostile;

    fn describe() -> Descriptor {
        descriptor()
    }
}

impl metrics::GuestCollector for Hostile {
    fn open(config: String) -> Result<metrics::Collector, Error> {
        open(&config, "collector.open").map(|()| metrics::Collector::new(Hostile))
    }

    fn definitions(&self) -> Vec<metrics::Definition> {
        misbehave_without_result("collector.definitions");
        vec![metrics::Definition {
            name: "hostility".into(),
            unit: "1".into(),
            better: metrics::Better::Less,
            summary: "none".into(),
        }]
    }

    fn observe(&self, _: Batch) -> Result<Vec<metrics::Sample>, Error> {
        misbehave("collector.observe").map(|()| Vec::new())
    }

    fn finish(&self) -> Result<Vec<metrics::Sample>, Error> {
        misbehave("collector.finish").map(|()| Vec::new())
    }
}

/// The resources of both kinds of checks are named `checker`.
struct HostileRun;

impl checks::Guest for Plugin {
    type Checker = Hostile;

    fn describe() -> Descriptor {
        descriptor()
    }
}

impl checks::GuestChecker for Hostile {
    fn open(config: String) -> Result<checks::Checker, Error> {
        open(&config, "checker.open").map(|()| checks::Checker::new(Hostile))
    }

    fn judge(&self, batch: Batch) -> Result<Vec<bool>, Error> {
        misbehave("checker.judge").map(|()| vec![true; batch.session.len()])
    }
}

impl slos::Guest for Plugin {
    type Checker = HostileRun;

    fn describe() -> Descriptor {
        descriptor()
    }
}

impl slos::GuestChecker for HostileRun {
    fn open(config: String) -> Result<slos::Checker, Error> {
        open(&config, "checker.open").map(|()| slos::Checker::new(HostileRun))
    }

    fn check(&self, _: Results) -> Result<Vec<slos::Verdict>, Error> {
        misbehave("checker.check")?;
        Ok(vec![slos::Verdict {
            name: "hostility".into(),
            met: true,
            observed: None,
            threshold: 1.0,
            detail: String::new(),
        }])
    }
}

export!(Plugin);
