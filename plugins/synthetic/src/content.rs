//! The content of messages: text, images and audio, each from its channel.

use veeksha_plugin::{Error, Random, Segment};

use crate::config::Channel;
use crate::media::{AudioPlan, ImagePlan, MediaDraws};
use crate::text::{TextDraws, TextPlan};

/// The channels, with parameters that are possible.
#[derive(Debug, Default)]
pub(crate) struct ContentPlan {
    text: Option<TextPlan>,
    images: Option<ImagePlan>,
    audio: Option<AudioPlan>,
}

/// The draws of one session.
pub(crate) struct ContentDraws<'a> {
    text: Option<TextDraws<'a>>,
    media: MediaDraws<'a>,
}

impl ContentPlan {
    /// Checks the channels; each type may stand once.
    pub(crate) fn new(channels: Vec<Channel>) -> Result<Self, Error> {
        if channels.is_empty() {
            return Err(Error::config("/channels", "at least one channel is needed"));
        }
        let mut plan = ContentPlan::default();
        for (index, channel) in channels.into_iter().enumerate() {
            let path = format!("/channels/{index}");
            let (name, twice) = match channel {
                Channel::Text {
                    body_length_generator,
                    shared_prefix_ratio,
                    shared_prefix_probability,
                } => {
                    let text = TextPlan::new(
                        body_length_generator,
                        shared_prefix_ratio,
                        shared_prefix_probability,
                        &path,
                    )?;
                    ("text", plan.text.replace(text).is_some())
                }
                Channel::Image {
                    num_images,
                    width,
                    height,
                    format,
                } => {
                    let images = ImagePlan::new(num_images, width, height, format, &path)?;
                    ("image", plan.images.replace(images).is_some())
                }
                Channel::Audio {
                    num_audios,
                    seconds,
                    rate,
                } => {
                    let audio = AudioPlan::new(num_audios, seconds, rate, &path)?;
                    ("audio", plan.audio.replace(audio).is_some())
                }
                Channel::Video(_) => {
                    return Err(unsupported(
                        &format!("{path}/type"),
                        "video",
                        "`text`, `image` and `audio` are",
                    ));
                }
            };
            if twice {
                let why = format!("a second {name} channel; each type may stand only once");
                return Err(Error::config(path, why));
            }
        }
        Ok(plan)
    }

    /// Returns true if prompts of different sessions can begin with the same text.
    pub(crate) fn shares_prefixes(&self) -> bool {
        self.text.as_ref().is_some_and(TextPlan::shares_prefix)
    }

    /// The draws of a session whose first request is at `step`.
    pub(crate) fn draws<'a>(&self, random: &'a Random, step: u64) -> ContentDraws<'a> {
        ContentDraws {
            text: self.text.as_ref().map(|text| text.draws(random, step)),
            media: MediaDraws::new(random, step),
        }
    }

    /// The content of the next request: text, then images, then audio.
    pub(crate) fn content(&self, draws: &mut ContentDraws<'_>, is_root: bool) -> Vec<Segment> {
        let mut content = match (&self.text, &mut draws.text) {
            (Some(text), Some(draws)) => text.content(draws, is_root),
            _ => Vec::new(),
        };
        if let Some(images) = &self.images {
            images.add(&mut content, &mut draws.media);
        }
        if let Some(audio) = &self.audio {
            audio.add(&mut content, &mut draws.media);
        }
        content
    }
}

/// A kind of content that Veeksha names and does not implement yet.
pub(crate) fn unsupported(path: &str, kind: &str, instead: &str) -> Error {
    Error {
        code: "unsupported".into(),
        ..Error::config(path, format!("`{kind}` is not supported yet"))
    }
    .hint(instead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    fn plan(json: &str) -> Result<ContentPlan, Error> {
        ContentPlan::new(veeksha_plugin::config::from_json(&format!("[{json}]"))?)
    }

    #[test]
    fn refuses_invalid_values_with_their_path() {
        let refused = |json: &str| {
            let error = plan(json).unwrap_err();
            (error.code, error.path.unwrap())
        };
        let at = |code: &str, path: &str| (code.to_owned(), path.to_owned());
        assert_eq!(refused(""), at("config", "/channels"));
        for kind in ["text", "image", "audio"] {
            let twice = format!(r#"{{"type": "{kind}"}}, {{"type": "{kind}"}}"#);
            assert_eq!(refused(&twice), at("config", "/channels/1"));
        }
        assert_eq!(
            refused(r#"{"type": "text"}, {"type": "video", "num_videos": 3}"#),
            at("unsupported", "/channels/1/type")
        );
        assert_eq!(
            refused(r#"{"type": "image", "width": 0}, {"type": "text"}"#),
            at("config", "/channels/0/width")
        );
    }

    /// Another channel leaves the text as it was.
    #[test]
    fn channels_are_drawn_independently() {
        let contents = |json: &str| {
            let plan = plan(json).unwrap();
            let random = random(42, 3);
            let mut draws = plan.draws(&random, 3);
            (0..5)
                .map(|turn| plan.content(&mut draws, turn == 0))
                .collect::<Vec<_>>()
        };
        let text = contents(r#"{"type": "text", "shared_prefix_ratio": 0.5}"#);
        let both =
            contents(r#"{"type": "audio"}, {"type": "image"}, {"type": "text", "shared_prefix_ratio": 0.5}"#);
        for (text, both) in text.iter().zip(&both) {
            assert_eq!(both[..text.len()], text[..]);
            let kinds = both[text.len()..].iter().map(|segment| match segment {
                Segment::Media(media) => media.kind,
                other => unreachable!("{other:?}"),
            });
            assert!(kinds.eq([veeksha_plugin::MediaKind::Image, veeksha_plugin::MediaKind::Audio]));
        }
    }
}
