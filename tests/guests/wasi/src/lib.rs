//! A planned generator that uses WASI, as the runtimes of most languages do: `{"behaviour": ".."}`
//! with `clocks` (reads both clocks and sleeps for a day), `random`, `environment`, `flood` (20 MB
//! of standard error), `panic` (prints a message as Rust does, and traps), `exit`. What it sees
//! is in the labels of its session.

wit_bindgen::generate!({
    world: "fixtures:wasi/wasi",
    path: ["../../../wit/0.2.0", "wit"],
    generate_all,
});

use exports::veeksha::plugin::session_generator::{
    Descriptor, Error, Guarantees, Guest, GuestWorkload, Session, Workload,
};
use veeksha::plugin::types::{Message, Output, Request, Role, Segment};
use wasi::cli::{environment, exit, stderr};
use wasi::clocks::{monotonic_clock, wall_clock};
use wasi::random::random;

struct Plugin;

struct Machine {
    behaviour: String,
}

impl Guest for Plugin {
    type Workload = Machine;

    fn describe() -> Descriptor {
        Descriptor {
            name: "wasi".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "inspects the machine".into(),
            config_schema: "{}".into(),
        }
    }
}

impl GuestWorkload for Machine {
    fn open(config: String) -> Result<Workload, Error> {
        Ok(Workload::new(Machine {
            behaviour: config.rsplit('"').nth(1).unwrap_or("").to_owned(),
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
        None
    }

    fn sessions(&self, _first: u64, count: u32) -> Result<Vec<Session>, Error> {
        let mut seen = Vec::new();
        let mut see = |name: &str, value: String| seen.push((name.to_owned(), value));
        match self.behaviour.as_str() {
            "clocks" => {
                let before = monotonic_clock::now();
                monotonic_clock::subscribe_duration(DAY).block();
                see("slept", (monotonic_clock::now() - before).to_string());
                see("wall", wall_clock::now().seconds.to_string());
            }
            "random" => {
                see("bytes", format!("{:?}", random::get_random_bytes(16)));
                see("word", random::get_random_u64().to_string());
            }
            "too-random" => see("bytes", random::get_random_bytes(1 << 30).len().to_string()),
            "environment" => {
                see("environment", environment::get_environment().len().to_string());
                see("arguments", environment::get_arguments().len().to_string());
            }
            "flood" => {
                let line = [&[b'x'; 3999][..], b"\n"].concat();
                (0..5000).for_each(|_| print(&line));
                print(b"the end of the flood\n");
            }
            "panic" => {
                print(b"thread 'main' panicked at plan.py:7:\nno plan\nnote: run with RUST_BACKTRACE=1\n");
                core::arch::wasm32::unreachable()
            }
            "exit" => exit::exit(Err(())),
            _ => {}
        }
        let requests = vec![Request {
            node: 0,
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
        }];
        Ok(vec![
            Session {
                tool_runs: Vec::new(),
                requests,
                arrives_at: None,
                headers: Vec::new(),
                labels: seen
            };
            count as usize
        ])
    }
}

const DAY: u64 = 86_400_000_000_000;

fn print(bytes: &[u8]) {
    stderr::get_stderr()
        .blocking_write_and_flush(bytes)
        .expect("standard error takes everything");
}

export!(Plugin);
