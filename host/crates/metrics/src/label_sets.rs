//! The labels of requests, with each distinct set stored once.

use std::collections::HashMap;
use std::sync::Arc;

use veeksha_model::Label;

/// The index of a label set; 0 is the empty set.
pub(crate) type LabelSet = u32;

/// All label sets of a run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct LabelSets {
    /// Without the empty set: set `n` is at index `n - 1`.
    sets: Vec<Arc<[Label]>>,
    known: HashMap<Arc<[Label]>, LabelSet>,
}

impl LabelSets {
    /// Returns the index of a set, whose labels may be in any order.
    pub(crate) fn number(&mut self, labels: &[Label]) -> LabelSet {
        if labels.is_empty() {
            return 0;
        }
        let sorted;
        let labels = if labels.is_sorted() {
            labels
        } else {
            let mut copy = labels.to_vec();
            copy.sort_unstable();
            sorted = copy;
            &sorted[..]
        };
        if let Some(number) = self.known.get(labels) {
            return *number;
        }
        let set: Arc<[Label]> = labels.into();
        self.sets.push(Arc::clone(&set));
        let number = self.sets.len() as LabelSet;
        self.known.insert(set, number);
        number
    }

    /// Sorts the sets by their labels, independent of insertion order. Returns the new index of
    /// each old one.
    pub(crate) fn sort(&mut self) -> Vec<LabelSet> {
        let before = std::mem::take(&mut self.sets);
        self.sets = before.clone();
        self.sets.sort_unstable();
        self.known = self.sets.iter().cloned().zip(1..).collect();
        let new = before.iter().map(|set| self.known.get(set).copied().unwrap_or(0));
        std::iter::once(0).chain(new).collect()
    }

    /// Returns the labels of a set, sorted.
    pub(crate) fn labels(&self, set: LabelSet) -> &[Label] {
        match (set as usize)
            .checked_sub(1)
            .and_then(|place| self.sets.get(place))
        {
            Some(labels) => labels,
            None => &[],
        }
    }

    /// Returns the labels of all sets, with duplicates across sets.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Label> {
        self.sets.iter().flat_map(|set| set.iter())
    }

    /// Returns the set of labels that all of these sets contain.
    pub(crate) fn common(&mut self, sets: impl IntoIterator<Item = LabelSet>) -> LabelSet {
        let mut sets = sets.into_iter();
        let Some(first) = sets.next() else {
            return 0;
        };
        let mut common = first;
        for set in sets.filter(|set| *set != first) {
            let kept: Vec<Label> = self
                .labels(common)
                .iter()
                .filter(|label| self.labels(set).contains(label))
                .cloned()
                .collect();
            common = self.number(&kept);
        }
        common
    }

    /// Returns the sets that contain all of these labels.
    pub(crate) fn matching(&self, filter: &[Label]) -> Matching {
        let has_all = |set: &Arc<[Label]>| filter.iter().all(|label| set.contains(label));
        Matching {
            all: filter.is_empty(),
            unlabelled: filter.is_empty(),
            sets: self.sets.iter().map(has_all).collect(),
        }
    }

    /// Returns a filter that any of these sets passes.
    pub(crate) fn matching_any(&self, sets: &[LabelSet]) -> Matching {
        Matching {
            all: false,
            unlabelled: sets.contains(&0),
            sets: (1..)
                .zip(&self.sets)
                .map(|(set, _)| sets.contains(&set))
                .collect(),
        }
    }
}

/// The sets that match a filter.
#[derive(Debug)]
pub(crate) struct Matching {
    /// True if there is no filter.
    all: bool,
    /// True if the empty set matches.
    unlabelled: bool,
    sets: Vec<bool>,
}

impl Matching {
    pub(crate) fn has(&self, set: LabelSet) -> bool {
        match (set as usize).checked_sub(1) {
            None => self.unlabelled,
            Some(place) => self.sets.get(place).copied().unwrap_or(false),
        }
    }

    /// Returns true if all sets match.
    pub(crate) fn is_all(&self) -> bool {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<Label> {
        text.split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn a_set_is_kept_once_in_any_order() {
        let mut sets = LabelSets::default();
        let both = sets.number(&labels("tier=gold kind=chat"));
        assert_eq!(sets.number(&labels("kind=chat tier=gold")), both);
        assert_eq!((sets.number(&[]), both), (0, 1));
        assert_eq!(sets.labels(both), labels("kind=chat tier=gold"));
    }

    #[test]
    fn sorted_sets_are_independent_of_arrival_order() {
        let (mut one, mut other) = (LabelSets::default(), LabelSets::default());
        for text in ["a=1", "b=2", "a=0"] {
            one.number(&labels(text));
        }
        for text in ["a=0", "a=1", "b=2"] {
            other.number(&labels(text));
        }
        assert_eq!(one.sort(), [0, 2, 3, 1]);
        assert_eq!(other.sort(), [0, 1, 2, 3]);
        assert_eq!(one, other);
    }

    #[test]
    fn a_filter_passes_what_has_all_its_labels() {
        let mut sets = LabelSets::default();
        let gold = sets.number(&labels("tier=gold"));
        let chat = sets.number(&labels("tier=gold kind=chat"));
        let free = sets.number(&labels("tier=free"));
        let seen = |filter: &str| [0, gold, chat, free].map(|set| sets.matching(&labels(filter)).has(set));
        assert_eq!(seen(""), [true; 4]);
        assert_eq!(seen("tier=gold"), [false, true, true, false]);
        assert_eq!(seen("tier=gold kind=chat"), [false, false, true, false]);
        assert_eq!(seen("tier=silver"), [false; 4]);
    }

    #[test]
    fn a_session_has_what_all_its_requests_have() {
        let mut sets = LabelSets::default();
        let first = sets.number(&labels("tier=gold turn=1"));
        let second = sets.number(&labels("tier=gold turn=2"));
        let gold = sets.number(&labels("tier=gold"));
        assert_eq!(sets.common([first, second]), gold);
        assert_eq!(sets.common([first, first]), first);
        assert_eq!(sets.common([first, 0]), 0);
        assert_eq!(sets.common([]), 0);
    }
}
