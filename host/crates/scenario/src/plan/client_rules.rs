//! Rules about one client: its server, headers, parameters and chat template.

use std::collections::{BTreeMap, HashMap};

use veeksha_endpoint::{HeaderTemplate, HeaderTemplateError};
use veeksha_model::{REDACTED, is_header_name, is_header_text, is_reserved_header};

use crate::path;
use crate::plan::client::{Client, PromptLength, parse_parameters};
use crate::plan::findings::{Findings, address_problem};
use crate::plan::secret::Secret;
use crate::plan::server_rules;
use crate::tree::Value;

/// Reports every rule that the client at a path violates.
pub(super) fn broken(findings: &mut Findings<'_>, client: &Client, at: &str) {
    if let Some(message) = client.api_base.as_deref().and_then(address_problem) {
        findings.add(&path::join(at, "api_base"), message);
    }
    parameters(findings, at);
    credentials(findings, client, at);
    server_rules::broken(findings, client, at);
    names_of_parameters(findings, client, at);
    templates(findings, client, at);
}

fn parameters(findings: &mut Findings<'_>, at: &str) {
    let path = path::join(at, "additional_sampling_params");
    // Without the key, this is a table.
    if let Value::Text(text) | Value::Word(text) = &findings.root.nearest_to(&path).value
        && let Err(message) = parse_parameters(text)
    {
        findings.add(&path, message);
    }
}

fn credentials(findings: &mut Findings<'_>, client: &Client, at: &str) {
    let all = client.targets.iter().flat_map(|target| target.headers.keys());
    let is_traceparent = |name: &String| name.eq_ignore_ascii_case("traceparent");
    if client.traceparent && all.chain(client.headers.keys()).any(is_traceparent) {
        findings.add(
            &path::join(at, "traceparent"),
            "`headers` has a `traceparent`; remove one of the two",
        );
    }
    headers(findings, &path::join(at, "headers"), &client.headers);
    key(findings, &path::join(at, "api_key"), client.api_key.as_ref());
    for (index, target) in client.targets.iter().enumerate() {
        let at = path::item(&path::join(at, "targets"), index);
        headers(findings, &path::join(&at, "headers"), &target.headers);
        key(findings, &path::join(&at, "api_key"), target.api_key.as_ref());
    }
}

fn headers(findings: &mut Findings<'_>, at: &str, headers: &BTreeMap<String, String>) {
    let mut names = HashMap::new();
    for (name, value) in headers {
        let path = path::join(at, name);
        if let Some(other) = names.insert(name.to_ascii_lowercase(), name) {
            findings.add(
                &path,
                format!("the same header as `{other}`: names of headers ignore case"),
            );
        } else if !is_header_name(name) {
            findings.add(&path, "not a valid header name: use letters, digits and dashes");
        } else if !is_header_text(value) {
            findings.add(&path, "a header's value must be one line of ASCII");
        } else if is_reserved_header(name) {
            findings.add(&path, "this header is set by the client itself");
        } else if let Err(error) = HeaderTemplate::parse(value, "") {
            placeholder(findings, &path, &error);
        }
    }
}

fn placeholder(findings: &mut Findings<'_>, path: &str, error: &HeaderTemplateError) {
    let HeaderTemplateError::Unknown { name } = error else {
        return findings.add(path, error.to_string());
    };
    let candidates = HeaderTemplate::candidates(name);
    let nearest = veeksha_slo::nearest(name, candidates.iter().map(String::as_str));
    let message = format!("unknown placeholder `{{{{{name}}}}}`");
    findings.add_near(path, message, nearest.map(|name| format!("{{{{{name}}}}}")));
}

fn key(findings: &mut Findings<'_>, at: &str, key: Option<&Secret>) {
    if let Some(key) = key
        && key.expose() != REDACTED
        && (key.expose().trim() != key.expose()
            || !key.expose().chars().all(|c| c.is_ascii_graphic() || c == ' '))
    {
        findings.add(
            at,
            "an API key must be one line of ASCII without leading or trailing spaces",
        );
    }
}

fn names_of_parameters(findings: &mut Findings<'_>, client: &Client, at: &str) {
    for (key, name) in [
        ("max_tokens_param", &client.max_tokens_param),
        ("min_tokens_param", &client.min_tokens_param),
        ("reasoning_param", &client.reasoning_param),
    ] {
        if name.as_deref() == Some("") {
            findings.add(&path::join(at, key), "must not be empty; null sends none");
        }
    }
    let of_messages = ["role", "content", "tool_calls", "tool_call_id"];
    if let Some(name) = &client.reasoning_param
        && of_messages.contains(&name.as_str())
    {
        findings.add(
            &path::join(at, "reasoning_param"),
            format!(
                "must not be `{name}`, which messages have already; use `reasoning` or `reasoning_content`"
            ),
        );
    }
    if client.max_tokens_param.is_some() && client.max_tokens_param == client.min_tokens_param {
        findings.add(
            &path::join(at, "min_tokens_param"),
            "must differ from `max_tokens_param`",
        );
    }
    if client.use_min_tokens_prompt_fallback && !client.min_tokens_prompt.contains("{tokens}") {
        findings.add(
            &path::join(at, "min_tokens_prompt"),
            "must contain `{tokens}`, which is replaced by the number",
        );
    }
}

fn templates(findings: &mut Findings<'_>, client: &Client, at: &str) {
    if client.apply_chat_template {
        return;
    }
    if client.chat_template.is_some() {
        findings.add(
            &path::join(at, "chat_template"),
            "has no effect unless `apply_chat_template` is true",
        );
    }
    if client.prompt_length == PromptLength::Wrapped {
        findings.add(
            &path::join(at, "prompt_length"),
            "`wrapped` needs `apply_chat_template: true`",
        );
    }
}
