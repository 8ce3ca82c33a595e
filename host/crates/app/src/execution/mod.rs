//! Plans, and their execution in real and in virtual time.

pub(crate) mod cache_accounting;
pub(crate) mod client_cache;
pub(crate) mod collect;
pub(crate) mod drive;
pub(crate) mod kept_answers;
pub(crate) mod mode;
pub(crate) mod pipeline_plan;
pub(crate) mod plan;
pub(crate) mod prefix_tracking;
pub(crate) mod run;
pub(crate) mod self_test;
pub(crate) mod thread_watch;
pub(crate) mod wiring;
