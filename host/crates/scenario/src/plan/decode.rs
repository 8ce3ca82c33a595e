//! Decodes the checked tree into the typed plan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value as Json};
use veeksha_model::REDACTED;

use crate::check;
use crate::path;
use crate::plan::client::Client;
use crate::plan::evaluator::{Evaluator, Performance};
use crate::plan::generator::{Generator, LuaGuarantees, LuaKind};
use crate::plan::keys::{PERFORMANCE, ScenarioKeys};
use crate::plan::named_clients;
use crate::plan::rules;
use crate::plan::scenario::Scenario;
use crate::plan::trace::{Flavor, LuaLayout, Trace};
use crate::plan::traffic::Traffic;
use crate::problem::{Problem, Problems};
use crate::schema::{Shipped, json_schema};
use crate::tree::Node;

/// Checks a tree and decodes it.
pub(crate) fn check(root: &Node, shipped: &Shipped) -> Result<Scenario, Problems> {
    let schema = json_schema(shipped);
    let problems = check::check_value(&schema, root, "");
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    let resolved = check::resolve(&schema, root);
    let undecodable = |error: serde_json::Error| {
        let place = root.place.clone();
        Problems(vec![Problem {
            path: String::new(),
            place,
            message: error.to_string(),
            nearest: None,
        }])
    };
    let keys: ScenarioKeys = serde_json::from_value(resolved).map_err(undecodable)?;
    let evaluators = evaluators(root, &keys.evaluators).map_err(undecodable)?;
    let mut clients = named_clients::decode(&schema, root).map_err(Problems)?;
    let input = rule_input(&keys, &clients, &evaluators);
    let problems = rules::broken(root, &keys.session_generator, &input);
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    let session_generator = generator(root, keys.session_generator).map_err(undecodable)?;
    let mut runtime = keys.runtime;
    if ends_with_its_recording(&session_generator, &keys.traffic_scheduler) {
        let unset = |key: &str| root.get("runtime").and_then(|runtime| runtime.get(key)).is_none();
        if unset("max_sessions") {
            runtime.max_sessions = -1;
        }
        if unset("benchmark_timeout") {
            runtime.benchmark_timeout = 0.0;
        }
    }
    let mut notes = Vec::new();
    let mut client = keys.client;
    if let Some(endpoint) = keys.endpoint {
        client.api_base = Some(endpoint.api_base);
        client.model = endpoint.model.or(client.model);
        client.api_key = endpoint.api_key.or(client.api_key);
    }
    drop_redacted(&mut client, "client", &mut notes);
    for (name, client) in &mut clients {
        drop_redacted(client, &named_clients::path_of(name), &mut notes);
    }
    Ok(Scenario {
        name: keys.name,
        description: keys.description,
        tags: keys.tags,
        output_dir: PathBuf::from(keys.output_dir),
        seed: keys.seed.unsigned_abs(),
        session_generator,
        traffic_scheduler: keys.traffic_scheduler,
        tools: keys.tools,
        evaluators,
        client,
        clients,
        runtime,
        trace_recorder: keys.trace_recorder,
        certificate: keys.certificate,
        notes,
    })
}

/// Returns true if the sessions are those of a recording that is not repeated: a run, or a trace
/// that does not wrap.
fn ends_with_its_recording(generator: &Generator, traffic: &Traffic) -> bool {
    match generator {
        Generator::Trace(trace) => {
            let replays_arrivals = traffic.recorded_arrivals().is_some();
            !trace.keys.wrap_mode.unwrap_or(!replays_arrivals)
        }
        Generator::Replay { .. } => true,
        Generator::Shipped { .. } | Generator::Wasm { .. } | Generator::Lua { .. } => false,
    }
}

