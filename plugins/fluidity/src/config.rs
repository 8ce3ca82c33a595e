//! What the user writes.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

/// The metric plugin `fluidity`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Seconds from dispatch until the first token is due.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub prefill_deadline: f64,
    /// Seconds from the moment one token is due until the next one is; more than 0.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    pub decode_deadline: f64,
}

impl Default for Config {
    /// etalon's.
    fn default() -> Self {
        Config {
            prefill_deadline: 0.1,
            decode_deadline: 0.05,
        }
    }
}
