//! Loading tokenizers: valid files, and error messages.

use veeksha_prompt::{Materializer, PromptError, Tokenizer};

/// The smallest useful file: one token per word, words split at spaces.
fn word_level(words: &[String]) -> String {
    let vocabulary: Vec<String> = words
        .iter()
        .enumerate()
        .map(|(id, word)| format!("{word:?}:{id}"))
        .collect();
    let vocabulary = vocabulary.join(",");
    format!(
        r#"{{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
        "pre_tokenizer":{{"type":"WhitespaceSplit"}},"post_processor":null,"decoder":null,
        "model":{{"type":"WordLevel","vocab":{{{vocabulary}}},"unk_token":"one"}}}}"#
    )
}

#[test]
fn embedded_tokenizer_matches_the_library() {
    let tokenizer = Tokenizer::embedded().unwrap();
    assert_eq!((tokenizer.name(), tokenizer.vocabulary()), ("embedded", 9216));
    assert_eq!(tokenizer.count(""), 0);
    // Every byte is a token, so no text is refused.
    assert_eq!(tokenizer.count("\u{1F600}"), 4);
    assert_eq!(tokenizer.count("<|endoftext|>"), 1);
    let bytes = include_bytes!("../tokenizer/tokenizer.json");
    assert_eq!(tokenizer.fingerprint(), blake3::hash(bytes).to_hex().to_string());
}

#[test]
fn loads_file_or_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokenizer.json");
    std::fs::write(&file, word_level(&["one".into(), "two".into()])).unwrap();
    let (by_file, by_folder) = (
        Tokenizer::load(&file).unwrap(),
        Tokenizer::load(folder.path()).unwrap(),
    );
    assert_eq!(
        (by_file.count("two one two"), by_folder.count("two one two")),
        (3, 3)
    );
    assert_eq!(by_file.fingerprint(), by_folder.fingerprint());
    assert_eq!(by_folder.name(), folder.path().display().to_string());
}

#[test]
fn names_missing_and_broken_files() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Tokenizer::load(folder.path()).unwrap_err();
    assert!(matches!(missing, PromptError::Missing { .. }));
    let message = missing.to_string();
    assert!(
        message.contains(&folder.path().display().to_string()) && message.contains("tokenizer.json"),
        "{message}"
    );

    let file = folder.path().join("tokenizer.json");
    for broken in [
        "",
        "{",
        "[]",
        "{\"version\":\"1.0\"}",
        "\u{0}\u{1}",
        "{\"model\":{\"type\":\"Magic\"}}",
    ] {
        std::fs::write(&file, broken).unwrap();
        let error = Tokenizer::load(&file).unwrap_err();
        assert!(
            matches!(error, PromptError::Corrupt { .. }),
            "{broken:?}: {error}"
        );
        assert!(error.to_string().contains(&file.display().to_string()), "{error}");
    }
    std::fs::write(&file, word_level(&[])).unwrap();
    assert!(Tokenizer::load(&file).unwrap_err().to_string().contains("empty"));
    // Truncated anywhere, the embedded file gives an error and never a panic.
    let whole = include_bytes!("../tokenizer/tokenizer.json");
    for cut in (0..whole.len() - 2).step_by(whole.len() / 40) {
        assert!(matches!(
            Tokenizer::from_bytes(&whole[..cut], "cut"),
            Err(PromptError::Corrupt { .. })
        ));
    }
}

#[test]
fn refuses_vocabulary_without_words() {
    let words: Vec<String> = ('a'..='z')
        .map(|letter| format!("{letter}{letter}{letter}"))
        .collect();
    let tokenizer = Tokenizer::from_bytes(word_level(&words).as_bytes(), "alphabet").unwrap();
    let error = Materializer::new(tokenizer).unwrap_err();
    assert!(
        matches!(
            error,
            PromptError::FewWords {
                found: 26,
                needed: 32,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("another model"), "{error}");
}
