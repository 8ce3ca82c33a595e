//! The files of a trace, behind positional reads.
//!
//! They are not mapped into memory: a mapped file that someone cuts short kills the process with SIGBUS, its pages count as
//! resident, and mapping needs `unsafe`. Files with a name are opened when they are read and closed again when many others
//! were read since; packed files are unpacked into one file without a name.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::TraceError;

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
    /// Finds the files and unpacks those that are packed.
    pub(crate) fn open(path: &Path, scratch: Option<&Path>) -> Result<Self, TraceError> {
        Store::open_beginnings(path, scratch, u64::MAX)
    }

    /// As [`Store::open`], but packed files end after so many bytes, for who looks at their beginnings only.
    pub(crate) fn open_beginnings(
        path: &Path,
        scratch: Option<&Path>,
        bytes: u64,
    ) -> Result<Self, TraceError> {
        let meta = path.metadata().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TraceError::Missing {
                path: path.to_owned(),
            },
            _ => unreadable(path, &error),
        })?;
        let folder = meta.is_dir();
        let paths = if folder {
            files_of(path)?
        } else {
            vec![path.to_owned()]
        };
        let mut unpacker = Unpacker {
            folder: scratch.map_or_else(std::env::temp_dir, Path::to_owned),
            file: None,
            end: 0,
            limit: bytes,
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
        let file = Arc::new(File::open(&self.regions[region].path)?);
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
        if !hidden && entry.path().is_file() {
            files.push(entry.path());
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

fn region(path: PathBuf, unpacker: &mut Unpacker) -> Result<Region, TraceError> {
    let file = File::open(&path).map_err(|error| unreadable(&path, &error))?;
    let meta = file.metadata().map_err(|error| unreadable(&path, &error))?;
    if !meta.is_file() {
        return Err(TraceError::Unreadable {
            path,
            why: "it is no regular file, and traces are read more than once".to_owned(),
        });
    }
    let mut head = [0; 262];
    let read = read_head(&file, &mut head).map_err(|error| unreadable(&path, &error))?;
    let (len, unpacked_at) = match &head[..read] {
        [0x1f, 0x8b, ..] => {
            let decoder = flate2::read::MultiGzDecoder::new(BufReader::new(file));
            unpacker.unpack(&path, "gzip", decoder)?
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match zstd::Decoder::new(file) {
            Ok(decoder) => unpacker.unpack(&path, "Zstandard", decoder)?,
            Err(error) => return Err(unreadable(&path, &error)),
        },
        _ => (meta.len(), None),
    };
    if unpacked_at.is_none()
        && let Some(found) = other_format(&head[..read])
    {
        return Err(TraceError::Format { path, found });
    }
    Ok(Region {
        path,
        len,
        unpacked_at,
    })
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

/// Appends unpacked files to one file without a name.
struct Unpacker {
    folder: PathBuf,
    file: Option<File>,
    end: u64,
    /// Bytes after which a file is long enough.
    limit: u64,
}

impl Unpacker {
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
        while len < self.limit {
            match decoder.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    out.write_all(&buffer[..read]).map_err(scratch)?;
                    len += read as u64;
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
        let file = out.into_inner().map_err(|error| scratch(error.into_error()))?;
        self.file = Some(file);
        let at = self.end;
        self.end += len;
        Ok((len, Some(at)))
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
        let store = Store::open(folder.path(), None).unwrap();
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
        let store = Store::open(folder.path(), None).unwrap();
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
        let message = |path: &Path| Store::open(path, None).unwrap_err().to_string();
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
        let error = Store::open(&good, Some(&nowhere)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot write unpacked trace files to {at}/nowhere: ")),
            "{error}"
        );
    }
}
