//! A tree of rows into a session: one request a row, each waiting for the row that it continues.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use veeksha_plugin::flavor::{
    Cell, Column, Group, HistoryMode, Layout, Replay, Row, TimeUnit, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Message, Plugin, Request, Role, Session};

use crate::config::{Config, ThinkTime};
use crate::prompt;

/// An open flavor.
pub struct Bailian {
    config: Config,
}

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    chat_id: i64,
    parent_chat_id: Option<i64>,
    input_length: u64,
    output_length: u64,
    #[serde(rename = "type")]
    kind: Option<String>,
    turn: Option<i64>,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

impl Plugin for Bailian {
    type Config = Config;
    const NAME: &'static str = "bailian";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "Alibaba Bailian's traces of Qwen models: conversations that fork, prompts of hash blocks";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for Bailian {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        if config.block_size == 0 {
            return Err(Error::config("/block_size", "a block has at least one token"));
        }
        Ok(Bailian { config })
    }

    fn layout(&self) -> Layout {
        Layout::new([
            Column::required("chat_id", Cell::Integer),
            Column::optional("parent_chat_id", Cell::Integer),
            Column::required("timestamp", Cell::Number),
            Column::required("input_length", Cell::Count),
            Column::required("output_length", Cell::Count),
            Column::optional("type", Cell::Text),
            Column::optional("turn", Cell::Integer),
            Column::optional("hash_ids", Cell::Items),
        ])
        // The parent of a root is -1, which is never an id.
        .tree("chat_id", "parent_chat_id")
        .arrivals("timestamp", TimeUnit::Seconds)
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let nodes = nodes(&group.rows)?;
        let parent_of = |row: &Row<Cells>| {
            let parent = nodes.get(&row.cells.parent_chat_id?)?;
            Some((*parent, group.rows[*parent as usize].at))
        };
        let mut requests = Vec::with_capacity(group.rows.len());
        let mut turns = Vec::with_capacity(group.rows.len());
        let mut arrives_at = None;
        for (node, row) in (0u32..).zip(&group.rows) {
            let mut request = self.request(node, row, epoch)?;
            match parent_of(row) {
                Some((parent, before)) => request = request.after(parent).wait(self.wait(before, row.at)),
                None => arrives_at = row.at,
            }
            turns.push(Turn {
                history: HistoryMode::Fresh,
                at: row.at,
                prompt_tokens: Some(row.tokens("input_length", row.cells.input_length)?),
                output_tokens: Some(row.tokens("output_length", row.cells.output_length)?),
                ..Turn::new(node)
            });
            requests.push(request);
        }
        let session = Session {
            arrives_at,
            ..Session::new(requests)
        };
        Ok(Replay::new(session, turns))
    }
}

impl Bailian {
    /// The request of a row, without what it waits for.
    fn request(&self, node: u32, row: &Row<Cells>, epoch: u64) -> Result<Request, Error> {
        let cells = &row.cells;
        let input = row.tokens("input_length", cells.input_length)?;
        let output = row.tokens("output_length", cells.output_length)?;
        let content = prompt::segments(row, &cells.hash_ids, self.config.block_size, input, epoch)?;
        let mut request = Request::new(node)
            .message(Message::new(Role::User, content))
            // A server refuses to answer with nothing.
            .output_exactly(output.max(1))
            .label("chat_id", cells.chat_id.to_string());
        if let Some(kind) = &cells.kind {
            request = request.label("type", kind);
        }
        if let Some(turn) = cells.turn {
            request = request.label("turn", turn.to_string());
        }
        Ok(request)
    }

    fn wait(&self, parent: Option<u64>, child: Option<u64>) -> Duration {
        match (self.config.think_time, parent, child) {
            (ThinkTime::RecordedGap, Some(before), Some(at)) => {
                Duration::from_nanos(at.saturating_sub(before))
            }
            _ => Duration::ZERO,
        }
    }
}

