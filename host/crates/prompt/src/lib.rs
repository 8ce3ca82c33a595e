//! Turns the segments of a message into text of an exact number of tokens, and counts tokens.
//!
//! * [`Tokenizer`] is a Hugging Face `tokenizer.json`: a file, a model folder, or the small one
//!   inside the binary.
//! * [`Materializer`] writes synthetic text with it, from words that are one token each at any
//!   position, and joins segments to messages. Lengths are exact: as far as possible by a proof
//!   when the tokenizer is loaded, otherwise by encoding again and repairing. See the module
//!   `words`.
//! * [`ChatTemplate`] is a model's chat template, rendered as Hugging Face's `apply_chat_template`
//!   does. A materializer with a template counts the tokens that it adds, and with
//!   [`PromptTarget::Wrapped`] makes the whole prompt, including the template, as long as
//!   requested.
//! * [`MediaStore`] turns granted files and generated pictures and sounds into URLs for servers.
//! * [`hub`] locates a model's tokenizer on disk and on the Hugging Face hub; it downloads nothing.
//!
//! An exact length takes three steps, from the cheapest to the most expensive: `words` proves that
//! words are tokens and their spaces are boundaries; `count` encodes the places where text meets
//! something else, with a word on either side; `compose` changes the last words until the count is
//! right. `skeleton` avoids rendering a template if all messages are plain words.
//!
//! Everything is deterministic: equal seeds, lengths and tokenizers give equal text, on every
//! machine and thread.
#![forbid(unsafe_code)]

mod cache;
mod compose;
mod count;
mod crossing;
mod definitions;
mod embedded;
mod error;
mod file;
pub mod hub;
mod materializer;
mod media;
mod meter;
mod salt;
mod skeleton;
mod synthetic;
mod template;
mod tokenizer;
mod words;
mod wrapping;
mod writer;

pub use error::PromptError;
pub use materializer::{Materializer, RequestFilter};
pub use media::{MAX_MEDIA_BYTES, MediaError, MediaStore};
pub use template::{ChatTemplate, SpecialTokens};
pub use tokenizer::Tokenizer;
pub use wrapping::{PromptTarget, TemplateNotes};
pub use writer::MAX_TOKENS;
