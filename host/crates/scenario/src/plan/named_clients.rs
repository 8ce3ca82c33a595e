//! The clients of a scenario that requests name: each is `client` with some keys replaced.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use veeksha_model::DEFAULT_CLIENT;

use crate::check::{check_value, resolve};
use crate::plan::client::{Client, ClientKind};
use crate::plan::scenario::Scenario;
use crate::problem::Problem;
use crate::secret_keys::is_secret_key;
use crate::tree::{Node, Value};
use crate::{path, word};

/// The most clients of a scenario: each has threads.
const MAX_CLIENTS: usize = 64;
/// The most bytes of a name.
const MAX_NAME: usize = 64;

/// The keys of `client` that apply to the requests of all clients, and the reason.
pub(crate) const SHARED_KEYS: [&str; 4] = [
    "apply_chat_template",
    "chat_template",
    "prompt_length",
    "tokenizer",
];
pub(crate) const SHARED_REASON: &str = "applies to the requests of all clients, because the text of a prompt does not depend \
     on the client that sends it; set it in `client`";

/// The keys that belong to a server: a client with its own server takes none of them from `client`.
const OF_SERVER: [&str; 4] = ["api_base", "api_key", "model", "targets"];
/// The keys that belong to an API: a client with another `type` takes none of them from `client`.
const OF_API: [&str; 7] = [
    "address_append_value",
    "codec",
    "ignore_eos",
    "max_tokens_param",
    "min_tokens_param",
    "reasoning_param",
    "template",
];

/// One of a scenario's clients.
#[derive(Clone, Debug)]
pub struct NamedClient<'a> {
    /// The name by which requests choose it; [`DEFAULT_CLIENT`] for `client`.
    pub name: &'a str,
    /// Its path in the scenario: `client`, or `clients.NAME`.
    pub path: String,
    /// Its settings.
    pub client: &'a Client,
}

impl Scenario {
    /// Returns all clients: `client` first, then those of `clients` by name.
    pub fn all_clients(&self) -> impl Iterator<Item = NamedClient<'_>> {
        let default = NamedClient {
            name: DEFAULT_CLIENT,
            path: "client".to_owned(),
            client: &self.client,
        };
        let named = self.clients.iter().map(|(name, client)| NamedClient {
            name,
            path: path_of(name),
            client,
        });
        std::iter::once(default).chain(named)
    }

    /// Returns true if requests of any client go to the built-in simulator.
    pub fn has_simulated_client(&self) -> bool {
        self.all_clients().any(|named| named.client.is_simulated())
    }
}

/// Returns the path of an entry of `clients`.
pub(super) fn path_of(name: &str) -> String {
    path::join("clients", name)
}

/// Returns the schema of an entry of `clients`: the keys of every kind of client, none of them
/// required and none with a default, because those of `client` apply.
pub(crate) fn overrides_schema(client: &Json) -> Json {
    let mut schema = client.clone();
    schema["description"] = "A client that requests choose by its name. Missing keys default to those of `client`; with \
         `api_base` or `targets`, except `model`, `api_key` and headers that hold secrets, and with another `type`, except \
         the keys whose default depends on it."
        .into();
    if let Some(properties) = schema["properties"].as_object_mut() {
        for (key, of) in properties.iter_mut() {
            if SHARED_KEYS.contains(&key.as_str()) {
                *of = json!({"description": format!("It {SHARED_REASON}."), "x-refused": SHARED_REASON, "not": {}});
            } else if let Some(of) = of.as_object_mut() {
                of.remove("default");
            }
        }
        let kinds: Vec<&str> = ClientKind::ALL.into_iter().map(ClientKind::name).collect();
        properties.insert(
            "type".to_owned(),
            json!({"type": "string", "enum": kinds, "description": "The server API."}),
        );
    }
    schema
}

