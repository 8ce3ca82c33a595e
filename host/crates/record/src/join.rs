//! Tables as files: one part, and parts joined into one file without decoding them.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::{Compression, ZstdLevel},
    column::writer::ColumnCloseResult,
    errors::{ParquetError, Result},
    file::{
        metadata::{KeyValue, ParquetMetaDataReader},
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr},
        writer::SerializedFileWriter,
    },
    schema::types::TypePtr,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{RecordError, message_of};
use crate::folder::write_whole;
use crate::metadata::FileInfo;
use crate::table::TableColumns;
use crate::write::Levels;

/// The form of a table's files.
pub(crate) struct TableFormat {
    schema: TypePtr,
    properties: WriterPropertiesPtr,
}

impl TableFormat {
    /// The form of a table.
    pub(crate) fn of<C: TableColumns>() -> Result<TableFormat> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true);
        Ok(TableFormat {
            schema: C::schema()?,
            properties: Arc::new(C::pack(properties).build()),
        })
    }

    fn file<W: Write + Send>(&self, to: W) -> Result<SerializedFileWriter<W>> {
        SerializedFileWriter::new(to, Arc::clone(&self.schema), Arc::clone(&self.properties))
    }

    /// Encodes the rows as a complete file with one row group (or none, if there are no rows); the
    /// columns are empty afterwards. The row group's checksum is added to `about`.
    pub(crate) fn encode<C: TableColumns>(
        &self,
        columns: &mut C,
        rows: usize,
        about: &mut FileInfo,
        levels: &mut Levels,
    ) -> Result<Vec<u8>> {
        let mut file = self.file(Vec::new())?;
        about.checksums.clear();
        if rows > 0 {
            // The row group follows the magic number, four bytes that spell "PAR1".
            let start = file.bytes_written();
            columns.write(file.next_row_group()?, levels)?;
            file.flush()?;
            about.checksums.push(xxh3_64(&file.inner()[start..]));
        }
        add(&mut file, about.to_pairs(C::NAME));
        file.into_inner()
    }

    /// Copies the row groups of files of the table into one file. `about` is completed by their
    /// checksums.
    pub(crate) fn join(
        &self,
        table: &str,
        parts: &[(PathBuf, FileInfo)],
        mut about: FileInfo,
        to: &Path,
    ) -> Result<(), RecordError> {
        let encode = |path: &Path, error: ParquetError| RecordError::Encode {
            path: path.to_owned(),
            reason: message_of(error),
        };
        write_whole(to, |file| {
            let mut joined = self.file(&mut *file).map_err(|error| encode(to, error))?;
            about.checksums.clear();
            for (path, part) in parts {
                copy(path, &mut joined).map_err(|error| encode(path, error))?;
                about.checksums.extend(&part.checksums);
            }
            add(&mut joined, about.to_pairs(table));
            joined.close().map_err(|error| encode(to, error))?;
            Ok(())
        })
    }
}

fn add<W: Write + Send>(file: &mut SerializedFileWriter<W>, pairs: Vec<KeyValue>) {
    for pair in pairs {
        file.append_key_value_metadata(pair);
    }
}

fn copy<W: Write + Send>(path: &Path, joined: &mut SerializedFileWriter<W>) -> Result<()> {
    let part = File::open(path)?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&part)?;
    for group in metadata.row_groups() {
        let mut copy = joined.next_row_group()?;
        for column in group.columns() {
            let column = ColumnCloseResult {
                bytes_written: u64::try_from(column.compressed_size())?,
                rows_written: u64::try_from(group.num_rows())?,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            copy.append_column(&part, column)?;
        }
        copy.close()?;
    }
    Ok(())
}
