//! Columns that are filled row by row and written as a whole.

use parquet::{
    basic::{LogicalType, Repetition},
    column::writer::ColumnWriterImpl,
    data_type::DataType,
    errors::Result,
    schema::types::{Type, TypePtr},
};

use crate::element::{CellValue, Element};

/// Definition and repetition levels, computed for each list; kept to reuse their memory.
#[derive(Default)]
pub(crate) struct Levels {
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

/// The shapes of columns, by the names that the declarations of tables use.
pub(crate) mod shapes {
    pub(crate) use super::{ListWriter as List, OptionalWriter as Optional, RequiredWriter as Required};
}

/// A column that is filled.
pub(crate) trait ColumnWriter {
    /// Storage type of its cells.
    type Type: DataType;

    /// Returns its schema node.
    fn schema(name: &str) -> Result<TypePtr>;

    /// The names from the column down to its cells.
    fn path(name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    /// Writes all rows and forgets them.
    fn write(&mut self, writer: &mut ColumnWriterImpl<'_, Self::Type>, levels: &mut Levels) -> Result<()>;
}

/// A cell in every row.
pub(crate) struct RequiredWriter<E: Element> {
    values: Vec<CellValue<E>>,
}

/// A cell in some rows.
pub(crate) struct OptionalWriter<E: Element> {
    values: Vec<CellValue<E>>,
    definition: Vec<i16>,
}

/// A list in every row; it can be empty.
pub(crate) struct ListWriter<E: Element> {
    values: Vec<CellValue<E>>,
    lengths: Vec<usize>,
}

impl<E: Element> Default for RequiredWriter<E> {
    fn default() -> Self {
        RequiredWriter { values: Vec::new() }
    }
}

impl<E: Element> Default for OptionalWriter<E> {
    fn default() -> Self {
        OptionalWriter {
            values: Vec::new(),
            definition: Vec::new(),
        }
    }
}

impl<E: Element> Default for ListWriter<E> {
    fn default() -> Self {
        ListWriter {
            values: Vec::new(),
            lengths: Vec::new(),
        }
    }
}

impl<E: Element> RequiredWriter<E> {
    /// Appends a row.
    pub(crate) fn push(&mut self, value: CellValue<E>) {
        self.values.push(value);
    }
}

impl<E: Element> OptionalWriter<E> {
    /// Appends a row.
    pub(crate) fn push(&mut self, value: Option<CellValue<E>>) {
        self.definition.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

impl<E: Element> ListWriter<E> {
    /// Appends a row.
    pub(crate) fn push(&mut self, values: impl IntoIterator<Item = CellValue<E>>) {
        let before = self.values.len();
        self.values.extend(values);
        self.lengths.push(self.values.len() - before);
    }
}

fn cell<E: Element>(name: &str, repetition: Repetition) -> Result<TypePtr> {
    let cell = Type::primitive_type_builder(name, E::PHYSICAL)
        .with_repetition(repetition)
        .with_logical_type(E::logical());
    Ok(cell.build()?.into())
}

impl<E: Element> ColumnWriter for RequiredWriter<E> {
    type Type = E::Type;

    fn schema(name: &str) -> Result<TypePtr> {
        cell::<E>(name, Repetition::REQUIRED)
    }

    fn write(&mut self, writer: &mut ColumnWriterImpl<'_, E::Type>, _: &mut Levels) -> Result<()> {
        writer.write_batch(&self.values, None, None)?;
        self.values.clear();
        Ok(())
    }
}

impl<E: Element> ColumnWriter for OptionalWriter<E> {
    type Type = E::Type;

    fn schema(name: &str) -> Result<TypePtr> {
        cell::<E>(name, Repetition::OPTIONAL)
    }

    fn write(&mut self, writer: &mut ColumnWriterImpl<'_, E::Type>, _: &mut Levels) -> Result<()> {
        writer.write_batch(&self.values, Some(&self.definition), None)?;
        self.values.clear();
        self.definition.clear();
        Ok(())
    }
}

impl<E: Element> ColumnWriter for ListWriter<E> {
    type Type = E::Type;

    fn schema(name: &str) -> Result<TypePtr> {
        let cells = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![cell::<E>("element", Repetition::REQUIRED)?])
            .build()?;
        let list = Type::group_type_builder(name)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![cells.into()])
            .build()?;
        Ok(list.into())
    }

    fn path(name: &str) -> Vec<String> {
        ["", "list", "element"]
            .map(|part| if part.is_empty() { name } else { part }.to_owned())
            .to_vec()
    }

    /// The levels of a list of required cells: an empty list is one place that is not defined (0);
    /// of the others every place is defined (1), and all but the first repeat (1).
    fn write(&mut self, writer: &mut ColumnWriterImpl<'_, E::Type>, levels: &mut Levels) -> Result<()> {
        levels.definition.clear();
        levels.repetition.clear();
        for &length in &self.lengths {
            let (start, places) = (levels.repetition.len(), length.max(1));
            levels.definition.resize(start + places, i16::from(length > 0));
            levels.repetition.resize(start + places, 1);
            levels.repetition[start] = 0;
        }
        writer.write_batch(&self.values, Some(&levels.definition), Some(&levels.repetition))?;
        self.values.clear();
        self.lengths.clear();
        Ok(())
    }
}

#[cfg(test)]
mod spoil {
    //! Rows that no recorder writes, for the tests of the reader.

    use super::{ListWriter, OptionalWriter, RequiredWriter};
    use crate::element::{CellValue, Element};

    impl<E: Element> RequiredWriter<E> {
        /// Puts another value into the last row.
        pub(crate) fn replace_last(&mut self, value: CellValue<E>) {
            self.values.pop();
            self.push(value);
        }
    }

    impl<E: Element> OptionalWriter<E> {
        /// Puts another value, or none, into the last row.
        pub(crate) fn replace_last(&mut self, value: Option<CellValue<E>>) {
            if self.definition.pop() == Some(1) {
                self.values.pop();
            }
            self.push(value);
        }
    }

    impl<E: Element> ListWriter<E> {
        /// Puts another list into the last row.
        pub(crate) fn replace_last(&mut self, values: impl IntoIterator<Item = CellValue<E>>) {
            let length = self.lengths.pop().unwrap_or_default();
            self.values.truncate(self.values.len() - length);
            self.push(values);
        }
    }
}
