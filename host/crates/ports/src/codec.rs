//! A plugin that knows the API of an endpoint: what a request looks like, and what the events of an
//! answer mean.

use veeksha_model::{AnswerPart, Framing};

use crate::plugin_failure::PluginFailure;

/// A codec's description of the requests to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointShape {
    /// Appended to the target's address, for example `v2/generate`.
    pub path: String,
    /// Headers of every request besides the host's own.
    pub headers: Vec<(String, String)>,
    /// JSON text of the request body, in which some strings are placeholders for parts of the
    /// request (see `veeksha-endpoint`'s template).
    pub request: String,
    /// The rule by which answers are split into events.
    pub framing: Framing,
}

/// Understands answers. Called on completion threads, several at a time.
pub trait Codec: Send + Sync {
    /// Returns the parts of each event in order: one list per event. The events belong to one
    /// answer and may be only a section of it; the meaning of an event must not depend on earlier
    /// events.
    ///
    /// # Errors
    /// If the plugin fails, or gives another number of lists than events.
    fn decode(&self, events: &[&[u8]]) -> Result<Vec<Vec<AnswerPart>>, PluginFailure>;
}
