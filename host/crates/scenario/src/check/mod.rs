//! A validator for the part of JSON schema that scenarios and plugin configurations use, with
//! places and nearest names.
//!
//! Supported: `type` (also a list of types), `properties`, `required`, `additionalProperties`,
//! `items`, `minItems`, `maxItems`, `uniqueItems`, `minLength`, `enum`, `const`, `minimum`,
//! `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `oneOf` and `anyOf` (the variant is chosen by
//! its constant key such as `type`, else by the type of the value), `allOf`, `$ref` into the same
//! schema; and five extensions: `x-function` (the value is a Lua function), `x-not-supported-yet`
//! (on a key: it may only be null or switched off; on a `oneOf`: the names of future variants),
//! `x-refused` (on a key: the reason why it has no value here), `x-synonyms` (next to an
//! `enum`: the valid name that is suggested for another word), and `x-renamed` (on a key: its new
//! name). Other keywords are annotations.

mod checker;
mod constants;
mod kind;
mod resolve;
mod variant;

pub use checker::check_value;
pub(crate) use kind::types;
pub(crate) use resolve::resolve;
