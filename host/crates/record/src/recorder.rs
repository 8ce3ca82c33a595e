//! Writes the record while the run lasts.

use std::{
    collections::{VecDeque, hash_map::RandomState},
    fs,
    hash::{BuildHasher, Hasher},
    io::{self, Write},
    mem,
    path::{Path, PathBuf},
};

use veeksha_events::Event;
use veeksha_model::{Nanos, RequestRecord};

use crate::error::{RecordError, message_of};
use crate::folder::{self, folder, part, parts, sync, whole, write_whole};
use crate::join::TableFormat;
use crate::metadata::FileInfo;
use crate::table::TableColumns;
use crate::tables::{EventColumns, RequestColumns};
use crate::write::Levels;

/// The most rows of a part.
const MOST_ROWS: usize = 65_536;
/// The most memory for the rows of a part, approximately.
const MOST_BYTES: usize = 32 << 20;
/// The most encoded bytes that wait for a disk that refuses them.
const MOST_UNWRITTEN: usize = 64 << 20;
/// The age at which an event is written to a file: a run that is killed loses no more than this.
const LARGEST_AGE: Nanos = 500_000_000;

/// Writes a run's record.
///
/// Events are buffered as columns. Every half second the new ones are written as an *increment*, a
/// small file; when there are enough of them, or the oldest is old enough, all rows since the last
/// part are written as one *part*, which replaces its increments. So a run that is killed loses
/// half a second, however long it has lasted, and the number of parts grows with the square root of
/// its length: a day has 600 of them instead of 170,000.
///
/// Memory is bounded by one part: at most 32 MiB of columns (or one event, if that is larger), the
/// rows of the current increment, and as much again for a moment while they are encoded. Parts that
/// the disk refuses are kept in their encoded form, up to 64 MiB, and are written later.
pub struct RunRecorder {
    folder: PathBuf,
    run: String,
    program: String,
    config: Option<String>,
    requests: Table<RequestColumns>,
    events: Table<EventColumns>,
    levels: Levels,
    /// The next event's place in the run's sequence.
    position: u64,
    /// The first position that is not in a part.
    in_parts: u64,
    /// The first position that is in no file.
    in_files: u64,
    /// The number of the next part.
    part: usize,
    /// The number of the next increment of that part.
    increment: usize,
    /// Approximate size of the buffered columns in bytes.
    bytes: usize,
    /// Instant of the oldest event that is not in a part.
    since_part: Option<Nanos>,
    /// Instant of the oldest event that is in no file.
    since_file: Option<Nanos>,
    /// The latest instant that was given.
    now: Nanos,
}

/// Buffered rows and written files of one table.
struct Table<C> {
    format: TableFormat,
    /// The rows since the last part.
    rows: Buffer<C>,
    /// The rows since the last increment.
    new_rows: Buffer<C>,
    parts: Vec<(PathBuf, FileInfo)>,
    increments: Vec<PathBuf>,
    /// Encoded parts that could not be written yet, oldest first.
    unwritten: VecDeque<(PathBuf, Vec<u8>, FileInfo)>,
    /// The first part that was dropped because the disk refused too many.
    lost: Option<PathBuf>,
}

/// Columns and the number of their rows.
#[derive(Default)]
struct Buffer<C> {
    columns: C,
    rows: usize,
}

impl RunRecorder {
    /// Creates `record/` in a run's folder (which is created too, if it is missing). `program` is
    /// the program's name and version.
    ///
    /// # Errors
    ///
    /// If the folder cannot be created, or holds a record already.
    pub fn create(run: &Path, program: &str) -> Result<RunRecorder, RecordError> {
        let folder = folder(run);
        fs::create_dir_all(&folder).map_err(|source| RecordError::Write {
            path: folder.clone(),
            source,
        })?;
        for table in [RequestColumns::NAME, EventColumns::NAME] {
            if whole(&folder, table).exists() || !parts(&folder, table)?.is_empty() {
                return Err(RecordError::Occupied { path: folder });
            }
        }
        Ok(RunRecorder {
            requests: Table::new(&folder)?,
            events: Table::new(&folder)?,
            folder,
            run: new_run_id(),
            program: program.to_owned(),
            config: None,
            levels: Levels::default(),
            position: 0,
            in_parts: 0,
            in_files: 0,
            part: 0,
            increment: 0,
            bytes: 0,
            since_part: None,
            since_file: None,
            now: 0,
        })
    }

