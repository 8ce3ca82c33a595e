//! Idle instances of a plugin, which any worker may take.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Idle instances; the one used last is taken first. A plugin is opened through one interface, so
/// that all entries have one type.
#[derive(Default)]
pub(crate) struct InstancePool(Mutex<Vec<Box<dyn Any + Send>>>);

impl InstancePool {
    /// Takes an idle instance.
    pub(crate) fn take<T: Any>(&self) -> Option<T> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        idle.downcast().ok().map(|instance| *instance)
    }

    /// Returns an instance.
    pub(crate) fn put<T: Any + Send>(&self, instance: T) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(Box::new(instance));
    }
}

impl fmt::Debug for InstancePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstancePool").finish_non_exhaustive()
    }
}
