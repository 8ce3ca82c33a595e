//! Functions that the model may call, and the form of its answer.

use serde_json::{Value, json};
use veeksha_model::{AnswerForm, FunctionDefinition, PreparedToolForm, PreparedTools, ToolChoice};

use super::strict_schema::is_strict;
use crate::endpoint_kind::EndpointKind;
use crate::json_writer::{end_list, string};

/// Writes the definitions as a list.
pub(super) fn write_tools(out: &mut Vec<u8>, tools: &PreparedTools, endpoint: &EndpointKind) {
    let functions = match &tools.form {
        PreparedToolForm::Verbatim(text) => return out.extend_from_slice(text.as_bytes()),
        PreparedToolForm::Functions(functions) => functions,
    };
    out.push(b'[');
    for function in functions {
        match endpoint {
            EndpointKind::AnthropicMessages => {
                out.push(b'{');
                // The API requires a schema.
                let schema = function.parameters.as_deref().unwrap_or(r#"{"type":"object"}"#);
                write_function(out, function, "input_schema", Some(schema));
            }
            EndpointKind::Responses => {
                out.extend_from_slice(b"{\"type\":\"function\",");
                write_function(out, function, "parameters", function.parameters.as_deref());
            }
            _ => {
                out.extend_from_slice(b"{\"type\":\"function\",\"function\":{");
                write_function(out, function, "parameters", function.parameters.as_deref());
                out.push(b'}');
            }
        }
        out.extend_from_slice(b",");
    }
    end_list(out, b']');
}

/// Writes the members of a function and the end of their object.
fn write_function(out: &mut Vec<u8>, function: &FunctionDefinition, schema_name: &str, schema: Option<&str>) {
    out.extend_from_slice(b"\"name\":");
    string(out, &function.name);
    if let Some(description) = &function.description {
        out.extend_from_slice(b",\"description\":");
        string(out, description);
    }
    if let Some(schema) = schema {
        out.push(b',');
        string(out, schema_name);
        out.push(b':');
        out.extend_from_slice(schema.as_bytes());
    }
    out.push(b'}');
}

/// Returns the functions that an answer may call.
pub(super) fn tool_choice(choice: &ToolChoice, endpoint: &EndpointKind) -> Value {
    let is_anthropic = matches!(endpoint, EndpointKind::AnthropicMessages);
    let (name, anthropic_type) = match choice {
        ToolChoice::Automatic => ("auto", "auto"),
        ToolChoice::None => ("none", "none"),
        ToolChoice::Required => ("required", "any"),
        ToolChoice::Function(name) => (&**name, "tool"),
    };
    match (choice, endpoint) {
        (ToolChoice::Function(name), EndpointKind::AnthropicMessages) => {
            json!({ "type": anthropic_type, "name": name })
        }
        (ToolChoice::Function(name), EndpointKind::Responses) => json!({ "type": "function", "name": name }),
        (ToolChoice::Function(name), _) => json!({ "type": "function", "function": { "name": name } }),
        _ if is_anthropic => json!({ "type": anthropic_type }),
        _ => name.into(),
    }
}

/// Returns the members of a body that request the form of the answer, as JSON text.
pub(super) fn form_members(form: &AnswerForm, endpoint: &EndpointKind) -> Vec<(&'static str, String)> {
    let mut members = Vec::new();
    if let Some(choice) = &form.tool_choice {
        members.push(("tool_choice", tool_choice(choice, endpoint).to_string()));
    }
    if let Some(schema) = &form.schema {
        members.push(schema_member(schema, endpoint));
    }
    if form.prompt_log_probabilities {
        members.push(("echo", "true".to_owned()));
    }
    // Without a number of alternatives for the prompt, the most probable token shows whether the
    // prompt's is that.
    if let Some(alternatives) = form
        .log_probabilities
        .or(form.prompt_log_probabilities.then_some(1))
    {
        let alternatives = alternatives.to_string();
        match endpoint {
            EndpointKind::ChatCompletions => {
                members.push(("logprobs", "true".to_owned()));
                members.push(("top_logprobs", alternatives));
            }
            EndpointKind::Responses => {
                members.push(("include", r#"["message.output_text.logprobs"]"#.to_owned()));
                members.push(("top_logprobs", alternatives));
            }
            _ => members.push(("logprobs", alternatives)),
        }
    }
    members
}

/// Adds the host's value of a member to the configured one, where the member has several settings
/// next to each other: `include` is a list, and the schema is one entry of `text` and of
/// `output_config`. Returns `None` if the configured value stays as it is.
pub(super) fn merged(name: &str, configured: &str, host: &str) -> Option<String> {
    if !["include", "text", "output_config"].contains(&name) {
        return None;
    }
    let parse = |text| serde_json::from_str::<Value>(text).ok();
    let (is_empty, has_it) = match (parse(configured)?, parse(host)?) {
        (Value::Array(configured), Value::Array(host)) => (
            configured.is_empty(),
            host.iter().any(|value| configured.contains(value)),
        ),
        (Value::Object(configured), Value::Object(host)) => (
            configured.is_empty(),
            host.keys().any(|key| configured.contains_key(key)),
        ),
        _ => return None,
    };
    if has_it {
        return None;
    }
    if is_empty {
        return Some(host.to_owned());
    }
    // Text instead of values, because the order of a schema's members is kept.
    let (configured, host) = (configured.trim(), host.trim());
    let before = configured.get(..configured.len().checked_sub(1)?)?;
    Some(format!("{before},{}", host.get(1..)?))
}

/// Returns the member for a schema and its value. OpenAI's APIs require a name.
fn schema_member(schema: &str, endpoint: &EndpointKind) -> (&'static str, String) {
    let strict = match endpoint {
        EndpointKind::ChatCompletions | EndpointKind::Responses if is_strict(schema) => r#","strict":true"#,
        _ => "",
    };
    match endpoint {
        EndpointKind::AnthropicMessages => (
            "output_config",
            format!(r#"{{"format":{{"type":"json_schema","schema":{schema}}}}}"#),
        ),
        EndpointKind::Responses => (
            "text",
            format!(r#"{{"format":{{"type":"json_schema","name":"answer","schema":{schema}{strict}}}}}"#),
        ),
        _ => (
            "response_format",
            format!(
                r#"{{"type":"json_schema","json_schema":{{"name":"answer","schema":{schema}{strict}}}}}"#
            ),
        ),
    }
}
