//! Detection of a file's format by its first bytes, else by its extension.

use veeksha_model::MediaKind;

use crate::media::error::MediaError;

/// Returns the MIME type of a file in a part of this kind.
pub(super) fn mime(kind: MediaKind, name: &str, bytes: &[u8]) -> Result<&'static str, MediaError> {
    let mime = by_bytes(kind, bytes)
        .or_else(|| by_ending(kind, name))
        .ok_or_else(|| MediaError::UnknownFormat {
            name: name.to_string(),
        })?;
    match mime.split_once('/') {
        Some((found, _)) if found == kind.name() => Ok(mime),
        _ => Err(MediaError::WrongKind {
            name: name.to_string(),
            found: mime.to_string(),
            expected: kind.name(),
        }),
    }
}

/// Detects by magic bytes. Containers that can hold both sound and video have the kind of the part.
fn by_bytes(kind: MediaKind, bytes: &[u8]) -> Option<&'static str> {
    let sound = kind == MediaKind::Audio;
    let inside = |mark: &[u8]| bytes.get(8..).is_some_and(|rest| rest.starts_with(mark));
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', ..] if inside(b"WEBP") => Some("image/webp"),
        [b'R', b'I', b'F', b'F', ..] if inside(b"WAVE") => Some("audio/wav"),
        [b'I', b'D', b'3', ..] => Some("audio/mpeg"),
        // Eleven set bits, then MPEG version, layer III.
        [0xff, second, ..] if second & 0xe6 == 0xe2 => Some("audio/mpeg"),
        [b'f', b'L', b'a', b'C', ..] => Some("audio/flac"),
        [b'O', b'g', b'g', b'S', ..] => Some("audio/ogg"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] if sound || inside(b"M4A ") => Some("audio/mp4"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("video/mp4"),
        [0x1a, 0x45, 0xdf, 0xa3, ..] if sound => Some("audio/webm"),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Some("video/webm"),
        _ => None,
    }
}

fn by_ending(kind: MediaKind, name: &str) -> Option<&'static str> {
    let sound = kind == MediaKind::Audio;
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "flac" => "audio/flac",
        "ogg" => "audio/ogg",
        "m4a" => "audio/mp4",
        "mp4" if sound => "audio/mp4",
        "mp4" => "video/mp4",
        "webm" if sound => "audio/webm",
        "webm" => "video/webm",
        _ => return None,
    })
}
