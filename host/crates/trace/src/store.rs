//! The files of a trace, behind positional reads.
//!
//! They are not memory-mapped: truncating a mapped file kills the process with SIGBUS, its pages
//! count as resident, and mapping needs `unsafe`. Named files are opened when they are read and
//! closed again after many others were read; compressed files are decompressed into one unnamed
//! file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::TraceError;
use crate::gzip::GzipMembers;

/// Number of bytes at the beginning of a file that identify its format.
const HEAD: usize = 262;

/// Maximum number of files kept open.
const OPEN_FILES: usize = 64;

/// One file of the trace, as if it were plain.
#[derive(Debug)]
pub(crate) struct Region {
    /// Path for messages: the user's path, or the folder's joined with the file's name.
    pub(crate) path: PathBuf,
    /// Decompressed size in bytes.
    pub(crate) len: u64,
    /// Offset of the decompressed bytes in the scratch file.
    unpacked_at: Option<u64>,
}

impl Region {
    /// Returns true if it was compressed.
    pub(crate) fn packed(&self) -> bool {
        self.unpacked_at.is_some()
    }
}

/// All files of a trace.
#[derive(Debug)]
pub(crate) struct Store {
    /// Path as given by the user.
    pub(crate) path: PathBuf,
    /// In the order of their names.
    pub(crate) regions: Vec<Region>,
    scratch: Option<File>,
    open: Mutex<VecDeque<(usize, Arc<File>)>>,
}

impl Store {
    /// Finds the files and decompresses those that need it, after a check of their beginnings.
    pub(crate) fn open(
        path: &Path,
        scratch: Option<&Path>,
        look: BeginningCheck<'_>,
    ) -> Result<Self, TraceError> {
        Store::open_within(path, scratch, u64::MAX, Some(look))
    }

    /// Opens the files like [`Store::open`], but truncates compressed files after this number of
    /// bytes, for callers that need only the beginnings.
    pub(crate) fn open_beginnings(
        path: &Path,
        scratch: Option<&Path>,
        bytes: u64,
    ) -> Result<Self, TraceError> {
        Store::open_within(path, scratch, bytes, None)
    }

    fn open_within(
        path: &Path,
        scratch: Option<&Path>,
        bytes: u64,
        look: Option<BeginningCheck<'_>>,
    ) -> Result<Self, TraceError> {
        let meta = path.metadata().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TraceError::Missing {
                path: path.to_owned(),
            },
            _ => unreadable(path, &error),
        })?;
        let paths = if meta.is_dir() {
            files_of(path)?
        } else {
            vec![path.to_owned()]
        };
        let mut unpacker = Unpacker {
            folder: scratch.map_or_else(std::env::temp_dir, Path::to_owned),
            file: None,
            end: 0,
            limit: bytes,
            look,
        };
        let regions = paths
            .into_iter()
            .map(|path| region(path, &mut unpacker))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Store {
            path: path.to_owned(),
            regions,
            scratch: unpacker.file,
            open: Mutex::default(),
        })
    }

    /// Returns the size of all files, decompressed, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.len).sum()
    }

    /// Reads at an offset of a file of the trace. As for [`Read::read`], fewer bytes than requested
    /// do not mean its end; none do.
    pub(crate) fn read_at(&self, region: usize, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Region { len, unpacked_at, .. } = self.regions[region];
        let left = usize::try_from(len.saturating_sub(at)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let buffer = &mut buffer[..wanted];
        let read = match (unpacked_at, &self.scratch) {
            (Some(base), Some(file)) => retry(|| file.read_at(buffer, base + at)),
            _ => {
                let file = self.file(region)?;
                retry(|| file.read_at(buffer, at))
            }
        }?;
        Ok(read)
    }

    /// Fills the whole buffer, or fails.
    pub(crate) fn read_exact_at(&self, region: usize, mut at: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(region, at, buffer)? {
                0 => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the file was truncated",
                    ));
                }
                read => {
                    at += read as u64;
                    buffer = &mut buffer[read..];
                }
            }
        }
        Ok(())
    }

    fn file(&self, region: usize) -> io::Result<Arc<File>> {
        let mut open = self.lock();
        if let Some(at) = open.iter().position(|(index, _)| *index == region) {
            let file = Arc::clone(&open[at].1);
            if at > 0 {
                // Recently read files come first.
                open.swap(at, at - 1);
            }
            return Ok(file);
        }
        let file = Arc::new(open_regular(&self.regions[region].path)?);
        if open.len() == OPEN_FILES {
            open.pop_back();
        }
        open.push_front((region, Arc::clone(&file)));
        Ok(file)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(usize, Arc<File>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> TraceError {
    TraceError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

fn retry(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(|error| unreadable(folder, &error))? {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if hidden {
            continue;
        }
        let path = entry.path();
        // Links are followed; sub-folders are skipped, and anything that is not a file is refused
        // when it is opened.
        match path.metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => files.push(path),
            Err(error) => return Err(unreadable(&path, &error)),
        }
    }
    if files.is_empty() {
        return Err(TraceError::EmptyFolder {
            path: folder.to_owned(),
        });
    }
    files.sort_unstable();
    Ok(files)
}

/// Opens a regular file. Opening a pipe would block until it has a writer, so its type is checked
/// first.
fn open_regular(path: &Path) -> io::Result<File> {
    let kind = path.metadata()?.file_type();
    let found = match () {
        () if kind.is_file() => return File::open(path),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "it is {found}; a trace must be a regular file, or a folder of them, because it is read more than once"
        ),
    ))
}

