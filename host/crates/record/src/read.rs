//! Columns that are read some rows at a time. The memory of one batch serves all.

use parquet::{
    column::reader::ColumnReaderImpl,
    data_type::DataType,
    errors::{ParquetError, Result},
};

use crate::{
    element::{CellValue, Element},
    group::RowGroup,
};

/// The shapes of columns, by the names that the declarations of tables use.
pub(crate) mod shapes {
    pub(crate) use super::{ListReader as List, OptionalReader as Optional, RequiredReader as Required};
}

/// A column that is read.
pub(crate) trait ColumnReader: Sized {
    /// Opens column `index` of a row group.
    fn open(group: &RowGroup, index: usize) -> Result<Self>;

    /// Replaces the batch by the next `rows` rows.
    fn fill(&mut self, rows: usize) -> Result<()>;

    /// Checks that no row is left.
    fn finish(&mut self) -> Result<()>;
}

/// A cell in every row.
pub(crate) struct RequiredReader<E: Element> {
    reader: ColumnReaderImpl<E::Type>,
    values: Vec<CellValue<E>>,
}

/// A cell in some rows.
pub(crate) struct OptionalReader<E: Element> {
    /// `None` of a column that the file is too old to have.
    reader: Option<ColumnReaderImpl<E::Type>>,
    values: Vec<CellValue<E>>,
    definition: Vec<i16>,
    /// Index of each row's value; unused for rows without one.
    places: Vec<u32>,
}

/// A list in every row.
pub(crate) struct ListReader<E: Element> {
    /// `None` of a column that the file is too old to have.
    reader: Option<ColumnReaderImpl<E::Type>>,
    values: Vec<CellValue<E>>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
    /// End of each row's values.
    ends: Vec<usize>,
}

impl<E: Element> RequiredReader<E> {
    /// The cell of a row of the batch.
    pub(crate) fn get(&self, row: usize) -> &CellValue<E> {
        &self.values[row]
    }
}

impl<E: Element> OptionalReader<E> {
    /// The cell of a row of the batch.
    pub(crate) fn get(&self, row: usize) -> Option<&CellValue<E>> {
        (self.definition[row] != 0).then(|| &self.values[self.places[row] as usize])
    }
}

impl<E: Element> ListReader<E> {
    /// The list of a row of the batch.
    pub(crate) fn get(&self, row: usize) -> &[CellValue<E>] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[row]]
    }
}

/// Checks that a reader has no row left.
fn finish<T: DataType>(reader: &mut ColumnReaderImpl<T>) -> Result<()> {
    let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (read, ..) = reader.read_records(1, Some(&mut definition), Some(&mut repetition), &mut values)?;
    if read == 0 {
        Ok(())
    } else {
        Err(ParquetError::General(
            "it has more rows than its row group".into(),
        ))
    }
}

/// The file claims more rows than it has.
fn short(rows: usize, read: usize) -> ParquetError {
    ParquetError::General(format!("expected {rows} more rows, found {read}"))
}

impl<E: Element> ColumnReader for RequiredReader<E> {
    fn open(group: &RowGroup, index: usize) -> Result<Self> {
        Ok(RequiredReader {
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

    fn finish(&mut self) -> Result<()> {
        finish(&mut self.reader)
    }
}

impl<E: Element> ColumnReader for OptionalReader<E> {
    fn open(group: &RowGroup, index: usize) -> Result<Self> {
        Ok(OptionalReader {
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

    fn finish(&mut self) -> Result<()> {
        self.reader.as_mut().map_or(Ok(()), finish)
    }
}

impl<E: Element> ColumnReader for ListReader<E> {
    fn open(group: &RowGroup, index: usize) -> Result<Self> {
        Ok(ListReader {
            reader: group.has(index).then(|| group.column::<E>(index)).transpose()?,
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
        self.ends.clear();
        let Some(reader) = &mut self.reader else {
            self.ends.resize(rows, 0);
            return Ok(());
        };
        let (read, values, levels) = reader.read_records(
            rows,
            Some(&mut self.definition),
            Some(&mut self.repetition),
            &mut self.values,
        )?;
        if read != rows || self.definition.len() != levels || self.repetition.len() != levels {
            return Err(short(rows, read));
        }
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

    fn finish(&mut self) -> Result<()> {
        self.reader.as_mut().map_or(Ok(()), finish)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use parquet::{
        basic::{Encoding, Repetition, Type as Physical},
        column::page::{Page, PageMetadata, PageReader},
        schema::types::{ColumnDescriptor, ColumnPath, Type},
    };

    use super::*;
    use crate::element::Int;

    /// One page with the numbers 0, 1, 2.
    struct ThreeNumbers(Option<Page>);

    impl Iterator for ThreeNumbers {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    impl PageReader for ThreeNumbers {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.take())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }

        fn at_record_boundary(&mut self) -> Result<bool> {
            Ok(true)
        }
    }

    fn column() -> RequiredReader<Int> {
        let numbers: Vec<u8> = (0..3_i64).flat_map(i64::to_le_bytes).collect();
        let page = Page::DataPage {
            buf: Bytes::from(numbers),
            num_values: 3,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let builder = Type::primitive_type_builder("numbers", Physical::INT64);
        let described = builder.with_repetition(Repetition::REQUIRED).build().unwrap();
        let path = ColumnPath::from(vec!["numbers".to_owned()]);
        let descriptor = Arc::new(ColumnDescriptor::new(Arc::new(described), 0, 0, path));
        RequiredReader {
            reader: ColumnReaderImpl::new(descriptor, Box::new(ThreeNumbers(Some(page)))),
            values: Vec::new(),
        }
    }

    #[test]
    fn all_rows_of_a_column_are_read() {
        let mut column = column();
        column.fill(3).unwrap();
        assert_eq!([0, 1, 2].map(|row| *column.get(row)), [0, 1, 2]);
        column.finish().unwrap();
    }

    #[test]
    fn rejects_a_column_with_more_rows_than_its_group() {
        let mut column = column();
        column.fill(2).unwrap();
        let error = column.finish().unwrap_err().to_string();
        assert!(error.contains("more rows than its row group"), "{error}");
    }

    #[test]
    fn rejects_a_column_with_fewer_rows_than_its_group() {
        let error = column().fill(4).unwrap_err().to_string();
        assert!(error.contains("expected 4 more rows, found 3"), "{error}");
    }
}
