//! Unpacks gzip files: members one after the other, and zero bytes behind the last, with which tapes and disks fill blocks.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// All members of a gzip file, as one stream.
pub(crate) struct Members<R> {
    state: State<R>,
    /// Members that ended.
    ended: u64,
}

enum State<R> {
    Within(Box<GzDecoder<R>>),
    Between(R),
    End,
}

impl<R: BufRead> Members<R> {
    /// Reads from the beginning of the first member.
    pub(crate) fn new(packed: R) -> Self {
        Members {
            state: State::Within(Box::new(GzDecoder::new(packed))),
            ended: 0,
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::End) {
                State::End => return Ok(0),
                State::Within(mut decoder) => match decoder.read(buffer) {
                    Ok(0) if !buffer.is_empty() => {
                        self.ended += 1;
                        self.state = State::Between(decoder.into_inner());
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
                        self.state = State::Within(decoder);
                        return result;
                    }
                },
                State::Between(mut packed) => match next_byte(&mut packed)? {
                    None => {}
                    Some(0x1f) => self.state = State::Within(Box::new(GzDecoder::new(packed))),
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
        "after its end stands something that is not gzip; cut it off, or pack the file again",
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
