//! Tokenizers of every kind, trained here: small, local, and similar to the ones that models ship.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Value, json};
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::unigram::{Unigram, UnigramTrainer};
use tokenizers::models::wordpiece::{WordPiece, WordPieceTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{
    AddedToken, DecoderWrapper, Model, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper,
    TokenizerBuilder, Trainer,
};
use veeksha_model::Seed;
use veeksha_prompt::{Materializer, Tokenizer};

/// A tokenizer and its expected properties.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) tokenizer: Tokenizer,
    /// The same tokenizer in the library, without truncation.
    pub(crate) raw: tokenizers::Tokenizer,
    /// True if the structure of the vocabulary proves lengths.
    pub(crate) proven: bool,
}

impl Kind {
    /// Returns the same tokenizer with control tokens added, as in chat models.
    pub(crate) fn with_control_tokens(&self, names: &[&str]) -> Kind {
        let mut raw = self.raw.clone();
        raw.add_special_tokens(&special(names));
        let name = format!("{} with control tokens", self.name);
        let json = raw.to_string(false).unwrap();
        Kind {
            tokenizer: Tokenizer::from_bytes(json.as_bytes(), &name).unwrap(),
            name,
            raw,
            proven: self.proven,
        }
    }
}

/// Returns all kinds; trained once.
pub(crate) fn kinds() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let embedded = include_bytes!("../../tokenizer/tokenizer.json");
        let kinds = [
            ("embedded", embedded.to_vec(), true),
            ("byte-level BPE with Llama 3's pattern", byte_level(), true),
            (
                "SentencePiece BPE without a pre-tokenizer, as Llama 2",
                sentencepiece_bpe(),
                true,
            ),
            (
                "SentencePiece BPE with metaspace, as Mistral",
                metaspace_bpe(),
                true,
            ),
            ("Unigram with metaspace, as T5", unigram(), true),
            ("WordPiece, as BERT", word_piece(), true),
            ("BPE with tokens of two words, as SuperBPE", superword_bpe(), true),
            (
                "BPE with tokens that end and begin in the middle of words",
                crossing_bpe(),
                false,
            ),
        ];
        let kind = |(name, bytes, proven): (&'static str, Vec<u8>, bool)| {
            let mut raw = tokenizers::Tokenizer::from_bytes(&bytes).unwrap();
            raw.with_truncation(None).unwrap();
            Kind {
                name: name.to_string(),
                tokenizer: Tokenizer::from_bytes(&bytes, name).unwrap(),
                raw,
                proven,
            }
        };
        kinds.into_iter().map(kind).collect()
    })
}

/// English-like sentences of the embedded vocabulary's words, with punctuation, line ends, capitals
/// and numbers.
fn corpus() -> Vec<String> {
    let words = Materializer::new(Tokenizer::embedded().unwrap()).unwrap();
    let sentence = |seed: u64| {
        let text = words.text(Seed::from(seed), 12);
        match seed % 4 {
            0 => format!("{text}."),
            1 => format!("{text}, {seed}!"),
            2 => format!("\"{text}\"\n{text}?"),
            _ => format!("The {text}: (of the) {text}"),
        }
    };
    (0..4000).map(|seed| sentence(seed % 1500)).collect()
}

/// Trains a model and returns the tokenizer's JSON.
fn train<T>(model: T::Model, mut trainer: T, normalizer: &Value, pre_tokenizer: &Value) -> Value
where
    T: Trainer + Sync,
    T::Model: Serialize + Send + Sync + Model,
{
    let normalizer: Option<NormalizerWrapper> = serde_json::from_value(normalizer.clone()).unwrap();
    let pre_tokenizer: Option<PreTokenizerWrapper> = serde_json::from_value(pre_tokenizer.clone()).unwrap();
    let mut tokenizer = TokenizerBuilder::<T::Model, _, _, PostProcessorWrapper, DecoderWrapper>::new()
        .with_model(model)
        .with_normalizer(normalizer)
        .with_pre_tokenizer(pre_tokenizer)
        .build()
        .unwrap();
    tokenizer.train(&mut trainer, corpus().into_iter()).unwrap();
    serde_json::to_value(&tokenizer).unwrap()
}

fn bytes(json: &Value) -> Vec<u8> {
    serde_json::to_vec(json).unwrap()
}

