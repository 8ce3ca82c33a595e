//! Reads a record: finds its files, reports their state, and returns the events in order.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use veeksha_events::Event;
use veeksha_model::{NodeId, RequestId, RequestRecord, SessionId, Status};

use crate::error::RecordError;
use crate::folder::{folder, parts, whole};
use crate::info::RecordInfo;
use crate::metadata::VERSION;
use crate::stream::{TableFile, TableStream, damage_note, name};
use crate::table::TableColumns;
use crate::tables::{EventColumns, RequestColumns};

/// The record of a run.
pub struct RunRecord {
    run: PathBuf,
    info: RecordInfo,
    requests: TableFiles,
    events: TableFiles,
}

/// The files of a table.
struct TableFiles {
    /// Those that can be read, in the order of their events.
    files: Vec<TableFile>,
    /// True if the recorder finished the table.
    whole: bool,
}

impl RunRecord {
    /// Opens the record in a run's folder: the two finished tables, or, if the run was cut short,
    /// their parts. Only the files' metadata is read.
    ///
    /// # Errors
    ///
    /// If there is no record, if it is empty because the run was killed before anything was
    /// recorded, if none of its files can be read, or if a file has another version of the format.
    /// A file that is damaged, not a regular file, or from another run than most files is left out
    /// and noted in [`RunRecord::info`].
    pub fn open(run: &Path) -> Result<RunRecord, RecordError> {
        let folder = folder(run);
        if !folder.is_dir() {
            return Err(RecordError::Missing {
                run: run.to_owned(),
                hint: hint(run),
            });
        }
        let mut damaged = Vec::new();
        let mut requests = TableFiles::find::<RequestColumns>(&folder, &mut damaged)?;
        let mut events = TableFiles::find::<EventColumns>(&folder, &mut damaged)?;
        if let Some(of_run) = run_of(&requests, &events) {
            requests.keep(&of_run, &mut damaged);
            events.keep(&of_run, &mut damaged);
        }
        if requests.files.is_empty() && events.files.is_empty() {
            let run = run.to_owned();
            return Err(if !damaged.is_empty() {
                RecordError::Unreadable {
                    run,
                    reasons: damaged,
                }
            } else if has_ended(&run) {
                RecordError::Missing {
                    hint: hint(&run),
                    run,
                }
            } else {
                RecordError::Empty { run }
            });
        }
        let info = info(&requests, &events, damaged);
        Ok(RunRecord {
            run: run.to_owned(),
            info,
            requests,
            events,
        })
    }

    /// Returns the state of the record.
    pub fn info(&self) -> &RecordInfo {
        &self.info
    }

    /// Hands out all events that can be read, in their order, in memory that does not grow with
    /// their number: the event is lent, and its memory used again for the next one. What is damaged
    /// is left out and noted in [`RunRecord::info`]. The function can stop the reading with
    /// [`ControlFlow::Break`].
    ///
    /// # Errors
    ///
    /// If the files hold events and none of them could be read.
    pub fn for_each<B>(
        &mut self,
        mut on: impl FnMut(&Event) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, RecordError> {
        let mut requests = TableStream::<RequestColumns>::new(&self.requests.files);
        let mut events = TableStream::<EventColumns>::new(&self.events.files);
        let mut request = Event::Finished(Box::new(empty_record()));
        let mut other = Event::RunEnded { at: 0 };
        // There are as many samples and judgements as requests, so each kind has a buffer that
        // keeps its memory.
        let mut sample = Event::RunEnded { at: 0 };
        let mut judgement = Event::RunEnded { at: 0 };
        let mut handed_out = 0_u64;
        let stopped = loop {
            let of_request = match (requests.peek(), events.peek()) {
                (Some(request), Some(event)) => request < event,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break ControlFlow::Continue(()),
            };
            let event = if of_request {
                requests
                    .take(|rows, row| match &mut request {
                        Event::Finished(record) => rows.read(row, record),
                        _ => Ok(()),
                    })
                    .map(|()| &request)
            } else {
                events.take(|rows, row| {
                    let place = match rows.event.get(row).data() {
                        b"sampled" => &mut sample,
                        b"judged" => &mut judgement,
                        _ => &mut other,
                    };
                    rows.read(row, place)?;
                    Ok(&*place)
                })
            };
            if let Some(event) = event {
                handed_out += 1;
                if let ControlFlow::Break(stop) = on(event) {
                    break ControlFlow::Break(stop);
                }
            }
        };
        let mut damaged = requests.damaged;
        damaged.append(&mut events.damaged);
        if !damaged.is_empty() {
            self.info.complete = false;
        }
        if handed_out == 0 && !damaged.is_empty() {
            return Err(RecordError::Unreadable {
                run: self.run.clone(),
                reasons: damaged,
            });
        }
        if stopped.is_continue() {
            self.info.lost = written(&self.requests, &self.events).saturating_sub(handed_out);
        }
        for note in damaged {
            if !self.info.damaged.contains(&note) {
                self.info.damaged.push(note);
            }
        }
        Ok(stopped)
    }
}

impl TableFiles {
    fn find<C: TableColumns>(folder: &Path, damaged: &mut Vec<String>) -> Result<TableFiles, RecordError> {
        let finished = whole(folder, C::NAME);
        let whole = finished.exists();
        let mut files = Vec::new();
        if whole {
            match TableFile::open::<C>(&finished)? {
                Ok(file) => files.push(file),
                Err(why) => damaged.push(why),
            }
            return Ok(TableFiles { files, whole });
        }
        // A part comes before its increments, and replaces them if it can be read.
        let mut replaced = None;
        for file in parts(folder, C::NAME)? {
            if file.increment.is_some() && replaced == Some(file.part) {
                continue;
            }
            match TableFile::open::<C>(&file.path)? {
                Ok(open) => {
                    files.push(open);
                    replaced = file.increment.is_none().then_some(file.part);
                }
                Err(why) => damaged.push(why),
            }
        }
        Ok(TableFiles { files, whole })
    }

