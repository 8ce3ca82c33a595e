//! Events as the decoders return them.

/// The largest event that is accepted, in bytes of one line or of all data lines: 16 MiB. An event of a token stream has a few
/// hundred bytes; the bound keeps a broken server from filling the memory.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// What a decoder found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A line that begins with a colon, without the colon: a keep-alive.
    Comment(&'a [u8]),
    /// An event's data.
    Data(&'a [u8]),
    /// The data of an event that is called `error`.
    Error(&'a [u8]),
}

/// An event grew beyond the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The bound.
    pub limit: usize,
}
