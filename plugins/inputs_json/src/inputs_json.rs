//! The flavor itself: the bodies of a session are sent one after the other, each as it was
//! recorded.

use serde::Deserialize;
use serde_json::{Map, Value};
use veeksha_plugin::conversation::chain;
use veeksha_plugin::flavor::{
    Cell, Column, Group, HistoryMode, Layout, Replay, Row, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Plugin, Request};

use crate::config::Config;
use crate::payload;

/// An open file of request bodies.
pub struct InputsJson {
    config: Config,
}

/// A row: a session.
#[derive(Debug, Deserialize)]
pub struct Cells {
    payloads: Vec<Value>,
}

impl Plugin for InputsJson {
    type Config = Config;
    const NAME: &'static str = "inputs_json";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "AIPerf's inputs.json: whole request bodies, sent again as they are";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for InputsJson {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(InputsJson { config })
    }

    fn layout(&self) -> Layout {
        let layout = Layout::new([
            Column::optional("session_id", Cell::Text),
            Column::required("payloads", Cell::Items),
        ]);
        Layout {
            rows_in: Some("data".into()),
            ..layout.grouped_by("session_id")
        }
    }

    fn session(&self, _: &Trace<Cells>, _epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let mut requests = Vec::new();
        for row in &group.rows {
            for (number, payload) in (1..).zip(&row.cells.payloads) {
                requests.push((self.request(row, number, payload)?, Turn::new(0)));
            }
        }
        if requests.is_empty() {
            return Err(group.rows[0].error("`payloads` is empty"));
        }
        // Each body holds its whole conversation.
        let mut replay = chain(requests, HistoryMode::Fresh);
        if !group.key.is_empty() {
            replay.session = replay.session.label("conversation", &group.key);
        }
        Ok(replay)
    }
}

impl InputsJson {
    fn request(&self, row: &Row<Cells>, number: usize, payload: &Value) -> Result<Request, Error> {
        let invalid = |why: &str| row.error(format!("`payloads`, payload {number}: {why}"));
        let body = payload
            .as_object()
            .ok_or_else(|| invalid("it is not an object"))?;
        let messages = payload::messages(body).map_err(|why| invalid(&why))?;
        let sent: Map<String, Value> = body
            .iter()
            .filter(|(name, _)| !self.config.drop.contains(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Ok(Request {
            messages,
            ..Request::new(0).body(Value::Object(sent).to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use veeksha_plugin::{config, flavor::group};

    use super::*;

    fn replay(config: &str, key: &str, rows: &[Value]) -> Result<Replay, Error> {
        let numbered = (1..)
            .zip(rows)
            .map(|(number, row)| (number, None, row.to_string()));
        let flavor = InputsJson::open(config::from_json(config)?)?;
        flavor.session(&Trace::new(9, 9, "{}"), 3, &group(0, key, numbered)?)
    }

    fn bodies(made: &Replay) -> Vec<Value> {
        let bodies = made
            .session
            .requests
            .iter()
            .map(|request| request.body.as_deref().unwrap());
        bodies.map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    /// As AIPerf writes them: the second body holds the whole conversation.
    fn session() -> Value {
        json!({"session_id": "a1", "payloads": [
            {"messages": [{"role": "user", "content": "Hi"}], "model": "m", "stream": true,
                "stream_options": {"include_usage": true}, "max_completion_tokens": 20},
            {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."},
                {"role": "user", "content": "Bye"}], "model": "m", "temperature": 0}]})
    }

    #[test]
    fn bodies_are_sent_as_they_are_one_after_the_other() {
        let made = replay("{}", "a1", &[session()]).unwrap();
        let recorded = session();
        assert_eq!(
            bodies(&made),
            [
                json!({"messages": recorded["payloads"][0]["messages"], "max_completion_tokens": 20}),
                json!({"messages": recorded["payloads"][1]["messages"], "temperature": 0}),
            ]
        );
        let counts: Vec<_> = made
            .session
            .requests
            .iter()
            .map(|request| request.messages.len())
            .collect();
        assert_eq!(counts, [1, 3]);
        let second = &made.session.requests[1];
        assert_eq!(second.parents, [0]);
        assert_eq!(second.history_parent, None);
        assert_eq!(
            second.output.target_tokens, None,
            "the body limits the length of its answer"
        );
        assert_eq!(made.turns[1].history, HistoryMode::Fresh);
        assert_eq!(
            made.session.labels,
            [("conversation".to_owned(), "a1".to_owned())]
        );
    }

    #[test]
    fn drops_the_configured_keys() {
        let sent = |config| bodies(&replay(config, "a1", &[session()]).unwrap())[0].clone();
        assert_eq!(sent(r#"{"drop": []}"#), session()["payloads"][0]);
        let chosen = sent(r#"{"drop": ["stream", "stream_options", "max_completion_tokens"]}"#);
        assert_eq!(chosen["model"], "m");
        assert_eq!(chosen["max_completion_tokens"], Value::Null);
    }

    /// AIPerf keeps only the last of several entries with one session's id.
    #[test]
    fn entries_of_one_session_follow_one_another() {
        let made = replay("{}", "a1", &[session(), session()]).unwrap();
        let parents: Vec<_> = made
            .session
            .requests
            .iter()
            .map(|request| request.parents.clone())
            .collect();
        assert_eq!(parents, [vec![], vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn refuses_invalid_payloads_by_row_and_number() {
        let refused = |payloads: Value| {
            replay("{}", "", &[json!({"payloads": payloads})])
                .unwrap_err()
                .message
        };
        assert_eq!(refused(json!([])), "row 1: `payloads` is empty");
        assert_eq!(
            refused(json!(["x"])),
            "row 1: `payloads`, payload 1: it is not an object"
        );
        assert!(
            refused(json!([{"prompt": "a"}, {}])).starts_with("row 1: `payloads`, payload 2: it has none of")
        );
    }

    #[test]
    fn rows_are_in_data() {
        assert_eq!(
            InputsJson::open(Config::default())
                .unwrap()
                .layout()
                .rows_in
                .as_deref(),
            Some("data")
        );
    }
}
