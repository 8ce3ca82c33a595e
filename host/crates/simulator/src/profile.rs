//! Costs, capacity and faults of the simulated engine.

use serde::{Deserialize, Serialize};
use veeksha_model::Nanos;

use crate::wire_fault::WireRule;

/// A simulated engine. Every key has a default (that of the profile `default`); all times are in
/// milliseconds.
///
/// One step of the engine takes `[prefill_base_ms + prefill_ms_per_token * p, if p > 0] +
/// [decode_base_ms + decode_ms_per_sequence * d, if d > 0]` for `p` prompt tokens that are not in
/// the cache and `d` sequences that decode, times the noise.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// The name under which the model is served.
    pub model: String,
    /// Time added to each step that computes prompt tokens.
    pub prefill_base_ms: f64,
    /// Time per computed prompt token (tokens found in the prefix cache are free).
    pub prefill_ms_per_token: f64,
    /// Time added to each step in which at least one sequence decodes.
    pub decode_base_ms: f64,
    /// Time per sequence that decodes in a step.
    pub decode_ms_per_sequence: f64,
    /// Maximum number of running sequences; further ones wait, first come first served.
    pub max_batch: u32,
    /// Maximum number of prompt tokens computed in one step; a longer prompt takes several (chunked
    /// prefill).
    pub max_prefill_tokens_per_step: u32,
    /// Capacity of the KV memory in tokens; rounded down to whole blocks.
    pub kv_capacity_tokens: u64,
    /// Tokens per KV block.
    pub block_size: u32,
    /// True to keep blocks of finished prompts for later prompts with the same beginning.
    pub prefix_cache: bool,
    /// Coefficient of variation of the seeded noise that multiplies each step's time (gamma
    /// distributed, mean 1); 0 for none.
    pub noise_cv: f64,
    /// Maximum number of prompt and answer tokens together; at most `kv_capacity_tokens`.
    pub max_context: u32,
    /// Mean length of an answer that ends by itself: lengths are gamma distributed with shape 2,
    /// rounded up.
    pub mean_output_tokens: f64,
    /// Every answer is as long as its request allows, even if the request does not set
    /// `ignore_eos`.
    pub full_length: bool,
    /// Number of initial tokens of each answer that are reasoning. APIs without reasoning send them
    /// as text.
    pub reasoning_tokens: u32,
    /// Constant times in place of the batch model: requests do not affect each other.
    pub constant: Option<Constant>,
    /// Faults of the server.
    pub faults: Faults,
}

/// Times that do not depend on the load, up to [`Profile::max_batch`] concurrent answers; further
/// requests wait for one of these to end. Costs per token, KV memory, prefix cache and noise have
/// no effect.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Time from a request's arrival to its first token.
    pub first_token_ms: f64,
    /// Time between the tokens of an answer. With 0 all tokens are sent at once.
    pub gap_ms: f64,
}

/// Faults, each decided per request from the seed and the request's ordinal.
///
/// A request is first refused or answered with an error status, each with its probability; at most
/// one of the four. A request that passes may then have its connection dropped, get an error event,
/// end early or stall, again at most one of the four. Such a fault replaces a token: after
/// `after_tokens` tokens, or, without it, after a number drawn uniformly from those that leave at
/// least one token unsent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Probability that the connection is closed without an answer.
    pub refuse_probability: f64,
    /// Probability of status 429.
    pub status_429_probability: f64,
    /// Probability of status 500.
    pub status_500_probability: f64,
    /// Probability of status 503.
    pub status_503_probability: f64,
    /// Delay of every request before it reaches the engine (a slow start).
    pub start_delay_ms: f64,
    /// Probability that the connection is closed in the middle of the answer.
    pub drop_connection_probability: f64,
    /// Probability that an error event replaces the rest of the answer.
    pub midstream_error_probability: f64,
    /// Probability that the answer ends without a finish reason.
    pub truncate_probability: f64,
    /// Probability that the answer pauses for `stall_ms` and then continues.
    pub stall_probability: f64,
    /// Duration of a stall.
    pub stall_ms: f64,
    /// Number of tokens before a fault inside the answer; the last possible position if the answer
    /// is shorter.
    pub after_tokens: Option<u32>,
    /// The key that every request must send as `Authorization: Bearer KEY`; others are answered
    /// with status 401.
    pub api_key: Option<String>,
    /// Requests for a model other than [`Profile::model`] are answered with status 404.
    pub strict_model: bool,
    /// Faults of the bytes of answers, but not of errors; at most one per request. They need a
    /// server with sockets: in virtual time they have no effect, nor do `cut_at_ms` and
    /// `accept_delay_ms`.
    pub wire: Vec<WireRule>,
    /// Time after the server's start at which it closes every connection at once, as in a crash; it
    /// continues afterwards.
    pub cut_at_ms: Option<f64>,
    /// Time that a new connection waits in the kernel's queue before it is accepted, each after the
    /// one before it.
    pub accept_delay_ms: f64,
}

