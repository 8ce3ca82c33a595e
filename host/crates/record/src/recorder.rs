//! Writes the record while the run lasts.

use std::{
    collections::hash_map::RandomState,
    fs,
    hash::{BuildHasher, Hasher},
    mem,
    path::{Path, PathBuf},
};

use veeksha_events::Event;
use veeksha_model::{Nanos, RequestRecord};

use crate::error::{RecordError, message_of};
use crate::folder::{folder, part, parts, sync, whole, write_whole};
use crate::join::TableFormat;
use crate::metadata::FileInfo;
use crate::table::Columns;
use crate::tables::{EventColumns, RequestColumns};
use crate::write::Levels;

/// The most rows of a part.
const MOST_ROWS: usize = 65_536;
/// The most memory for the rows of a part, about.
const MOST_BYTES: usize = 32 << 20;
/// The least age at which a part is written.
const LEAST_AGE: Nanos = 500_000_000;

/// Writes a run's record. Events are kept as columns; when there are enough of them, or the oldest
/// is old enough, they are written as parts. Memory is bounded by one part: at most 32 MiB of
/// columns (or one event, if that is larger), and as much again for a moment while they are
/// encoded.
pub struct Recorder {
    folder: PathBuf,
    run: String,
    program: String,
    config: Option<String>,
    requests: Table<RequestColumns>,
    events: Table<EventColumns>,
    levels: Levels,
    /// The next event's place in the run's sequence.
    position: u64,
    /// The first position that no part has.
    written: u64,
    /// The next part's number.
    part: usize,
    /// Bytes of the columns, about.
    bytes: usize,
    /// Instant of the oldest event that is not written.
    since: Option<Nanos>,
    /// The latest instant that was given.
    now: Nanos,
}

/// Buffered rows and written parts of one table.
struct Table<C> {
    form: TableFormat,
    columns: C,
    rows: usize,
    parts: Vec<(PathBuf, FileInfo)>,
}

impl Recorder {
    /// Makes `record/` in a run's folder (which is made too, where it is missing). `program` is the
    /// program's name and version.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made, or holds a record already.
    pub fn create(run: &Path, program: &str) -> Result<Recorder, RecordError> {
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
        Ok(Recorder {
            requests: Table::new(&folder)?,
            events: Table::new(&folder)?,
            folder,
            run: name_of_a_run(),
            program: program.to_owned(),
            config: None,
            levels: Levels::default(),
            position: 0,
            written: 0,
            part: 0,
            bytes: 0,
            since: None,
            now: 0,
        })
    }

    /// Writes the digest of the run's configuration into each file, so that a reader can check
    /// whether the configuration next to the record belongs to the run.
    pub fn of_config(mut self, digest: impl Into<String>) -> Recorder {
        self.config = Some(digest.into());
        self
    }

    /// Takes the next event of the run. `now` is the present instant of the run's clock; it decides
    /// only how old a part may grow.
    ///
    /// # Errors
    ///
    /// If a part could not be written. Its events are lost (the reader reports their number); later
    /// events are recorded again, so that a temporarily full disk costs no more than that.
    pub fn push(&mut self, event: &Event, now: Nanos) -> Result<(), RecordError> {
        let position = self.position;
        self.position += 1;
        if let Event::Finished(record) = event {
            self.requests.columns.push(position, record);
            self.requests.rows += 1;
            self.bytes += size_of_request(record);
        } else {
            self.events.columns.push(position, event);
            self.events.rows += 1;
            self.bytes += SIZE_OF_EVENT;
        }
        self.now = self.now.max(now);
        self.since.get_or_insert(now);
        let rows = self.requests.rows.max(self.events.rows);
        if rows >= MOST_ROWS || self.bytes >= MOST_BYTES {
            return self.write_part();
        }
        self.tick(now)
    }

    /// Returns the instant at which the next part is due if nothing else happens, on the clock of
    /// [`Recorder::push`]: the time for [`Recorder::tick`]. `None` if everything is written.
    pub fn due(&self) -> Option<Nanos> {
        self.since.map(|since| since.saturating_add(oldest(since)))
    }

    /// Writes a part if what has been taken is old enough: to be called while nothing happens, so
    /// that a run that is killed in a quiet stretch loses no more than a busy one.
    ///
    /// # Errors
    ///
    /// As [`Recorder::push`].
    pub fn tick(&mut self, now: Nanos) -> Result<(), RecordError> {
        self.now = self.now.max(now);
        match self.due() {
            Some(due) if self.now >= due => self.write_part(),
            _ => Ok(()),
        }
    }

    /// Writes what is left and joins the parts: one file for each table.
    ///
    /// # Errors
    ///
    /// If a file could not be written. The parts that are there stay, and [`crate::Record`] reads
    /// them.
    pub fn finish(mut self) -> Result<(), RecordError> {
        let last = self.write_part();
        let about = self.about(0);
        self.requests.finish(&self.folder, &about)?;
        self.events.finish(&self.folder, &about)?;
        sync(&self.folder)?;
        self.requests.remove_parts()?;
        self.events.remove_parts()?;
        last
    }

