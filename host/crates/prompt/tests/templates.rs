//! Chat templates: rendered as by Hugging Face's library, and found in models' folders.
#![expect(clippy::unwrap_used, reason = "the fixtures of a test may fail it")]

use std::path::Path;

use veeksha_model::Role::{self, Assistant, System, Tool, User};
use veeksha_prompt::{ChatTemplate, PromptError, SpecialTokens};

const QWEN: &str = include_str!("fixtures/templates/qwen2_5.jinja");
const LLAMA: &str = include_str!("fixtures/templates/llama3_1.jinja");
const MISTRAL: &str = include_str!("fixtures/templates/mistral_v0_3.jinja");
const GEMMA: &str = include_str!("fixtures/templates/gemma2.jinja");
const QWEN3: &str = include_str!("fixtures/templates/qwen3.jinja");
const MACROS: &str = include_str!("fixtures/templates/macros.jinja");

fn tokens(pairs: &[(&str, &str)]) -> SpecialTokens {
    pairs
        .iter()
        .map(|(name, text)| (name.to_string(), text.to_string()))
        .collect()
}

fn template(text: &str) -> ChatTemplate {
    let tokens = tokens(&[("bos_token", "<s>"), ("eos_token", "</s>")]);
    ChatTemplate::from_text("the template", text, tokens).unwrap()
}

fn render(text: &str, messages: &[(Role, &str)]) -> String {
    template(text).render(messages, true).unwrap()
}

fn refusal(text: &str, messages: &[(Role, &str)]) -> String {
    let error = template(text).render(messages, true).unwrap_err();
    assert!(matches!(error, PromptError::Template { .. }));
    error.to_string()
}

#[test]
fn qwen() {
    assert_eq!(
        render(QWEN, &[(User, "Hi!")]),
        "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n\
         <|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n"
    );
    assert_eq!(
        render(
            QWEN,
            &[
                (System, "Be brief."),
                (User, "  a <b> & 'c'\n"),
                (Assistant, ""),
                (Tool, "1"),
                (Tool, "2"),
                (User, "x")
            ]
        ),
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n  a <b> & 'c'\n<|im_end|>\n\
         <|im_start|>assistant\n<|im_end|>\n<|im_start|>user\n<tool_response>\n1\n</tool_response>\n\
         <tool_response>\n2\n</tool_response><|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"
    );
    assert_eq!(
        template(QWEN)
            .render(&[(System, "s"), (User, "u")], false)
            .unwrap(),
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n"
    );
}

