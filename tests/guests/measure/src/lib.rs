//! A well-behaved plugin of all kinds that measure and judge. It repeats its arguments, so
//! that a test can see that everything arrives:
//!
//! - the metric `mirror` logs each request as text and gives its output tokens as a sample; `gap`
//!   has a sample for each gap between two chunks, weighted by the tokens of the later one (at
//!   least 1); `seen` is given at the end, once, for the whole run;
//! - the request check finds good what has at least `at_least` output tokens: `{"at_least": "3"}`;
//! - the SLO check has a verdict for each metric of the run, with the value of every function
//!   of `results`.

wit_bindgen::generate!({
    inline: "
        package fixtures:measure;
        world measure {
            import veeksha:plugin/log@0.2.0;
            import veeksha:plugin/results@0.2.0;
            export veeksha:plugin/metric@0.2.0;
            export veeksha:plugin/request-check@0.2.0;
            export veeksha:plugin/slo-check@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use std::cell::Cell;

use exports::veeksha::plugin::{metric, request_check, slo_check};
use veeksha::plugin::log;
use veeksha::plugin::records::Batch;
use veeksha::plugin::results::{Results, Stats};
use veeksha::plugin::types::{Descriptor, Error};

struct Plugin;

fn describe() -> Descriptor {
    Descriptor {
        name: "measure".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        summary: "repeats its arguments".into(),
        config_schema: r#"{"type": "object"}"#.into(),
    }
}

struct Mirror {
    seen: Cell<u32>,
}

impl metric::Guest for Plugin {
    type Collector = Mirror;

    fn describe() -> Descriptor {
        describe()
    }
}

impl metric::GuestCollector for Mirror {
    fn open(_config: String) -> Result<metric::Collector, Error> {
        Ok(metric::Collector::new(Mirror { seen: Cell::new(0) }))
    }

    fn definitions(&self) -> Vec<metric::Definition> {
        let definition = |name: &str, unit: &str, better, summary: &str| metric::Definition {
            name: name.into(),
            unit: unit.into(),
            better,
            summary: summary.into(),
        };
        vec![
            definition("mirror", "tokens", metric::Better::Neither, "output tokens"),
            definition("gap", "s", metric::Better::Less, "time between two chunks"),
            definition("seen", "1", metric::Better::Higher, "requests of the run"),
        ]
    }

    fn observe(&self, batch: Batch) -> Result<Vec<metric::Sample>, Error> {
        let mut samples = Vec::new();
        for index in 0..batch.session.len() {
            self.seen.set(self.seen.get() + 1);
            log::write(log::Level::Info, &in_words(&batch, index));
            let of = Some(index as u32);
            samples.push(metric::Sample {
                metric: 0,
                value: f64::from(batch.output_tokens[index]),
                weight: 1.0,
                of,
            });
            let chunks = part(&batch.chunks_end, index);
            let tokens = &batch.chunk_tokens[chunks.clone()];
            for (gap, tokens) in batch.chunk_at[chunks].windows(2).zip(tokens.iter().skip(1)) {
                samples.push(metric::Sample {
                    metric: 1,
                    value: (gap[1] - gap[0]) as f64 / 1e9,
                    weight: f64::from((*tokens).max(1)),
                    of,
                });
            }
        }
        Ok(samples)
    }

    fn finish(&self) -> Result<Vec<metric::Sample>, Error> {
        Ok(vec![metric::Sample {
            metric: 2,
            value: f64::from(self.seen.get()),
            weight: 1.0,
            of: None,
        }])
    }
}

/// The part of a longer column that belongs to a request.
fn part(ends: &[u32], index: usize) -> std::ops::Range<usize> {
    let before = index.checked_sub(1).map_or(0, |before| ends[before]);
    before as usize..ends[index] as usize
}

/// Everything that is known of a request: the name of each column and what it holds.
fn in_words(batch: &Batch, index: usize) -> String {
    let mut words = String::new();
    macro_rules! columns {
        ($($name:ident)+) => {
            $(words.push_str(&format!("{} {:?}; ", stringify!($name), batch.$name[index]));)+
        };
    }
    columns!(
        session node session_requests history_parent wait_after_ready intended_at held dispatched_at picked_up_at sent_at
        first_byte_at completed_at measured status http_status server connection_reused retried
        chunk_tokens_known output_tokens_from_usage target_prompt_tokens prompt_tokens total_prompt_tokens
        template_tokens target_output_tokens output_tokens usage_prompt usage_completion usage_cached usage_reasoning
        ideal_cached_tokens
    );
    let text = |place: u32| batch.texts.get(place as usize).map_or("", String::as_str);
    let chunks = part(&batch.chunks_end, index);
    let labels: Vec<(&str, &str)> = part(&batch.labels_end, index)
        .map(|label| (text(batch.label_names[label]), text(batch.label_values[label])))
        .collect();
    words.push_str(&format!(
        "parents {:?}; chunks {:?} {:?} {:?}; labels {labels:?}; finish {:?}; ",
        &batch.parents[part(&batch.parents_end, index)],
        &batch.chunk_at[chunks.clone()],
        &batch.chunk_tokens[chunks.clone()],
        &batch.chunk_kinds[chunks],
        text(batch.finish_reason[index]),
    ));
    let this = index as u32;
    for failure in batch.failures.iter().filter(|failure| failure.request == this) {
        words.push_str(&format!("class {}, message {}; ", failure.code, failure.message));
    }
    for made in batch.connections.iter().filter(|made| made.request == this) {
        words.push_str(&format!(
            "connection {:?} {:?} {:?}; ",
            made.resolve, made.connect, made.tls
        ));
    }
    for then in batch.replays.iter().filter(|then| then.request == this) {
        words.push_str(&format!(
            "then {:?} {:?} {:?} {:?}; ",
            then.at, then.latency, then.prompt_tokens, then.output_tokens
        ));
    }
    words
}

struct AtLeast {
    tokens: u32,
}

impl request_check::Guest for Plugin {
    type Checker = AtLeast;

    fn describe() -> Descriptor {
        describe()
    }
}

impl request_check::GuestChecker for AtLeast {
    fn open(config: String) -> Result<request_check::Checker, Error> {
        match config.rsplit('"').nth(1).map(str::parse) {
            Some(Ok(tokens)) => Ok(request_check::Checker::new(AtLeast { tokens })),
            _ => Err(Error {
                code: "no-number".into(),
                message: "it is not said how many tokens a good answer has".into(),
                hint: None,
                path: Some("/at_least".into()),
            }),
        }
    }

    fn judge(&self, batch: Batch) -> Result<Vec<bool>, Error> {
        let good = |tokens: &u32| *tokens >= self.tokens;
        Ok(batch.output_tokens.iter().map(good).collect())
    }
}

struct Everything;

impl slo_check::Guest for Plugin {
    type Checker = Everything;

    fn describe() -> Descriptor {
        describe()
    }
}

impl slo_check::GuestChecker for Everything {
    fn open(_config: String) -> Result<slo_check::Checker, Error> {
        Ok(slo_check::Checker::new(Everything))
    }

    fn check(&self, results: Results) -> Result<Vec<slo_check::Verdict>, Error> {
        let gold = [("tier".to_owned(), "gold".to_owned())];
        let few = |stats: Stats| {
            let Stats {
                count,
                mean,
                std,
                min,
                max,
                p50,
                p90,
                p95,
                p99,
            } = stats;
            format!("{count} {mean} {std} {min} {max} {p50} {p90} {p95} {p99}")
        };
        let verdict = |name: String| {
            let observed = results.percentile(&name, 99.0, &gold);
            let windows: Vec<String> = results
                .windows(&name, &[], 1_000_000_000)
                .into_iter()
                .map(|window| format!("{}-{}: {}", window.begin, window.end, few(window.stats)))
                .collect();
            slo_check::Verdict {
                met: observed.is_some_and(|observed| observed < 1.0),
                observed,
                threshold: 1.0,
                detail: format!(
                    "aggregate {:?}; all {}; gold {}; windows {}",
                    results.aggregate(&name),
                    few(results.stats(&name, &[])),
                    few(results.stats(&name, &gold)),
                    windows.join(", ")
                ),
                name,
            }
        };
        Ok(results.metrics().into_iter().map(verdict).collect())
    }
}

export!(Plugin);
