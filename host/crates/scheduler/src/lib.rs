//! Sessions, traffic shapes, ready queue, history: a state machine that takes the time as an argument.
#![forbid(unsafe_code)]