fn special(names: &[&str]) -> Vec<AddedToken> {
    names.iter().map(|name| AddedToken::from(*name, true)).collect()
}

fn bpe_trainer(names: &[&str], size: usize) -> BpeTrainer {
    BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(size)
        .special_tokens(special(names))
        .build()
}

fn byte_level() -> Vec<u8> {
    let pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let pre_tokenizer = json!({ "type": "Sequence", "pretokenizers": [
        { "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false },
        { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false },
    ]});
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(6000)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .special_tokens(special(&["<|begin_of_text|>", "<|eot_id|>"]))
        .build();
    let mut json = train(BPE::default(), trainer, &Value::Null, &pre_tokenizer);
    // Like Llama 3: begins with a control token when special tokens are requested, which a count
    // must not do; and like files saved by a training script: truncated at 16 tokens.
    json["post_processor"] = json!({ "type": "TemplateProcessing",
        "single": [{ "SpecialToken": { "id": "<|begin_of_text|>", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
        "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
        "special_tokens": { "<|begin_of_text|>": { "id": "<|begin_of_text|>", "ids": [0], "tokens": ["<|begin_of_text|>"] } } });
    json["truncation"] =
        json!({ "direction": "Right", "max_length": 16, "strategy": "LongestFirst", "stride": 0 });
    bytes(&json)
}

fn metaspace() -> Value {
    json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true })
}

fn metaspace_bpe() -> Vec<u8> {
    bytes(&train(
        BPE::default(),
        bpe_trainer(&["<unk>", "<s>", "</s>"], 4000),
        &Value::Null,
        &metaspace(),
    ))
}

fn sentencepiece_bpe() -> Vec<u8> {
    let mut json = train(
        BPE::default(),
        bpe_trainer(&["<unk>", "<s>", "</s>"], 4000),
        &Value::Null,
        &metaspace(),
    );
    json["pre_tokenizer"] = Value::Null;
    json["normalizer"] = json!({ "type": "Sequence", "normalizers": [
        { "type": "Prepend", "prepend": "▁" },
        { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
    ]});
    bytes(&json)
}

/// Llama 2's structure, with 900 merges of two whole words added.
fn superword_bpe() -> Vec<u8> {
    let mut json: Value = serde_json::from_slice(&sentencepiece_bpe()).unwrap();
    let vocabulary = json["model"]["vocab"].as_object_mut().unwrap();
    let first = vocabulary.len();
    let whole = |token: &&String| token.starts_with('▁') && token.len() >= 8;
    let words: Vec<String> = vocabulary.keys().filter(whole).take(30).cloned().collect();
    let mut merges = Vec::new();
    let pairs = words
        .iter()
        .flat_map(|left| words.iter().map(move |right| (left, right)));
    for (id, (left, right)) in (first..).zip(pairs) {
        vocabulary.insert(format!("{left}{right}"), json!(id));
        merges.push(json!([left, right]));
    }
    json["model"]["merges"].as_array_mut().unwrap().extend(merges);
    bytes(&json)
}

fn crossing_bpe() -> Vec<u8> {
    let normalizer = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "▁" });
    // A pre-tokenizer that splits three words at a time allows merges across spaces; encoding then
    // uses none.
    let split = json!({ "type": "Split", "pattern": { "Regex": "(▁?[^▁]+){1,3}" }, "behavior": "Isolated", "invert": false });
    let mut json = train(
        BPE::default(),
        bpe_trainer(&["<unk>", "</s>"], 8000),
        &normalizer,
        &split,
    );
    json["pre_tokenizer"] = Value::Null;
    bytes(&json)
}

fn unigram() -> Vec<u8> {
    let trainer = UnigramTrainer::builder()
        .show_progress(false)
        .vocab_size(3000)
        .special_tokens(special(&["<pad>", "</s>", "<unk>"]))
        .unk_token(Some("<unk>".to_string()))
        .build()
        .unwrap();
    let scheme =
        json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true });
    bytes(&train(Unigram::default(), trainer, &Value::Null, &scheme))
}

fn word_piece() -> Vec<u8> {
    let trainer = WordPieceTrainer::builder()
        .show_progress(false)
        .vocab_size(6000)
        .special_tokens(special(&["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
        .build();
    let normalizer = json!({ "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true });
    bytes(&train(
        WordPiece::default(),
        trainer,
        &normalizer,
        &json!({ "type": "BertPreTokenizer" }),
    ))
}
