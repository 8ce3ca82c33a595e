//! The traits that the pipeline depends on, without implementations.
//!
//! `veeksha-wasm` and `veeksha-lua` provide [`Workload`]s, `veeksha-transport` provides a
//! [`Transport`], and `veeksha-app` connects them. The pipeline does not depend on them.
#![forbid(unsafe_code)]

mod arrivals;
mod codec;
mod flavor;
mod group_names;
mod guarantees;
mod layout;
mod measure;
mod plugin_error;
mod plugin_failure;
mod plugin_usage;
mod purity;
mod sandbox;
mod tool_results;
mod transport;
mod workload;

pub use arrivals::{ArrivalFactory, ArrivalOrder, ArrivalSource, check_arrivals};
pub use codec::{Codec, EndpointShape};
pub use flavor::{
    ArrivalColumn, CellType, FlavorFactory, FlavorInstance, Grouping, Layout, MostFrequent, TimestampUnit,
    TraceColumn, TraceFacts, TraceGroup, TraceRow,
};
pub use group_names::name_groups;
pub use guarantees::Guarantees;
pub use layout::{LayoutError, MAX_COLUMNS, check_layout};
pub use measure::{
    MAX_COUNT_BYTES, MAX_LABEL_BYTES, MAX_METRICS, MetricCollector, MetricFactory, MetricStats, OpenMetric,
    PluginSample, RequestCheck, RequestCheckFactory, RunResults, SloCheck, SloVerdict, WindowStats, judge,
};
pub use plugin_error::PluginErrorCode;
pub use plugin_failure::{PluginFailure, PluginFailureKind, PluginFrame};
pub use plugin_usage::{LogAdmission, PluginAllowance, PluginMeter, PluginUsage, PluginUsageReport};
pub use purity::{STEP_CHECK, StepCheck, check_purity};
pub use sandbox::SandboxedAccess;
pub use tool_results::{ToolRunKeys, resolve_tool_results, tool_result_text};
pub use transport::{ConnectionUse, Job, PendingOutcome, RequestOutcome, Sinks, Timings, Transport};
pub use workload::{
    AgentSource, AgentStep, SessionSource, ToolRunEnd, Workload, WorkloadFactory, WorkloadInfo,
};
