//! The flavor itself: a row is a request; rows of one session follow one another.

use serde::Deserialize;
use serde_json::{Map, Value};
use veeksha_plugin::conversation::{Modalities, bust_cache, chain, role};
use veeksha_plugin::flavor::{
    Cell, Column, Group, HistoryMode, Layout, Replay, Row, TimeUnit, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Message, Plugin, Request, Role};

use crate::config::Config;

/// An open list of requests.
pub struct SingleTurn {
    config: Config,
}

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    #[serde(flatten)]
    content: Modalities,
    system: Option<String>,
    role: Option<String>,
    timestamp: Option<f64>,
    delay: Option<f64>,
    output_length: Option<u64>,
    extra: Option<Map<String, Value>>,
    image_uuids: Option<Value>,
}

impl Plugin for SingleTurn {
    type Config = Config;
    const NAME: &'static str = "single_turn";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "AIPerf's rows of one request each, with text, images, audio and video";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for SingleTurn {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        if config.output_tokens == Some(0) {
            return Err(Error::config("/output_tokens", "must be 1 or more"));
        }
        Ok(SingleTurn { config })
    }

    fn layout(&self) -> Layout {
        let mut columns = Modalities::columns();
        columns.extend([
            Column::optional("system", Cell::Text),
            Column::optional("role", Cell::Text),
            Column::optional("timestamp", Cell::Number),
            Column::optional("delay", Cell::Number),
            Column::optional("session_id", Cell::Text),
            Column::optional("output_length", Cell::Count),
            Column::optional("extra", Cell::Members),
            Column::optional("image_uuids", Cell::Anything),
        ]);
        Layout::new(columns)
            .grouped_by("session_id")
            .arrivals("timestamp", TimeUnit::Milliseconds)
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let requests = group.rows.iter().map(|row| self.request(row));
        let requests = requests.collect::<Result<Vec<_>, Error>>()?;
        // Each row contains all that its request sends; earlier answers are not sent.
        let mut replay = chain(requests, HistoryMode::Fresh);
        bust_cache(
            &mut replay.session,
            self.config.cache_bust_tokens,
            epoch,
            group.index,
        );
        replay.session.arrives_at = group.rows.iter().filter_map(|row| row.at).min();
        if !group.key.is_empty() {
            replay.session = replay.session.label("conversation", &group.key);
        }
        Ok(replay)
    }
}

