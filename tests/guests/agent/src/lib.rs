//! A well-behaved agent in two steps: it asks, answers every tool call of the model with a tool
//! message, and is done. A failed request is asked once more.

wit_bindgen::generate!({
    inline: "
        package fixtures:agent;
        world agent {
            export veeksha:plugin/agent-generator@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use std::cell::Cell;

use exports::veeksha::plugin::agent_generator::{
    Agent, Descriptor, Error, Failure, Generator, Guarantees, Guest, GuestAgent, GuestGenerator, Opening,
    Request, Response, Step, ToolResult,
};
use veeksha::plugin::types::{Edge, Message, Output, Role, Segment, Trigger};

struct Plugin;

struct Askers;

struct Asker {
    session: u64,
    next: Cell<u32>,
}

impl Guest for Plugin {
    type Generator = Askers;
    type Agent = Asker;

    fn describe() -> Descriptor {
        Descriptor {
            name: "agent".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "asks, and answers tool calls".into(),
            config_schema: r#"{"type": "object"}"#.into(),
        }
    }
}

impl GuestGenerator for Askers {
    fn open(_config: String) -> Result<Generator, Error> {
        Ok(Generator::new(Askers))
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
        let asker = Asker {
            session: index,
            next: Cell::new(0),
        };
        let step = asker.ask();
        Ok((Agent::new(asker), opened(step)))
    }
}

impl GuestAgent for Asker {
    fn answered(&self, response: Response) -> Result<Step, Error> {
        let results: Vec<Message> = response
            .tool_calls
            .into_iter()
            .map(|call| {
                let result = format!("{} answers: {}", call.name, call.arguments.len());
                message(Role::Tool, result, Some(call.id))
            })
            .collect();
        if results.is_empty() {
            return Ok(Step {
                tool_runs: Vec::new(),
                cancel: Vec::new(),
                requests: Vec::new(),
                done: true,
            });
        }
        Ok(Step {
            tool_runs: Vec::new(),
            cancel: Vec::new(),
            requests: vec![self.request(Some(response.node), results)],
            done: false,
        })
    }

    fn cancelled(&self, response: Response) -> Result<Step, Error> {
        self.answered(response)
    }

    fn tool_ended(&self, _ended: ToolResult) -> Result<Step, Error> {
        Ok(Step {
            tool_runs: Vec::new(),
            cancel: Vec::new(),
            requests: Vec::new(),
            done: false,
        })
    }

    fn failed(&self, failure: Failure) -> Result<Step, Error> {
        if failure.node > 0 {
            return Err(Error {
                code: "gave-up".into(),
                message: format!("node {} failed: {}", failure.node, failure.code),
                hint: None,
                path: None,
            });
        }
        Ok(self.ask())
    }
}

impl Asker {
    fn ask(&self) -> Step {
        let question = format!("session {}: what is the weather in Lausanne?", self.session);
        Step {
            tool_runs: Vec::new(),
            cancel: Vec::new(),
            requests: vec![self.request(None, vec![message(Role::User, question, None)])],
            done: false,
        }
    }

    fn request(&self, parent: Option<u32>, messages: Vec<Message>) -> Request {
        let node = self.next.get();
        self.next.set(node + 1);
        Request {
            node,
            parents: parent.into_iter().map(ended).collect(),
            history_parent: parent,
            keep_reasoning: false,
            wait_after_ready: 0,
            messages,
            output: Output {
                target_tokens: Some(64),
                exact: false,
                form: None,
            },
            tools: None,
            cancellation: None,
            client: None,
            body: Some(r#"{"tool_choice": "auto"}"#.into()),
            headers: Vec::new(),
            labels: Vec::new(),
            recording: None,
        }
    }
}

fn message(role: Role, text: String, tool_call_id: Option<String>) -> Message {
    Message {
        role,
        content: vec![Segment::Text(text)],
        tool_call_id,
        tool_calls: Vec::new(),
        reasoning: None,
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
