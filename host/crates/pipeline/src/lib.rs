//! The shell: threads and queues from prefetch over dispatch and client to completion.
#![forbid(unsafe_code)]
