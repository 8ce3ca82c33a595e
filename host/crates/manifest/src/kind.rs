//! The kinds of plugins.

/// A kind of plugin: an interface of the contract that a component exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PluginKind {
    /// Plans sessions.
    SessionGenerator,
    /// Decides sessions step by step.
    AgentGenerator,
    /// Decides when sessions arrive.
    ArrivalProcess,
    /// Makes sessions of the rows of a trace.
    TraceFlavor,
    /// Adds the API of an endpoint.
    EndpointCodec,
    /// Measures metrics.
    Metric,
    /// Judges requests.
    RequestCheck,
    /// Judges a run.
    SloCheck,
}

impl PluginKind {
    /// All kinds.
    pub const ALL: [PluginKind; 8] = [
        PluginKind::SessionGenerator,
        PluginKind::AgentGenerator,
        PluginKind::ArrivalProcess,
        PluginKind::TraceFlavor,
        PluginKind::EndpointCodec,
        PluginKind::Metric,
        PluginKind::RequestCheck,
        PluginKind::SloCheck,
    ];

    /// The name of the interface: `agent-generator`.
    pub const fn name(self) -> &'static str {
        match self {
            PluginKind::SessionGenerator => "session-generator",
            PluginKind::AgentGenerator => "agent-generator",
            PluginKind::ArrivalProcess => "arrival-process",
            PluginKind::TraceFlavor => "trace-flavor",
            PluginKind::EndpointCodec => "endpoint-codec",
            PluginKind::Metric => "metric",
            PluginKind::RequestCheck => "request-check",
            PluginKind::SloCheck => "slo-check",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl std::fmt::Display for PluginKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}
