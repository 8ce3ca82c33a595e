//! Sessions that are played without an engine: nodes end in the order and with the results that a
//! script states.

mod nodes;
mod player;
mod script;

pub use player::{PlayError, PlayedSession, play_agent, play_planned};
pub(crate) use script::failure_class;
pub use script::{AnswerScript, Remaining, ScriptedEnd, ScriptedTool};
