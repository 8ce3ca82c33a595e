//! A well-behaved trace flavor: each row is a request, in the order of the file, and what it was
//! given is in the request.
//!
//! `{"grouping": "column"}` (also `row`, `tree`, `pools`): the grouping of its layout. Its
//! layout has every kind of cell; its turns have every history mode and every fact.

wit_bindgen::generate!({
    inline: "
        package fixtures:flavor;
        world flavor {
            export veeksha:plugin/trace-flavor@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use exports::veeksha::plugin::trace_flavor::{
    Arrival, Cell, Column, Descriptor, Error, Facts, Flavor, Group, Grouping, Guarantees, Guest, GuestFlavor,
    Layout, MostFrequent, Row, Session, TimeUnit, Tree,
};
use veeksha::plugin::types::{
    Answer, Edge, HistoryMode, Message, Output, Recording, Request, Role, Seed, Segment, SyntheticText,
    ToolCall, Trigger,
};

struct Plugin;

struct Rows {
    grouping: Grouping,
}

impl Guest for Plugin {
    type Flavor = Rows;

    fn describe() -> Descriptor {
        Descriptor {
            name: "flavor".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "rows as requests".into(),
            config_schema: r#"{"type": "object"}"#.into(),
        }
    }
}

impl GuestFlavor for Rows {
    fn open(config: String) -> Result<Flavor, Error> {
        let grouping = match config.rsplit('"').nth(1) {
            Some("column") => Grouping::Column("text".into()),
            Some("tree") => Grouping::Tree(Tree {
                id: "text".into(),
                parent: "count".into(),
            }),
            Some("pools") => Grouping::Pools,
            Some("row") => Grouping::Row,
            other => {
                return Err(Error {
                    code: "no-grouping".into(),
                    message: format!("`{}` is not a grouping", other.unwrap_or_default()),
                    hint: Some("try `row`".into()),
                    path: Some("/grouping".into()),
                });
            }
        };
        Ok(Flavor::new(Rows { grouping }))
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            max_output_tokens: None,
            max_depth: None,
            distinct_prompts: false,
        }
    }

    fn layout(&self) -> Layout {
        let cells = [
            ("text", Cell::Text),
            ("count", Cell::Count),
            ("integer", Cell::Integer),
            ("number", Cell::Number),
            ("truth", Cell::Truth),
            ("items", Cell::Items),
            ("members", Cell::Members),
            ("anything", Cell::Anything),
        ];
        let column = |(name, cell): (&str, Cell)| Column {
            name: name.into(),
            aliases: vec![format!("{name}-1"), format!("{name}-2")],
            cell,
            required: name == "text",
        };
        Layout {
            columns: cells.map(column).into(),
            rows_in: Some("rows".into()),
            grouping: self.grouping.clone(),
            arrival: Some(Arrival {
                column: "number".into(),
                unit: TimeUnit::Milliseconds,
            }),
            keep: Some(MostFrequent {
                column: "text".into(),
                count: 3,
            }),
            warms_up: true,
        }
    }

    fn sessions(&self, trace: Facts, epoch: u64, groups: Vec<Group>) -> Result<Vec<Session>, Error> {
        Ok(groups.iter().map(|group| replay(&trace, epoch, group)).collect())
    }

    fn warmup(&self, trace: Facts, groups: Vec<Group>) -> Result<Vec<Session>, Error> {
        let session = |group: &Group| Session {
            tool_runs: Vec::new(),
            requests: vec![request(0, &format!("warm {} of {}", group.key, trace.groups), 0)],
            arrives_at: None,
            headers: Vec::new(),
            labels: Vec::new(),
        };
        Ok(groups.iter().map(session).collect())
    }
}

fn replay(trace: &Facts, epoch: u64, group: &Group) -> Session {
    let Facts {
        rows,
        groups,
        first_row,
    } = trace;
    let numbered = || (0..group.rows.len() as u32).zip(&group.rows);
    Session {
        tool_runs: Vec::new(),
        requests: numbered()
            .map(|(node, row)| Request {
                recording: Some(recording(node, row)),
                ..request(node, &row.fields, epoch)
            })
            .collect(),
        arrives_at: group.rows[0].at,
        headers: Vec::new(),
        labels: vec![
            ("group".into(), format!("{} {}", group.index, group.key)),
            ("trace".into(), format!("{rows} {groups} {first_row}")),
        ],
    }
}

fn recording(node: u32, row: &Row) -> Recording {
    let history = [HistoryMode::Live, HistoryMode::Recorded, HistoryMode::Fresh][node as usize % 3];
    Recording {
        history,
        answer: (node > 0).then(|| Answer {
            reasoning: None,
            content: vec![Segment::Text(format!("answer {node}"))],
            tool_calls: vec![ToolCall {
                id: format!("call-{node}"),
                name: "look".into(),
                arguments: r#"{"at": 1}"#.into(),
            }],
        }),
        at: row.at,
        latency: Some(u64::from(node) * 1_000),
        prompt_tokens: Some(row.fields.len() as u32),
        output_tokens: (node > 0).then_some(node),
    }
}

fn request(node: u32, text: &str, epoch: u64) -> Request {
    let before = node.checked_sub(1);
    Request {
        node,
        parents: before.into_iter().map(ended).collect(),
        history_parent: before,
        keep_reasoning: false,
        wait_after_ready: 0,
        messages: vec![Message {
            tool_calls: Vec::new(),
            reasoning: None,
            role: Role::User,
            content: vec![
                Segment::Text(text.into()),
                Segment::Synthetic(SyntheticText {
                    seed: Seed {
                        high: epoch as u32,
                        low: node,
                    },
                    tokens: 1,
                }),
            ],
            tool_call_id: None,
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

export!(Plugin);

/// Waits for the end of a node.
fn ended(parent: u32) -> Edge {
    Edge {
        parent,
        trigger: Trigger::Completed,
        delay: 0,
    }
}
