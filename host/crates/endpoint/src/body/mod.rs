//! JSON request bodies, written directly as bytes: prompts are large, so no tree of values is
//! built.
//!
//! The conversation is in `messages` (chat completions, Anthropic), `prompt` (completions), `input`
//! (Responses), `inputs` (TGI), or where a template puts it. The modules of this folder document
//! the details.
//!
//! **Precedence**, per top-level field: the request's `body`, then `sampling`, then the host's
//! fields. A field with precedence replaces the other one entirely; nested objects are not merged.
//! TGI differs in one respect: sampling parameters are inside `parameters`, so the fields of
//! `sampling` go there as well.

mod anthropic;
mod chat;
mod conversation;
mod media;
mod request_body;
mod responses;
mod strict_schema;
mod template;
mod tools;
mod turns;

pub use request_body::request_body;
