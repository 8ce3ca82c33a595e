//! Check that runs did the same work, and the differences of their configurations.

use std::collections::BTreeMap;

use veeksha_model::Nanos;

use crate::input::{CompareSide, GoodRequests, MetricData, RunData, SentSoFar, Trust, Validity};
use crate::options::Invalid;
use crate::remark::{Remark, first_sessions};
use crate::{caches, copies};

/// A setting that differs between the sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingDifference {
    /// Name of the setting.
    pub name: String,
    /// Value in the baseline; several if its runs differ; `None` if it is not set.
    pub baseline: Option<String>,
    /// Value in the candidate.
    pub candidate: Option<String>,
}

/// Findings about two sides, independent of their metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Comparability {
    /// Reasons why the sides are not comparable.
    pub(crate) obstacles: Vec<String>,
    /// Remarks for the reader.
    pub(crate) remarks: Vec<Remark>,
    /// Findings of certificates about single metrics of each run, with reasons.
    pub(crate) details: Vec<String>,
    /// True if all runs are known to have done the same work, as far as they overlap.
    pub(crate) same_work: bool,
}

/// Relative difference of windows above which a remark is made.
const SIMILAR: f64 = 0.1;

pub(crate) fn comparability(
    baseline: &CompareSide,
    candidate: &CompareSide,
    invalid: Invalid,
) -> Comparability {
    let mut found = Comparability {
        same_work: true,
        ..Comparability::default()
    };
    let reference = &baseline.runs[0];
    let others = || baseline.runs.iter().skip(1).chain(&candidate.runs);
    for run in others() {
        let work = same_work(reference, run);
        found.same_work &= matches!(work, WorkComparison::Same { .. });
        match work {
            WorkComparison::Same { sessions, more } => {
                if let Some(more) = more {
                    found.remarks.push(Remark::LongerWorkload {
                        runs: [reference.label.clone(), run.label.clone()],
                        sessions,
                        longer: more,
                    });
                }
            }
            WorkComparison::Different(why) => found.obstacles.push(why),
            WorkComparison::Unknown(whose) => {
                let remark = Remark::UnknownWorkload { run: whose };
                if !found.remarks.contains(&remark) {
                    found.remarks.push(remark);
                }
            }
        }
    }
    if found.same_work {
        found.remarks.extend(different_requests(reference, others()));
    }
    found.remarks.extend(copies::on_both_sides(baseline, candidate));
    for run in baseline.runs.iter().chain(&candidate.runs) {
        trust(run, invalid, &mut found);
        let dropped: u64 = run.metrics.iter().map(|metric| metric.samples.dropped()).sum();
        if dropped > 0 {
            found.remarks.push(Remark::DroppedValues {
                run: run.label.clone(),
                count: dropped,
            });
        }
    }
    certificates(baseline, candidate, &mut found);
    found.remarks.extend(slos_left_out(baseline, candidate));
    found.remarks.extend(lengths(baseline, candidate));
    found.remarks.extend(caches::remark(baseline, candidate));
    found
}

/// Returns the remark on runs whose good requests are not known. Runs without SLOs on both sides
/// need none: nothing was to be compared.
fn slos_left_out(baseline: &CompareSide, candidate: &CompareSide) -> Option<Remark> {
    let runs = || baseline.runs.iter().chain(&candidate.runs);
    if runs().all(|run| run.good_requests == GoodRequests::Undefined) {
        return None;
    }
    let left_out: Vec<(String, String)> = runs()
        .filter_map(|run| {
            let why = match &run.good_requests {
                GoodRequests::Defined => return None,
                GoodRequests::Undefined => "its scenario has no SLO that defines good requests",
                GoodRequests::Unknown(why) => why,
            };
            Some((run.label.clone(), why.to_owned()))
        })
        .collect();
    (!left_out.is_empty()).then_some(Remark::SlosLeftOut(left_out))
}

