//! Plugins of veeksha-host, in Rust.
//!
//! A plugin is a WebAssembly component that plans sessions ([`SessionGenerator`]), decides them
//! step by step ([`Agent`]), makes them of the rows of a recorded trace ([`flavor::TraceFlavor`];
//! an example is in [`flavor`]), decides when they arrive ([`arrivals::ArrivalProcess`]), adds the
//! API of an endpoint ([`codec::EndpointCodec`]; an example is in [`mod@codec`]), measures a metric
//! ([`metric::Metric`]), decides which requests were good ([`check::RequestCheck`]) or judges a
//! whole run ([`slo::SloCheck`]). This crate is the contract `veeksha:plugin@0.2.0` in Rust's own
//! shape: implement a trait, name it in a macro, build for `wasm32-unknown-unknown`.
//!
//! ```
//! use veeksha_plugin::{Error, Plugin, Random, Request, Session, SessionGenerator, synthetic};
//!
//! /// Questions about one document: a long shared prefix and a short question.
//! struct SharedDocument {
//!     document_tokens: u32,
//! }
//!
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Config {
//!     document_tokens: u32,
//! }
//!
//! impl Plugin for SharedDocument {
//!     type Config = Config;
//!     const NAME: &'static str = "shared_document";
//!     const VERSION: &'static str = "0.1.0";
//!     const SUMMARY: &'static str = "short questions about one long document";
//! }
//!
//! impl SessionGenerator for SharedDocument {
//!     fn open(config: Config) -> Result<Self, Error> {
//!         if config.document_tokens == 0 {
//!             return Err(Error::config("/document_tokens", "a document has at least one token"));
//!         }
//!         Ok(SharedDocument { document_tokens: config.document_tokens })
//!     }
//!
//!     fn session(&self, index: u64, random: Random) -> Result<Session, Error> {
//!         let question = random.stream("question").between(20, 60);
//!         Ok(Request::new(0)
//!             .system(synthetic(1, self.document_tokens))
//!             .user(synthetic(index + 2, question))
//!             .output_exactly(128)
//!             .into())
//!     }
//! }
//!
//! veeksha_plugin::export_session_generator!(SharedDocument);
//!
//! // The logic runs natively, so an ordinary test can check it:
//! let workload = SharedDocument::open(Config { document_tokens: 4000 })?;
//! let session = workload.session(7, Random::seeded(42, 7))?;
//! assert_eq!(session, workload.session(7, Random::seeded(42, 7))?);
//! # Ok::<(), Error>(())
//! ```
//!
//! Work that the crate does for the author: it batches; it reads the configuration and turns what
//! does not fit into errors with a path and the nearest name ([`config`]); it sends panics with
//! their place to the user's log; and the component imports only what the code calls. Optional
//! powers of the host are [`log`], [`Random`], [`tokens`] and [`blobs`].
#![forbid(unsafe_code)]

mod agent;
mod agent_session;
pub mod arrivals;
mod async_agent;
mod bindings;
pub mod blobs;
mod blocks;
pub mod check;
pub mod codec;
mod completion;
pub mod config;
pub mod conversation;
mod corpus;
mod error;
pub mod flavor;
mod frame;
mod generator;
pub mod log;
pub mod metric;
mod plugin;
mod random;
#[cfg(feature = "schema")]
pub mod schema;
mod session;
pub mod slo;
pub mod tokens;
mod tool;
mod types;

pub use agent::{Agent, Opening, Step};
pub use agent_session::{AgentSession, Branch, Subagent};
pub use async_agent::{AsyncAgent, AsyncSession};
pub use blocks::{LastBlock, blocks, seed_of};
pub use completion::{ChunkKind, Completion, Further, Recorded, Status};
pub use corpus::Corpus;
pub use generator::SessionGenerator;
pub use plugin::Plugin;
pub use random::{Draws, Random};
pub use session::{synthetic, synthetic_tools, text};
pub use tool::result_of;
pub use types::{
    Answer, AnswerForm, Cancellation, Descriptor, Edge, Error, Failure, Guarantees, HistoryMode,
    LogProbabilities, Media, MediaKind, Message, Nanos, Output, Reasoning, Recording, Request, Response,
    Role, Seed, Segment, Session, SyntheticText, SyntheticTools, TokenProbabilities, ToolCall, ToolChoice,
    ToolOutcome, ToolResult, ToolRun, Tools, Trigger, Usage,
};

/// The items that the export macros need.
#[doc(hidden)]
pub mod __private {
    pub use crate::agent::Exported as ExportedAgent;
    pub use crate::arrivals::Exported as ExportedArrivalProcess;
    pub use crate::bindings::{
        agent_generator, arrival_process, endpoint_codec, metric, request_check, session_generator,
        slo_check, trace_flavor,
    };
    pub use crate::check::Exported as ExportedRequestCheck;
    pub use crate::codec::Exported as ExportedCodec;
    pub use crate::flavor::Exported as ExportedFlavor;
    pub use crate::generator::Exported as ExportedGenerator;
    pub use crate::metric::Exported as ExportedMetric;
    pub use crate::slo::Exported as ExportedSloCheck;
}

/// The plugins of the README, compiled with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A type that lacks a kind's trait cannot be exported as one; the compiler's error names the
/// trait.
///
/// ```compile_fail,E0277
/// struct Nothing;
/// veeksha_plugin::export_metric!(Nothing);
/// ```
///
/// ```compile_fail,E0277
/// struct Nothing;
/// veeksha_plugin::export_slo_check!(Nothing);
/// ```
#[cfg(doctest)]
struct NotOfAKind;
