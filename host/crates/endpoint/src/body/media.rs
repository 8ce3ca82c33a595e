//! Where media are: every API takes URLs, and what a `data:` URL holds.

use veeksha_model::{ErrorClass, MediaKind};

use crate::failure::Failure;

/// A place that a server can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source<'a> {
    /// Behind an `http:` or `https:` URL.
    Url(&'a str),
    /// Inside a `data:` URL: the media type as it stands there, and what follows the comma.
    Embedded { media_type: &'a str, data: &'a str },
}

/// Understands a URL; it fails if it is none, or a `data:` URL without a comma.
pub(super) fn source(kind: MediaKind, url: &str) -> Result<Source<'_>, Failure> {
    if starts_with(url, "http://") || starts_with(url, "https://") {
        return Ok(Source::Url(url));
    }
    let embedded = url.get("data:".len()..).filter(|_| starts_with(url, "data:"));
    let Some(embedded) = embedded else {
        let message = format!(
            "the {} `{}` is no URL and no `data:` URL, and a server takes nothing else",
            kind.name(),
            url.chars().take(200).collect::<String>()
        );
        return Err(Failure::new(ErrorClass::Protocol, message));
    };
    let (head, data) = embedded.split_once(',').unwrap_or((embedded, ""));
    Ok(Source::Embedded {
        media_type: head.split(';').next().unwrap_or_default(),
        data,
    })
}

/// The failure of a request whose media an API has no place for.
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

/// Format and Base64 of `data:audio/FORMAT;base64,DATA`.
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
