//! All finished requests and tool runs of a run, and the samples of requests of each metric.

use veeksha_definitions::{ToolTimes, answer_tokens_by_chunk, gaps};
use veeksha_events::RequestRecord;
use veeksha_model::{Edge, Nanos, RequestId, SessionId, TIMER, ToolRunRecord};

use crate::fluidity::{Deadlines, Fluidity, token_gaps};
use crate::gaps::{GapRange, Gaps};
use crate::label_sets::LabelSets;
use crate::row::RequestRow;
use crate::token_counts::{AnswerTokens, PromptCounts};
use crate::tool_runs::{self, ToolRow};

/// The requests, each with the ranges of its variable-size data.
#[derive(Debug)]
pub(crate) struct RequestTable {
    pub(crate) rows: Vec<RequestRow>,
    /// The tool runs, which have labels and parents as requests do.
    pub(crate) tool_runs: Vec<ToolRow>,
    /// The nodes that the workload cancelled before they were sent, and their ends.
    pub(crate) unsent: Vec<(RequestId, Nanos)>,
    pub(crate) gaps: Gaps,
    pub(crate) labels: LabelSets,
    parents: Vec<Edge>,
    pub(crate) deadlines: Deadlines,
    /// True if the token count of some chunk that ends a gap is unknown or other than one.
    itl_differs: bool,
    /// Output tokens of answers that both the host and the server counted.
    pub(crate) answer_tokens: AnswerTokens,
    pub(crate) prompt_counts: PromptCounts,
}

impl RequestTable {
    pub(crate) fn new(deadlines: Deadlines) -> Self {
        RequestTable {
            rows: Vec::new(),
            tool_runs: Vec::new(),
            unsent: Vec::new(),
            gaps: Gaps::default(),
            labels: LabelSets::default(),
            parents: Vec::new(),
            deadlines,
            itl_differs: false,
            answer_tokens: AnswerTokens::default(),
            prompt_counts: PromptCounts::default(),
        }
    }

    /// Adds a finished request with any outcome. Returns its row.
    pub(crate) fn add(&mut self, record: &RequestRecord) -> &RequestRow {
        let mut row = RequestRow::of(record);
        row.labels = self.labels.number(&record.labels);
        row.parents = self.add_parents(&record.parents);
        if row.counts() {
            self.answer_tokens.add(record);
            self.prompt_counts.add(record);
        }
        if row.has_samples() {
            self.add_gaps(&mut row, record);
        }
        let place = self.rows.len();
        self.rows.push(row);
        &self.rows[place]
    }

    /// Adds a tool run that ended.
    pub(crate) fn add_tool_run(&mut self, record: &ToolRunRecord) {
        let row = ToolRow {
            id: record.id,
            times: ToolTimes::of(record),
            parents: self.add_parents(&record.parents),
            labels: self.labels.number(&tool_runs::labels(record)),
            measured: record.measured,
            is_timer: &*record.class == TIMER,
        };
        self.tool_runs.push(row);
    }

    fn add_parents(&mut self, parents: &[Edge]) -> (u32, u32) {
        let place = self.parents.len() as u32;
        self.parents.extend_from_slice(parents);
        (place, parents.len().min(u32::MAX as usize) as u32)
    }

    fn add_gaps(&mut self, row: &mut RequestRow, record: &RequestRecord) {
        row.gaps.at = self.gaps.next();
        if let Some(tokens) = answer_tokens_by_chunk(record) {
            let mut tokens = tokens.into_iter();
            row.counted = true;
            row.first_tokens = tokens.next().unwrap_or(0);
            for (gap, tokens) in gaps(record).zip(tokens) {
                self.gaps.push(gap, tokens);
            }
            self.count_deadlines(row);
        } else {
            gaps(record).for_each(|gap| self.gaps.push(gap, 1));
        }
        self.itl_differs |= row.gaps.count > 0 && (!row.counted || row.first_tokens == 0);
    }

    fn count_deadlines(&self, row: &mut RequestRow) {
        let Some(first) = row.observed.first.get().filter(|_| self.deadlines.decode > 0) else {
            return;
        };
        let mut fluidity = Fluidity::new(self.deadlines);
        let mut chunks = self.gaps.with_tokens(row.gaps);
        let mut after = first.saturating_sub(row.observed.dispatched);
        let mut tokens = row.first_tokens;
        while tokens == 0 {
            let Some((gap, next)) = chunks.next() else {
                return;
            };
            (after, tokens) = (after.saturating_add(gap), next);
        }
        fluidity.add(after, tokens);
        token_gaps(tokens, chunks).for_each(|(after, tokens)| fluidity.add(after, tokens));
        let observed = &mut row.observed;
        (observed.on_time, observed.late, observed.missed) = fluidity.counts();
    }

