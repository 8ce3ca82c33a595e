//! The configuration.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

/// The trace flavor `azure`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// True if the images that a row counts in `NumImages` are sent, as generated ones; otherwise
    /// all of its tokens are text.
    pub images: bool,
    /// Pixels of a generated image from left to right.
    #[cfg_attr(test, schemars(range(min = 1, max = 16384)))]
    pub image_width: u32,
    /// Pixels of a generated image from top to bottom.
    #[cfg_attr(test, schemars(range(min = 1, max = 16384)))]
    pub image_height: u32,
    /// Tokens that an image counts for: with `images`, a row's text has that many tokens less for
    /// each, but at least one.
    pub image_tokens: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            images: false,
            image_width: 512,
            image_height: 512,
            // One tile of 512 × 512: 85 + 170, as OpenAI counts for GPT-4o.
            image_tokens: 255,
        }
    }
}
