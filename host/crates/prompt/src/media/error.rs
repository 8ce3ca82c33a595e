//! What can be wrong with a medium.

use std::path::PathBuf;

/// Why a medium cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The file is not granted.
    #[error("the media file `{name}` is not granted{}: it must lie in the trace's `media_folder`, or stand in `files` of the session generator", meant(.nearest))]
    NotGranted {
        /// The name that was given.
        name: String,
        /// A granted name that is nearly the same.
        nearest: Option<String>,
    },
    /// The name leads, or may lead, out of the folder.
    #[error(
        "the media file `{name}` does not lie inside the media folder: names are relative to it, without `..`, and links must stay in it"
    )]
    Outside {
        /// The name that was given.
        name: String,
    },
    /// A way to fetch that servers do not have.
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
    /// Not a file, or not a folder.
    #[error("{} is no {expected}", path.display())]
    NotA {
        /// What was found.
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
    /// Neither the bytes nor the ending say what the file is.
    #[error(
        "the media file `{name}` is of no known format; known are png, jpg, gif, webp, wav, mp3, flac, ogg, m4a, mp4 and webm"
    )]
    UnknownFormat {
        /// The name that was given.
        name: String,
    },
    /// Something else than the workload says.
    #[error("`{name}` is {found}, where the message has a part of kind {expected}")]
    WrongKind {
        /// The source that was given.
        name: String,
        /// What it is: a MIME type or a kind.
        found: String,
        /// The part's kind.
        expected: &'static str,
    },
    /// Nothing of this kind can be generated.
    #[error("`generated:{kind}` does not exist{}: `generated:image` and `generated:audio` do", meant(.nearest))]
    CannotGenerate {
        /// What was asked for.
        kind: String,
        /// A kind that is nearly the same.
        nearest: Option<String>,
    },
    /// A parameter that the generator does not have, or has twice.
    #[error("`generated:{kind}` has no {unknown}parameter `{name}`{}; it has {known}", meant(.nearest), unknown = if *.twice { "second " } else { "" })]
    UnknownParameter {
        /// `image` or `audio`.
        kind: &'static str,
        /// What was given.
        name: String,
        /// Whether it was given twice.
        twice: bool,
        /// A parameter that is nearly the same.
        nearest: Option<String>,
        /// All parameters.
        known: String,
    },
    /// A value outside what is possible.
    #[error("`generated:{kind}`: {name} is `{value}`; it must be {expected}")]
    BadValue {
        /// `image` or `audio`.
        kind: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is possible.
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

fn meant(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|nearest| format!(" (did you mean `{nearest}`?)"))
        .unwrap_or_default()
}

/// The candidate that is nearest to a name, if one is near at all.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate.to_string())
}
