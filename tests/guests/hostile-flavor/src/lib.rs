//! A trace flavor that misbehaves as its configuration states: `{"behaviour": "trap"}`. The names
//! are those of the arms below; `calls` counts its calls in a label (a session must not depend on
//! that: the tests use it to see when a store is replaced), `good` behaves.

wit_bindgen::generate!({
    inline: "
        package fixtures:hostile-flavor;
        world hostile-flavor {
            import veeksha:plugin/log@0.2.0;
            export veeksha:plugin/trace-flavor@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use std::cell::Cell as Counter;

use exports::veeksha::plugin::trace_flavor::{
    Arrival, Cell, Column, Descriptor, Error, Facts, Flavor, Group, Grouping, Guarantees, Guest, GuestFlavor,
    Layout, MostFrequent, Session, TimeUnit, Tree,
};
use veeksha::plugin::log;
use veeksha::plugin::types::{
    Answer, Edge, HistoryMode, Message, Output, Recording, Request, Role, Seed, Segment, SyntheticText,
    Trigger,
};

struct Plugin;

struct Hostile {
    behaviour: String,
    calls: Counter<u64>,
}

impl Guest for Plugin {
    type Flavor = Hostile;

    fn describe() -> Descriptor {
        Descriptor {
            name: "hostile-flavor".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "misbehaves on demand".into(),
            config_schema: "{}".into(),
        }
    }
}

impl GuestFlavor for Hostile {
    fn open(config: String) -> Result<Flavor, Error> {
        std::panic::set_hook(Box::new(|info| log::write(log::Level::Error, &info.to_string())));
        Ok(Flavor::new(Hostile {
            behaviour: config.rsplit('"').nth(1).unwrap_or("good").to_owned(),
            calls: Counter::new(0),
        }))
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            max_output_tokens: None,
            max_depth: None,
            distinct_prompts: false,
        }
    }

    fn layout(&self) -> Layout {
        let good = Layout {
            columns: vec![column("id", &["ID"]), column("up", &[])],
            rows_in: None,
            grouping: Grouping::Row,
            arrival: None,
            keep: None,
            warms_up: false,
        };
        let columns = |columns| Layout {
            columns,
            ..good.clone()
        };
        match self.behaviour.as_str() {
            "layout-trap" => panic!("no layout today"),
            "layout-loop" => endless(),
            "layout-empty" => columns(Vec::new()),
            "layout-many" => columns((0..5000).map(|i| column(&i.to_string(), &[])).collect()),
            "layout-huge" => columns(vec![column(&"x".repeat(64 << 20), &[])]),
            "layout-twins" => columns(vec![column("id", &[]), column("number", &["id"])]),
            "layout-grouping" => Layout {
                grouping: Grouping::Column("ID".into()),
                ..good
            },
            "layout-tree" => Layout {
                grouping: Grouping::Tree(Tree {
                    id: "up".into(),
                    parent: "up".into(),
                }),
                ..good
            },
            "layout-arrival" => Layout {
                arrival: Some(Arrival {
                    column: "time".into(),
                    unit: TimeUnit::Seconds,
                }),
                ..good
            },
            "layout-keep" => Layout {
                keep: Some(MostFrequent {
                    column: "id".into(),
                    count: 0,
                }),
                ..good
            },
            _ => good,
        }
    }

    fn sessions(&self, _trace: Facts, _epoch: u64, groups: Vec<Group>) -> Result<Vec<Session>, Error> {
        self.calls.set(self.calls.get() + 1);
        let each = |requests: Vec<Request>| Ok(vec![session(requests); groups.len()]);
        let one = |recording: Recording| each(vec![replayed(recording)]);
        match self.behaviour.as_str() {
            "trap" => fail(groups[0].index),
            "trap-at-7" if groups.iter().any(|group| group.index == 7) => fail(7),
            "loop" => endless(),
            "memory" => each(vec![request(swell(), &[], 0)]),
            "swell" => {
                std::mem::forget(std::hint::black_box(vec![1u8; 8 << 20]));
                each(vec![request(0, &[], self.calls.get())])
            }
            "calls" => each(vec![request(0, &[], self.calls.get())]),
            "huge" => one(Recording {
                answer: Some(answer(Segment::Text("x".repeat(64 << 20)))),
                ..recording()
            }),
            "too-few" => Ok(vec![plain(); groups.len() - 1]),
            "too-many" => Ok(vec![plain(); 2_000]),
            "none" => Ok(Vec::new()),
            "error" => Err(Error {
                code: "row".into(),
                message: format!("row {}: it has no length", groups[0].rows[0].number),
                hint: Some("leave it out".into()),
                path: None,
            }),
            "empty" => each(Vec::new()),
            "cyclic" => each(vec![request(0, &[1], 0), request(1, &[0], 0)]),
            "twice" => each(vec![request(4, &[], 0), request(4, &[], 0)]),
            "late-session" => Ok(vec![
                Session {
                    arrives_at: Some(1 << 53),
                    ..session(vec![request(0, &[], 0)])
                };
                groups.len()
            ]),
            "late-recording" => one(Recording {
                at: Some(u64::MAX),
                ..recording()
            }),
            "slow-recording" => one(Recording {
                latency: Some(1 << 53),
                ..recording()
            }),
            "long-answer" => one(Recording {
                answer: Some(answer(Segment::Synthetic(SyntheticText {
                    seed: Seed { high: 0, low: 0 },
                    tokens: u32::MAX,
                }))),
                ..recording()
            }),
            _ => Ok(vec![plain(); groups.len()]),
        }
    }

    fn warmup(&self, _trace: Facts, groups: Vec<Group>) -> Result<Vec<Session>, Error> {
        match self.behaviour.as_str() {
            "warmup-trap" => fail(groups[0].index),
            "warmup-cyclic" => Ok(vec![plain(), session(vec![request(0, &[0], 0)])]),
            _ => Ok(Vec::new()),
        }
    }
}

#[inline(never)]
fn fail(group: u64) -> ! {
    panic!("group {group} cannot be replayed");
}

#[expect(clippy::empty_loop, reason = "being endless is its purpose")]
fn endless() -> ! {
    loop {}
}

fn swell() -> u32 {
    let mut kept = Vec::new();
    loop {
        kept.push(std::hint::black_box(vec![1u8; 1 << 20]));
        if kept.len() > 100_000 {
            return kept.len() as u32;
        }
    }
}

fn column(name: &str, aliases: &[&str]) -> Column {
    Column {
        name: name.into(),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        cell: Cell::Text,
        required: false,
    }
}

fn plain() -> Session {
    session(vec![replayed(recording())])
}

fn replayed(recording: Recording) -> Request {
    Request {
        recording: Some(recording),
        ..request(0, &[], 0)
    }
}

fn recording() -> Recording {
    Recording {
        history: HistoryMode::Live,
        answer: None,
        at: None,
        latency: None,
        prompt_tokens: None,
        output_tokens: None,
    }
}

fn answer(segment: Segment) -> Answer {
    Answer {
        content: vec![segment],
        tool_calls: Vec::new(),
        reasoning: None,
    }
}

fn session(requests: Vec<Request>) -> Session {
    Session {
        tool_runs: Vec::new(),
        requests,
        arrives_at: None,
        headers: Vec::new(),
        labels: Vec::new(),
    }
}

fn request(node: u32, parents: &[u32], label: u64) -> Request {
    Request {
        node,
        parents: parents.iter().copied().map(ended).collect(),
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
        labels: vec![("label".into(), label.to_string())],
        recording: None,
    }
}

export!(Plugin);

/// Waits for the end of a node.
fn ended(parent: u32) -> Edge {
    Edge {
        parent,
        trigger: Trigger::Completed,
        delay: 0,
    }
}
