//! The flavor itself: the rows that were drawn are one message.

use serde::Deserialize;
use serde_json::Value;
use veeksha_plugin::conversation::{Modalities, bust_cache};
use veeksha_plugin::flavor::{Cell, Column, Group, Grouping, Layout, Replay, Trace, TraceFlavor, Turn};
use veeksha_plugin::{Error, Message, Plugin, Request, Role, Segment, Session, text};

use crate::config::Config;

/// Open pools.
pub struct RandomPool {
    config: Config,
}

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    #[serde(flatten)]
    content: Modalities,
    image_uuids: Option<Value>,
}

impl Plugin for RandomPool {
    type Config = Config;
    const NAME: &'static str = "random_pool";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "AIPerf's pools: one row of each file, drawn at random, is a request";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for RandomPool {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        if config.output_tokens == Some(0) {
            return Err(Error::config("/output_tokens", "must be 1 or more"));
        }
        Ok(RandomPool { config })
    }

    fn layout(&self) -> Layout {
        let mut columns = Modalities::columns();
        columns.push(Column::optional("image_uuids", Cell::Anything));
        Layout {
            grouping: Grouping::Pools,
            ..Layout::new(columns)
        }
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let message = Message::new(Role::User, merged(group)?);
        let request = Request::new(0).message(message);
        let mut session = Session::from(self.config.output_control.ask(request, self.config.output_tokens));
        bust_cache(&mut session, self.config.cache_bust_tokens, epoch, group.index);
        Ok(Replay::new(session, [Turn::new(0)]))
    }
}

/// The content of all rows together: the texts, a line each; then the media, those of one kind
/// together.
fn merged(group: &Group<Cells>) -> Result<Vec<Segment>, Error> {
    let mut texts = Vec::new();
    let mut media = Vec::new();
    for row in &group.rows {
        if row.cells.image_uuids.is_some() {
            return Err(row.error("`image_uuids` is not supported"));
        }
        for segment in row.cells.content.segments().map_err(|why| row.error(why))? {
            match segment {
                Segment::Text(text) => texts.push(text),
                other => media.push(other),
            }
        }
    }
    media.sort_by_key(|segment| match segment {
        Segment::Media(media) => media.kind as u8,
        _ => 0,
    });
    let texts = (!texts.is_empty()).then(|| text(texts.join("\n")));
    Ok(texts.into_iter().chain(media).collect())
}

#[cfg(test)]
mod tests {
    use veeksha_plugin::flavor::group;
    use veeksha_plugin::{Media, MediaKind, config};

    use super::*;

    fn replay(config: &str, index: u64, rows: &[&str]) -> Result<Replay, Error> {
        let numbered = (1..)
            .zip(rows)
            .map(|(number, row)| (number, None, (*row).to_owned()));
        let flavor = RandomPool::open(config::from_json(config)?)?;
        flavor.session(&Trace::new(9, 9, "{}"), 0, &group(index, "", numbered)?)
    }

    fn media(kind: MediaKind, source: &str) -> Segment {
        Segment::Media(Media {
            kind,
            source: source.into(),
        })
    }

    #[test]
    fn the_rows_that_were_drawn_are_one_message() {
        let made = replay(
            "{}",
            0,
            &[
                r#"{"texts": [{"name": "query", "contents": ["Who are you?"]}], "audio": "q.wav"}"#,
                r#"{"image": "cat.png", "text": "I am a cat."}"#,
                r#"{"videos": ["https://x.test/v.mp4"], "images": ["dog.png"]}"#,
            ],
        )
        .unwrap();
        let content = vec![
            text("Who are you?\nI am a cat."),
            media(MediaKind::Image, "cat.png"),
            media(MediaKind::Image, "dog.png"),
            media(MediaKind::Audio, "q.wav"),
            media(MediaKind::Video, "https://x.test/v.mp4"),
        ];
        assert_eq!(
            made.session,
            Request::new(0).message(Message::new(Role::User, content)).into()
        );
        assert_eq!(made.turns, [Turn::new(0)]);
    }

    #[test]
    fn every_key_has_its_effect() {
        let rows = [r#"{"text": "Hi"}"#];
        let request = |config| replay(config, 0, &rows).unwrap().session.requests.remove(0);
        assert_eq!(request("{}").output, Request::new(0).output);
        assert_eq!(
            request(r#"{"output_tokens": 9}"#).output,
            Request::new(0).output_exactly(9).output
        );
        assert_eq!(
            request(r#"{"output_tokens": 9, "output_control": "at_most"}"#).output,
            Request::new(0).output_at_most(9).output
        );
        let beginning = |index| {
            let made = replay(r#"{"cache_bust_tokens": 4}"#, index, &rows).unwrap();
            made.session.requests[0].messages[0].content[0].clone()
        };
        assert!(matches!(beginning(0), Segment::Synthetic(made) if made.tokens == 4));
        assert_ne!(beginning(0), beginning(1), "each session has its own");
        assert!(RandomPool::open(config::from_json(r#"{"output_tokens": 0}"#).unwrap()).is_err());
    }

    #[test]
    fn refuses_an_empty_row_by_number() {
        let refused = |row| replay("{}", 0, &[r#"{"text": "a"}"#, row]).unwrap_err().message;
        assert!(refused("{}").starts_with("row 2: the message is empty"));
        assert!(refused(r#"{"image": "a", "images": ["b"]}"#).starts_with("row 2: `image` and `images`"));
        assert!(refused(r#"{"images": ["a"], "image_uuids": ["b"]}"#).starts_with("row 2: `image_uuids`"));
    }

    #[test]
    fn the_files_are_pools() {
        let layout = RandomPool::open(Config::default()).unwrap().layout();
        assert!(matches!(layout.grouping, Grouping::Pools));
        assert!(layout.arrival.is_none());
    }
}