fn rule_input<'a>(
    keys: &'a ScenarioKeys,
    clients: &'a BTreeMap<String, Client>,
    evaluators: &'a [Evaluator],
) -> rules::RuleInput<'a> {
    rules::RuleInput {
        endpoint: keys.endpoint.as_ref().map(|endpoint| endpoint.api_base.as_str()),
        client: &keys.client,
        clients,
        runtime: &keys.runtime,
        evaluators,
        traffic: &keys.traffic_scheduler,
        certificate: &keys.certificate,
        tools: &keys.tools,
    }
}

/// A resolved configuration contains `***` in place of secrets, which must not be sent as a key.
fn drop_redacted(client: &mut Client, path: &str, notes: &mut Vec<String>) {
    if client
        .api_key
        .as_ref()
        .is_some_and(|key| key.expose() == REDACTED)
    {
        client.api_key = None;
        let other = if path == "client" {
            "the environment variable OPENAI_API_KEY is used"
        } else {
            "set it again to send one"
        };
        notes.push(format!(
            "{path}.api_key was removed from this configuration when it was written; {other}"
        ));
    }
    let at = |key: &str| format!("{path}.{key}");
    let address = client.api_base.as_deref();
    note_address(address.unwrap_or_default(), &at("api_base"), notes);
    note_address(&client.address_append_value, &at("address_append_value"), notes);
    drop_redacted_headers(&mut client.headers, &at("headers"), notes);
    drop_redacted_proxy(&mut client.proxy, &at("proxy"), notes);
    for (index, target) in client.targets.iter_mut().enumerate() {
        let at = format!("{path}.targets[{index}]");
        if target
            .api_key
            .as_ref()
            .is_some_and(|key| key.expose() == REDACTED)
        {
            target.api_key = None;
            notes.push(format!(
                "{at}.api_key was removed from this configuration when it was written; {path}.api_key or the environment \
                 variable OPENAI_API_KEY is used"
            ));
        }
        note_address(&target.api_base, &format!("{at}.api_base"), notes);
        drop_redacted_headers(&mut target.headers, &format!("{at}.headers"), notes);
        drop_redacted_proxy(&mut target.proxy, &format!("{at}.proxy"), notes);
    }
}

/// An address is useless without its secret parts, but the rest is needed to evaluate the run.
fn note_address(address: &str, at: &str, notes: &mut Vec<String>) {
    if address.contains(REDACTED) {
        notes.push(format!(
            "{at} has `{REDACTED}` where a secret was removed when this configuration was written; set it again to send requests"
        ));
    }
}

fn drop_redacted_headers(headers: &mut BTreeMap<String, String>, at: &str, notes: &mut Vec<String>) {
    headers.retain(|name, value| {
        let keep = value != REDACTED;
        if !keep {
            notes.push(format!(
                "{at}[{name}] was removed from this configuration when it was written; it is not sent"
            ));
        }
        keep
    });
}

/// A proxy without its password would refuse every request.
fn drop_redacted_proxy(proxy: &mut Option<String>, at: &str, notes: &mut Vec<String>) {
    let Some(address) = proxy else { return };
    let Some((scheme, rest)) = address.split_once("://") else {
        return;
    };
    if let Some((user, host)) = rest.rsplit_once('@')
        && user.ends_with(REDACTED)
    {
        *proxy = Some(format!("{scheme}://{host}"));
        notes.push(format!(
            "the password of {at} was removed from this configuration when it was written; the proxy is used without one"
        ));
    }
}

