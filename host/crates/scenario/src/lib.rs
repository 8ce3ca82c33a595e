//! What the user typed, checked and resolved into a plan; JSON schema; nearest-name errors.
#![forbid(unsafe_code)]
