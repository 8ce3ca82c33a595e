//! The flavor itself: hash blocks for the first prompt of a session, new text for the others.

use serde::Deserialize;
use veeksha_plugin::conversation::chain;
use veeksha_plugin::flavor::{
    Cell, Column, Group, HistoryMode, Layout, Replay, Row, TimeUnit, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{
    Corpus, Error, LastBlock, Message, Plugin, Request, Role, Segment, blocks, seed_of, synthetic,
};

use crate::config::Config;

const WAIT: &str = "wait_after_previous_response_s";

/// An open trace with hash ids.
pub struct SharedPrefix {
    block_size: u32,
    corpus: Option<Corpus>,
    history: HistoryMode,
}

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    input_length: Option<u32>,
    new_input_length: u32,
    output_length: u32,
    hash_ids: Option<Vec<u64>>,
    wait_after_previous_response_s: Option<f64>,
}

impl Plugin for SharedPrefix {
    type Config = Config;
    const NAME: &'static str = "shared_prefix";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "conversations that begin with the blocks their hash ids name";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for SharedPrefix {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        if config.block_size == 0 {
            return Err(Error::config("/block_size", "a block has at least one token"));
        }
        let corpus = config.corpus_file.filter(|name| !name.is_empty());
        Ok(SharedPrefix {
            block_size: config.block_size,
            corpus: corpus
                .map(|name| Corpus::open(&name))
                .transpose()
                .map_err(|error| error.at("/corpus_file"))?,
            history: config.history.into(),
        })
    }

    fn layout(&self) -> Layout {
        Layout::new([
            Column::required("session_id", Cell::Text),
            Column::optional("input_length", Cell::Count).or("num_prefill_tokens"),
            Column::required("new_input_length", Cell::Count),
            Column::required("output_length", Cell::Count).or("num_decode_tokens"),
            Column::optional("hash_ids", Cell::Items),
            Column::optional(WAIT, Cell::Number),
            Column::optional("timestamp", Cell::Number).or("arrived_at"),
        ])
        .grouped_by("session_id")
        .arrivals("timestamp", TimeUnit::Seconds)
    }

    fn session(&self, trace: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let global = trace
            .first_row()
            .and_then(|row| row.hash_ids.as_deref()?.first().copied());
        let mut requests = Vec::with_capacity(group.rows.len());
        for (turn, row) in (0..).zip(&group.rows) {
            let seed = seed_of("shared_prefix/text", &[epoch, group.index, turn]);
            let output = row.positive("output_length", row.cells.output_length)?;
            let wait = row.seconds(WAIT, row.cells.wait_after_previous_response_s.unwrap_or(0.0))?;
            let request = Request::new(0).output_exactly(output);
            let (content, prompt, request) = match turn {
                0 => {
                    let tokens = whole(row)?;
                    let content = self.first(row, tokens, |id| block(id, epoch, global), seed)?;
                    // Before the first request of a session there is no response to wait after.
                    (content, Some(tokens), request)
                }
                _ => (self.later(row, seed)?, row.cells.input_length, request.wait(wait)),
            };
            requests.push((
                request.message(Message::new(Role::User, content)),
                Turn {
                    at: row.at,
                    prompt_tokens: prompt,
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

impl SharedPrefix {
    /// The first prompt: its blocks, the last one partial, and unique text where the ids end
    /// early.
    fn first(
        &self,
        row: &Row<Cells>,
        tokens: u32,
        seed: impl Fn(u64) -> u64,
        rest: u64,
    ) -> Result<Vec<Segment>, Error> {
        let ids = row.cells.hash_ids.as_deref().ok_or_else(|| {
            row.error("`hash_ids` is missing; the first row of a session names the blocks of its prompt")
        })?;
        blocks(ids, self.block_size, tokens, LastBlock::Partial, seed, rest).map_err(|message| {
            row.error(format!("`hash_ids`: {message}"))
                .hint("`block_size` is the number of tokens of an id's block")
                .at("/block_size")
        })
    }

    /// The text that a later turn adds; no other turn has it.
    fn later(&self, row: &Row<Cells>, seed: u64) -> Result<Vec<Segment>, Error> {
        let new = row.positive("new_input_length", row.cells.new_input_length)?;
        if let Some(input) = row.cells.input_length.filter(|input| *input < new) {
            return Err(row.error(format!(
                "`new_input_length` is {new}, more than the whole prompt: `input_length` is {input}"
            )));
        }
        Ok(match &self.corpus {
            Some(corpus) => corpus.segments(seed, new, ""),
            None => vec![synthetic(seed, new)],
        })
    }
}

/// The length of the first prompt of a session.
fn whole(row: &Row<Cells>) -> Result<u32, Error> {
    match row.cells.input_length {
        Some(tokens) => row.positive("input_length", tokens),
        None => row.positive("new_input_length", row.cells.new_input_length),
    }
}

/// The seed of a block. Blocks are new in every epoch, but for the one that the whole trace begins
/// with: the system prompt that all sessions have in common.
fn block(id: u64, epoch: u64, global: Option<u64>) -> u64 {
    if global == Some(id) {
        seed_of("shared_prefix/global", &[id])
    } else {
        seed_of("shared_prefix/block", &[id, epoch])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use veeksha_plugin::{config, flavor, text};

    const TRACE: [&str; 2] = [
        r#"{"input_length": 1300, "new_input_length": 1300, "output_length": 20, "hash_ids": [7, 8, 9]}"#,
        r#"{"input_length": 1420, "new_input_length": 100, "output_length": 30, "hash_ids": [7, 8, 10],
            "wait_after_previous_response_s": 0.5}"#,
    ];

    fn open(config: &str) -> SharedPrefix {
        SharedPrefix::open(config::from_json(config).unwrap()).unwrap()
    }

    fn replay(flavor: &SharedPrefix, epoch: u64, index: u64, rows: &[&str]) -> Result<Replay, Error> {
        let rows = (1..).zip(rows).map(|(number, row)| (number, None, (*row).into()));
        let facts = Trace::new(9, 9, TRACE[0]);
        flavor.session(&facts, epoch, &flavor::group(index, "s", rows)?)
    }

    fn content(replay: &Replay, turn: usize) -> &[Segment] {
        &replay.session.requests[turn].messages[0].content
    }

    #[test]
    fn blocks_first_and_then_new_text() {
        let made = replay(&open("{}"), 0, 3, &TRACE).unwrap();
        let block = |id| seed_of("shared_prefix/block", &[id, 0]);
        assert_eq!(
            content(&made, 0),
            [
                synthetic(seed_of("shared_prefix/global", &[7]), 512),
                synthetic(block(8), 512),
                synthetic(block(9), 1300 - 1024),
            ],
            "the last block is partial"
        );
        let own = seed_of("shared_prefix/text", &[0, 3, 1]);
        let second = Request::new(1).history(0).user(synthetic(own, 100));
        let second = second
            .output_exactly(30)
            .wait(std::time::Duration::from_millis(500));
        assert_eq!(made.session.requests[1], second);
        let facts: Vec<_> = made
            .turns
            .iter()
            .map(|turn| (turn.prompt_tokens, turn.output_tokens))
            .collect();
        assert_eq!(facts, [(Some(1300), Some(20)), (Some(1420), Some(30))]);
    }

    #[test]
    fn without_input_length_the_new_tokens_are_the_first_prompt() {
        let row = r#"{"new_input_length": 70, "output_length": 1, "hash_ids": [1]}"#;
        let made = replay(&open(r#"{"block_size": 64}"#), 2, 0, &[row, row]).unwrap();
        assert_eq!(
            content(&made, 0),
            [
                synthetic(seed_of("shared_prefix/block", &[1, 2]), 64),
                synthetic(seed_of("shared_prefix/text", &[2, 0, 0]), 6)
            ],
            "what no id covers is the session's own"
        );
        assert_eq!(made.turns[0].prompt_tokens, Some(70));
        assert_eq!(made.turns[1].prompt_tokens, None, "the trace does not say");
    }

    /// In three epochs of sessions with all pairs of ids from 5 to 9: the same id and epoch give
    /// the same text, everything else another one; only the global id, 7, stays from epoch to
    /// epoch.
    #[test]
    fn equal_ids_are_equal_text_within_an_epoch() {
        let flavor = open(r#"{"block_size": 10}"#);
        let mut seen: HashMap<(u64, u64), Segment> = HashMap::new();
        for (epoch, a, b) in (0..75).map(|n| (n / 25, 5 + n / 5 % 5, 5 + n % 5)) {
            let row = format!(r#"{{"new_input_length": 20, "output_length": 1, "hash_ids": [{a}, {b}]}}"#);
            let made = replay(&flavor, epoch, 5 * a + b, &[&row]).unwrap();
            for (id, segment) in [a, b].into_iter().zip(content(&made, 0)) {
                let before = seen.entry((epoch, id)).or_insert_with(|| segment.clone());
                assert_eq!(before, segment);
            }
        }
        let texts: HashSet<_> = seen
            .values()
            .map(|segment| match segment {
                Segment::Synthetic(text) => (text.seed.high, text.seed.low),
                _ => panic!(),
            })
            .collect();
        assert_eq!(texts.len(), 3 * 4 + 1);
        assert_eq!(seen[&(0, 7)], seen[&(2, 7)]);
    }

    #[test]
    fn later_turns_have_unique_text_and_are_never_empty() {
        let flavor = open("{}");
        let mut texts = HashSet::new();
        for (epoch, index) in (0..9).map(|n| (n / 3, n % 3)) {
            let made = replay(&flavor, epoch, index, &[TRACE[0], TRACE[1], TRACE[1]]).unwrap();
            for turn in [1, 2] {
                let [Segment::Synthetic(text)] = content(&made, turn) else {
                    panic!()
                };
                assert_eq!(text.tokens, 100);
                assert!(texts.insert((text.seed.high, text.seed.low)));
            }
        }
        assert_eq!(texts.len(), 18);
        let corpus = Corpus::new("lorem ipsum\n", |text| text.split_whitespace().count() as u32).unwrap();
        let flavor = SharedPrefix {
            corpus: Some(corpus),
            ..flavor
        };
        let made = replay(&flavor, 0, 0, &TRACE).unwrap();
        assert_eq!(content(&made, 1), [text("lorem ipsum\n".repeat(50).trim_end())]);
        assert!(
            matches!(content(&made, 0)[1], Segment::Synthetic(_)),
            "blocks stay synthetic"
        );
    }

    #[test]
    fn fresh_turns_send_nothing_of_one_another() {
        let made = replay(&open(r#"{"history": "fresh"}"#), 0, 0, &TRACE).unwrap();
        let second = &made.session.requests[1];
        assert_eq!(second.parents, [0]);
        assert_eq!(second.history_parent, None);
        assert_eq!(made.turns[1].history, HistoryMode::Fresh);
    }

    #[test]
    fn a_session_arrives_with_its_earliest_row() {
        let rows = [
            (1, Some(70), TRACE[0].to_owned()),
            (2, Some(50), TRACE[1].to_owned()),
        ];
        let facts = Trace::new(2, 1, TRACE[0]);
        let made = open("{}")
            .session(&facts, 0, &flavor::group(0, "s", rows).unwrap())
            .unwrap();
        assert_eq!(made.session.arrives_at, Some(50));
        assert_eq!([made.turns[0].at, made.turns[1].at], [Some(70), Some(50)]);
    }

    #[test]
    fn impossible_rows_are_named() {
        let refused = |rows: &[&str]| replay(&open("{}"), 0, 0, rows).unwrap_err().message;
        assert_eq!(
            refused(&[TRACE[0], r#"{"new_input_length": 0, "output_length": 1}"#]),
            "row 2: `new_input_length` is 0; it is 1 or more"
        );
        assert_eq!(
            refused(&[r#"{"new_input_length": 5, "output_length": 1}"#]),
            "row 1: `hash_ids` is missing; the first row of a session names the blocks of its prompt"
        );
        assert_eq!(
            refused(&[
                r#"{"input_length": 512, "new_input_length": 5, "output_length": 1, "hash_ids": [1, 2]}"#
            ]),
            "row 1: `hash_ids`: 2 hash ids for 512 tokens, which have 1 blocks of 512; is the block size right?"
        );
        assert_eq!(
            refused(&[r#"{"input_length": 0, "new_input_length": 5, "output_length": 1, "hash_ids": []}"#]),
            "row 1: `input_length` is 0; it is 1 or more"
        );
        assert_eq!(
            refused(&[
                TRACE[0],
                r#"{"input_length": 4, "new_input_length": 5, "output_length": 1}"#
            ]),
            "row 2: `new_input_length` is 5, more than the whole prompt: `input_length` is 4"
        );
        assert_eq!(
            refused(&[r#"{"new_input_length": 5, "output_length": 0, "hash_ids": []}"#]),
            "row 1: `output_length` is 0; it is 1 or more"
        );
        assert!(
            refused(&[r#"{"new_input_length": 5, "output_length": 1, "hash_ids": [1, "b"]}"#])
                .starts_with("row 1: `hash_ids.1`: ")
        );
    }

    #[test]
    fn a_block_has_tokens() {
        let refused = SharedPrefix::open(config::from_json(r#"{"block_size": 0}"#).unwrap())
            .err()
            .unwrap();
        assert_eq!(refused.path.as_deref(), Some("/block_size"));
    }
}