/// Returns the remark on runs of different length.
fn lengths(baseline: &CompareSide, candidate: &CompareSide) -> Option<Remark> {
    let ends = |side: &CompareSide| -> Option<(Nanos, Nanos)> {
        let lengths = || side.runs.iter().filter_map(length);
        Some((lengths().min()?, lengths().max()?))
    };
    let (a, b) = (ends(baseline)?, ends(candidate)?);
    let (shortest, longest) = (a.0.min(b.0), a.1.max(b.1));
    if (longest - shortest) as f64 <= SIMILAR * longest as f64 {
        return None;
    }
    let seconds = |nanos: Nanos| nanos as f64 / 1e9;
    let of = |side: &CompareSide, (shortest, longest): (Nanos, Nanos)| {
        (side.label.clone(), seconds(shortest), seconds(longest))
    };
    Some(Remark::DifferentLengths([of(baseline, a), of(candidate, b)]))
}

/// Collects the findings of certificates about single metrics: one remark per metric, and the runs
/// in the details.
fn certificates(baseline: &CompareSide, candidate: &CompareSide, found: &mut Comparability) {
    let sides = [baseline, candidate];
    let mut called: Vec<(&str, Validity)> = Vec::new();
    for metric in sides
        .iter()
        .flat_map(|side| &side.runs)
        .flat_map(|run| &run.metrics)
    {
        let finding = (metric.name.as_str(), metric.trust.validity);
        if finding.1 != Validity::Valid && !called.contains(&finding) {
            called.push(finding);
        }
    }
    for (name, validity) in called {
        let is_meant = |metric: &&MetricData| metric.name == name && metric.trust.validity == validity;
        let mut reasons: Vec<String> = Vec::new();
        let mut of_side = |side: &CompareSide| -> Vec<String> {
            let finding = |run: &RunData| {
                let metric = run.metrics.iter().find(is_meant)?;
                let text = format!("{name} of {} is {}", run.label, validity.name());
                let why = because(&metric.trust);
                if !reasons.contains(&why) {
                    reasons.push(why.clone());
                }
                Some(text + &why)
            };
            side.runs.iter().filter_map(finding).collect()
        };
        let of_sides = sides.map(&mut of_side);
        let in_side =
            |(side, findings): (&&CompareSide, &Vec<String>)| match (findings.len(), side.runs.len()) {
                (0, _) => None,
                (1, 1) => Some(side.label.clone()),
                (count, runs) => Some(format!("{count} of {runs} runs of {}", side.label)),
            };
        let places: Vec<String> = sides.iter().zip(&of_sides).filter_map(in_side).collect();
        let findings = of_sides.concat();
        let places = places.join(" and in ");
        // Different reasons are in the details only.
        let why = match reasons.as_slice() {
            [only] => only.as_str(),
            _ => "",
        };
        found
            .remarks
            .push(Remark::MetricValidity(match findings.as_slice() {
                [only] => only.clone(),
                _ => format!("{name} is {} in {places}{why}", validity.name()),
            }));
        found.details.extend(findings);
    }
}

/// Formats the reasons of a certificate.
pub(crate) fn because(trust: &Trust) -> String {
    if trust.why.is_empty() {
        String::new()
    } else {
        format!(": {}", trust.why.join("; "))
    }
}

/// Applies a run's certificate to the whole comparison.
fn trust(run: &RunData, invalid: Invalid, found: &mut Comparability) {
    let label = &run.label;
    let why = because(&run.trust);
    match (run.trust.validity, invalid) {
        (Validity::Valid, _) => {}
        (Validity::Degraded, _) | (Validity::Invalid, Invalid::Judged) => {
            let of_this = run.trust.validity;
            let same = found.remarks.iter_mut().find_map(|remark| match remark {
                Remark::RunValidity {
                    runs,
                    validity,
                    why: of,
                } if *validity == of_this && *of == why => Some(runs),
                _ => None,
            });
            match same {
                Some(runs) => runs.push(label.clone()),
                None => found.remarks.push(Remark::RunValidity {
                    runs: vec![label.clone()],
                    validity: of_this,
                    why,
                }),
            }
        }
        (Validity::Invalid, Invalid::NotComparable) => found.obstacles.push(format!(
            "{label} is INVALID{why}; --allow-invalid judges it nevertheless"
        )),
    }
}

fn length(run: &RunData) -> Option<Nanos> {
    run.window.map(|(first, last)| last.saturating_sub(first))
}

/// Result of comparing the work of two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WorkComparison {
    /// Equal as far as both go; `more` is the label of the longer one.
    Same { sessions: u64, more: Option<String> },
    /// Different; carries the explanation.
    Different(String),
    /// Label of a run without digests.
    Unknown(String),
}

