//! From a scenario's `evaluators`, or a file named on the command line, to opened plugins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use veeksha_lua::{LuaLimits, LuaScenario};
use veeksha_model::MetricDefinition;
use veeksha_ports::{MetricFactory, RequestCheckFactory, SloCheck, WorkloadInfo};
use veeksha_prompt::Tokenizer;
use veeksha_scenario::Evaluator;
use veeksha_wasm::Plugin;

use super::names::Names;
use crate::failure::Failure;
use crate::source::Loaded;
use crate::wire_up::lua_grants;
use crate::{plugins, shipped};

/// What measures and judges a run besides the host.
#[derive(Clone, Default)]
pub(crate) struct Judges {
    /// What measures metrics.
    pub(crate) metrics: Vec<Arc<dyn MetricFactory>>,
    /// What judges each request.
    pub(crate) request_checks: Vec<Arc<dyn RequestCheckFactory>>,
    /// What judges the run.
    pub(crate) slo_checks: Vec<Arc<dyn SloCheck>>,
    names: Names,
}

impl Judges {
    /// What is known of each plugin, and what it does.
    pub(crate) fn infos(&self) -> Vec<(&'static str, &WorkloadInfo)> {
        let metrics = self.metrics.iter().map(|metric| ("metric", metric.info()));
        let checks = self
            .request_checks
            .iter()
            .map(|check| ("request-check", check.info()));
        let verdicts = self.slo_checks.iter().map(|check| ("slo-check", check.info()));
        metrics.chain(checks).chain(verdicts).collect()
    }

    /// The metrics that plugins define: each is opened for it once.
    pub(crate) fn definitions(&self) -> Result<Vec<MetricDefinition>, Failure> {
        let mut definitions = Vec::new();
        for metric in &self.metrics {
            definitions.extend(metric.open()?.definitions);
        }
        Ok(definitions)
    }

    /// Takes over what judges the run from others, but for those of which there is one of the same name here: that one was asked for
    /// in its place.
    pub(crate) fn adopt_slo_checks(&mut self, others: Judges) {
        let mut checks = others.slo_checks;
        checks.retain(|check| !self.names.has(&check.info().name));
        self.slo_checks.extend(checks);
    }

    /// Whether one of this name was named on the command line.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.has(name)
    }

    /// Whether one of this name judges the run.
    pub(crate) fn judge_run_as(&self, name: &str) -> bool {
        self.slo_checks.iter().any(|check| check.info().name == name)
    }

    /// Whether any of them wants to see requests.
    pub(crate) fn observe_requests(&self) -> bool {
        !(self.metrics.is_empty() && self.request_checks.is_empty())
    }

    /// The plugins whose judgement a good request needs.
    pub(crate) fn of_requests(&self) -> Vec<String> {
        let names = self.request_checks.iter().map(|check| check.info().name.clone());
        names.collect()
    }

    fn add_component(
        &mut self,
        loaded: &Loaded,
        plugin: &Plugin,
        config: &str,
        files: &BTreeMap<String, std::path::PathBuf>,
        tokenizer: &Tokenizer,
        at: &str,
    ) -> Result<(), Failure> {
        let kinds = plugin.kinds();
        let grants = || plugins::grants(loaded, files, tokenizer);
        if kinds.metric {
            self.metrics.push(plugin.metric(config.to_owned(), grants())?);
        }
        if kinds.request_check {
            self.request_checks
                .push(plugin.request_check(config.to_owned(), grants())?);
        }
        if kinds.slo_check {
            self.slo_checks
                .push(plugin.slo_check(config.to_owned(), grants())?);
        }
        if kinds.metric || kinds.request_check || kinds.slo_check {
            return Ok(());
        }
        Err(Failure::new(
            crate::exit::PLUGIN,
            format!("{at}: the component exports none of `metric`, `request-check` and `slo-check`"),
        ))
    }
}

