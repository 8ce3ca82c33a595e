//! What work a run was given, as a digest that another run can be compared with.

use veeksha_model::SessionId;

/// The digest of a run's sessions as the workload planned them. Two runs with equal digests were given the same work, whatever the servers
/// answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadDigest {
    /// Sessions planned.
    pub sessions: u64,
    /// Of all of them: 128 bits of BLAKE3, in hexadecimal digits, over the sessions in the order of their ids; a session is its id
    /// and its own digest, eight bytes each, the lowest first.
    pub digest: String,
    /// The same of the first 1, 2, 4, 8, ... sessions, as many as there are: a shorter run with the same work agrees with a longer one in all
    /// of them that both have.
    pub prefixes: Vec<(u64, String)>,
}

impl WorkloadDigest {
    /// The largest number of sessions, counted from the first, of which both runs are known to have been given the same; 0 if
    /// already the first differs.
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

/// Sessions as they are planned.
#[derive(Debug, Default)]
pub(crate) struct PlannedSessions {
    sessions: Vec<(SessionId, u64)>,
}

impl PlannedSessions {
    pub(crate) fn add(&mut self, session: SessionId, digest: u64) {
        self.sessions.push((session, digest));
    }

    /// `None` if nothing is known of what was planned.
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

    /// Against BLAKE3 of the sixteen bytes written out.
    #[test]
    fn a_session_is_sixteen_bytes() {
        let bytes = [1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
        let expected = blake3::hash(&bytes).to_hex()[..32].to_owned();
        assert_eq!(digest(&[(1, 258)]).unwrap().digest, expected);
    }
}
