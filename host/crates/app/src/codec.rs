//! Endpoints that are implemented by a component: their requests, and the plugin that decodes
//! answers.

use std::sync::Arc;

use veeksha_endpoint::{EndpointKind, EndpointTemplate, Pointers, TemplateSpec};
use veeksha_model::Framing;
use veeksha_ports::Codec;
use veeksha_prompt::Tokenizer;
use veeksha_scenario::NamedClient;

use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::workload::components::{self, OpenedComponent};

/// An endpoint described by a component.
pub(crate) struct OpenedCodec {
    /// Path that is appended to the servers' addresses.
    pub(crate) path: String,
    /// Headers of every request.
    pub(crate) headers: Vec<(String, String)>,
    /// Format of the requests.
    pub(crate) endpoint: EndpointKind,
    /// Decoder of the answers, and their framing.
    pub(crate) codec: (Arc<dyn Codec>, Framing),
}

/// Loads the component that implements the endpoint of a client, if there is one, and queries its
/// endpoint.
pub(crate) fn open(
    loaded: &Loaded,
    named: &NamedClient<'_>,
    tokenizer: &Tokenizer,
) -> Result<Option<OpenedCodec>, CommandFailure> {
    let Some(component) = &named.client.codec else {
        return Ok(None);
    };
    let at = format!("{}.codec", named.path);
    let OpenedComponent {
        name,
        plugin,
        config,
        grants,
    } = components::open(loaded, component, &at, tokenizer)?;
    let endpoint = plugin.codec(config, grants)?;
    let (shape, codec) = (endpoint.shape, endpoint.codec);
    let refuse = |reason: String| {
        CommandFailure::new(
            veeksha_exit::PLUGIN,
            format!("the plugin {name} describes a request that cannot be sent: {reason}"),
        )
    };
    let request = serde_json::from_str(&shape.request)
        .map_err(|error| refuse(format!("its body is not JSON: {error}")))?;
    let spec = TemplateSpec {
        path: shape.path.clone(),
        headers: shape.headers.clone(),
        request,
        framing: shape.framing,
        // The plugin decodes the answers.
        answer: Pointers::default(),
    };
    let template = EndpointTemplate::of_requests(spec).map_err(|error| refuse(error.to_string()))?;
    Ok(Some(OpenedCodec {
        path: shape.path,
        headers: shape.headers,
        endpoint: EndpointKind::Template(Arc::new(template)),
        codec: (codec, shape.framing),
    }))
}