    /// Sets the id of the run that each file contains, in place of a new one.
    pub fn of_run(mut self, run_id: impl Into<String>) -> RunRecorder {
        self.run = run_id.into();
        self
    }

    /// Writes the digest of the run's configuration into each file, so that a reader can check
    /// whether the configuration next to the record belongs to the run.
    pub fn of_config(mut self, digest: impl Into<String>) -> RunRecorder {
        self.config = Some(digest.into());
        self
    }

    /// Takes the next event of the run. `now` is the present instant of the run's clock; it only
    /// determines the age of buffered events.
    ///
    /// # Errors
    ///
    /// If a part could not be written. It is kept in memory and written with a later part, or by
    /// [`RunRecorder::finish`]; if the disk refuses more than 64 MiB, the oldest parts are lost,
    /// which the reader reports.
    pub fn push(&mut self, event: &Event, now: Nanos) -> Result<(), RecordError> {
        let position = self.position;
        self.position += 1;
        if let Event::Finished(record) = event {
            self.requests.push(|columns| columns.push(position, record));
            self.bytes += size_of_request(record);
        } else {
            self.events.push(|columns| columns.push(position, event));
            self.bytes += SIZE_OF_EVENT;
        }
        self.now = self.now.max(now);
        self.since_part.get_or_insert(now);
        self.since_file.get_or_insert(now);
        let rows = self.requests.rows.rows.max(self.events.rows.rows);
        if rows >= MOST_ROWS || self.bytes >= MOST_BYTES {
            return self.write_part();
        }
        self.tick(now)
    }

    /// Returns the instant at which the next file is due if nothing else happens, on the clock of
    /// [`RunRecorder::push`]: the time for [`RunRecorder::tick`]. `None` if everything is written.
    pub fn due(&self) -> Option<Nanos> {
        // Whatever is in no file is in no part either, so a part is due only together with an
        // increment.
        self.since_file.map(|since| since.saturating_add(LARGEST_AGE))
    }

    /// Writes a part or an increment if the buffered events are old enough: to be called while
    /// nothing happens, so that a run that is killed in a quiet stretch loses no more than a busy
    /// one.
    ///
    /// # Errors
    ///
    /// As [`RunRecorder::push`].
    pub fn tick(&mut self, now: Nanos) -> Result<(), RecordError> {
        self.now = self.now.max(now);
        if self.due().is_none_or(|due| self.now < due) {
            return Ok(());
        }
        match self.since_part {
            Some(since) if self.now - since < age_of_a_part(since) => {
                self.write_increment();
                Ok(())
            }
            _ => self.write_part(),
        }
    }

    /// Writes the rest and joins the parts: one file for each table.
    ///
    /// # Errors
    ///
    /// If a file could not be written. The parts and increments that are there stay, and
    /// [`crate::RunRecord`] reads them.
    pub fn finish(mut self) -> Result<(), RecordError> {
        // A small file may fit on a disk on which a part does not.
        self.write_increment();
        self.write_part()?;
        let info = self.file_info(0);
        self.requests.finish(&self.folder, &info)?;
        self.events.finish(&self.folder, &info)?;
        sync(&self.folder)?;
        self.requests.remove_parts()?;
        self.events.remove_parts()?;
        match self.requests.lost.or(self.events.lost) {
            Some(path) => Err(RecordError::Write {
                path,
                source: io::Error::other("the disk refused it until too much was waiting"),
            }),
            None => Ok(()),
        }
    }

    /// Returns the metadata of a file that holds the events from `first` on.
    fn file_info(&self, first: u64) -> FileInfo {
        FileInfo {
            run: Some(self.run.clone()),
            program: self.program.clone(),
            config: self.config.clone(),
            first,
            end: self.position,
            until: self.now,
            checksums: Vec::new(),
        }
    }

