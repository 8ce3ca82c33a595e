//! A plugin that knows the API of an endpoint: what a request looks like, and what the events of an answer mean.

use veeksha_model::{AnswerPart, Framing};

use crate::PluginFailure;

/// What the host needs to know to send requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointShape {
    /// Appended to the target's address, for example `v2/generate`.
    pub path: String,
    /// Headers of every request besides the host's own.
    pub headers: Vec<(String, String)>,
    /// The request's body: JSON text in which some strings stand for parts of the request (see `veeksha-endpoint`'s template).
    pub request: String,
    /// How answers are cut.
    pub framing: Framing,
}

/// Understands answers. Called on completion threads, several at a time.
pub trait Codec: Send + Sync {
    /// What each event of an answer says, in order: one list for each event. The events are those of one answer, and may be a
    /// part of it only; what an event says must not depend on the events before it.
    ///
    /// # Errors
    /// If the plugin fails, or gives another number of lists than events.
    fn decode(&self, events: &[&[u8]]) -> Result<Vec<Vec<AnswerPart>>, PluginFailure>;
}
