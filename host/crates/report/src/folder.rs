//! The folder of a run.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::error::ReportError;
use crate::line_writer::{LineWriter, TraceFile};
use crate::plots::{CdfData, Plot, cdf_log_plot, cdf_plot, wants_log_axis};

/// `<output_dir>/<DD_MM_YYYY-HH_MM_SS>-<first 8 digits of the configuration's BLAKE3>[-n]/`, with
/// `config.yml` and `metrics/`, and `traces/` if a trace is written; `<output_dir>/latest` links to
/// it. Files appear complete (written to a temporary file, then renamed).
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

/// Durability of a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// Survives a crash of this process.
    AfterCrash,
    /// Survives a power loss: synced to disk, which costs milliseconds.
    AfterPowerLoss,
}

/// The link to the newest run or sweep.
const LATEST: &str = "latest";

/// Distinguishes temporary names within the process; the process id does so between processes.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl RunFolder {
    /// Creates the folder of a new run and points `latest` at it. `config_yaml` is written
    /// unchanged: the caller has redacted it. `utc_stamp` is `DD_MM_YYYY-HH_MM_SS`. Two runs never
    /// share a folder, even if two processes start at once.
    pub fn create(output_dir: &Path, config_yaml: &str, utc_stamp: &str) -> Result<Self, ReportError> {
        RunFolder::create_named(output_dir, None, config_yaml, utc_stamp)
    }

    /// The same, with the scenario's name at the end of the folder's name: its letters and digits,
    /// with dashes in place of other characters.
    pub fn create_named(
        output_dir: &Path,
        name: Option<&str>,
        config_yaml: &str,
        utc_stamp: &str,
    ) -> Result<Self, ReportError> {
        let latest = output_dir.join(LATEST);
        if is_taken(&latest) {
            return Err(ReportError::LatestNotALink { path: latest });
        }
        let suffix = name.map(slug).filter(|slug| !slug.is_empty());
        let stem = run_name(config_yaml, utc_stamp);
        let stem = suffix.map_or(stem.clone(), |suffix| format!("{stem}-{suffix}"));
        let folder = RunFolder::create_in(output_dir, &stem, config_yaml)?;
        folder.link_as_latest()?;
        Ok(folder)
    }

    /// The same without the link, for a run that may still fail to start.
    pub fn create_unlinked(
        output_dir: &Path,
        config_yaml: &str,
        utc_stamp: &str,
    ) -> Result<Self, ReportError> {
        RunFolder::create_in(output_dir, &run_name(config_yaml, utc_stamp), config_yaml)
    }

    fn create_in(output_dir: &Path, name: &str, config_yaml: &str) -> Result<Self, ReportError> {
        create_all(output_dir)?;
        let name = create_unique(output_dir, name)?;
        RunFolder::with_config(output_dir.join(name), config_yaml)
    }

    /// Creates exactly the folder `path`, which must not exist or be empty.
    ///
    /// # Errors
    /// [`ReportError::NotEmpty`] if it contains anything.
    pub fn create_at(path: &Path, config_yaml: &str) -> Result<Self, ReportError> {
        create_all(path)?;
        let mut entries = fs::read_dir(path).map_err(|source| ReportError::CreateFolder {
            path: path.to_owned(),
            source,
        })?;
        if entries.next().is_some() {
            return Err(ReportError::NotEmpty {
                path: path.to_owned(),
            });
        }
        RunFolder::with_config(path.to_owned(), config_yaml)
    }

    fn with_config(path: PathBuf, config_yaml: &str) -> Result<Self, ReportError> {
        let folder = RunFolder { path };
        create_all(&folder.path.join("metrics"))?;
        // Nothing has been measured yet: syncing would only delay the run.
        folder.write_whole("config.yml", config_yaml.as_bytes(), Durability::AfterCrash)?;
        Ok(folder)
    }

    /// Points `latest`, next to this folder, at it.
    pub fn link_as_latest(&self) -> Result<(), ReportError> {
        link_as_latest(&self.path)
    }

    /// Opens the folder of a finished run, in which files are added or rewritten. `metrics/` is
    /// created if it is missing.
    ///
    /// # Errors
    /// [`ReportError::NoRun`] if it is not a folder, or contains none of a run's files.
    pub fn open(path: &Path) -> Result<Self, ReportError> {
        const RUN_ENTRIES: [&str; 4] = ["config.yml", "record", "metrics", "traces"];
        if !path.is_dir() || !RUN_ENTRIES.iter().any(|sign| path.join(sign).exists()) {
            return Err(ReportError::NoRun {
                path: path.to_owned(),
            });
        }
        create_all(&path.join("metrics"))?;
        Ok(RunFolder {
            path: path.to_owned(),
        })
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a value as indented JSON to `relative`, for example `metrics/summary_stats.json`.
    pub fn write_json(&self, relative: &str, value: &impl Serialize) -> Result<(), ReportError> {
        let mut text = serde_json::to_string_pretty(value).map_err(|source| ReportError::Serialise {
            path: self.path.join(relative),
            source,
        })?;
        text.push('\n');
        self.write_text(relative, &text)
    }

    /// Writes a text to `relative`. A reader sees the old file or the complete new one, even after
    /// a crash.
    pub fn write_text(&self, relative: &str, text: &str) -> Result<(), ReportError> {
        self.write_whole(relative, text.as_bytes(), Durability::AfterPowerLoss)
    }

    /// Writes bytes to `relative`, as [`RunFolder::write_text`] does.
    pub fn write_bytes(&self, relative: &str, bytes: &[u8]) -> Result<(), ReportError> {
        self.write_whole(relative, bytes, Durability::AfterPowerLoss)
    }

    /// Streams the output of `write` to `relative`, for large files. A reader sees the old file or
    /// the complete new one.
    pub fn write_with(
        &self,
        relative: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), ReportError> {
        self.replace(relative, |file| {
            let mut buffered = BufWriter::with_capacity(256 * 1024, &mut *file);
            write(&mut buffered)?;
            buffered.flush()?;
            drop(buffered);
            file.sync_all()
        })
    }

    /// Writes a plot as `<stem>.png` and `<stem>.svg`, and its data as `<stem>.csv`, for example
    /// `metrics/ttfc_violin_plot`. A reader sees complete files; after a power loss `evaluate`
    /// recreates missing ones.
    pub fn write_plot(&self, stem: &str, plot: &Plot) -> Result<(), ReportError> {
        self.write_drawing(stem, plot)?;
        self.write_whole(
            &format!("{stem}.csv"),
            plot.csv.as_bytes(),
            Durability::AfterCrash,
        )
    }

    /// Writes the distribution of a metric: `<stem>.csv`, `.png` and `.svg`, and
    /// `<stem>_log_x.png` and `.svg` if [`wants_log_axis`] returns true. A metric without samples
    /// has no files.
    pub fn write_cdf(&self, stem: &str, data: &CdfData) -> Result<(), ReportError> {
        if data.points.is_empty() {
            return Ok(());
        }
        self.write_plot(stem, &cdf_plot(data))?;
        if wants_log_axis(data) {
            self.write_drawing(&format!("{stem}_log_x"), &cdf_log_plot(data))?;
        }
        Ok(())
    }

    fn write_drawing(&self, stem: &str, plot: &Plot) -> Result<(), ReportError> {
        self.write_whole(
            &format!("{stem}.png"),
            &plot.drawing.png()?,
            Durability::AfterCrash,
        )?;
        let svg = plot.drawing.svg()?;
        self.write_whole(&format!("{stem}.svg"), svg.as_bytes(), Durability::AfterCrash)
    }

    fn write_whole(&self, relative: &str, bytes: &[u8], durability: Durability) -> Result<(), ReportError> {
        self.replace(relative, |file| {
            file.write_all(bytes)?;
            match durability {
                Durability::AfterPowerLoss => file.sync_all(),
                Durability::AfterCrash => Ok(()),
            }
        })
    }

    fn replace(
        &self,
        relative: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), ReportError> {
        let path = self.path.join(relative);
        if let Some(parent) = path.parent() {
            create_all(parent)?;
        }
        replace(&path, write)
    }

    /// Starts the thread that appends the record to `metrics/request_level_metrics.jsonl` and, with
    /// [`TraceFile::On`], to `traces/trace.jsonl`.
    pub fn writer(&self, trace: TraceFile) -> Result<LineWriter, ReportError> {
        LineWriter::start(&self.path, trace)
    }
}