    /// Leaves out what is of another run, and what holds events a second time.
    fn keep(&mut self, of_run: &RunIdentity, damaged: &mut Vec<String>) {
        let mut end = 0;
        self.files.retain(|file| {
            let why = if file.about.run != of_run.run {
                format!("it is of another run than {}", of_run.file)
            } else if file.about.first < end {
                "it holds events that an earlier part holds already".to_owned()
            } else {
                end = file.about.end;
                return true;
            };
            damaged.push(damage_note(&file.path, &why));
            false
        });
    }

    fn rows(&self) -> u64 {
        self.files
            .iter()
            .fold(0, |rows, file| rows.saturating_add(file.rows()))
    }
}

/// The run that a record is of.
struct RunIdentity {
    /// The run's name; `None` in older records.
    run: Option<String>,
    /// A file that bears it.
    file: String,
}

/// The run that most files are of; of as many, the one of the first file. `None` without a file.
fn run_of(requests: &TableFiles, events: &TableFiles) -> Option<RunIdentity> {
    let all = || requests.files.iter().chain(&events.files);
    let of_its_run = |file: &TableFile| all().filter(|other| other.about.run == file.about.run).count();
    // The last of the greatest would be taken.
    let most = all().rev().max_by_key(|file| of_its_run(file))?;
    Some(RunIdentity {
        run: most.about.run.clone(),
        file: name(&most.path),
    })
}

/// Returns the number of recorded events, according to the files.
fn written(requests: &TableFiles, events: &TableFiles) -> u64 {
    let files = requests.files.iter().chain(&events.files);
    files.map(|file| file.about.end).max().unwrap_or_default()
}

fn info(requests: &TableFiles, events: &TableFiles, mut damaged: Vec<String>) -> RecordInfo {
    let all = || requests.files.iter().chain(&events.files);
    // A table is finished only when everything is written, so one finished table knows how long the
    // other is.
    let finished = requests.whole || events.whole;
    let written = written(requests, events);
    let there = requests.rows().saturating_add(events.rows());
    let lost = written.saturating_sub(there);
    if lost > 0 {
        damaged.push(format!("{lost} of {written} recorded events are not there"));
    }
    RecordInfo {
        version: VERSION,
        program: all()
            .next()
            .map(|file| file.about.program.clone())
            .unwrap_or_default(),
        run: all().find_map(|file| file.about.run.clone()),
        config: all().find_map(|file| file.about.config.clone()),
        complete: finished && damaged.is_empty(),
        parts: all().count(),
        requests: requests.rows(),
        events: events.rows(),
        lost,
        damaged,
        cut_after: (!finished)
            .then(|| all().map(|file| file.about.until).max())
            .flatten(),
    }
}

/// Returns true if the folder has the files that this program writes only at the end of a run.
/// Veeksha writes the same metrics, and none of these.
fn has_ended(run: &Path) -> bool {
    let written = ["certificate.json", "report.html"];
    written.iter().any(|name| run.join(name).exists())
}

/// Returns the kind of a folder without a record, with the remedy.
fn hint(run: &Path) -> &'static str {
    if has_ended(run) {
        "its record was removed: its results can be read, but not recomputed; for an evaluation, pass the folder of its run"
    } else if run.join("metrics/request_level_metrics.jsonl").exists() {
        "it seems to be a run of Veeksha, which keeps no record: its metrics can be read, but not recomputed"
    } else if run.join("requests.parquet").exists() || run.join("events.parquet").exists() {
        "it seems to be the record itself; pass its parent folder"
    } else if run.is_dir() {
        "pass the folder of a run, which contains config.yml and record/"
    } else if run.exists() {
        "it is a file; pass the folder of a run, which contains config.yml and record/"
    } else {
        "the folder does not exist"
    }
}

