//! The trace flavor `untimed_content_multi_turn`.
#![forbid(unsafe_code)]
