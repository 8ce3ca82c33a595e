//! Capabilities of a plugin, and the errors for those that were not granted.

use std::fs;
use std::sync::Arc;

use veeksha_model::Segment;
use veeksha_ports::PluginFailureKind;
use veeksha_wasm::{EngineLimits, Grants, LogLevel, PluginTokenizer};

use crate::support::{Kept, behaving, grants, load, only_label, planned, tight};

struct Words;

impl PluginTokenizer for Words {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        Ok(text.split(' ').map(|word| word.len() as u32).collect())
    }

    fn vocabulary(&self) -> u32 {
        32_000
    }
}

struct Refusing;

impl PluginTokenizer for Refusing {
    fn encode(&self, _text: &str) -> Result<Vec<u32>, String> {
        Err("`t.json`: no token for the unknown".to_owned())
    }

    fn vocabulary(&self) -> u32 {
        1
    }
}

#[test]
fn text_without_tokens_is_a_trap_and_not_empty() {
    let plugin = load(tight(), "hostile-sessions");
    for (behaviour, function) in [("tokens", "count"), ("encode", "encode")] {
        let given = Grants {
            tokens: Some(Arc::new(Refusing)),
            ..grants()
        };
        let config = format!(r#"{{"behaviour": "{behaviour}"}}"#);
        let failure = planned(&plugin, &config, given).sessions(0, 1).unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Trap);
        assert_eq!(
            failure.message,
            format!("tokens: `{function}` has no result: `t.json`: no token for the unknown")
        );
    }
}

#[test]
fn tokens_need_a_grant() {
    let failure = behaving(tight(), "tokens").sessions(0, 1).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(
        failure.message,
        "tokens: not granted (this run does not grant the plugin a tokenizer)"
    );
    assert!(
        failure
            .frames
            .iter()
            .any(|frame| frame.function.contains("sessions")),
        "{failure}"
    );
}

