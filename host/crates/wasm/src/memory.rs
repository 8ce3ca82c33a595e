//! The memory limit of a store: all its memories and tables together.

use std::sync::Arc;

use wasmtime::ResourceLimiter;

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
    /// The last allowed growth, reverted if it fails afterwards.
    last: u64,
}

impl MemoryLimit {
    pub(crate) fn new(plugin: Arc<str>, allowed: u64) -> Self {
        MemoryLimit {
            plugin,
            function: "instantiate",
            used: 0,
            allowed,
            last: 0,
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
        self.last = growth;
        Ok(true)
    }

    fn take_back(&mut self) {
        self.used = self.used.saturating_sub(std::mem::take(&mut self.last));
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
        self.grow(
            current.saturating_mul(TABLE_ELEMENT_BYTES),
            desired.saturating_mul(TABLE_ELEMENT_BYTES),
        )
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn memories_and_tables_share_one_allowance() {
        let mut limit = MemoryLimit::new("p".into(), 4 * MIB as u64);
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
    fn a_growth_that_failed_is_not_counted() {
        let mut limit = MemoryLimit::new("p".into(), 4 * MIB as u64);
        limit.memory_growing(0, 3 * MIB, None).unwrap();
        limit
            .memory_grow_failed(wasmtime::Error::msg("no pages left"))
            .unwrap();
        assert_eq!(limit.used, 0);
    }
}