    /// Returns the metadata of a file that holds the events from `first` on.
    fn about(&self, first: u64) -> FileInfo {
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

    /// Writes the events that no part has: first what is not a request, then the requests.
    fn write_part(&mut self) -> Result<(), RecordError> {
        if self.written == self.position {
            return Ok(());
        }
        let about = self.about(self.written);
        (self.bytes, self.since, self.written) = (0, None, self.position);
        let number = self.part;
        self.part += 1;
        let events = self
            .events
            .write_part(&self.folder, number, about.clone(), &mut self.levels);
        let requests = self
            .requests
            .write_part(&self.folder, number, about, &mut self.levels);
        events.and(requests)?;
        sync(&self.folder)
    }
}

impl<C: Columns> Table<C> {
    fn new(folder: &Path) -> Result<Self, RecordError> {
        let form = TableFormat::of::<C>().map_err(|error| RecordError::Encode {
            path: whole(folder, C::NAME),
            reason: message_of(error),
        })?;
        Ok(Table {
            form,
            columns: C::default(),
            rows: 0,
            parts: Vec::new(),
        })
    }

    /// Writes the rows as a part; without rows there is none.
    fn write_part(
        &mut self,
        folder: &Path,
        number: usize,
        mut about: FileInfo,
        levels: &mut Levels,
    ) -> Result<(), RecordError> {
        let rows = mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let path = part(folder, C::NAME, number);
        let bytes = self.form.encode(&mut self.columns, rows, &mut about, levels);
        // Whatever becomes of the rows, their columns are used again.
        let bytes = bytes.map_err(|error| {
            self.columns = C::default();
            RecordError::Encode {
                path: path.clone(),
                reason: message_of(error),
            }
        })?;
        write_whole(&path, |file| {
            std::io::Write::write_all(file, &bytes).map_err(|source| RecordError::Write {
                path: path.clone(),
                source,
            })
        })?;
        self.parts.push((path, about));
        Ok(())
    }

    /// Joins the parts into one file. A single part is renamed instead, if its metadata covers the
    /// whole run.
    fn finish(&mut self, folder: &Path, about: &FileInfo) -> Result<(), RecordError> {
        let to = whole(folder, C::NAME);
        if let [(only, of_part)] = &self.parts[..]
            && (of_part.first, of_part.end) == (about.first, about.end)
        {
            fs::rename(only, &to).map_err(|source| RecordError::Write { path: to, source })?;
            self.parts.clear();
            return Ok(());
        }
        self.form.join(C::NAME, &self.parts, about.clone(), &to)
    }

    fn remove_parts(&mut self) -> Result<(), RecordError> {
        for (path, _) in self.parts.drain(..) {
            fs::remove_file(&path).map_err(|source| RecordError::Write { path, source })?;
        }
        Ok(())
    }
}

/// 128 bits that no other run has: SipHash of nothing under two keys from the system's random
/// source.
fn name_of_a_run() -> String {
    let draw = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", draw(), draw())
}

/// The age at which a part is written whose first event came at an instant of the run: the square
/// root of its seconds, and half a second at the least. A run of some seconds loses one or two of
/// them to a crash, a run of an hour at most a minute, a run of a day five minutes; and that one
/// has 600 parts, where one every five seconds would be 17,000.
fn oldest(since: Nanos) -> Nanos {
    let seconds = since as f64 / 1e9;
    LEAST_AGE.max((seconds.sqrt() * 1e9) as Nanos)
}

/// Approximate size of an event's cells in bytes; their texts are short.
const SIZE_OF_EVENT: usize = 320;

/// Bytes of a request's cells, about.
fn size_of_request(record: &RequestRecord) -> usize {
    let words = match &record.status {
        veeksha_events::Status::Ok { finish_reason } => finish_reason.len(),
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
            assert_eq!(oldest(at * millisecond), age * millisecond, "{at}");
        }
    }

    #[test]
    fn run_names_are_unique() {
        let names: std::collections::BTreeSet<String> = (0..100).map(|_| name_of_a_run()).collect();
        assert_eq!(names.len(), 100);
        assert!(names.iter().all(|name| name.len() == 32));
    }

    /// A part every sqrt(t) seconds: the integral of dt / sqrt(t) is 2 sqrt(t), 588 for a day, and
    /// few before it is that slow.
    #[test]
    fn a_day_makes_hundreds_of_parts() {
        let (mut now, mut parts) = (0, 0);
        while now < 86_400_000_000_000 {
            now += oldest(now);
            parts += 1;
        }
        assert!((550..650).contains(&parts), "{parts}");
    }
}
