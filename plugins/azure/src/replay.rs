//! Rows into sessions of one request.

use serde::Deserialize;
use veeksha_plugin::flavor::{Cell, Column, Group, Layout, Replay, Row, TimeUnit, Trace, TraceFlavor, Turn};
use veeksha_plugin::{
    Error, Media, MediaKind, Message, Plugin, Request, Role, Segment, Session, seed_of, synthetic,
};

use crate::config::Config;

/// An open flavor.
pub struct Azure {
    config: Config,
}

/// A row, by the names of the published header.
#[derive(Debug, Deserialize)]
pub struct Cells {
    #[serde(rename = "ContextTokens")]
    context_tokens: u64,
    #[serde(rename = "GeneratedTokens")]
    generated_tokens: u64,
    #[serde(rename = "NumImages")]
    num_images: Option<u64>,
}

/// The most images that are made for one request.
const MOST_IMAGES: u64 = 1000;

impl Plugin for Azure {
    type Config = Config;
    const NAME: &'static str = "azure";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "the Azure LLM inference traces of 2023, 2024 and 2025: one request a row";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for Azure {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        for (path, pixels) in [
            ("/image_width", config.image_width),
            ("/image_height", config.image_height),
        ] {
            if !(1..=16_384).contains(&pixels) {
                return Err(Error::config(
                    path,
                    format!("an image has 1 to 16384 pixels, not {pixels}"),
                ));
            }
        }
        Ok(Azure { config })
    }

    fn layout(&self) -> Layout {
        Layout::new([
            Column::required("TIMESTAMP", Cell::Text),
            Column::required("ContextTokens", Cell::Count),
            Column::required("GeneratedTokens", Cell::Count),
            Column::optional("NumImages", Cell::Count),
        ])
        .arrivals("TIMESTAMP", TimeUnit::DateTime)
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let [row] = group.rows.as_slice() else {
            return Err(Error::new("row", "a session of this trace is one row"));
        };
        let context = row.tokens("ContextTokens", row.cells.context_tokens)?;
        let generated = row.tokens("GeneratedTokens", row.cells.generated_tokens)?;
        if context == 0 {
            return Err(row.error("`ContextTokens` is 0: there is nothing to send"));
        }
        let mut request = Request::new(0)
            .message(Message::new(Role::User, self.content(row, epoch, context)?))
            // A server refuses to answer with nothing.
            .output_exactly(generated.max(1));
        if let Some(images) = row.cells.num_images {
            request = request.label("num_images", images.to_string());
        }
        let turn = Turn {
            at: row.at,
            prompt_tokens: Some(context),
            output_tokens: Some(generated),
            ..Turn::new(0)
        };
        let session = Session {
            arrives_at: row.at,
            ..request.into()
        };
        Ok(Replay::new(session, [turn]))
    }
}

impl Azure {
    fn content(&self, row: &Row<Cells>, epoch: u64, context: u32) -> Result<Vec<Segment>, Error> {
        let images = if self.config.images {
            row.cells.num_images.unwrap_or(0)
        } else {
            0
        };
        if images > MOST_IMAGES {
            return Err(row.error(format!("`NumImages` is {images}, at most {MOST_IMAGES} are made")));
        }
        let seen = u64::from(self.config.image_tokens) * images;
        let text = u64::from(context).saturating_sub(seen).max(1);
        let text = synthetic(seed_of("azure text", &[epoch, row.number]), text as u32);
        let images = (0..images).map(|image| self.image(&[epoch, row.number, image]));
        Ok(images.chain([text]).collect())
    }