const NAMES: [&str; 4] = ["default", "fast", "slow", "faulty"];

impl Default for Profile {
    /// A model of 8 billion parameters on one data-center GPU: a prompt of 1000 tokens is answered
    /// after 40 ms, 32 sequences get a token every 8 ms.
    fn default() -> Self {
        Profile {
            model: "simulated-8b".into(),
            prefill_base_ms: 10.0,
            prefill_ms_per_token: 0.03,
            decode_base_ms: 7.0,
            decode_ms_per_sequence: 0.03,
            max_batch: 256,
            max_prefill_tokens_per_step: 2048,
            kv_capacity_tokens: 400_000,
            block_size: 16,
            prefix_cache: true,
            noise_cv: 0.02,
            max_context: 32_768,
            mean_output_tokens: 256.0,
            full_length: false,
            reasoning_tokens: 0,
            constant: None,
            faults: Faults::default(),
        }
    }
}

impl Profile {
    /// Returns the profile with that name: `default`; `fast`, with negligible costs, which exposes
    /// the client's cost; `slow`, a large model on inadequate hardware; `faulty`, the default with
    /// occasional faults of every kind.
    pub fn named(name: &str) -> Option<Profile> {
        let base = Profile::default();
        Some(match name {
            "default" => base,
            "fast" => Profile {
                model: "simulated-fast".into(),
                prefill_base_ms: 0.05,
                prefill_ms_per_token: 0.0001,
                decode_base_ms: 0.05,
                decode_ms_per_sequence: 0.0001,
                max_batch: 4096,
                max_prefill_tokens_per_step: 65_536,
                kv_capacity_tokens: 16_000_000,
                noise_cv: 0.0,
                max_context: 1_000_000,
                ..base
            },
            "slow" => Profile {
                model: "simulated-slow".into(),
                prefill_base_ms: 60.0,
                prefill_ms_per_token: 0.5,
                decode_base_ms: 45.0,
                decode_ms_per_sequence: 1.0,
                max_batch: 16,
                max_prefill_tokens_per_step: 512,
                kv_capacity_tokens: 32_768,
                noise_cv: 0.1,
                max_context: 8192,
                ..base
            },
            "faulty" => Profile {
                model: "simulated-faulty".into(),
                faults: Faults::occasional(),
                ..base
            },
            _ => return None,
        })
    }

    /// Returns a server with known times: the first token `ttft` nanoseconds after a request's
    /// arrival, each further one `gap` after the one before, for up to `streams` concurrent
    /// answers; every answer is as long as its request allows. Any additional time that a client
    /// measures is caused by the client.
    pub fn reference(ttft: Nanos, gap: Nanos, streams: u32) -> Profile {
        let ms = |nanos: Nanos| nanos as f64 / 1e6;
        Profile {
            model: "reference".into(),
            max_batch: streams,
            kv_capacity_tokens: u64::from(u32::MAX),
            block_size: 1,
            prefix_cache: false,
            noise_cv: 0.0,
            max_context: u32::MAX,
            full_length: true,
            constant: Some(Constant {
                first_token_ms: ms(ttft),
                gap_ms: ms(gap),
            }),
            ..Profile::default()
        }
    }

    /// Returns the names that [`Profile::named`] accepts.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// Returns the capacity of the KV memory in whole blocks.
    pub(crate) fn kv_blocks(&self) -> u64 {
        self.kv_capacity_tokens / u64::from(self.block_size.max(1))
    }
}

impl Faults {
    fn occasional() -> Self {
        Faults {
            refuse_probability: 0.01,
            status_429_probability: 0.02,
            status_500_probability: 0.01,
            status_503_probability: 0.01,
            start_delay_ms: 5.0,
            drop_connection_probability: 0.02,
            midstream_error_probability: 0.02,
            truncate_probability: 0.01,
            stall_probability: 0.03,
            stall_ms: 500.0,
            ..Faults::default()
        }
    }
}
