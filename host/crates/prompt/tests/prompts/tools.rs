//! Definitions of functions: generated ones have their exact length, invalid ones are refused.

use std::collections::HashSet;

use serde_json::Value;
use veeksha_model::{
    AnswerForm, Message, NodeId, PreparedToolForm, PreparedTools, ReasoningContent, ReasoningSupport,
    RecordedAnswer, Replay, Request, Role, Seed, Segment, ToolChoice, ToolDefinitions,
};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_stats::RandomStream;

use crate::kinds::kinds;

fn synthetic(seed: u64, count: u32, tokens: u32) -> ToolDefinitions {
    ToolDefinitions::Synthetic {
        seed: Seed::from(seed),
        count,
        tokens,
    }
}

/// Returns the JSON text of definitions as they were generated.
fn text(tools: &PreparedTools) -> String {
    let PreparedToolForm::Functions(functions) = &tools.form else {
        return String::new();
    };
    let written = functions.iter().map(|function| {
        format!(
            r#"{{"name":"{}","description":"{}","parameters":{}}}"#,
            function.name,
            function.description.as_deref().unwrap(),
            function.parameters.as_deref().unwrap()
        )
    });
    format!("[{}]", written.collect::<Vec<_>>().join(","))
}

fn request(tools: Option<ToolDefinitions>) -> Request {
    Request {
        node: NodeId(3),
        messages: vec![Message::new(Role::User, vec![Segment::Text("x".into())])],
        tools: tools.map(Box::new),
        ..Request::default()
    }
}

fn embedded() -> Materializer {
    Materializer::new(Tokenizer::embedded().unwrap()).unwrap()
}

/// Random numbers of functions and tokens, with every kind of tokenizer.
#[test]
fn synthetic_tools_have_their_length() {
    for kind in kinds() {
        let materializer = Materializer::new(kind.tokenizer.clone()).unwrap();
        let mut draws = RandomStream::new(1, 0, "tools").draws();
        for _ in 0..12 {
            let count = 1 + draws.below(8);
            let tokens = count * (60 + draws.below(150));
            let tools = materializer.tools(&synthetic(draws.next_u64(), count, tokens));
            let tools = match tools {
                Ok(tools) => tools,
                // Vocabularies of a few hundred tokens need more for the syntax alone.
                Err(message) => {
                    assert!(message.contains("their syntax alone"), "{}: {message}", kind.name);
                    continue;
                }
            };
            let text = text(&tools);
            let ids = kind.raw.encode(text.as_str(), false).unwrap();
            assert_eq!(
                (ids.len() as u32, tools.tokens),
                (tokens, tokens),
                "{}: {text}",
                kind.name
            );
            let parsed: Vec<Value> = serde_json::from_str(&text).unwrap();
            let names: HashSet<&str> = parsed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            assert_eq!(names.len(), count as usize, "{text}");
            let described = |tool: &&Value| !tool["description"].as_str().unwrap().is_empty();
            // The last one may have given all its words for an exact length.
            assert!(
                parsed.iter().filter(described).count() + 1 >= parsed.len(),
                "{text}"
            );
        }
    }
}

#[test]
fn synthetic_tools_depend_on_seed_and_salt_alone() {
    let tools =
        |materializer: Materializer, seed| text(&materializer.tools(&synthetic(seed, 3, 300)).unwrap());
    assert_eq!(tools(embedded(), 1), tools(embedded(), 1));
    assert_ne!(tools(embedded(), 1), tools(embedded(), 2));
    assert_ne!(tools(embedded().salted(Some(7)), 1), tools(embedded(), 1));
}

#[test]
fn definitions_are_counted_as_written() {
    let written = r#"[ {"name": "f", "parameters": {"type": "object"}} ]"#;
    let tokenizer = Tokenizer::embedded().unwrap();
    for definitions in [
        ToolDefinitions::Definitions(written.into()),
        ToolDefinitions::Verbatim(written.into()),
    ] {
        let prepared = embedded().prepare(request(Some(definitions))).unwrap();
        assert_eq!(prepared.tools.unwrap().tokens, tokenizer.count(written));
        assert_eq!(prepared.prompt_tokens, 1, "the message alone");
    }
    let none = embedded().prepare(request(Some(ToolDefinitions::Definitions("[]".into()))));
    assert_eq!(none.unwrap().tools.unwrap().tokens, 0);
}