    /// Writes the events that are in no part: first those that are not requests, then the requests.
    /// Parts that could not be written before come first.
    fn write_part(&mut self) -> Result<(), RecordError> {
        if self.in_parts < self.position {
            let info = self.file_info(self.in_parts);
            (self.in_parts, self.in_files) = (self.position, self.position);
            (self.bytes, self.since_part, self.since_file) = (0, None, None);
            let number = self.part;
            (self.part, self.increment) = (number + 1, 0);
            self.events
                .encode_part(&self.folder, number, info.clone(), &mut self.levels)?;
            self.requests
                .encode_part(&self.folder, number, info, &mut self.levels)?;
        } else if self.events.unwritten.is_empty() && self.requests.unwritten.is_empty() {
            return Ok(());
        }
        let events = self.events.write_parts();
        let requests = self.requests.write_parts();
        events.and(requests)?;
        sync(&self.folder)?;
        // Only now: until the part is on the disk, its increments are what a crash leaves.
        self.events.remove_increments();
        self.requests.remove_increments();
        Ok(())
    }

    /// Writes the events that are in no file. A failure is not reported and loses nothing: the rows
    /// are still buffered, and the part that they belong to is written later or fails itself.
    fn write_increment(&mut self) {
        if self.in_files == self.position {
            return;
        }
        let info = self.file_info(self.in_files);
        let number = (self.part, self.increment);
        self.increment += 1;
        (self.in_files, self.since_file) = (self.position, None);
        for written in [
            self.events
                .write_increment(&self.folder, number, info.clone(), &mut self.levels),
            self.requests
                .write_increment(&self.folder, number, info, &mut self.levels),
        ] {
            drop(written);
        }
    }
}

impl<C: TableColumns> Table<C> {
    fn new(folder: &Path) -> Result<Self, RecordError> {
        let format = TableFormat::of::<C>().map_err(|error| RecordError::Encode {
            path: whole(folder, C::NAME),
            reason: message_of(error),
        })?;
        Ok(Table {
            format,
            rows: Buffer::default(),
            new_rows: Buffer::default(),
            parts: Vec::new(),
            increments: Vec::new(),
            unwritten: VecDeque::new(),
            lost: None,
        })
    }

    /// Appends a row.
    fn push(&mut self, push: impl Fn(&mut C)) {
        for buffer in [&mut self.rows, &mut self.new_rows] {
            push(&mut buffer.columns);
            buffer.rows += 1;
        }
    }

    /// Encodes the rows since the last part as the next one; without rows there is none.
    fn encode_part(
        &mut self,
        folder: &Path,
        number: usize,
        mut info: FileInfo,
        levels: &mut Levels,
    ) -> Result<(), RecordError> {
        self.new_rows = Buffer::default();
        if self.rows.rows == 0 {
            return Ok(());
        }
        let path = part(folder, C::NAME, number);
        let bytes = self.rows.encode(&self.format, &path, &mut info, levels)?;
        self.unwritten.push_back((path, bytes, info));
        let size = |unwritten: &VecDeque<(PathBuf, Vec<u8>, FileInfo)>| -> usize {
            unwritten.iter().map(|(_, bytes, _)| bytes.len()).sum()
        };
        while self.unwritten.len() > 1 && size(&self.unwritten) > MOST_UNWRITTEN {
            if let Some((path, ..)) = self.unwritten.pop_front() {
                self.lost.get_or_insert(path);
            }
        }
        Ok(())
    }

    /// Writes the encoded parts, and keeps those that the disk refuses.
    fn write_parts(&mut self) -> Result<(), RecordError> {
        let mut result = Ok(());
        for (path, bytes, info) in mem::take(&mut self.unwritten) {
            match write_bytes(&path, &bytes) {
                Ok(()) => self.parts.push((path, info)),
                Err(error) => {
                    result = result.and(Err(error));
                    self.unwritten.push_back((path, bytes, info));
                }
            }
        }
        self.parts.sort_unstable_by_key(|(_, info)| info.first);
        result
    }

    fn write_increment(
        &mut self,
        folder: &Path,
        (number, increment): (usize, usize),
        mut info: FileInfo,
        levels: &mut Levels,
    ) -> Result<(), RecordError> {
        if self.new_rows.rows == 0 {
            return Ok(());
        }
        let path = folder::increment(folder, C::NAME, number, increment);
        let bytes = self.new_rows.encode(&self.format, &path, &mut info, levels)?;
        write_bytes(&path, &bytes)?;
        self.increments.push(path);
        Ok(())
    }

