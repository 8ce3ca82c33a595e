//! The flavor itself: rows with lengths become a chain of requests.

use serde::Deserialize;
use veeksha_plugin::conversation::chain;
use veeksha_plugin::flavor::{
    Cell, Column, Group, HistoryMode, Layout, Replay, TimeUnit, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Plugin, Request, seed_of, synthetic};

use crate::config::Config;

const WAIT: &str = "wait_after_previous_response_s";

/// An open request log.
pub struct RequestLog {
    history: HistoryMode,
    unit: TimeUnit,
}

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    input_length: u32,
    output_length: u32,
    wait_after_previous_response_s: Option<f64>,
}

impl Plugin for RequestLog {
    type Config = Config;
    const NAME: &'static str = "request_log";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "requests of recorded lengths, with unique text";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for RequestLog {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(RequestLog {
            history: config.history.into(),
            unit: config.timestamp_unit.into(),
        })
    }

    fn layout(&self) -> Layout {
        let time = match self.unit {
            TimeUnit::DateTime => Cell::Text,
            _ => Cell::Number,
        };
        Layout::new([
            Column::required("input_length", Cell::Count).or("num_prefill_tokens"),
            Column::required("output_length", Cell::Count).or("num_decode_tokens"),
            Column::optional("session_id", Cell::Text),
            Column::optional("timestamp", time).or("arrived_at"),
            Column::optional(WAIT, Cell::Number),
        ])
        .grouped_by("session_id")
        .arrivals("timestamp", self.unit)
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let mut requests = Vec::with_capacity(group.rows.len());
        let mut earlier_tokens = 0;
        for (turn, row) in (0..).zip(&group.rows) {
            let input = row.positive("input_length", row.cells.input_length)?;
            let output = row.positive("output_length", row.cells.output_length)?;
            let wait = row.seconds(WAIT, row.cells.wait_after_previous_response_s.unwrap_or(0.0))?;
            let seed = seed_of(Self::NAME, &[epoch, group.index, turn]);
            let request = Request::new(0)
                .user(synthetic(seed, input))
                .output_exactly(output);
            let prompt = match self.history {
                HistoryMode::Fresh => input,
                HistoryMode::Live | HistoryMode::Recorded => input.saturating_add(earlier_tokens),
            };
            earlier_tokens = prompt.saturating_add(output);
            requests.push((
                // Before the first request of a session there is no response to wait after.
                if turn == 0 { request } else { request.wait(wait) },
                Turn {
                    at: row.at,
                    prompt_tokens: Some(prompt),
                    output_tokens: Some(output),
                    ..Turn::new(0)
                },
            ));
        }
        let mut replay = chain(requests, self.history);
        replay.session.arrives_at = group.rows.iter().filter_map(|row| row.at).min();
        Ok(replay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veeksha_plugin::flavor::{Grouping, group};
    use veeksha_plugin::{Segment, Session, config};

    fn open(config: &str) -> RequestLog {
        RequestLog::open(config::from_json(config).unwrap()).unwrap()
    }

    fn facts() -> Trace<Cells> {
        Trace::new(9, 9, r#"{"input_length": 1, "output_length": 1}"#)
    }

    fn replay(config: &str, epoch: u64, index: u64, rows: &[&str]) -> Result<Replay, Error> {
        let rows = (1..)
            .zip(rows)
            .map(|(number, row)| (number, Some(number * 100), (*row).into()));
        open(config).session(&facts(), epoch, &group(index, "", rows)?)
    }

    fn texts(session: &Session) -> Vec<Segment> {
        session
            .requests
            .iter()
            .map(|request| request.messages[0].content[0].clone())
            .collect()
    }

    #[test]
    fn a_row_is_a_request_of_its_lengths() {
        let made = replay("{}", 0, 5, &[r#"{"input_length": 700, "output_length": 30}"#]).unwrap();
        let expected = Request::new(0)
            .user(synthetic(seed_of("request_log", &[0, 5, 0]), 700))
            .output_exactly(30);
        assert_eq!(made.session.requests, [expected]);
        assert_eq!(made.session.arrives_at, Some(100));
        let turn = Turn {
            at: Some(100),
            prompt_tokens: Some(700),
            output_tokens: Some(30),
            ..Turn::new(0)
        };
        assert_eq!(made.turns, [turn]);
    }

    const CHAT: [&str; 3] = [
        r#"{"input_length": 100, "output_length": 10, "session_id": "a", "wait_after_previous_response_s": 9}"#,
        r#"{"input_length": 20, "output_length": 30, "session_id": "a", "wait_after_previous_response_s": 1.5}"#,
        r#"{"input_length": 4, "output_length": 5, "session_id": "a"}"#,
    ];

    #[test]
    fn rows_of_a_session_are_turns_of_a_conversation() {
        let made = replay("{}", 0, 0, &CHAT).unwrap();
        let chain: Vec<_> = made
            .session
            .requests
            .iter()
            .map(|request| (request.node, request.history_parent, request.wait_after_ready))
            .collect();
        assert_eq!(
            chain,
            [(0, None, 0), (1, Some(0), 1_500_000_000), (2, Some(1), 0)],
            "before the first turn there is no response"
        );
        // 100; 100 + 10 + 20; 130 + 30 + 4.
        let prompts: Vec<_> = made
            .turns
            .iter()
            .map(|turn| turn.prompt_tokens.unwrap())
            .collect();
        assert_eq!(prompts, [100, 130, 164]);
        assert!(made.turns.iter().all(|turn| turn.history == HistoryMode::Live));
    }

    #[test]
    fn fresh_turns_send_nothing_of_one_another() {
        let made = replay(r#"{"history": "fresh"}"#, 0, 0, &CHAT).unwrap();
        assert_eq!(made.session.requests[2].parents, [1], "they still wait");
        assert_eq!(made.session.requests[2].history_parent, None);
        let prompts: Vec<_> = made
            .turns
            .iter()
            .map(|turn| turn.prompt_tokens.unwrap())
            .collect();
        assert_eq!(prompts, [100, 20, 4]);
    }

    /// Every text of four sessions in three epochs is another one; the shapes are the same.
    #[test]
    fn no_text_occurs_twice() {
        let mut seeds = std::collections::HashSet::new();
        let shape = |replay: &Replay| {
            let mut replay = replay.clone();
            for request in &mut replay.session.requests {
                request.messages.clear();
            }
            replay
        };
        let one = replay("{}", 0, 0, &CHAT).unwrap();
        for epoch in 0..3 {
            for index in 0..4 {
                let made = replay("{}", epoch, index, &CHAT).unwrap();
                assert_eq!(shape(&made), shape(&one));
                for text in texts(&made.session) {
                    let Segment::Synthetic(text) = text else { panic!() };
                    assert!(seeds.insert((text.seed.high, text.seed.low)));
                }
            }
        }
        assert_eq!(seeds.len(), 3 * 4 * CHAT.len());
    }

    #[test]
    fn impossible_rows_are_named() {
        let refused = |row: &str| replay("{}", 0, 0, &[CHAT[0], row]).unwrap_err().message;
        assert_eq!(
            refused(r#"{"input_length": 0, "output_length": 1}"#),
            "row 2: `input_length` is 0; it is 1 or more"
        );
        assert_eq!(
            refused(r#"{"input_length": 1, "output_length": 0}"#),
            "row 2: `output_length` is 0; it is 1 or more"
        );
        assert!(
            refused(r#"{"input_length": 1, "output_length": 1, "wait_after_previous_response_s": -1}"#)
                .starts_with("row 2: `wait_after_previous_response_s` is -1")
        );
        assert!(
            refused(r#"{"input_length": 5000000000, "output_length": 1}"#)
                .starts_with("row 2: `input_length`: ")
        );
    }

    #[test]
    fn a_conversation_beyond_all_bounds_does_not_overflow() {
        let long = r#"{"input_length": 4294967295, "output_length": 4294967295}"#;
        let made = replay("{}", 0, 0, &[long, long]).unwrap();
        assert_eq!(made.turns[1].prompt_tokens, Some(u32::MAX));
    }

    /// Veeksha's names of the columns are known, and sessions are found by their id.
    #[test]
    fn the_layout_knows_veekshas_names() {
        let layout = open("{}").layout();
        let names = |index: usize| {
            let column = &layout.columns[index];
            (column.name.as_str(), column.aliases[0].as_str(), column.required)
        };
        assert_eq!(names(0), ("input_length", "num_prefill_tokens", true));
        assert_eq!(names(1), ("output_length", "num_decode_tokens", true));
        assert_eq!(names(3), ("timestamp", "arrived_at", false));
        assert_eq!(layout.grouping, Grouping::Column("session_id".into()));
        assert_eq!(layout.arrival.unwrap().unit, TimeUnit::Seconds);
    }

    #[test]
    fn timestamps_can_be_written_in_any_unit() {
        for (name, unit, cell) in [
            ("milliseconds", TimeUnit::Milliseconds, Cell::Number),
            ("microseconds", TimeUnit::Microseconds, Cell::Number),
            ("nanoseconds", TimeUnit::Nanoseconds, Cell::Number),
            ("date_time", TimeUnit::DateTime, Cell::Text),
        ] {
            let layout = open(&format!(r#"{{"timestamp_unit": "{name}"}}"#)).layout();
            assert_eq!(layout.arrival.unwrap().unit, unit);
            assert_eq!(layout.columns[3].cell, cell);
        }
    }
}
