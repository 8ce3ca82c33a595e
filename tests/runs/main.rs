//! Real runs, seen from outside.
