//! The configuration, with Veeksha's keys and defaults.
//!
//! The types say what is known and of which kind it is; whether the values make sense together is
//! said where they are used. In tests they also yield `schema.json`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The synthetic session generator.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The requests of a session and what they wait for.
    pub session_graph: Graph,
    /// The content of the prompts: at most one channel of each type.
    #[serde(default = "default_channels")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub channels: Vec<Channel>,
    /// The requested answers.
    pub output_spec: OutputSpec,
    /// The same as `inherit_history` of the session graph.
    #[cfg_attr(test, schemars(with = "bool"))]
    pub inherit_history: Option<bool>,
}

/// The requests of a session and what they wait for.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(tag = "type"))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Graph {
    /// One request.
    SingleRequest {},
    /// A chain: each request waits for the one before it.
    Linear {
        /// True if a request continues the conversation of the one before it. Default: true.
        #[serde(default)]
        #[cfg_attr(test, schemars(with = "bool"))]
        inherit_history: Option<bool>,
        /// Requests in a session.
        #[serde(default = "six_to_twelve")]
        num_request_generator: Length,
        /// Seconds between the completion of a request and the next one.
        #[serde(default = "one_per_second")]
        request_wait_generator: Interval,
    },
    /// Layers of requests: each request waits for some of the requests in the layers before it.
    Branching {
        /// Layers in a session.
        #[serde(default = "two_to_five")]
        num_layers_generator: Length,
        /// Requests in a layer.
        #[serde(default = "one_to_three")]
        layer_width_generator: Length,
        /// Edges drawn from each request to later layers; equal edges count once.
        #[serde(default = "one_to_two")]
        fan_out_generator: Length,
        /// Parents that each request of a later layer has at least, as far as the layer before it
        /// has that many.
        #[serde(default = "one_to_two")]
        fan_in_generator: Length,
        /// The number of layers that an edge spans; the last layer ends it.
        #[serde(default = "one")]
        connection_dist_generator: Length,
        /// Seconds between the completion of the last parent and a request.
        #[serde(default = "one_per_second")]
        request_wait_generator: Interval,
        /// True if a request continues the conversation of one of its parents, drawn at random.
        /// Default: true.
        #[serde(default)]
        #[cfg_attr(test, schemars(with = "bool"))]
        inherit_history: Option<bool>,
        /// True if the first layer has one request only.
        #[serde(default = "yes")]
        single_root: bool,
    },
}

/// One kind of content.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(tag = "type"))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Channel {
    /// Text of exact length.
    Text {
        /// Tokens of new content in each request.
        #[serde(default = "six_to_twelve")]
        body_length_generator: Length,
        /// The share of a first request's tokens that all sessions have in common (rounded down).
        #[serde(default)]
        #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
        shared_prefix_ratio: f64,
        /// The probability that a first request begins with what is common.
        #[serde(default = "certain")]
        #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
        shared_prefix_probability: f64,
    },
    /// Images that the host makes, sent as content blocks after the text.
    Image {
        /// Images in each request: a number, or a distribution.
        #[serde(default = "one_of_them")]
        #[cfg_attr(test, schemars(with = "crate::schema::NumberOrLength"))]
        num_images: Amount,
        /// Their width in pixels: a number, or a distribution.
        #[serde(default = "pixels")]
        #[cfg_attr(test, schemars(with = "crate::schema::NumberOrLength"))]
        width: Amount,
        /// Their height in pixels: a number, or a distribution.
        #[serde(default = "pixels")]
        #[cfg_attr(test, schemars(with = "crate::schema::NumberOrLength"))]
        height: Amount,
        /// Their encoding.
        #[serde(default)]
        format: ImageFormat,
    },
    /// Audio that the host makes, sent as content blocks after the images.
    Audio {
        /// Pieces of audio in each request: a number, or a distribution.
        #[serde(default = "one_of_them")]
        #[cfg_attr(test, schemars(with = "crate::schema::NumberOrLength"))]
        num_audios: Amount,
        /// The length of each, in seconds: a number, or a distribution.
        #[serde(default = "a_sentence")]
        #[cfg_attr(test, schemars(with = "crate::schema::NumberOrSeconds"))]
        seconds: Span,
        /// Samples per second.
        #[serde(default = "speech")]
        #[cfg_attr(test, schemars(range(min = 1)))]
        rate: u32,
    },
    /// Not supported yet.
    Video(Map<String, Value>),
}

/// The encoding of an image.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum ImageFormat {
    /// PNG.
    #[default]
    Png,
}

/// A number, 1 or more, or a distribution of such numbers.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(transparent)]
pub struct Amount(pub(crate) Value);

/// A time in seconds, or a distribution of times.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(transparent)]
pub struct Span(pub(crate) Value);

/// A distribution of seconds.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(tag = "type"))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Seconds {
    /// Always the same.
    Fixed {
        /// The time.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        value: f64,
    },
    /// Each time from `min` to `max` with the same probability, rounded to milliseconds.
    Uniform {
        /// The shortest.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        min: f64,
        /// The longest.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        max: f64,
    },
}

/// The requested answers.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct OutputSpec {
    /// Text.
    pub text: TextOutput,
    /// Not supported yet.
    #[cfg_attr(test, schemars(with = "Map<String, Value>"))]
    pub image: Option<Map<String, Value>>,
    /// Not supported yet.
    #[cfg_attr(test, schemars(with = "Map<String, Value>"))]
    pub audio: Option<Map<String, Value>>,
    /// Not supported yet.
    #[cfg_attr(test, schemars(with = "Map<String, Value>"))]
    pub video: Option<Map<String, Value>>,
}

