//! A digest of the work planned for a run, for comparison with other runs.

use veeksha_model::SessionId;

/// The digest of a run's sessions as the workload planned them. Two runs with equal digests were
/// given the same work, regardless of the servers' answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadDigest {
    /// The number of planned sessions.
    pub sessions: u64,
    /// The digest of all sessions: 128 bits of BLAKE3 in hexadecimal, over the sessions in the
    /// order of their ids. A session is its id and its own digest, eight bytes each, in
    /// little-endian order.
    pub digest: String,
    /// The digests of the first 1, 2, 4, 8, ... sessions, up to their number: a shorter run with
    /// the same work has the same digests as a longer one for all prefixes that both have.
    pub prefixes: Vec<(u64, String)>,
}

impl WorkloadDigest {
    /// Returns the largest number of leading sessions for which both runs are known to have the
    /// same work; 0 if the first session already differs.
    pub fn common_prefix(&self, other: &WorkloadDigest) -> u64 {
        if self == other {
            return self.sessions;
        }
        let mine = self.prefixes.iter();
        let same = mine
            .zip(&other.prefixes)
            .take_while(|(mine, theirs)| mine == theirs);
        same.last().map_or(0, |((count, _), _)| *count)
    }
}

/// Sessions as planned by the workload.
#[derive(Debug, Default)]
pub(crate) struct PlannedSessions {
    sessions: Vec<(SessionId, u64)>,
}

impl PlannedSessions {
    pub(crate) fn add(&mut self, session: SessionId, digest: u64) {
        self.sessions.push((session, digest));
    }

    /// Returns the digest; `None` if no planned session is known.
    pub(crate) fn digest(mut self) -> Option<WorkloadDigest> {
        self.sessions.sort_unstable();
        self.sessions.dedup();
        let mut hasher = blake3::Hasher::new();
        let mut prefixes = Vec::new();
        for (count, (session, digest)) in (1u64..).zip(&self.sessions) {
            hasher.update(&session.0.to_le_bytes());
            hasher.update(&digest.to_le_bytes());
            if count.is_power_of_two() {
                prefixes.push((count, text(&hasher)));
            }
        }
        (!self.sessions.is_empty()).then(|| WorkloadDigest {
            sessions: self.sessions.len() as u64,
            digest: text(&hasher),
            prefixes,
        })
    }
}

fn text(hasher: &blake3::Hasher) -> String {
    let bytes = hasher.finalize();
    bytes.to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(sessions: &[(u64, u64)]) -> Option<WorkloadDigest> {
        let mut planned = PlannedSessions::default();
        sessions
            .iter()
            .for_each(|(session, digest)| planned.add(SessionId(*session), *digest));
        planned.digest()
    }

    #[test]
    fn the_order_of_planning_does_not_count() {
        assert_eq!(
            digest(&[(0, 7), (1, 8), (2, 9)]),
            digest(&[(2, 9), (0, 7), (1, 8)])
        );
        assert_eq!(digest(&[]), None);
    }

    #[test]
    fn runs_of_different_length_agree_on_what_both_have() {
        let long: Vec<(u64, u64)> = (0..11).map(|i| (i, i * i)).collect();
        let (long, short) = (digest(&long).unwrap(), digest(&long[..6]).unwrap());
        let counts: Vec<u64> = long.prefixes.iter().map(|(count, _)| *count).collect();
        assert_eq!(counts, [1, 2, 4, 8]);
        assert_eq!((long.sessions, short.sessions), (11, 6));
        assert_ne!(long.digest, short.digest);
        assert_eq!(long.common_prefix(&short), 4);
        assert_eq!(long.common_prefix(&long), 11);
    }

    #[test]
    fn other_work_has_another_digest() {
        let base = digest(&[(0, 7), (1, 8), (2, 9)]).unwrap();
        let other = digest(&[(0, 7), (1, 8), (2, 10)]).unwrap();
        assert_ne!(base.digest, other.digest);
        assert_eq!(base.common_prefix(&other), 2);
        assert_eq!(base.common_prefix(&digest(&[(1, 7), (2, 8), (3, 9)]).unwrap()), 0);
    }

    /// Compares with BLAKE3 of the explicit sixteen bytes.
    #[test]
    fn a_session_is_sixteen_bytes() {
        let bytes = [1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
        let expected = blake3::hash(&bytes).to_hex()[..32].to_owned();
        assert_eq!(digest(&[(1, 258)]).unwrap().digest, expected);
    }
}