#[test]
fn llama() {
    assert_eq!(
        render(
            LLAMA,
            &[
                (System, " sys "),
                (User, " one "),
                (Assistant, "two"),
                (User, "three")
            ]
        ),
        "<s><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\nsys\
         <|eot_id|><|start_header_id|>user<|end_header_id|>\n\none<|eot_id|>\
         <|start_header_id|>assistant<|end_header_id|>\n\ntwo<|eot_id|>\
         <|start_header_id|>user<|end_header_id|>\n\nthree<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    );
    // A text is iterable in Python, so Llama's template writes a tool's answer as JSON.
    assert!(
        render(LLAMA, &[(User, "a"), (Tool, "say \"hé\" <b>")])
            .contains("<|start_header_id|>ipython<|end_header_id|>\n\n\"say \\\"hé\\\" <b>\"<|eot_id|>")
    );
}

#[test]
fn mistral() {
    assert_eq!(
        render(
            MISTRAL,
            &[
                (System, "sys"),
                (User, "one"),
                (Assistant, "two"),
                (User, "three")
            ]
        ),
        "<s>[INST] one[/INST] two</s>[INST] sys\n\nthree[/INST]"
    );
    let refused = refusal(MISTRAL, &[(User, "one"), (User, "two")]);
    assert!(
        refused.contains("the template") && refused.contains("conversation roles must alternate"),
        "{refused}"
    );
    assert!(refusal(MISTRAL, &[(User, "one"), (Assistant, "two"), (Tool, "three")]).contains("length 9"));
}

#[test]
fn gemma() {
    assert_eq!(
        render(GEMMA, &[(User, " one "), (Assistant, "two"), (User, "three")]),
        "<s><start_of_turn>user\none<end_of_turn>\n<start_of_turn>model\ntwo<end_of_turn>\n\
         <start_of_turn>user\nthree<end_of_turn>\n<start_of_turn>model\n"
    );
    assert!(refusal(GEMMA, &[(System, "s"), (User, "u")]).contains("System role not supported"));
}

#[test]
fn qwen3() {
    // Reasoning of earlier turns is dropped; without a system message there is none.
    assert_eq!(
        render(
            QWEN3,
            &[
                (User, "one"),
                (Assistant, "<think>\nhm\n</think>\n\ntwo"),
                (User, "three")
            ]
        ),
        "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>\n<|im_start|>user\nthree<|im_end|>\n\
         <|im_start|>assistant\n"
    );
    // After the last question it is kept.
    assert_eq!(
        template(QWEN3)
            .render(
                &[(User, "one"), (Assistant, "<think>\nhm\n</think>\n\ntwo")],
                false
            )
            .unwrap(),
        "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\ntwo<|im_end|>\n"
    );
}

#[test]
fn supports_macros_namespaces_loop_controls_and_python_methods() {
    assert_eq!(
        render(
            MACROS,
            &[
                (User, "a"),
                (System, "left out"),
                (Tool, "left out"),
                (Assistant, "b")
            ]
        ),
        "<|user|>a<|end|><|assistant|>b<|end|>\n\
         2 {\"roles\": [\"user\", \"system\", \"tool\", \"assistant\"], \"ok\": true} 2024-07-26 True None<|assistant|>"
    );
}

#[test]
fn tojson_matches_python() {
    let json = |filter: &str| {
        let value = "{'b': [1, 2.5, {}], 'a': {'x': none, 'y': 'é<\\n\"'}, 'c': []}";
        render(&format!("{{{{ {value} | {filter} }}}}"), &[])
    };
    // The result of `json.dumps(..., ensure_ascii=False)`.
    assert_eq!(
        json("tojson"),
        r#"{"b": [1, 2.5, {}], "a": {"x": null, "y": "é<\n\""}, "c": []}"#
    );
    assert_eq!(
        json("tojson(indent=2)"),
        "{\n  \"b\": [\n    1,\n    2.5,\n    {}\n  ],\n  \"a\": {\n    \"x\": null,\n    \"y\": \"é<\\n\\\"\"\n  },\n  \"c\": []\n}"
    );
    assert_eq!(
        json("tojson(separators=(',', ':'))"),
        r#"{"b":[1,2.5,{}],"a":{"x":null,"y":"é<\n\""},"c":[]}"#
    );
    assert_eq!(
        json("tojson(sort_keys=true, ensure_ascii=false)"),
        r#"{"a": {"x": null, "y": "é<\n\""}, "b": [1, 2.5, {}], "c": []}"#
    );
    assert!(refusal("{{ 1 | tojson(colour=2) }}", &[]).contains("colour"));
}

#[test]
fn broken_template_names_the_line() {
    let error = ChatTemplate::from_text(
        "models/x",
        "line one\n{% for m in messages %}{{ m }",
        SpecialTokens::new(),
    )
    .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("models/x") && message.contains('2'), "{message}");
    let refused = refusal("\n\n{{ nothing_like_it(1) }}", &[(User, "a")]);
    assert!(
        refused.contains("nothing_like_it") && refused.contains('3'),
        "{refused}"
    );
    assert!(refusal("{{ strftime_now('%Q') }}", &[]).contains("%Q"));
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn finds_templates_in_model_folders() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rendered = |template: ChatTemplate| template.render(&[(User, "u")], true).unwrap();
    let missing = ChatTemplate::beside(at).unwrap_err();
    assert!(matches!(missing, PromptError::NoTemplate { .. }));
    assert!(
        missing.to_string().contains(&at.display().to_string()),
        "{missing}"
    );

    write(
        at,
        "chat_template.json",
        r#"{"chat_template": "processor {{ bos_token }}"}"#,
    );
    write(
        at,
        "tokenizer_config.json",
        r#"{"bos_token": {"content": "<b>", "lstrip": false}, "add_bos_token": true}"#,
    );
    write(
        at,
        "special_tokens_map.json",
        r#"{"bos_token": "<other>", "eos_token": "<e>"}"#,
    );
    assert_eq!(rendered(ChatTemplate::beside(at).unwrap()), "processor <b>");

    write(
        at,
        "tokenizer_config.json",
        r#"{"bos_token": "<b>", "chat_template": [
        {"name": "tool_use", "template": "tools"}, {"name": "default", "template": "config {{ bos_token }}{{ eos_token }}"}]}"#,
    );
    assert_eq!(
        rendered(ChatTemplate::beside(&at.join("tokenizer.json")).unwrap()),
        "config <b><e>"
    );

    write(at, "chat_template.jinja", "jinja {{ messages[0].content }}\n");
    let template = ChatTemplate::beside(at).unwrap();
    assert_eq!(
        (template.bos_token(), rendered(template.clone())),
        (Some("<b>"), "jinja u".to_string())
    );
    assert!(template.name().ends_with("chat_template.jinja"));

    // By path, with any extension.
    write(at, "mine.txt", "mine {{ eos_token }}");
    assert_eq!(
        rendered(ChatTemplate::load(&at.join("mine.txt")).unwrap()),
        "mine <e>"
    );
    assert_eq!(
        rendered(ChatTemplate::load(&at.join("tokenizer_config.json")).unwrap()),
        "config <b><e>"
    );
    assert_eq!(rendered(ChatTemplate::load(at).unwrap()), "jinja u");
}

