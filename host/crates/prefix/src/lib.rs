//! The ideal prefix cache: the part of a prompt that an unbounded cache would contain.
//!
//! A prompt is a sequence of [`PrefixPiece`]s, texts with an identity and a length, so that the
//! common prefix of two prompts is found without comparing tokens. [`pieces_of`] returns the pieces
//! of messages, [`answer_pieces`] those of a recorded answer, [`text_piece`] that of a server's
//! answer.
//!
//! [`PrefixLedger`] returns for each prompt the number of its tokens that began an earlier one.
//! [`PrefixCensus`] only counts the tokens of a whole trace that begin no earlier prompt, in
//! bounded memory. [`ComputedPrefixes`] keeps what each server has computed, and since when.
#![forbid(unsafe_code)]

mod census;
mod computed;
mod ledger;
mod path;
mod piece;
mod token_scale;

pub use census::PrefixCensus;
pub use computed::{ComputedPrefixes, PromptQuery};
pub use ledger::PrefixLedger;
pub use path::PromptPath;
pub use piece::{PrefixPiece, answer_pieces, pieces_of, role_piece, text_piece, tool_pieces};
