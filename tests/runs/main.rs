//! Real runs from outside: sockets, files, exit codes.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test printed what is wrong by panicking"
)]

#[path = "../support/skip.rs"]
mod skip;
#[path = "../support/mod.rs"]
mod support;

mod arrivals;
mod bundles;
mod cache_accounting;
mod cancellations;
mod certificate;
mod clients;
mod compare;
mod complete_messages;
mod connections;
mod critical_path;
mod decisions;
mod dev;
mod doctor;
mod documented;
mod documents;
mod edges;
mod endpoints;
mod evaluate;
mod faults;
mod groups;
mod guests;
mod headers;
mod health;
mod interrupts;
mod js_projects;
mod languages;
mod limits;
mod live;
mod llama;
mod objectives;
mod other_tools;
mod output;
mod page;
mod plugin_policies;
mod plugin_tools;
mod profiles;
mod published;
mod python_projects;
mod quickstart;
mod recording_server;
mod records;
mod registry;
mod repeated;
mod replay;
mod reports;
mod results;
mod rust_projects;
mod secrets;
mod server;
mod simulated;
mod soak;
mod subagents;
mod sweeps;
mod token_counts;
mod tools;
mod trace_content;
mod traces;
mod truth;
mod veeksha_script;
mod virtual_time;
mod whole_answers;
