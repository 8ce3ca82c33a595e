//! The rows of a table, file after file and row group after row group, a batch at a time.

use std::{
    collections::VecDeque,
    fs::File,
    io::{Read, Seek, SeekFrom},
    marker::PhantomData,
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    errors::ParquetError,
    file::{
        FOOTER_SIZE,
        metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader},
    },
    schema::types::Type,
};

use crate::error::{RecordError, message_of};
use crate::folder::open_plain;
use crate::group::RowGroup;
use crate::metadata::{FileInfo, UnsupportedFile, VERSION};
use crate::table::{TableColumns, TableRows};

/// Rows in memory at a time: few enough that the chunks of all of them stay in a processor's cache.
const BATCH: usize = 128;

/// A file of a table that can be read.
pub(crate) struct TableFile {
    pub(crate) path: PathBuf,
    pub(crate) about: FileInfo,
    metadata: Arc<ParquetMetaData>,
}

impl TableFile {
    /// Opens a file of a table.
    ///
    /// # Errors
    ///
    /// `Ok(Err(reason))` if the file is damaged or not one of a record; an error if it is of
    /// another version.
    pub(crate) fn open<C: TableColumns>(path: &Path) -> Result<Result<TableFile, String>, RecordError> {
        let file = match open_plain(path) {
            Ok(file) => file,
            Err(error) => return Ok(Err(damage_note(path, &error.to_string()))),
        };
        let metadata = match read_index(file) {
            Ok(metadata) => metadata,
            Err(error) => {
                return Ok(Err(damage_note(
                    path,
                    &format!("it is not a complete Parquet file: {}", message_of(error)),
                )));
            }
        };
        let file = metadata.file_metadata();
        let about = match FileInfo::of_file(file, C::NAME) {
            Ok(about) => about,
            Err(UnsupportedFile::NotOurs(why)) => return Ok(Err(damage_note(path, &why))),
            Err(UnsupportedFile::Version { found, program }) => {
                return Err(RecordError::Version {
                    path: path.to_owned(),
                    found,
                    known: VERSION,
                    program,
                });
            }
        };
        let sound = C::schema().is_ok_and(|schema| is_of::<C>(file.schema(), &schema));
        if !sound {
            return Ok(Err(damage_note(path, "its columns are not those of version 1")));
        }
        if about.checksums.len() != metadata.num_row_groups() {
            return Ok(Err(damage_note(
                path,
                "it has another number of row groups than of checksums",
            )));
        }
        Ok(Ok(TableFile {
            path: path.to_owned(),
            about,
            metadata: Arc::new(metadata),
        }))
    }

    /// Returns the number of rows according to the metadata.
    pub(crate) fn rows(&self) -> u64 {
        let groups = self.metadata.row_groups().iter();
        groups.fold(0, |rows: u64, group| {
            rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0))
        })
    }
}

/// Returns true if a file's columns are those of a table, except that some of the later columns may
/// be missing.
fn is_of<C: TableColumns>(file: &Type, table: &Type) -> bool {
    let (there, known) = (file.get_fields(), table.get_fields());
    file.name() == table.name() && known.starts_with(there) && known.len() - there.len() <= C::LATER
}

/// The most bytes of a file's index: thousands of row groups, of at most 65,536 rows each.
const MOST_INDEX: usize = 64 << 20;

/// Reads the index at the end of a file. Its length is in the last eight bytes, and the decoder
/// would allocate whatever they claim.
fn read_index(mut file: File) -> parquet::errors::Result<ParquetMetaData> {
    let mut tail = [0; FOOTER_SIZE];
    let length = file.metadata()?.len();
    if length < FOOTER_SIZE as u64 {
        return Err(ParquetError::EOF(format!("it has {length} bytes")));
    }
    file.seek(SeekFrom::End(-(FOOTER_SIZE as i64)))?;
    file.read_exact(&mut tail)?;
    let index = FooterTail::try_new(&tail)?.metadata_length();
    if index > MOST_INDEX {
        return Err(ParquetError::General(format!(
            "its index claims to have {index} bytes"
        )));
    }
    ParquetMetaDataReader::new().parse_and_finish(&file)
}

/// Returns the note for a damaged file.
pub(crate) fn damage_note(path: &Path, why: &str) -> String {
    format!("{}: {why}", name(path))
}

/// A file's name in messages.
pub(crate) fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.display().to_string()
}

