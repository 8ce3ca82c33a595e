//! The flavor itself: the nodes of a session become requests, with text that no other conversation
//! has.

use veeksha_plugin::flavor::{
    Cell, Column, Group, HistoryMode, Layout, Replay, TimeUnit, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{
    Corpus, Edge, Error, Message, Plugin, Request, Role, Segment, Session, seed_of, synthetic,
};

use crate::config::Config;
use crate::graph::nodes;
use crate::node::{Cells, Node};

/// An open trace of timed sessions.
pub struct TimedSyntheticSession {
    page_size: u32,
    corpus: Option<Corpus>,
    history: HistoryMode,
}

impl Plugin for TimedSyntheticSession {
    type Config = Config;
    const NAME: &'static str = "timed_synthetic_session";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "sessions of recorded lengths, graphs and think times";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for TimedSyntheticSession {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        if config.page_size == 0 {
            return Err(Error::config("/page_size", "a page has at least one token"));
        }
        let corpus = config.corpus_file.filter(|name| !name.is_empty());
        Ok(TimedSyntheticSession {
            page_size: config.page_size,
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
            Column::required("input_length", Cell::Count).or("num_prefill_tokens"),
            Column::required("new_input_length", Cell::Count),
            Column::required("output_length", Cell::Count).or("num_decode_tokens"),
            Column::optional("session_context", Cell::Members),
            Column::optional("turn_idx", Cell::Integer),
            Column::optional("wait_after_previous_response_s", Cell::Number),
            Column::optional("timestamp", Cell::Number).or("arrived_at"),
        ])
        .grouped_by("session_id")
        .arrivals("timestamp", TimeUnit::Seconds)
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let nodes = nodes(group)?;
        let mut requests = Vec::with_capacity(nodes.len());
        let mut turns = Vec::with_capacity(nodes.len());
        for node in nodes {
            let (request, turn) = self.request(node, &[epoch, group.index])?;
            requests.push(request);
            turns.push(turn);
        }
        let session = Session {
            arrives_at: group.rows.iter().filter_map(|row| row.at).min(),
            ..Session::new(requests)
        };
        Ok(Replay::new(session, turns))
    }
}

impl TimedSyntheticSession {
    /// One request. `session` is what its text depends on in addition to the node.
    fn request(&self, node: Node<'_>, session: &[u64; 2]) -> Result<(Request, Turn), Error> {
        let row = node.row;
        let input = row.cells.input_length;
        let new = row.positive("new_input_length", row.cells.new_input_length)?;
        let output = row.positive("output_length", row.cells.output_length)?;
        if new > input {
            return Err(row.error(format!(
                "`new_input_length` is {new}, more than the whole prompt: `input_length` is {input}"
            )));
        }
        // What continues no conversation begins one.
        let history_parent = match self.history {
            HistoryMode::Fresh => None,
            HistoryMode::Live | HistoryMode::Recorded => node.history_parent,
        };
        let page = match history_parent {
            None => new.min(self.page_size),
            Some(_) => 0,
        };
        let [epoch, group] = *session;
        let content = self.content(&[epoch, group, node.id.into()], page, new - page);
        let turn = Turn {
            history: if node.history_parent.is_some() {
                self.history
            } else {
                HistoryMode::Live
            },
            at: row.at,
            prompt_tokens: Some(input),
            output_tokens: Some(output),
            ..Turn::new(node.id)
        };
        let request = Request {
            parents: node.parents.into_iter().map(Edge::from).collect(),
            history_parent,
            ..Request::new(node.id)
                .wait(node.wait)
                .message(Message::new(Role::User, content))
                .output_exactly(output)
        };
        Ok((request, turn))
    }