#[test]
fn names_files_without_usable_template() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let file = at.join("tokenizer_config.json");
    assert!(matches!(
        ChatTemplate::load(&file),
        Err(PromptError::NoTemplate { .. })
    ));
    for (text, expected) in [
        ("{", "not JSON"),
        (r#"{"chat_template": 3}"#, "must be a text"),
        (
            r#"{"chat_template": [{"name": "tool_use", "template": "x"}]}"#,
            "named `default`",
        ),
    ] {
        write(at, "tokenizer_config.json", text);
        let error = ChatTemplate::load(&file).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains("tokenizer_config.json"),
            "{error}"
        );
    }
    write(at, "tokenizer_config.json", "{}");
    assert!(matches!(
        ChatTemplate::load(&file),
        Err(PromptError::NoTemplate { .. })
    ));
    std::fs::write(at.join("chat_template.jinja"), [0xff, 0xfe]).unwrap();
    let error = ChatTemplate::beside(at).unwrap_err();
    assert!(matches!(error, PromptError::UnreadableTemplate { .. }), "{error}");
}

#[test]
fn stops_hostile_templates() {
    let doubled = |step: &str| {
        format!("{{% set ns = namespace(s='x') %}}{{% for i in range(34) %}}{step}{{% endfor %}}")
    };
    let nested = |open: &str, close: &str| {
        format!(
            "{{% set s = 'x' * 1000 %}}{}{{{{ s }}}}{}",
            open.repeat(34),
            close.repeat(34)
        )
    };
    for (text, expected) in [
        (
            "{% for i in range(9999) %}{% for j in range(9999) %}{% for k in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
            "within 20000000 steps",
        ),
        (
            "{% for i in range(9999) %}{{ 'x' * 100000 }}{% endfor %}",
            "its text grows beyond 64 MiB",
        ),
        (
            "{% set a %}{% for i in range(9999) %}{{ 'x' * 100000 }}{% endfor %}{% endset %}",
            "its text grows beyond 64 MiB",
        ),
        (
            &format!(
                "{{% set a %}}{{% for i in range(9999) %}}{}{{% endfor %}}{{% endset %}}",
                "x".repeat(100_000)
            ),
            "its text grows beyond 64 MiB",
        ),
        (
            &doubled("{% set ns.a = ns %}{{ ns }}"),
            "a value grows beyond 64 MiB",
        ),
        (
            &doubled("{% set ns.s = ns.s ~ ns.s %}"),
            "a value grows beyond 64 MiB",
        ),
        (
            &doubled("{% set ns.s = ns.s + ns.s %}"),
            "a value grows beyond 64 MiB",
        ),
        (
            &doubled("{% set ns.s = [ns.s, ns.s] | join %}"),
            "a value grows beyond 64 MiB",
        ),
        (
            &doubled("{% set ns.s = [ns.s, ns.s] %}"),
            "a value grows beyond 64 MiB",
        ),
        (
            &doubled("{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}"),
            "grows beyond 64 MiB",
        ),
        (
            &format!("{{% set s = 'x' %}}{}", "{% set s = s ~ s %}".repeat(34)),
            "a value grows beyond 64 MiB",
        ),
        (
            &nested("{% with s = s ~ s %}", "{% endwith %}"),
            "a value grows beyond 64 MiB",
        ),
        (
            &nested("{% for s in [s ~ s] %}", "{% endfor %}"),
            "a value grows beyond 64 MiB",
        ),
        (
            "{% macro m(s) %}{{ m(s ~ s) }}{% endmacro %}{{ m('xxxxxxxx') }}",
            "grows beyond 64 MiB",
        ),
        (
            "{{ ('x' * 1000000) | replace('x', 'x' * 1000000) }}",
            "a value grows beyond 64 MiB",
        ),
        (
            "{{ ('x' * 1000000).replace('x', 'x' * 1000000) }}",
            "a value grows beyond 64 MiB",
        ),
        (
            "{{ ('x' * 1000000).join(range(9999)) }}",
            "a value grows beyond 64 MiB",
        ),
    ] {
        let refused = refusal(text, &[(User, "a")]);
        assert!(
            refused.starts_with("the chat template the template: ") && refused.contains(expected),
            "{text:.90}: {refused}"
        );
    }
}