    /// Joins the parts into one file. A single part is renamed instead, if its metadata covers the
    /// whole run.
    fn finish(&mut self, folder: &Path, info: &FileInfo) -> Result<(), RecordError> {
        let to = whole(folder, C::NAME);
        if let [(only, of_part)] = &self.parts[..]
            && (of_part.first, of_part.end) == (info.first, info.end)
        {
            fs::rename(only, &to).map_err(|source| RecordError::Write { path: to, source })?;
            self.parts.clear();
            return Ok(());
        }
        self.format.join(C::NAME, &self.parts, info.clone(), &to)
    }

    fn remove_parts(&mut self) -> Result<(), RecordError> {
        for (path, _) in self.parts.drain(..) {
            fs::remove_file(&path).map_err(|source| RecordError::Write { path, source })?;
        }
        Ok(())
    }

    /// Removes what the last part has replaced. A file that cannot be removed is ignored by
    /// readers.
    fn remove_increments(&mut self) {
        for path in self.increments.drain(..) {
            let _ = fs::remove_file(path);
        }
    }
}

impl<C: TableColumns> Buffer<C> {
    /// Encodes the rows as a complete file and empties the buffer.
    fn encode(
        &mut self,
        format: &TableFormat,
        path: &Path,
        info: &mut FileInfo,
        levels: &mut Levels,
    ) -> Result<Vec<u8>, RecordError> {
        let rows = mem::take(&mut self.rows);
        format
            .encode(&mut self.columns, rows, info, levels)
            .map_err(|error| {
                // Columns that were encoded in part are of no use.
                self.columns = C::default();
                RecordError::Encode {
                    path: path.to_owned(),
                    reason: message_of(error),
                }
            })
    }
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    write_whole(path, |file| {
        file.write_all(bytes).map_err(|source| RecordError::Write {
            path: path.to_owned(),
            source,
        })
    })
}

/// Returns an id that no other run has: 128 bits as hexadecimal digits, SipHash of nothing under
/// two keys from the system's random source.
pub fn new_run_id() -> String {
    let draw = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", draw(), draw())
}

/// Returns the age at which a part is written whose first event came at an instant of the run: the
/// square root of its seconds, and half a second at the least. A run of a day has 600 parts, where
/// one every half second would be 170,000. Increments bound what a crash costs.
fn age_of_a_part(since: Nanos) -> Nanos {
    let seconds = since as f64 / 1e9;
    LARGEST_AGE.max((seconds.sqrt() * 1e9) as Nanos)
}

/// Approximate size of an event's cells in bytes; their texts are short.
const SIZE_OF_EVENT: usize = 320;

/// Bytes of a request's cells, about.
fn size_of_request(record: &RequestRecord) -> usize {
    let words = match &record.status {
        veeksha_events::Status::Ok { finish_reason } => finish_reason.len(),
        veeksha_events::Status::CancelledByClient => 0,
        veeksha_events::Status::Failed { message, .. } => message.len(),
    };
    let labels: usize = record
        .labels
        .iter()
        .map(|(name, value)| name.len() + value.len() + 64)
        .sum();
    600 + 29 * record.chunks.len() + 8 * record.chunk_tokens.len() + 8 * record.parents.len() + words + labels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a second while the square root is less, so for a quarter of a second; then the square
    /// root.
    #[test]
    fn parts_of_a_long_run_are_older() {
        let millisecond = 1_000_000;
        for (at, age) in [
            (0, 500),
            (250, 500),
            (1_000, 1_000),
            (25_000, 5_000),
            (100_000, 10_000),
            (3_600_000, 60_000),
            (90_000_000, 300_000),
        ] {
            assert_eq!(age_of_a_part(at * millisecond), age * millisecond, "{at}");
        }
    }

    #[test]
    fn run_ids_are_unique() {
        let names: std::collections::BTreeSet<String> = (0..100).map(|_| new_run_id()).collect();
        assert_eq!(names.len(), 100);
        assert!(names.iter().all(|name| name.len() == 32));
    }

    /// A part every sqrt(t) seconds: the integral of dt / sqrt(t) is 2 sqrt(t), 588 for a day, and
    /// few before it is that slow.
    #[test]
    fn a_day_makes_hundreds_of_parts() {
        let (mut now, mut parts) = (0, 0);
        while now < 86_400_000_000_000 {
            now += age_of_a_part(now);
            parts += 1;
        }
        assert!((550..650).contains(&parts), "{parts}");
    }
}