#[test]
fn granted_tokens_are_counted() {
    let plugin = load(tight(), "hostile-sessions");
    let given = Grants {
        tokens: Some(Arc::new(Words)),
        ..grants()
    };
    let mut source = planned(&plugin, r#"{"behaviour": "tokens"}"#, given);
    let session = source.sessions(0, 1).unwrap().remove(0);
    assert_eq!(
        session.requests[0].node.0, 3,
        "\"how many tokens?\" has three words"
    );
    assert_eq!(only_label(&session), 32_000);
}

#[test]
fn a_text_is_encoded_and_sent_as_token_ids() {
    let plugin = load(tight(), "hostile-sessions");
    let given = Grants {
        tokens: Some(Arc::new(Words)),
        ..grants()
    };
    let mut source = planned(&plugin, r#"{"behaviour": "encode"}"#, given);
    let session = source.sessions(0, 1).unwrap().remove(0);
    assert_eq!(
        session.requests[0].messages[0].content,
        [Segment::TokenIds(vec![3, 4, 7])],
        "the length of each word in \"how many tokens?\""
    );
}

#[test]
fn refuses_to_count_a_text_beyond_the_limit() {
    let plugin = load(tight(), "hostile-sessions");
    let given = Grants {
        tokens: Some(Arc::new(Words)),
        ..grants()
    };
    let mut source = planned(&plugin, r#"{"behaviour": "long-text"}"#, given);
    let failure = source.sessions(0, 1).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(
        failure.message,
        "tokens: a text of 1,500,000 bytes passed to `count`, at most 1,048,576 are allowed; pass it in parts"
    );
}

#[test]
fn granted_capabilities_are_those_imported_and_given() {
    let plugin = load(tight(), "hostile-sessions");
    assert_eq!(plugin.imports(), ["blobs", "log", "random", "tokens"]);
    let granted = |grants: Grants| {
        plugin
            .workload("{}".into(), grants)
            .unwrap()
            .info()
            .granted
            .clone()
    };
    assert_eq!(granted(grants()), ["log", "random"]);
    assert_eq!(
        granted(Grants {
            tokens: Some(Arc::new(Words)),
            ..grants()
        }),
        ["log", "random", "tokens"]
    );
    let blobs = [("data".to_owned(), "data.bin".into())].into();
    assert_eq!(granted(Grants { blobs, ..grants() }), ["blobs", "log", "random"]);
}

#[test]
fn a_granted_file_can_be_read_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any name.bin");
    fs::write(&path, "0123456789").unwrap();
    let plugin = load(tight(), "hostile-sessions");
    let blobs = [("data".to_owned(), path)].into();
    let mut source = planned(&plugin, r#"{"behaviour": "blob"}"#, Grants { blobs, ..grants() });
    let body = source
        .sessions(0, 1)
        .unwrap()
        .remove(0)
        .requests
        .remove(0)
        .body
        .unwrap();
    let read: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        read,
        serde_json::json!({ "text": "0123456789", "size": 10, "beyond": 0, "other": "not-granted" })
    );
}

#[test]
fn files_need_a_grant() {
    let failure = behaving(tight(), "blob").sessions(0, 1).unwrap_err();
    assert_eq!(failure.message, "the file `data` is not granted");
    let PluginFailureKind::Refused { code, hint, .. } = &failure.kind else {
        panic!("{failure}");
    };
    assert_eq!(code, "not-granted");
    assert!(hint.as_deref().unwrap().contains("blob:read data"), "{hint:?}");
}

#[test]
fn a_granted_file_that_is_gone_is_an_error_not_a_trap() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = load(tight(), "hostile-sessions");
    // Opening a pipe without a writer must not block.
    let pipe = folder.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for path in [folder.path().join("gone"), folder.path().to_owned(), pipe] {
        let blobs = [("data".to_owned(), path)].into();
        let mut source = planned(&plugin, r#"{"behaviour": "blob"}"#, Grants { blobs, ..grants() });
        let failure = source.sessions(0, 1).unwrap_err();
        assert!(
            matches!(&failure.kind, PluginFailureKind::Refused { code, .. } if code == "unreadable"),
            "{failure}"
        );
    }
}

#[test]
fn handles_are_bounded() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let plugin = load(tight(), "hostile-sessions");
    let blobs = [("data".to_owned(), file.path().to_owned())].into();
    let mut source = planned(
        &plugin,
        r#"{"behaviour": "handles"}"#,
        Grants { blobs, ..grants() },
    );
    assert_eq!(source.sessions(0, 1).unwrap_err().kind, PluginFailureKind::Trap);
}

#[test]
fn random_words_are_bounded_per_call() {
    let failure = behaving(tight(), "words").sessions(0, 1).unwrap_err();
    assert_eq!(
        failure.message,
        "random: 65,537 words requested in one call, at most 65,536 are allowed"
    );
}

#[test]
fn a_flood_of_lines_is_cut_and_counted() {
    let plugin = load(EngineLimits::default(), "hostile-sessions");
    let log = Arc::new(Kept::default());
    let mut source = planned(
        &plugin,
        r#"{"behaviour": "log-flood"}"#,
        Grants {
            log: log.clone(),
            ..grants()
        },
    );
    for round in 1..=2 {
        source.sessions(0, 1).unwrap();
        let lines = log.lines();
        assert_eq!(lines.len(), round * 257);
        assert_eq!(
            lines[lines.len() - 2],
            ("hostile-sessions".into(), LogLevel::Info, "line 255".into())
        );
        let last = "99,744 more lines of one call were not logged";
        assert_eq!(
            lines[lines.len() - 1],
            ("hostile-sessions".into(), LogLevel::Warn, last.into())
        );
    }
}

#[test]
fn a_long_line_is_cut() {
    let plugin = load(tight(), "hostile-sessions");
    let log = Arc::new(Kept::default());
    let mut source = planned(
        &plugin,
        r#"{"behaviour": "log-long"}"#,
        Grants {
            log: log.clone(),
            ..grants()
        },
    );
    source.sessions(0, 1).unwrap();
    assert_eq!(log.lines()[0].2.chars().count(), 4097);
}
