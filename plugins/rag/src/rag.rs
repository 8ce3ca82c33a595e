//! The flavor itself: each row is one request with its recorded text.

use serde::Deserialize;
use veeksha_plugin::flavor::{
    Cell, Column, Group, Layout, MostFrequent, Replay, Row, TimeUnit, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Plugin, Request, Session};

use crate::config::Config;

/// An open trace of questions about documents.
pub struct Rag {
    config: Config,
}

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    doc_id: String,
    prompt_text: String,
    input_length: u32,
    output_length: u32,
}

impl Plugin for Rag {
    type Config = Config;
    const NAME: &'static str = "rag";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "recorded prompts about the most frequent documents, which are sent once beforehand";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for Rag {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        if config.num_documents == 0 {
            return Err(Error::config("/num_documents", "at least one document is kept"));
        }
        Ok(Rag { config })
    }

    fn layout(&self) -> Layout {
        let layout = Layout::new([
            Column::required("doc_id", Cell::Text),
            Column::required("prompt_text", Cell::Text),
            Column::required("input_length", Cell::Count).or("num_prefill_tokens"),
            Column::required("output_length", Cell::Count).or("num_decode_tokens"),
            Column::optional("timestamp", Cell::Number).or("arrived_at"),
        ]);
        Layout {
            keep: Some(MostFrequent {
                column: "doc_id".into(),
                count: self.config.num_documents,
            }),
            warms_up: self.config.warmup,
            ..layout.arrivals("timestamp", TimeUnit::Seconds)
        }
    }

    fn session(&self, _: &Trace<Cells>, _epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let row = only(group)?;
        let turn = Turn {
            at: row.at,
            prompt_tokens: Some(row.positive("input_length", row.cells.input_length)?),
            output_tokens: Some(row.cells.output_length),
            ..Turn::new(0)
        };
        let session = Session {
            arrives_at: row.at,
            ..request(row)?.into()
        };
        Ok(Replay::new(session, [turn]))
    }

    fn warmup(&self, _: &Trace<Cells>, group: &Group<Cells>) -> Result<Vec<Session>, Error> {
        Ok(vec![request(only(group)?)?.into()])
    }
}

/// The row of a group: this flavor asks for no grouping.
fn only(group: &Group<Cells>) -> Result<&Row<Cells>, Error> {
    let none = || Error::new("row", format!("group {} has no rows", group.index));
    group.rows.first().ok_or_else(none)
}

fn request(row: &Row<Cells>) -> Result<Request, Error> {
    if row.cells.prompt_text.is_empty() {
        return Err(row.error("`prompt_text` is empty"));
    }
    let output = row.positive("output_length", row.cells.output_length)?;
    Ok(Request::new(0)
        .user(row.cells.prompt_text.as_str())
        .output_exactly(output)
        .label("doc_id", &row.cells.doc_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use veeksha_plugin::config;
    use veeksha_plugin::flavor::{Grouping, HistoryMode, group};

    const ROW: &str =
        r#"{"doc_id": "d7", "prompt_text": "The text.\nWhat of it?", "input_length": 8, "output_length": 3}"#;

    fn open(config: &str) -> Result<Rag, Error> {
        Rag::open(config::from_json(config).unwrap())
    }

    fn rows(row: &str) -> Group<Cells> {
        group(4, "", [(12, Some(900), row.to_owned())]).unwrap()
    }

    fn facts() -> Trace<Cells> {
        Trace::new(9, 9, ROW)
    }

    #[test]
    fn a_row_is_a_request_with_its_text() {
        let asked = Request::new(0)
            .user("The text.\nWhat of it?")
            .output_exactly(3)
            .label("doc_id", "d7");
        let turn = Turn {
            node: 0,
            history: HistoryMode::Live,
            answer: None,
            at: Some(900),
            latency: None,
            prompt_tokens: Some(8),
            output_tokens: Some(3),
        };
        let session = Session {
            arrives_at: Some(900),
            ..asked.clone().into()
        };
        let flavor = open("{}").unwrap();
        for epoch in [0, 1] {
            let made = flavor.session(&facts(), epoch, &rows(ROW)).unwrap();
            assert_eq!(
                made,
                Replay::new(session.clone(), [turn.clone()]),
                "recorded text is the same in every epoch"
            );
        }
        assert_eq!(flavor.warmup(&facts(), &rows(ROW)).unwrap(), [asked.into()]);
    }

    #[test]
    fn the_layout_keeps_the_most_frequent_documents() {
        let layout = open(r#"{"num_documents": 3}"#).unwrap().layout();
        let keep = layout.keep.unwrap();
        assert_eq!((keep.column.as_str(), keep.count), ("doc_id", 3));
        assert!(layout.warms_up);
        assert_eq!(layout.grouping, Grouping::Row);
        assert!(!open(r#"{"warmup": false}"#).unwrap().layout().warms_up);
        assert_eq!(open("{}").unwrap().layout().keep.unwrap().count, 10);
    }

    #[test]
    fn names_invalid_values() {
        assert_eq!(
            open(r#"{"num_documents": 0}"#).err().unwrap().path.as_deref(),
            Some("/num_documents")
        );
        let refused = |from: &str, to: &str| {
            let row = ROW.replace(from, to);
            assert_ne!(row, ROW);
            open("{}")
                .unwrap()
                .session(&facts(), 0, &rows(&row))
                .unwrap_err()
                .message
        };
        assert_eq!(
            refused("The text.\\nWhat of it?", ""),
            "row 12: `prompt_text` is empty"
        );
        assert_eq!(
            refused(r#""input_length": 8"#, r#""input_length": 0"#),
            "row 12: `input_length` is 0; it is 1 or more"
        );
        assert_eq!(
            refused(r#""output_length": 3"#, r#""output_length": 0"#),
            "row 12: `output_length` is 0; it is 1 or more"
        );
        let empty = group(4, "", []).unwrap();
        assert_eq!(
            open("{}")
                .unwrap()
                .session(&facts(), 0, &empty)
                .unwrap_err()
                .message,
            "group 4 has no rows"
        );
    }
}