fn region(path: PathBuf, unpacker: &mut Unpacker<'_>) -> Result<Region, TraceError> {
    let file = open_regular(&path).map_err(|error| unreadable(&path, &error))?;
    let meta = file.metadata().map_err(|error| unreadable(&path, &error))?;
    let mut head = [0; HEAD];
    let read = read_head(&file, &mut head).map_err(|error| unreadable(&path, &error))?;
    let (len, unpacked_at) = match packing(&head[..read]) {
        Some(GZIP) => unpacker.unpack(
            &path,
            GZIP,
            GzipMembers::new(BufReader::with_capacity(1 << 16, file)),
        )?,
        Some(format) => match zstd::Decoder::new(file) {
            Ok(decoder) => unpacker.unpack(&path, format, decoder)?,
            Err(error) => return Err(unreadable(&path, &error)),
        },
        None => match other_format(&head[..read]) {
            Some(found) => return Err(TraceError::Format { path, found }),
            None => (meta.len(), None),
        },
    };
    Ok(Region {
        path,
        len,
        unpacked_at,
    })
}

const GZIP: &str = "gzip";
const ZSTANDARD: &str = "Zstandard";

/// Returns the compression format of a file by its first bytes.
fn packing(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x1f, 0x8b, ..] => Some(GZIP),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(ZSTANDARD),
        _ => None,
    }
}

fn read_head(file: &File, head: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < head.len() {
        match retry(|| file.read_at(&mut head[read..], read as u64))? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

/// Returns the name of a file's unsupported format by its first bytes.
fn other_format(head: &[u8]) -> Option<&'static str> {
    let formats: [(&[u8], &str); 8] = [
        (b"PK\x03\x04", "a ZIP archive"),
        (b"PAR1", "a Parquet file"),
        (b"ARROW1", "an Arrow file"),
        (b"\xfd7zXZ\0", "compressed with xz"),
        (b"BZh", "compressed with bzip2"),
        (b"7z\xbc\xaf", "a 7-Zip archive"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
    ];
    if head.get(257..262) == Some(b"ustar") {
        return Some("a tar archive");
    }
    formats
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map(|(_, name)| *name)
}

/// A check of a compressed file's beginning before the whole file is decompressed.
pub(crate) struct BeginningCheck<'a> {
    /// Number of decompressed bytes to check; shorter files are not checked.
    pub(crate) after: u64,
    /// Accepts or refuses the file, given a store with the beginning as its only file.
    pub(crate) check: &'a dyn Fn(&Store) -> Result<(), TraceError>,
}

/// Appends decompressed files to one unnamed file.
struct Unpacker<'a> {
    folder: PathBuf,
    file: Option<File>,
    end: u64,
    /// Number of bytes after which to stop.
    limit: u64,
    look: Option<BeginningCheck<'a>>,
}