/// Writes a text to a file named by the user, outside of run folders. A reader sees the old file or
/// the complete new one. A link is followed; to a device or a pipe, which cannot be replaced, the
/// text is written directly.
///
/// # Errors
/// [`ReportError::Write`]; the old file is then unchanged.
pub fn write_named(path: &Path, text: &str) -> Result<(), ReportError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => fs::write(path, text).map_err(|source| ReportError::Write {
            path: path.to_owned(),
            source,
        }),
        found => {
            let linked = found.ok().and_then(|_| fs::canonicalize(path).ok());
            replace(linked.as_deref().unwrap_or(path), |file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            })
        }
    }
}

/// Writes a temporary file next to the named one, and renames it.
fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), ReportError> {
    let temporary = temporary_beside(path);
    let written = File::create_new(&temporary)
        .and_then(|mut file| write(&mut file))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        // The temporary file is useless; failing to remove it changes nothing.
        let _ = fs::remove_file(&temporary);
        ReportError::Write {
            path: path.to_owned(),
            source,
        }
    })
}

fn create_all(path: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(path).map_err(|source| ReportError::CreateFolder {
        path: path.to_owned(),
        source,
    })
}

fn run_name(config_yaml: &str, utc_stamp: &str) -> String {
    let digest = blake3::hash(config_yaml.as_bytes()).to_hex();
    format!("{utc_stamp}-{}", &digest[..8])
}

