//! Positions of the rows of a trace.

use veeksha_model::Nanos;

/// Marker for the absence of a row.
pub(crate) const NONE: u32 = u32::MAX;

/// Maximum number of rows in an index.
pub(crate) const MAX_ROWS: usize = (u32::MAX - 1) as usize;

/// The rows in use, in the order of the trace. 12 bytes per row, 8 more with arrivals, 4 more if
/// rows were skipped.
#[derive(Debug, Default)]
pub(crate) struct RowIndex {
    /// Offset of each row in its file.
    pub(crate) offsets: Vec<u64>,
    /// Length of each row in bytes.
    pub(crate) lens: Vec<u32>,
    /// Arrival of each row; [`NO_ARRIVAL`] if it has none. Empty if the layout has no arrivals.
    pub(crate) arrivals: Vec<i64>,
    /// Number of each row in the trace; `None`: index + 1.
    pub(crate) numbers: Option<Vec<u32>>,
    /// Index of the first row of each file.
    pub(crate) first_of_file: Vec<u32>,
}

/// Exclusive upper bound of times, so that every guest language can represent them: 104 days.
pub(crate) const TIME_END: Nanos = 1 << 53;

/// Marker for an absent arrival. No recorded arrival has this value: it would be 292 years before
/// the first.
pub(crate) const NO_ARRIVAL: i64 = i64::MIN;

impl RowIndex {
    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns the file of a row.
    pub(crate) fn file_of(&self, row: u32) -> usize {
        self.first_of_file
            .partition_point(|first| *first <= row)
            .saturating_sub(1)
    }

    /// Returns the rows of a file.
    pub(crate) fn of_file(&self, file: usize) -> std::ops::Range<u32> {
        let end = self.first_of_file.get(file + 1).copied();
        self.first_of_file[file]..end.unwrap_or(self.len() as u32)
    }

    /// Returns a row's number in the trace, from 1.
    pub(crate) fn number(&self, row: u32) -> u64 {
        match self
            .numbers
            .as_ref()
            .and_then(|numbers| numbers.get(row as usize))
        {
            Some(number) => u64::from(*number),
            None => u64::from(row) + 1,
        }
    }

    /// Returns a row's arrival; `None` beyond [`TIME_END`].
    pub(crate) fn arrival(&self, row: u32) -> Option<Nanos> {
        match self.arrivals.get(row as usize) {
            None | Some(&NO_ARRIVAL) => None,
            Some(at) => u64::try_from(*at).ok().filter(|at| *at < TIME_END),
        }
    }

    /// Stores the row numbers before they stop matching the indices.
    pub(crate) fn fix_numbers(&mut self) {
        if self.numbers.is_none() {
            self.numbers = Some((1..=self.len() as u32).collect());
        }
    }

    /// Drops the rows that are not wanted.
    pub(crate) fn retain(&mut self, wanted: impl Fn(usize) -> bool) {
        self.fix_numbers();
        let mut kept = 0;
        let mut file = 0;
        for row in 0..=self.len() {
            while self
                .first_of_file
                .get(file)
                .is_some_and(|first| *first as usize == row)
            {
                self.first_of_file[file] = kept;
                file += 1;
            }
            kept += u32::from(row < self.len() && wanted(row));
        }
        retain(&mut self.offsets, &wanted);
        retain(&mut self.lens, &wanted);
        retain(&mut self.arrivals, &wanted);
        if let Some(numbers) = &mut self.numbers {
            retain(numbers, &wanted);
        }
    }

    /// Makes arrivals relative to the earliest.
    pub(crate) fn rebase_arrivals(&mut self) {
        let earliest = self.arrivals.iter().copied().filter(|at| *at != NO_ARRIVAL).min();
        if let Some(earliest) = earliest {
            for at in self.arrivals.iter_mut().filter(|at| **at != NO_ARRIVAL) {
                // Arrivals more than 292 years apart saturate; they cannot be replayed anyway.
                *at = at.saturating_sub(earliest);
            }
        }
    }
}

/// Keeps the wanted items of a list, in place; an empty list stays empty.
pub(crate) fn retain<T>(items: &mut Vec<T>, wanted: impl Fn(usize) -> bool) {
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        wanted(at - 1)
    });
    items.shrink_to_fit();
}