fn same_work(one: &RunData, other: &RunData) -> WorkComparison {
    let (first, second) = match (&one.workload, &other.workload) {
        (Some(first), Some(second)) => (first, second),
        (None, _) => return WorkComparison::Unknown(one.label.clone()),
        (_, None) => return WorkComparison::Unknown(other.label.clone()),
    };
    let find = |sessions: u64| second.iter().find(|(count, _)| *count == sessions);
    let common: Vec<(u64, bool)> = first
        .iter()
        .filter_map(|(sessions, digest)| find(*sessions).map(|(_, other)| (*sessions, digest == other)))
        .collect();
    let pair = format!("{} and {}", one.label, other.label);
    let Some((longest, same)) = common.iter().max_by_key(|(sessions, _)| *sessions) else {
        return WorkComparison::Different(format!(
            "{pair} have no digest of the same number of sessions: cannot check that they did the same work"
        ));
    };
    if *same {
        let end = |digests: &[(u64, String)]| digests.iter().map(|(sessions, _)| *sessions).max();
        let more = match end(first).cmp(&end(second)) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(one.label.clone()),
            std::cmp::Ordering::Less => Some(other.label.clone()),
        };
        return WorkComparison::Same {
            sessions: *longest,
            more,
        };
    }
    let differs = common
        .iter()
        .filter(|(_, same)| !same)
        .map(|(sessions, _)| *sessions)
        .min()
        .unwrap_or(*longest);
    WorkComparison::Different(format!(
        "the workloads of {pair} differ within the {}",
        first_sessions(differs)
    ))
}

/// Returns the remark on runs that sent other requests than `reference` although they did the same
/// work.
fn different_requests<'a>(reference: &RunData, others: impl Iterator<Item = &'a RunData>) -> Option<Remark> {
    let differ: Vec<(&str, u64)> = others
        .filter_map(|run| Some((run.label.as_str(), first_difference(reference, run)?)))
        .collect();
    Some(Remark::DifferentRequests {
        reference: reference.label.clone(),
        others: match differ.as_slice() {
            [(only, _)] => (*only).to_owned(),
            several => format!("{} other runs", several.len()),
        },
        sessions: differ.iter().map(|(_, sessions)| *sessions).min()?,
    })
}

/// Returns the number of leading sessions in which two runs sent equally many requests with
/// different bodies.
fn first_difference(one: &RunData, other: &RunData) -> Option<u64> {
    let (first, second) = (one.sent.as_ref()?, other.sent.as_ref()?);
    first.iter().find_map(|sent| {
        let is_different = |other: &&SentSoFar| {
            (other.sessions, other.requests) == (sent.sessions, sent.requests) && other.digest != sent.digest
        };
        second.iter().find(is_different).map(|_| sent.sessions)
    })
}

