//! Columns that are read some rows at a time. The memory of one batch serves all.

use parquet::{
    column::reader::ColumnReaderImpl,
    errors::{ParquetError, Result},
};

use crate::{
    element::{Element, Value},
    group::Group,
};

/// A column that is read.
pub(crate) trait Column: Sized {
    /// Opens column `index` of a row group.
    fn open(group: &Group, index: usize) -> Result<Self>;

    /// Replaces the batch by the next `rows` rows.
    fn fill(&mut self, rows: usize) -> Result<()>;
}

/// A cell in every row.
pub(crate) struct Required<E: Element> {
    reader: ColumnReaderImpl<E::Type>,
    values: Vec<Value<E>>,
}

/// A cell in some rows.
pub(crate) struct Optional<E: Element> {
    /// `None` of a column that the file is too old to have.
    reader: Option<ColumnReaderImpl<E::Type>>,
    values: Vec<Value<E>>,
    definition: Vec<i16>,
    /// Index of each row's value; unused for rows without one.
    places: Vec<u32>,
}

/// A list in every row.
pub(crate) struct List<E: Element> {
    reader: ColumnReaderImpl<E::Type>,
    values: Vec<Value<E>>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
    /// End of each row's values.
    ends: Vec<usize>,
}

impl<E: Element> Required<E> {
    /// The cell of a row of the batch.
    pub(crate) fn get(&self, row: usize) -> &Value<E> {
        &self.values[row]
    }
}

impl<E: Element> Optional<E> {
    /// The cell of a row of the batch.
    pub(crate) fn get(&self, row: usize) -> Option<&Value<E>> {
        (self.definition[row] != 0).then(|| &self.values[self.places[row] as usize])
    }
}

impl<E: Element> List<E> {
    /// The list of a row of the batch.
    pub(crate) fn get(&self, row: usize) -> &[Value<E>] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[row]]
    }
}

/// The file claims more rows than it has.
fn short(rows: usize, read: usize) -> ParquetError {
    ParquetError::General(format!("{rows} more rows were promised, and {read} came"))
}

impl<E: Element> Column for Required<E> {
    fn open(group: &Group, index: usize) -> Result<Self> {
        Ok(Required {
            reader: group.column::<E>(index)?,
            values: Vec::new(),
        })
    }

    fn fill(&mut self, rows: usize) -> Result<()> {
        self.values.clear();
        let (read, values, _) = self.reader.read_records(rows, None, None, &mut self.values)?;
        if (read, values) == (rows, rows) {
            Ok(())
        } else {
            Err(short(rows, read))
        }
    }
}

impl<E: Element> Column for Optional<E> {
    fn open(group: &Group, index: usize) -> Result<Self> {
        Ok(Optional {
            reader: group.has(index).then(|| group.column::<E>(index)).transpose()?,
            values: Vec::new(),
            definition: Vec::new(),
            places: Vec::new(),
        })
    }

    fn fill(&mut self, rows: usize) -> Result<()> {
        self.values.clear();
        self.definition.clear();
        let Some(reader) = &mut self.reader else {
            self.definition.resize(rows, 0);
            return Ok(());
        };
        let (read, values, _) =
            reader.read_records(rows, Some(&mut self.definition), None, &mut self.values)?;
        if read != rows || self.definition.len() != rows {
            return Err(short(rows, read));
        }
        self.places.clear();
        let mut place = 0;
        for defined in &self.definition {
            self.places.push(place);
            place += u32::from(*defined != 0);
        }
        if place as usize == values {
            Ok(())
        } else {
            Err(short(place as usize, values))
        }
    }
}

impl<E: Element> Column for List<E> {
    fn open(group: &Group, index: usize) -> Result<Self> {
        Ok(List {
            reader: group.column::<E>(index)?,
            values: Vec::new(),
            definition: Vec::new(),
            repetition: Vec::new(),
            ends: Vec::new(),
        })
    }

    fn fill(&mut self, rows: usize) -> Result<()> {
        self.values.clear();
        self.definition.clear();
        self.repetition.clear();
        let (read, values, levels) = self.reader.read_records(
            rows,
            Some(&mut self.definition),
            Some(&mut self.repetition),
            &mut self.values,
        )?;
        if read != rows || self.definition.len() != levels || self.repetition.len() != levels {
            return Err(short(rows, read));
        }
        self.ends.clear();
        let mut place = 0;
        let mut end = 0;
        while place < levels {
            let next = self.repetition[place + 1..].iter().position(|&level| level == 0);
            let next = next.map_or(levels, |ahead| place + 1 + ahead);
            // Only an empty list is not defined, and it takes one place.
            let defined = self.definition[place] != 0;
            if !defined && next != place + 1 {
                return Err(ParquetError::General("a list is empty and goes on".into()));
            }
            end += if defined { next - place } else { 0 };
            self.ends.push(end);
            place = next;
        }
        if self.ends.len() == rows && end == values {
            Ok(())
        } else {
            Err(short(end, values))
        }
    }
}
