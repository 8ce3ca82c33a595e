//! Plugins that measure custom metrics.
//!
//! A metric sees each finished request once, in the order in which they ended, and gives samples.
//! The host makes percentiles, files, plots and SLOs of them, as of built-in metrics. Here, how
//! much of an answer came in the second half of its time:
//!
//! ```
//! use veeksha_plugin::metric::{Better, Definition, Metric, Samples};
//! use veeksha_plugin::{Completion, Error, Plugin};
//!
//! struct LateShare;
//!
//! impl Plugin for LateShare {
//!     type Config = ();
//!     const NAME: &'static str = "late_share";
//!     const VERSION: &'static str = "0.1.0";
//!     const SUMMARY: &'static str = "share of chunks in the second half of an answer";
//! }
//!
//! impl Metric for LateShare {
//!     fn open(_config: ()) -> Result<Self, Error> {
//!         Ok(LateShare)
//!     }
//!
//!     fn definitions(&self) -> Vec<Definition> {
//!         let definition = "chunks after the middle of the answer's time ÷ chunks";
//!         vec![Definition::new("late_share", "1", Better::Neither, definition)]
//!     }
//!
//!     fn observe(&mut self, request: &Completion<'_>, samples: &mut Samples) {
//!         if let [first, .., last] = request.chunk_at {
//!             let middle = first + (last - first) / 2;
//!             let late = request.chunk_at.iter().filter(|at| **at > middle).count();
//!             samples.add(0, late as f64 / request.chunk_at.len() as f64);
//!         }
//!     }
//! }
//!
//! veeksha_plugin::export_metric!(LateShare);
//!
//! // The logic runs natively, so an ordinary test can check it:
//! let request = Completion { chunk_at: &[100, 110, 120, 300], ..Completion::default() };
//! let samples = veeksha_plugin::metric::observe(&mut LateShare, &[request]);
//! assert_eq!((samples[0].value, samples[0].of), (0.25, Some(0)));
//! ```

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::bindings::metric::exports::veeksha::plugin::metric as contract;
use crate::completion::{Completion, each};
use crate::frame;
use crate::plugin::Plugin;
use crate::types::Error;

pub use contract::{Better, Definition, Sample};

/// Measures metrics.
///
/// It may keep what it likes from one request to the next. How the host cuts the requests into
/// batches does not show.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a metric",
    label = "does not implement `Metric`",
    note = "write `impl Metric for {Self} {{ .. }}`; the documentation of `Metric` has a whole one"
)]
pub trait Metric: Plugin {
    /// Opens the metric.
    ///
    /// # Errors
    /// A configuration that cannot be; say where with [`Error::config`].
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// The metrics. Samples name a metric by its place here.
    fn definitions(&self) -> Vec<Definition>;

    /// Adds the samples of a request. A request without a sample adds none: missing is not 0.
    fn observe(&mut self, request: &Completion<'_>, samples: &mut Samples);

    /// Adds what can only be said at the end, with [`Samples::add_of_run`].
    fn finish(&mut self, samples: &mut Samples) {
        let _ = samples;
    }
}

impl Definition {
    /// A metric: its name in files, plots and SLOs (`[a-z][a-z0-9_]*`, at most 64 characters), its
    /// unit (`s`, `tokens`, `1` for a ratio), which way it is good, and in one line what it is and
    /// how it is computed.
    pub fn new(
        name: impl Into<String>,
        unit: impl Into<String>,
        better: Better,
        summary: impl Into<String>,
    ) -> Self {
        Definition {
            name: name.into(),
            unit: unit.into(),
            better,
            summary: summary.into(),
        }
    }
}

/// The samples of a call.
#[derive(Debug, Default)]
pub struct Samples {
    samples: Vec<Sample>,
    /// The current request.
    of: Option<u32>,
}

impl Samples {
    /// A sample of the request at hand: of the metric at this place of the definitions, finite.
    pub fn add(&mut self, metric: u32, value: f64) {
        self.add_weighted(metric, value, 1.0);
    }

