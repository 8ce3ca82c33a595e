//! A digest of the requests that a run sent, for comparison with other runs.

use veeksha_model::RequestRecord;

/// The digest of the request bodies that a run sent. Unlike the workload digest it depends on
/// everything that shapes a body: tokenizer, salt, model name, parameters and the answers that
/// conversations repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentRequests {
    /// The number of requests that were sent completely.
    pub requests: u64,
    /// The digest of all of them: 128 bits in hexadecimal. The sum, modulo 2¹²⁸, of the first 128
    /// bits of BLAKE3 over session, node (both as 64 bits) and body digest in little-endian order,
    /// so that the order in which requests end does not matter.
    pub digest: String,
    /// The same of the requests in the first 1, 2, 4, 8, ... sessions, until all are covered.
    pub prefixes: Vec<SentPrefix>,
}

/// The requests that a run sent in its first sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPrefix {
    /// The number of sessions, counted by their ids.
    pub sessions: u64,
    /// The number of their requests that were sent completely.
    pub requests: u64,
    /// The digest of these requests.
    pub digest: String,
}

/// Requests and the sum of their digests.
#[derive(Clone, Copy, Debug, Default)]
struct DigestSum {
    requests: u64,
    digest: u128,
}

/// Collects the digests of sent requests, in memory that does not grow with their number.
#[derive(Debug)]
pub(crate) struct SentDigests {
    /// By the number of significant bits in the session's id: the requests of the sessions from
    /// 2ⁿ⁻¹ to 2ⁿ − 1 at `n`.
    by_bits: [DigestSum; 65],
}

impl Default for SentDigests {
    fn default() -> Self {
        SentDigests {
            by_bits: [DigestSum::default(); 65],
        }
    }
}

impl SentDigests {
    /// Adds a finished request, unless it was not sent or its body is not known.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let (Some(body), Some(_)) = (record.body_digest, record.sent_at) else {
            return;
        };
        let session = record.id.session.0;
        let mut hasher = blake3::Hasher::new();
        for part in [session, u64::from(record.id.node.0), body] {
            hasher.update(&part.to_le_bytes());
        }
        let mut first = [0; 16];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        let bits = (u64::BITS - session.leading_zeros()) as usize;
        let sum = &mut self.by_bits[bits];
        sum.requests += 1;
        sum.digest = sum.digest.wrapping_add(u128::from_be_bytes(first));
    }

    /// Returns the digest; `None` if no body is known.
    pub(crate) fn digest(&self) -> Option<SentRequests> {
        let last = self.by_bits.iter().rposition(|sum| sum.requests > 0)?;
        let mut total = DigestSum::default();
        let mut prefixes = Vec::new();
        for (bits, sum) in self.by_bits.iter().enumerate().take(last + 1) {
            total.requests += sum.requests;
            total.digest = total.digest.wrapping_add(sum.digest);
            prefixes.push(SentPrefix {
                sessions: 1_u64.checked_shl(bits as u32).unwrap_or(u64::MAX),
                requests: total.requests,
                digest: format!("{:032x}", total.digest),
            });
        }
        Some(SentRequests {
            requests: total.requests,
            digest: format!("{:032x}", total.digest),
            prefixes,
        })
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::{NodeId, RequestId, SessionId};

    use super::*;

    fn request(session: u64, node: u32, body: u64) -> RequestRecord {
        RequestRecord {
            body_digest: Some(body),
            ..RequestRecord::answered(RequestId {
                session: SessionId(session),
                node: NodeId(node),
            })
        }
    }

    fn digest(requests: &[RequestRecord]) -> Option<SentRequests> {
        let mut sent = SentDigests::default();
        requests.iter().for_each(|request| sent.add(request));
        sent.digest()
    }

    #[test]
    fn order_of_completion_does_not_matter() {
        let requests = [request(0, 0, 1), request(0, 1, 2), request(9, 0, 3)];
        let mut reversed = requests.clone();
        reversed.reverse();
        assert_eq!(digest(&requests), digest(&reversed));
    }

    #[test]
    fn each_part_of_a_request_changes_the_digest() {
        let base = digest(&[request(4, 0, 1), request(5, 0, 2)]);
        let swapped_bodies = digest(&[request(4, 0, 2), request(5, 0, 1)]);
        let other_node = digest(&[request(4, 0, 1), request(5, 1, 2)]);
        let other_body = digest(&[request(4, 0, 1), request(5, 0, 3)]);
        for other in [swapped_bodies, other_node, other_body] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn requests_without_a_sent_body_are_left_out() {
        let unsent = RequestRecord {
            sent_at: None,
            ..request(0, 0, 1)
        };
        let virtual_time = RequestRecord {
            body_digest: None,
            ..request(0, 0, 1)
        };
        assert_eq!(digest(&[unsent, virtual_time]), None);
    }

    #[test]
    fn longer_run_has_the_prefixes_of_a_shorter_one() {
        let requests: Vec<RequestRecord> = (0..11).map(|session| request(session, 0, session)).collect();
        let (long, short) = (digest(&requests).unwrap(), digest(&requests[..4]).unwrap());
        let sessions: Vec<u64> = long.prefixes.iter().map(|prefix| prefix.sessions).collect();
        assert_eq!(sessions, [1, 2, 4, 8, 16]);
        assert_eq!(long.prefixes[..3], short.prefixes[..]);
        assert_eq!((long.requests, short.requests), (11, 4));
    }

    /// Compares with BLAKE3 of the explicit 24 bytes.
    #[test]
    fn digest_of_one_request_is_that_of_its_bytes() {
        let mut bytes = [0; 24];
        (bytes[0], bytes[8], bytes[16], bytes[17]) = (3, 2, 1, 1);
        let expected = blake3::hash(&bytes).to_hex()[..32].to_owned();
        assert_eq!(digest(&[request(3, 2, 257)]).unwrap().digest, expected);
    }

    #[test]
    fn largest_session_id_has_a_prefix() {
        let sent = digest(&[request(u64::MAX, 0, 1)]).unwrap();
        assert_eq!(sent.prefixes.last().unwrap().sessions, u64::MAX);
    }
}
