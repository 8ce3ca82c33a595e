//! An LRU cache with a limit in bytes.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

/// Texts by key; the least recently used are evicted first.
///
/// A text is kept only from its second request on: most prompts are unique, and would evict the
/// shared ones.
#[derive(Debug)]
pub(crate) struct TextCache<K> {
    limit: usize,
    bytes: usize,
    tick: u64,
    texts: HashMap<K, (Arc<str>, u64)>,
    by_use: BTreeMap<u64, K>,
    /// A bounded number of keys that were requested once.
    seen: Recent<K>,
}

/// A set that drops its older half when it is full.
#[derive(Debug)]
struct Recent<K> {
    limit: usize,
    young: std::collections::HashSet<K>,
    old: std::collections::HashSet<K>,
}

impl<K: Copy + Eq + Hash> TextCache<K> {
    /// Creates a cache of at most `limit` bytes of text.
    pub(crate) fn new(limit: usize) -> Self {
        TextCache {
            limit,
            bytes: 0,
            tick: 0,
            texts: HashMap::new(),
            by_use: BTreeMap::new(),
            seen: Recent {
                limit: 1 << 15,
                young: Default::default(),
                old: Default::default(),
            },
        }
    }

    /// Returns the text, if it is cached.
    pub(crate) fn get(&mut self, key: K) -> Option<Arc<str>> {
        let (text, used) = self.texts.get_mut(&key)?;
        self.tick += 1;
        self.by_use.remove(used);
        self.by_use.insert(self.tick, key);
        *used = self.tick;
        Some(text.clone())
    }

    /// Offers a text that was requested and not cached.
    pub(crate) fn offer(&mut self, key: K, text: &Arc<str>) {
        if text.len() > self.limit / 4 || self.texts.contains_key(&key) || self.seen.first_time(key) {
            return;
        }
        self.tick += 1;
        self.bytes += text.len();
        self.texts.insert(key, (text.clone(), self.tick));
        self.by_use.insert(self.tick, key);
        while self.bytes > self.limit
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            if let Some((text, _)) = self.texts.remove(&oldest) {
                self.bytes -= text.len();
            }
        }
    }
}

impl<K: Copy + Eq + Hash> Recent<K> {
    fn first_time(&mut self, key: K) -> bool {
        if self.young.contains(&key) || self.old.contains(&key) {
            return false;
        }
        if self.young.len() >= self.limit {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: usize) -> Arc<str> {
        "x".repeat(bytes).into()
    }

    #[test]
    fn keeps_only_texts_requested_twice() {
        let mut cache = TextCache::new(1000);
        cache.offer(1, &text(10));
        assert!(cache.get(1).is_none());
        cache.offer(1, &text(10));
        assert_eq!(cache.get(1).unwrap().len(), 10);
    }

    #[test]
    fn evicts_least_recently_used_within_the_byte_limit() {
        let mut cache = TextCache::new(1000);
        for round in 0..2 {
            for key in 0..4 {
                cache.offer(key, &text(250));
            }
            assert_eq!(cache.bytes, 1000 * round);
        }
        assert!(cache.get(0).is_some());
        cache.offer(9, &text(250));
        cache.offer(9, &text(250));
        assert!(cache.get(1).is_none() && cache.get(0).is_some() && cache.get(9).is_some());
        assert_eq!((cache.bytes, cache.texts.len(), cache.by_use.len()), (1000, 4, 4));
        // A text of more than a quarter of the cache is not worth what it would evict.
        cache.offer(5, &text(251));
        cache.offer(5, &text(251));
        assert!(cache.get(5).is_none());
    }

    #[test]
    fn bounds_the_remembered_keys() {
        let mut cache = TextCache::new(10);
        for key in 0..200_000 {
            cache.offer(key, &text(1));
        }
        assert!(cache.seen.young.len() + cache.seen.old.len() <= 1 << 16);
    }
}
