//! Whether prompts and answers were as long as asked for.

use std::collections::BTreeMap;

use veeksha_model::{RequestId, RequestRecord};
use veeksha_stats::{Summary, number};

use crate::expected::{Expected, OutputLength, Tolerance};
use crate::report::{Check, Culprits, Unit, count};

pub(crate) const PROMPT: &str = "Prompt Length";
pub(crate) const OUTPUT: &str = "Output Length";

/// Both lengths of all measured requests.
pub(crate) struct Lengths {
    prompt: Length,
    output: Length,
}

/// One length against its target.
struct Length {
    name: &'static str,
    tolerance: Tolerance,
    /// The share that may have fewer tokens than asked for; `None`: all may.
    short_share: Option<f64>,
    /// How often each difference occurred.
    differences: BTreeMap<i64, u64>,
    requests: u64,
    too_long: Culprits,
    too_short: Culprits,
    /// Differences to the target as a share of it: the sum, and the largest by its size.
    relative: (f64, f64),
}

impl Lengths {
    pub(crate) fn new(expected: &Expected) -> Self {
        let (tolerance, short_share) = match expected.output {
            OutputLength::Exact(tolerance) => (tolerance, Some(expected.short_share)),
            OutputLength::AtMost(tolerance) => (tolerance, None),
        };
        Lengths {
            prompt: Length::new(PROMPT, expected.prompt, Some(0.0)),
            output: Length::new(OUTPUT, tolerance, short_share),
        }
    }

    /// Takes a measured request. A target of no tokens is none; an answer that failed has no length.
    pub(crate) fn on_record(&mut self, record: &RequestRecord) {
        if record.target_prompt_tokens > 0 {
            self.prompt
                .add(record.id, record.prompt_tokens, record.target_prompt_tokens);
        }
        if let Some(target) = record.target_output_tokens.filter(|_| record.is_ok()) {
            self.output.add(record.id, record.output_tokens, target);
        }
    }

    pub(crate) fn finish(self) -> [Check; 2] {
        [
            self.prompt
                .finish("no measured request has a target for its prompt's length"),
            self.output.finish("no answered request asked for a length"),
        ]
    }
}

impl Length {
    fn new(name: &'static str, tolerance: Tolerance, short_share: Option<f64>) -> Self {
        Length {
            name,
            tolerance,
            short_share,
            differences: BTreeMap::new(),
            requests: 0,
            too_long: Culprits::default(),
            too_short: Culprits::default(),
            relative: (0.0, 0.0),
        }
    }

    fn add(&mut self, request: RequestId, tokens: u32, target: u32) {
        let difference = i64::from(tokens) - i64::from(target);
        self.requests += 1;
        *self.differences.entry(difference).or_default() += 1;
        // Of a target of nothing, one token too many is all of it.
        let relative = difference as f64 / f64::from(target.max(1));
        self.relative.0 += relative;
        if relative.abs() > self.relative.1.abs() {
            self.relative.1 = relative;
        }
        let allowed = self.tolerance.of(target);
        let culprit = || format!("{request} ({tokens} of {target})");
        if difference as f64 > allowed {
            self.too_long.add(culprit);
        } else if self.short_share.is_some() && (-difference) as f64 > allowed {
            self.too_short.add(culprit);
        }
    }

    fn finish(self, nothing: &str) -> Check {
        if self.requests == 0 {
            return Check::skipped(self.name, nothing);
        }
        let mut check = Check::new(self.name);
        let allowed = format!(
            "{} % of the target and {}",
            number(self.tolerance.relative * 100.0),
            count(u64::from(self.tolerance.tokens), "token")
        );
        let short_share = self.short_share.unwrap_or_default();
        for (culprits, what, share) in [
            (&self.too_long, "longer", 0.0),
            (&self.too_short, "shorter", short_share),
        ] {
            if culprits.count == 0 {
                continue;
            }
            let found = format!(
                "{} of {} {what} than asked for by more than the larger of {allowed}: {}",
                culprits.count,
                count(self.requests, "request"),
                culprits.names()
            );
            if culprits.count as f64 <= share * self.requests as f64 {
                check.note(format!("{found}; {} % may be", number(share * 100.0)));
            } else {
                check.fail(found);
            }
        }
        check.figure("requests", Unit::Count, self.requests as f64);
        check.figure("too long", Unit::Count, self.too_long.count as f64);
        check.figure("too short", Unit::Count, self.too_short.count as f64);
        check.figure(
            "mean difference",
            Unit::Share,
            self.relative.0 / self.requests as f64,
        );
        check.figure("largest difference", Unit::Share, self.relative.1);
        check.distribution("tokens - target", Unit::Tokens, summary(&self.differences));
        check
    }
}

/// The figures of values that occur so often.
fn summary(counts: &BTreeMap<i64, u64>) -> Option<Summary> {
    let mut ends = Vec::with_capacity(counts.len());
    let mut end = 0;
    for (value, times) in counts {
        end += usize::try_from(*times).ok()?;
        ends.push((end, *value));
    }
    Summary::of_ranks(end, |rank| {
        let place = ends.partition_point(|(end, _)| *end <= rank);
        ends[place].1 as f64
    })
}
