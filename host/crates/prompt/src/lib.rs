//! Tokenizers, materialising segments into exact text, token counts.
#![forbid(unsafe_code)]
