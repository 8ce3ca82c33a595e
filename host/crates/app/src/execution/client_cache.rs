//! The prefix caches of the servers of each client.

use veeksha_model::DEFAULT_CLIENT;
use veeksha_pipeline::SimulatedTargets;
use veeksha_scenario::{Client, NamedClient, Scenario};
use veeksha_simulator::Profile;

use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::sim_profile;

/// The properties of the servers' caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheRules {
    /// Tokens that a cache keeps together.
    pub(crate) block: u32,
    pub(crate) keeps_answers: bool,
    pub(crate) omits_zero: bool,
}

impl CacheRules {
    /// Returns the properties that a scenario states.
    fn of_client(client: &Client) -> Self {
        let keys = client.prefix_cache;
        CacheRules {
            block: keys.block_tokens.unwrap_or(1),
            keeps_answers: keys.keeps_answers,
            omits_zero: keys.omits_zero,
        }
    }

    /// Returns the properties of the built-in simulator, which keeps the blocks of prompts only.
    pub(crate) fn of_simulator(profile: &Profile) -> Self {
        CacheRules {
            block: profile.block_size,
            keeps_answers: false,
            omits_zero: false,
        }
    }
}

/// The caches of a client's servers. Clients have separate servers, also where two of them have the
/// same address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientCache {
    /// The name of the client.
    pub(crate) name: String,
    /// Index of its first server among those of all clients.
    pub(crate) first_server: u16,
    /// True if it has one server, which then also had its warm-up.
    pub(crate) is_single: bool,
    pub(crate) rules: CacheRules,
}

impl ClientCache {
    /// Returns the caches of clients with this number of servers each, in their order.
    pub(crate) fn of_clients<'a>(clients: impl Iterator<Item = (&'a str, usize, CacheRules)>) -> Vec<Self> {
        let mut next = 0_u16;
        clients
            .map(|(name, servers, rules)| {
                let first_server = next;
                next = next.saturating_add(u16::try_from(servers).unwrap_or(u16::MAX));
                ClientCache {
                    name: name.to_owned(),
                    first_server,
                    is_single: servers == 1,
                    rules,
                }
            })
            .collect()
    }

    /// Returns the caches of the servers of a scenario as it describes them.
    pub(crate) fn of_scenario(scenario: &Scenario) -> Vec<Self> {
        let clients = scenario.all_clients();
        Self::of_clients(clients.map(|NamedClient { name, client, .. }| {
            (name, servers_of(client), CacheRules::of_client(client))
        }))
    }

    /// Returns the same with the properties of the built-in simulators.
    ///
    /// # Errors
    /// If a profile cannot be read.
    pub(crate) fn of_run(loaded: &Loaded) -> Result<Vec<Self>, CommandFailure> {
        let mut caches = Self::of_scenario(&loaded.scenario);
        for (cache, named) in caches.iter_mut().zip(loaded.scenario.all_clients()) {
            if let Some(name) = named.client.sim_profile() {
                cache.rules = CacheRules::of_simulator(&sim_profile::profile(name, loaded.folder())?);
            }
        }
        Ok(caches)
    }

    /// Returns the caches of a simulation, in which each client has one engine.
    pub(crate) fn of_simulation(scenario: &Scenario, targets: &SimulatedTargets) -> Vec<Self> {
        let engines = std::iter::once(&targets.default).chain(&targets.others);
        let clients = scenario.all_clients().zip(engines);
        Self::of_clients(
            clients.map(|(named, engine)| (named.name, 1, CacheRules::of_simulator(&engine.profile))),
        )
    }

    /// Returns the position of the client that a request names; the first one if it names none.
    pub(crate) fn position(caches: &[Self], client: Option<&str>) -> usize {
        let name = client.unwrap_or(DEFAULT_CLIENT);
        caches.iter().position(|cache| cache.name == name).unwrap_or(0)
    }
}

fn servers_of(client: &Client) -> usize {
    client.targets.len().max(1)
}
