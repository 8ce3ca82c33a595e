//! The limit of a medium.

/// Maximum size of one medium: about the largest request body that servers accept.
pub const MAX_MEDIA_BYTES: u64 = 64 << 20;
