//! The part of the tar format (POSIX.1-1988, `ustar`) that an image layout needs.
//!
//! The writer sets every field that is not content to a constant, so that equal contents are equal
//! bytes. The reader accepts regular files and folders, checks each declared size before it reads,
//! and never writes anything.

use std::io::{Read, Write};

use crate::error::BundleError;

const BLOCK: usize = 512;
/// GNU tar fills the last record of 10 KiB with zeros.
const MAX_PADDING: usize = 64 << 10;
/// The maximum size of an extended header, which is skipped.
const MAX_EXTENDED: u64 = 64 << 10;

/// Writes files, then the end of the tar.
pub(crate) fn write<'a>(
    mut sink: impl Write,
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> std::io::Result<()> {
    for (name, content) in files {
        sink.write_all(&header(name, content.len())?)?;
        sink.write_all(content)?;
        let padding = content.len().next_multiple_of(BLOCK) - content.len();
        sink.write_all(&[0; BLOCK][..padding])?;
    }
    sink.write_all(&[0; 2 * BLOCK])
}

fn header(name: &str, size: usize) -> std::io::Result<[u8; BLOCK]> {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| {
        let field = header.get_mut(at..at + text.len());
        field.map(|field| field.copy_from_slice(text.as_bytes()))
    };
    let size = format!("{size:011o}");
    if name.len() > 100 || size.len() > 11 {
        return Err(std::io::Error::other("the file does not fit into a tar"));
    }
    put(0, name);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &size);
    put(136, "00000000000");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let text = format!("{sum:06o}\0 ");
    header[148..156].copy_from_slice(text.as_bytes());
    Ok(header)
}

/// An entry of a tar.
pub(crate) struct TarEntry {
    /// The name, without `./` in front.
    pub(crate) name: String,
    /// The content of a file; none for a folder.
    pub(crate) size: Option<u64>,
}

/// Reads a tar entry by entry.
pub(crate) struct TarReader<R> {
    source: R,
    /// The number of headers read.
    entries: usize,
    max_entries: usize,
}

impl<R: Read> TarReader<R> {
    pub(crate) fn new(source: R, max_entries: usize) -> Self {
        TarReader {
            source,
            entries: 0,
            max_entries,
        }
    }

