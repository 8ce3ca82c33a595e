//! The rules of tool classes, checked over all calls of a run that were served to their end.

use veeksha_model::Nanos;
use veeksha_scheduler::ToolClass;

/// A call that was served to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServedCall {
    pub(super) id: (u64, u32),
    pub(super) ready: Nanos,
    /// The instant at which the scheduler learned of it, or `ready` if that is later.
    pub(super) entered: Nanos,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
}

impl ServedCall {
    /// The instant at which its start was decided.
    fn decided(&self) -> Nanos {
        self.start.max(self.entered)
    }

    /// Returns true if it was decided before another one, or possibly in the same call.
    fn may_precede(&self, other: &ServedCall) -> bool {
        self.id != other.id && self.decided() <= other.decided()
    }
}

/// Checks the calls of a class: starts keep their spacing, no more are served at once than there
/// are servers, the one that was ready first is served first, and none waits without a reason.
/// `dropped` calls may have been in service as well.
pub(super) fn check_servers(class: &ToolClass, calls: &[ServedCall], dropped: usize) {
    let mut calls = calls.to_vec();
    calls.sort_unstable_by_key(|call| (call.start, call.ready, call.id));
    for pair in calls.windows(2) {
        let spacing = pair[1].start - pair[0].start;
        assert!(spacing >= class.spacing, "{pair:?} of {class:?}");
    }
    for (index, call) in calls.iter().enumerate() {
        if let Some(servers) = class.servers {
            let served = calls
                .iter()
                .filter(|other| other.start <= call.start && call.start < other.end);
            // One without a service time needs a server between the others.
            let around = calls
                .iter()
                .filter(|other| other.start < call.start && call.start < other.end);
            let is_free = served.count() <= servers as usize
                && (call.end > call.start || around.count() < servers as usize);
            assert!(is_free, "{call:?} is one too many of {class:?}");
        }
        for later in &calls[index + 1..] {
            // It waited already, and for longer.
            let is_overtaken =
                later.ready < call.ready && later.entered < call.decided() && later.start > call.start;
            assert!(!is_overtaken, "{call:?} before {later:?}");
        }
        if dropped == 0 {
            check_wait(class, call, &calls);
        }
    }
}

/// A call that waits had no server, or was too close to another start, the instant before its own.
fn check_wait(class: &ToolClass, call: &ServedCall, calls: &[ServedCall]) {
    if call.start == call.ready {
        return;
    }
    let earlier = call.start - 1;
    let before = || calls.iter().filter(|other| other.may_precede(call));
    let taken = before().filter(|other| other.end > earlier).count();
    let has_server = class.servers.is_none_or(|servers| taken < servers as usize);
    let is_spaced = before().all(|other| other.start.abs_diff(earlier) >= class.spacing);
    assert!(
        !has_server || !is_spaced,
        "{call:?} waits in {class:?}: {calls:?}"
    );
}
