//! Tokenizers: loading, encoding, counting.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use tokenizers::models::bpe::BPE;
use tokenizers::{
    DecoderWrapper, Model, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, TokenizerImpl,
};

use crate::error::PromptError;
use crate::{embedded, file};

/// The type of most tokenizers, whose files are parsed fastest; see [`parse`].
type BpeTokenizer =
    TokenizerImpl<BPE, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Maximum size of a `tokenizer.json`; the largest known have some 35 MiB.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// A Hugging Face tokenizer. Clones share it.
#[derive(Clone, Debug)]
pub struct Tokenizer(Arc<LoadedTokenizer>);

#[derive(Debug)]
struct LoadedTokenizer {
    tokenizer: tokenizers::Tokenizer,
    name: String,
    fingerprint: String,
    vocabulary: u32,
    origin: TokenizerOrigin,
}

/// The source of a tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenizerOrigin {
    /// The tokenizer inside the binary, whose words are known.
    Embedded,
    /// Any other tokenizer.
    Given,
}

impl Tokenizer {
    /// Returns the small tokenizer inside the binary, named `embedded`.
    pub fn embedded() -> Result<Self, PromptError> {
        Tokenizer::read(embedded::TOKENIZER, "embedded", TokenizerOrigin::Embedded)
    }

    /// Loads a `tokenizer.json`, or a folder that contains one. Its name is the path.
    pub fn load(path: &Path) -> Result<Self, PromptError> {
        let source_file = if path.is_dir() {
            path.join("tokenizer.json")
        } else {
            path.to_path_buf()
        };
        let bytes = file::read(&source_file, MAX_FILE_BYTES).map_err(|source| match source.kind() {
            ErrorKind::NotFound => PromptError::Missing {
                path: path.to_path_buf(),
            },
            _ => PromptError::Unreadable {
                path: source_file.clone(),
                source,
            },
        })?;
        Tokenizer::from_bytes(&bytes, &path.display().to_string())
    }

    /// Parses the bytes of a `tokenizer.json` under the given name.
    pub fn from_bytes(bytes: &[u8], name: &str) -> Result<Self, PromptError> {
        Tokenizer::read(bytes, name, TokenizerOrigin::Given)
    }

    fn read(bytes: &[u8], name: &str, origin: TokenizerOrigin) -> Result<Self, PromptError> {
        let corrupt = |reason: String| PromptError::Corrupt {
            name: name.to_string(),
            reason,
        };
        let mut tokenizer = parse(bytes).map_err(corrupt)?;
        // A file may configure truncation or padding, neither of which may affect a count.
        tokenizer
            .with_truncation(None)
            .map_err(|error| corrupt(error.to_string()))?;
        tokenizer.with_padding(None);
        let vocabulary = vocabulary(&tokenizer);
        if vocabulary == 0 {
            return Err(corrupt("its vocabulary is empty".to_string()));
        }
        let fingerprint = blake3::hash(bytes).to_hex().to_string();
        Ok(Tokenizer(Arc::new(LoadedTokenizer {
            tokenizer,
            name: name.to_string(),
            fingerprint,
            vocabulary,
            origin,
        })))
    }

    /// Returns the number of tokens of a text, without special tokens added by the post-processor.
    /// A text that the tokenizer refuses counts 0.
    pub fn count(&self, text: &str) -> u32 {
        self.encode(text).map_or(0, |ids| ids.len() as u32)
    }

    /// Returns the size of the vocabulary, including added tokens.
    pub fn vocabulary(&self) -> u32 {
        self.0.vocabulary
    }

