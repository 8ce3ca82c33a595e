//! Fluidity index: the smoothness of an answer's token arrivals, in both published forms.
//!
//! The first token is due `prefill` after the request's dispatch, each further one `decode` after
//! the token before it. If a token arrives early, the time saved is available to later tokens, as
//! in a player that buffers. A token that arrives after its deadline plus all saved time is late,
//! and the saved time is reset to zero: the deadlines restart from its arrival.
//!
//! The two forms differ in the cost of a late token. etalon's code counts every deadline that
//! passed while the token was pending (`fluidity`), so a stall of ten seconds at a deadline of 50
//! ms costs 200; etalon's documentation counts the token (`fluidity_tokens`), so the stall costs 1.
//!
//! A token arrives with its chunk. The tokens of one chunk arrive together: the first of them after
//! the gap, the others after a gap of 0.

use veeksha_model::Nanos;

/// Token deadlines. The defaults are etalon's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// `D_prefill`: from dispatch to the first token, in nanoseconds.
    pub prefill: Nanos,
    /// `D_decode`: from one token to the next, in nanoseconds. 0 disables fluidity.
    pub decode: Nanos,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            prefill: 100_000_000,
            decode: 50_000_000,
        }
    }
}

/// A counter of deadlines over the tokens of one answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fluidity {
    deadlines: Deadlines,
    saved: Nanos,
    on_time: u64,
    late: u64,
    /// Deadlines that passed while late tokens were pending.
    missed: u64,
}

impl Fluidity {
    pub(crate) fn new(deadlines: Deadlines) -> Self {
        Fluidity {
            deadlines,
            saved: 0,
            on_time: 0,
            late: 0,
            missed: 0,
        }
    }

    /// Adds tokens that arrived together, `after` nanoseconds after the tokens before them, or
    /// after dispatch for the first ones.
    pub(crate) fn add(&mut self, after: Nanos, tokens: u32) {
        if tokens == 0 {
            return;
        }
        let Deadlines { prefill, decode } = self.deadlines;
        let is_first = self.on_time + self.late == 0;
        let due = if is_first { prefill } else { decode };
        let allowed = due.saturating_add(self.saved);
        if after <= allowed {
            self.saved = allowed - after;
            self.on_time += 1;
        } else {
            // A late first token misses its own deadline and each decode deadline after it.
            let passed = if is_first {
                1 + (after - allowed).checked_div(decode).unwrap_or(0)
            } else {
                (after - self.saved).checked_div(decode).unwrap_or(1)
            };
            self.missed += passed;
            self.late += 1;
            self.saved = 0;
        }
        let others = u64::from(tokens - 1);
        self.on_time += others;
        self.saved = self.saved.saturating_add(decode.saturating_mul(others));
    }

    /// Returns tokens by their deadline, late tokens, and deadlines missed by late tokens. etalon's
    /// code defines on time ÷ (on time + missed), its documentation on time ÷ (on time + late).
    pub(crate) fn counts(self) -> (u32, u32, u32) {
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        (count(self.on_time), count(self.late), count(self.missed))
    }
}

/// Returns the times between successive tokens of an answer, from the gaps between its chunks and
/// the tokens of each: the delay of a chunk's tokens after the tokens before them, and their
/// number. The gap of a chunk without tokens is added to the next one. The first tokens have no
/// predecessor and are excluded.
pub(crate) fn token_gaps(
    first_tokens: u32,
    chunks: impl Iterator<Item = (Nanos, u32)>,
) -> impl Iterator<Item = (Nanos, u32)> {
    let mut begun = first_tokens > 0;
    let mut waited: Nanos = 0;
    chunks.filter_map(move |(gap, tokens)| {
        waited = waited.saturating_add(gap);
        if tokens == 0 {
            return None;
        }
        let after = std::mem::take(&mut waited);
        std::mem::replace(&mut begun, true).then_some((after, tokens))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// One token at each of these gaps, in milliseconds, with D_prefill 100 ms and D_decode 50 ms.
    fn of(gaps: &[Nanos]) -> Fluidity {
        let mut fluidity = Fluidity::new(Deadlines::default());
        gaps.iter().for_each(|gap| fluidity.add(gap * MS, 1));
        fluidity
    }

    /// 80: on time, 20 saved. 60: allowed 70, 10 saved. 60: allowed 60, nothing saved. 170: late,
    /// floor(170 / 50) = 3 deadlines. 50: on time. 30: 20 saved. 100: allowed 70, late,
    /// floor((100 - 20) / 50) = 1. Code: 5 / (5 + 3 + 1). Documentation: 5 / (5 + 2).
    #[test]
    fn golden_vector_of_both_forms() {
        let seen = of(&[80, 60, 60, 170, 50, 30, 100]);
        assert_eq!(seen.counts(), (5, 2, 4));
    }

    /// First token after 230: 1 + floor((230 - 100) / 50) = 3 deadlines; then two on time: 2 /
    /// (2 + 3) and 2 / (2 + 1).
    #[test]
    fn golden_vector_of_a_late_first_token() {
        let seen = of(&[230, 50, 20]);
        assert_eq!(seen.counts(), (2, 1, 3));
    }

    /// A stall of ten seconds with D_decode 50 ms: 200 deadlines, one token.
    #[test]
    fn a_stall_costs_its_length_or_its_token() {
        let seen = of(&[100, 10_000]);
        assert_eq!(seen.counts(), (1, 1, 200));
    }

    #[test]
    fn tokens_on_their_deadline_are_on_time() {
        assert_eq!(of(&[100, 50, 50]).counts(), (3, 0, 0));
        assert_eq!(of(&[]).counts(), (0, 0, 0));
    }

    /// Three tokens at once after 100: the first saves no time, each of the others 50. 150 is then
    /// on time, 151 is late.
    #[test]
    fn the_tokens_of_a_chunk_save_time() {
        let after = |gap: Nanos| {
            let mut fluidity = Fluidity::new(Deadlines::default());
            fluidity.add(100 * MS, 3);
            fluidity.add(gap, 1);
            fluidity.counts()
        };
        assert_eq!(after(150 * MS), (4, 0, 0));
        // Late by a nanosecond: (150 ms + 1 ns - 100 ms saved) / 50 ms.
        assert_eq!(after(150 * MS + 1), (3, 1, 1));
    }

    #[test]
    fn a_chunk_without_tokens_hands_its_gap_on() {
        let gaps =
            |first, chunks: &[(Nanos, u32)]| token_gaps(first, chunks.iter().copied()).collect::<Vec<_>>();
        assert_eq!(gaps(1, &[(10, 1), (5, 0), (7, 2), (3, 0)]), [(10, 1), (12, 2)]);
        // The first tokens arrive with the second chunk.
        assert_eq!(gaps(0, &[(10, 2), (5, 1)]), [(5, 1)]);
        assert_eq!(gaps(1, &[]), []);
    }
}