/// Opens what the scenario's `evaluators` name.
pub(crate) fn of_scenario(loaded: &Loaded, tokenizer: &Tokenizer) -> Result<Judges, Failure> {
    let mut judges = Judges::default();
    for (index, evaluator) in loaded.scenario.evaluators.iter().enumerate() {
        let at = format!("evaluators[{index}]");
        match evaluator {
            Evaluator::Performance(_) => {}
            Evaluator::Shipped { name, config } => {
                let Some(bytes) = shipped::evaluator(name) else {
                    return Err(Failure::internal(format!(
                        "the component {name} is not in this binary"
                    )));
                };
                let name = judges.names.number(name, &at);
                let plugin = plugins::load(loaded, &name, bytes)?;
                let nothing = BTreeMap::new();
                judges.add_component(loaded, &plugin, &config.to_string(), &nothing, tokenizer, &at)?;
            }
            Evaluator::Wasm { path, config, files } => {
                let (file, bytes) = plugins::file(loaded, path, &format!("{at}.path"))?;
                let name = judges.names.number(&file, &at);
                let plugin = plugins::load(loaded, &name, &bytes)?;
                let config = config.to_string();
                plugins::check_config(&plugin, &config, &format!("{at}.config"))?;
                judges.add_component(loaded, &plugin, &config, files, tokenizer, &at)?;
            }
            Evaluator::Lua {
                name,
                index,
                measures,
                judges_requests,
                judges_run,
                ..
            } => {
                judges.names.take(name, &at)?;
                let lua = loaded.lua(&at)?;
                let path = format!("evaluators.{index}");
                let functions = Functions {
                    measures: *measures,
                    judges_requests: *judges_requests,
                    judges_run: *judges_run,
                };
                judges.add_lua(lua, name, &path, functions, loaded, tokenizer)?;
            }
        }
    }
    Ok(judges)
}

/// Which functions a Lua evaluator has.
struct Functions {
    measures: bool,
    judges_requests: bool,
    judges_run: bool,
}

impl Judges {
    fn add_lua(
        &mut self,
        lua: &LuaScenario,
        name: &str,
        path: &str,
        functions: Functions,
        loaded: &Loaded,
        tokenizer: &Tokenizer,
    ) -> Result<(), Failure> {
        let grants = || lua_grants(loaded, tokenizer);
        if functions.measures {
            let metric = lua.metric(path, name, grants()).map_err(Failure::usage)?;
            self.metrics.push(metric);
        }
        if functions.judges_requests {
            let check = lua.request_check(path, name, grants()).map_err(Failure::usage)?;
            self.request_checks.push(check);
        }
        if functions.judges_run {
            let check = lua.slo_check(path, name, grants()).map_err(Failure::usage)?;
            self.slo_checks.push(check);
        }
        Ok(())
    }
}

/// Opens what was named on the command line: components or Lua files. `config`, as JSON, is for the last.
pub(crate) fn of_files(
    judges: &mut Judges,
    loaded: &Loaded,
    paths: &[PathBuf],
    config: &str,
    tokenizer: &Tokenizer,
) -> Result<(), Failure> {
    for (index, path) in paths.iter().enumerate() {
        let is_last = index + 1 == paths.len();
        of_file(
            judges,
            loaded,
            path,
            if is_last { config } else { "{}" },
            tokenizer,
        )?;
    }
    Ok(())
}

fn of_file(
    judges: &mut Judges,
    loaded: &Loaded,
    path: &Path,
    config: &str,
    tokenizer: &Tokenizer,
) -> Result<(), Failure> {
    let at = format!("--plugin {}", path.display());
    let is_lua = path
        .extension()
        .is_some_and(|extension| extension == "lua" || extension == "luau");
    if is_lua {
        let lua = LuaScenario::load(path, LuaLimits::default()).map_err(Failure::usage)?;
        let opened = lua
            .evaluator("", None, lua_grants(loaded, tokenizer))
            .map_err(Failure::usage)?;
        judges.names.take(&opened.name, &at)?;
        judges.metrics.extend(opened.metric);
        judges.request_checks.extend(opened.request_check);
        judges.slo_checks.extend(opened.slo_check);
        return Ok(());
    }
    // What is typed is relative to where it is typed, not to the run's folder.
    let path = std::path::absolute(path).map_err(|error| Failure::usage(format!("{at}: {error}")))?;
    let (name, bytes) = plugins::file(loaded, &path, "--plugin")?;
    judges.names.take(&name, &at)?;
    let plugin = plugins::load(loaded, &name, &bytes)?;
    plugins::check_config(&plugin, config, "--plugin-config")?;
    judges.add_component(loaded, &plugin, config, &BTreeMap::new(), tokenizer, &at)
}
