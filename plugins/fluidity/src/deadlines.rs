//! The rule: when tokens are due, and what it costs when they are late.

/// What became of the deadlines of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tokens that came by their deadline.
    pub(crate) on_time: u64,
    /// Tokens that came later.
    pub(crate) late: u64,
    /// Deadlines that passed while late tokens were awaited: at least one for each.
    pub(crate) misses: u64,
}

/// When tokens are due, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadlines {
    /// From dispatch to the first token.
    pub(crate) prefill: u64,
    /// From one token to the next; more than 0.
    pub(crate) decode: u64,
}

impl Deadlines {
    /// Counts over an answer that was dispatched at an instant, and whose chunks arrived then and carried so many tokens. The
    /// tokens of a chunk come at once.
    ///
    /// It is enough to know the instant `due` at which the next token must be there. A token that comes in time moves it on by
    /// one decode deadline, so that what came early is saved for those that follow. A late one has missed that instant and each
    /// decode deadline after it, and the next token is due one decode deadline after it came: nothing is saved any more.
    pub(crate) fn count(self, dispatched_at: u64, chunks: impl Iterator<Item = (u64, u32)>) -> Counts {
        let Deadlines { prefill, decode } = self;
        let mut counts = Counts::default();
        let mut due = dispatched_at.saturating_add(prefill);
        for (at, tokens) in chunks {
            if tokens == 0 {
                continue;
            }
            if at <= due {
                counts.on_time += 1;
                due = due.saturating_add(decode);
            } else {
                counts.late += 1;
                counts.misses += 1 + (at - due) / decode;
                due = at.saturating_add(decode);
            }
            // A product of 64 bits is dear in WebAssembly, and nearly every chunk carries one token.
            if tokens > 1 {
                let others = u64::from(tokens) - 1;
                counts.on_time += others;
                due = due.saturating_add(decode.saturating_mul(others));
            }
        }
        counts
    }
}

impl Counts {
    /// The form of etalon's code: a late token counts each deadline that it missed. `None` for an answer without tokens.
    pub(crate) fn by_deadlines(self) -> Option<f64> {
        share(self.on_time, self.on_time + self.misses)
    }

    /// The form of etalon's documentation: a late token counts once.
    pub(crate) fn by_tokens(self) -> Option<f64> {
        share(self.on_time, self.on_time + self.late)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Counts over tokens with these gaps, in milliseconds: `D_prefill` 100, `D_decode` 50.
    fn of(gaps: &[u64]) -> Counts {
        let deadlines = Deadlines {
            prefill: 100 * MS,
            decode: 50 * MS,
        };
        let mut at = 7 * MS;
        let arrivals = gaps.iter().map(|gap| {
            at += gap * MS;
            (at, 1)
        });
        deadlines.count(7 * MS, arrivals)
    }

    /// Worked out by hand with slack, as etalon writes it:
    ///
    /// | gap | allowed | slack after |
    /// |---|---|---|
    /// | 80 | 100 | 20 |
    /// | 60 | 50 + 20 | 10 |
    /// | 60 | 50 + 10 | 0 |
    /// | 170 | 50 | late: floor((170 - 0) / 50) = 3; 0 |
    /// | 50 | 50 | 0 |
    /// | 30 | 50 | 20 |
    /// | 100 | 50 + 20 | late: floor((100 - 20) / 50) = 1; 0 |
    #[test]
    fn golden_vector() {
        let counts = of(&[80, 60, 60, 170, 50, 30, 100]);
        let expected = Counts {
            on_time: 5,
            late: 2,
            misses: 4,
        };
        assert_eq!(counts, expected);
        assert_eq!(counts.by_deadlines(), Some(5.0 / 9.0));
        assert_eq!(counts.by_tokens(), Some(5.0 / 7.0));
    }

    /// The first token after 230: 1 + floor((230 - 100) / 50) = 3; the next two in time.
    #[test]
    fn golden_vector_of_a_late_first_token() {
        let counts = of(&[230, 50, 20]);
        assert_eq!((counts.on_time, counts.late, counts.misses), (2, 1, 3));
        assert_eq!(counts.by_deadlines(), Some(0.4));
        assert_eq!(counts.by_tokens(), Some(2.0 / 3.0));
    }

    /// The case in which the two forms differ most: ten seconds at 50 ms are 200 deadlines, and one token.
    #[test]
    fn a_stall_counts_its_length_or_its_token() {
        let counts = of(&[100, 10_000]);
        assert_eq!((counts.on_time, counts.late, counts.misses), (1, 1, 200));
        assert_eq!(counts.by_deadlines(), Some(1.0 / 201.0));
        assert_eq!(counts.by_tokens(), Some(0.5));
    }

    #[test]
    fn on_the_deadline_is_on_time_and_a_nanosecond_later_is_not() {
        assert_eq!(of(&[100, 50, 50]).misses, 0);
        let deadlines = Deadlines {
            prefill: 10,
            decode: 5,
        };
        let missed = |at| deadlines.count(0, [(at, 1)].into_iter()).misses;
        assert_eq!([missed(10), missed(11), missed(14), missed(15)], [0, 1, 1, 2]);
    }

    /// Tokens that come together save time for those that follow: of four at once, three are early by a deadline each.
    #[test]
    fn the_tokens_of_a_chunk_come_at_once() {
        let deadlines = Deadlines {
            prefill: 100,
            decode: 50,
        };
        let counts = |last| deadlines.count(0, [(100, 4), (200, 0), (last, 1)].into_iter());
        assert_eq!((counts(300).on_time, counts(300).late), (5, 0));
        assert_eq!((counts(301).on_time, counts(301).misses), (4, 1));
        // Of a late chunk, only its first token is late.
        let late = deadlines.count(0, [(110, 3)].into_iter());
        assert_eq!((late.on_time, late.late, late.misses), (2, 1, 1));
    }

    #[test]
    fn an_answer_without_tokens_has_no_index() {
        assert_eq!(of(&[]).by_deadlines(), None);
        assert_eq!(of(&[]).by_tokens(), None);
    }
}
