//! The memory limit of a store: all its memories and tables together, and their numbers.

use std::sync::Arc;

use wasmtime::ResourceLimiter;

use crate::limits::EngineLimits;
use crate::text::grouped;

/// Host memory per table element, in bytes.
const TABLE_ELEMENT_BYTES: usize = size_of::<usize>();

/// The refusal, passed through wasmtime as an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "plugin `{plugin}` asked for {} of memory in `{function}`, at most {} are allowed",
    mebibytes(*.asked),
    mebibytes(*.allowed)
)]
pub(crate) struct MemoryRefused {
    pub(crate) plugin: Arc<str>,
    pub(crate) function: &'static str,
    /// Bytes that the store would have had.
    pub(crate) asked: u64,
    pub(crate) allowed: u64,
}

/// The refusal of further table elements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its tables would have {} elements, at most {} are allowed",
    grouped(*.asked),
    grouped(*.allowed)
)]
pub(crate) struct TableRefused {
    asked: u64,
    allowed: u64,
}

fn mebibytes(bytes: u64) -> String {
    let mebi = bytes as f64 / f64::from(1 << 20);
    if mebi.fract() == 0.0 {
        format!("{mebi:.0} MiB")
    } else {
        format!("{mebi:.1} MiB")
    }
}

/// Memory accounting of a store. A refusal is an error, not `false`: a guest may handle a refused
/// growth arbitrarily, and the cause would be lost.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    pub(crate) plugin: Arc<str>,
    /// The running call, for the message.
    pub(crate) function: &'static str,
    pub(crate) used: u64,
    pub(crate) allowed: u64,
    /// The most that was used at any time.
    pub(crate) peak: u64,
    /// Elements of all tables.
    elements: u64,
    elements_allowed: u64,
    instances: usize,
    memories: usize,
    /// The last allowed growth, reverted if it fails afterwards.
    last: Growth,
}

/// A growth in bytes and table elements.
#[derive(Debug, Default)]
struct Growth {
    bytes: u64,
    elements: u64,
}

impl MemoryLimit {
    pub(crate) fn new(plugin: Arc<str>, limits: &EngineLimits) -> Self {
        MemoryLimit {
            plugin,
            function: "instantiate",
            used: 0,
            allowed: limits.memory_bytes,
            peak: 0,
            elements: 0,
            elements_allowed: limits.table_elements,
            instances: limits.instances,
            memories: limits.memories,
            last: Growth::default(),
        }
    }

    fn grow(&mut self, current: usize, desired: usize) -> wasmtime::Result<bool> {
        let growth = desired.saturating_sub(current) as u64;
        let asked = self.used.saturating_add(growth);
        if asked > self.allowed {
            let refused = MemoryRefused {
                plugin: Arc::clone(&self.plugin),
                function: self.function,
                asked,
                allowed: self.allowed,
            };
            return Err(wasmtime::Error::new(refused));
        }
        self.used = asked;
        self.peak = self.peak.max(asked);
        self.last = Growth {
            bytes: growth,
            elements: 0,
        };
        Ok(true)
    }

    fn take_back(&mut self) {
        let last = std::mem::take(&mut self.last);
        self.used = self.used.saturating_sub(last.bytes);
        self.elements = self.elements.saturating_sub(last.elements);
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.grow(current, desired)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let growth = desired.saturating_sub(current) as u64;
        let asked = self.elements.saturating_add(growth);
        if asked > self.elements_allowed {
            return Err(wasmtime::Error::new(TableRefused {
                asked,
                allowed: self.elements_allowed,
            }));
        }
        self.grow(
            current.saturating_mul(TABLE_ELEMENT_BYTES),
            desired.saturating_mul(TABLE_ELEMENT_BYTES),
        )?;
        self.elements = asked;
        self.last.elements = growth;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.memories
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn four_mebibytes() -> MemoryLimit {
        let limits = EngineLimits {
            memory_bytes: 4 << 20,
            table_elements: 1 << 17,
            ..EngineLimits::default()
        };
        MemoryLimit::new("p".into(), &limits)
    }

    #[test]
    fn memories_and_tables_share_one_allowance() {
        let mut limit = four_mebibytes();
        assert!(limit.memory_growing(0, 2 * MIB, None).unwrap());
        assert!(limit.memory_growing(0, MIB, None).unwrap(), "a second memory");
        assert!(limit.table_growing(0, MIB / 8, None).unwrap(), "1 MiB of table");
        limit.function = "workload.sessions";
        let refused = limit.memory_growing(MIB, MIB + (1 << 16), None).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "plugin `p` asked for 4.1 MiB of memory in `workload.sessions`, at most 4 MiB are allowed"
        );
        assert_eq!(limit.used, 4 * MIB as u64);
    }

    #[test]
    fn tables_have_a_maximum_of_elements() {
        let mut limit = four_mebibytes();
        limit.table_growing(0, 1 << 17, None).unwrap();
        let refused = limit.table_growing(1 << 17, (1 << 17) + 1, None).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "its tables would have 131,073 elements, at most 131,072 are allowed"
        );
        limit
            .table_grow_failed(wasmtime::Error::msg("no memory"))
            .unwrap();
        limit.table_growing(0, 1 << 17, None).unwrap();
    }

    #[test]
    fn a_growth_that_failed_is_not_counted() {
        let mut limit = four_mebibytes();
        limit.memory_growing(0, 3 * MIB, None).unwrap();
        limit
            .memory_grow_failed(wasmtime::Error::msg("no pages left"))
            .unwrap();
        assert_eq!(limit.used, 0);
    }
}