/// Returns the settings in which two sides differ, by name.
pub(crate) fn settings(baseline: &CompareSide, candidate: &CompareSide) -> Vec<SettingDifference> {
    let (one, other) = (settings_of(baseline), settings_of(candidate));
    let mut names: Vec<&str> = one.keys().chain(other.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let difference = |name: &str| SettingDifference {
        name: name.to_owned(),
        baseline: one.get(name).map(|values| values.join(" | ")),
        candidate: other.get(name).map(|values| values.join(" | ")),
    };
    let all = names.into_iter().map(difference);
    all.filter(|setting| setting.baseline != setting.candidate)
        .collect()
}

/// Returns the distinct values of each setting among the runs of a side.
fn settings_of(side: &CompareSide) -> BTreeMap<&str, Vec<&str>> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in side.runs.iter().flat_map(|run| &run.settings) {
        let known = values.entry(name).or_default();
        if !known.contains(&value.as_str()) {
            known.push(value);
        }
    }
    values.values_mut().for_each(|known| known.sort_unstable());
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(label: &str, digests: &[(u64, &str)]) -> RunData {
        RunData {
            label: label.into(),
            workload: Some(
                digests
                    .iter()
                    .map(|(sessions, digest)| (*sessions, (*digest).to_owned()))
                    .collect(),
            ),
            ..RunData::default()
        }
    }

    fn with_sent(label: &str, sent: &[(u64, u64, &str)]) -> RunData {
        let sent = sent.iter().map(|(sessions, requests, digest)| SentSoFar {
            sessions: *sessions,
            requests: *requests,
            digest: (*digest).to_owned(),
        });
        RunData {
            sent: Some(sent.collect()),
            ..run(label, &[(1, "a"), (2, "b")])
        }
    }

    #[test]
    fn different_bodies_of_equally_many_requests_are_remarked() {
        let one = with_sent("A", &[(1, 1, "a"), (2, 2, "b"), (4, 4, "c")]);
        let other = with_sent("B", &[(1, 1, "a"), (2, 2, "x"), (4, 3, "y")]);
        let remark = different_requests(&one, [&other].into_iter()).unwrap();
        insta::assert_snapshot!(remark, @"A and B did the same work, but sent different requests within the first 2 sessions: tokenizer, salt, model name, parameters or the answers in conversations differ");
        let several = different_requests(&one, [&other, &one, &other].into_iter())
            .unwrap()
            .to_string();
        assert!(several.starts_with("A and 2 other runs"), "{several}");
    }

    #[test]
    fn same_or_unknown_requests_are_not_remarked() {
        let one = with_sent("A", &[(1, 1, "a"), (2, 2, "b")]);
        let shorter = with_sent("B", &[(1, 1, "a"), (2, 1, "x")]);
        let unknown = run("C", &[(1, "a"), (2, "b")]);
        for other in [&one, &shorter, &unknown] {
            assert_eq!(
                different_requests(&one, [other].into_iter()),
                None,
                "{}",
                other.label
            );
        }
    }

    #[test]
    fn work_is_compared_as_far_as_both_runs_go() {
        let one = run("A", &[(1, "a"), (2, "b"), (4, "c"), (6, "d")]);
        let longer = run("B", &[(1, "a"), (2, "b"), (4, "c"), (8, "e")]);
        assert_eq!(
            same_work(&one, &longer),
            WorkComparison::Same {
                sessions: 4,
                more: Some("B".into())
            }
        );
        let same = run("B", &[(6, "d")]);
        assert_eq!(
            same_work(&one, &same),
            WorkComparison::Same {
                sessions: 6,
                more: None
            }
        );
    }

    #[test]
    fn reports_where_the_work_differs() {
        let one = run("A", &[(1, "a"), (2, "b"), (4, "c")]);
        let WorkComparison::Different(why) = same_work(&one, &run("B", &[(1, "a"), (2, "x"), (4, "y")]))
        else {
            panic!("not different");
        };
        insta::assert_snapshot!(why, @"the workloads of A and B differ within the first 2 sessions");
        let WorkComparison::Different(why) = same_work(&one, &run("B", &[(3, "x")])) else {
            panic!("not different");
        };
        insta::assert_snapshot!(why, @"A and B have no digest of the same number of sessions: cannot check that they did the same work");
        let unknown = RunData {
            label: "B".into(),
            ..RunData::default()
        };
        assert_eq!(same_work(&one, &unknown), WorkComparison::Unknown("B".into()));
    }

    #[test]
    fn reports_a_difference_in_the_first_session() {
        let WorkComparison::Different(why) = same_work(&run("A", &[(1, "a")]), &run("B", &[(1, "b")])) else {
            panic!("not different");
        };
        insta::assert_snapshot!(why, @"the workloads of A and B differ within the first session");
    }

    #[test]
    fn settings_that_differ_are_listed() {
        let side = |label: &str, runs: &[&[(&str, &str)]]| CompareSide {
            label: label.into(),
            runs: runs
                .iter()
                .map(|settings| RunData {
                    settings: settings
                        .iter()
                        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                        .collect(),
                    ..RunData::default()
                })
                .collect(),
        };
        let baseline = side(
            "A",
            &[
                &[("rate", "1"), ("seed", "1"), ("same", "x")],
                &[("seed", "2"), ("same", "x")],
            ],
        );
        let candidate = side(
            "B",
            &[&[("rate", "2"), ("seed", "1"), ("same", "x"), ("new", "y")]],
        );
        let seen: Vec<String> = settings(&baseline, &candidate)
            .into_iter()
            .map(|setting| format!("{}: {:?} {:?}", setting.name, setting.baseline, setting.candidate))
            .collect();
        assert_eq!(
            seen,
            [
                r#"new: None Some("y")"#,
                r#"rate: Some("1") Some("2")"#,
                r#"seed: Some("1 | 2") Some("1")"#
            ]
        );
    }
}
