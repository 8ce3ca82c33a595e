//! Service-level objectives as text, such as `p99(ttfc) < 500ms`: parsed, checked, printed. Pure.
//!
//! # Grammar
//!
//! ```text
//! objective  := quantity comparison bound
//! quantity   := RUN_METRIC | aggregate "(" METRIC [labels] ["," "window" "=" time] ")"
//! aggregate  := "p" PERCENT | "median" | "mean" | "avg" | "min" | "max" | "std" | "sum" | "count"
//! labels     := "{" [label ("," label)* [","]] "}"
//! label      := name "=" value         a word, a number, or quoted text: "eu", 'eu', "a \"b\""
//! comparison := "<" | "<=" | "≤" | ">" | ">=" | "≥"
//! bound      := ["+" | "-"] number [unit]
//! unit       := "ns" | "us" | "µs" | "ms" | "s" | "m" | "h" | "%"
//! condition  := (METRIC [labels] | aggregate "(" METRIC [labels] ")") comparison bound
//! ```
//!
//! * Numbers may have a fraction, an exponent and, between digits, underscores: `0.05`, `1e-3`,
//!   `10_000`. A number with a unit is read as one decimal number, so that `100ms` is exactly the
//!   number `0.1`.
//! * Quoted text supports the escapes `\"`, `\'`, `\\`, `\n`, `\r`, `\t` and `\u{1f600}`.
//! * Aggregates, `window` and units are spelled as above; aggregates may be in upper case (`P99`).
//!   A word that names an aggregate cannot name a run metric.
//! * Blanks are allowed between all parts. A text is at most [`LONGEST`] bytes.
//!
//! [`Objective::parse`] reads an objective and [`Objective`]'s `Display` prints the canonical text:
//! parsing it gives the same objective. This crate does not know which metrics exist; its callers
//! do. They also know the values that each can have, as a [`Range`], which refuses a bound that no
//! value meets, or that all do.
//!
//! [`Objective::parse_condition`] reads a condition on each request.
//!
//! Related languages (`--fail-if` of the comparison) are read with the [`SloReader`] of this crate.
#![forbid(unsafe_code)]

mod bound;
mod condition;
mod decimal;
mod display;
mod error;
mod grammar;
mod lexer;
mod nearest;
mod objective;
mod range;
mod reader;
mod units;

pub use bound::WrittenBound;
pub use display::LabelText;
pub use error::ParseError;
pub use lexer::{SloToken, TokenKind};
pub use nearest::nearest;
pub use objective::{Aggregate, BoundUnit, ComparisonOperator, Objective, Quantity, SloBound};
pub use range::{Range, UninformativeBound};
pub use reader::{LONGEST, SloReader};
pub use units::UnitMismatch;
