//! Writes a request as JSON, directly into bytes: prompts are large, so no tree of values is built of them.
//!
//! What is said stands in `messages` (chat completions, Anthropic), `prompt` (completions), `input` (Responses), `inputs` (TGI) or where
//! a template puts it; the files of this folder say how.
//!
//! **Precedence**, field by field of the top level: the request's own `body`, then `sampling`, then what the host writes. A
//! field that wins replaces the other whole; nested objects are not merged. One thing differs in TGI, which has all about sampling
//! inside `parameters`: the fields of `sampling` go there, too.

mod anthropic;
mod chat;
mod conversation;
mod media;
mod request_body;
mod responses;
mod template;

pub use request_body::request_body;
