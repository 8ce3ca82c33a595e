//! Tool choice of requests.

use serde_json::Value;

/// Returns the tool that a request must call: the one named by `tool_choice`, or the first of
/// `tools` if any call is required. `body` is a request body of any API.
pub fn required_tool(body: &Value) -> Option<String> {
    tool_of(
        body.get("tools").and_then(Value::as_array).map(Vec::as_slice),
        body.get("tool_choice"),
    )
}

/// Returns the tool that a request requires: the named one, or the first one.
pub(crate) fn tool_of(tools: Option<&[Value]>, choice: Option<&Value>) -> Option<String> {
    let name_of = |tool: &Value| {
        let name = tool
            .get("name")
            .or_else(|| tool.get("function").and_then(|function| function.get("name")));
        name.and_then(Value::as_str).map(str::to_owned)
    };
    let choice = choice?;
    if let Some(named) = name_of(choice) {
        return Some(named);
    }
    let any = choice == "required" || choice.get("type").is_some_and(|kind| kind == "any");
    any.then(|| tools?.first().and_then(name_of)).flatten()
}
