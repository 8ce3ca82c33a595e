//! Events as the decoders return them.

/// Maximum size of an event, in bytes of one line or of all data lines: 16 MiB. An event of a token
/// stream has a few hundred bytes; the limit bounds the memory that a faulty server can use.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// One decoded item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A line that begins with a colon, without the colon: a keep-alive.
    Comment(&'a [u8]),
    /// An event's data.
    Data(&'a [u8]),
    /// The data of an event named `error`.
    Error(&'a [u8]),
}

/// Error of an event that exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit in bytes.
    pub limit: usize,
}
