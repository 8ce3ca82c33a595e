//! Validity of metrics of answered requests where one side has answered fewer of them.
//!
//! Such a metric has no samples of unanswered requests. For a user an unanswered request is worse
//! than any answer, so it ranks behind the slowest one (the worst rank: Lachin, "Worst-rank score
//! analysis with informatively missing observations in clinical trials", Controlled Clinical Trials
//! 20 (1999)). The samples of the side that lost more requests are those of the survivors and favor
//! that side. If it looks worse nevertheless, it is worse; any other result is inconclusive.

use veeksha_model::Better;
use veeksha_slo::Aggregate;
use veeksha_stats::share;

use crate::effect::Variance;
use crate::input::RunData;
use crate::measured::Population;
use crate::options::CompareOptions;
use crate::remark::{LostRequests, Remark};
use crate::request_share::RequestShare;
use crate::row::ComparisonRow;
use crate::statistic::Statistic;
use crate::student::two_sided;
use crate::verdict::DifferenceVerdict;

/// Answered shares that differ by no more than this are equal, unless a metric covers fewer
/// requests.
const ALIKE: f64 = 0.01;

/// Allowed share of missing samples among those beyond a percentile.
const MISSING: f64 = 0.5;

/// Allowance for rounding of shares.
const ROUNDING: f64 = 1e-9;

/// Answered requests, out of those that the schedule intended, on both sides and over all their
/// runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Counts of the baseline.
    pub baseline: RequestShare,
    /// Counts of the candidate.
    pub candidate: RequestShare,
}

impl Answered {
    /// Returns the counts; `None` if a run lacks them or had no requests.
    pub(crate) fn of(baseline: &[&RunData], candidate: &[&RunData]) -> Option<Answered> {
        let of_side = |runs: &[&RunData]| -> Option<RequestShare> {
            let counts: Option<Vec<RequestShare>> = runs.iter().map(|run| run.answered).collect();
            let all = counts?.into_iter().reduce(RequestShare::and);
            all.filter(|all| all.whole > 0)
        };
        Some(Answered {
            baseline: of_side(baseline)?,
            candidate: of_side(candidate)?,
        })
    }

    /// Returns true if the candidate lost more requests.
    pub(crate) fn candidate_lost_more(&self) -> bool {
        self.lost_more_by() > 0.0
    }

    /// Returns the excess of the candidate's lost share over the baseline's.
    fn lost_more_by(&self) -> f64 {
        self.baseline.share() - self.candidate.share()
    }

    /// Returns true if the lost shares differ too much for a statistic: by more than a point, or
    /// for a percentile by more than half of the samples beyond it.
    fn differ_for(&self, statistic: Statistic) -> bool {
        let beyond = match statistic {
            Statistic::OfSamples(Aggregate::Percentile(percent)) => percent.min(100.0 - percent) / 100.0,
            Statistic::OfSamples(Aggregate::Min | Aggregate::Max) => 0.0,
            _ => 1.0,
        };
        self.lost_more_by().abs() > ALIKE.min(MISSING * beyond) + ROUNDING
    }

    /// Returns true if the lost shares differ significantly, like two shares of independent
    /// requests.
    fn differ_by_more_than_chance(&self, options: &CompareOptions) -> bool {
        let error = self.baseline.variance().zip(self.candidate.variance());
        error.is_some_and(|(one, other)| {
            let Variance { variance, freedom } = one.with(other);
            two_sided(self.lost_more_by() / variance.sqrt(), freedom) <= 1.0 - options.confidence
        })
    }

    /// Returns true if the answered requests do not support a verdict.
    ///
    /// A verdict in favor of the side that lost more is doubted for any relevant difference of the
    /// losses. "No difference" is doubted only if the losses differ significantly: otherwise it
    /// would be doubted wherever one request in a hundred fails on both sides.
    pub(crate) fn doubt(
        &self,
        row: &ComparisonRow,
        subject: Population,
        verdict: DifferenceVerdict,
        options: &CompareOptions,
    ) -> bool {
        let is_of_answers = subject == Population::Answers && row.better != Better::Neither;
        if !is_of_answers || !self.differ_for(row.statistic) {
            return false;
        }
        match verdict {
            DifferenceVerdict::Better | DifferenceVerdict::Worse | DifferenceVerdict::TooFewRuns => {
                let looks_better = match verdict {
                    DifferenceVerdict::TooFewRuns => row.tends(DifferenceVerdict::Better),
                    judged => judged == DifferenceVerdict::Better,
                };
                looks_better == self.candidate_lost_more()
            }
            DifferenceVerdict::NoDifference
            | DifferenceVerdict::TooSmall
            | DifferenceVerdict::WithinClientError => self.differ_by_more_than_chance(options),
            _ => false,
        }
    }