impl Unpacker<'_> {
    fn unpack(
        &mut self,
        path: &Path,
        format: &'static str,
        mut decoder: impl Read,
    ) -> Result<(u64, Option<u64>), TraceError> {
        let folder = self.folder.clone();
        let scratch = |error: io::Error| TraceError::Scratch {
            folder: folder.clone(),
            why: error.to_string(),
        };
        let file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&self.folder).map_err(scratch)?,
        };
        let mut out = BufWriter::with_capacity(1 << 18, file);
        let mut buffer = vec![0; 1 << 16];
        let mut len: u64 = 0;
        let mut head = Vec::with_capacity(HEAD);
        let mut look = self.look.as_ref();
        while len < self.limit {
            match decoder.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    if head.len() < HEAD {
                        head.extend_from_slice(&buffer[..read.min(HEAD - head.len())]);
                        if head.len() == HEAD {
                            unpacked_once(path, format, &head)?;
                        }
                    }
                    out.write_all(&buffer[..read]).map_err(scratch)?;
                    len += read as u64;
                    if let Some(BeginningCheck { check, .. }) = look.take_if(|look| len >= look.after) {
                        out.flush().map_err(scratch)?;
                        check(&Store {
                            path: path.to_owned(),
                            regions: vec![Region {
                                path: path.to_owned(),
                                len,
                                unpacked_at: Some(self.end),
                            }],
                            scratch: Some(out.get_ref().try_clone().map_err(scratch)?),
                            open: Mutex::default(),
                        })?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(TraceError::Packed {
                        path: path.to_owned(),
                        format,
                        why: error.to_string(),
                    });
                }
            }
        }
        unpacked_once(path, format, &head)?;
        let file = out.into_inner().map_err(|error| scratch(error.into_error()))?;
        self.file = Some(file);
        let at = self.end;
        self.end += len;
        Ok((len, Some(at)))
    }
}

