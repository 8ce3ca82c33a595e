//! Decompression of gzip files: concatenated members, and the trailing zero bytes with which tapes
//! and disks fill blocks.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// All members of a gzip file as one stream.
pub(crate) struct GzipMembers<R> {
    state: GzipState<R>,
    /// Number of completed members.
    ended: u64,
}

enum GzipState<R> {
    Within(Box<GzDecoder<R>>),
    Between(R),
    End,
}

impl<R: BufRead> GzipMembers<R> {
    /// Creates a stream at the beginning of the first member.
    pub(crate) fn new(packed: R) -> Self {
        GzipMembers {
            state: GzipState::Within(Box::new(GzDecoder::new(packed))),
            ended: 0,
        }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, GzipState::End) {
                GzipState::End => return Ok(0),
                GzipState::Within(mut decoder) => match decoder.read(buffer) {
                    Ok(0) if !buffer.is_empty() => {
                        self.ended += 1;
                        self.state = GzipState::Between(decoder.into_inner());
                    }
                    Err(error)
                        if self.ended > 0
                            && decoder.header().is_none()
                            && !matches!(
                                error.kind(),
                                io::ErrorKind::UnexpectedEof | io::ErrorKind::Interrupted
                            ) =>
                    {
                        return Err(garbage());
                    }
                    result => {
                        self.state = GzipState::Within(decoder);
                        return result;
                    }
                },
                GzipState::Between(mut packed) => match next_byte(&mut packed)? {
                    None => {}
                    Some(0x1f) => self.state = GzipState::Within(Box::new(GzDecoder::new(packed))),
                    Some(0) => only_zeros(packed)?,
                    Some(_) => return Err(garbage()),
                },
            }
        }
    }
}

fn garbage() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "trailing data that is not gzip; remove it, or compress the file again",
    )
}

fn next_byte(packed: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        match packed.fill_buf() {
            Ok(bytes) => return Ok(bytes.first().copied()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn only_zeros(mut packed: impl BufRead) -> io::Result<()> {
    while next_byte(&mut packed)?.is_some() {
        let bytes = packed.fill_buf()?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Err(garbage());
        }
        let held = bytes.len();
        packed.consume(held);
    }
    Ok(())
}