/// A record to be filled.
fn empty_record() -> RequestRecord {
    RequestRecord {
        session_requests: 0,
        picked_up_at: None,
        sent_at: None,
        stamps: Default::default(),
        status: Status::Ok {
            finish_reason: String::new(),
        },
        http_status: None,
        output_tokens_from_usage: false,
        connection_reused: false,
        measured: false,
        ..RequestRecord::answered(RequestId {
            session: SessionId(0),
            node: NodeId(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use parquet::data_type::ByteArray;

    use super::*;
    use crate::{join::TableFormat, metadata::FileInfo, write::Levels};

    /// Reads a record of three requests that is valid except for a cell of the last row, and
    /// returns the reported damage.
    fn changed(change: impl Fn(&mut RequestColumns)) -> String {
        let run = tempfile::tempdir().unwrap();
        let folder = folder(run.path());
        fs::create_dir(&folder).unwrap();
        let record = empty_record();
        let mut columns = RequestColumns::default();
        columns.push(0, &record);
        columns.push(1, &record);
        columns.push(2, &record);
        change(&mut columns);
        let mut about = FileInfo {
            end: 3,
            ..FileInfo::default()
        };
        let form = TableFormat::of::<RequestColumns>().unwrap();
        let bytes = form
            .encode(&mut columns, 3, &mut about, &mut Levels::default())
            .unwrap();
        fs::write(whole(&folder, "requests"), bytes).unwrap();
        let mut record = RunRecord::open(run.path()).unwrap();
        let mut seen = 0;
        let end = record.for_each(|_| {
            seen += 1;
            ControlFlow::<()>::Continue(())
        });
        assert!(end.unwrap().is_continue());
        assert_eq!(seen, 2, "the rows before are handed out");
        assert!(!record.info().complete);
        record.info().damaged.join("; ")
    }

    #[test]
    fn invalid_cells_are_damage() {
        let seven = |column: &mut crate::write::RequiredWriter<crate::element::Int>| column.replace_last(-7);
        let cases: [(String, &str); 8] = [
            (
                changed(|columns| seven(&mut columns.num_output_tokens)),
                "column num_output_tokens: -7",
            ),
            (changed(|columns| seven(&mut columns.server)), "column server: -7"),
            (
                changed(|columns| columns.position.replace_last(1)),
                "out of order",
            ),
            (
                changed(|columns| columns.history_mode.replace_last(ByteArray::from("old"))),
                "column history_mode: old",
            ),
            (
                changed(|columns| {
                    columns
                        .arrival_stamps
                        .replace_last(ByteArray::from(vec![0xff, 0xfe]))
                }),
                "column arrival_stamps: text that is not UTF-8",
            ),
            (
                changed(|columns| columns.finish_reason.replace_last(None)),
                "a request that was not answered, did not fail and was not cancelled",
            ),
            (
                changed(|columns| columns.usage_prompt_tokens.replace_last(Some(3))),
                "a part of a usage",
            ),
            (
                changed(|columns| columns.recorded_at_ns.replace_last(Some(3))),
                "false although there is recorded data",
            ),
        ];
        for (error, words) in cases {
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn lists_of_different_length_are_damage() {
        let error = changed(|columns| columns.chunk_at_ns.replace_last([1, 2]));
        assert!(error.contains("not as long as the other chunk_ lists"), "{error}");
        let error = changed(|columns| columns.label_names.replace_last([ByteArray::from("tier")]));
        assert!(
            error.contains("another number of values than of names"),
            "{error}"
        );
        let error = changed(|columns| {
            columns.chunk_at_ns.replace_last([1]);
            columns.chunk_lag_ns.replace_last([1 << 32]);
            columns.chunk_bytes.replace_last([1]);
            columns.chunk_kind.replace_last([2]);
            columns.chunk_merged.replace_last([false]);
        });
        assert!(error.contains("column chunk_lag_ns: 4294967296"), "{error}");
        let error = changed(|columns| {
            columns.chunk_at_ns.replace_last([1]);
            columns.chunk_lag_ns.replace_last([1]);
            columns.chunk_bytes.replace_last([1]);
            columns.chunk_kind.replace_last([8]);
            columns.chunk_merged.replace_last([false]);
        });
        assert!(error.contains("column chunk_kind: 8"), "{error}");
    }
}
