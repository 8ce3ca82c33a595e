//! Clients that requests choose by name.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "outside a test function the configuration does not know that this is a test"
)]

mod common;

use std::path::Path;

use common::{bad, generators, good};
use veeksha_scenario::{ClientKind, Document, Documents, NamedClient, Scenario, json_schema};

fn again(scenario: &Scenario) -> Scenario {
    let yaml = scenario.to_yaml();
    match Document::from_yaml(&yaml, "config.yml")
        .unwrap()
        .check(&generators())
    {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{problems}\n{yaml}"),
    }
}

#[test]
fn missing_keys_are_those_of_the_client() {
    let scenario = good(
        "client: {api_base: 'http://a/v1', api_key: k, model: m, request_timeout: 7, connect_timeout: null}
clients: {judge: {additional_sampling_params: {temperature: 0}, connect_timeout: 3}}",
    );
    let judge = &scenario.clients["judge"];
    assert_eq!(judge.api_base.as_deref(), Some("http://a/v1"));
    assert_eq!(judge.api_key, scenario.client.api_key);
    assert_eq!(judge.model.as_deref(), Some("m"));
    assert_eq!(judge.request_timeout, 7.0);
    assert_eq!(judge.connect_timeout, Some(3.0));
    assert_eq!(judge.additional_sampling_params["temperature"], 0);
    assert!(scenario.client.additional_sampling_params.is_empty());
}

#[test]
fn clients_are_listed_with_the_default_one_first() {
    let scenario = good("client: {model: m}\nclients: {b: {}, a: {}}");
    let listed: Vec<(&str, String)> = scenario
        .all_clients()
        .map(|NamedClient { name, path, .. }| (name, path))
        .collect();
    let expected = [("default", "client"), ("a", "clients.a"), ("b", "clients.b")];
    assert_eq!(listed, expected.map(|(name, path)| (name, path.to_owned())));
}

#[test]
fn another_server_gets_no_secrets_and_no_model() {
    let scenario = good(
        "client: {api_base: 'http://a/v1', api_key: k, model: m, proxy: 'http://p:1', headers: {x-api-key: k, x-team: t}}
clients:
  other: {api_base: 'http://b/v1'}
  several: {targets: [{api_base: 'http://c/v1'}, {api_base: 'http://d/v1'}], model: n, api_key: l}",
    );
    let other = &scenario.clients["other"];
    assert_eq!((&other.api_key, &other.model), (&None, &None));
    assert_eq!(other.headers.keys().collect::<Vec<_>>(), ["x-team"]);
    assert_eq!(other.proxy.as_deref(), Some("http://p:1"));
    let several = &scenario.clients["several"];
    assert_eq!((several.api_base.as_deref(), several.targets.len()), (None, 2));
    assert_eq!(several.model.as_deref(), Some("n"));
    assert_eq!(several.api_key.as_ref().map(|key| key.expose()), Some("l"));
}

#[test]
fn another_api_has_its_own_defaults() {
    let scenario = good(
        "client: {type: openai_completions, api_base: 'http://a/v1', max_tokens_param: limit, ignore_eos: true, request_timeout: 9}
clients: {claude: {type: anthropic_messages}, same: {type: OpenAI_Completions}}",
    );
    let claude = &scenario.clients["claude"];
    assert_eq!(claude.kind, ClientKind::AnthropicMessages);
    assert_eq!(
        claude.address_append_value,
        good("client: {type: anthropic_messages}")
            .client
            .address_append_value
    );
    assert_eq!(claude.max_tokens_param.as_deref(), Some("max_tokens"));
    assert_eq!((claude.ignore_eos, claude.request_timeout), (None, 9.0));
    let same = &scenario.clients["same"];
    assert_eq!(same.max_tokens_param.as_deref(), Some("limit"));
}

#[test]
fn a_template_is_inherited_with_its_type() {
    let scenario = good(
        "client: {type: template, api_base: 'http://a/v1', address_append_value: v2, template: {request: {a: 1}, answer: {text: /t}}}
clients: {judge: {model: j}, chat: {type: openai_chat_completions}}",
    );
    assert_eq!(scenario.clients["judge"].template, scenario.client.template);
    assert_eq!(scenario.clients["chat"].template, None);
    assert_eq!(scenario.clients["chat"].address_append_value, "chat/completions");
}