/// Returns at most 40 characters of a name that are valid in paths on every system.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let mut slug = words.join("-");
    slug.truncate(40);
    slug.trim_end_matches('-').to_owned()
}

/// Creating a folder that must not exist is atomic, so its creator owns it.
fn create_unique(output_dir: &Path, name: &str) -> Result<String, ReportError> {
    let mut candidate = name.to_owned();
    for number in 2u64.. {
        let path = output_dir.join(&candidate);
        match fs::create_dir(&path) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                candidate = format!("{name}-{number}");
            }
            Err(source) => return Err(ReportError::CreateFolder { path, source }),
        }
    }
    Ok(candidate)
}

/// Returns true if the path exists and is not a link.
fn is_taken(latest: &Path) -> bool {
    fs::symlink_metadata(latest).is_ok_and(|found| !found.is_symlink())
}

/// Points `latest`, next to a folder, at it.
///
/// # Errors
/// [`ReportError::LatestNotALink`] if `latest` exists and is not a link.
pub fn link_as_latest(folder: &Path) -> Result<(), ReportError> {
    match (folder.parent(), folder.file_name()) {
        (Some(output_dir), Some(name)) => link_latest(output_dir, name),
        _ => Ok(()),
    }
}

/// Points `latest` at `name` with a relative link, so that the output folder can be moved. Renaming
/// replaces the old link atomically.
fn link_latest(output_dir: &Path, name: &OsStr) -> Result<(), ReportError> {
    let path = output_dir.join(LATEST);
    if is_taken(&path) {
        return Err(ReportError::LatestNotALink { path });
    }
    let temporary = temporary_beside(&path);
    let linked = symlink(name, &temporary).and_then(|()| fs::rename(&temporary, &path));
    linked.map_err(|source| {
        // As above: best effort.
        let _ = fs::remove_file(&temporary);
        ReportError::Link { path, source }
    })
}

fn temporary_beside(path: &Path) -> PathBuf {
    let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{number}.tmp", process::id()))
}
