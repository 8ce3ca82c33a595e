//! A planned generator that misbehaves as its configuration states: `{"behaviour": "trap"}`. The
//! names are in [`Behaviour::of`]; `calls` counts its calls in a label (a session must not depend
//! on that: the tests use it to see when a store is replaced), `good` behaves.

wit_bindgen::generate!({
    inline: "
        package fixtures:hostile-sessions;
        world hostile-sessions {
            include veeksha:plugin/capabilities@0.2.0;
            export veeksha:plugin/session-generator@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use exports::veeksha::plugin::session_generator::{
    Descriptor, Error, Guarantees, Guest, GuestWorkload, Session, Workload,
};
use veeksha::plugin::blobs::Blob;
use veeksha::plugin::types::{Edge, Message, Output, Request, Role, Segment, Trigger};
use veeksha::plugin::{log, random, tokens};

struct Plugin;

/// Sessions that this instance has made.
static MADE: AtomicU64 = AtomicU64::new(0);

struct Hostile {
    behaviour: String,
    calls: Cell<u64>,
}

impl Guest for Plugin {
    type Workload = Hostile;

    fn describe() -> Descriptor {
        Descriptor {
            name: "hostile-sessions".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "misbehaves on demand".into(),
            config_schema: "{}".into(),
        }
    }
}

impl GuestWorkload for Hostile {
    fn open(config: String) -> Result<Workload, Error> {
        std::panic::set_hook(Box::new(|info| log::write(log::Level::Error, &info.to_string())));
        let behaviour = config.rsplit('"').nth(1).unwrap_or("good").to_owned();
        if behaviour == "refuse" {
            return Err(Error {
                code: "bad-behaviour".into(),
                message: "`refuse` is not a behaviour".into(),
                hint: Some("try `good`".into()),
                path: Some("/behaviour".into()),
            });
        }
        Ok(Workload::new(Hostile {
            behaviour,
            calls: Cell::new(0),
        }))
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            max_output_tokens: None,
            max_depth: None,
            distinct_prompts: false,
        }
    }

    fn length(&self) -> Option<u64> {
        match self.behaviour.as_str() {
            "billion" | "too-many" => Some(1_000_000_000),
            "loop-length" => endless(),
            _ => None,
        }
    }

    fn sessions(&self, first: u64, count: u32) -> Result<Vec<Session>, Error> {
        self.calls.set(self.calls.get() + 1);
        let many = |count: u64| {
            (first..first + count)
                .map(|index| session(vec![request(0, &[], None, index)]))
                .collect()
        };
        let one = |requests: Vec<Request>| Ok(vec![session(requests); count as usize]);
        match self.behaviour.as_str() {
            "trap" => plan(first),
            "trap-at-7" if first <= 7 && 7 < first + u64::from(count) => plan(7),
            "overflow" => one(vec![request(deeper(0), &[], None, 0)]),
            "loop" => endless(),
            "memory" => one(vec![request(swell(), &[], None, 0)]),
            "swell" => {
                std::mem::forget(std::hint::black_box(vec![1u8; 8 << 20]));
                let calls = self.calls.get();
                Ok((0..count)
                    .map(|_| session(vec![request(0, &[], None, calls)]))
                    .collect())
            }
            "huge" => one(vec![Request {
                tools: None,
                cancellation: None,
                client: None,
                body: Some("x".repeat(64 << 20)),
                ..request(0, &[], None, 0)
            }]),
            "too-many" => Ok(many(20_000)),
            "too-few" => Ok(many(u64::from(count) - 1)),
            "cyclic" => one(vec![
                request(0, &[], None, 0),
                request(1, &[2], None, 0),
                request(2, &[1], None, 0),
            ]),
            "dangling" => one(vec![request(0, &[], None, 0), request(1, &[9], None, 0)]),
            "history" => one(vec![
                request(0, &[], None, 0),
                request(1, &[], None, 0),
                request(2, &[1], Some(0), 0),
            ]),
            "twice" => one(vec![request(4, &[], None, 0), request(4, &[], None, 0)]),
            "empty" => one(Vec::new()),
            "negative-wait" => one(vec![Request {
                keep_reasoning: false,
                wait_after_ready: u64::MAX,
                ..request(0, &[], None, 0)
            }]),
            "body" => one(vec![Request {
                tools: None,
                cancellation: None,
                client: None,
                body: Some("[1, 2]".into()),
                ..request(0, &[], None, 0)
            }]),
            // Well-behaved: each event of an edge, with a delay, and headers.
            "events" => {
                let triggers = [Trigger::Dispatched, Trigger::FirstChunk, Trigger::Completed];
                let edges = (0..3).map(|parent| Edge {
                    parent,
                    trigger: triggers[parent as usize],
                    delay: u64::from(parent) + 5,
                });
                let last = Request {
                    parents: edges.collect(),
                    headers: vec![("x-turn".into(), "last".into())],
                    ..request(3, &[], Some(2), 0)
                };
                let mut requests: Vec<Request> = (0..3).map(|node| request(node, &[], None, 0)).collect();
                requests.push(last);
                let headers = vec![("x-session".into(), "s".into())];
                Ok(vec![
                    Session {
                        headers,
                        ..session(requests)
                    };
                    count as usize
                ])
            }
            "negative-delay" => one(vec![
                request(0, &[], None, 0),
                Request {
                    parents: vec![Edge {
                        delay: u64::MAX,
                        ..ended(0)
                    }],
                    ..request(1, &[], None, 0)
                },
            ]),
            "header" => one(vec![Request {
                headers: vec![("Authorization".into(), "Bearer k".into())],
                ..request(0, &[], None, 0)
            }]),
            "labels" => one(vec![Request {
                labels: vec![("k".into(), "v".repeat(100_000))],
                ..request(0, &[], None, 0)
            }]),
            "error" => Err(Error {
                code: "no-more".into(),
                message: format!("cannot plan session {first}"),
                hint: None,
                path: None,
            }),
            "tokens" => one(vec![request(
                tokens::count("how many tokens?"),
                &[],
                None,
                u64::from(tokens::vocabulary()),
            )]),
            "encode" => {
                let mut request = request(0, &[], None, 0);
                request.messages[0].content = vec![Segment::TokenIds(tokens::encode("how many tokens?"))];
                one(vec![request])
            }
            "long-text" => one(vec![request(
                tokens::count(&"text ".repeat(300_000)),
                &[],
                None,
                0,
            )]),
            "static-counter" => Ok((0..count)
                .map(|_| session(vec![request(0, &[], None, MADE.fetch_add(1, Ordering::Relaxed))]))
                .collect()),
            "words" => one(vec![request(random::words(0, "w", 0, 65_537)[0], &[], None, 0)]),
            "log-flood" => {
                (0..100_000).for_each(|line| log::write(log::Level::Info, &format!("line {line}")));
                one(vec![request(0, &[], None, 0)])
            }
            "log-long" => {
                log::write(log::Level::Info, &"long ".repeat(100_000));
                one(vec![request(0, &[], None, 0)])
            }
            "blob" => blob().map(|text| {
                vec![session(vec![Request {
                    tools: None,
                    cancellation: None,
                    client: None,
                    body: Some(text),
                    ..request(0, &[], None, 0)
                }])]
            }),
            "handles" => {
                let open: Vec<Blob> = (0..10_000).map_while(|_| Blob::open("data").ok()).collect();
                one(vec![request(open.len() as u32, &[], None, 0)])
            }
            "calls" => {
                let calls = self.calls.get();
                Ok((0..count)
                    .map(|_| session(vec![request(0, &[], None, calls)]))
                    .collect())
            }
            _ => Ok(many(count.into())),
        }
    }
}

/// The whole of the granted file `data`, and the error for `other`, as a JSON object.
fn blob() -> Result<String, Error> {
    let refused = Blob::open("other")
        .err()
        .map_or("none".into(), |error| error.code);
    let data = Blob::open("data")?;
    let (head, rest) = (data.read(0, 3)?, data.read(3, 1000)?);
    let beyond = data.read(data.size() + 10, 10)?;
    let text = String::from_utf8_lossy(&[head, rest].concat()).into_owned();
    Ok(format!(
        r#"{{"text": "{text}", "size": {}, "beyond": {}, "other": "{refused}"}}"#,
        data.size(),
        beyond.len()
    ))
}

#[inline(never)]
fn plan(session: u64) -> ! {
    panic!("plan for session {session} has no steps");
}

#[expect(clippy::empty_loop, reason = "being endless is its purpose")]
fn endless() -> ! {
    loop {}
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "it is to exhaust the stack")]
fn deeper(level: u32) -> u32 {
    let room = std::hint::black_box([level; 64]);
    deeper(level + 1) + room[(level % 64) as usize]
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

fn session(requests: Vec<Request>) -> Session {
    Session {
        tool_runs: Vec::new(),
        requests,
        arrives_at: None,
        headers: Vec::new(),
        labels: Vec::new(),
    }
}

fn request(node: u32, parents: &[u32], history_parent: Option<u32>, label: u64) -> Request {
    Request {
        node,
        parents: parents.iter().copied().map(ended).collect(),
        history_parent,
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
