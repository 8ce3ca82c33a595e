//! Servers, connections, and API descriptions.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "outside a test function the configuration does not know that this is a test"
)]

mod common;

use common::{bad, generators, good};
use veeksha_scenario::{
    Balance, Certificate, ClientKind, Connections, Document, HttpVersion, Limits, Scenario, SessionHeaders,
    TemplateFraming,
};

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
fn session_headers_are_one_entry_or_a_list() {
    for (text, expected) in [
        ("llm-d", vec![SessionHeaders::LlmD]),
        (
            "[claude-code, smg]",
            vec![SessionHeaders::ClaudeCode, SessionHeaders::Smg],
        ),
    ] {
        let scenario = good(&format!("client: {{session_headers: {text}, traceparent: true}}"));
        assert_eq!(scenario.client.session_headers, expected);
        let read = again(&scenario).client;
        assert_eq!((read.session_headers, read.traceparent), (expected, true));
    }
}

/// A value of placeholders is needed to repeat a run and cannot contain a secret.
#[test]
fn header_of_placeholders_is_kept_in_the_configuration() {
    let scenario = good(
        "client: {headers: {x-a: '{{run.id}}-{{session.id}}', x-b: 'key7 {{session.id}}', x-c: '{{run.id}}'}}",
    );
    let headers = again(&scenario).client.headers;
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["x-a", "x-c"]);
    assert!(!scenario.to_yaml().contains("key7"));
}

#[test]
fn every_api_has_its_path_and_max_tokens_param() {
    for (name, kind, path, limit) in [
        (
            "openai_chat_completions",
            ClientKind::OpenaiChatCompletions,
            "chat/completions",
            "max_completion_tokens",
        ),
        (
            "openai_completions",
            ClientKind::OpenaiCompletions,
            "completions",
            "max_tokens",
        ),
        (
            "openai_responses",
            ClientKind::OpenaiResponses,
            "responses",
            "max_output_tokens",
        ),
        (
            "anthropic_messages",
            ClientKind::AnthropicMessages,
            "messages",
            "max_tokens",
        ),
        (
            "tgi_generate_stream",
            ClientKind::TgiGenerateStream,
            "generate_stream",
            "max_new_tokens",
        ),
    ] {
        let client = good(&format!("client: {{type: {name}}}")).client;
        assert_eq!(
            (
                client.kind,
                client.address_append_value.as_str(),
                client.max_tokens_param.as_deref()
            ),
            (kind, path, Some(limit))
        );
        let asks = !matches!(
            kind,
            ClientKind::AnthropicMessages | ClientKind::TgiGenerateStream
        );
        assert_eq!(client.ignore_eos, asks.then_some(true), "{name}");
    }
}

const TEMPLATE: &str = "client: {type: template, address_append_value: v2/generate, template: {request: {text: '{{prompt}}', \
                        n: '{{max_tokens}}'}, framing: lines, answer: {text: /token/text, finish_reason: /end}}}";

const TARGETS: &str = "client: {targets: [{api_base: 'http://a:1/v1', api_key: sk-1, headers: {X-Key: s, Accept-Language: a}, proxy: \
                       'http://u:p@proxy:3128'}, {api_base: 'https://b:2/v1', tls: {client_certificate: c.pem, client_key: k.pem}}], \
                       balance: least_in_flight, connections: per_session, connect_timeout: 3, source_addresses: [127.0.0.2, '::1']}";

/// A server that does not answer the handshake must not hold a request for `request_timeout`.
#[test]
fn connecting_is_limited_unless_the_limit_is_removed() {
    let timeout = |text: &str| good(text).client.connect_timeout;
    assert_eq!(timeout("client: {api_base: 'http://a:1/v1'}"), Some(30.0));
    assert_eq!(timeout("client: {connect_timeout: 3}"), Some(3.0));
    assert_eq!(timeout("client: {connect_timeout: null}"), None);
}

#[test]
fn accepts_api_description() {
    let scenario = good(TEMPLATE);
    let template = scenario.client.template.clone().unwrap();
    assert_eq!(template.framing, TemplateFraming::Lines);
    assert_eq!(template.answer.text.as_deref(), Some("/token/text"));
    assert_eq!(template.request["n"], "{{max_tokens}}");
    assert_eq!(scenario.client.max_tokens_param, None);
    assert_eq!(again(&scenario), scenario);
    let codec = good("client: {type: wasm, codec: {plugin: c.wasm, config: {a: 1, api_key: x}}}");
    assert_eq!(codec.client.codec.as_ref().unwrap().config["a"], 1);
    assert!(
        codec.to_yaml().contains("api_key: \"***\""),
        "{}",
        codec.to_yaml()
    );
}