    fn image(&self, which: &[u64]) -> Segment {
        let Config {
            image_width,
            image_height,
            ..
        } = self.config;
        // Numbers of the contract stay below 2^53.
        let seed = seed_of("azure image", which) >> 11;
        Segment::Media(Media {
            kind: MediaKind::Image,
            source: format!(
                "generated:image?width={image_width}&height={image_height}&seed={seed}&format=png"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use veeksha_plugin::flavor;

    use super::*;

    fn open(config: &str) -> Azure {
        Azure::open(veeksha_plugin::config::from_json(config).unwrap()).unwrap()
    }

    fn session(flavor: &Azure, epoch: u64, number: u64, row: &str) -> Result<Replay, Error> {
        let trace = Trace::new(9, 9, row);
        let group = flavor::group(number - 1, "", [(number, Some(1_000_000_000), row.to_owned())])?;
        flavor.session(&trace, epoch, &group)
    }

    fn content(replay: &Replay) -> &[Segment] {
        &replay.session.requests[0].messages[0].content
    }

    const ROW: &str =
        r#"{"TIMESTAMP": "2023-11-16 18:15:46.6805900", "ContextTokens": 374, "GeneratedTokens": 44}"#;
    const IMAGES: &str =
        r#"{"TIMESTAMP": "2024-10-15 00:00:01", "NumImages": 2, "ContextTokens": 600, "GeneratedTokens": 9}"#;

    /// The example of the 2023 trace: a prompt of 374 tokens, an answer of 44, at the recorded
    /// instant.
    #[test]
    fn a_row_is_one_request_of_unique_text() {
        let replay = session(&open("{}"), 0, 3, ROW).unwrap();
        let text = synthetic(seed_of("azure text", &[0, 3]), 374);
        let request = Request::new(0).user(text).output_exactly(44);
        assert_eq!(replay.session.requests, [request]);
        assert_eq!(replay.session.arrives_at, Some(1_000_000_000));
        let turn = Turn {
            at: Some(1_000_000_000),
            prompt_tokens: Some(374),
            output_tokens: Some(44),
            ..Turn::new(0)
        };
        assert_eq!(replay.turns, [turn]);
    }

    #[test]
    fn texts_differ_from_row_to_row_and_from_pass_to_pass() {
        let flavor = open("{}");
        let first = session(&flavor, 0, 1, ROW).unwrap();
        assert_eq!(first, session(&flavor, 0, 1, ROW).unwrap());
        let row = session(&flavor, 0, 2, ROW).unwrap();
        let epoch = session(&flavor, 1, 1, ROW).unwrap();
        assert_ne!(content(&first), content(&row));
        assert_ne!(content(&first), content(&epoch));
        assert_ne!(content(&row), content(&epoch));
        assert_eq!(first.turns, epoch.turns);
    }

    #[test]
    fn images_are_counted_or_sent() {
        let counted = session(&open("{}"), 0, 1, IMAGES).unwrap();
        assert_eq!(
            content(&counted),
            [synthetic(seed_of("azure text", &[0, 1]), 600)]
        );
        let label = ("num_images".to_owned(), "2".to_owned());
        assert_eq!(counted.session.requests[0].labels, [label]);

        let sent = session(&open(r#"{"images": true, "image_width": 64}"#), 0, 1, IMAGES).unwrap();
        let sources: Vec<&str> = content(&sent)
            .iter()
            .filter_map(|segment| match segment {
                Segment::Media(media) => Some(media.source.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(sources.len(), 2);
        assert_ne!(sources[0], sources[1]);
        for source in sources {
            let seed = source
                .strip_prefix("generated:image?width=64&height=512&seed=")
                .and_then(|rest| rest.strip_suffix("&format=png"))
                .unwrap();
            assert!(seed.parse::<u64>().unwrap() < 1 << 53);
        }
        // 600 tokens, of which two images are 510.
        assert_eq!(content(&sent)[2], synthetic(seed_of("azure text", &[0, 1]), 90));
        assert_eq!(sent.turns[0].prompt_tokens, Some(600));

        let many = open(r#"{"images": true, "image_tokens": 400}"#);
        let least = session(&many, 0, 1, IMAGES).unwrap();
        assert_eq!(content(&least)[2], synthetic(seed_of("azure text", &[0, 1]), 1));
    }

    #[test]
    fn an_empty_answer_is_asked_for_as_one_token() {
        let row = r#"{"ContextTokens": 5, "GeneratedTokens": 0}"#;
        let replay = session(&open("{}"), 0, 1, row).unwrap();
        assert_eq!(replay.session.requests[0].output.target_tokens, Some(1));
        assert_eq!(replay.turns[0].output_tokens, Some(0));
    }

    #[test]
    fn rows_that_cannot_be_sent_are_refused_by_name() {
        let flavor = open(r#"{"images": true}"#);
        let refused = |row: &str| session(&flavor, 0, 4, row).unwrap_err().message;
        assert_eq!(
            refused(r#"{"ContextTokens": 0, "GeneratedTokens": 7}"#),
            "row 4: `ContextTokens` is 0: there is nothing to send"
        );
        assert_eq!(
            refused(r#"{"ContextTokens": 5000000000, "GeneratedTokens": 7}"#),
            "row 4: `ContextTokens` is 5000000000, more tokens than 4294967295"
        );
        assert_eq!(
            refused(r#"{"ContextTokens": 5, "GeneratedTokens": 7, "NumImages": 1001}"#),
            "row 4: `NumImages` is 1001, at most 1000 are made"
        );
        let no_pixels = veeksha_plugin::config::from_json(r#"{"image_height": 0}"#).unwrap();
        let error = Azure::open(no_pixels).err().unwrap();
        assert_eq!(error.path.as_deref(), Some("/image_height"));
    }

    /// The example of the scenario has the header of the 2025 trace, and rows that can all be sent.
    #[test]
    fn the_example_has_the_sessions_of_its_scenario() {
        let mut lines = include_str!("../../../scenarios/traces/azure.csv").lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        assert_eq!(
            header,
            ["TIMESTAMP", "NumImages", "ContextTokens", "GeneratedTokens"]
        );
        let flavor = open("{}");
        let lengths: Vec<_> = (1..)
            .zip(lines)
            .map(|(number, line)| {
                let cells: Vec<u64> = line
                    .split(',')
                    .skip(1)
                    .map(|cell| cell.parse().unwrap())
                    .collect();
                let row = serde_json::json!({
                    "NumImages": cells[0], "ContextTokens": cells[1], "GeneratedTokens": cells[2],
                });
                session(&flavor, 0, number, &row.to_string()).unwrap().turns[0].prompt_tokens
            })
            .collect();
        assert_eq!(lengths, [374, 911, 128, 1408, 600, 52].map(Some));
    }
}
