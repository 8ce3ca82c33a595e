//! Content as AIPerf's files have it: `text` or `texts`, `image` or `images`, `audio` or `audios`,
//! `video` or `videos`.

use serde::Deserialize;

use super::media::media;
use crate::flavor::{Cell, Column};
use crate::session::text;
use crate::types::{MediaKind, Segment};

/// The content of one row or turn. Flatten it into the row's type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Modalities {
    /// One text.
    pub text: Option<String>,
    /// Several texts.
    pub texts: Option<Vec<Item>>,
    /// One image.
    pub image: Option<String>,
    /// Several images.
    pub images: Option<Vec<Item>>,
    /// One piece of audio.
    pub audio: Option<String>,
    /// Several pieces of audio.
    pub audios: Option<Vec<Item>>,
    /// One video.
    pub video: Option<String>,
    /// Several videos.
    pub videos: Option<Vec<Item>>,
}

/// One of several: itself, or a named list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Item {
    /// Itself.
    Plain(String),
    /// A named list. The name is for other APIs than chat.
    Named {
        /// Its content.
        contents: Vec<String>,
    },
}

impl Modalities {
    /// The columns of a file whose rows have such content.
    pub fn columns() -> Vec<Column> {
        let pairs = [
            ("text", "texts"),
            ("image", "images"),
            ("audio", "audios"),
            ("video", "videos"),
        ];
        let columns = pairs.into_iter().flat_map(|(one, several)| {
            [
                Column::optional(one, Cell::Text),
                Column::optional(several, Cell::Items),
            ]
        });
        columns.collect()
    }

    /// True if there is no text in it.
    pub fn is_textless(&self) -> bool {
        self.text.is_none() && self.texts.is_none()
    }

    /// True if there is nothing but text in it.
    pub fn is_text_only(&self) -> bool {
        let silent = Modalities {
            text: None,
            texts: None,
            ..self.clone()
        };
        silent == Modalities::default()
    }

    /// The content of a message: the texts, a line each; then images, audio and video.
    ///
    /// # Errors
    /// A message for no content, one kind in both ways, or invalid [`media`].
    pub fn segments(&self) -> Result<Vec<Segment>, String> {
        let texts = each(("text", &self.text), ("texts", &self.texts))?;
        let mut segments = Vec::new();
        if !texts.is_empty() {
            segments.push(text(texts.join("\n")));
        }
        for (kind, one, several) in [
            (MediaKind::Image, ("image", &self.image), ("images", &self.images)),
            (MediaKind::Audio, ("audio", &self.audio), ("audios", &self.audios)),
            (MediaKind::Video, ("video", &self.video), ("videos", &self.videos)),
        ] {
            for source in each(one, several)? {
                segments.push(media(kind, source)?);
            }
        }
        if segments.is_empty() {
            return Err(
                "the message is empty: one of text, texts, image, images, audio, audios, video, videos is needed"
                    .into(),
            );
        }
        Ok(segments)
    }
}

fn each<'a>(
    (one_name, one): (&str, &'a Option<String>),
    (several_name, several): (&str, &'a Option<Vec<Item>>),
) -> Result<Vec<&'a str>, String> {
    match (one, several) {
        (Some(_), Some(_)) => Err(format!(
            "`{one_name}` and `{several_name}` stand together; one of them is enough"
        )),
        (Some(one), None) => Ok(vec![one.as_str()]),
        (None, several) => {
            let items = several.iter().flatten().flat_map(|item| match item {
                Item::Plain(one) => std::slice::from_ref(one),
                Item::Named { contents } => contents.as_slice(),
            });
            Ok(items.map(String::as_str).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Media;

    fn read(json: &str) -> Modalities {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn several_texts_are_lines_and_media_follow() {
        let media = |kind, source: &str| {
            Segment::Media(Media {
                kind,
                source: source.into(),
            })
        };
        let segments = read(
            r#"{"texts": [{"name": "a", "contents": ["Hello", "World"]}, "Hi"], "image": "a.png",
                "audios": ["https://x.test/b.wav"], "videos": [{"name": "v", "contents": ["c.mp4"]}]}"#,
        )
        .segments()
        .unwrap();
        assert_eq!(
            segments,
            [
                text("Hello\nWorld\nHi"),
                media(MediaKind::Image, "a.png"),
                media(MediaKind::Audio, "https://x.test/b.wav"),
                media(MediaKind::Video, "c.mp4"),
            ]
        );
    }

    #[test]
    fn refuses_no_content_and_a_kind_given_twice() {
        assert!(
            read("{}")
                .segments()
                .unwrap_err()
                .starts_with("the message is empty")
        );
        assert!(
            read(r#"{"texts": []}"#)
                .segments()
                .unwrap_err()
                .starts_with("the message is empty")
        );
        assert_eq!(
            read(r#"{"image": "a", "images": ["b"]}"#).segments().unwrap_err(),
            "`image` and `images` stand together; one of them is enough"
        );
        assert!(read(r#"{"video": "generated:video"}"#).segments().is_err());
    }

    #[test]
    fn every_column_reaches_the_content() {
        for column in Modalities::columns() {
            let cell = if column.name.ends_with('s') {
                r#"["x"]"#
            } else {
                r#""x""#
            };
            let row = read(&format!(r#"{{"{}": {cell}}}"#, column.name));
            assert_eq!(row.segments().unwrap().len(), 1, "{}", column.name);
            assert_eq!(
                row.is_text_only(),
                column.name.starts_with("text"),
                "{}",
                column.name
            );
            assert_eq!(
                row.is_textless(),
                !column.name.starts_with("text"),
                "{}",
                column.name
            );
        }
    }
}
