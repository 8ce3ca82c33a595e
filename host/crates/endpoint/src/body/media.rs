//! Sources of media: URLs, and the contents of `data:` URLs.

use veeksha_model::{ErrorClass, MediaKind};

use crate::failure::Failure;

/// A source that a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MediaSource<'a> {
    /// An `http:` or `https:` URL.
    Url(&'a str),
    /// A `data:` URL: the media type as written, and the part after the comma.
    Embedded { media_type: &'a str, data: &'a str },
}

/// Parses a URL.
///
/// # Errors
/// If `url` is not a URL, or a `data:` URL without a comma.
pub(super) fn source(kind: MediaKind, url: &str) -> Result<MediaSource<'_>, Failure> {
    if starts_with(url, "http://") || starts_with(url, "https://") {
        return Ok(MediaSource::Url(url));
    }
    let embedded = url.get("data:".len()..).filter(|_| starts_with(url, "data:"));
    let Some(embedded) = embedded else {
        let message = format!(
            "the {} `{}` is neither a URL nor a `data:` URL, and servers accept nothing else",
            kind.name(),
            url.chars().take(200).collect::<String>()
        );
        return Err(Failure::new(ErrorClass::Protocol, message));
    };
    let (head, data) = embedded.split_once(',').unwrap_or((embedded, ""));
    Ok(MediaSource::Embedded {
        media_type: head.split(';').next().unwrap_or_default(),
        data,
    })
}

/// Returns the failure of a request whose media `api` cannot represent.
pub(super) fn cannot_carry(api: &str, kind: MediaKind) -> Failure {
    Failure::new(
        ErrorClass::Protocol,
        format!("the {api} API cannot carry {}; use chat completions", kind.name()),
    )
}

fn starts_with(source: &str, scheme: &str) -> bool {
    source
        .get(..scheme.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// Returns the format and the Base64 data of `data:audio/FORMAT;base64,DATA`.
pub(super) fn audio_data(source: &str) -> Result<(&str, &str), Failure> {
    let refuse = || {
        Failure::new(
            ErrorClass::Protocol,
            "sound in a `data:` URL must begin like `data:audio/wav;base64,`",
        )
    };
    let (kind, data) = source.split_once(',').ok_or_else(refuse)?;
    let kind = kind
        .get("data:".len()..)
        .and_then(|kind| kind.strip_suffix(";base64"))
        .ok_or_else(refuse)?;
    let format = kind
        .split(';')
        .next()
        .and_then(|kind| kind.strip_prefix("audio/"))
        .ok_or_else(refuse)?;
    Ok((
        match format {
            "x-wav" | "wave" | "vnd.wave" => "wav",
            "mpeg" => "mp3",
            other => other,
        },
        data,
    ))
}
