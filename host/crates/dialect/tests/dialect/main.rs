//! The crate as its users see it: bodies of requests, recorded and written answers, and skeletons against the parser.

mod body;
mod dialects;
mod recordings;
mod shapes;
mod skeletons;
mod support;
