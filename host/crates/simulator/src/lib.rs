//! A pure model of an inference engine and its HTTP face.
#![forbid(unsafe_code)]
