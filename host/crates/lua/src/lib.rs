//! Sandboxed Luau: scenario files, session functions, agents as coroutines.
#![forbid(unsafe_code)]
