//! HTTP clients, SSE decoding, endpoint dialects, per-chunk timestamps.
#![forbid(unsafe_code)]