    /// Returns true if a metric of the survivors may truly have this verdict. The side that lost
    /// less cannot be worse unless it looks worse.
    pub(crate) fn may_be(&self, verdict: DifferenceVerdict, row: &ComparisonRow) -> bool {
        match verdict {
            DifferenceVerdict::Worse => self.candidate_lost_more() || row.tends(verdict),
            DifferenceVerdict::Better => !self.candidate_lost_more() || row.tends(verdict),
            _ => false,
        }
    }

    /// Explains why metrics of the survivors decide nothing.
    pub(crate) fn why(&self) -> String {
        format!(
            "the baseline answered {} of its requests and the candidate {}; the slowest may be among the others",
            share(self.baseline.share()),
            share(self.candidate.share())
        )
    }

    /// Returns the remark on sides with different shares of lost requests.
    pub(crate) fn remark(&self, baseline: &str, candidate: &str, rows: &[ComparisonRow]) -> Option<Remark> {
        let is_doubted = rows
            .iter()
            .any(|row| row.verdict == DifferenceVerdict::SurvivorsOnly);
        if !is_doubted && !self.differ_for(Statistic::Value) {
            return None;
        }
        let loser = if self.candidate_lost_more() {
            candidate
        } else {
            baseline
        };
        Some(Remark::LostRequests(LostRequests {
            baseline: (baseline.to_owned(), self.baseline),
            candidate: (candidate.to_owned(), self.candidate),
            loser: loser.to_owned(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(baseline: (u64, u64), candidate: (u64, u64)) -> Answered {
        let counted = |(part, whole)| RequestShare { part, whole };
        Answered {
            baseline: counted(baseline),
            candidate: counted(candidate),
        }
    }

    /// The limit is a point, or half of the samples beyond the percentile if that is less: 5 % for
    /// P90 and 0.5 % for P99, so that the point applies to P90.
    #[test]
    fn losses_matter_above_a_point_or_half_of_the_samples_beyond_a_percentile() {
        let percentile = |percent| Statistic::OfSamples(Aggregate::Percentile(percent));
        let mean = Statistic::OfSamples(Aggregate::Mean);
        let lost = |lost: u64| of((1000, 1000), (1000 - lost, 1000));
        for (statistic, most) in [
            (mean, 10),
            (percentile(50.0), 10),
            (percentile(90.0), 10),
            (percentile(99.0), 5),
            (percentile(1.0), 5),
            (Statistic::OfSamples(Aggregate::Max), 0),
        ] {
            assert!(!lost(most).differ_for(statistic), "{statistic} {most}");
            assert!(lost(most + 1).differ_for(statistic), "{statistic} {most}");
        }
        // Only the difference matters.
        assert!(!of((500, 1000), (495, 1000)).differ_for(mean));
    }

    /// Agresti and Caffo's error of 0 and of 4 of 60 is √(1/62 · 61/62 / 62 + 5/62 · 57/62 / 62) =
    /// 0.0381, so that 4/60 are 1.75 errors (p = 0.08), and 5/60 are 2.04 of 0.0408 (p = 0.04).
    #[test]
    fn few_losses_may_be_chance() {
        let options = CompareOptions::default();
        assert!(!of((60, 60), (56, 60)).differ_by_more_than_chance(&options));
        assert!(of((60, 60), (55, 60)).differ_by_more_than_chance(&options));
        assert!(of((55, 60), (60, 60)).differ_by_more_than_chance(&options));
        // Too few requests for a statement.
        assert!(!of((19, 19), (0, 19)).differ_by_more_than_chance(&options));
    }
}
