//! Prompts made with tokenizers of every kind.
#![expect(clippy::unwrap_used, reason = "the fixtures of a test may fail it")]

mod answers;
mod exact_lengths;
mod kinds;
mod parts;
mod tools;
mod wrapped;
