//! The latencies in a request's JSON line.

/// The latencies of one request in seconds, as `veeksha-metrics` defines them; `None` where they do
/// not exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// First generated chunk − dispatched.
    pub ttfc: Option<f64>,
    /// First generated chunk − intended.
    pub ttfc_from_intended: Option<f64>,
    /// (Last generated chunk − first) / (output tokens after the first chunk).
    pub tpot: Option<f64>,
    /// Last generated chunk − dispatched.
    pub end_to_end: Option<f64>,
    /// Last generated chunk − intended.
    pub end_to_end_from_intended: Option<f64>,
    /// End to end / output tokens.
    pub normalized_end_to_end: Option<f64>,
    /// Output tokens / end to end.
    pub output_throughput: Option<f64>,
    /// Gaps between successive generated chunks.
    pub tbc: Vec<f64>,
}
