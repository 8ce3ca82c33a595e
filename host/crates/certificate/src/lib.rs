//! The certificate of a run: the accuracy of its metrics.
//!
//! [`certify`] takes an [`Evaluation`](veeksha_metrics::Evaluation) and returns a [`Certificate`]:
//! an [`ErrorBound`] for each metric that has one, [`CertFinding`]s, and the worst [`Verdict`]
//! among them. [`compare`] measures the same errors against a server whose own times are known (a
//! self-test).
//!
//! The error estimates themselves ([`ErrorEstimate`](veeksha_metrics::ErrorEstimate)) come with the
//! evaluation: they need every chunk of every request, which only the evaluator's single pass over
//! the events sees.
#![forbid(unsafe_code)]

mod bound;
mod certificate;
mod conditions;
mod findings;
mod json;
mod self_test;
mod tokens;
mod verdict;

pub use bound::{ENOUGH, ErrorBound, ErrorSource, FINEST};
pub use certificate::{Basis, Certificate, certify};
pub use conditions::{RunConditions, ThreadConditions, ThreadPriority};
pub use self_test::{ErrorDistribution, ReferenceRequest, SelfTest, compare};
pub use tokens::{PromptDoubt, TokenDoubt};
pub use verdict::{CertFinding, Thresholds, Verdict};
