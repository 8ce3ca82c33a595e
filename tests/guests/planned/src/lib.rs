//! A well-behaved planned generator.
//!
//! `{"turns": 3, "length": 100}`: chains of `turns` nodes with think time, drawn from
//! `random.words`; no `length`: endless.

wit_bindgen::generate!({
    inline: "
        package fixtures:planned;
        world planned {
            import veeksha:plugin/random@0.2.0;
            import veeksha:plugin/log@0.2.0;
            export veeksha:plugin/session-generator@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use exports::veeksha::plugin::session_generator::{
    Descriptor, Error, Guarantees, Guest, GuestWorkload, Session, Workload,
};
use veeksha::plugin::types::{Edge, Message, Output, Request, Role, Seed, Segment, SyntheticText, Trigger};
use veeksha::plugin::{log, random};

struct Plugin;

struct Chains {
    turns: u32,
    length: Option<u64>,
}

impl Guest for Plugin {
    type Workload = Chains;

    fn describe() -> Descriptor {
        Descriptor {
            name: "planned".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "chains of turns".into(),
            config_schema: r#"{"type": "object"}"#.into(),
        }
    }
}

impl GuestWorkload for Chains {
    fn open(config: String) -> Result<Workload, Error> {
        let turns = member(&config, "turns").unwrap_or(3);
        if turns == 0 {
            return Err(Error {
                code: "no-turns".into(),
                message: "a session needs at least one turn".into(),
                hint: Some("set `turns` to 1 or more".into()),
                path: Some("/turns".into()),
            });
        }
        log::write(log::Level::Info, "opened");
        Ok(Workload::new(Chains {
            turns: turns as u32,
            length: member(&config, "length"),
        }))
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            max_output_tokens: Some(200),
            max_depth: Some(self.turns),
            distinct_prompts: true,
        }
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn sessions(&self, first: u64, count: u32) -> Result<Vec<Session>, Error> {
        let end = first
            .saturating_add(count.into())
            .min(self.length.unwrap_or(u64::MAX));
        Ok((first..end).map(|index| self.session(index)).collect())
    }
}

impl Chains {
    fn session(&self, index: u64) -> Session {
        let words = random::words(index, "chains", 0, 3 * self.turns);
        let turn = |node: u32| {
            let [high, low, length] = words.as_chunks::<3>().0[node as usize];
            let before = node.checked_sub(1);
            Request {
                node,
                parents: before.into_iter().map(ended).collect(),
                history_parent: before,
                keep_reasoning: false,
                wait_after_ready: before.map_or(0, |_| u64::from(length % 1000) * 1_000_000),
                messages: vec![Message {
                    reasoning: None,
                    tool_calls: Vec::new(),
                    role: Role::User,
                    content: vec![
                        Segment::Text(format!("turn {node} of session {index}: ")),
                        Segment::Synthetic(SyntheticText {
                            seed: Seed { high, low },
                            tokens: 1 + length % 500,
                        }),
                    ],
                    tool_call_id: None,
                }],
                output: Output {
                    target_tokens: Some(1 + low % 200),
                    exact: true,
                    form: None,
                },
                tools: None,
                cancellation: None,
                client: None,
                body: None,
                headers: Vec::new(),
                labels: vec![("turn".into(), node.to_string())],
                recording: None,
            }
        };
        Session {
            tool_runs: Vec::new(),
            requests: (0..self.turns).map(turn).collect(),
            arrives_at: None,
            headers: Vec::new(),
            labels: vec![("fixture".into(), "planned".into())],
        }
    }
}

/// The number behind `"name":`, which is all the JSON that this fixture needs.
fn member(config: &str, name: &str) -> Option<u64> {
    let after = config
        .split_once(&format!("\"{name}\""))?
        .1
        .trim_start()
        .strip_prefix(':')?
        .trim_start();
    let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
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
