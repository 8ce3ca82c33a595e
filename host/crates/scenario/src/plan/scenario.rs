//! A checked and complete scenario.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::plan::certificate::Certificate;
use crate::plan::client::Client;
use crate::plan::component_use::ComponentUse;
use crate::plan::evaluator::Evaluator;
use crate::plan::generator::Generator;
use crate::plan::runtime::{Runtime, TraceRecorder};
use crate::plan::tool::ToolConfig;
use crate::plan::trace::Flavor;
use crate::plan::traffic::{ArrivalPlugin, ArrivalProcess, Traffic};

/// A checked and complete scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The scenario's name, which reports show and the run folder's name ends with.
    pub name: Option<String>,
    /// A description for readers of the reports.
    pub description: Option<String>,
    /// Tags for grouping and searching runs.
    pub tags: Vec<String>,
    /// The folder that runs are written to, each in a subfolder.
    pub output_dir: PathBuf,
    /// The seed of all randomness: lengths, texts, arrivals.
    pub seed: u64,
    /// The source of sessions.
    pub session_generator: Generator,
    /// The start times of sessions.
    pub traffic_scheduler: Traffic,
    /// The classes of tools by name.
    pub tools: BTreeMap<String, ToolConfig>,
    /// Metrics, checks and objectives.
    pub evaluators: Vec<Evaluator>,
    /// The server and the client's connection to it. An `endpoint` of the scenario is merged into
    /// it.
    pub client: Client,
    /// The other clients by name, which requests choose; each with all its keys.
    pub clients: BTreeMap<String, Client>,
    /// Duration, number of sessions and threads of the run.
    pub runtime: Runtime,
    /// Contents of the trace.
    pub trace_recorder: TraceRecorder,
    /// Thresholds at which the run is not trusted.
    pub certificate: Certificate,
    /// Remarks for the user that are not errors, such as secrets that a resolved configuration no
    /// longer contains.
    pub notes: Vec<String>,
}

impl Scenario {
    /// Returns the components that are not shipped, each with its key.
    pub fn components(&self) -> Vec<(String, &ComponentUse)> {
        let mut found = Vec::new();
        match &self.session_generator {
            Generator::Wasm { component, .. } => found.push(("session_generator".to_owned(), component)),
            Generator::Trace(trace) => {
                if let Flavor::Wasm(component) = &trace.flavor {
                    found.push(("session_generator.flavor".to_owned(), component));
                }
            }
            Generator::Shipped { .. } | Generator::Replay { .. } | Generator::Lua { .. } => {}
        }
        if let Some(ArrivalPlugin::Wasm(component)) = self.traffic_scheduler.arrival_plugin() {
            found.push(("traffic_scheduler.process".to_owned(), component));
        }
        for (index, evaluator) in self.evaluators.iter().enumerate() {
            if let Evaluator::Wasm(component) = evaluator {
                found.push((format!("evaluators[{index}]"), component));
            }
        }
        for named in self.all_clients() {
            if let Some(codec) = &named.client.codec {
                found.push((format!("{}.codec", named.path), codec));
            }
        }
        found
    }

    /// Returns the same components to be changed.
    pub fn components_mut(&mut self) -> Vec<&mut ComponentUse> {
        let mut found = Vec::new();
        match &mut self.session_generator {
            Generator::Wasm { component, .. } => found.push(component),
            Generator::Trace(trace) => {
                if let Flavor::Wasm(component) = &mut trace.flavor {
                    found.push(component);
                }
            }
            Generator::Shipped { .. } | Generator::Replay { .. } | Generator::Lua { .. } => {}
        }
        if let Traffic::ArrivalProcess(ArrivalProcess {
            process: ArrivalPlugin::Wasm(component),
            ..
        }) = &mut self.traffic_scheduler
        {
            found.push(component);
        }
        for evaluator in &mut self.evaluators {
            if let Evaluator::Wasm(component) = evaluator {
                found.push(component);
            }
        }
        let clients = std::iter::once(&mut self.client).chain(self.clients.values_mut());
        found.extend(clients.filter_map(|client| client.codec.as_mut()));
        found
    }
}
