//! An agent that does what the model's answer demands: `trap`, `loop`, `cyclic`, `again` (a node
//! that exists), `cancel` and `cancel-unknown` (of nodes), `timer`, `error`, `forget` (asks for
//! other nodes when it is begun again). Any other answer is folded into a sum over all answers so
//! far, which the next node carries as a label, so that a test sees whether a rebuilt agent has the
//! state of the old one.
//!
//! Configuration: `closed` anywhere in it makes `open` fail with an error, `refuse` makes `start`
//! fail with one, `trap-start` traps there, `trap-drop` traps in the destructor.

wit_bindgen::generate!({
    inline: "
        package fixtures:hostile-agent;
        world hostile-agent {
            import veeksha:plugin/log@0.2.0;
            export veeksha:plugin/agent-generator@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use exports::veeksha::plugin::agent_generator::{
    Agent, Descriptor, Error, Failure, Generator, Guarantees, Guest, GuestAgent, GuestGenerator, Opening,
    Request, Response, Step, ToolResult, ToolRun,
};
use veeksha::plugin::log;
use veeksha::plugin::types::{Edge, Message, Output, Role, Segment, ToolOutcome, Trigger};

struct Plugin;

struct Generating {
    config: String,
}

struct Hostile {
    next: Cell<u32>,
    sum: Cell<u64>,
    traps_when_dropped: bool,
}

/// Agents begun in this instance: what an agent must not depend on. `forget` does.
static BEGUN: AtomicU32 = AtomicU32::new(0);

impl Guest for Plugin {
    type Generator = Generating;
    type Agent = Hostile;

    fn describe() -> Descriptor {
        Descriptor {
            name: "hostile-agent".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "misbehaves when the model asks for it".into(),
            config_schema: "{}".into(),
        }
    }
}

impl GuestGenerator for Generating {
    fn open(config: String) -> Result<Generator, Error> {
        std::panic::set_hook(Box::new(|info| log::write(log::Level::Error, &info.to_string())));
        if config.contains("closed") {
            return Err(error("closed", "the agents are closed".into()));
        }
        Ok(Generator::new(Generating { config }))
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

    fn start(&self, index: u64) -> Result<(Agent, Opening), Error> {
        let config = &self.config;
        if config.contains("refuse") {
            return Err(error("no-start", format!("session {index} cannot begin")));
        }
        if config.contains("trap-start") {
            panic!("session {index} fell over");
        }
        let begun = BEGUN.fetch_add(1, Ordering::Relaxed);
        let agent = Hostile {
            next: Cell::new(if config.contains("forget") { begun } else { 0 }),
            sum: Cell::new(index),
            traps_when_dropped: config.contains("trap-drop"),
        };
        let step = agent.step(&[], begun);
        Ok((Agent::new(agent), opened(step)))
    }
}

impl GuestAgent for Hostile {
    fn answered(&self, response: Response) -> Result<Step, Error> {
        match response.text.as_str() {
            "trap" => fall(&response),
            "loop" => loop {},
            "cyclic" => {
                let next = self.next.get();
                let mut step = self.step(&[next + 1], 0);
                step.requests.extend(self.step(&[next], 0).requests);
                Ok(step)
            }
            "again" => {
                let mut step = self.step(&[], 0);
                step.requests[0].node = response.node;
                Ok(step)
            }
            "timer" => {
                let node = self.next.get();
                self.next.set(node + 1);
                Ok(Step {
                    requests: Vec::new(),
                    tool_runs: vec![ToolRun {
                        node,
                        parents: Vec::new(),
                        tool: None,
                        service_time: Some(5),
                        result_tokens: None,
                        fails: None,
                        labels: Vec::new(),
                    }],
                    cancel: Vec::new(),
                    done: false,
                })
            }
            // A node of the same step, the one that was answered, and one that does not exist.
            "cancel" | "cancel-unknown" => {
                let mut step = self.step(&[response.node], 0);
                let added = step.requests[0].node;
                step.cancel = vec![added, response.node];
                if response.text == "cancel-unknown" {
                    step.cancel.push(999);
                }
                Ok(step)
            }
            "error" => {
                self.sum.set(self.sum.get() + 1_000_000);
                Err(error("asked-to", "the model asked for an error".into()))
            }
            text => {
                let sum = text.bytes().fold(self.sum.get(), |sum, byte| {
                    (sum * 31 + u64::from(byte)) % 1_000_003
                });
                self.sum.set(sum);
                Ok(self.step(&[response.node], BEGUN.load(Ordering::Relaxed)))
            }
        }
    }

    fn cancelled(&self, response: Response) -> Result<Step, Error> {
        self.sum.set(7_000 + response.text.len() as u64 + u64::from(response.cancelled));
        Ok(self.step(&[], 0))
    }

    fn tool_ended(&self, ended: ToolResult) -> Result<Step, Error> {
        self.sum.set(8_000 + u64::from(ended.outcome == ToolOutcome::Cancelled));
        Ok(self.step(&[], 0))
    }

    fn failed(&self, failure: Failure) -> Result<Step, Error> {
        self.sum.set(self.sum.get() + failure.code.len() as u64);
        Ok(self.step(&[failure.node], 0))
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        assert!(!self.traps_when_dropped, "dropped badly");
    }
}

#[inline(never)]
fn fall(response: &Response) -> ! {
    panic!("node {} made me fall", response.node);
}

impl Hostile {
    fn step(&self, parents: &[u32], begun: u32) -> Step {
        let node = self.next.get();
        self.next.set(node + 1);
        let request = Request {
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
            labels: vec![
                ("sum".into(), self.sum.get().to_string()),
                ("begun".into(), begun.to_string()),
            ],
            recording: None,
        };
        Step {
            tool_runs: Vec::new(),
            cancel: Vec::new(),
            requests: vec![request],
            done: false,
        }
    }
}

fn error(code: &str, message: String) -> Error {
    Error {
        code: code.into(),
        message,
        hint: None,
        path: None,
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

/// A session without headers and labels.
fn opened(step: Step) -> Opening {
    Opening {
        step,
        headers: Vec::new(),
        labels: Vec::new(),
    }
}
