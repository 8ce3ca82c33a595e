//! Workloads of scenarios: plugins, traces, prompts and tokenizers.

pub(crate) mod arrivals;
pub(crate) mod bundle_store;
pub(crate) mod client_changes;
pub(crate) mod component_source;
pub(crate) mod components;
pub(crate) mod flavors;
pub(crate) mod grants;
pub(crate) mod plugin_grants;
pub(crate) mod plugin_limits;
pub(crate) mod plugin_lock;
pub(crate) mod plugin_registry;
pub mod prompts;
pub(crate) mod recorded_decisions;
pub(crate) mod redacted;
pub mod shipped;
pub(crate) mod standalone;
pub mod tokenizers;
pub mod traces;
pub(crate) mod validated_flavor;
