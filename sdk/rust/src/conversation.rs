//! Recorded conversations, as several trace flavors meet them: messages of many dialects, the
//! requests and answers that they fall into, media by reference, and the settings that all of them
//! offer.
//!
//! ```
//! use veeksha_plugin::conversation::{RecordedMessage, exchanges};
//! use serde_json::json;
//!
//! let said = [
//!     json!({"from": "system", "value": "Be short."}),
//!     json!({"from": "human", "value": "Which planet has rings?"}),
//!     json!({"from": "gpt", "value": "Saturn."}),
//! ];
//! let messages = said.iter().map(RecordedMessage::read).collect::<Result<Vec<_>, _>>()?;
//! let exchanges = exchanges(messages);
//! assert_eq!(exchanges.len(), 1, "one request, of a system and a user message");
//! assert_eq!(exchanges[0].messages.len(), 2);
//! assert_eq!(exchanges[0].answer_text(), "Saturn.");
//! # Ok::<(), String>(())
//! ```

mod cache_bust;
mod chain;
mod exchange;
mod media;
mod message;
mod modalities;
mod settings;

pub use cache_bust::bust_cache;
pub use chain::chain;
pub use exchange::{Exchange, answer_text, continue_answer, exchanges};
pub use media::media;
pub use message::{RecordedMessage, role, text_of};
pub use modalities::Modalities;
pub use settings::OutputControl;
