//! The files of a trace, behind positional reads.
//!
//! They are not mapped into memory: a mapped file that someone cuts short kills the process with SIGBUS, its pages count as
//! resident, and mapping needs `unsafe`. Files with a name are opened when they are read and closed again when many others
//! were read since; packed files are unpacked into one file without a name.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::TraceError;
use crate::gzip::Members;

/// Bytes at the beginning of a file that tell what it is.
const HEAD: usize = 262;

/// Files that are kept open at once.
const OPEN_FILES: usize = 64;

/// One file of the trace, as if it were plain.
#[derive(Debug)]
pub(crate) struct Region {
    /// How messages call it: the user's path, or the folder's joined with the file's name.
    pub(crate) path: PathBuf,
    /// Bytes, unpacked.
    pub(crate) len: u64,
    /// Where the unpacked bytes begin in the scratch file.
    unpacked_at: Option<u64>,
}

impl Region {
    /// Whether it was packed.
    pub(crate) fn packed(&self) -> bool {
        self.unpacked_at.is_some()
    }
}

/// All files of a trace.
#[derive(Debug)]
pub(crate) struct Store {
    /// What the user named.
    pub(crate) path: PathBuf,
    /// In the order of their names.
    pub(crate) regions: Vec<Region>,
    scratch: Option<File>,
    open: Mutex<VecDeque<(usize, Arc<File>)>>,
}

impl Store {
    /// Finds the files and unpacks those that are packed, each after a look at its beginning.
    pub(crate) fn open(path: &Path, scratch: Option<&Path>, look: Look<'_>) -> Result<Self, TraceError> {
        Store::open_within(path, scratch, u64::MAX, Some(look))
    }

    /// As [`Store::open`], but packed files end after so many bytes, for who looks at their beginnings only.
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
        look: Option<Look<'_>>,
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

    /// Bytes of all files, unpacked.
    pub(crate) fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.len).sum()
    }

    /// Reads from a place in a file of the trace. As [`Read::read`], fewer bytes than asked for do not mean its end; none do.
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
                        "the file has become shorter",
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
                // Recently read files stand in front.
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
        // What a link leads to counts; sub-folders are not read, and all that is neither is refused when it is opened.
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

/// Opens a regular file. Opening a pipe would wait for somebody who writes to it, so what it is is asked first.
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
            "it is {found}; a trace is read more than once and must be a regular file, or a folder of them"
        ),
    ))
}

