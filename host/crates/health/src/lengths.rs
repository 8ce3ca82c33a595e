//! Checks of prompt and answer lengths.

use std::collections::BTreeMap;

use veeksha_model::{RequestId, RequestRecord};
use veeksha_stats::{Summary, number};

use crate::expected::{Expected, OutputLength, Tolerance};
use crate::report::{HealthCheck, ValueUnit, Violations};

pub(crate) const PROMPT: &str = "Prompt Length";
pub(crate) const OUTPUT: &str = "Output Length";

const FIX_PROMPT: &str = "use a tokenizer that the generated text fits, or other lengths";
const FIX_LONG_OUTPUT: &str =
    "check that the server honors the limit on output tokens that client.type sends";
const FIX_SHORT_OUTPUT: &str =
    "check that the server supports ignore_eos and min_tokens, or that its context is long enough";

/// Prompt and answer lengths of all measured requests.
pub(crate) struct LengthChecks {
    prompt: LengthCheck,
    output: LengthCheck,
    /// The server is made to honor exact output lengths.
    enforces_exact_output: bool,
}

/// One kind of length compared with its target.
struct LengthCheck {
    name: &'static str,
    tolerance: Tolerance,
    /// Share of the requests with an exact target that may be too short.
    short_share: f64,
    /// Occurrences of each difference.
    differences: BTreeMap<i64, u64>,
    requests: u64,
    /// Requests whose target is exact; the others have an upper limit.
    exact: u64,
    too_long: Violations,
    too_short: Violations,
    /// Requests with an upper limit that have fewer tokens.
    below_limit: u64,
    /// Relative differences to the target: their sum, and the largest by magnitude.
    relative: (f64, f64),
}

impl LengthChecks {
    pub(crate) fn new(expected: &Expected) -> Self {
        let (tolerance, enforces_exact_output) = match expected.output {
            OutputLength::Exact(tolerance) => (tolerance, true),
            OutputLength::AtMost(tolerance) => (tolerance, false),
        };
        LengthChecks {
            prompt: LengthCheck::new(PROMPT, expected.prompt, 0.0),
            output: LengthCheck::new(OUTPUT, tolerance, expected.short_share),
            enforces_exact_output,
        }
    }

    /// Records a measured request. A prompt target of 0 means no target; a failed answer has no
    /// length.
    pub(crate) fn on_record(&mut self, record: &RequestRecord) {
        if record.target_prompt_tokens > 0 {
            self.prompt
                .add(record.id, record.prompt_tokens, record.target_prompt_tokens, true);
        }
        if let Some(target) = record.target_output_tokens.filter(|_| record.is_ok()) {
            let exact = self.enforces_exact_output && record.output_exact;
            self.output.add(record.id, record.output_tokens, target, exact);
        }
    }

    pub(crate) fn finish(self) -> [HealthCheck; 2] {
        [
            self.prompt
                .finish("no measured request has a target for its prompt's length"),
            self.output.finish("no answered request asked for a length"),
        ]
    }
}

impl LengthCheck {
    fn new(name: &'static str, tolerance: Tolerance, short_share: f64) -> Self {
        LengthCheck {
            name,
            tolerance,
            short_share,
            differences: BTreeMap::new(),
            requests: 0,
            exact: 0,
            too_long: Violations::default(),
            too_short: Violations::default(),
            below_limit: 0,
            relative: (0.0, 0.0),
        }
    }

    /// Adds a request; `exact` is false if the target is only an upper limit.
    fn add(&mut self, request: RequestId, tokens: u32, target: u32, exact: bool) {
        let difference = i64::from(tokens) - i64::from(target);
        self.requests += 1;
        self.exact += u64::from(exact);
        self.below_limit += u64::from(!exact && difference < 0);
        *self.differences.entry(difference).or_default() += 1;
        // A target of 0 cannot be divided by: one token too many counts as 100 %.
        let relative = difference as f64 / f64::from(target.max(1));
        self.relative.0 += relative;
        if relative.abs() > self.relative.1.abs() {
            self.relative.1 = relative;
        }
        let allowed = self.tolerance.of(target);
        let name = || format!("{request} ({tokens} of {target})");
        if difference as f64 > allowed {
            self.too_long.add(name);
        } else if exact && (-difference) as f64 > allowed {
            self.too_short.add(name);
        }
    }

    fn finish(self, nothing: &str) -> HealthCheck {
        if self.requests == 0 {
            return HealthCheck::skipped(self.name, nothing);
        }
        let mut check = HealthCheck::new(self.name);
        let allowed = format!(
            "{} % (at least {})",
            number(self.tolerance.relative * 100.0),
            veeksha_stats::counted(u64::from(self.tolerance.tokens), "token")
        );
        let [fix_long, fix_short] = if self.name == PROMPT {
            [FIX_PROMPT, FIX_PROMPT]
        } else {
            [FIX_LONG_OUTPUT, FIX_SHORT_OUTPUT]
        };
        for (violations, what, share, requests, fix) in [
            (&self.too_long, "longer", 0.0, self.requests, fix_long),
            (
                &self.too_short,
                "shorter",
                self.short_share,
                self.exact,
                fix_short,
            ),
        ] {
            if violations.count == 0 {
                continue;
            }
            let found = format!(
                "{} of {} {what} than the target by more than {allowed}: {}",
                violations.count,
                veeksha_stats::counted(requests, "request"),
                violations.names()
            );
            if violations.count as f64 <= share * requests as f64 {
                check.note(format!("{found}; {} % of them may be", number(share * 100.0)));
            } else {
                check.fail(found, fix);
            }
        }
        if self.below_limit > 0 {
            check.note(format!(
                "{} of {} with an upper limit ended before it, which is not a violation",
                self.below_limit,
                veeksha_stats::counted(self.requests - self.exact, "answer")
            ));
        }
        check.value("requests", ValueUnit::Count, self.requests as f64);
        check.value("too long", ValueUnit::Count, self.too_long.count as f64);
        check.value("too short", ValueUnit::Count, self.too_short.count as f64);
        check.value(
            "mean difference",
            ValueUnit::Share,
            self.relative.0 / self.requests as f64,
        );
        check.value("largest difference", ValueUnit::Share, self.relative.1);
        check.distribution("tokens - target", ValueUnit::Tokens, summary(&self.differences));
        check
    }
}

/// Summarizes values given with their number of occurrences.
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