/// A place in the rows of a table.
pub(crate) struct TableStream<C: TableColumns> {
    groups: VecDeque<(Arc<GroupSource>, usize)>,
    open: Option<OpenGroup<C::Rows>>,
    /// The position of the last row.
    last: Option<u64>,
    /// Rows and row groups that could not be read.
    pub(crate) damaged: Vec<String>,
    columns: PhantomData<C>,
}

struct GroupSource {
    path: PathBuf,
    about: FileInfo,
    metadata: Arc<ParquetMetaData>,
}

/// A row group of which a batch is in memory.
struct OpenGroup<R> {
    rows: R,
    /// Rows of the group that are not in the batch yet.
    left: usize,
    /// Rows of the batch.
    batch: usize,
    /// The next row of the batch.
    next: usize,
    source: Arc<GroupSource>,
    group: usize,
}

impl<C: TableColumns> TableStream<C> {
    /// Before the first row of files in the order of their events.
    pub(crate) fn new(files: &[TableFile]) -> Self {
        let mut groups = VecDeque::new();
        for file in files {
            let source = Arc::new(GroupSource {
                path: file.path.clone(),
                about: file.about.clone(),
                metadata: Arc::clone(&file.metadata),
            });
            groups.extend((0..file.metadata.num_row_groups()).map(|group| (Arc::clone(&source), group)));
        }
        TableStream {
            groups,
            open: None,
            last: None,
            damaged: Vec::new(),
            columns: PhantomData,
        }
    }

    /// The position of the next row; `None` after the last one. What cannot be read is skipped and
    /// noted.
    pub(crate) fn peek(&mut self) -> Option<u64> {
        loop {
            if let Some(open) = &self.open
                && open.next < open.batch
            {
                let position = open.rows.position(open.next);
                if self.last.is_none_or(|last| last < position) {
                    return Some(position);
                }
                self.give_up("its events are out of order");
            } else if self.open.as_ref().is_some_and(|open| open.left > 0) {
                self.next_batch();
            } else {
                let (source, group) = self.groups.pop_front()?;
                match open_group(&source, group) {
                    Ok(open) => self.open = Some(open),
                    Err(error) => self.note(&source, group, &error),
                }
            }
        }
    }

    /// Decodes the next row, found by [`TableStream::peek`], and advances. If a row cannot be
    /// decoded, notes it, skips the rest of its row group and returns `None`.
    pub(crate) fn take<T>(
        &mut self,
        read: impl FnOnce(&C::Rows, usize) -> parquet::errors::Result<T>,
    ) -> Option<T> {
        let open = self.open.as_mut()?;
        let row = open.next;
        open.next += 1;
        self.last = Some(open.rows.position(row));
        match read(&open.rows, row) {
            Ok(value) => Some(value),
            Err(error) => {
                self.give_up(&message_of(error));
                None
            }
        }
    }

    fn next_batch(&mut self) {
        if let Some(open) = &mut self.open
            && let Err(error) = open.fill()
        {
            self.give_up(&message_of(error));
        }
    }

    /// Skips the rest of the row group.
    fn give_up(&mut self, why: &str) {
        if let Some(open) = self.open.take() {
            self.note(&open.source, open.group, why);
        }
    }

    fn note(&mut self, source: &GroupSource, group: usize, why: &str) {
        let why = match source.metadata.num_row_groups() {
            1 => why.to_owned(),
            all => format!("row group {} of {all}: {why}", group + 1),
        };
        self.damaged.push(damage_note(&source.path, &why));
    }
}

fn open_group<R: TableRows>(source: &Arc<GroupSource>, group: usize) -> Result<OpenGroup<R>, String> {
    let open = || -> parquet::errors::Result<OpenGroup<R>> {
        let mut file = open_plain(&source.path)?;
        let checksum = source.about.checksums.get(group).copied().unwrap_or_default();
        let bytes = RowGroup::read(&mut file, source.metadata.row_group(group), checksum)?;
        let mut open = OpenGroup {
            rows: R::open(&bytes)?,
            left: bytes.rows()?,
            batch: 0,
            next: 0,
            source: Arc::clone(source),
            group,
        };
        open.fill()?;
        Ok(open)
    };
    open().map_err(message_of)
}

impl<R: TableRows> OpenGroup<R> {
    fn fill(&mut self) -> parquet::errors::Result<()> {
        let rows = self.left.min(BATCH);
        self.rows.fill(rows)?;
        (self.left, self.batch, self.next) = (self.left - rows, rows, 0);
        if self.left == 0 {
            self.rows.finish()?;
        }
        Ok(())
    }
}