    /// A page of text that no other conversation has, and the rest, which may be the user's own
    /// text.
    fn content(&self, place: &[u64; 3], page: u32, rest: u32) -> Vec<Segment> {
        let mut content = Vec::with_capacity(2);
        if page > 0 {
            content.push(synthetic(seed_of("timed_synthetic_session/page", place), page));
        }
        if rest > 0 {
            let seed = seed_of("timed_synthetic_session/text", place);
            match &self.corpus {
                Some(corpus) => content.extend(corpus.segments(seed, rest, if page > 0 { "\n" } else { "" })),
                None => content.push(synthetic(seed, rest)),
            }
        }
        content
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::testing::group;
    use veeksha_plugin::{SyntheticText, config, flavor, text};

    fn open(config: &str) -> TimedSyntheticSession {
        TimedSyntheticSession::open(config::from_json(config).unwrap()).unwrap()
    }

    fn facts() -> Trace<Cells> {
        Trace::new(9, 9, "{}")
    }

    /// A fork: node 1 continues 0, node 2 begins a new conversation once 0 is done, 3
    /// continues 2.
    const FORK: [&str; 4] = [
        r#""session_context": {"node_id": 0}"#,
        r#""session_context": {"node_id": 1, "parent_nodes": [0], "history_parent": 0, "wait_after_ready": 2}"#,
        r#""session_context": {"node_id": 2, "parent_nodes": [0]}"#,
        r#""session_context": {"node_id": 3, "parent_nodes": [2, 1], "history_parent": 2}"#,
    ];

    fn seed(what: &str, epoch: u64, group: u64, node: u64) -> u64 {
        seed_of(&format!("timed_synthetic_session/{what}"), &[epoch, group, node])
    }

    #[test]
    fn a_session_is_the_graph_of_its_contexts() {
        let made = open("{}").session(&facts(), 0, &group(7, &FORK)).unwrap();
        let begin = |node: u32, id: u64| {
            let content = vec![
                synthetic(seed("page", 0, 7, id), 16),
                synthetic(seed("text", 0, 7, id), 16),
            ];
            Request::new(node)
                .message(Message::new(Role::User, content))
                .output_exactly(8)
        };
        let go_on = |node: u32, id: u64| {
            Request::new(node)
                .user(synthetic(seed("text", 0, 7, id), 32))
                .output_exactly(8)
        };
        assert_eq!(
            made.session.requests,
            [
                begin(0, 0),
                go_on(1, 1).history(0).wait(std::time::Duration::from_secs(2)),
                begin(2, 2).after(0),
                go_on(3, 3).history(2).after(1),
            ]
        );
        let turn = |node| Turn {
            prompt_tokens: Some(96),
            output_tokens: Some(8),
            ..Turn::new(node)
        };
        assert_eq!(made.turns, [0, 1, 2, 3].map(turn));
    }

    #[test]
    fn fresh_requests_all_begin_a_conversation() {
        let made = open(r#"{"history": "fresh", "page_size": 32}"#)
            .session(&facts(), 0, &group(0, &FORK))
            .unwrap();
        for request in &made.session.requests {
            assert_eq!(request.history_parent, None);
            let page = synthetic(seed("page", 0, 0, request.node.into()), 32);
            assert_eq!(request.messages[0].content, [page], "all of it is the page");
        }
        assert_eq!(made.session.requests[3].parents, [2, 1], "the order stays");
        let modes: Vec<_> = made.turns.iter().map(|turn| turn.history).collect();
        use HistoryMode::{Fresh, Live};
        assert_eq!(modes, [Live, Fresh, Live, Fresh]);
    }

    /// The first page of every conversation: in 3 epochs, 3 sessions and both conversations of the
    /// fork no text occurs twice, and what a conversation goes on with occurs nowhere else either.
    #[test]
    fn conversations_differ_in_the_first_page() {
        let flavor = open(r#"{"page_size": 4}"#);
        let mut beginnings = HashSet::new();
        let mut all = HashSet::new();
        for epoch in 0..3 {
            for index in 0..3 {
                let made = flavor.session(&facts(), epoch, &group(index, &FORK)).unwrap();
                for request in made.session.requests {
                    for (at, segment) in request.messages[0].content.iter().enumerate() {
                        let Segment::Synthetic(SyntheticText { seed, tokens }) = segment else {
                            panic!()
                        };
                        assert!(all.insert((seed.high, seed.low)), "each text is new");
                        if at == 0 && request.history_parent.is_none() {
                            assert_eq!(*tokens, 4);
                            beginnings.insert((seed.high, seed.low));
                        }
                    }
                }
            }
        }
        assert_eq!(beginnings.len(), 3 * 3 * 2);
        assert_eq!(all.len(), 3 * 3 * (4 + 2));
    }

    #[test]
    fn a_corpus_gives_the_text_behind_the_page() {
        let words = |text: &str| text.split_whitespace().count() as u32;
        let flavor = TimedSyntheticSession {
            corpus: Some(Corpus::new("so it goes\n", words).unwrap()),
            ..open(r#"{"page_size": 30}"#)
        };
        let made = flavor.session(&facts(), 0, &group(0, &FORK)).unwrap();
        assert_eq!(
            made.session.requests[0].messages[0].content,
            [synthetic(seed("page", 0, 0, 0), 30), text("\nso it")]
        );
        let later = "so it goes\n".repeat(10) + "so it";
        assert_eq!(
            made.session.requests[1].messages[0].content,
            [text(later)],
            "32 words"
        );
    }

    fn refused(row: &str) -> String {
        let group = flavor::group(0, "s", [(4, None, row.to_owned())]).unwrap();
        open("{}").session(&facts(), 0, &group).unwrap_err().message
    }

    #[test]
    fn impossible_lengths_and_mixed_sessions_are_named() {
        assert_eq!(
            refused(r#"{"input_length": 9, "new_input_length": 10, "output_length": 1}"#),
            "row 4: `new_input_length` is 10, more than the whole prompt: `input_length` is 9"
        );
        assert_eq!(
            refused(r#"{"input_length": 9, "new_input_length": 0, "output_length": 1}"#),
            "row 4: `new_input_length` is 0; it is 1 or more"
        );
        assert_eq!(
            refused(r#"{"input_length": 9, "new_input_length": 9, "output_length": 0}"#),
            "row 4: `output_length` is 0; it is 1 or more"
        );
        let mixed = open("{}")
            .session(&facts(), 0, &group(0, &[FORK[0], "", FORK[1], ""]))
            .unwrap_err();
        assert_eq!(
            mixed.message,
            "row 2: `session_context` is missing in rows 2, 4 of the session `s` and present in rows 1, 3; give it to all \
             rows of a session or to none"
        );
    }

    #[test]
    fn arrivals_are_the_earliest_row_and_each_row() {
        let row = r#"{"input_length": 9, "new_input_length": 9, "output_length": 1}"#;
        let rows = [
            (1, Some(70), row.to_owned()),
            (2, Some(50), row.to_owned()),
            (3, None, row.to_owned()),
        ];
        let made = open("{}")
            .session(&facts(), 0, &flavor::group(0, "s", rows).unwrap())
            .unwrap();
        assert_eq!(made.session.arrives_at, Some(50));
        let sent: Vec<_> = made.turns.iter().map(|turn| turn.at).collect();
        assert_eq!(sent, [Some(70), Some(50), None]);
    }

    #[test]
    fn a_page_has_tokens_and_an_empty_corpus_is_none() {
        let refused = TimedSyntheticSession::open(config::from_json(r#"{"page_size": 0}"#).unwrap())
            .err()
            .unwrap();
        assert_eq!(refused.path.as_deref(), Some("/page_size"));
        for none in [r#"{"corpus_file": ""}"#, r#"{"corpus_file": null}"#, "{}"] {
            assert!(open(none).corpus.is_none());
        }
    }
}
