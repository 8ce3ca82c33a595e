//! What the modelled engine costs, holds and breaks.

use serde::{Deserialize, Serialize};
use veeksha_model::Nanos;

use crate::WireRule;

/// A simulated engine. Every key has a default (those of `default`), all times are milliseconds.
///
/// One step of the engine takes
/// `[prefill_base_ms + prefill_ms_per_token * p, if p > 0] + [decode_base_ms + decode_ms_per_sequence * d, if d > 0]`
/// for `p` prompt tokens that are not in the cache and `d` sequences that decode, times the noise.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// The name under which the model is served.
    pub model: String,
    /// Added to each step that computes prompt tokens.
    pub prefill_base_ms: f64,
    /// Per prompt token that is computed (tokens found in the prefix cache are free).
    pub prefill_ms_per_token: f64,
    /// Added to each step in which at least one sequence decodes.
    pub decode_base_ms: f64,
    /// Per sequence that decodes in a step.
    pub decode_ms_per_sequence: f64,
    /// Sequences that run at once; further ones wait, first come first served.
    pub max_batch: u32,
    /// Prompt tokens computed in one step; a longer prompt is computed in several (chunked prefill).
    pub max_prefill_tokens_per_step: u32,
    /// Tokens that the KV memory holds; rounded down to whole blocks.
    pub kv_capacity_tokens: u64,
    /// Tokens of one KV block.
    pub block_size: u32,
    /// Whether blocks of finished prompts are kept for later prompts with the same beginning.
    pub prefix_cache: bool,
    /// Coefficient of variation of the seeded noise by which each step's time is multiplied (gamma distributed, mean 1);
    /// 0 for none.
    pub noise_cv: f64,
    /// Most tokens of prompt and answer together; at most `kv_capacity_tokens`.
    pub max_context: u32,
    /// Mean length of an answer that ends by itself: lengths are gamma distributed with shape 2, rounded up.
    pub mean_output_tokens: f64,
    /// Every answer is as long as its request allows, whether it asks for that (`ignore_eos`) or not.
    pub full_length: bool,
    /// How many tokens of each answer, from its first, are reasoning; of APIs that know reasoning (the others get text).
    pub reasoning_tokens: u32,
    /// Constant times in place of the model of a batch: no request has an effect on another's.
    pub constant: Option<Constant>,
    /// What goes wrong.
    pub faults: Faults,
}

/// Times that do not depend on the load, up to [`Profile::max_batch`] answers at once; further requests wait for one of these
/// to end. Costs per token, KV memory, prefix cache and noise are without effect.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// From a request's arrival to its first token.
    pub first_token_ms: f64,
    /// From one token of an answer to its next. With 0 all tokens come at once.
    pub gap_ms: f64,
}

/// Faults, each decided per request from the seed and the request's ordinal.
///
/// A request is first refused or answered with an error status, each with its probability; at most one of the four. Of those that
/// pass, each may then drop its connection, send an error event, end early or stall, again at most one of the four. Such a
/// fault happens in place of a token: after `after_tokens` tokens, or, without it, after a number drawn evenly from those that
/// leave at least one token unsent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// The connection is closed without an answer.
    pub refuse_probability: f64,
    /// The request is answered with status 429.
    pub status_429_probability: f64,
    /// The request is answered with status 500.
    pub status_500_probability: f64,
    /// The request is answered with status 503.
    pub status_503_probability: f64,
    /// Every request waits this long before the engine sees it (a slow start).
    pub start_delay_ms: f64,
    /// The connection is closed in the middle of the answer.
    pub drop_connection_probability: f64,
    /// An error event comes instead of the rest of the answer.
    pub midstream_error_probability: f64,
    /// The answer ends without a finish reason.
    pub truncate_probability: f64,
    /// The answer pauses for `stall_ms`, then goes on.
    pub stall_probability: f64,
    /// How long a stall lasts.
    pub stall_ms: f64,
    /// How many tokens come before a fault inside the answer; the last possible place if the answer is shorter.
    pub after_tokens: Option<u32>,
    /// The key that every request must bring as `Authorization: Bearer KEY`; others are answered with status 401.
    pub api_key: Option<String>,
    /// Requests that name another model than [`Profile::model`] are answered with status 404 instead of being served.
    pub strict_model: bool,
    /// What happens to the bytes of answers, but not of errors; at most one of these per request. Only a server over sockets has a wire: in
    /// virtual time they count for nothing, and neither do `cut_at_ms` and `accept_delay_ms`.
    pub wire: Vec<WireRule>,
    /// That long after the server's start it closes every connection at once, as a crash would; then it goes on.
    pub cut_at_ms: Option<f64>,
    /// How long a new connection waits in the kernel's queue before it is accepted, each after the one before it.
    pub accept_delay_ms: f64,
}

const NAMES: [&str; 4] = ["default", "fast", "slow", "faulty"];

impl Default for Profile {
    /// A model of 8 billion parameters on one data-centre GPU: a prompt of 1000 tokens is answered after 40 ms, 32 sequences
    /// get a token every 8 ms.
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
    /// The profile of that name: `default`; `fast`, which costs next to nothing and so shows what the client costs; `slow`, a
    /// large model on too little hardware; `faulty`, the default with every fault now and then.
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
                faults: Faults::now_and_then(),
                ..base
            },
            _ => return None,
        })
    }

    /// A server whose times are known: the first token `ttft` nanoseconds after a request's arrival, each further one `gap`
    /// after the one before, for up to `streams` answers at once; every answer as long as its request allows. What a client
    /// measures beyond these times is the client's own.
    pub fn twin(ttft: Nanos, gap: Nanos, streams: u32) -> Profile {
        let ms = |nanos: Nanos| nanos as f64 / 1e6;
        Profile {
            model: "twin".into(),
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

    /// The names that [`Profile::named`] knows.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// Whole blocks of KV memory.
    pub(crate) fn kv_blocks(&self) -> u64 {
        self.kv_capacity_tokens / u64::from(self.block_size.max(1))
    }
}

impl Faults {
    fn now_and_then() -> Self {
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
