//! Reads a record: finds its files, says what is there, and hands out the events in their order.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use veeksha_events::Event;
use veeksha_model::{NodeId, RequestId, RequestRecord, SessionId, Status};

use crate::{
    RecordError, RecordInfo,
    folder::{folder, parts, whole},
    metadata::VERSION,
    stream::{Stream, TableFile, damage},
    table::Columns,
    tables::{EventColumns, RequestColumns},
};

/// The record of a run.
pub struct Record {
    run: PathBuf,
    info: RecordInfo,
    requests: Files,
    events: Files,
}

/// The files of a table.
struct Files {
    /// Those that can be read, in the order of their events.
    files: Vec<TableFile>,
    /// Whether the recorder finished the table.
    whole: bool,
}

impl Record {
    /// Opens the record in a run's folder: the two finished tables, or, where the run was cut short, their parts. Only what the
    /// files say of themselves is read.
    ///
    /// # Errors
    ///
    /// If there is no record, if none of its files can be read, or if a file is of another version of the format.
    pub fn open(run: &Path) -> Result<Record, RecordError> {
        let folder = folder(run);
        let mut damaged = Vec::new();
        let requests = Files::find::<RequestColumns>(run, &folder, &mut damaged)?;
        let events = Files::find::<EventColumns>(run, &folder, &mut damaged)?;
        if requests.files.is_empty() && events.files.is_empty() {
            return Err(if damaged.is_empty() {
                RecordError::Missing {
                    run: run.to_owned(),
                    hint: hint(run),
                }
            } else {
                RecordError::Unreadable {
                    run: run.to_owned(),
                    reasons: damaged,
                }
            });
        }
        let info = info(&requests, &events, damaged);
        Ok(Record {
            run: run.to_owned(),
            info,
            requests,
            events,
        })
    }

    /// What is known of the record.
    pub fn info(&self) -> &RecordInfo {
        &self.info
    }

    /// Hands out all events that can be read, in their order, in memory that does not grow with their number: the event is lent,
    /// and its memory used again for the next one. What is damaged is left out and noted in [`Record::info`]. The function can
    /// stop the reading with [`ControlFlow::Break`].
    ///
    /// # Errors
    ///
    /// If the files hold events and none of them could be read.
    pub fn for_each<B>(
        &mut self,
        mut on: impl FnMut(&Event) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, RecordError> {
        let mut requests = Stream::<RequestColumns>::new(&self.requests.files);
        let mut events = Stream::<EventColumns>::new(&self.events.files);
        let mut request = Event::Finished(Box::new(nothing()));
        let mut other = Event::RunEnded { at: 0 };
        // Samples and judgements are as many as requests, and keep their memory; so each has a place of its own.
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
        for note in damaged {
            if !self.info.damaged.contains(&note) {
                self.info.damaged.push(note);
            }
        }
        Ok(stopped)
    }
}

impl Files {
    fn find<C: Columns>(run: &Path, folder: &Path, damaged: &mut Vec<String>) -> Result<Files, RecordError> {
        if !folder.is_dir() {
            return Err(RecordError::Missing {
                run: run.to_owned(),
                hint: hint(run),
            });
        }
        let finished = whole(folder, C::NAME);
        let whole = finished.exists();
        let paths = if whole {
            vec![finished]
        } else {
            let parts = parts(folder, C::NAME)?;
            parts.into_iter().map(|(_, path)| path).collect()
        };
        let mut files: Vec<TableFile> = Vec::new();
        for path in paths {
            match TableFile::open::<C>(&path)? {
                Ok(file)
                    if files
                        .last()
                        .is_some_and(|before| before.about.end > file.about.first) =>
                {
                    damaged.push(damage(
                        &path,
                        "it holds events that an earlier part holds already",
                    ));
                    drop(file);
                }
                Ok(file) => files.push(file),
                Err(why) => damaged.push(why),
            }
        }
        Ok(Files { files, whole })
    }

    fn rows(&self) -> u64 {
        self.files.iter().map(TableFile::rows).sum()
    }
}

fn info(requests: &Files, events: &Files, mut damaged: Vec<String>) -> RecordInfo {
    let all = || requests.files.iter().chain(&events.files);
    // A table is finished only when everything is written, so one finished table knows how long the other is.
    let finished = requests.whole || events.whole;
    let written = all().map(|file| file.about.end).max().unwrap_or_default();
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

/// What a folder without a record looks like.
fn hint(run: &Path) -> &'static str {
    if run.join("metrics/request_level_metrics.jsonl").exists() {
        ". It looks like a run of Veeksha, or of a version of this program that kept no record: its metrics can be read, but not \
         computed anew"
    } else if run.join("requests.parquet").exists() || run.join("events.parquet").exists() {
        ". It looks like the record itself: give the folder above it"
    } else if run.is_dir() {
        ". Give the folder of a run, the one with config.yml in it"
    } else {
        ". There is no such folder"
    }
}

/// A record to be filled.
fn nothing() -> RequestRecord {
    RequestRecord {
        id: RequestId {
            session: SessionId(0),
            node: NodeId(0),
        },
        session_requests: 0,
        parents: Vec::new(),
        history_parent: None,
        wait_after_ready: 0,
        intended: 0,
        held: Default::default(),
        dispatched_at: 0,
        picked_up_at: None,
        sent_at: None,
        first_byte_at: None,
        completed_at: 0,
        processed_at: 0,
        stamps: Default::default(),
        chunks: Vec::new(),
        chunk_tokens: Vec::new(),
        status: Status::Ok {
            finish_reason: String::new(),
        },
        http_status: None,
        target_prompt_tokens: 0,
        prompt_tokens: 0,
        total_prompt_tokens: 0,
        target_output_tokens: None,
        output_tokens: 0,
        output_tokens_from_usage: false,
        usage: None,
        connection_reused: false,
        server: 0,
        resolve: None,
        connect: None,
        tls: None,
        retried: false,
        measured: false,
        template_tokens: 0,
        history_mode: Default::default(),
        recorded: None,
        ideal_cached_tokens: None,
        labels: Vec::new(),
    }
}