impl SingleTurn {
    fn request(&self, row: &Row<Cells>) -> Result<(Request, Turn), Error> {
        let cells = &row.cells;
        if cells.timestamp.is_some() && cells.delay.is_some() {
            return Err(row.error("`timestamp` and `delay` stand together; a request has one of them"));
        }
        if cells.image_uuids.is_some() {
            return Err(row.error(
                "`image_uuids` is not supported; `extra` carries what a server knows beyond the standard",
            ));
        }
        let mut request = Request::new(0);
        if let Some(system) = &cells.system {
            request = request.system(system.as_str());
        }
        let role = match cells.role.as_deref() {
            None => Role::User,
            Some(name) => role(name)
                .ok_or_else(|| row.error(format!("`role` is `{name}`, which is not a known role")))?,
        };
        let content = cells.content.segments().map_err(|why| row.error(why))?;
        request = request.message(Message::new(role, content));
        if let Some(delay) = cells.delay {
            request = request.wait(row.milliseconds("delay", delay)?);
        }
        let length = cells
            .output_length
            .map(|length| row.tokens("output_length", length))
            .transpose()?;
        if length == Some(0) {
            return Err(row.error("`output_length` is 0; an answer has at least one token"));
        }
        request = self
            .config
            .output_control
            .ask(request, length.or(self.config.output_tokens));
        if let Some(extra) = &cells.extra {
            request = request.body(Value::Object(extra.clone()).to_string());
        }
        let turn = Turn {
            at: row.at,
            output_tokens: length,
            ..Turn::new(0)
        };
        Ok((request, turn))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use veeksha_plugin::flavor::{Grouping, group};
    use veeksha_plugin::{Media, MediaKind, Segment, config, text};

    use super::*;

    /// The session of some rows, numbered from 1, that arrive at the times next to them.
    fn replay(config: &str, key: &str, rows: &[(Option<u64>, &str)]) -> Result<Replay, Error> {
        let numbered = (1..)
            .zip(rows)
            .map(|(number, (at, row))| (number, *at, (*row).to_owned()));
        let group = group(4, key, numbered)?;
        let flavor = SingleTurn::open(config::from_json(config)?)?;
        flavor.session(&Trace::new(9, 9, "{}"), 2, &group)
    }

    fn request(config: &str, row: &str) -> Request {
        replay(config, "", &[(None, row)])
            .unwrap()
            .session
            .requests
            .remove(0)
    }

    fn refused(row: &str) -> String {
        replay("{}", "", &[(None, row)]).unwrap_err().message
    }

    /// The examples of AIPerf's guide.
    #[test]
    fn a_row_is_a_request() {
        assert_eq!(
            request("{}", r#"{"text": "What is deep learning?"}"#),
            Request::new(0).user("What is deep learning?")
        );
        let image = |source: &str| {
            Segment::Media(Media {
                kind: MediaKind::Image,
                source: source.into(),
            })
        };
        let row =
            r#"{"texts": ["Who are you?", "Hello world"], "images": ["a.png", "https://x.test/b.png"]}"#;
        let content = vec![
            text("Who are you?\nHello world"),
            image("a.png"),
            image("https://x.test/b.png"),
        ];
        assert_eq!(
            request("{}", row),
            Request::new(0).message(Message::new(Role::User, content))
        );
    }

    #[test]
    fn every_column_reaches_the_request() {
        let row = r#"{"text": "Hi", "system": "Be brief.", "role": "user", "delay": 1234, "output_length": 50,
            "extra": {"temperature": 0.5}}"#;
        let expected = Request::new(0)
            .wait(Duration::from_millis(1234))
            .system("Be brief.")
            .user("Hi")
            .output_exactly(50)
            .body(r#"{"temperature":0.5}"#);
        assert_eq!(request("{}", row), expected);
        assert_eq!(
            request("{}", r#"{"text": "Be brief.", "role": "system"}"#).messages[0].role,
            Role::System
        );
    }

    #[test]
    fn every_key_has_its_effect() {
        let row = r#"{"text": "Hi", "output_length": 50}"#;
        assert_eq!(
            request(r#"{"output_control": "at_most"}"#, row).output,
            Request::new(0).output_at_most(50).output
        );
        assert_eq!(
            request(r#"{"output_control": "free"}"#, row).output,
            Request::new(0).output
        );
        assert_eq!(
            request(r#"{"output_tokens": 7}"#, row).output.target_tokens,
            Some(50)
        );
        let bare = r#"{"text": "Hi"}"#;
        assert_eq!(
            request(r#"{"output_tokens": 7}"#, bare).output.target_tokens,
            Some(7)
        );
        let busted = request(r#"{"cache_bust_tokens": 12}"#, bare);
        assert!(matches!(&busted.messages[0].content[0], Segment::Synthetic(made) if made.tokens == 12));
        assert!(SingleTurn::open(config::from_json(r#"{"output_tokens": 0}"#).unwrap()).is_err());
    }

    /// Rows of a session follow one another, and say nothing of one another.
    #[test]
    fn a_session_is_in_order_and_without_history() {
        let made = replay(
            "{}",
            "s1",
            &[
                (
                    Some(5_000_000),
                    r#"{"session_id": "s1", "text": "a", "timestamp": 1005, "output_length": 3}"#,
                ),
                (
                    Some(9_000_000),
                    r#"{"session_id": "s1", "text": "b", "timestamp": 1009}"#,
                ),
            ],
        )
        .unwrap();
        assert_eq!(made.session.arrives_at, Some(5_000_000));
        assert_eq!(
            made.session.labels,
            [("conversation".to_owned(), "s1".to_owned())]
        );
        assert_eq!(
            made.session.requests,
            [
                Request::new(0).user("a").output_exactly(3),
                Request::new(1).after(0).user("b")
            ]
        );
        let recorded: Vec<_> = made
            .turns
            .iter()
            .map(|turn| (turn.node, turn.at, turn.output_tokens))
            .collect();
        assert_eq!(
            recorded,
            [(0, Some(5_000_000), Some(3)), (1, Some(9_000_000), None)]
        );
    }

    #[test]
    fn refuses_invalid_cells_by_row_and_name() {
        assert!(
            refused(r#"{"text": "a", "delay": 1, "timestamp": 0}"#)
                .starts_with("row 1: `timestamp` and `delay`")
        );
        assert!(refused(r#"{"output_length": 5}"#).starts_with("row 1: the message is empty"));
        assert!(refused(r#"{"text": "a", "texts": ["b"]}"#).contains("`text` and `texts`"));
        assert!(refused(r#"{"text": "a", "role": "boss"}"#).contains("`boss`"));
        assert!(refused(r#"{"text": "a", "delay": -1}"#).contains("`delay`"));
        assert!(refused(r#"{"text": "a", "output_length": 0}"#).contains("`output_length` is 0"));
        assert!(refused(r#"{"text": "a", "output_length": 5000000000}"#).contains("`output_length`"));
        assert!(
            refused(r#"{"images": ["a"], "image_uuids": ["u"]}"#).contains("`image_uuids` is not supported")
        );
        assert!(refused(r#"{"video": "generated:video?seconds=2"}"#).contains("generated video"));
    }

    #[test]
    fn the_layout_orders_rows_by_session_and_time() {
        let layout = SingleTurn::open(Config::default()).unwrap().layout();
        assert!(matches!(&layout.grouping, Grouping::Column(name) if name == "session_id"));
        assert_eq!(layout.arrival.unwrap().unit, TimeUnit::Milliseconds);
        assert!(layout.columns.iter().all(|column| !column.required));
    }
}
