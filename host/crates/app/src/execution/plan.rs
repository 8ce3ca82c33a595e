//! Plans: scenarios that are ready to be run.

use std::path::Path;

use veeksha_decisions::Redact;
use veeksha_pipeline::{SimulatedTarget, SimulatedTargets};
use veeksha_scenario::{Client, NamedClient, Scenario};

use crate::execution::client_cache::ClientCache;
use crate::execution::drive::{check_cores, provide_open_files};
use crate::execution::mode::{Mode, ShardSpec};
use crate::execution::self_test;
use crate::execution::wiring::{Wired, wire};
use crate::failure::CommandFailure;
use crate::scenario::absolute_paths::{used_lock, with_absolute_paths};
use crate::scenario::scenario_copy::{PluginDigest, ScenarioCopy};
use crate::scenario::source::Loaded;
use crate::sim_profile;
use crate::target::{self, ClientTarget};
use crate::workload::component_source;

/// A run against servers, ready to start: its plugins are loaded, and its targets have answered.
pub struct RunPlan {
    /// The resolved scenario.
    pub(crate) scenario: Scenario,
    /// The copy of the scenario in the run folder.
    pub(crate) copy: ScenarioCopy,
    /// `config.yml` of the run.
    pub(crate) config: String,
    pub(crate) wired: Wired,
    /// The targets of the clients, in the order of [`Scenario::all_clients`].
    pub(crate) targets: Vec<ClientTarget>,
    pub(crate) self_test: bool,
}

impl RunPlan {
    /// Returns the resolved scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns the remarks for the user before the run.
    pub fn notes(&self) -> &[String] {
        &self.wired.notes
    }
}

/// Plans a run of `shard` of a scenario. `named` is the file of the scenario, for messages. The
/// self-test is planned if the scenario or `self_test` requests it.
///
/// # Errors
/// If the scenario, one of its plugins or the target prevents the run.
pub fn plan(
    mut loaded: Loaded,
    named: &Path,
    shard: ShardSpec,
    self_test: bool,
) -> Result<RunPlan, CommandFailure> {
    check_cores(&loaded.scenario.runtime)?;
    provide_open_files(&loaded.scenario)?;
    let mut targets = target::settle(&mut loaded, named)?;
    let mut wired = wire(&mut loaded, Mode::Run(shard))?;
    target::complete(&mut targets, &loaded, &wired)?;
    wired.caches = ClientCache::of_run(&loaded)?;
    let self_test = self_test || loaded.scenario.certificate.self_test;
    if self_test {
        self_test::check()?;
    }
    let lock = component_source::read_lock(loaded.folder())?;
    let copy = scenario_copy(&loaded, &mut wired).with_lock(used_lock(
        &loaded.scenario,
        loaded.folder(),
        lock.as_ref(),
    ));
    Ok(RunPlan {
        copy,
        config: with_absolute_paths(&loaded.scenario, loaded.folder(), lock.as_ref()).to_yaml(),
        scenario: loaded.scenario,
        wired,
        targets,
        self_test,
    })
}

/// Returns the copy of a scenario for its run folder, and adds notes for plugins that differ from
/// those of the repeated run.
fn scenario_copy(loaded: &Loaded, wired: &mut Wired) -> ScenarioCopy {
    let plugins = PluginDigest::of(&wired.plugins());
    let changes = PluginDigest::changes(loaded.recorded_plugins(), &plugins);
    wired.notes.extend(changes);
    loaded.copy(&plugins)
}

/// A run in virtual time, ready to start.
pub struct SimulationPlan {
    /// The resolved scenario.
    pub(crate) scenario: Scenario,
    /// The copy of the scenario in the run folder.
    pub(crate) copy: ScenarioCopy,
    /// `config.yml` of the run.
    pub(crate) config: String,
    pub(crate) wired: Wired,
    pub(crate) targets: SimulatedTargets,
}

impl SimulationPlan {
    /// Returns the remarks for the user before the run.
    pub fn notes(&self) -> &[String] {
        &self.wired.notes
    }
}

/// Plans a run of `shard` of a scenario in virtual time. The engine of `client` is the profile
/// `profile`; without one, that of a `sim://` target, else `default`. So is that of every other
/// client, except that `profile` does not replace a `sim://` target that differs from the one of
/// `client`.
///
/// # Errors
/// If the scenario, one of its plugins or the profile prevents the run.
pub fn plan_simulation(
    mut loaded: Loaded,
    shard: ShardSpec,
    profile: Option<&str>,
) -> Result<SimulationPlan, CommandFailure> {
    let mut wired = wire(&mut loaded, Mode::Simulate(shard))?;
    let scenario = &loaded.scenario;
    let default = simulated_target(&loaded, &scenario.client, profile)?;
    let other = |client: &Client| {
        let own = client.sim_profile();
        let is_own = own.is_some() && own != scenario.client.sim_profile();
        simulated_target(&loaded, client, profile.filter(|_| !is_own))
    };
    let named = scenario.all_clients().skip(1);
    let targets = SimulatedTargets {
        default,
        others: named
            .map(|NamedClient { client, .. }| other(client))
            .collect::<Result<_, _>>()?,
    };
    wired.caches = ClientCache::of_simulation(scenario, &targets);
    let lock = component_source::read_lock(loaded.folder())?;
    let copy = scenario_copy(&loaded, &mut wired).with_lock(used_lock(
        &loaded.scenario,
        loaded.folder(),
        lock.as_ref(),
    ));
    Ok(SimulationPlan {
        copy,
        config: with_absolute_paths(&loaded.scenario, loaded.folder(), lock.as_ref()).to_yaml(),
        scenario: loaded.scenario,
        wired,
        targets,
    })
}

/// Returns the simulated server of a client: that of a profile of the command line, or its own.
fn simulated_target(
    loaded: &Loaded,
    client: &Client,
    profile: Option<&str>,
) -> Result<SimulatedTarget, CommandFailure> {
    Ok(SimulatedTarget {
        // A path on the command line is relative to the working directory, one in the scenario to
        // the scenario's folder.
        profile: match profile {
            Some(path) => sim_profile::profile(path, Path::new(""))?,
            None => sim_profile::profile(client.sim_profile().unwrap_or("default"), loaded.folder())?,
        },
        request_timeout: u64::try_from(client.deadline().as_nanos()).unwrap_or(u64::MAX),
        tool: veeksha_simulator::required_tool(&client.additional_sampling_params.clone().into()),
    })
}

/// A scenario that was checked without sending anything.
pub struct CheckedScenario {
    /// The resolved scenario.
    pub scenario: Scenario,
    /// Its plugins, tokenizer and limits.
    pub wired: Wired,
}

impl CheckedScenario {
    /// Returns the redaction of texts that are printed or written.
    pub fn redaction(&self) -> &dyn Redact {
        &*self.wired.redaction
    }
}

/// Loads the plugins of a scenario and validates its target, without sending anything.
///
/// # Errors
/// Everything that would prevent a run and can be found without asking the target.
pub fn check(mut loaded: Loaded) -> Result<CheckedScenario, CommandFailure> {
    let wired = wire(&mut loaded, Mode::Check)?;
    target::check(&loaded, &wired)?;
    Ok(CheckedScenario {
        scenario: loaded.scenario,
        wired,
    })
}