/// Decodes the resolved `evaluators`. The built-in metrics are always measured: if the list does
/// not name their evaluator, it is inserted first with its defaults.
fn evaluators(root: &Node, resolved: &[Json]) -> Result<Vec<Evaluator>, serde_json::Error> {
    let mut evaluators = resolved
        .iter()
        .enumerate()
        .map(|(index, resolved)| evaluator(root, index, resolved.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    if !evaluators
        .iter()
        .any(|evaluator| matches!(evaluator, Evaluator::Performance(_)))
    {
        evaluators.insert(0, Evaluator::Performance(Performance::default()));
    }
    Ok(evaluators)
}

fn evaluator(root: &Node, index: usize, resolved: Json) -> Result<Evaluator, serde_json::Error> {
    let mut map = match resolved {
        Json::Object(map) => map,
        _ => Map::new(),
    };
    let name = match map.remove("type") {
        Some(Json::String(name)) => name,
        _ => PERFORMANCE.to_owned(),
    };
    Ok(match name.as_str() {
        PERFORMANCE => Evaluator::Performance(serde_json::from_value(Json::Object(map))?),
        "wasm" => Evaluator::Wasm(serde_json::from_value(Json::Object(map))?),
        // The schema allows no other type.
        _ => {
            let at = path::item("evaluators", index);
            let named = map.get("name").and_then(Json::as_str);
            Evaluator::Lua {
                name: named.map_or_else(|| at.clone(), str::to_owned),
                index,
                measures: map.contains_key("metrics"),
                judges_requests: map.contains_key("good"),
                judges_run: map.contains_key("check"),
                place: root.nearest_to(&at).place.clone(),
            }
        }
    })
}

/// Splits a resolved choice into its `type` and its other keys. The schema has verified that they
/// exist.
fn tagged(resolved: Json) -> (String, Map<String, Json>) {
    let mut map = match resolved {
        Json::Object(map) => map,
        _ => Map::new(),
    };
    let name = match map.remove("type") {
        Some(Json::String(name)) => name,
        _ => String::new(),
    };
    (name, map)
}

/// Decodes the resolved `session_generator`.
fn generator(root: &Node, resolved: Json) -> Result<Generator, serde_json::Error> {
    let (name, mut map) = tagged(resolved);
    Ok(match name.as_str() {
        "wasm" => {
            let recorded_run = recorded_run(&map);
            Generator::Wasm {
                component: serde_json::from_value(Json::Object(map))?,
                recorded_run,
            }
        }
        "replay" => Generator::Replay {
            run: map.get("run").and_then(Json::as_str).unwrap_or_default().into(),
            files: files(&map),
        },
        "trace" => {
            let flavor = map.remove("flavor").unwrap_or_default();
            Generator::Trace(Box::new(Trace {
                keys: serde_json::from_value(Json::Object(map))?,
                flavor: self::flavor(root, flavor)?,
            }))
        }
        "lua" => {
            let kind = if map.contains_key("agent") {
                LuaKind::Agent
            } else {
                LuaKind::Sessions
            };
            Generator::Lua {
                kind,
                length: map.get("length").and_then(Json::as_u64),
                files: files(&map),
                recorded_run: recorded_run(&map),
                guarantees: match map.remove("guarantees") {
                    Some(guarantees) => serde_json::from_value(guarantees)?,
                    None => LuaGuarantees::default(),
                },
                place: root
                    .nearest_to(&format!("session_generator.{}", kind.key()))
                    .place
                    .clone(),
            }
        }
        _ => Generator::Shipped {
            name,
            config: Json::Object(map),
        },
    })
}

/// Decodes the resolved `session_generator.flavor`.
fn flavor(root: &Node, resolved: Json) -> Result<Flavor, serde_json::Error> {
    let (name, map) = tagged(resolved);
    Ok(match name.as_str() {
        "wasm" => Flavor::Wasm(serde_json::from_value(Json::Object(map))?),
        "lua" => Flavor::Lua {
            has_warmup: map.contains_key("warmup"),
            place: root.nearest_to("session_generator.flavor.session").place.clone(),
            layout: serde_json::from_value::<LuaLayout>(Json::Object(map))?,
        },
        _ => Flavor::Shipped {
            name,
            config: Json::Object(map),
        },
    })
}

fn recorded_run(map: &Map<String, Json>) -> Option<PathBuf> {
    map.get("recorded_run").and_then(Json::as_str).map(PathBuf::from)
}

fn files(map: &Map<String, Json>) -> BTreeMap<String, PathBuf> {
    map.get("files")
        .and_then(Json::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, path)| Some((name.clone(), PathBuf::from(path.as_str()?))))
        .collect()
}
