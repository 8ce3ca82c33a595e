//! A table is declared once: its columns in order, what their cells are, and how they are packed.

use parquet::{
    errors::Result,
    file::{
        properties::{EnabledStatistics, WriterPropertiesBuilder},
        writer::SerializedRowGroupWriter,
    },
    schema::types::{ColumnPath, TypePtr},
};

use crate::{group::RowGroup, write::Levels};

/// Encoding of a column. Chosen by measurement (`examples/columns_speed.rs`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Differences in as few bits as they need: for times and counters. Nothing is left in them for
    /// a compressor to find.
    Delta,
    /// Each value once and small numbers for them, compressed: for what repeats.
    Dictionary,
    /// As they are, compressed: for what does neither.
    Plain,
}

impl Packing {
    /// Returns whether minimum and maximum of the column are stored, which help readers to skip
    /// rows.
    fn statistics(self, path: &[String]) -> EnabledStatistics {
        if path.len() == 1 && self == Packing::Delta {
            EnabledStatistics::Chunk
        } else {
            EnabledStatistics::None
        }
    }

    /// States it for a column of a file.
    pub(crate) fn apply(
        self,
        properties: WriterPropertiesBuilder,
        path: Vec<String>,
    ) -> WriterPropertiesBuilder {
        use parquet::basic::{Compression, Encoding};
        let statistics = self.statistics(&path);
        let path = ColumnPath::new(path);
        let properties = properties.set_column_statistics_enabled(path.clone(), statistics);
        match self {
            Packing::Delta => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_compression(path, Compression::UNCOMPRESSED),
            Packing::Dictionary => properties.set_column_dictionary_enabled(path, true),
            Packing::Plain => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::PLAIN),
        }
    }
}

/// The columns of a table, as they are filled.
pub(crate) trait TableColumns: Default {
    /// The same columns, as they are read.
    type Rows: TableRows;
    /// The type recorded in a row.
    type Item: ?Sized;
    /// Name of the table and of its file, without the extension.
    const NAME: &str;
    /// Number of optional columns and lists at the end that the first files of this format version
    /// do not have.
    const LATER: usize;

    /// The table's schema.
    fn schema() -> Result<TypePtr>;

    /// States how each column is packed.
    fn pack(properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder;

    /// Writes all columns as one row group and empties them.
    fn write<W: std::io::Write + Send>(
        &mut self,
        group: SerializedRowGroupWriter<'_, W>,
        levels: &mut Levels,
    ) -> Result<()>;
}

/// The columns of a table, as they are read: one batch of rows.
pub(crate) trait TableRows: Sized {
    /// Opens the columns of a row group, before its first row.
    fn open(group: &RowGroup) -> Result<Self>;

    /// Replaces the batch by the next `rows` rows.
    fn fill(&mut self, rows: usize) -> Result<()>;

    /// Checks that no row is left.
    fn finish(&mut self) -> Result<()>;

    /// A row's place in the run's sequence of events.
    fn position(&self, row: usize) -> u64;
}

/// Declares a table: `name: Shape<Element>, Packing;` for each column, the first of them
/// `position`, the last ones those that came later.
macro_rules! table {
    (
        $(#[$about:meta])*
        $columns:ident, $rows:ident of $item:ty, $name:literal, $later:literal later:
        $($(#[$field_about:meta])* $field:ident: $shape:ident<$element:ident>, $packing:ident;)*
    ) => {
        $(#[$about])*
        #[derive(Default)]
        pub(crate) struct $columns {
            $($(#[$field_about])* pub(crate) $field: $crate::write::shapes::$shape<$crate::element::$element>,)*
        }

        /// A batch of its rows.
        pub(crate) struct $rows {
            $($(#[$field_about])* pub(crate) $field: $crate::read::shapes::$shape<$crate::element::$element>,)*
        }

        impl $crate::table::TableColumns for $columns {
            type Rows = $rows;
            type Item = $item;
            const NAME: &str = $name;
            const LATER: usize = $later;

            fn schema() -> parquet::errors::Result<parquet::schema::types::TypePtr> {
                use $crate::write::ColumnWriter;
                let fields = vec![
                    $(<$crate::write::shapes::$shape<$crate::element::$element>>::schema(stringify!($field))?,)*
                ];
                let table = parquet::schema::types::Type::group_type_builder($name).with_fields(fields);
                Ok(table.build()?.into())
            }

            fn pack(
                properties: parquet::file::properties::WriterPropertiesBuilder,
            ) -> parquet::file::properties::WriterPropertiesBuilder {
                use $crate::table::Packing;
                use $crate::write::ColumnWriter;
                $(
                    let path = <$crate::write::shapes::$shape<$crate::element::$element>>::path(stringify!($field));
                    let properties = Packing::$packing.apply(properties, path);
                )*
                properties
            }

            fn write<W: std::io::Write + Send>(
                &mut self,
                mut group: parquet::file::writer::SerializedRowGroupWriter<'_, W>,
                levels: &mut $crate::write::Levels,
            ) -> parquet::errors::Result<()> {
                use $crate::write::ColumnWriter;
                $(
                    let mut column = group.next_column()?.ok_or_else(|| {
                        parquet::errors::ParquetError::General("the schema ends early".into())
                    })?;
                    self.$field.write(column.typed(), levels)?;
                    column.close()?;
                )*
                group.close()?;
                Ok(())
            }
        }

        impl $crate::table::TableRows for $rows {
            fn open(group: &$crate::group::RowGroup) -> parquet::errors::Result<Self> {
                use $crate::read::ColumnReader;
                let mut next = 0..;
                Ok($rows {
                    $($field: ColumnReader::open(group, next.next().unwrap_or_default())
                        .map_err(|error| $crate::table::of_column(stringify!($field), error))?,)*
                })
            }

            fn fill(&mut self, rows: usize) -> parquet::errors::Result<()> {
                use $crate::read::ColumnReader;
                $(
                    self.$field
                        .fill(rows)
                        .map_err(|error| $crate::table::of_column(stringify!($field), error))?;
                )*
                Ok(())
            }

            fn finish(&mut self) -> parquet::errors::Result<()> {
                use $crate::read::ColumnReader;
                $(
                    self.$field
                        .finish()
                        .map_err(|error| $crate::table::of_column(stringify!($field), error))?;
                )*
                Ok(())
            }

            fn position(&self, row: usize) -> u64 {
                *self.position.get(row) as u64
            }
        }
    };
}

pub(crate) use table;

/// An error with the name of the column that it came from.
pub(crate) fn of_column(name: &str, error: parquet::errors::ParquetError) -> parquet::errors::ParquetError {
    parquet::errors::ParquetError::General(format!("column {name}: {}", crate::error::message_of(error)))
}