#[test]
fn refuses_invalid_definitions() {
    let refused = |definitions| {
        let request = request(Some(definitions));
        let message = embedded().check(&request).unwrap_err().to_string();
        assert_eq!(embedded().prepare(request).unwrap_err().to_string(), message);
        message
    };
    let written = |text: &str| refused(ToolDefinitions::Definitions(text.into()));
    let not_an_array = "node 3: `tools` must be a JSON array: ";
    assert!(written("{}").starts_with(not_an_array));
    assert!(refused(ToolDefinitions::Verbatim("[".into())).starts_with(not_an_array));
    assert!(written("[1]").starts_with("node 3: definition 1 of `tools` must be an object with `name`"));
    assert!(written(r#"[{"name":"f"},{"description":"d"}]"#).contains("definition 2 of `tools`"));
    assert!(written(r#"[{"name":"f","strict":true}]"#).contains("unknown field `strict`"));
    assert_eq!(
        written(r#"[{"name":""}]"#),
        "node 3: definition 1 of `tools` has an empty name"
    );
    assert_eq!(
        written(r#"[{"name":"f"},{"name":"f"}]"#),
        "node 3: `tools` defines `f` twice"
    );
    assert_eq!(
        written(r#"[{"name":"f","parameters":[]}]"#),
        "node 3: the `parameters` of the tool `f` must be a JSON schema, an object"
    );
    assert_eq!(
        refused(synthetic(1, 0, 5)),
        "node 3: 0 synthetic tools; a request may have 1 to 1024"
    );
    assert_eq!(
        refused(synthetic(1, 1, u32::MAX)),
        "node 3: 4294967295 tokens of synthetic tools; a request may have 16777216"
    );
    let few = refused(synthetic(1, 2, 10));
    assert!(
        few.starts_with("node 3: 2 synthetic tools of 10 tokens; their syntax alone needs "),
        "{few}"
    );
}

#[test]
fn refuses_invalid_form() {
    let with = |form| {
        let mut request = request(Some(ToolDefinitions::Definitions(r#"[{"name":"f"}]"#.into())));
        request.output.form = Some(Box::new(form));
        embedded().check(&request).map_err(|error| error.to_string())
    };
    let choice = |name: &str| {
        with(AnswerForm {
            tool_choice: Some(ToolChoice::Function(name.into())),
            ..AnswerForm::default()
        })
    };
    assert_eq!(choice("f"), Ok(()));
    assert_eq!(
        choice("g").unwrap_err(),
        "node 3: the tool choice is `g`, which `tools` does not define"
    );
    for schema in ["[]", "", "{"] {
        let refused = with(AnswerForm {
            schema: Some(schema.into()),
            ..AnswerForm::default()
        });
        let message = refused.unwrap_err();
        assert!(
            message.starts_with("node 3: the response schema must be a JSON object: "),
            "{message}"
        );
    }
}

/// A prompt has only the reasoning that its endpoint sends, so no other is counted.
#[test]
fn unsent_reasoning_is_left_out() {
    let of = |signature: Option<&str>| {
        Some(ReasoningContent {
            content: vec![Segment::Text("so".into())],
            signature: signature.map(str::to_owned),
        })
    };
    let message = |signature| Message {
        reasoning: of(signature),
        ..Message::new(Role::Assistant, vec![Segment::Text("said".into())])
    };
    let request = Request {
        messages: vec![message(None), message(Some("S"))],
        replay: Some(Box::new(Replay {
            answer: Some(RecordedAnswer {
                content: vec![Segment::Text("yes".into())],
                reasoning: of(None),
                ..RecordedAnswer::default()
            }),
            ..Replay::default()
        })),
        ..Request::default()
    };
    for (support, stated, recorded) in [
        (ReasoningSupport::All, [true, true], true),
        (ReasoningSupport::Signed, [false, true], false),
        (ReasoningSupport::Nothing, [false, false], false),
    ] {
        let materializer = embedded().with_filter(std::sync::Arc::new(move |_| Ok(support.into())));
        let prepared = materializer.prepare(request.clone()).unwrap();
        assert_eq!(prepared.reasoning.support, support);
        let sent = [0, 1].map(|message| prepared.messages[message].reasoning.is_some());
        assert_eq!(sent, stated, "{support:?}");
        let tokenizer = Tokenizer::embedded().unwrap();
        let tokens = |text: &str| tokenizer.count(text);
        let reasoning = stated.iter().filter(|sent| **sent).count() as u32 * tokens("so");
        assert_eq!(prepared.prompt_tokens, 2 * tokens("said") + reasoning);
        assert_eq!(prepared.recorded_answer.unwrap().reasoning.is_empty(), !recorded);
    }
}

#[test]
fn filter_decides_before_anything_else() {
    let materializer = embedded().with_filter(std::sync::Arc::new(|_| Err("no".into())));
    assert_eq!(
        materializer.check(&request(None)).unwrap_err().to_string(),
        "node 3: no"
    );
    assert_eq!(
        materializer.prepare(request(None)).unwrap_err().to_string(),
        "node 3: no"
    );
}
