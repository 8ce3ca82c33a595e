//! Storage for more samples than are kept individually: cells of time with histograms.

use veeksha_model::Nanos;

use crate::sample::TimedSample;
use crate::series::{Series, SeriesEntry};

/// Maximum number of cells.
const CELLS: usize = 256;

/// Minimum number of cells that the first samples must fill; otherwise time is not informative.
const FEWEST: usize = 32;

/// Maximum number of columns of a histogram.
const COLUMNS: usize = 1 << 14;

/// Initial binary logarithm of the columns per octave: each is at most 0.2 % wide.
const FINEST: u32 = 9;

/// Octaves of a double: its sign and exponent.
const OCTAVES: usize = 1 << 12;

/// Initial binary logarithm of a cell's length in nanoseconds: about a millisecond. Lengths are
/// powers of two, so that the final one does not depend on the order of the samples.
const SHORTEST: u32 = 20;

/// Marker for an octave without a page.
const NONE: u16 = u16::MAX;

/// Samples by time and value.
///
/// The column of a value follows from the bits of the double: sign and exponent select an octave,
/// which gets a page of columns on first use, and the highest bits of the mantissa select the
/// column within the page. This is the log-linear histogram of HdrHistogram, for doubles.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Binned {
    /// Binary logarithm of the columns per page.
    fineness: u32,
    /// Page of each octave.
    pages: Vec<u16>,
    page_count: usize,
    /// Weighted sum of the values in each column over all cells: divided by the column's weight, it
    /// is the value that represents the column.
    sums: Vec<f64>,
    along: Along,
    /// Binary logarithm of a cell's length.
    length: u32,
    /// Number of keys so far, counting runs of samples with equal keys.
    origins: u64,
    /// Key of the last sample.
    last: Option<u64>,
    cells: Vec<TimeCell>,
}

/// Dimension along which cells are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Along {
    /// Time from this instant on; earlier samples belong to the first cell.
    Time(Nanos),
    /// Order of arrival; adjacent samples with one key are in one cell.
    Order,
}

/// An interval of time.
#[derive(Clone, Debug, Default, PartialEq)]
struct TimeCell {
    /// Weight per column; columns beyond the end are empty.
    weights: Vec<f64>,
    /// Weighted sum of values.
    sum: f64,
}

impl Binned {
    /// Creates the storage; `first` determines the dimension.
    pub(crate) fn new(first: &[TimedSample]) -> Self {
        let along = along(first);
        Binned {
            along,
            fineness: FINEST,
            pages: vec![NONE; OCTAVES],
            page_count: 0,
            sums: Vec::new(),
            length: match along {
                Along::Time(_) => SHORTEST,
                Along::Order => 0,
            },
            origins: 0,
            last: None,
            cells: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, sample: TimedSample) {
        let TimedSample {
            at,
            value,
            weight,
            key,
        } = sample;
        let bits = value.to_bits();
        let octave = (bits >> 52) as usize;
        if self.pages[octave] == NONE {
            self.give_page(octave);
        }
        let column =
            (usize::from(self.pages[octave]) << self.fineness) | within_page(bits, self.fineness) as usize;
        self.origins += u64::from(key.is_none() || key != self.last);
        self.last = key;
        let way = match self.along {
            Along::Time(from) => at.saturating_sub(from),
            Along::Order => self.origins - 1,
        };
        while way >> self.length >= CELLS as u64 {
            self.widen();
        }
        let place = (way >> self.length) as usize;
        if place >= self.cells.len() {
            self.cells.resize_with(place + 1, TimeCell::default);
        }
        let columns = self.page_count << self.fineness;
        let cell = &mut self.cells[place];
        if column >= cell.weights.len() {
            cell.weights.resize(columns, 0.0);
        }
        cell.weights[column] += weight;
        cell.sum += value * weight;
        self.sums[column] += value * weight;
    }

    fn give_page(&mut self, octave: usize) {
        while (self.page_count + 1) << self.fineness > COLUMNS {
            self.coarsen();
        }
        self.pages[octave] = self.page_count as u16;
        self.page_count += 1;
        self.sums.resize(self.page_count << self.fineness, 0.0);
    }

    /// Doubles the width of columns.
    fn coarsen(&mut self) {
        let halve =
            |columns: &mut Vec<f64>| *columns = columns.chunks(2).map(|pair| pair.iter().sum()).collect();
        halve(&mut self.sums);
        self.cells.iter_mut().for_each(|cell| halve(&mut cell.weights));
        self.fineness -= 1;
    }

    /// Doubles the length of cells.
    fn widen(&mut self) {
        self.length += 1;
        let old = std::mem::take(&mut self.cells);
        let mut old = old.into_iter();
        while let Some(mut cell) = old.next() {
            if let Some(next) = old.next() {
                cell.merge(next);
            }
            self.cells.push(cell);
        }
    }

    /// Returns the sum of each cell from the first instant on; `None` if cells are not intervals of
    /// time.
    pub(crate) fn sums_in_time(&self) -> Option<Vec<f64>> {
        let sums = || self.cells.iter().map(|cell| cell.sum).collect();
        matches!(self.along, Along::Time(_)).then(sums)
    }

    pub(crate) fn series(&self, count: u64) -> Series {
        let columns = self.page_count << self.fineness;
        let mut totals = vec![0.0; columns];
        for cell in &self.cells {
            cell.weights
                .iter()
                .zip(&mut totals)
                .for_each(|(weight, total)| *total += weight);
        }
        let first = self
            .cells
            .iter()
            .position(|cell| !cell.weights.is_empty())
            .unwrap_or(0);
        let cells = &self.cells[first..];
        let mut entries = Vec::new();
        for (place, cell) in cells.iter().enumerate() {
            for (column, weight) in cell.weights.iter().enumerate() {
                if *weight > 0.0 {
                    entries.push(SeriesEntry {
                        value: self.sums[column] / totals[column],
                        weight: *weight,
                        cell: place as u32,
                    });
                }
            }
        }
        let sums = cells.iter().map(|cell| cell.sum).collect();
        Series::of_cells(entries, sums, count)
    }

    /// Returns the stored weights.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        let columns: usize = self.cells.iter().map(|cell| cell.weights.len()).sum();
        (columns + self.sums.len()) * size_of::<f64>()
    }
}

