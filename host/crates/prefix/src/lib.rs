//! The ideal prefix cache: how much of a prompt a server with an unbounded cache could know already.
//!
//! A prompt is a sequence of [`Piece`]s, text by identity and length; no text is looked at.
#![forbid(unsafe_code)]

mod ledger;
mod piece;

pub use ledger::PrefixLedger;
pub use piece::{Piece, pieces_of, text_piece};
