//! Options of the server.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use veeksha_model::Nanos;

use super::truth::TruthRecord;
use crate::profile::Profile;
use crate::text;

/// Turns a prompt into token ids: their number is the prompt's length, their values determine the
/// blocks of the prefix cache.
pub type Tokenize = Arc<dyn Fn(&str) -> Vec<u32> + Send + Sync>;

/// Options of a [`SimServer`](super::SimServer).
#[derive(Clone)]
pub struct SimOptions {
    /// The engine's profile.
    pub profile: Profile,
    /// The seed of all random draws.
    pub seed: u64,
    /// The tokenizer of prompts.
    pub tokenize: Tokenize,
    /// Maximum number of records kept for [`SimServer::truth`](super::SimServer::truth); older ones
    /// are dropped. 0 keeps none.
    pub truth_capacity: usize,
    /// Maximum number of chunks kept in all finished records, 16 bytes each; the oldest records are
    /// dropped beyond it.
    pub truth_chunks: usize,
    /// Receives each record when it is complete, including those that are dropped. The receiver
    /// should keep up: the channel is unbounded.
    pub truth_over: Option<Sender<TruthRecord>>,
}

impl SimOptions {
    /// Uses [`text::approximate_tokens`] as the tokenizer and keeps 100,000 records with 8,000,000
    /// chunks.
    pub fn new(profile: Profile, seed: u64) -> Self {
        SimOptions {
            profile,
            seed,
            tokenize: Arc::new(text::approximate_tokens),
            truth_capacity: 100_000,
            truth_chunks: 8_000_000,
            truth_over: None,
        }
    }

    /// Returns options of a reference server: known times (see [`Profile::reference`]) and minimal
    /// cost. A prompt has a token per four bytes, and the tokens are not inspected.
    pub fn reference(ttft: Nanos, gap: Nanos, streams: u32) -> Self {
        SimOptions {
            tokenize: Arc::new(|text: &str| vec![0; text.len() / 4 + 1]),
            ..SimOptions::new(Profile::reference(ttft, gap, streams), 0)
        }
    }
}
