//! A row group in memory: the unit that is read, checked and skipped.

use std::{
    fs::File,
    io::{Cursor, Read, Seek, SeekFrom},
    sync::Arc,
};

use bytes::Bytes;
use parquet::{
    column::reader::ColumnReaderImpl,
    errors::{ParquetError, Result},
    file::{
        metadata::RowGroupMetaData,
        reader::{ChunkReader, Length, SerializedPageReader},
    },
};
use xxhash_rust::xxh3::xxh3_64;

use crate::{checked_pages::CheckedPages, element::Element, unpacked::Allowance};

/// The most bytes of a row group. A recorder writes tens of megabytes.
const MOST_BYTES: u64 = 1 << 30;

/// A row group whose bytes are those that were written.
pub(crate) struct RowGroup {
    bytes: Arc<FileSlice>,
    metadata: RowGroupMetaData,
}

/// A stretch of a file.
struct FileSlice {
    start: u64,
    bytes: Bytes,
    allowance: Allowance,
}

impl RowGroup {
    /// Reads a row group and compares it with its checksum.
    pub(crate) fn read(file: &mut File, metadata: &RowGroupMetaData, checksum: u64) -> Result<RowGroup> {
        let (start, length) = extent(metadata)?;
        if start.saturating_add(length) > file.metadata()?.len() {
            return Err(ParquetError::EOF("it lies outside of the file".into()));
        }
        let mut bytes = Vec::with_capacity(length as usize);
        file.seek(SeekFrom::Start(start))?;
        file.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length || xxh3_64(&bytes) != checksum {
            return Err(ParquetError::General(
                "its bytes are not those that were written".into(),
            ));
        }
        let part = FileSlice {
            start,
            bytes: bytes.into(),
            allowance: Allowance::default(),
        };
        Ok(RowGroup {
            bytes: Arc::new(part),
            metadata: metadata.clone(),
        })
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> Result<usize> {
        Ok(usize::try_from(self.metadata.num_rows())?)
    }

    /// Returns true if column `index` exists.
    pub(crate) fn has(&self, index: usize) -> bool {
        index < self.metadata.num_columns()
    }

    /// A reader of a column.
    pub(crate) fn column<E: Element>(&self, index: usize) -> Result<ColumnReaderImpl<E::Type>> {
        let column = self
            .metadata
            .columns()
            .get(index)
            .filter(|column| column.column_type() == E::PHYSICAL)
            .ok_or_else(|| ParquetError::General("it is not there, or of another type".into()))?;
        let pages = SerializedPageReader::new(Arc::clone(&self.bytes), column, self.rows()?, None)?;
        let pages = Box::new(CheckedPages::new(pages));
        Ok(ColumnReaderImpl::new(column.column_descr_ptr(), pages))
    }
}

/// Returns a row group's first byte and length in its file.
fn extent(metadata: &RowGroupMetaData) -> Result<(u64, u64)> {
    let mut extent: Option<(u64, u64)> = None;
    for column in metadata.columns() {
        let start = column
            .dictionary_page_offset()
            .unwrap_or(column.data_page_offset());
        let (start, length) = (u64::try_from(start)?, u64::try_from(column.compressed_size())?);
        let (first, end) = extent.unwrap_or((start, start));
        let column_end = start.saturating_add(length);
        extent = Some((first.min(start), end.max(column_end)));
    }
    let (first, end) = extent.unwrap_or_default();
    if end - first > MOST_BYTES {
        return Err(ParquetError::General(format!(
            "it claims to have {} bytes",
            end - first
        )));
    }
    Ok((first, end - first))
}

impl Length for FileSlice {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl FileSlice {
    fn slice(&self, start: u64, length: Option<usize>) -> Result<Bytes> {
        let outside = || ParquetError::EOF("a page lies outside of its row group".into());
        let start = start.checked_sub(self.start).ok_or_else(outside)?;
        let start = usize::try_from(start)?;
        let end = match length {
            Some(length) => start.checked_add(length).ok_or_else(outside)?,
            None => self.bytes.len(),
        };
        if start > end || end > self.bytes.len() {
            return Err(outside());
        }
        Ok(self.bytes.slice(start..end))
    }
}

impl ChunkReader for FileSlice {
    type T = Cursor<Bytes>;

    /// Only headers of pages are read like this.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let page = self.slice(start, None)?;
        self.allowance.take(&page)?;
        Ok(Cursor::new(page))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.slice(start, Some(length))
    }
}
