//! This process's part of a run's sessions, and how it is dealt out over dispatchers.

use veeksha_model::{Session, SessionId};
use veeksha_ports::{PluginFailure, SessionSource};
use veeksha_scheduler::Shard;

use crate::plan::{PipelineError, Plan, UnstartedSessions};

/// The sessions whose id is `index` modulo `count`: session `index + count * position`, for every
/// position from 0. Within the process, position `p` belongs to dispatcher `p` modulo the number of
/// dispatchers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partition {
    index: u32,
    count: u32,
    dispatchers: u32,
}

impl Partition {
    /// Returns the part of a plan's shard, with at most as many dispatchers as have something to
    /// do: each needs a slot of the concurrency target and a part of every limit.
    pub(crate) fn of(plan: &Plan) -> Result<Partition, PipelineError> {
        let Shard { index, count } = plan.shard;
        if index >= count {
            return Err(PipelineError::NoSuchShard { index, count });
        }
        let most = plan.scheduler.most_shards();
        // A target of nothing is a run of nothing, for one shard.
        let target = plan.scheduler.traffic.target().map(|target| target.max(1));
        let limits = plan.scheduler.limits;
        let shared = [
            (target, "concurrent sessions"),
            (limits.sessions, "sessions at a time"),
            (limits.in_flight, "requests in flight"),
            (limits.in_prefill, "requests in prefill"),
        ];
        for (most, what) in shared {
            if let Some(most) = most.filter(|most| count > *most) {
                return Err(PipelineError::TooManyShards { count, most, what });
            }
        }
        // Dispatcher `d` is shard `index + count * d` of all, which must be below `most`.
        let room = most.saturating_sub(index).div_ceil(count).min(u32::MAX / count);
        Ok(Partition {
            index,
            count,
            dispatchers: plan.dispatchers.clamp(1, room.max(1)),
        })
    }

    /// Returns the same part with one dispatcher.
    pub(crate) fn undivided(self) -> Partition {
        Partition {
            dispatchers: 1,
            ..self
        }
    }

    pub(crate) fn dispatchers(self) -> u32 {
        self.dispatchers
    }

    /// Returns the shard of the whole run that a dispatcher's scheduler owns.
    pub(crate) fn shard(self, dispatcher: u32) -> Shard {
        Shard {
            index: self.index + self.count * dispatcher,
            count: self.count * self.dispatchers,
        }
    }

    /// The session at a position.
    pub(crate) fn session(self, position: u64) -> SessionId {
        let before = u64::from(self.count).saturating_mul(position);
        SessionId(before.saturating_add(u64::from(self.index)))
    }

    /// Returns true if a session is of this part.
    pub(crate) fn owns(self, id: u64) -> bool {
        id % u64::from(self.count) == u64::from(self.index)
    }

    /// Returns the position of a session of this part.
    pub(crate) fn position(self, id: SessionId) -> u64 {
        id.0 / u64::from(self.count)
    }

    /// The dispatcher that drives a session of this part.
    pub(crate) fn dispatcher(self, id: SessionId) -> usize {
        (self.position(id) % u64::from(self.dispatchers)) as usize
    }

    /// Returns the number of sessions of this part whose id is below `end`.
    pub(crate) fn below(self, end: u64) -> u64 {
        end.saturating_sub(u64::from(self.index))
            .div_ceil(u64::from(self.count))
    }

    /// Returns the sessions at the positions `first .. end`, which never started for a reason.
    pub(crate) fn unstarted(self, reason: String, first: u64, end: u64) -> Option<UnstartedSessions> {
        let is_endless = end == self.below(u64::MAX);
        (first < end).then(|| UnstartedSessions {
            first: self.session(first),
            count: (!is_endless).then_some(end - first),
            total: (!is_endless).then_some(end),
            reason,
        })
    }

    /// Places that this part has in a concurrency target.
    pub(crate) fn places(self, target: u32) -> u64 {
        self.below(u64::from(target))
    }

    /// Asks a source for the sessions at the positions `first .. first + count`: in one call where
    /// their ids follow one another.
    pub(crate) fn sessions(
        self,
        source: &mut dyn SessionSource,
        first: u64,
        count: u32,
    ) -> Result<Vec<(SessionId, Session)>, PluginFailure> {
        if self.count == 1 {
            let sessions = source.sessions(first, count)?;
            return Ok((first..).map(SessionId).zip(sessions).collect());
        }
        let mut sessions = Vec::with_capacity(count as usize);
        for position in first..first + u64::from(count) {
            let id = self.session(position);
            match source.sessions(id.0, 1)?.pop() {
                Some(session) => sessions.push((id, session)),
                None => break,
            }
        }
        Ok(sessions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(count: u32, dispatchers: u32) -> Vec<Partition> {
        let part = |index| Partition {
            index,
            count,
            dispatchers,
        };
        (0..count).map(part).collect()
    }

    /// Every session is at one position of one part, and its dispatcher's scheduler owns it.
    #[test]
    fn parts_and_their_dispatchers_partition_the_sessions() {
        for (count, dispatchers) in [(1, 1), (1, 4), (3, 1), (3, 4), (5, 2)] {
            let mut seen = vec![0; 100];
            for part in parts(count, dispatchers) {
                let many = part.below(100);
                for position in 0..many {
                    let id = part.session(position);
                    seen[id.0 as usize] += 1;
                    assert_eq!(part.position(id), position);
                    let owners: Vec<u32> = (0..dispatchers)
                        .filter(|dispatcher| part.shard(*dispatcher).owns(id.0))
                        .collect();
                    assert_eq!(owners, [part.dispatcher(id) as u32]);
                }
                assert!(part.session(many).0 >= 100);
            }
            assert_eq!(seen, [1; 100]);
        }
    }

    #[test]
    fn largest_ids_do_not_overflow() {
        let part = parts(3, 2)[2];
        assert_eq!(part.below(u64::MAX), (u64::MAX - 2).div_ceil(3));
        assert_eq!(part.session(u64::MAX), SessionId(u64::MAX));
        assert_eq!((part.below(0), part.below(2), part.below(3)), (0, 0, 1));
    }
}