#[test]
fn a_running_server_replaces_that_of_inherited_clients() {
    let scenario = good(
        "client: {api_base: 'http://a/v1', api_key: k}\nendpoint: {api_base: 'http://e/v1', model: n}
clients: {hot: {additional_sampling_params: {temperature: 2}}}",
    );
    let hot = &scenario.clients["hot"];
    assert_eq!(
        (hot.api_base.as_deref(), hot.model.as_deref()),
        (Some("http://e/v1"), Some("n"))
    );
    assert_eq!(hot.api_key, scenario.client.api_key);
}

#[test]
fn the_resolved_configuration_gives_the_same_clients() {
    let scenario = good(
        "client: {api_base: 'http://a/v1', model: m, session_headers: smg, min_tokens_param: min, tokenizer: t}
tools: {sandbox: {servers: 3}}
clients:
  judge: {type: tgi_generate_stream, api_base: 'http://b', tls: {insecure: true}, headers: {x-run: '{{run.id}}'}}
  hot: {min_tokens_param: null, additional_sampling_params: {temperature: 2}}",
    );
    let read = again(&scenario);
    assert_eq!(read.clients, scenario.clients);
    assert_eq!(read.tools, scenario.tools);
    assert_eq!(read.clients["hot"].min_tokens_param, None);
    assert_eq!(read.clients["hot"].tokenizer.as_deref(), Some("t"));
}

#[test]
fn secrets_of_every_client_are_redacted() {
    let scenario = good(
        "client: {api_base: 'http://a/v1', api_key: SECRET0}
clients:
  judge: {api_base: 'http://u:SECRET1@b/v1?key=SECRET2', api_key: SECRET3, headers: {x-api-key: SECRET4}, proxy: 'http://u:SECRET5@p'}
  same: {}",
    );
    let yaml = scenario.to_yaml();
    assert!(!yaml.contains("SECRET"), "{yaml}");
    let read = again(&scenario);
    assert_eq!(read.clients["judge"].api_key, None);
    let notes = read.notes.join("\n");
    for expected in [
        "clients.judge.api_key was removed from this configuration when it was written; set it again to send one",
        "clients.judge.api_base has `***`",
        "clients.judge.headers[x-api-key] was removed",
        "the password of clients.judge.proxy was removed",
        "clients.same.api_key was removed",
    ] {
        assert!(notes.contains(expected), "{expected} is not in\n{notes}");
    }
}

#[test]
fn invalid_clients_are_named_with_their_place() {
    for (yaml, message) in [
        (
            "clients:\n  default: {model: m}",
            "s.yml:2: clients.default: the name `default` is that of `client`; set its keys there, or choose another name",
        ),
        (
            "clients:\n  a b: {model: m}",
            "s.yml:2: clients.a b: a client's name has 1 to 64 letters, digits, dashes and underscores",
        ),
        (
            "clients:\n  judge:\n    modle: m",
            "s.yml:3: clients.judge.modle: unknown key; did you mean `model`?",
        ),
        (
            "clients:\n  judge:\n    tokenizer: gpt2",
            "s.yml:3: clients.judge.tokenizer: applies to the requests of all clients, because the text of a prompt does not \
             depend on the client that sends it; set it in `client`",
        ),
        (
            "clients:\n  judge:\n    type: template",
            "s.yml:2: clients.judge: `template` is missing",
        ),
        (
            "clients:\n  judge:\n    type: open_ai",
            "s.yml:3: clients.judge.type: expected ",
        ),
        (
            "clients:\n  judge:\n    request_timeout: fast",
            "s.yml:3: clients.judge.request_timeout: expected a number, got the text `fast`",
        ),
        (
            "clients:\n  judge:\n    api_base: localhost",
            "s.yml:3: clients.judge.api_base: `localhost` has no scheme; write `http://localhost`",
        ),
        (
            "clients:\n  judge:\n    additional_sampling_params: '{'",
            "s.yml:3: clients.judge.additional_sampling_params: not valid JSON",
        ),
        (
            "clients:\n  judge:\n    targets: [{api_base: 'http://a'}, {api_base: 'http://a'}]",
            "clients.judge.targets[1].api_base: this server is already in the list",
        ),
        (
            "clients: [a]",
            "s.yml:1: clients: expected a table of keys, got a list",
        ),
    ] {
        let found = bad(yaml);
        assert!(found.contains(message), "{message}\nis not in\n{found}");
    }
}

