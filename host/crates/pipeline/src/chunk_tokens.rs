//! The number of tokens in each chunk of an answer.

use veeksha_model::{ChunkKind, Response};
use veeksha_prompt::Tokenizer;

/// Tokens of each generated chunk, by the host's tokenizer: the whole text is encoded once, and a
/// token counts for the chunk that brought its last byte, so that a token that is cut by two chunks
/// counts once. `texts` are the bytes that each chunk added.
///
/// Returns `None` where that is unknown: the answer calls tools (the text of a call is not part of
/// the answer's text), a chunk has visible and reasoning text at once, or the tokenizer refuses the
/// text.
pub(crate) fn tokens_by_chunk(
    tokenizer: &Tokenizer,
    response: &Response,
    kinds: &[ChunkKind],
    texts: &[u32],
) -> Option<Vec<u32>> {
    if kinds.len() != texts.len() || kinds.contains(&ChunkKind::Tool) {
        return None;
    }
    let mut tokens = vec![0; kinds.len()];
    for (kind, text) in [
        (ChunkKind::Reasoning, &response.reasoning),
        (ChunkKind::Content, &response.text),
    ] {
        let ends = tokenizer.ends(text).ok()?;
        let mut ends = ends.into_iter().peekable();
        let mut so_far = 0;
        for place in (0..kinds.len()).filter(|place| kinds[*place] == kind) {
            so_far += texts[place] as usize;
            while ends.next_if(|end| *end <= so_far).is_some() {
                tokens[place] += 1;
            }
        }
        if so_far != text.len() || ends.next().is_some() {
            return None;
        }
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ChunkKind::{Content, Reasoning, Tool};

    fn response(reasoning: &str, text: &str) -> Response {
        Response {
            reasoning: reasoning.to_owned(),
            text: text.to_owned(),
            ..Response::default()
        }
    }

    #[test]
    fn each_token_counts_once_for_the_chunk_that_completed_it() {
        let tokenizer = Tokenizer::embedded().unwrap();
        let text = "four words of answer, then some more";
        let whole = tokenizer.count(text);
        let (first, rest) = text.split_at(4);
        let (second, third) = rest.split_at(3);
        let texts = [first, second, third].map(|piece| piece.len() as u32);
        let tokens = tokens_by_chunk(&tokenizer, &response("", text), &[Content; 3], &texts).unwrap();
        assert_eq!(tokens.iter().sum::<u32>(), whole);
        // " wo" is a part of a word: the token counts for the chunk that completes it.
        assert_eq!((tokens[0], tokens[1]), (tokenizer.count("four"), 0));
    }

    #[test]
    fn reasoning_and_content_are_separate_texts() {
        let tokenizer = Tokenizer::embedded().unwrap();
        let (thought, visible) = ("let me think about it", "yes");
        let texts = [thought.len() as u32, visible.len() as u32];
        let tokens = tokens_by_chunk(
            &tokenizer,
            &response(thought, visible),
            &[Reasoning, Content],
            &texts,
        );
        assert_eq!(
            tokens,
            Some(vec![tokenizer.count(thought), tokenizer.count(visible)])
        );
    }

    #[test]
    fn unknown_chunk_tokens_are_not_guessed() {
        let tokenizer = Tokenizer::embedded().unwrap();
        let of = |kinds: &[ChunkKind], texts: &[u32]| {
            tokens_by_chunk(&tokenizer, &response("", "hello"), kinds, texts)
        };
        assert_eq!(of(&[Content], &[4]), None);
        assert_eq!(of(&[Content], &[]), None);
        assert_eq!(of(&[Content, Tool], &[5, 0]), None);
        assert_eq!(of(&[Reasoning], &[5]), None);
        assert!(of(&[Content], &[5]).is_some());
    }
}
