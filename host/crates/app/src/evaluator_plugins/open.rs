//! Opening of the plugins in a scenario's `evaluators` and on the command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use veeksha_lua::{LuaLimits, LuaScenario};
use veeksha_model::MetricDefinition;
use veeksha_ports::{MetricFactory, RequestCheckFactory, SloCheck, WorkloadInfo};
use veeksha_prompt::Tokenizer;
use veeksha_scenario::Evaluator;

use crate::evaluator_plugins::names::Names;
use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::workload::component_source;
use crate::workload::components::{self, OpenedComponent};
use crate::workload::grants::lua_grants;

/// Plugins that measure and check a run.
#[derive(Clone, Default)]
pub struct EvaluatorPlugins {
    /// Plugins with metrics of requests.
    pub(crate) metrics: Vec<Arc<dyn MetricFactory>>,
    /// Plugins that judge individual requests.
    pub(crate) request_checks: Vec<Arc<dyn RequestCheckFactory>>,
    /// Plugins that check the whole run.
    pub(crate) slo_checks: Vec<Arc<dyn SloCheck>>,
    names: Names,
}

impl EvaluatorPlugins {
    /// Returns the role and the description of each plugin.
    pub fn infos(&self) -> Vec<(&'static str, &WorkloadInfo)> {
        let metrics = self.metrics.iter().map(|metric| ("metric", metric.info()));
        let checks = self
            .request_checks
            .iter()
            .map(|check| ("request-check", check.info()));
        let verdicts = self.slo_checks.iter().map(|check| ("slo-check", check.info()));
        metrics.chain(checks).chain(verdicts).collect()
    }

    /// Returns the metrics that the plugins define. Opens each metric plugin once.
    pub fn definitions(&self) -> Result<Vec<MetricDefinition>, CommandFailure> {
        let mut definitions = Vec::new();
        for metric in &self.metrics {
            definitions.extend(metric.open()?.definitions);
        }
        Ok(definitions)
    }

    /// Adds the SLO checks of `others`, except those replaced by a plugin of the same name here.
    pub(crate) fn add_slo_checks_of(&mut self, others: EvaluatorPlugins) {
        let mut checks = others.slo_checks;
        checks.retain(|check| !self.names.contains(&check.info().name));
        self.slo_checks.extend(checks);
    }

    /// Returns true if there is a plugin of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns true if there is an SLO check of this name.
    pub(crate) fn has_slo_check(&self, name: &str) -> bool {
        self.slo_checks.iter().any(|check| check.info().name == name)
    }

    /// Returns true if any plugin needs the finished requests.
    pub(crate) fn need_requests(&self) -> bool {
        !(self.metrics.is_empty() && self.request_checks.is_empty())
    }

    /// Returns the names of the request checks: a good request passes all of them.
    pub(crate) fn request_check_names(&self) -> Vec<String> {
        let names = self.request_checks.iter().map(|check| check.info().name.clone());
        names.collect()
    }

    fn add_component(&mut self, opened: OpenedComponent, at: &str) -> Result<(), CommandFailure> {
        let OpenedComponent {
            plugin,
            config,
            grants,
            ..
        } = opened;
        let kinds = plugin.kinds();
        if kinds.metric {
            self.metrics.push(plugin.metric(config.clone(), grants.clone())?);
        }
        if kinds.request_check {
            self.request_checks
                .push(plugin.request_check(config.clone(), grants.clone())?);
        }
        if kinds.slo_check {
            self.slo_checks.push(plugin.slo_check(config, grants)?);
        }
        if kinds.metric || kinds.request_check || kinds.slo_check {
            return Ok(());
        }
        Err(CommandFailure::new(
            veeksha_exit::PLUGIN,
            format!("{at}: the component exports none of `metric`, `request-check` and `slo-check`"),
        ))
    }
}

