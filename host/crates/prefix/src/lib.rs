//! The ideal prefix cache: how much of a prompt a server with an unbounded cache could know
//! already.
//!
//! A prompt is a sequence of [`Piece`]s, text by identity and length: which tokens two prompts have
//! in common at their beginnings is decided without looking at a token. [`pieces_of`] gives the
//! pieces of messages, [`answer_pieces`] those of a recorded answer, [`text_piece`] that of an
//! answer that a server gave.
//!
//! [`PrefixLedger`] answers for each prompt how many of its tokens began an earlier one.
//! [`PrefixCensus`] counts only how many tokens a whole trace has that begin no earlier prompt, in
//! bounded memory.
#![forbid(unsafe_code)]

mod census;
mod ledger;
mod path;
mod piece;

pub use census::PrefixCensus;
pub use ledger::PrefixLedger;
pub use path::PromptPath;
pub use piece::{Piece, answer_pieces, message_pieces, pieces_of, role_piece, text_piece};