/// Refuses a file whose decompressed content is compressed again or has another format.
fn unpacked_once(path: &Path, format: &'static str, head: &[u8]) -> Result<(), TraceError> {
    let path = path.to_owned();
    match (packing(head), other_format(head)) {
        (Some(inner), _) => Err(TraceError::Packed {
            path,
            format,
            why: format!("it is compressed twice, {inner} inside {format}; decompress it once"),
        }),
        (None, Some(found)) => Err(TraceError::Format { path, found }),
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn open(path: &Path, scratch: Option<&Path>) -> Result<Store, TraceError> {
        Store::open_beginnings(path, scratch, u64::MAX)
    }

    fn all(store: &Store, region: usize) -> Vec<u8> {
        let mut bytes = vec![0; store.regions[region].len as usize];
        store.read_exact_at(region, 0, &mut bytes).unwrap();
        bytes
    }

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn compressed_files_read_like_plain_ones_whatever_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let twice = [gzip(b"one "), gzip(b"two")].concat();
        let frames = [
            zstd::encode_all(&b"th"[..], 1).unwrap(),
            zstd::encode_all(&b"ree"[..], 1).unwrap(),
        ]
        .concat();
        write(folder.path(), "b.csv", &twice);
        write(folder.path(), "a", b"zero");
        write(folder.path(), "c.gz", &frames);
        write(folder.path(), ".hidden", b"no");
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let store = open(folder.path(), None).unwrap();
        let found: Vec<_> = (0..store.regions.len()).map(|i| all(&store, i)).collect();
        assert_eq!(found, [&b"zero"[..], b"one two", b"three"]);
        assert_eq!(store.bytes(), 4 + 7 + 5);
        let mut beyond = [0; 4];
        assert_eq!(
            store.read_at(1, 5, &mut beyond).unwrap(),
            2,
            "not into the next file"
        );
        assert!(store.read_exact_at(1, 5, &mut beyond).is_err());
    }

    #[test]
    fn opens_only_the_beginnings() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a.gz", &gzip(&b"0123456789".repeat(100_000)));
        let store = Store::open_beginnings(&path, None, 1000).unwrap();
        assert!((1000..=1000 + (1 << 16)).contains(&store.bytes()));
        assert!(all(&store, 0).starts_with(b"0123456789"));
    }

    #[test]
    fn limits_the_number_of_open_files() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..200 {
            write(folder.path(), &format!("{i:03}"), format!("{i}").as_bytes());
        }
        let store = open(folder.path(), None).unwrap();
        for round in 0..2 {
            for i in 0..200 {
                assert_eq!(all(&store, i), format!("{i}").as_bytes(), "{round}");
            }
        }
        assert_eq!(store.lock().len(), OPEN_FILES);
    }

    #[test]
    fn open_errors_state_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| open(path, None).unwrap_err().to_string();
        let at = folder.path().display();
        assert_eq!(
            message(&folder.path().join("x")),
            format!("{at}/x: file or folder not found")
        );
        assert_eq!(
            message(folder.path()),
            format!("{at}: the folder has no files (hidden files and sub-folders are not read)")
        );
        let zip = write(folder.path(), "z", b"PK\x03\x04....");
        assert!(message(&zip).contains("z: this is a ZIP archive; traces are JSON Lines, JSON or CSV"));
        let mut packed = gzip(&b"0123456789".repeat(1000));
        packed.truncate(packed.len() / 2);
        let cut = write(folder.path(), "cut.gz", &packed);
        assert!(message(&cut).starts_with(&format!("{at}/cut.gz: cannot be decompressed (gzip): ")));
        let mut frame = zstd::encode_all(&b"0123456789".repeat(1000)[..], 1).unwrap();
        frame.truncate(frame.len() - 3);
        let cut = write(folder.path(), "cut.zst", &frame);
        assert!(message(&cut).starts_with(&format!("{at}/cut.zst: cannot be decompressed (Zstandard): ")));
        let good = write(folder.path(), "good.gz", &gzip(b"{}"));
        let nowhere = folder.path().join("nowhere");
        let error = open(&good, Some(&nowhere)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!(
                "cannot write decompressed trace files to  {at}/nowhere: "
            )),
            "{error}"
        );
    }

    #[test]
    fn refuses_special_files_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let message = |path: &Path| open(path, None).unwrap_err().to_string();
        let why = "a trace must be a regular file, or a folder of them, because it is read more than once";
        assert_eq!(
            message(Path::new("/dev/null")),
            format!("/dev/null: cannot be read: it is a device; {why}")
        );
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let refused = format!("{at}/socket: cannot be read: it is a socket; {why}");
        assert_eq!(message(&socket), refused);
        // In a folder its own name is reported.
        write(folder.path(), "a", b"{}");
        assert_eq!(message(folder.path()), refused);
        std::fs::remove_file(&socket).unwrap();
        assert_eq!(open(folder.path(), None).unwrap().regions.len(), 1);
        // The pipe never has a writer: opening it would block.
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let refused = format!("{at}/pipe: cannot be read: it is a pipe; {why}");
        assert_eq!(message(&pipe), refused);
        assert_eq!(message(folder.path()), refused);
        std::fs::remove_file(&pipe).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        assert!(message(folder.path()).starts_with(&format!("{at}/link: cannot be read: No such file")));
    }

    #[test]
    fn rejects_doubly_compressed_and_foreign_content() {
        let folder = tempfile::tempdir().unwrap();
        let message = |bytes: &[u8]| {
            let path = write(folder.path(), "t", bytes);
            let message = open(&path, None).unwrap_err().to_string();
            message.replace(&format!("{}/", folder.path().display()), "")
        };
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        for row in [&b"{}"[..], &b"0123456789".repeat(1000)] {
            assert_eq!(
                message(&zstd(&gzip(row))),
                "t: cannot be decompressed (Zstandard): it is compressed twice, gzip inside Zstandard; decompress it once"
            );
            assert_eq!(
                message(&gzip(&gzip(row))),
                "t: cannot be decompressed (gzip): it is compressed twice, gzip inside gzip; decompress it once"
            );
        }
        let mut tar = vec![0; 1024];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(message(&gzip(&tar)).starts_with("t: this is a tar archive"));
    }

    #[test]
    fn trailing_bytes_after_gzip() {
        let folder = tempfile::tempdir().unwrap();
        let opened = |tail: &[u8]| {
            let bytes = [gzip(b"one "), gzip(b"two"), tail.to_vec()].concat();
            open(&write(folder.path(), "t", &bytes), None)
        };
        for zeros in [1, 511, 200_000] {
            assert_eq!(all(&opened(&vec![0; zeros]).unwrap(), 0), b"one two");
        }
        let late = [vec![0; 100_000], b"x".to_vec()].concat();
        for tail in [&b"{}\n"[..], b"\x1fgarbage, not gzip", &late] {
            let message = opened(tail).unwrap_err().to_string();
            assert!(
                message.ends_with(
                    "t: cannot be decompressed (gzip): trailing data that is not gzip; remove it, or compress the file again"
                ),
                "{message}"
            );
        }
        // A truncated member is reported as such, not as trailing garbage.
        let cut = opened(&gzip(b"three")[..5]).unwrap_err().to_string();
        assert!(cut.contains("(gzip): ") && !cut.contains("not gzip"), "{cut}");
    }
}