#[test]
fn a_problem_of_the_client_is_reported_once() {
    let found = bad("client: {proxy: 'ftp://p'}\nclients: {judge: {model: m}, other: {proxy: 'nothing'}}");
    assert_eq!(found.lines().count(), 2, "{found}");
    assert!(found.contains(": client.proxy: "), "{found}");
    assert!(found.contains(": clients.other.proxy: "), "{found}");
}

#[test]
fn flags_and_sweeps_reach_into_clients() {
    let yaml = "client: {model: m}\nclients: {judge: {model: !expand [a, b]}, hot: {}}";
    let mut documents =
        Documents::from_yaml(
            yaml,
            Path::new("s.yml"),
            &mut |_: &Path| Err("no file".to_owned()),
        )
        .unwrap();
    documents.set("clients.judge.request_timeout", "12").unwrap();
    documents.set("clients.hot.model", "7").unwrap();
    let cells = documents.cells().unwrap();
    let settings: Vec<String> = cells
        .iter()
        .map(|cell| {
            let [setting] = cell.settings.as_slice() else {
                panic!("{:?}", cell.settings)
            };
            format!("{}={}", setting.path, setting.text())
        })
        .collect();
    assert_eq!(settings, ["clients.judge.model=a", "clients.judge.model=b"]);
    for (cell, model) in cells.into_iter().zip(["a", "b"]) {
        let scenario = cell.document.check(&generators()).unwrap();
        let judge = &scenario.clients["judge"];
        assert_eq!(
            (judge.model.as_deref(), judge.request_timeout),
            (Some(model), 12.0)
        );
        assert_eq!(scenario.clients["hot"].model.as_deref(), Some("7"));
    }
    let (rest, overrides) =
        veeksha_scenario::dotted_flags(["--clients", "{judge: {model: m}}"].map(str::to_owned).to_vec());
    assert_eq!(rest, [""; 0]);
    assert_eq!(
        overrides,
        [("clients".to_owned(), "{judge: {model: m}}".to_owned())]
    );
}

/// A default in an entry's schema would hide the value of `client` from an editor.
#[test]
fn the_schema_of_an_entry_has_no_defaults() {
    let schema = json_schema(&generators());
    let entry = &schema["$defs"]["ClientOverrides"];
    assert_eq!(entry["additionalProperties"], false);
    assert_eq!(entry.get("required"), None);
    let properties = entry["properties"].as_object().unwrap();
    assert!(properties.values().all(|of| of.get("default").is_none()));
    let of_client = schema["$defs"]["Client"]["oneOf"].as_array().unwrap();
    for variant in of_client {
        for key in variant["properties"].as_object().unwrap().keys() {
            assert!(properties.contains_key(key), "{key}");
        }
    }
}

#[test]
fn overrides_of_unknown_names_are_refused() {
    let yaml = "client: {model: m}\nclients: {judge: {model: a}}\ntools: {sandbox: {servers: 2}}";
    let mut document = Document::from_yaml(yaml, "s.yml").unwrap();
    let mut refused = |path: &str| document.set(path, "1").unwrap_err().to_string();
    let client = refused("clients.judg.request_timeout");
    assert!(
        client.contains("unknown name `judg`; did you mean `judge`?"),
        "{client}"
    );
    let tool = refused("tools.browser.servers");
    assert!(tool.contains("`tools` has `sandbox`; add further ones"), "{tool}");
    document.set("clients.judge.request_timeout", "12").unwrap();
    document.set("clients", "{hot: {model: b}}").unwrap();
    document.set("clients.hot.model", "c").unwrap();
}
