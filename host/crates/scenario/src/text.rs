//! The resolved scenario as YAML, without secrets.

use std::collections::BTreeMap;

use saphyr::{Mapping, Scalar, Yaml, YamlEmitter};
use serde_json::{Map, Value as Json, json};
use veeksha_endpoint::HeaderTemplate;
use veeksha_model::{REDACTED, is_safe_header, redact_address};

use crate::plan::named_clients::SHARED_KEYS;
use crate::plan::{ArrivalPlugin, Client, ComponentUse, Evaluator, Flavor, Generator, Scenario, Traffic};
use crate::secret_keys::without_secrets;
use crate::tree::function_text;

impl Scenario {
    /// Returns the scenario as a YAML file with every default filled in. Secrets are replaced by
    /// `***`, a Lua function by a note of its place. Reading the file again gives this scenario
    /// except for secrets and functions.
    pub fn to_yaml(&self) -> String {
        let json = |value: serde_json::Result<Json>| value.unwrap_or(Json::Null);
        let root = [
            (
                "output_dir",
                self.output_dir.to_string_lossy().into_owned().into(),
            ),
            ("seed", self.seed.into()),
            (
                "session_generator",
                without_secrets(&generator(&self.session_generator)),
            ),
            ("traffic_scheduler", traffic(&self.traffic_scheduler)),
            ("client", client(&self.client)),
            ("evaluators", self.evaluators.iter().map(evaluator).collect()),
            ("runtime", json(serde_json::to_value(&self.runtime))),
            ("trace_recorder", json(serde_json::to_value(&self.trace_recorder))),
            ("certificate", json(serde_json::to_value(&self.certificate))),
        ];
        let optional = [
            ("tools", json(serde_json::to_value(&self.tools))),
            (
                "clients",
                self.clients
                    .iter()
                    .map(named_client)
                    .collect::<Map<_, _>>()
                    .into(),
            ),
        ];
        let is_given = |value: &Json| value.as_object().is_some_and(|entries| !entries.is_empty());
        let optional = optional.iter().filter(|(_, value)| is_given(value));
        let mut mapping = Mapping::new();
        let description = [("name", &self.name), ("description", &self.description)];
        for (key, value) in description {
            if let Some(value) = value {
                mapping.insert(text(key), text(value));
            }
        }
        if !self.tags.is_empty() {
            mapping.insert(text("tags"), yaml(&self.tags.as_slice().into()));
        }
        for (key, value) in root.iter().chain(optional) {
            mapping.insert(text(key), yaml(value));
        }
        let mut written = String::new();
        // Writing to a string fails only for values that the emitter cannot express, which `yaml`
        // does not produce.
        if YamlEmitter::new(&mut written)
            .dump(&Yaml::Mapping(mapping))
            .is_err()
        {
            written.clear();
        }
        let mut written = written.strip_prefix("---\n").unwrap_or(&written).to_owned();
        written.push('\n');
        written
    }
}

fn client(client: &Client) -> Json {
    let mut value = serde_json::to_value(client).unwrap_or(Json::Null);
    if let Some(address) = &client.api_base {
        value["api_base"] = redact_address(address).into();
    }
    value["address_append_value"] = redact_address(&client.address_append_value).into();
    value["headers"] = headers(&client.headers);
    if let Some(proxy) = &client.proxy {
        value["proxy"] = redact_address(proxy).into();
    }
    for (index, target) in client.targets.iter().enumerate() {
        let shown = &mut value["targets"][index];
        shown["api_base"] = redact_address(&target.api_base).into();
        shown["headers"] = headers(&target.headers);
        if let Some(proxy) = &target.proxy {
            shown["proxy"] = redact_address(proxy).into();
        }
    }
    if let Some(codec) = &client.codec {
        value["codec"]["config"] = without_secrets(&Json::Object(codec.config.clone()));
    }
    if let Some(template) = &client.template {
        value["template"]["request"] = without_secrets(&template.request);
    }
    value["additional_sampling_params"] =
        without_secrets(&Json::Object(client.additional_sampling_params.clone()));
    value
}

/// Returns an entry of `clients` with all the keys that it may have.
fn named_client((name, settings): (&String, &Client)) -> (String, Json) {
    let mut value = client(settings);
    if let Some(keys) = value.as_object_mut() {
        keys.retain(|key, _| !SHARED_KEYS.contains(&key.as_str()));
    }
    (name.clone(), value)
}

