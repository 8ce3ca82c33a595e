//! The plugin engine: limits, linker, bindings, instances, compile cache, traps with source lines.
#![forbid(unsafe_code)]