#[test]
fn accepts_list_of_servers() {
    let scenario = good(TARGETS);
    let client = &scenario.client;
    assert_eq!(client.targets.len(), 2);
    assert_eq!(
        (client.balance, client.connections, client.http_version),
        (
            Balance::LeastInFlight,
            Connections::PerSession,
            HttpVersion::Http1
        )
    );
    assert_eq!(client.sources().len(), 2);
    let yaml = scenario.to_yaml();
    for secret in ["sk-1", "u:p@", " s\n"] {
        assert!(!yaml.contains(secret), "{secret} is in\n{yaml}");
    }
    let read = again(&scenario);
    assert_eq!(read.client.targets[0].api_key, None);
    assert_eq!(read.client.targets[0].proxy.as_deref(), Some("http://proxy:3128"));
    assert_eq!(read.client.targets[0].headers.len(), 1);
    assert_eq!(read.notes.len(), 3, "{:?}", read.notes);
    assert_eq!(read.client.targets[1], scenario.client.targets[1]);
}

#[test]
fn names_invalid_combinations() {
    for (yaml, message) in [
        (
            "client: {api_base: 'http://h/v1', targets: [{api_base: 'http://i/v1'}]}",
            "client.targets: give `api_base` or `targets`, not both",
        ),
        (
            "client: {targets: [{api_base: 'h:1'}]}",
            "client.targets[0].api_base: `h:1` has no scheme; write `http://h:1`",
        ),
        (
            "client: {targets: [{api_base: 'sim://fast'}]}",
            "client.targets[0].api_base: the simulator cannot be one of several targets",
        ),
        (
            "client: {targets: [{api_base: 'http://h/v1'}, {api_base: 'http://h/v1'}]}",
            "client.targets[1].api_base: this server is already in the list",
        ),
        (
            "client: {targets: [{}]}",
            "client.targets[0]: `api_base` is missing",
        ),
        (
            "client: {targets: [{api_base: 'http://h', headers: {Host: x}}]}",
            "client.targets[0].headers.Host: this header is set by the client itself",
        ),
        (
            "client: {tls: {client_certificate: c.pem}}",
            "client.tls.client_key: `client_certificate` needs its key",
        ),
        (
            "client: {proxy: 'https://p:1'}",
            "client.proxy: only plain HTTP proxies",
        ),
        ("client: {source_addresses: []}", "client.source_addresses: "),
        (
            "client: {source_addresses: [nowhere]}",
            "client.source_addresses[0]: `nowhere` is not an IP address",
        ),
        (
            "client: {http_version: http2, connections: never}",
            "client.connections: with `http_version: http2`",
        ),
        ("client: {type: template}", "client: `template` is missing"),
        (
            "client: {type: template, template: {request: {}, answer: {}}}",
            "client.address_append_value: a `template` needs the path",
        ),
        ("client: {type: wasm}", "client: `codec` is missing"),
        ("client: {template: {}}", "client.template: unknown key"),
        (
            "certificate: {degraded: 0.2}",
            "certificate.degraded: must be at most `invalid`",
        ),
        (
            "traffic_scheduler: {limits: {requests_in_flight: 0}}",
            "traffic_scheduler.limits.requests_in_flight",
        ),
        ("runtime: {realtime_priority: 100}", "runtime.realtime_priority"),
    ] {
        let problems = bad(yaml).to_string();
        assert!(problems.contains(message), "{yaml}\n{problems}");
    }
}

#[test]
fn accepts_limits_and_thresholds() {
    let scenario = good(
        "traffic_scheduler: {type: concurrent, limits: {requests_in_prefill: 3}}\ncertificate: {degraded: 0.02, self_test: true}",
    );
    assert_eq!(
        scenario.traffic_scheduler.limits(),
        Limits {
            requests_in_prefill: Some(3),
            ..Limits::default()
        }
    );
    assert_eq!(
        scenario.certificate,
        Certificate {
            degraded: 0.02,
            self_test: true,
            ..Certificate::default()
        }
    );
    assert_eq!(again(&scenario), scenario);
}
