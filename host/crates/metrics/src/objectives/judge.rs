//! Judgements of requests by plugins.

use std::collections::BTreeMap;

use veeksha_model::RequestId;

/// The judgements of plugins, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Judgements {
    by_plugin: BTreeMap<String, Vec<(RequestId, bool)>>,
}

impl Judgements {
    pub(crate) fn add(&mut self, plugin: &str, request: RequestId, good: bool) {
        match self.by_plugin.get_mut(plugin) {
            Some(judged) => judged.push((request, good)),
            None => {
                self.by_plugin.insert(plugin.to_owned(), vec![(request, good)]);
            }
        }
    }

    /// Sorts the judgements for queries. A plugin that judged is a judge, even if `judges` does not
    /// name it.
    pub(crate) fn sorted(mut self, judges: &[String]) -> SortedJudgements {
        for judge in judges {
            self.by_plugin.entry(judge.clone()).or_default();
        }
        let mut judged: Vec<_> = self.by_plugin.into_iter().collect();
        judged.iter_mut().for_each(|(_, judged)| judged.sort_unstable());
        SortedJudgements { judged }
    }
}

#[derive(Debug)]
pub(crate) struct SortedJudgements {
    /// By judge.
    judged: Vec<(String, Vec<(RequestId, bool)>)>,
}

impl SortedJudgements {
    pub(crate) fn has_judges(&self) -> bool {
        !self.judged.is_empty()
    }

    /// Returns true if every judge reported good. A missing judgement and a contradictory one are
    /// not good.
    pub(crate) fn all_good(&self, request: RequestId) -> bool {
        self.judged.iter().all(|(_, judged)| {
            let begin = judged.partition_point(|(id, _)| *id < request);
            judged.get(begin) == Some(&(request, true))
        })
    }

    /// Returns a judge that did not judge all of these requests, and the number of missing
    /// judgements.
    pub(crate) fn silent_on(&self, requests: impl Iterator<Item = RequestId> + Clone) -> Option<(&str, u64)> {
        let mut judges = self.judged.iter().map(|(judge, judged)| {
            let unknown = |request: &RequestId| judged.binary_search_by_key(request, |(id, _)| *id).is_err();
            (judge.as_str(), requests.clone().filter(unknown).count() as u64)
        });
        judges.find(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::{NodeId, SessionId};

    use super::*;

    #[test]
    fn good_requires_every_judge() {
        let id = |session| RequestId {
            session: SessionId(session),
            node: NodeId(0),
        };
        let mut judgements = Judgements::default();
        judgements.add("a", id(2), true);
        judgements.add("a", id(1), true);
        judgements.add("b", id(1), true);
        judgements.add("b", id(2), false);
        judgements.add("a", id(3), true);
        judgements.add("a", id(4), true);
        judgements.add("b", id(4), true);
        judgements.add("b", id(4), false);
        let judged = judgements.sorted(&[]);
        assert_eq!(
            [1, 2, 3, 4].map(|session| judged.all_good(id(session))),
            [true, false, false, false]
        );
        let asked = [1, 2, 3, 4].map(id);
        assert_eq!(judged.silent_on(asked.into_iter()), Some(("b", 1)));
        assert_eq!(judged.silent_on(asked.into_iter().take(2)), None);
        let silent = Judgements::default().sorted(&["a".to_owned()]);
        assert!(silent.has_judges() && !silent.all_good(id(1)));
        assert!(!Judgements::default().sorted(&[]).has_judges());
    }
}
