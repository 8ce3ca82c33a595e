//! Calls, reasoning, definitions of functions, and the form of the answer.

use veeksha_model::{
    AnswerForm, ReasoningContent, RecordedAnswer, Seed, Segment, ToolCall, ToolChoice, ToolDefinitions,
};

use crate::common::{first, first_failure};

fn text(text: &str) -> Vec<Segment> {
    vec![Segment::Text(text.into())]
}

#[test]
fn messages_have_calls_and_reasoning() {
    let session = first(
        r#"return { requests = {
  {
    messages = {
      { role = "user", content = "what?" },
      { role = "assistant", reasoning = "hm", tool_calls = {
        { id = "a", name = "look", arguments = '{"q": 1}' },
        { id = "b", name = "look", arguments = { q = 2 } },
      } },
      { role = "tool", tool_call_id = "a", content = "found" },
      { role = "assistant", content = "so", reasoning = { content = { "I ", "see" }, signature = "s" } },
    },
    user = "more",
    answer = { content = "yes", reasoning = "of course" },
  },
  { user = "again", history = 1, keep_reasoning = true, history_mode = "recorded" },
} }"#,
    )
    .unwrap();
    let messages = &session.requests[0].messages;
    let call = |id: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: "look".into(),
        arguments: arguments.into(),
    };
    let reasoning = |content, signature: Option<&str>| {
        Some(ReasoningContent {
            content,
            signature: signature.map(str::to_owned),
        })
    };
    assert_eq!(
        messages[1].tool_calls,
        [call("a", r#"{"q": 1}"#), call("b", r#"{"q":2}"#)]
    );
    assert_eq!(messages[1].content, []);
    assert_eq!(messages[1].reasoning, reasoning(text("hm"), None));
    let parts = [text("I "), text("see")].concat();
    assert_eq!(messages[3].reasoning, reasoning(parts, Some("s")));
    let answer = session.requests[0].replay.as_ref().unwrap().answer.clone();
    assert_eq!(
        answer,
        Some(RecordedAnswer {
            content: text("yes"),
            tool_calls: Vec::new(),
            reasoning: reasoning(text("of course"), None),
        })
    );
    let keeps: Vec<bool> = session
        .requests
        .iter()
        .map(|request| request.keep_reasoning)
        .collect();
    assert_eq!(keeps, [false, true]);
}

#[test]
fn requests_have_tools_and_form() {
    let session = first(
        r#"return { requests = {
  { user = "x", tools = { { name = "look", description = "d", parameters = { type = "object" } } },
    tool_choice = { name = "look" }, response_schema = { type = "object" }, log_probabilities = 2,
    prompt_log_probabilities = true },
  { user = "x", tools = '[{"type": "any"}]', tool_choice = "required" },
  { user = "x", tools = synthetic_tools(3, 200, 7), tool_choice = "none", response_schema = "{}" },
  { user = "x", tools = {}, tool_choice = "auto", output = { tokens = 3, exact = true } },
  { user = token_ids({ 5, 6 }) },
} }"#,
    )
    .unwrap();
    let tools: Vec<_> = session
        .requests
        .iter()
        .map(|request| request.tools.as_deref())
        .collect();
    let definitions = r#"[{"description":"d","name":"look","parameters":{"type":"object"}}]"#;
    assert_eq!(
        tools,
        [
            Some(&ToolDefinitions::Definitions(definitions.into())),
            Some(&ToolDefinitions::Verbatim(r#"[{"type": "any"}]"#.into())),
            Some(&ToolDefinitions::Synthetic {
                seed: Seed::from(7),
                count: 3,
                tokens: 200,
            }),
            Some(&ToolDefinitions::Definitions("[]".into())),
            None,
        ]
    );
    let form = |place: usize| session.requests[place].output.form.as_deref().cloned();
    assert_eq!(
        form(0),
        Some(AnswerForm {
            tool_choice: Some(ToolChoice::Function("look".into())),
            schema: Some(r#"{"type":"object"}"#.into()),
            log_probabilities: Some(2),
            prompt_log_probabilities: true,
        })
    );
    let choice = |place| form(place).and_then(|form: AnswerForm| form.tool_choice);
    let choices = [1, 2, 3].map(choice);
    let expected = [ToolChoice::Required, ToolChoice::None, ToolChoice::Automatic];
    assert_eq!(choices, expected.map(Some));
    assert_eq!(session.requests[3].output.target_tokens, Some(3));
    assert_eq!(form(4), None);
    assert_eq!(
        session.requests[4].messages[0].content,
        [Segment::TokenIds(vec![5, 6])]
    );
}

#[test]
fn wrong_parts_are_named() {
    let cases = [
        (
            r#"user = "x", keep_reasoning = 1"#,
            "keep_reasoning: expected true or false",
        ),
        (r#"user = "x", tools = 5"#, "tools: expected a list of tools"),
        (
            r#"user = "x", tools = synthetic(5)"#,
            "tools: expected a list of tools",
        ),
        (
            r#"user = "x", tools = { name = "f" }"#,
            "tools: expected a list, found a table",
        ),
        (
            r#"user = "x", tool_choice = "any""#,
            r#"tool_choice: expected "auto", "none", "required" or { name = ... }, found the string "any""#,
        ),
        (r#"user = "x", tool_choice = {}"#, "tool_choice: expected"),
        (
            r#"user = "x", response_schema = 5"#,
            "response_schema: expected JSON text or a table",
        ),
        (
            r#"user = "x", log_probabilities = -1"#,
            "log_probabilities: expected a whole number",
        ),
        (r#"user = token_ids({})"#, "the list of token ids is empty"),
        (
            r#"user = token_ids({ 1, -1 })"#,
            "expected a whole number from 0 to 4294967295",
        ),
        (
            r#"messages = { { role = "assistant" } }"#,
            "the message has no `content`",
        ),
        (
            r#"messages = { { role = "user", content = "x", reasoning = "y" } }"#,
            "node 1: message 1 (`user`) has reasoning, which only `assistant` may have",
        ),
        (
            r#"messages = { { role = "tool", content = "x", tool_calls = { { id = "a", name = "f" } } } }"#,
            "node 1: message 1 (`tool`) has tool calls, which only `assistant` may have",
        ),
        (
            r#"messages = { { role = "assistant", content = "", reasoning = "y" } }"#,
            "node 1: message 1 (`assistant`) is empty",
        ),
        (
            r#"user = { token_ids({ 1 }), "x" }"#,
            "node 1 has token ids with other content",
        ),
        (
            r#"messages = { { role = "tool", content = token_ids({ 1 }) } }"#,
            "node 1 has token ids in a message of another role than `user`",
        ),
    ];
    for (request, expected) in cases {
        let failure = first_failure(&format!("\nreturn {{ requests = {{ {{ {request} }} }} }}"));
        assert!(failure.message.contains(expected), "{request}\n{failure}");
    }
    let continued = r#"return { requests = { { user = token_ids({ 1 }) }, { user = "x", history = 1 } } }"#;
    let failure = first_failure(continued);
    assert!(
        failure
            .message
            .contains("node 2 has token ids in the conversation"),
        "{failure}"
    );
}

/// Lua has one kind of empty table. In a schema, the keyword decides what it is.
#[test]
fn empty_tables_of_schemas_are_lists_where_a_keyword_has_one() {
    let session = first(
        r#"return { requests = { {
    user = "x",
    tools = { { name = "f", parameters = { type = "object", required = {}, properties = {
      required = {}, choice = { enum = {}, default = {}, anyOf = { {}, { allOf = {} } } } } } } },
    response_schema = { items = { prefixItems = {}, items = {} }, dependentRequired = { a = {} },
      ["$defs"] = { enum = { const = { required = {} } } } },
    body = { required = {} },
  } } }"#,
    )
    .unwrap();
    let request = &session.requests[0];
    let tools = r#"[{"name":"f","parameters":{"properties":{"choice":{"anyOf":[{},{"allOf":[]}],"default":{},"enum":[]},"required":{}},"required":[],"type":"object"}}]"#;
    assert_eq!(
        request.tools.as_deref(),
        Some(&ToolDefinitions::Definitions(tools.into()))
    );
    let form = request.output.form.as_deref().unwrap();
    assert_eq!(
        form.schema.as_deref(),
        Some(
            r#"{"$defs":{"enum":{"const":{"required":{}}}},"dependentRequired":{"a":[]},"items":{"items":{},"prefixItems":[]}}"#
        )
    );
    assert_eq!(request.body.as_deref(), Some(r#"{"required":{}}"#));
}