    /// As [`add`](Self::add), standing for `weight` samples; more than 0 and finite.
    pub fn add_weighted(&mut self, metric: u32, value: f64, weight: f64) {
        self.samples.push(Sample {
            metric,
            value,
            weight,
            of: self.of,
        });
    }

    /// A sample of the whole run: it belongs to no request, and has no labels.
    pub fn add_of_run(&mut self, metric: u32, value: f64) {
        self.samples.push(Sample {
            metric,
            value,
            weight: 1.0,
            of: None,
        });
    }
}

/// The samples of some requests, for tests: the host's calls come to the same.
pub fn observe<T: Metric>(metric: &mut T, requests: &[Completion<'_>]) -> Vec<Sample> {
    let mut samples = Samples::default();
    for (place, request) in (0..).zip(requests) {
        samples.of = Some(place);
        metric.observe(request, &mut samples);
    }
    samples.samples
}

/// The samples of the end, for tests.
pub fn finish<T: Metric>(metric: &mut T) -> Vec<Sample> {
    let mut samples = Samples::default();
    metric.finish(&mut samples);
    samples.samples
}

/// A metric as the contract sees it.
pub struct Exported<T>(PhantomData<T>);

/// An open metric as the contract sees it.
pub struct Open<T>(RefCell<T>);

impl<T: Metric> contract::Guest for Exported<T> {
    type Collector = Open<T>;

    frame::describe!(T);
}

impl<T: Metric> contract::GuestCollector for Open<T> {
    fn open(config: String) -> Result<contract::Collector, Error> {
        let metric = frame::open(&config, T::open)?;
        Ok(contract::Collector::new(Open(RefCell::new(metric))))
    }

    fn definitions(&self) -> Vec<Definition> {
        self.0.borrow().definitions()
    }

    fn observe(&self, batch: contract::Batch) -> Result<Vec<Sample>, Error> {
        let mut metric = self.0.borrow_mut();
        let mut samples = Samples {
            samples: Vec::with_capacity(batch.session.len()),
            of: None,
        };
        each(&batch, |place, request| {
            samples.of = Some(place);
            metric.observe(request, &mut samples);
        });
        Ok(samples.samples)
    }

    fn finish(&self) -> Result<Vec<Sample>, Error> {
        Ok(finish(&mut *self.0.borrow_mut()))
    }
}

/// Makes a type that is a [`Metric`](crate::metric::Metric) the metric of this component. One
/// component may also export a request check and an SLO check.
///
/// The crate must be a `cdylib`. On other targets than WebAssembly nothing is exported, so that the
/// plugin's own tests run natively.
#[macro_export]
macro_rules! export_metric {
    ($metric:ty) => {
        $crate::__export!($metric, $crate::metric::Metric, ExportedMetric, metric);
    };
}

#[cfg(test)]
mod tests {
    use contract::{Guest, GuestCollector};

    use super::*;
    use crate::bindings::metric::veeksha::plugin::records;
    use crate::completion::{ChunkKind, Recorded, Status};
    use crate::types::Usage;

    /// Keeps what it saw, as text.
    struct Seeing {
        saw: Vec<String>,
    }

    impl Plugin for Seeing {
        type Config = ();
        const NAME: &'static str = "seeing";
        const VERSION: &'static str = "1";
        const SUMMARY: &'static str = "sees";
    }

    impl Metric for Seeing {
        fn open(_config: ()) -> Result<Self, Error> {
            Ok(Seeing { saw: Vec::new() })
        }

        fn definitions(&self) -> Vec<Definition> {
            vec![Definition::new("a", "s", Better::Less, "one")]
        }

        fn observe(&mut self, request: &Completion<'_>, samples: &mut Samples) {
            self.saw.push(format!(
                "{} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                request.node,
                request.parents,
                request.chunk_at,
                request.chunk_tokens,
                request.chunk_kind(0),
                request.labels,
                request.error_class,
                request.error_message,
                request.finish_reason
            ));
            samples.add(0, f64::from(request.node));
            if request.node == 2 {
                samples.add_weighted(1, 0.5, 3.0);
            }
        }

        fn finish(&mut self, samples: &mut Samples) {
            samples.add_of_run(0, self.saw.len() as f64);
        }
    }

    /// Three requests: one as plain as can be, one with all that a request may have, one that
    /// failed.
    fn batch() -> contract::Batch {
        const NONE: u32 = u32::MAX;
        const NEVER: u64 = (1 << 53) - 1;
        contract::Batch {
            session: vec![7, 7, 8],
            node: vec![1, 2, 3],
            session_requests: vec![1; 3],
            history_parent: vec![NONE, 1, NONE],
            wait_after_ready: vec![0; 3],
            intended_at: vec![0, 11, 0],
            held: vec![0; 3],
            dispatched_at: vec![0; 3],
            picked_up_at: vec![NEVER, 12, NEVER],
            sent_at: vec![NEVER, 13, NEVER],
            first_byte_at: vec![NEVER, 14, NEVER],
            completed_at: vec![0; 3],
            status: vec![Status::Ok, Status::Ok, Status::Failed],
            measured: vec![true, true, false],
            connection_reused: vec![false, true, false],
            retried: vec![false, true, false],
            output_tokens_from_usage: vec![false, true, false],
            chunk_tokens_known: vec![false, true, false],
            http_status: vec![NONE, 200, NONE],
            finish_reason: vec![2, 2, NONE],
            server: vec![0, 1, 0],
            target_prompt_tokens: vec![0; 3],
            prompt_tokens: vec![0; 3],
            total_prompt_tokens: vec![0; 3],
            template_tokens: vec![0; 3],
            target_output_tokens: vec![NONE, 15, NONE],
            output_tokens: vec![0, 16, 0],
            usage_prompt: vec![NONE, 17, NONE],
            usage_completion: vec![NONE, 18, NONE],
            usage_cached: vec![NONE, 19, NONE],
            usage_reasoning: vec![NONE; 3],
            ideal_cached_tokens: vec![NONE, 20, NONE],
            parents_end: vec![0, 1, 1],
            parents: vec![9],
            parent_triggers: vec![1],
            parent_delays: vec![77],
            chunks_end: vec![1, 3, 3],
            chunk_at: vec![10, 20, 30],
            chunk_tokens: vec![0, 4, 5],
            chunk_kinds: vec![1, 7, 0],
            labels_end: vec![1, 1, 3],
            label_names: vec![0, 1, 0],
            label_values: vec![1, 0, 2],
            texts: ["tier", "gold", "stop"].map(String::from).to_vec(),
            failures: vec![records::FailedRequest {
                request: 2,
                code: "timeout".into(),
                message: "too late".into(),
            }],
            connections: vec![records::NewConnection {
                request: 1,
                resolve: Some(21),
                connect: Some(22),
                tls: None,
            }],
            replays: vec![records::ReplayedRequest {
                request: 1,
                at: Some(23),
                latency: None,
                prompt_tokens: Some(24),
                output_tokens: Some(25),
            }],
            further: vec![
                records::FurtherColumn {
                    name: "cache_evicted_tokens".into(),
                    values: vec![f64::NAN, 3.0, 0.0],
                },
                records::FurtherColumn {
                    name: "response_id".into(),
                    values: vec![2.0, f64::NAN, 9.0],
                },
            ],
        }
    }

    #[test]
    fn columns_of_newer_hosts_are_found_by_name() {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        each(&batch(), |_, completion| {
            numbers.push(completion.further("cache_evicted_tokens"));
            texts.push(completion.further_text("response_id").map(str::to_owned));
            assert_eq!(completion.further("unknown"), None);
        });
        assert_eq!(numbers, [None, Some(3.0), Some(0.0)]);
        assert_eq!(texts, [Some("stop".to_owned()), None, None]);
    }

    #[test]
    fn each_request_has_its_own_part_of_the_columns() {
        let open = Open(RefCell::new(Seeing { saw: Vec::new() }));
        let samples = open.observe(batch()).unwrap();
        let given: Vec<_> = samples
            .iter()
            .map(|s| (s.metric, s.value, s.weight, s.of))
            .collect();
        assert_eq!(
            given,
            [
                (0, 1.0, 1.0, Some(0)),
                (0, 2.0, 1.0, Some(1)),
                (1, 0.5, 3.0, Some(1)),
                (0, 3.0, 1.0, Some(2))
            ]
        );
        assert_eq!(
            open.0.borrow().saw,
            [
                r#"1 [] [10] None Some(Content) [("tier", "gold")] None None Some("stop")"#,
                r#"2 [9] [20, 30] Some([4, 5]) Some(Other) [] None None Some("stop")"#,
                r#"3 [] [] None None [("gold", "tier"), ("tier", "stop")] Some("timeout") Some("too late") None"#,
            ]
        );
        let last = open.finish().unwrap();
        assert_eq!((last[0].value, last[0].of), (3.0, None));
    }

    #[test]
    fn absent_values_are_none() {
        let mut seen = Vec::new();
        each(&batch(), |_, request| {
            let Completion {
                history_parent,
                picked_up_at,
                sent_at,
                first_byte_at,
                http_status,
                target_output_tokens,
                ideal_cached_tokens,
                usage,
                resolve,
                connect,
                tls,
                recorded,
                ..
            } = *request;
            let times = [picked_up_at, sent_at, first_byte_at, resolve, connect, tls];
            let counts = [
                history_parent,
                http_status,
                target_output_tokens,
                ideal_cached_tokens,
            ];
            let marks = [
                request.measured,
                request.connection_reused,
                request.retried,
                request.output_tokens_from_usage,
            ];
            seen.push((times, counts, usage, recorded, marks));
        });
        let full = (
            [12, 13, 14, 21, 22].map(Some),
            [1, 200, 15, 20].map(Some),
            Usage {
                prompt: 17,
                completion: 18,
                cached: Some(19),
                reasoning: None,
            },
            Recorded {
                at: Some(23),
                latency: None,
                prompt_tokens: Some(24),
                output_tokens: Some(25),
            },
        );
        let none = |measured| ([None; 6], [None; 4], None, None, [measured, false, false, false]);
        assert_eq!(seen[0], none(true));
        assert_eq!(seen[1].0[..5], full.0);
        assert_eq!(seen[1].0[5], None);
        assert_eq!(
            (seen[1].1, seen[1].2, seen[1].3),
            (full.1, Some(full.2), Some(full.3))
        );
        assert_eq!(seen[1].4, [true; 4]);
        assert_eq!(seen[2], none(false));
    }

    #[test]
    fn the_descriptor_and_the_configuration_are_the_traits() {
        let descriptor = Exported::<Seeing>::describe();
        assert_eq!(
            (descriptor.name.as_str(), descriptor.config_schema.as_str()),
            ("seeing", "{}")
        );
        assert_eq!(Open::<Seeing>::open("[".into()).err().unwrap().code, "config");
    }

    #[test]
    fn a_label_is_found_by_name() {
        let labels = [("tier", "free"), ("user", "7"), ("tier", "gold")];
        let request = Completion {
            labels: &labels,
            chunk_kinds: &[0, 2],
            ..Completion::default()
        };
        assert_eq!(request.label("tier"), Some("gold"));
        assert_eq!(request.label("user"), Some("7"));
        assert_eq!(request.label("team"), None);
        assert_eq!(request.chunk_kind(0), Some(ChunkKind::Reasoning));
        assert_eq!(request.chunk_kind(1), Some(ChunkKind::Tool));
        assert_eq!(request.chunk_kind(2), None);
        assert!(request.is_ok());
    }
}
