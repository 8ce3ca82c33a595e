//! Parsing of YAML: accepted files, error messages, robustness.
#![expect(
    clippy::unwrap_used,
    reason = "outside a test function the configuration does not know that this is a test"
)]

mod common;

use common::generators;
use proptest::prelude::*;
use veeksha_scenario::{Document, Node, Value};

fn read(yaml: &str) -> Node {
    Document::from_yaml(yaml, "s.yml").unwrap().root
}

fn refused(yaml: &str) -> String {
    Document::from_yaml(yaml, "s.yml").unwrap_err().to_string()
}

fn int(node: &Node, path: &[&str]) -> Option<i64> {
    let found = path.iter().try_fold(node, |node, key| node.get(key))?;
    match found.value {
        Value::Int(value) => Some(value),
        _ => None,
    }
}

#[test]
fn values_have_the_lines_of_their_keys() {
    let root = read("a: 1\nb:\n  - x\n  -\n    c: 2\n");
    let line = |node: &Node| node.place.as_ref().unwrap().line;
    assert_eq!(line(root.get("a").unwrap()), 1);
    let list = root.get("b").unwrap();
    assert_eq!(line(list), 2);
    let Value::List(items) = &list.value else {
        panic!("a list")
    };
    assert_eq!(line(&items[0]), 3);
    assert_eq!(line(items[1].get("c").unwrap()), 5);
}

#[test]
fn json_and_empty_texts_are_scenarios() {
    assert_eq!(int(&read("{\"a\": {\"b\": 3}}"), &["a", "b"]), Some(3));
    assert_eq!(int(&read("\u{feff}a: 3"), &["a"]), Some(3));
    for empty in ["", "\n", "# only a comment\n", "---\n", "null", "{}"] {
        assert_eq!(read(empty).value, Value::Map(Vec::new()), "{empty:?}");
    }
}

#[test]
fn anchors_and_merged_tables() {
    let root =
        read("base: &base {a: 1, b: 2}\none:\n  <<: *base\n  b: 3\nmany:\n  <<: [*base, {a: 9, c: 4}]\n");
    assert_eq!(int(&root, &["one", "a"]), Some(1));
    // A table's entries override merged ones, and earlier sources override later ones (YAML's merge
    // key).
    assert_eq!(int(&root, &["one", "b"]), Some(3));
    assert_eq!(int(&root, &["many", "a"]), Some(1));
    assert_eq!(int(&root, &["many", "c"]), Some(4));
}

#[test]
fn refuses_unsupported_yaml() {
    for (yaml, message) in [
        (
            "a: 1\nb: 2\na: 3",
            "s.yml:3: the key `a` is a duplicate; the first is on line 1",
        ),
        (
            "x:\n  a: 1\n  'a': 3",
            "s.yml:3: the key `a` is a duplicate; the first is on line 2",
        ),
        (
            "a: 1\n---\nb: 2",
            "s.yml:2: a second document begins here; a scenario is one document, and several scenarios are a list",
        ),
        (
            "a: &x [*x]",
            "s.yml:1: this alias is inside the value that it refers to",
        ),
        (
            "? [1, 2]\n: 3",
            "s.yml:1: a key must be a single word, not a list or a table",
        ),
        ("~: 3", "s.yml:1: a key is missing before the colon"),
        ("a: !env HOME", "s.yml:1: the tag `!env` is unknown; remove it"),
        (
            "a: !expnd [1, 2]",
            "s.yml:1: the tag `!expnd` is unknown; did you mean `!expand`?",
        ),
        (
            "a:\n  <<: !Included x.yml",
            "s.yml:2: the tag `!Included` is unknown; did you mean `!include`?",
        ),
        ("a: !!int x", "s.yml:1: `x` does not match its tag `!!int`"),
        (
            "a: !!set {b}",
            "s.yml:1: the tag `tag:yaml.org,2002:set` is unknown; remove it",
        ),
        ("a:\n  <<: 5", "s.yml:2: `<<` takes a table, or a list of tables"),
    ] {
        assert_eq!(refused(yaml), message);
    }
}

#[test]
fn invalid_yaml_names_the_line() {
    for (yaml, start) in [
        ("a: [1, 2\n", "s.yml:2: not valid YAML: "),
        ("a: 1\n b: 2", "s.yml:2: not valid YAML: "),
        ("a: 1\nb: 'x", "s.yml:2: not valid YAML: "),
        ("a: *nowhere", "s.yml:1: not valid YAML: "),
    ] {
        let message = refused(yaml);
        assert!(message.starts_with(start), "{message}");
    }
}

#[test]
fn limits_alias_expansion() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let before = format!("*a{}", level - 1);
        laughs.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            vec![before; 10].join(", ")
        ));
    }
    let message = refused(&laughs);
    assert!(
        message
            .contains("the scenario has more than a million values, its aliases and included files expanded"),
        "{message}"
    );

    // The parser limits the nesting of brackets.
    assert!(refused(&"[".repeat(100_000)).starts_with("s.yml:1: "));
    assert!(refused(&format!("a: {}", "{b: ".repeat(200))).ends_with("values are nested more than 96 deep"));

    let mut deep = "a0: &a0 [x]\n".to_owned();
    for level in 1..200 {
        deep.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(refused(&deep).ends_with("values are nested more than 96 deep"));

    let long = format!("a: {}", "x".repeat(11 * 1024 * 1024));
    assert_eq!(
        refused(&long),
        "s.yml: 11534339 bytes exceed the limit of 10 MiB for a scenario"
    );
}

#[test]
fn shortens_long_values_in_messages() {
    let yaml = format!("seed: '{}\\t'", "x".repeat(200));
    let problems = Document::from_yaml(&yaml, "s.yml")
        .unwrap()
        .check(&generators())
        .unwrap_err();
    assert_eq!(
        problems.to_string(),
        format!(
            "s.yml:1: seed: expected a whole number, got the text `{}...`",
            "x".repeat(60)
        )
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        check(&text)?;
    }

    /// Texts made of YAML's special characters reach deeper than random ones.
    #[test]
    fn yaml_like_text_does_not_panic(
        text in "([ \n\t:,&*!|>'\"%@`{}\\[\\]?~#<=-]|a|type|lua|<<|\\.nan|&a |\\*a|!!|9{1,25}|- |: |\n  ){0,60}"
    ) {
        check(&text)?;
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    /// Setting any path to any value in any scenario succeeds or is refused, without a panic.
    #[test]
    fn arbitrary_overrides_do_not_panic(
        path in "(seed|runtime|evaluators|client|headers|session_generator|channels|x|\\.|\\[|\\]|0|1|[ -~]){0,12}",
        value in "\\PC{0,20}|[\\[\\]{}'\":, a-z0-9]{0,20}",
    ) {
        let mut document = Document::from_yaml("evaluators: [{type: performance}]\nclient: {model: m}", "s.yml").unwrap();
        if document.set(&path, &value).is_ok() {
            let _ = document.check(&generators());
        }
    }
}

/// Checks the text if it is read, and writes and reads it again if it is valid.
fn check(text: &str) -> Result<(), TestCaseError> {
    let Ok(document) = Document::from_yaml(text, "s.yml") else {
        return Ok(());
    };
    match document.check(&generators()) {
        Ok(scenario) => {
            let again = Document::from_yaml(&scenario.to_yaml(), "config.yml")
                .map(|again| again.check(&generators()));
            prop_assert!(matches!(again, Ok(Ok(_))), "{}", scenario.to_yaml());
        }
        Err(problems) => prop_assert!(!problems.0.is_empty() && !problems.to_string().is_empty()),
    }
    Ok(())
}