    /// Returns the path it was loaded from, or `embedded`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the BLAKE3 digest of the `tokenizer.json` in hex.
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint.clone()
    }

    /// Returns the ids of a text, without special tokens added by the post-processor.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        let encoding = self
            .0
            .tokenizer
            .encode_fast(text, false)
            .map_err(|error| PromptError::Encode {
                name: self.0.name.clone(),
                reason: error.to_string(),
            })?;
        Ok(encoding.get_ids().to_vec())
    }

    pub(crate) fn origin(&self) -> TokenizerOrigin {
        self.0.origin
    }

    /// Returns true if the tokenizer's post-processor puts this token before every text.
    pub(crate) fn begins_with(&self, token: &str) -> bool {
        let first = self.0.tokenizer.encode_fast("", true).ok();
        let first = first.and_then(|encoding| encoding.get_ids().first().copied());
        first.is_some() && first == self.0.tokenizer.token_to_id(token)
    }

    /// Returns the end of each token in bytes of the text, ascending, without special tokens added
    /// by the post-processor.
    pub fn ends(&self, text: &str) -> Result<Vec<usize>, PromptError> {
        let encoding = self
            .0
            .tokenizer
            .encode(text, false)
            .map_err(|error| PromptError::Encode {
                name: self.0.name.clone(),
                reason: error.to_string(),
            })?;
        let mut ends: Vec<usize> = encoding.get_offsets().iter().map(|(_, end)| *end).collect();
        ends.sort_unstable();
        Ok(ends)
    }

    /// Like [`Tokenizer::count`], but a refusal is an error.
    pub(crate) fn try_count(&self, text: &str) -> Result<u32, PromptError> {
        Ok(self.encode(text)?.len() as u32)
    }

    /// Returns the tokens by id.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = (u32, String)> {
        (0..self.0.vocabulary).filter_map(|id| self.0.tokenizer.id_to_token(id).map(|token| (id, token)))
    }

    /// Returns the tokens at which every text is cut before it is encoded, so that a word before
    /// one is encoded as if it were last: control tokens that are matched regardless of their
    /// neighbors. Empty if a token begins like a word and ends otherwise, because it could be
    /// matched first.
    pub(crate) fn cuts(&self) -> Vec<String> {
        let added = self.0.tokenizer.get_added_tokens_decoder();
        let like_a_word =
            |text: &str| text.starts_with(|char: char| char.is_ascii_lowercase() || char.is_whitespace());
        if added.values().any(|token| like_a_word(&token.content)) {
            return Vec::new();
        }
        added
            .into_values()
            .filter(|token| {
                token.special && !token.normalized && !token.single_word && !token.content.is_empty()
            })
            .map(|token| token.content)
            .collect()
    }

    /// Returns the texts of tokens that are matched before anything else: control tokens and other
    /// added ones.
    pub(crate) fn added(&self) -> Vec<(u32, String)> {
        self.0
            .tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .map(|(id, token)| (id, token.content))
            .collect()
    }
}

/// Parses a `tokenizer.json`. The library parses a model of unknown kind by way of two trees of
/// values, which takes most of the time of a short run's start; BPE models, as nearly all are, are
/// parsed directly. Other models are parsed, and refused, by the library's generic way.
fn parse(bytes: &[u8]) -> Result<tokenizers::Tokenizer, String> {
    match serde_json::from_slice::<BpeTokenizer>(bytes) {
        Ok(tokenizer) => Ok(tokenizer.into()),
        Err(_) => tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| error.to_string()),
    }
}

/// Returns the number of tokens of the model, including those added to it.
fn vocabulary(tokenizer: &tokenizers::Tokenizer) -> u32 {
    let model = tokenizer.get_model();
    let added = tokenizer.get_added_tokens_decoder();
    let new = added
        .values()
        .filter(|token| model.token_to_id(&token.content).is_none());
    (model.get_vocab_size() + new.count()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_bpe_parsing_matches_the_library() {
        let of_the_library = tokenizers::Tokenizer::from_bytes(embedded::TOKENIZER).unwrap();
        let parsed = parse(embedded::TOKENIZER).unwrap();
        assert_eq!(
            parsed.to_string(false).unwrap(),
            of_the_library.to_string(false).unwrap()
        );
        assert_eq!(vocabulary(&parsed) as usize, of_the_library.get_vocab_size(true));
    }

    #[test]
    fn counts_added_tokens_once() {
        let mut tokenizer = parse(embedded::TOKENIZER).unwrap();
        let before = vocabulary(&tokenizer);
        // The first one is in the model.
        for content in ["<|endoftext|>", "<|new|>", "<|new|>"] {
            tokenizer.add_special_tokens(&[tokenizers::AddedToken::from(content, true)]);
        }
        assert_eq!(vocabulary(&tokenizer), before + 1);
        assert_eq!(vocabulary(&tokenizer) as usize, tokenizer.get_vocab_size(true));
    }

    #[test]
    fn refuses_unknown_models_with_the_library_message() {
        let text = r#"{"version":"1.0","model":{"type":"WordLevel","vocab":{"a":"b"}}}"#;
        let of_the_library = tokenizers::Tokenizer::from_bytes(text).unwrap_err().to_string();
        assert_eq!(parse(text.as_bytes()).unwrap_err(), of_the_library);
    }
}