#[test]
fn renders_long_conversations_and_large_messages() {
    let turns: Vec<(Role, &str)> = (0..10_000)
        .map(|turn| {
            if turn % 2 == 0 {
                (User, "a question")
            } else {
                (Assistant, "an answer")
            }
        })
        .chain([(User, "last")])
        .collect();
    for text in [QWEN, LLAMA, MISTRAL, GEMMA, QWEN3, MACROS] {
        let rendered = template(text).render(&turns, true).unwrap();
        assert!(rendered.len() > 10_000 * 9 && rendered.contains("last"));
    }
    // More than a template may add.
    let large = "x ".repeat(50 << 20);
    for text in [QWEN, LLAMA, MISTRAL, GEMMA] {
        let rendered = template(text).render(&[(User, &large)], true).unwrap();
        assert!(rendered.len() >= large.trim().len());
    }
}

#[cfg(unix)]
#[test]
fn refuses_oversized_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let sized = |name: &str, bytes| {
        std::fs::File::create(at(name)).unwrap().set_len(bytes).unwrap();
        at(name)
    };
    let (template, tokenizer) = (
        sized("large.jinja", (16 << 20) + 1),
        sized("large.bin", (256 << 20) + 1),
    );
    for path in ["/dev/zero".into(), at("pipe")] {
        for error in [
            ChatTemplate::load(&path).unwrap_err(),
            veeksha_prompt::Tokenizer::load(&path).unwrap_err(),
        ] {
            let message = error.to_string();
            assert!(
                message.contains("not a regular file") && message.contains(&path.display().to_string()),
                "{message}"
            );
        }
    }
    let message = ChatTemplate::load(&template).unwrap_err().to_string();
    assert!(
        message.contains("larger than 16 MiB") && message.contains("large.jinja"),
        "{message}"
    );
    let message = veeksha_prompt::Tokenizer::load(&tokenizer)
        .unwrap_err()
        .to_string();
    assert!(message.contains("larger than 256 MiB"), "{message}");
    std::fs::rename(at("pipe"), at("tokenizer_config.json")).unwrap();
    let message = ChatTemplate::beside(folder.path()).unwrap_err().to_string();
    assert!(
        message.contains("tokenizer_config.json") && message.contains("not a regular file"),
        "{message}"
    );
}