/// Decodes `clients` of a scenario whose keys are valid. `schema` is that of the scenario.
pub(super) fn decode(schema: &Json, root: &Node) -> Result<BTreeMap<String, Client>, Vec<Problem>> {
    let entries = match root.get("clients").map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    let mut problems = Vec::new();
    let mut clients = BTreeMap::new();
    if entries.is_empty() {
        return Ok(clients);
    }
    let of_client = json!({"$ref": "#/$defs/Client", "$defs": schema["$defs"]});
    for (name, entry) in entries {
        let at = path_of(name);
        let mut report = |message: String| {
            problems.push(Problem {
                path: at.clone(),
                place: entry.place.clone(),
                message,
                nearest: None,
            });
        };
        if let Some(message) = name_problem(name) {
            report(message);
            continue;
        }
        if clients.len() == MAX_CLIENTS {
            report(format!("a scenario can have at most {MAX_CLIENTS} of them"));
            break;
        }
        let whole = completed(root, entry);
        let found = check_value(&of_client, &whole, &at);
        if !found.is_empty() {
            problems.extend(found);
            continue;
        }
        match serde_json::from_value(resolve(&of_client, &whole)) {
            Ok(client) => {
                clients.insert(name.clone(), client);
            }
            Err(error) => report(error.to_string()),
        }
    }
    if problems.is_empty() {
        Ok(clients)
    } else {
        Err(problems)
    }
}

fn name_problem(name: &str) -> Option<String> {
    if name == DEFAULT_CLIENT {
        return Some(format!(
            "the name `{DEFAULT_CLIENT}` is that of `client`; set its keys there, or choose another name"
        ));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_plain) {
        return Some(format!(
            "a client's name has 1 to {MAX_NAME} letters, digits, dashes and underscores"
        ));
    }
    None
}

/// Returns an entry with the keys that it takes from `client`.
fn completed(root: &Node, entry: &Node) -> Node {
    let Value::Map(own) = &entry.value else {
        return entry.clone();
    };
    let inherited = default_client(root);
    let is_set = |node: &Node| match &node.value {
        Value::Null => false,
        Value::Word(text) => !word::is_null(text),
        Value::List(items) => !items.is_empty(),
        Value::Map(entries) => !entries.is_empty(),
        _ => true,
    };
    let has_server = ["api_base", "targets"]
        .iter()
        .any(|key| entry.get(key).is_some_and(is_set));
    let kind = |node: Option<&Node>| match node.map(|node| &node.value) {
        Some(Value::Text(name) | Value::Word(name)) => name.to_ascii_lowercase(),
        _ => ClientKind::default().name().to_owned(),
    };
    let of_client = inherited
        .iter()
        .find(|(key, _)| key == "type")
        .map(|(_, node)| node);
    let has_type = entry.get("type").is_some() && kind(entry.get("type")) != kind(of_client);
    let mut whole: Vec<(String, Node)> = Vec::new();
    for (key, mut node) in inherited {
        let name = key.as_str();
        if entry.get(name).is_some()
            || has_server && OF_SERVER.contains(&name)
            || has_type && OF_API.contains(&name)
        {
            continue;
        }
        // A secret for one server is not sent to another.
        if has_server
            && name == "headers"
            && let Value::Map(headers) = &mut node.value
        {
            headers.retain(|(header, _)| !is_secret_key(header));
        }
        whole.push((key, node));
    }
    whole.extend(own.iter().cloned());
    Node {
        value: Value::Map(whole),
        place: entry.place.clone(),
    }
}

/// Returns the keys of `client`, with those that `endpoint` replaces.
fn default_client(root: &Node) -> Vec<(String, Node)> {
    let mut keys = match root.get("client").map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.clone(),
        _ => Vec::new(),
    };
    if let Some(endpoint) = root.get("endpoint") {
        for key in ["api_base", "model", "api_key"] {
            let given = endpoint.get(key).filter(|node| node.value != Value::Null);
            if let Some(given) = given {
                keys.retain(|(known, _)| known != key);
                keys.push((key.to_owned(), given.clone()));
            }
        }
    }
    keys
}
