//! Explanations for missing samples: a typo in a label must not look like an idle run.

use veeksha_definitions::Scope;
use veeksha_model::Label;
use veeksha_slo::LabelText;

use super::ask::SampleQuery;
use crate::label_sets::Matching;
use crate::objectives::check::Objectives;
use crate::run_samples::RunSamples;
use crate::schedule::TimeSpan;

/// The number of labels that are listed; a workload may have thousands.
const LISTED: usize = 8;

impl RunSamples {
    /// Explains why a metric has no samples with these labels.
    pub(crate) fn why_none(&self, asked: &SampleQuery) -> String {
        if let Some(why) = self.why_no_request(&asked.filter) {
            return why;
        }
        let metric = &asked.metric;
        let scope = self.catalogue().get(metric).map(|info| info.scope);
        if scope == Some(Scope::ToolRun) {
            return "no tool run was measured".to_owned();
        }
        match (asked.filter.is_empty(), self.summary(metric).is_some()) {
            _ if !self.requests.rows.iter().any(|row| row.has_samples()) => {
                "no request was answered".to_owned()
            }
            (_, false) => format!("no answer has a sample of {metric}"),
            (true, true) => {
                format!("the samples of {metric} are of no request, so that they lie in no window")
            }
            (false, true) => format!("no answer with {} has a sample of {metric}", all(&asked.filter)),
        }
    }

    /// Describes the windows without samples, among those with intended requests; `None` if there
    /// are none.
    pub(crate) fn why_not_judged(
        &self,
        asked: &SampleQuery,
        matching: &Matching,
        not_judged: &[TimeSpan],
        windows: u64,
    ) -> Option<String> {
        let answered = |span: &&TimeSpan| self.is_answered_within(matching, **span);
        let without_sample = not_judged.iter().filter(answered).count();
        let unanswered = not_judged.len() - without_sample;
        let with = if asked.filter.is_empty() {
            String::new()
        } else {
            format!(" with {}", all(&asked.filter))
        };
        let parts = [
            (unanswered, format!("no request{with} was answered")),
            (
                without_sample,
                format!("no answer{with} has a sample of {}", asked.metric),
            ),
        ];
        let parts: Vec<String> = (parts.iter().filter(|(count, _)| *count > 0))
            .map(|(count, what)| format!("in {count} of {windows} windows {what}"))
            .collect();
        (!parts.is_empty()).then(|| format!("{}: they are not judged", parts.join(", ")))
    }

    /// Describes the conditions of goodput that do not apply to any request. An objective that
    /// implies a condition has this reason in its own result, and needs no remark.
    pub(crate) fn idle_conditions(&self, objectives: &Objectives) -> Vec<String> {
        let is_objective =
            |text: &str| (objectives.checked.iter()).any(|checked| checked.stated.to_string() == text);
        let conditions = objectives.conditions.iter();
        conditions
            .filter(|condition| !is_objective(&condition.text))
            .filter_map(|condition| {
                let why = self.why_no_request(&condition.samples.filter)?;
                Some(format!("goodput does not depend on `{}`: {why}", condition.text))
            })
            .collect()
    }

    /// Explains why no request has all of these labels; `None` if one does.
    pub(crate) fn why_no_request(&self, filter: &[Label]) -> Option<String> {
        let matching = self.matching(filter);
        let rows = &self.requests.rows;
        let runs = &self.requests.tool_runs;
        if rows.is_empty()
            || rows.iter().any(|row| matching.has(row.labels))
            || runs.iter().any(|row| matching.has(row.labels))
        {
            return None;
        }
        let mut seen: Vec<&Label> = self.requests.labels.all().collect();
        seen.sort_unstable();
        seen.dedup();
        let missing = filter.iter().find(|label| !seen.contains(label));
        Some(match missing {
            Some(label) => missing_label(label, &seen),
            None => format!("no request has {} together", all(filter)),
        })
    }
}

fn missing_label(label: &Label, seen: &[&Label]) -> String {
    let (name, value) = label;
    let values: Vec<&str> = seen
        .iter()
        .filter(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
        .collect();
    let mut why = format!("no request has the label {}", shown(label));
    let nearest = if values.is_empty() {
        let mut names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
        names.dedup();
        // If the suggested name has a label with this value, the whole label is suggested.
        veeksha_slo::nearest(name, names).map(|name| {
            let exists = seen.iter().any(|(known, of)| known == name && of == value);
            if exists {
                shown(&(name.to_owned(), value.clone()))
            } else {
                name.to_owned()
            }
        })
    } else {
        veeksha_slo::nearest(value, values.iter().copied())
            .map(|value| shown(&(name.clone(), value.to_owned())))
    };
    if let Some(nearest) = nearest {
        why.push_str(&format!("; did you mean {nearest}?"));
    }
    // Labels with the same name are the most useful suggestions.
    let listed: Vec<&&Label> = if values.is_empty() {
        seen.iter().collect()
    } else {
        seen.iter().filter(|(known, _)| known == name).collect()
    };
    if listed.is_empty() {
        why.push_str("; the requests have no labels");
        return why;
    }
    let names: Vec<String> = listed.iter().take(LISTED).map(|label| shown(label)).collect();
    why.push_str(&format!("; labels seen: {}", names.join(", ")));
    if listed.len() > LISTED {
        why.push_str(&format!(" and {} more", listed.len() - LISTED));
    }
    why
}

/// Formats a label as in an objective.
fn shown(label: &Label) -> String {
    LabelText(label).to_string()
}

fn all(labels: &[Label]) -> String {
    let labels: Vec<String> = labels.iter().map(shown).collect();
    labels.join(" and ")
}
