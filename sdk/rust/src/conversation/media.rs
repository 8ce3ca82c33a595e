//! References to images, audio and video.

use crate::types::{Media, MediaKind, Segment};

/// A medium as a piece of a message.
///
/// `source` is a URL, a `data:` URL, a file's name relative to the trace's media folder, or the
/// description of something that the host makes:
/// `generated:image?width=512&height=512&seed=7&format=png`,
/// `generated:audio?seconds=2.5&rate=16000&seed=7`. Audio may also be written as AIPerf does,
/// `wav,BASE64`.
///
/// # Errors
/// A message for an empty source, something generated of another kind, generated video (which is
/// not supported).
pub fn media(kind: MediaKind, source: &str) -> Result<Segment, String> {
    let name = match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
    };
    if source.trim().is_empty() {
        return Err(format!("the {name} has an empty source"));
    }
    if let Some(described) = source.strip_prefix("generated:") {
        if kind == MediaKind::Video {
            return Err("generated video is not supported; give a URL, a `data:` URL or a file".into());
        }
        let made = described.split('?').next().unwrap_or_default();
        if made != name {
            return Err(format!("`generated:{made}` is given where an {name} is expected"));
        }
    }
    Ok(Segment::Media(Media {
        kind,
        source: match (kind, source.split_once(',')) {
            (MediaKind::Audio, Some((format @ ("wav" | "mp3"), data))) => {
                format!("data:audio/{format};base64,{data}")
            }
            _ => source.into(),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: MediaKind, source: &str) -> Result<String, String> {
        match media(kind, source)? {
            Segment::Media(media) => Ok(media.source),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn sources_are_passed_on() {
        for as_it_is in [
            "https://x.test/a.png",
            "data:image/png;base64,AA==",
            "folder/a b,c.png",
            "generated:image?width=8&height=8&seed=1",
        ] {
            assert_eq!(source(MediaKind::Image, as_it_is).as_deref(), Ok(as_it_is));
        }
        assert_eq!(
            source(MediaKind::Audio, "wav,QUJD").as_deref(),
            Ok("data:audio/wav;base64,QUJD")
        );
    }

    #[test]
    fn refuses_unknown_generated_media_by_name() {
        assert!(
            source(MediaKind::Video, "generated:video?seconds=2")
                .unwrap_err()
                .contains("generated video")
        );
        assert!(
            source(MediaKind::Image, "generated:audio?seconds=2")
                .unwrap_err()
                .contains("an image")
        );
        assert!(source(MediaKind::Audio, " ").unwrap_err().contains("the audio"));
    }
}