fn headers(headers: &BTreeMap<String, String>) -> Json {
    let shown = headers.iter().map(|(name, value)| {
        let shown = if is_safe_header(name) || has_only_placeholders(value) {
            value.as_str()
        } else {
            REDACTED
        };
        (name.clone(), Json::from(shown))
    });
    Json::Object(shown.collect::<Map<String, Json>>())
}

/// Returns true if a header's value consists of placeholders and punctuation, so that it contains
/// no secret.
fn has_only_placeholders(value: &str) -> bool {
    let mut literals = HeaderTemplate::literals(value);
    value.contains("{{") && !literals.any(|text| text.contains(|c: char| c.is_alphanumeric()))
}

fn traffic(traffic: &Traffic) -> Json {
    let mut value = serde_json::to_value(traffic).unwrap_or(Json::Null);
    if let Some(ArrivalPlugin::Wasm(component)) = traffic.arrival_plugin() {
        value["process"]["config"] = without_secrets(&Json::Object(component.config.clone()));
    }
    value
}

fn generator(generator: &Generator) -> Json {
    match generator {
        Generator::Shipped { name, config } => {
            let mut value = config.clone();
            value["type"] = name.clone().into();
            value
        }
        Generator::Wasm {
            component,
            recorded_run,
        } => {
            let mut value = component_use(component);
            value["recorded_run"] = json!(recorded_run);
            value
        }
        Generator::Replay { run, files } => json!({"type": "replay", "run": run, "files": files}),
        Generator::Trace(trace) => {
            let mut value = serde_json::to_value(&trace.keys).unwrap_or(Json::Null);
            value["type"] = "trace".into();
            value["flavor"] = flavor(&trace.flavor);
            value
        }
        Generator::Lua {
            kind,
            length,
            guarantees,
            files,
            recorded_run,
            place,
        } => json!({
            "type": "lua",
            "length": length,
            "guarantees": guarantees,
            "files": files,
            "recorded_run": recorded_run,
            kind.key(): function_text(place.as_ref()),
        }),
    }
}

fn component_use(component: &ComponentUse) -> Json {
    let mut value = serde_json::to_value(component).unwrap_or(Json::Null);
    value["type"] = "wasm".into();
    value
}

fn flavor(flavor: &Flavor) -> Json {
    match flavor {
        Flavor::Shipped { name, config } => {
            let mut value = config.clone();
            value["type"] = name.clone().into();
            value
        }
        Flavor::Wasm(component) => component_use(component),
        Flavor::Lua {
            layout,
            has_warmup,
            place,
        } => {
            let mut value = serde_json::to_value(layout).unwrap_or(Json::Null);
            value["type"] = "lua".into();
            value["session"] = function_text(place.as_ref()).into();
            if *has_warmup {
                value["warmup"] = "function".into();
            }
            value
        }
    }
}

fn evaluator(evaluator: &Evaluator) -> Json {
    match evaluator {
        Evaluator::Performance(performance) => {
            let mut value = serde_json::to_value(performance).unwrap_or(Json::Null);
            value["type"] = "performance".into();
            value
        }
        Evaluator::Wasm(component) => {
            let mut value = component_use(component);
            value["config"] = without_secrets(&value["config"]);
            value
        }
        Evaluator::Lua {
            name,
            measures,
            judges_requests,
            judges_run,
            place,
            ..
        } => {
            let mut value = json!({"type": "lua", "name": name});
            for (key, given) in [
                ("metrics", measures),
                ("good", judges_requests),
                ("check", judges_run),
            ] {
                if *given {
                    value[key] = function_text(place.as_ref()).into();
                }
            }
            value
        }
    }
}

fn text(text: &str) -> Yaml<'static> {
    Yaml::Value(Scalar::String(text.to_owned().into()))
}

/// `type` comes first, followed by the other keys in alphabetical order.
fn yaml(value: &Json) -> Yaml<'static> {
    match value {
        Json::Null => Yaml::Value(Scalar::Null),
        Json::Bool(value) => Yaml::Value(Scalar::Boolean(*value)),
        Json::Number(number) => Yaml::Value(match number.as_i64() {
            Some(value) => Scalar::Integer(value),
            None => Scalar::FloatingPoint(number.as_f64().unwrap_or_default().into()),
        }),
        Json::String(value) => text(value),
        Json::Array(items) => Yaml::Sequence(items.iter().map(yaml).collect()),
        Json::Object(entries) => {
            let mut mapping = Mapping::new();
            if let Some(tag) = entries.get("type") {
                mapping.insert(text("type"), yaml(tag));
            }
            for (key, value) in entries.iter().filter(|(key, _)| *key != "type") {
                mapping.insert(text(key), yaml(value));
            }
            Yaml::Mapping(mapping)
        }
    }
}
