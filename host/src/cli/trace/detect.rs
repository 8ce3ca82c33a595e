//! Detection of a file's flavor from its columns.

use veeksha_trace::Sniffed;

/// Flavors with the columns that distinguish them from the flavors after them. The first match
/// wins.
const SIGNS: [(&str, &[&[&str]]); 15] = [
    ("burstgpt", &[&["Timestamp", "Request tokens", "Response tokens"]]),
    ("azure", &[&["TIMESTAMP", "ContextTokens", "GeneratedTokens"]]),
    ("bailian", &[&["chat_id", "parent_chat_id", "input_length"]]),
    ("weka", &[&["requests", "block_size"], &["requests", "models"]]),
    ("wildchat", &[&["conversation_hash", "conversation"]]),
    ("sharegpt", &[&["conversations"]]),
    (
        "inputs_json",
        &[&["session_id", "payloads"], &["data", "payloads"]],
    ),
    ("multi_turn", &[&["turns"]]),
    ("rag", &[&["doc_id", "prompt_text"]]),
    (
        "shared_prefix",
        &[&["session_id", "new_input_length", "hash_ids"]],
    ),
    (
        "timed_synthetic_session",
        &[&["session_id", "new_input_length", "output_length"]],
    ),
    (
        "mooncake",
        &[
            &["hash_ids", "input_length"],
            &["hash_ids", "input_tokens"],
            &["messages", "output_length"],
            &["text_input"],
        ],
    ),
    (
        "request_log",
        &[
            &["input_length", "output_length"],
            &["num_prefill_tokens", "num_decode_tokens"],
        ],
    ),
    (
        "single_turn",
        &[
            &["text"],
            &["texts"],
            &["image"],
            &["images"],
            &["audio"],
            &["audios"],
            &["video"],
            &["videos"],
        ],
    ),
    ("untimed_content_multi_turn", &[&["conversation"], &["messages"]]),
];

/// Result of the detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detection {
    /// The flavor that reads the file.
    Flavor(&'static str),
    /// Lengths with a `timestamp`, which `request_log` reads as seconds and `mooncake` as
    /// milliseconds.
    SecondsOrMilliseconds,
    /// No known flavor matches.
    Nothing,
}

/// Detects the flavor of a file from its columns.
pub(super) fn flavor(sniffed: &Sniffed) -> Detection {
    let has = |name: &&str| sniffed.columns.iter().any(|column| column == name);
    let found = SIGNS
        .iter()
        .find(|(_, signs)| signs.iter().any(|columns| columns.iter().all(has)));
    match found {
        Some(("request_log", _)) if has(&"timestamp") => Detection::SecondsOrMilliseconds,
        Some((flavor, _)) => Detection::Flavor(flavor),
        None => Detection::Nothing,
    }
}