/// The node of each chat: rows are numbered as they stand in the file, a parent may come later.
fn nodes(rows: &[Row<Cells>]) -> Result<HashMap<i64, u32>, Error> {
    let mut nodes = HashMap::with_capacity(rows.len());
    for (node, row) in (0u32..).zip(rows) {
        if let Some(first) = nodes.insert(row.cells.chat_id, node) {
            let first = rows[first as usize].number;
            return Err(row.error(format!(
                "`chat_id` {} is already in row {first}",
                row.cells.chat_id
            )));
        }
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use veeksha_plugin::{Segment, flavor, seed_of, synthetic};

    use super::*;

    fn open(config: &str) -> Bailian {
        Bailian::open(veeksha_plugin::config::from_json(config).unwrap()).unwrap()
    }

    /// Rows numbered from 1, with their arrivals in milliseconds.
    fn session(flavor: &Bailian, epoch: u64, rows: &[(u64, &str)]) -> Result<Replay, Error> {
        let trace = Trace::new(9, 9, "{}");
        let rows = (1..)
            .zip(rows)
            .map(|(number, (at, row))| (number, Some(at * 1_000_000), (*row).to_owned()));
        flavor.session(&trace, epoch, &flavor::group(0, "159", rows)?)
    }

    fn block(epoch: u64, id: u64, tokens: u32) -> Segment {
        synthetic(seed_of("bailian block", &[epoch, id]), tokens)
    }

    fn content(replay: &Replay, node: usize) -> &[Segment] {
        &replay.session.requests[node].messages[0].content
    }

    /// A conversation that forks after its first turn; one branch goes on. Prompts of 40 tokens are
    /// two blocks of 16 and one of 8, whose id represents the full block.
    const FORK: [(u64, &str); 4] = [
        (
            61_114,
            r#"{"chat_id": 159, "parent_chat_id": -1, "input_length": 40, "output_length": 10, "type": "text",
                "turn": 1, "hash_ids": [1, 2, 3]}"#,
        ),
        (
            70_000,
            r#"{"chat_id": 160, "parent_chat_id": 159, "input_length": 64, "output_length": 20, "type": "search",
                "turn": 2, "hash_ids": [1, 2, 4, 5]}"#,
        ),
        (
            80_500,
            r#"{"chat_id": 161, "parent_chat_id": 159, "input_length": 50, "output_length": 0, "type": "text",
                "turn": 2, "hash_ids": [1, 2, 6, 7]}"#,
        ),
        (
            90_000,
            r#"{"chat_id": 162, "parent_chat_id": 160, "input_length": 80, "output_length": 30, "type": "text",
                "turn": 3, "hash_ids": [1, 2, 4, 5, 8]}"#,
        ),
    ];

    #[test]
    fn a_conversation_that_forks_is_a_tree_of_whole_prompts() {
        let replay = session(&open("{}"), 0, &FORK).unwrap();
        let request = |node, chat: &str, kind: &str, turn: &str, blocks: &[(u64, u32)], output| {
            let blocks = blocks.iter().map(|(id, tokens)| block(0, *id, *tokens));
            Request::new(node)
                .message(Message::new(Role::User, blocks.collect()))
                .output_exactly(output)
                .label("chat_id", chat)
                .label("type", kind)
                .label("turn", turn)
        };
        let expected = [
            request(0, "159", "text", "1", &[(1, 16), (2, 16), (3, 8)], 10),
            request(1, "160", "search", "2", &[(1, 16), (2, 16), (4, 16), (5, 16)], 20).after(0),
            // An empty answer is asked for as one token.
            request(2, "161", "text", "2", &[(1, 16), (2, 16), (6, 16), (7, 2)], 1).after(0),
            request(
                3,
                "162",
                "text",
                "3",
                &[(1, 16), (2, 16), (4, 16), (5, 16), (8, 16)],
                30,
            )
            .after(1),
        ];
        assert_eq!(replay.session.requests, expected);
        assert_eq!(replay.session.arrives_at, Some(61_114_000_000));
        let turn = |node, at, prompt, output| Turn {
            history: HistoryMode::Fresh,
            at: Some(at),
            prompt_tokens: Some(prompt),
            output_tokens: Some(output),
            ..Turn::new(node)
        };
        let expected = [
            turn(0, 61_114_000_000, 40, 10),
            turn(1, 70_000_000_000, 64, 20),
            turn(2, 80_500_000_000, 50, 0),
            turn(3, 90_000_000_000, 80, 30),
        ];
        assert_eq!(replay.turns, expected);
    }

    #[test]
    fn the_recorded_gap_is_a_think_time_where_it_is_asked_for() {
        let replay = session(&open(r#"{"think_time": "recorded_gap"}"#), 0, &FORK).unwrap();
        let waits: Vec<u64> = replay
            .session
            .requests
            .iter()
            .map(|r| r.wait_after_ready)
            .collect();
        assert_eq!(waits, [0, 8_886_000_000, 19_386_000_000, 20_000_000_000]);
        // A clock that went backwards makes no negative wait.
        let mut early = FORK;
        early[1].0 = 61_000;
        let replay = session(&open(r#"{"think_time": "recorded_gap"}"#), 0, &early).unwrap();
        assert_eq!(replay.session.requests[1].wait_after_ready, 0);
    }

    /// The order of the rows changes nothing but the numbers of the nodes.
    #[test]
    fn a_parent_may_follow_its_child() {
        let turned = [FORK[1], FORK[0]];
        let replay = session(&open("{}"), 0, &turned).unwrap();
        assert_eq!(replay.session.requests[0].parents, [1]);
        assert!(replay.session.requests[1].parents.is_empty());
        assert_eq!(replay.session.arrives_at, Some(61_114_000_000));
    }

    /// The prefix that two rows have in common is as long as their common ids, whichever
    /// conversation they belong to; the next pass has the same shape and none of the text.
    #[test]
    fn equal_ids_are_equal_text_within_a_pass() {
        let flavor = open(r#"{"block_size": 4}"#);
        let row = |ids: &str, tokens: u32| {
            format!(r#"{{"chat_id": 1, "input_length": {tokens}, "output_length": 1, "hash_ids": {ids}}}"#)
        };
        let one = session(&flavor, 0, &[(0, &row("[9, 8, 7]", 12))]).unwrap();
        let two = session(&flavor, 0, &[(5, &row("[9, 8, 6]", 10))]).unwrap();
        let next = session(&flavor, 1, &[(0, &row("[9, 8, 7]", 12))]).unwrap();
        assert_eq!(content(&one, 0)[..2], content(&two, 0)[..2]);
        assert_ne!(content(&one, 0)[2], content(&two, 0)[2]);
        assert_eq!(one.turns, next.turns);
        for (ours, theirs) in content(&one, 0).iter().zip(content(&next, 0)) {
            assert_ne!(ours, theirs);
        }
    }

    #[test]
    fn rows_without_ids_are_of_unique_text() {
        let row = r#"{"chat_id": 1, "input_length": 30, "output_length": 1}"#;
        let other = r#"{"chat_id": 2, "parent_chat_id": 1, "input_length": 30, "output_length": 1}"#;
        let replay = session(&open("{}"), 0, &[(0, row), (1, other)]).unwrap();
        assert_eq!(
            content(&replay, 0),
            [synthetic(seed_of("bailian row", &[0, 1]), 30)]
        );
        assert_eq!(
            content(&replay, 1),
            [synthetic(seed_of("bailian row", &[0, 2]), 30)]
        );
    }

    #[test]
    fn refuses_rows_that_make_no_session_by_name() {
        let flavor = open("{}");
        let refused = |rows: &[(u64, &str)]| session(&flavor, 0, rows).unwrap_err().message;
        let row = r#"{"chat_id": 5, "input_length": 8, "output_length": 1}"#;
        assert_eq!(
            refused(&[(0, row), (1, row)]),
            "row 2: `chat_id` 5 is already in row 1"
        );
        assert_eq!(
            refused(&[(
                0,
                r#"{"chat_id": 5, "input_length": 16, "output_length": 1, "hash_ids": [1, 2]}"#
            )]),
            "row 1: `hash_ids` do not fit `input_length`: 2 hash ids for 16 tokens, which have 1 blocks of 16; is the block size right?"
        );
        assert_eq!(
            refused(&[(0, r#"{"chat_id": 5, "input_length": 0, "output_length": 1}"#)]),
            "row 1: `input_length` is 0: there is nothing to send"
        );
        let nothing = veeksha_plugin::config::from_json(r#"{"block_size": 0}"#).unwrap();
        assert_eq!(
            Bailian::open(nothing).err().unwrap().path.as_deref(),
            Some("/block_size")
        );
    }

    /// The example of the scenario: two trees and a turn by itself.
    #[test]
    fn the_example_has_the_sessions_of_its_scenario() {
        let example = include_str!("../../../scenarios/traces/bailian.jsonl");
        let lines: Vec<&str> = example.lines().collect();
        let parents = |rows: &[usize]| -> Vec<Vec<u32>> {
            let rows: Vec<(u64, &str)> = rows.iter().map(|row| (0, lines[*row])).collect();
            let replay = session(&open("{}"), 0, &rows).unwrap();
            replay
                .session
                .requests
                .into_iter()
                .map(|request| request.parent_nodes())
                .collect()
        };
        assert_eq!(parents(&[0, 2, 3, 5]), [vec![], vec![0], vec![0], vec![1]]);
        assert_eq!(parents(&[1, 6]), [vec![], vec![0]]);
        assert_eq!(parents(&[4]), [Vec::<u32>::new()]);
    }
}
