//! The prompt tokens of a request, classified by what the servers' caches could have known.

use veeksha_model::CacheKnowledge;

/// A class of prompt tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheClass {
    /// Found in the server's cache.
    Reused,
    /// Computed by the same server before, and not found.
    Evicted,
    /// Computed by another server only.
    Rerouted,
    /// The same text was computed behind another beginning.
    Changed,
    /// The rest.
    New,
}

impl CacheClass {
    /// All classes, in the order of files and tables.
    pub const ALL: [CacheClass; 5] = [
        CacheClass::Reused,
        CacheClass::Evicted,
        CacheClass::Rerouted,
        CacheClass::Changed,
        CacheClass::New,
    ];

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            CacheClass::Reused => "reused",
            CacheClass::Evicted => "evicted",
            CacheClass::Rerouted => "rerouted",
            CacheClass::Changed => "changed",
            CacheClass::New => "new",
        }
    }

    /// Returns the name in tables.
    pub fn title(self) -> &'static str {
        match self {
            CacheClass::Reused => "reused",
            CacheClass::Evicted => "evicted",
            CacheClass::Rerouted => "routed elsewhere",
            CacheClass::Changed => "prefix changed",
            CacheClass::New => "first seen",
        }
    }
}

/// Prompt tokens by class. They add up to the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTokens([u64; CacheClass::ALL.len()]);

impl CacheTokens {
    /// Classifies the tokens of a prompt, of which the server found `cached` in its cache; `None`
    /// if the numbers contradict each other.
    pub fn of(prompt: u32, cached: u32, known: CacheKnowledge) -> Option<Self> {
        let CacheKnowledge {
            same_server,
            any_server,
            moved,
        } = known;
        let new = prompt.checked_sub(any_server.max(cached))?.checked_sub(moved)?;
        let rerouted = any_server.checked_sub(same_server)?;
        let rerouted = rerouted.min(any_server.saturating_sub(cached));
        let tokens = [cached, same_server.saturating_sub(cached), rerouted, moved, new];
        Some(CacheTokens(tokens.map(u64::from)))
    }

    /// Returns the tokens of a class.
    pub fn class(&self, class: CacheClass) -> u64 {
        self.0[class as usize]
    }

    /// Returns the tokens of all classes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds the tokens of another prompt.
    pub fn add(&mut self, other: &CacheTokens) {
        for (sum, tokens) in self.0.iter_mut().zip(other.0) {
            *sum += tokens;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn classes(prompt: u32, cached: u32, same_server: u32, any_server: u32, moved: u32) -> Option<[u64; 5]> {
        let known = CacheKnowledge {
            same_server,
            any_server,
            moved,
        };
        let tokens = CacheTokens::of(prompt, cached, known)?;
        Some(CacheClass::ALL.map(|class| tokens.class(class)))
    }

    #[test]
    fn classes_worked_out_by_hand() {
        // Of 100 tokens 30 were cached; the server had computed 50, another one 70; 20 behind them
        // are known text.
        assert_eq!(classes(100, 30, 50, 70, 20), Some([30, 20, 20, 20, 10]));
        // The cache has more than the same server explains: the rest of what another one has.
        assert_eq!(classes(100, 60, 50, 70, 0), Some([60, 0, 10, 0, 30]));
        // The cache has more than the run explains.
        assert_eq!(classes(100, 90, 50, 70, 5), Some([90, 0, 0, 5, 5]));
        assert_eq!(classes(100, 0, 0, 0, 0), Some([0, 0, 0, 0, 100]));
        // Contradictions, as in a damaged record.
        assert_eq!(classes(100, 101, 0, 0, 0), None);
        assert_eq!(classes(100, 0, 50, 40, 0), None);
        assert_eq!(classes(100, 60, 50, 60, 41), None);
    }

    proptest! {
        #[test]
        fn classes_add_up(prompt in 0u32.., cached in 0u32.., same in 0u32.., any in 0u32.., moved in 0u32..) {
            let known = CacheKnowledge { same_server: same, any_server: any, moved };
            if let Some(tokens) = CacheTokens::of(prompt, cached, known) {
                prop_assert_eq!(tokens.total(), u64::from(prompt));
            }
        }

        #[test]
        fn consistent_numbers_have_classes(parts in prop::array::uniform4(0u32..1000), cached in 0u32..4000) {
            let [same, other, moved, rest] = parts;
            let any = same + other;
            let prompt = any.max(cached) + moved + rest;
            let known = CacheKnowledge { same_server: same, any_server: any, moved };
            let tokens = CacheTokens::of(prompt, cached, known);
            prop_assert_eq!(tokens.map(|tokens| tokens.total()), Some(u64::from(prompt)));
        }
    }
}
