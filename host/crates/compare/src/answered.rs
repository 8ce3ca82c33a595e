//! What may be said of single requests where one side has answered fewer of them than the other.
//!
//! A metric has samples of answered requests only. A request that was never answered is worse for who asked than any answer would have been,
//! so it belongs behind the slowest one (the worst rank: Lachin, "Worst-rank score analysis with informatively missing observations in clinical
//! trials", Controlled Clinical Trials 20 (1999)). The samples of the side that lost more are thus those of the survivors, and make it look better
//! than it was: what looks worse of it all the same is worse, and what does not says nothing.

use veeksha_model::Better;
use veeksha_slo::Aggregate;
use veeksha_stats::share;

use crate::effect::Variance;
use crate::input::RunData;
use crate::measured::Subject;
use crate::options::Options;
use crate::row::Row;
use crate::statistic::Statistic;
use crate::student::two_sided;
use crate::verdict::Verdict;
use crate::whole_run::Counted;

/// Answered shares that differ by no more than this are alike, unless a figure looks at fewer requests.
const ALIKE: f64 = 0.01;

/// Of the samples beyond a percentile, the share that may be missing.
const MISSING: f64 = 0.5;

/// What rounding does to shares.
const ROUNDING: f64 = 1e-9;

/// Requests that were answered with something, of those that the schedule asked for, on both sides, over all runs of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Those of the baseline.
    pub baseline: Counted,
    /// Those of the candidate.
    pub candidate: Counted,
}

impl Answered {
    /// `None` where a run does not tell, or was asked for nothing.
    pub(crate) fn of(baseline: &[&RunData], candidate: &[&RunData]) -> Option<Answered> {
        let of_side = |runs: &[&RunData]| -> Option<Counted> {
            let counts: Option<Vec<Counted>> = runs.iter().map(|run| run.answered).collect();
            let all = counts?.into_iter().reduce(Counted::and);
            all.filter(|all| all.whole > 0)
        };
        Some(Answered {
            baseline: of_side(baseline)?,
            candidate: of_side(candidate)?,
        })
    }

    /// Whether the candidate is the side that lost more.
    pub(crate) fn candidate_lost_more(&self) -> bool {
        self.lost_more_by() > 0.0
    }

    /// How much greater the share that the candidate lost is than that of the baseline.
    fn lost_more_by(&self) -> f64 {
        self.baseline.share() - self.candidate.share()
    }

    /// Whether the sides have lost different shares, as far as a figure is concerned: more than a point, and of a percentile more than half of what
    /// lies beyond it.
    fn differ_for(&self, statistic: Statistic) -> bool {
        let beyond = match statistic {
            Statistic::OfSamples(Aggregate::Percentile(percent)) => percent.min(100.0 - percent) / 100.0,
            Statistic::OfSamples(Aggregate::Min | Aggregate::Max) => 0.0,
            _ => 1.0,
        };
        self.lost_more_by().abs() > ALIKE.min(MISSING * beyond) + ROUNDING
    }

    /// Whether they differ by more than chance explains, as two shares of so many independent requests do.
    fn differ_by_more_than_chance(&self, options: &Options) -> bool {
        let error = self.baseline.variance().zip(self.candidate.variance());
        error.is_some_and(|(one, other)| {
            let Variance { variance, freedom } = one.with(other);
            two_sided(self.lost_more_by() / variance.sqrt(), freedom) <= 1.0 - options.confidence
        })
    }

    /// Whether a verdict says more of the requests than the answered ones can tell.
    ///
    /// That the side which lost more is better, or will be with more runs, takes little to be doubted. That no difference is seen, or none that
    /// matters, is doubted only where the losses differ by more than chance: else it would be doubted wherever a request in a hundred fails on both sides.
    pub(crate) fn doubt(&self, row: &Row, subject: Subject, verdict: Verdict, options: &Options) -> bool {
        let is_of_answers = subject == Subject::Answers && row.better != Better::Neither;
        if !is_of_answers || !self.differ_for(row.statistic) {
            return false;
        }
        match verdict {
            Verdict::Better | Verdict::Worse | Verdict::TooFewRuns => {
                let looks_better = match verdict {
                    Verdict::TooFewRuns => row.tends(Verdict::Better),
                    judged => judged == Verdict::Better,
                };
                looks_better == self.candidate_lost_more()
            }
            Verdict::NoDifference | Verdict::TooSmall | Verdict::WithinClientError => {
                self.differ_by_more_than_chance(options)
            }
            _ => false,
        }
    }

    /// Whether a figure that is known of the survivors only may have this verdict in truth. The side that lost less is not worse where it does not
    /// look worse.
    pub(crate) fn may_be(&self, verdict: Verdict, row: &Row) -> bool {
        match verdict {
            Verdict::Worse => self.candidate_lost_more() || row.tends(verdict),
            Verdict::Better => !self.candidate_lost_more() || row.tends(verdict),
            _ => false,
        }
    }

    /// Why figures that are known of the survivors only decide nothing.
    pub(crate) fn why(&self) -> String {
        format!(
            "the baseline answered {} of its requests and the candidate {}; the slowest may be among the others",
            share(self.baseline.share()),
            share(self.candidate.share())
        )
    }

    /// What is said of sides that have lost different shares of their requests.
    pub(crate) fn remark(&self, baseline: &str, candidate: &str, rows: &[Row]) -> Option<String> {
        let is_doubted = rows.iter().any(|row| row.verdict == Verdict::SurvivorsOnly);
        if !is_doubted && !self.differ_for(Statistic::Value) {
            return None;
        }
        let [of_baseline, of_candidate] = [self.baseline, self.candidate]
            .map(|of| format!("{} of {} ({})", of.part, of.whole, share(of.share())));
        let loser = match self.candidate_lost_more() {
            true => candidate,
            false => baseline,
        };
        Some(format!(
            "of the requests that were due {baseline} answered {of_baseline} and {candidate} {of_candidate}: latencies, and whatever else is known of answered requests only, \
             are those of the survivors, and the slowest requests may be among the lost; so {loser} is not called better by them"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(baseline: (u64, u64), candidate: (u64, u64)) -> Answered {
        let counted = |(part, whole)| Counted { part, whole };
        Answered {
            baseline: counted(baseline),
            candidate: counted(candidate),
        }
    }

    /// A point, and half of what lies beyond the percentile: 5 % of P90 and 0.5 % of P99, of which the point is less in the first case.
    #[test]
    fn losses_matter_from_a_point_on_or_half_of_what_lies_beyond() {
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
        // It is the difference that matters.
        assert!(!of((500, 1000), (495, 1000)).differ_for(mean));
    }

    /// Agresti and Caffo's error of 0 and of 4 of 60 is √(1/62 · 61/62 / 62 + 5/62 · 57/62 / 62) = 0.0381, so that 4/60 are 1.75 errors
    /// (p = 0.08), and 5/60 are 2.04 of 0.0408 (p = 0.04).
    #[test]
    fn few_losses_may_be_chance() {
        let options = Options::default();
        assert!(!of((60, 60), (56, 60)).differ_by_more_than_chance(&options));
        assert!(of((60, 60), (55, 60)).differ_by_more_than_chance(&options));
        assert!(of((55, 60), (60, 60)).differ_by_more_than_chance(&options));
        // Of so few nothing is said.
        assert!(!of((19, 19), (0, 19)).differ_by_more_than_chance(&options));
    }
}
