//! Errors of media.

use std::path::PathBuf;

/// The reason why a medium cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The file is not granted.
    #[error("the media file `{name}` is not granted{}: put it into the trace's `media_folder`, or add it to `files` of the session generator", did_you_mean(.nearest))]
    NotGranted {
        /// The name that was given.
        name: String,
        /// A similar granted name.
        nearest: Option<String>,
    },
    /// The name leads, or may lead, outside the folder.
    #[error(
        "the media file `{name}` is outside the media folder: names are relative to it, without `..`, and links must not leave it"
    )]
    Outside {
        /// The name that was given.
        name: String,
    },
    /// A URL scheme that servers do not support.
    #[error(
        "`{source_name}` cannot be sent: a medium is an `http(s)://` or `data:` URL, a granted file's name, or `generated:...`"
    )]
    Scheme {
        /// The source that was given.
        source_name: String,
    },
    /// The media folder or a file could not be read.
    #[error("cannot read the media file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Not a regular file, or not a folder.
    #[error("{} is not a {expected}", path.display())]
    NotA {
        /// The path.
        path: PathBuf,
        /// What was expected: `file` or `folder`.
        expected: &'static str,
    },
    /// Too large.
    #[error("`{name}` has {bytes} bytes; the limit for one medium is {limit}")]
    TooLarge {
        /// The source that was given.
        name: String,
        /// Its bytes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Neither the contents nor the extension identify the file's format.
    #[error(
        "the media file `{name}` is of no known format; known are png, jpg, gif, webp, wav, mp3, flac, ogg, m4a, mp4 and webm"
    )]
    UnknownFormat {
        /// The name that was given.
        name: String,
    },
    /// The file is of another kind than the workload states.
    #[error("`{name}` is {found}, where the message has a part of kind {expected}")]
    WrongKind {
        /// The source that was given.
        name: String,
        /// The actual kind: a MIME type or a kind.
        found: String,
        /// The part's kind.
        expected: &'static str,
    },
    /// Media of this kind cannot be generated.
    #[error("`generated:{kind}` does not exist{}: `generated:image` and `generated:audio` do", did_you_mean(.nearest))]
    CannotGenerate {
        /// The requested kind.
        kind: String,
        /// A similar kind.
        nearest: Option<String>,
    },
    /// A parameter is unknown or given twice.
    #[error("`generated:{kind}` has no {unknown}parameter `{name}`{}; it has {known}", did_you_mean(.nearest), unknown = if *.twice { "second " } else { "" })]
    UnknownParameter {
        /// `image` or `audio`.
        kind: &'static str,
        /// The parameter as given.
        name: String,
        /// True if it was given twice.
        twice: bool,
        /// A similar parameter.
        nearest: Option<String>,
        /// All parameters.
        known: String,
    },
    /// A value is out of range.
    #[error("`generated:{kind}`: {name} is `{value}`; it must be {expected}")]
    BadValue {
        /// `image` or `audio`.
        kind: &'static str,
        /// The parameter.
        name: &'static str,
        /// The value as given.
        value: String,
        /// The valid values.
        expected: String,
    },
    /// The encoder failed.
    #[error("`generated:{kind}` could not be written: {reason}")]
    Encode {
        /// `image` or `audio`.
        kind: &'static str,
        /// The encoder's reason.
        reason: String,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|nearest| format!(" (did you mean `{nearest}`?)"))
        .unwrap_or_default()
}

/// Returns the candidate closest to a name, if one is close.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate.to_string())
}