fn region(path: PathBuf, unpacker: &mut Unpacker<'_>) -> Result<Region, TraceError> {
    let file = open_regular(&path).map_err(|error| unreadable(&path, &error))?;
    let meta = file.metadata().map_err(|error| unreadable(&path, &error))?;
    let mut head = [0; HEAD];
    let read = read_head(&file, &mut head).map_err(|error| unreadable(&path, &error))?;
    let (len, unpacked_at) = match packing(&head[..read]) {
        Some(GZIP) => unpacker.unpack(&path, GZIP, Members::new(BufReader::with_capacity(1 << 16, file)))?,
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

/// With what a file is packed, by its first bytes.
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

/// What a file is that is none of the formats of traces, by its first bytes.
fn other_format(head: &[u8]) -> Option<&'static str> {
    let formats: [(&[u8], &str); 8] = [
        (b"PK\x03\x04", "a ZIP archive"),
        (b"PAR1", "a Parquet file"),
        (b"ARROW1", "an Arrow file"),
        (b"\xfd7zXZ\0", "packed with xz"),
        (b"BZh", "packed with bzip2"),
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

/// A look at the beginning of a packed file before the whole is unpacked.
pub(crate) struct Look<'a> {
    /// After how many unpacked bytes; there is none at shorter files.
    pub(crate) after: u64,
    /// Refuses the file, or not. It is given a store with the beginning as its only file.
    pub(crate) check: &'a dyn Fn(&Store) -> Result<(), TraceError>,
}

/// Appends unpacked files to one file without a name.
struct Unpacker<'a> {
    folder: PathBuf,
    file: Option<File>,
    end: u64,
    /// Bytes after which a file is long enough.
    limit: u64,
    look: Option<Look<'a>>,
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
                    if let Some(Look { check, .. }) = look.take_if(|look| len >= look.after) {
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

/// Refuses what unpacking shows to be packed again, or another format.
fn unpacked_once(path: &Path, format: &'static str, head: &[u8]) -> Result<(), TraceError> {
    let path = path.to_owned();
    match (packing(head), other_format(head)) {
        (Some(inner), _) => Err(TraceError::Packed {
            path,
            format,
            why: format!("it is packed twice, {inner} stands in {format}; unpack it once"),
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
    fn packed_files_read_like_plain_ones_whatever_their_names() {
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
    fn a_beginning_is_enough_for_a_look() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a.gz", &gzip(&b"0123456789".repeat(100_000)));
        let store = Store::open_beginnings(&path, None, 1000).unwrap();
        assert!((1000..=1000 + (1 << 16)).contains(&store.bytes()));
        assert!(all(&store, 0).starts_with(b"0123456789"));
    }

    #[test]
    fn many_files_are_not_all_kept_open() {
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
    fn what_cannot_be_opened_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| open(path, None).unwrap_err().to_string();
        let at = folder.path().display();
        assert_eq!(
            message(&folder.path().join("x")),
            format!("{at}/x: there is no such file or folder")
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
        assert!(message(&cut).starts_with(&format!("{at}/cut.gz: cannot be unpacked (gzip): ")));
        let mut frame = zstd::encode_all(&b"0123456789".repeat(1000)[..], 1).unwrap();
        frame.truncate(frame.len() - 3);
        let cut = write(folder.path(), "cut.zst", &frame);
        assert!(message(&cut).starts_with(&format!("{at}/cut.zst: cannot be unpacked (Zstandard): ")));
        let good = write(folder.path(), "good.gz", &gzip(b"{}"));
        let nowhere = folder.path().join("nowhere");
        let error = open(&good, Some(&nowhere)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot write unpacked trace files to {at}/nowhere: ")),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let message = |path: &Path| open(path, None).unwrap_err().to_string();
        let why = "a trace is read more than once and must be a regular file, or a folder of them";
        assert_eq!(
            message(Path::new("/dev/null")),
            format!("/dev/null: cannot be read: it is a device; {why}")
        );
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let refused = format!("{at}/socket: cannot be read: it is a socket; {why}");
        assert_eq!(message(&socket), refused);
        // As a member of a folder too, by its name.
        write(folder.path(), "a", b"{}");
        assert_eq!(message(folder.path()), refused);
        std::fs::remove_file(&socket).unwrap();
        assert_eq!(open(folder.path(), None).unwrap().regions.len(), 1);
        // Nobody ever writes to this pipe: opening it would not return.
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
    fn packed_twice_and_other_formats_within() {
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
                "t: cannot be unpacked (Zstandard): it is packed twice, gzip stands in Zstandard; unpack it once"
            );
            assert_eq!(
                message(&gzip(&gzip(row))),
                "t: cannot be unpacked (gzip): it is packed twice, gzip stands in gzip; unpack it once"
            );
        }
        let mut tar = vec![0; 1024];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(message(&gzip(&tar)).starts_with("t: this is a tar archive"));
    }

    #[test]
    fn what_stands_behind_gzip() {
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
                    "t: cannot be unpacked (gzip): after its end stands something that is not gzip; cut it off, or pack the file again"
                ),
                "{message}"
            );
        }
        // A member that is cut off is that, and no garbage.
        let cut = opened(&gzip(b"three")[..5]).unwrap_err().to_string();
        assert!(cut.contains("(gzip): ") && !cut.contains("not gzip"), "{cut}");
    }
}
