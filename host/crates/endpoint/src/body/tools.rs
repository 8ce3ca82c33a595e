//! Functions that the model may call, and the form of its answer.

use veeksha_model::{AnswerForm, FunctionDefinition, PreparedToolForm, PreparedTools, ToolChoice};

use crate::endpoint_kind::EndpointKind;
use crate::json_writer::{ObjectWriter, end_list, json, string};

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

/// Writes the functions that an answer may call.
pub(super) fn write_tool_choice(out: &mut Vec<u8>, choice: &ToolChoice, endpoint: &EndpointKind) {
    let anthropic = matches!(endpoint, EndpointKind::AnthropicMessages);
    let (name, anthropic_type) = match choice {
        ToolChoice::Automatic => ("auto", "auto"),
        ToolChoice::None => ("none", "none"),
        ToolChoice::Required => ("required", "any"),
        ToolChoice::Function(name) => (&**name, "tool"),
    };
    match (choice, endpoint) {
        (ToolChoice::Function(name), EndpointKind::AnthropicMessages) => {
            json(out, &serde_json::json!({ "type": anthropic_type, "name": name }));
        }
        (ToolChoice::Function(name), EndpointKind::Responses) => {
            json(out, &serde_json::json!({ "type": "function", "name": name }));
        }
        (ToolChoice::Function(name), _) => {
            json(
                out,
                &serde_json::json!({ "type": "function", "function": { "name": name } }),
            );
        }
        _ if anthropic => json(out, &serde_json::json!({ "type": anthropic_type })),
        _ => string(out, name),
    }
}

/// Writes the members of a body that request the form of the answer.
pub(super) fn write_form(
    object: &mut ObjectWriter,
    form: &AnswerForm,
    endpoint: &EndpointKind,
    taken: impl Fn(&str) -> bool,
) {
    if let Some(choice) = &form.tool_choice
        && !taken("tool_choice")
    {
        object.field("tool_choice", |out| write_tool_choice(out, choice, endpoint));
    }
    if let Some(schema) = &form.schema {
        let (member, before, after) = schema_member(endpoint);
        if !taken(member) {
            object.field(member, |out| {
                for part in [before, schema, after] {
                    out.extend_from_slice(part.as_bytes());
                }
            });
        }
    }
    let Some(alternatives) = form.log_probabilities else {
        return;
    };
    let members: &[(&str, &str)] = match endpoint {
        EndpointKind::ChatCompletions => &[("logprobs", "true"), ("top_logprobs", "")],
        EndpointKind::Responses => &[
            ("include", r#"["message.output_text.logprobs"]"#),
            ("top_logprobs", ""),
        ],
        _ => &[("logprobs", "")],
    };
    for (name, value) in members.iter().filter(|(name, _)| !taken(name)) {
        object.field(name, |out| match *value {
            "" => json(out, &alternatives),
            value => out.extend_from_slice(value.as_bytes()),
        });
    }
}

/// Returns the member for a schema, and the JSON before and after it. OpenAI's APIs require a name.
fn schema_member(endpoint: &EndpointKind) -> (&'static str, &'static str, &'static str) {
    match endpoint {
        EndpointKind::AnthropicMessages => (
            "output_config",
            r#"{"format":{"type":"json_schema","schema":"#,
            "}}",
        ),
        EndpointKind::Responses => (
            "text",
            r#"{"format":{"type":"json_schema","name":"answer","schema":"#,
            r#","strict":true}}"#,
        ),
        _ => (
            "response_format",
            r#"{"type":"json_schema","json_schema":{"name":"answer","schema":"#,
            r#","strict":true}}"#,
        ),
    }
}