/// The text asked for.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct TextOutput {
    /// Tokens in each answer; the server is asked for exactly that many.
    pub output_length_generator: Length,
}

/// A distribution of whole numbers, 1 or more.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(tag = "type"))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Length {
    /// Always the same.
    Fixed {
        /// The number.
        #[serde(default = "eight")]
        #[cfg_attr(test, schemars(range(min = 1)))]
        value: u32,
    },
    /// Each number from `min` to `max` with the same probability, both ends included.
    Uniform {
        /// The smallest.
        #[serde(default = "six")]
        #[cfg_attr(test, schemars(range(min = 1)))]
        min: u32,
        /// The largest.
        #[serde(default = "twelve")]
        #[cfg_attr(test, schemars(range(min = 1)))]
        max: u32,
    },
    /// The given numbers in order, request by request through the sessions. Where sessions have no
    /// fixed number of requests, request j of session i is at step i + j.
    FixedStair {
        /// The numbers.
        #[serde(default = "stairs")]
        #[cfg_attr(test, schemars(length(min = 1), inner(range(min = 1))))]
        values: Vec<u32>,
        /// The number of requests that get each number before the next one.
        #[serde(default = "once")]
        #[cfg_attr(test, schemars(range(min = 1)))]
        repeat_each: u32,
        /// True if the first number follows the last; otherwise the last one stays.
        #[serde(default = "yes")]
        wrap: bool,
    },
    /// The number of rank k, counted from 1, has a probability in proportion to 1 / k^theta.
    Zipf {
        /// The exponent, 0 to 20. Default: 0.6.
        #[serde(default)]
        #[cfg_attr(test, schemars(with = "f64", range(min = 0.0, max = 20.0)))]
        theta: Option<f64>,
        /// Another name of `theta`.
        #[serde(default)]
        #[cfg_attr(test, schemars(with = "f64", range(min = 0.0, max = 20.0)))]
        alpha: Option<f64>,
        /// True if the ranks are scattered over the numbers (by the seed of the run); otherwise the
        /// smallest number has rank 1.
        #[serde(default)]
        scramble: bool,
        /// The smallest.
        #[serde(default = "six")]
        #[cfg_attr(test, schemars(range(min = 1)))]
        min: u32,
        /// The largest.
        #[serde(default = "twelve")]
        #[cfg_attr(test, schemars(range(min = 1)))]
        max: u32,
    },
    /// The inverse Gaussian (Wald) distribution, rounded to the nearest integer and at least 1.
    /// Its variance is mean³ / shape.
    InverseGaussian {
        /// The mean.
        #[serde(default = "five_hundred")]
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        mean: f64,
        /// The shape.
        #[serde(default = "three_hundred")]
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        shape: f64,
    },
}

/// A distribution of times, in seconds.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(tag = "type"))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Interval {
    /// Always the same.
    Fixed {
        /// The time in seconds.
        #[serde(default = "one_second")]
        #[cfg_attr(test, schemars(range(min = 0.0)))]
        interval: f64,
    },
    /// Exponential times with the mean 1 / `arrival_rate`, not clipped.
    Poisson {
        /// Events per second.
        #[serde(default = "one_second")]
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        arrival_rate: f64,
    },
    /// Gamma times with the mean 1 / `arrival_rate`.
    Gamma {
        /// Events per second.
        #[serde(default = "one_second")]
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        arrival_rate: f64,
        /// The coefficient of variation: standard deviation / mean. 1 is the same as `poisson`.
        #[serde(default = "half")]
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        cv: f64,
    },
}

impl Default for Graph {
    fn default() -> Self {
        Graph::Linear {
            inherit_history: None,
            num_request_generator: six_to_twelve(),
            request_wait_generator: one_per_second(),
        }
    }
}

impl Default for TextOutput {
    fn default() -> Self {
        TextOutput {
            output_length_generator: six_to_twelve(),
        }
    }
}

fn default_channels() -> Vec<Channel> {
    vec![Channel::Text {
        body_length_generator: six_to_twelve(),
        shared_prefix_ratio: 0.0,
        shared_prefix_probability: 1.0,
    }]
}

fn six_to_twelve() -> Length {
    Length::Uniform { min: 6, max: 12 }
}

fn two_to_five() -> Length {
    Length::Uniform { min: 2, max: 5 }
}

fn one_to_three() -> Length {
    Length::Uniform { min: 1, max: 3 }
}

fn one_to_two() -> Length {
    Length::Uniform { min: 1, max: 2 }
}

fn one() -> Length {
    Length::Fixed { value: 1 }
}

fn one_of_them() -> Amount {
    Amount(1.into())
}

fn pixels() -> Amount {
    Amount(512.into())
}

fn a_sentence() -> Span {
    Span(2.5.into())
}

fn speech() -> u32 {
    16_000
}

fn one_per_second() -> Interval {
    Interval::Poisson { arrival_rate: 1.0 }
}

fn stairs() -> Vec<u32> {
    vec![8, 16, 32, 64]
}

fn once() -> u32 {
    1
}

fn six() -> u32 {
    6
}

fn eight() -> u32 {
    8
}

fn twelve() -> u32 {
    12
}

fn half() -> f64 {
    0.5
}

fn certain() -> f64 {
    1.0
}

fn one_second() -> f64 {
    1.0
}

fn five_hundred() -> f64 {
    500.0
}

fn three_hundred() -> f64 {
    300.0
}

fn yes() -> bool {
    true
}