    /// Returns true if `itl` equals `tbc`: every chunk that ends a gap has one token.
    pub(crate) fn itl_is_tbc(&self) -> bool {
        !self.itl_differs && self.gaps.one_token_each()
    }

    /// Sorts the requests and tool runs by id, so that the result does not depend on the order in
    /// which they ended.
    pub(crate) fn sort(&mut self) {
        let numbers = self.labels.sort();
        for row in &mut self.rows {
            row.labels = numbers[row.labels as usize];
        }
        for row in &mut self.tool_runs {
            row.labels = numbers[row.labels as usize];
        }
        self.tool_runs
            .sort_unstable_by_key(|row| (row.id, row.times.completed));
        self.unsent.sort_unstable();
        self.rows
            .sort_unstable_by_key(|row| (row.id, row.observed.dispatched, row.completed));
    }

    /// Returns the index of a request among the sorted rows.
    pub(crate) fn find(&self, id: RequestId) -> Option<usize> {
        self.rows.binary_search_by_key(&id, |row| row.id).ok()
    }

    /// Returns the tool runs of a session, which must be sorted.
    pub(crate) fn tool_runs_of(&self, session: SessionId) -> &[ToolRow] {
        let begin = self.tool_runs.partition_point(|row| row.id.session < session);
        let of_session = &self.tool_runs[begin..];
        &of_session[..of_session.partition_point(|row| row.id.session == session)]
    }

    /// Returns the nodes of a session that were cancelled before they were sent, which must be
    /// sorted.
    pub(crate) fn unsent_of(&self, session: SessionId) -> &[(RequestId, Nanos)] {
        let begin = self.unsent.partition_point(|(id, _)| id.session < session);
        let of_session = &self.unsent[begin..];
        &of_session[..of_session.partition_point(|(id, _)| id.session == session)]
    }

    /// Returns the measured tool runs, without timers.
    pub(crate) fn measured_tool_runs(&self) -> impl Iterator<Item = &ToolRow> {
        self.tool_runs.iter().filter(|row| row.measured && !row.is_timer)
    }

    /// Returns the parents of a row, which holds their place and number.
    pub(crate) fn parents(&self, (at, count): (u32, u32)) -> &[Edge] {
        &self.parents[at as usize..at as usize + count as usize]
    }

    /// Returns the times between the tokens of a request with the number of tokens after each, if
    /// they are known.
    pub(crate) fn token_gaps(&self, row: &RequestRow) -> impl Iterator<Item = (u64, u32)> + '_ {
        let stretch = if row.counted {
            row.gaps
        } else {
            GapRange::default()
        };
        token_gaps(row.first_tokens, self.gaps.with_tokens(stretch))
    }
}

/// Equal if all requests are equal, wherever their gaps and parents are stored.
impl PartialEq for RequestTable {
    fn eq(&self, other: &Self) -> bool {
        let rows_agree = |(mine, theirs): (&RequestRow, &RequestRow)| {
            let placed_as_theirs = RequestRow {
                gaps: GapRange {
                    at: theirs.gaps.at,
                    ..mine.gaps
                },
                parents: (theirs.parents.0, mine.parents.1),
                ..*mine
            };
            placed_as_theirs == *theirs
                && self.parents(mine.parents) == other.parents(theirs.parents)
                && (!mine.has_samples()
                    || self
                        .gaps
                        .with_tokens(mine.gaps)
                        .eq(other.gaps.with_tokens(theirs.gaps)))
        };
        let tool_runs_agree = |(mine, theirs): (&ToolRow, &ToolRow)| {
            let placed_as_theirs = ToolRow {
                parents: (theirs.parents.0, mine.parents.1),
                ..*mine
            };
            placed_as_theirs == *theirs && self.parents(mine.parents) == other.parents(theirs.parents)
        };
        self.deadlines == other.deadlines
            && self.labels == other.labels
            && self.unsent == other.unsent
            && self.rows.len() == other.rows.len()
            && self.tool_runs.len() == other.tool_runs.len()
            && self.rows.iter().zip(&other.rows).all(rows_agree)
            && self.tool_runs.iter().zip(&other.tool_runs).all(tool_runs_agree)
    }
}
