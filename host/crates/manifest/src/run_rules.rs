//! The rules for running a plugin that its manifest states and a scenario may override.

/// The number of instances of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstancePolicy {
    /// One instance for each worker thread, which keeps its state between calls.
    PerWorker,
    /// Instances that any worker takes from a pool.
    Pooled,
    /// A new instance for each call.
    PerCall,
}

impl InstancePolicy {
    /// All policies.
    pub const ALL: [InstancePolicy; 3] = [
        InstancePolicy::PerWorker,
        InstancePolicy::Pooled,
        InstancePolicy::PerCall,
    ];

    /// The name in a manifest: `per-worker`.
    pub const fn name(self) -> &'static str {
        match self {
            InstancePolicy::PerWorker => "per-worker",
            InstancePolicy::Pooled => "pooled",
            InstancePolicy::PerCall => "per-call",
        }
    }
}

/// The consequence of a trap of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTrap {
    /// The run ends.
    Abort,
    /// The plugin is started again, and the run goes on.
    Restart,
    /// The plugin is not called again, and the run goes on without it.
    Disable,
}

impl OnTrap {
    /// All consequences.
    pub const ALL: [OnTrap; 3] = [OnTrap::Abort, OnTrap::Restart, OnTrap::Disable];

    /// The name in a manifest: `abort`.
    pub const fn name(self) -> &'static str {
        match self {
            OnTrap::Abort => "abort",
            OnTrap::Restart => "restart",
            OnTrap::Disable => "disable",
        }
    }
}