/// Opens the plugins of the scenario's `evaluators`.
pub fn open_scenario(loaded: &Loaded, tokenizer: &Tokenizer) -> Result<EvaluatorPlugins, CommandFailure> {
    let mut evaluators = EvaluatorPlugins::default();
    for (index, evaluator) in loaded.scenario.evaluators.iter().enumerate() {
        let at = format!("evaluators[{index}]");
        match evaluator {
            Evaluator::Performance(_) => {}
            Evaluator::Wasm(component) => {
                let names = &mut evaluators.names;
                let name = |file: &str| names.reserve_numbered(file, &at);
                let opened = components::open_named(loaded, component, &at, tokenizer, name)?;
                evaluators.add_component(opened, &at)?;
            }
            Evaluator::Lua {
                name,
                index,
                measures,
                judges_requests,
                judges_run,
                ..
            } => {
                evaluators.names.reserve(name, &at)?;
                let lua = loaded.lua(&at)?;
                let path = format!("evaluators.{index}");
                let functions = Functions {
                    measures: *measures,
                    judges_requests: *judges_requests,
                    judges_run: *judges_run,
                };
                evaluators.add_lua(lua, name, &path, functions, loaded, tokenizer)?;
            }
        }
    }
    Ok(evaluators)
}

/// The functions that a Lua evaluator defines.
struct Functions {
    measures: bool,
    judges_requests: bool,
    judges_run: bool,
}

impl EvaluatorPlugins {
    fn add_lua(
        &mut self,
        lua: &LuaScenario,
        name: &str,
        path: &str,
        functions: Functions,
        loaded: &Loaded,
        tokenizer: &Tokenizer,
    ) -> Result<(), CommandFailure> {
        let grants = || lua_grants(loaded, tokenizer);
        if functions.measures {
            let metric = lua.metric(path, name, grants()).map_err(CommandFailure::usage)?;
            self.metrics.push(metric);
        }
        if functions.judges_requests {
            let check = lua
                .request_check(path, name, grants())
                .map_err(CommandFailure::usage)?;
            self.request_checks.push(check);
        }
        if functions.judges_run {
            let check = lua
                .slo_check(path, name, grants())
                .map_err(CommandFailure::usage)?;
            self.slo_checks.push(check);
        }
        Ok(())
    }
}

/// Opens the components and Lua files named on the command line. `config`, as JSON, is for the
/// last.
pub fn open_files(
    evaluators: &mut EvaluatorPlugins,
    loaded: &Loaded,
    paths: &[PathBuf],
    config: &str,
    tokenizer: &Tokenizer,
) -> Result<(), CommandFailure> {
    for (index, path) in paths.iter().enumerate() {
        let is_last = index + 1 == paths.len();
        open_file(
            evaluators,
            loaded,
            path,
            if is_last { config } else { "{}" },
            tokenizer,
        )?;
    }
    Ok(())
}

fn open_file(
    evaluators: &mut EvaluatorPlugins,
    loaded: &Loaded,
    path: &Path,
    config: &str,
    tokenizer: &Tokenizer,
) -> Result<(), CommandFailure> {
    let at = format!("--plugin {}", path.display());
    let is_lua = path
        .extension()
        .is_some_and(|extension| extension == "lua" || extension == "luau");
    if is_lua {
        let lua = LuaScenario::load(path, LuaLimits::default()).map_err(CommandFailure::usage)?;
        let opened = lua
            .evaluator("", None, lua_grants(loaded, tokenizer))
            .map_err(CommandFailure::usage)?;
        evaluators.names.reserve(&opened.name, &at)?;
        evaluators.metrics.extend(opened.metric);
        evaluators.request_checks.extend(opened.request_check);
        evaluators.slo_checks.extend(opened.slo_check);
        return Ok(());
    }
    // Paths on the command line are relative to the working directory, not to the run folder.
    let path = std::path::absolute(path).map_err(|error| CommandFailure::usage(format!("{at}: {error}")))?;
    let (name, bytes, _) = component_source::file(Path::new(""), &path.to_string_lossy(), "--plugin")?;
    evaluators.names.reserve(&name, &at)?;
    let plugin = components::load(loaded, &name, &bytes)?;
    components::check_config(&plugin, config, "--plugin-config")?;
    let opened = OpenedComponent {
        grants: components::metered_grants(loaded, &name, tokenizer),
        name,
        plugin,
        config: config.to_owned(),
    };
    evaluators.add_component(opened, &at)
}