    /// Returns the next entry, whose content must then be read; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<TarEntry>, BundleError> {
        loop {
            let block = self.block("the end of the tar is missing")?;
            if block.iter().all(|byte| *byte == 0) {
                self.finish()?;
                return Ok(None);
            }
            self.entries += 1;
            if self.entries > self.max_entries {
                return Err(BundleError::TooMany {
                    parts: "entries",
                    limit: self.max_entries,
                });
            }
            let header = self.header(&block)?;
            let name = || header.name.clone();
            let special = |kind| BundleError::NotAFile { name: name(), kind };
            match header.kind {
                b'0' | 0 => {
                    return Ok(Some(TarEntry {
                        name: clean(&header.name)?,
                        size: Some(header.size),
                    }));
                }
                b'5' => {
                    return Ok(Some(TarEntry {
                        name: clean(&header.name)?,
                        size: None,
                    }));
                }
                b'x' | b'g' => self.skip_extended(header.size)?,
                b'1' => return Err(special("a hard link")),
                b'2' => return Err(special("a symbolic link")),
                b'3' | b'4' | b'6' => return Err(special("a device")),
                b'S' => return Err(special("a sparse file")),
                b'L' | b'K' => return Err(special("a long name of GNU tar")),
                _ => return Err(special("an entry of an unknown kind")),
            }
        }
    }

    /// Reads the content of the entry that was returned last.
    pub(crate) fn content(&mut self, size: u64) -> Result<Vec<u8>, BundleError> {
        // The capacity follows the bytes that arrive, not the size that the header claims.
        let mut content = Vec::new();
        (&mut self.source).take(size).read_to_end(&mut content)?;
        if content.len() as u64 != size {
            return Err(BundleError::Truncated("a file of the tar is incomplete"));
        }
        let padding = content.len().next_multiple_of(BLOCK) - content.len();
        self.read_exact(&mut [0; BLOCK][..padding], "a file of the tar is incomplete")?;
        Ok(content)
    }

    /// An extended header of pax may hold times and other attributes, which do not matter here. One
    /// that gives an entry another name or size would contradict the checks.
    fn skip_extended(&mut self, size: u64) -> Result<(), BundleError> {
        let damaged = |reason| BundleError::DamagedEntry {
            entry: self.entries,
            reason,
        };
        if size > MAX_EXTENDED {
            return Err(damaged("its extended header is too long"));
        }
        let overrides = damaged("its extended header changes a name or a size");
        let content = self.content(size)?;
        let has = |key: &[u8]| content.windows(key.len()).any(|part| part == key);
        let keys: [&[u8]; 4] = [b" path=", b" linkpath=", b" size=", b" GNU.sparse"];
        if keys.into_iter().any(has) {
            return Err(overrides);
        }
        Ok(())
    }

    fn header(&self, block: &[u8; BLOCK]) -> Result<TarHeader, BundleError> {
        let damaged = |reason| BundleError::DamagedEntry {
            entry: self.entries,
            reason,
        };
        if &block[257..262] != b"ustar" {
            return Err(match self.entries {
                1 => not_a_tar(block),
                _ => damaged("it is not of the format ustar"),
            });
        }
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        let of_field: u64 = block[148..156].iter().map(|byte| u64::from(*byte)).sum();
        let expected = sum - of_field + 8 * u64::from(b' ');
        if number(&block[148..156]) != Some(expected) {
            return Err(damaged("its checksum is wrong"));
        }
        let text = |field: &[u8]| {
            let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
            let text = std::str::from_utf8(&field[..end]).map(str::to_owned);
            text.map_err(|_| damaged("its name is not UTF-8"))
        };
        let (mut name, prefix) = (text(&block[..100])?, text(&block[345..500])?);
        if !prefix.is_empty() && &block[257..263] == b"ustar\0" {
            name = format!("{prefix}/{name}");
        }
        Ok(TarHeader {
            name,
            size: number(&block[124..136]).ok_or_else(|| damaged("its size is not an octal number"))?,
            kind: block[156],
        })
    }

    /// Accepts the second block of zeros and the padding of a record.
    fn finish(&mut self) -> Result<(), BundleError> {
        let second = self.block("the end of the tar is missing")?;
        let mut rest = Vec::new();
        (&mut self.source)
            .take(MAX_PADDING as u64 + 1)
            .read_to_end(&mut rest)?;
        if rest.len() > MAX_PADDING || second.iter().chain(&rest).any(|byte| *byte != 0) {
            return Err(BundleError::TrailingData);
        }
        Ok(())
    }

    fn block(&mut self, missing: &'static str) -> Result<[u8; BLOCK], BundleError> {
        let mut block = [0; BLOCK];
        self.read_exact(&mut block, missing)?;
        Ok(block)
    }

    fn read_exact(&mut self, buffer: &mut [u8], missing: &'static str) -> Result<(), BundleError> {
        self.source
            .read_exact(buffer)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => BundleError::Truncated(missing),
                _ => BundleError::Io(error),
            })
    }
}

struct TarHeader {
    name: String,
    size: u64,
    kind: u8,
}

/// Names the compression of a file that is not a tar.
fn not_a_tar(block: &[u8]) -> BundleError {
    let magics: [(&[u8], &'static str); 5] = [
        (&[0x1f, 0x8b], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (b"BZh", "bzip2"),
        (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
        (b"PK\x03\x04", "zip"),
    ];
    let found = magics.iter().find(|(magic, _)| block.starts_with(magic));
    found.map_or(BundleError::NotATar, |(_, format)| BundleError::Compressed {
        format,
    })
}

/// Removes `./` in front and `/` at the end of a name, and refuses one that leads elsewhere.
fn clean(name: &str) -> Result<String, BundleError> {
    let shown = || BundleError::PathTraversal {
        name: name.chars().take(200).collect(),
    };
    let inner = name.strip_prefix("./").unwrap_or(name);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let leads_out =
        inner.starts_with('/') || inner.contains('\\') || inner.split('/').any(|part| part == "..");
    if leads_out {
        return Err(shown());
    }
    Ok(inner.to_owned())
}

/// Reads an octal number that ends with a space or NUL. The binary form for sizes above 8 GiB is
/// refused.
fn number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    let text = text.trim_matches(|letter| letter == ' ' || letter == '\0');
    if text.is_empty() || !text.bytes().all(|byte| (b'0'..=b'7').contains(&byte)) {
        return None;
    }
    u64::from_str_radix(text, 8).ok()
}