/// Chooses time, unless nearly all samples have one instant or a few.
fn along(first: &[TimedSample]) -> Along {
    let instants = || first.iter().map(|sample| sample.at);
    let (from, to) = (instants().min().unwrap_or(0), instants().max().unwrap_or(0));
    let width = (to - from) / CELLS as u64 + 1;
    let mut filled = [false; CELLS];
    instants().for_each(|at| filled[((at - from) / width) as usize] = true);
    if filled.iter().filter(|filled| **filled).count() >= FEWEST {
        Along::Time(from)
    } else {
        Along::Order
    }
}

impl TimeCell {
    fn merge(&mut self, other: TimeCell) {
        if other.weights.len() > self.weights.len() {
            self.weights.resize(other.weights.len(), 0.0);
        }
        for (mine, theirs) in self.weights.iter_mut().zip(&other.weights) {
            *mine += theirs;
        }
        self.sum += other.sum;
    }
}

/// Returns the column of a double within its octave's page.
fn within_page(bits: u64, fineness: u32) -> u64 {
    (bits >> (52 - fineness)) & ((1 << fineness) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64, value: f64, weight: f64) -> TimedSample {
        TimedSample {
            at,
            value,
            weight,
            key: None,
        }
    }

    #[test]
    fn cells_double_their_length_with_the_run() {
        // Ten seconds: 2^20 ns × 256 = 0.27 s, doubled six times gives 17 s.
        let samples: Vec<TimedSample> = (0..1000)
            .map(|i| sample(5_000_000_000 + i * 10_000_000, 1.0, 1.0))
            .collect();
        let mut binned = Binned::new(&samples);
        samples.into_iter().for_each(|sample| binned.push(sample));
        assert_eq!(binned.along, Along::Time(5_000_000_000));
        assert_eq!(binned.length, SHORTEST + 6);
        assert_eq!(
            binned.cells.len(),
            (9_990_000_000u64 >> (SHORTEST + 6)) as usize + 1
        );
        let weight: f64 = binned.cells.iter().flat_map(|cell| &cell.weights).sum();
        assert_eq!(weight, 1000.0);
    }

    #[test]
    fn samples_of_one_instant_fill_cells_in_order() {
        let samples: Vec<TimedSample> = (0..1000).map(|i| sample(7, f64::from(i), 1.0)).collect();
        let mut binned = Binned::new(&samples);
        samples.into_iter().for_each(|sample| binned.push(sample));
        // Four to a cell.
        assert_eq!(binned.cells.len(), 250);
        assert_eq!(binned.cells[1].sum, 4.0 + 5.0 + 6.0 + 7.0);
    }

    #[test]
    fn samples_of_one_request_share_a_cell() {
        // 500 requests of one instant, each of 3 samples.
        let of = |i: u64| TimedSample {
            key: Some(i / 3),
            ..sample(7, (i / 3) as f64, 1.0)
        };
        let mut binned = Binned::new(&(0..1500).map(of).collect::<Vec<_>>());
        (0..1500).for_each(|i| binned.push(of(i)));
        // Two requests to a cell.
        assert_eq!(binned.cells.len(), 250);
        assert_eq!(binned.cells[1].sum, 3.0 * (2.0 + 3.0));
    }

    #[test]
    fn wider_columns_preserve_weights_and_sums() {
        let mut binned = Binned::new(&[]);
        // 40 octaves do not fit at the finest: 32 pages of 512 columns are 16,384.
        for octave in 0..40 {
            for step in 0..8 {
                let value = 2f64.powi(octave) * (1.0 + f64::from(step) / 8.0);
                binned.push(sample(0, value, 2.0));
            }
        }
        assert_eq!(binned.fineness, 8);
        let series = binned.series(320);
        assert_eq!(series.weight(), 640.0);
        // An eighth of an octave is much wider than a column: every value still has a separate
        // column.
        let expected = (2f64.powi(40) - 1.0) * (1.0 + 3.5 / 8.0) * 8.0 / 320.0;
        assert!((series.mean().unwrap() / expected - 1.0).abs() < 1e-12);
        assert_eq!(series.quantile(0.0), Some(1.0));
        assert_eq!(series.quantile(1.0), Some(2f64.powi(39) * 1.875));
    }
}
