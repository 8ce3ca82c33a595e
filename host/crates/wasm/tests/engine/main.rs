//! The engine against real components: the fixtures of `tests/guests`, good ones and hostile ones.

mod agents;
mod cache;
mod capabilities;
mod hostile;
mod loading;
mod planned;
mod stand_ins;
mod support;
