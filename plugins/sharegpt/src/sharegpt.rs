//! The flavor itself: a conversation becomes a chain of requests.

use serde::Deserialize;
use serde_json::Value;
use veeksha_plugin::conversation::{Exchange, RecordedMessage, bust_cache, chain, exchanges};
use veeksha_plugin::flavor::{
    Cell, Column, Group, HistoryMode, Layout, Replay, Row, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Plugin, Request, tokens};

use crate::config::Config;
use crate::limits::Lengths;

/// An open corpus of conversations.
pub struct ShareGpt {
    config: Config,
    count: fn(&str) -> u32,
}

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    id: Option<String>,
    conversations: Vec<Value>,
}

impl Plugin for ShareGpt {
    type Config = Config;
    const NAME: &'static str = "sharegpt";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "whole conversations of ShareGPT's form, turn by turn";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for ShareGpt {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        for (key, value) in [
            ("/max_turns", config.max_turns),
            ("/output_tokens", config.output_tokens),
        ] {
            if value == Some(0) {
                return Err(Error::config(key, "must be 1 or more"));
            }
        }
        Ok(ShareGpt {
            config,
            count: tokens::count,
        })
    }

    fn layout(&self) -> Layout {
        Layout::new([
            Column::optional("id", Cell::Text).or("conversation_id"),
            Column::required("conversations", Cell::Items)
                .or("conversation")
                .or("messages"),
        ])
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let row = &group.rows[0];
        let turns = self.turns(row)?;
        let lengths: Vec<_> = turns
            .iter()
            .map(|turn| (turn.prompt_tokens(self.count), (self.count)(&turn.answer_text())))
            .collect();
        if let Some(why) = (Lengths { turns: &lengths }).refusal(&self.config) {
            return Err(Error {
                code: "filtered".into(),
                ..row.error(why)
            }
            .hint("`on_bad_row: skip` leaves out what the limits refuse"));
        }
        let mut earlier_tokens: u32 = 0;
        let requests = turns.into_iter().zip(lengths).map(|(turn, (prompt, answer))| {
            let sent = match self.config.history {
                HistoryMode::Fresh => prompt,
                HistoryMode::Live | HistoryMode::Recorded => prompt.saturating_add(earlier_tokens),
            };
            earlier_tokens = sent.saturating_add(answer);
            self.request(turn, sent, answer)
        });
        let mut replay = chain(requests, self.config.history);
        bust_cache(
            &mut replay.session,
            self.config.cache_bust_tokens,
            epoch,
            group.index,
        );
        if let Some(id) = &row.cells.id {
            replay.session = replay.session.label("conversation", id);
        }
        Ok(replay)
    }
}

impl ShareGpt {
    /// The answered exchanges of a conversation, as many as are wanted.
    fn turns(&self, row: &Row<Cells>) -> Result<Vec<Exchange>, Error> {
        let messages = (1..).zip(&row.cells.conversations).map(|(number, value)| {
            RecordedMessage::read(value)
                .map_err(|why| row.error(format!("`conversations`, message {number}: {why}")))
        });
        let mut turns = exchanges(messages.collect::<Result<Vec<_>, Error>>()?);
        turns.retain(|turn| turn.answer.is_some());
        turns.truncate(self.config.max_turns.map_or(usize::MAX, |most| most as usize));
        if turns.is_empty() {
            return Err(row.error("`conversations` has no question with an answer"));
        }
        Ok(turns)
    }

    fn request(&self, exchange: Exchange, prompt_tokens: u32, answer_tokens: u32) -> (Request, Turn) {
        let request = Request {
            messages: exchange.messages,
            ..Request::new(0)
        };
        let wanted = self.config.output_tokens.unwrap_or(answer_tokens);
        let turn = Turn {
            answer: exchange.answer,
            prompt_tokens: Some(prompt_tokens),
            output_tokens: Some(answer_tokens),
            ..Turn::new(0)
        };
        (self.config.output_control.ask(request, Some(wanted)), turn)
    }
}

#[cfg(test)]
mod tests;
