//! Turns the segments of a message into text of an exact number of tokens, and counts tokens.
//!
//! * [`Tokenizer`] is a Hugging Face `tokenizer.json`: a file, a model folder, or the small one inside the binary.
//! * [`Materialiser`] writes synthetic text with it, out of words that are one token each wherever they stand, and joins
//!   segments to messages. Lengths are exact: what can be proved is proved when the tokenizer is loaded, what cannot is
//!   encoded again and repaired. The module `words` says how.
//! * [`ChatTemplate`] is a model's chat template, rendered as Hugging Face's `apply_chat_template` does. A materialiser with one
//!   counts what the template adds, and with [`PromptTarget::Wrapped`] makes the whole prompt, template included, as long as was
//!   asked for.
//! * [`MediaStore`] turns granted files and generated pictures and sounds into the URLs that servers take.
//! * [`hub`] knows where a model's tokenizer lies on disk and on the Hugging Face hub; it downloads nothing.
//!
//! A length is found in three steps, each of which is cheaper than the next: `words` proves that words are tokens and their spaces
//! are boundaries; where text meets something else, `count` encodes that place with a word on either side; and `compose` changes
//! the last words until the count is right. `skeleton` spares the rendering of a template where messages are plain words.
//!
//! Everything here is deterministic: equal seeds, lengths and tokenizers give equal text, on every machine and thread.
#![forbid(unsafe_code)]

mod cache;
mod compose;
mod count;
mod crossing;
mod embedded;
mod error;
mod file;
pub mod hub;
mod materialiser;
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
pub use materialiser::{MAX_TOKENS, Materialiser};
pub use media::{MAX_MEDIA_BYTES, MediaError, MediaStore};
pub use template::{ChatTemplate, SpecialTokens};
pub use tokenizer::Tokenizer;
pub use wrapping::{PromptTarget, TemplateNotes};
